package mptcp

import "braid/clock"

// task is something of a Stack that has a deadline and may have packets to send: a connection, a half-open one, or what is left of
// a closed subflow. The owner embeds it and calls Stack.start once.
type task struct {
	owner taskOwner
	slot  int32      // place in the heap plus 1; 0: not in it
	want  clock.Time // the deadline; the heap may have it under an earlier time
	dirty bool       // in Stack.dirty: the deadline has to be asked for again
	ready bool       // in the ready ring
	dead  bool       // stopped: forget it where it still stands in a list
	next  *task      // ready ring
}

// taskOwner is what a task stands for.
type taskOwner interface {
	pollTask(now clock.Time, buf []byte) (Packet, bool) // the next packet
	expire(now clock.Time)                              // the deadline has come
	deadline() clock.Time
}

// timerHeap orders tasks by time: a heap of four children per node. A deadline that moves back is not moved in the heap: the
// entry keeps its earlier time and is corrected when it comes to the top, so that a retransmission timer that every ACK moves costs nothing.
type timerHeap struct {
	entries []timerEntry
}

type timerEntry struct {
	at clock.Time
	t  *task
}

// set puts t into the heap under its deadline, or corrects its place if the deadline is earlier than the heap believes.
func (h *timerHeap) set(t *task) {
	if t.slot == 0 {
		if t.want == clock.Never {
			return
		}
		h.entries = append(h.entries, timerEntry{t.want, t})
		t.slot = int32(len(h.entries))
		h.up(len(h.entries) - 1)
		return
	}
	if i := int(t.slot - 1); t.want < h.entries[i].at {
		h.entries[i].at = t.want
		h.up(i)
	}
}

// remove takes t out.
func (h *timerHeap) remove(t *task) {
	if t.slot == 0 {
		return
	}
	i, last := int(t.slot-1), len(h.entries)-1
	t.slot = 0
	moved := h.entries[last]
	h.entries[last] = timerEntry{}
	h.entries = h.entries[:last]
	if i == last {
		return
	}
	h.entries[i] = moved
	moved.t.slot = int32(i + 1)
	h.down(i)
	h.up(int(moved.t.slot) - 1)
}

// first returns the earliest deadline, correcting entries that stand too early.
func (h *timerHeap) first() (*task, clock.Time) {
	for len(h.entries) > 0 {
		e := &h.entries[0]
		if e.t.want <= e.at {
			return e.t, e.at
		}
		if e.t.want == clock.Never {
			h.remove(e.t)
			continue
		}
		e.at = e.t.want
		h.down(0)
	}
	return nil, clock.Never
}

func (h *timerHeap) up(i int) {
	e := h.entries[i]
	for i > 0 {
		parent := (i - 1) / 4
		if h.entries[parent].at <= e.at {
			break
		}
		h.put(i, h.entries[parent])
		i = parent
	}
	h.put(i, e)
}

func (h *timerHeap) down(i int) {
	e := h.entries[i]
	for {
		least := -1
		at := e.at
		for child := 4*i + 1; child <= 4*i+4 && child < len(h.entries); child++ {
			if h.entries[child].at < at {
				least, at = child, h.entries[child].at
			}
		}
		if least < 0 {
			break
		}
		h.put(i, h.entries[least])
		i = least
	}
	h.put(i, e)
}

func (h *timerHeap) put(i int, e timerEntry) {
	h.entries[i] = e
	e.t.slot = int32(i + 1)
}

// readyRing holds the tasks that may have something to send, in the order in which they asked.
type readyRing struct {
	head, tail *task
}

func (r *readyRing) push(t *task) {
	t.next = nil
	if r.tail == nil {
		r.head = t
	} else {
		r.tail.next = t
	}
	r.tail = t
}

func (r *readyRing) pop() *task {
	t := r.head
	r.head = t.next
	if r.head == nil {
		r.tail = nil
	}
	t.next = nil
	return t
}

// start makes t known to the Stack.
func (s *Stack) start(t *task, owner taskOwner) {
	t.owner, t.want = owner, clock.Never
	s.tasks++
}

// stop forgets t: it is asked for nothing any more.
func (s *Stack) stop(t *task) {
	if t.dead {
		return
	}
	t.dead = true
	s.tasks--
	s.timers.remove(t)
}

// wakeTask says that t may have packets, and that its deadline may have changed.
func (s *Stack) wakeTask(t *task) {
	if !t.ready && !t.dead {
		t.ready = true
		s.ready.push(t)
	}
}

// rearmTask says that t's deadline may have changed.
func (s *Stack) rearmTask(t *task) {
	if !t.dirty && !t.dead {
		t.dirty = true
		s.dirty = append(s.dirty, t)
	}
}

// wake says that c may have something to poll.
func (s *Stack) wake(c *Conn) { s.wakeTask(&c.task) }

// rearm says that c's next timeout changed.
func (s *Stack) rearm(c *Conn) { s.rearmTask(&c.task) }

// settle asks the tasks whose deadlines may have changed for them.
func (s *Stack) settle() {
	for i, t := range s.dirty {
		s.dirty[i] = nil
		t.dirty = false
		if t.dead {
			continue
		}
		t.want = t.owner.deadline()
		s.timers.set(t)
	}
	s.dirty = s.dirty[:0]
}

// NextTimeout returns when HandleTimeout is due, clock.Never if no timer runs. It is exact once PollPacket has been drained.
func (s *Stack) NextTimeout() clock.Time {
	s.settle()
	_, at := s.timers.first()
	return at
}

// HandleTimeout does what is due. Each connection gets its turn at most once; PollPacket has to be drained afterwards.
func (s *Stack) HandleTimeout(now clock.Time) {
	s.settle()
	for {
		t, at := s.timers.first()
		if at > now {
			return
		}
		s.timers.remove(t) // and comes back when its deadline has been asked for again
		s.rearmTask(t)
		s.wakeTask(t)
		t.owner.expire(now)
	}
}

// Fairness between connections: how much one may send before the next one's turn. It is one train of segments that fits one
// segmentation offload.
const (
	trainPackets = 44
	trainBytes   = 64 << 10
)

// PollPacket writes the next packet to buf, which must have room for the largest MTU of all paths, and says where it goes;
// false if there is nothing to send now.
func (s *Stack) PollPacket(now clock.Time, buf []byte) (Packet, bool) {
	if p, ok := s.control.poll(s, buf); ok {
		return s.countOut(p), true
	}
	for s.ready.head != nil {
		t := s.ready.head
		if !t.dead {
			if p, ok := t.owner.pollTask(now, buf); ok {
				s.spend(p.Len)
				return s.countOut(p), true
			}
		}
		s.ready.pop()
		t.ready = false
		s.trainLeft, s.trainRoom = trainPackets, trainBytes
		s.rearmTask(t)
		if p, ok := s.control.poll(s, buf); ok { // polling may have reset a subflow
			return s.countOut(p), true
		}
	}
	return Packet{}, false
}

// spend counts a packet against the turn of the task at the head of the ready ring and ends the turn when it is used up.
func (s *Stack) spend(n int) {
	s.trainLeft--
	s.trainRoom -= n
	if s.trainLeft > 0 && s.trainRoom > 0 {
		return
	}
	s.trainLeft, s.trainRoom = trainPackets, trainBytes
	if t := s.ready.head; t.next != nil {
		s.ready.pop()
		s.ready.push(t)
	}
}

func (s *Stack) countOut(p Packet) Packet {
	s.counters.PacketsOut++
	s.counters.BytesOut += int64(p.Len)
	return p
}
