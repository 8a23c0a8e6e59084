package link

import (
	"fmt"
	"time"

	"braid/clock"
)

// Link is one direction of a path: a queue, then a wire. Its driver offers packets with Enqueue, asks NextEvent when to
// come back, and then drains Dequeue. Time never goes back. A Link is not safe for concurrent use.
type Link struct {
	name     string
	spec     Spec
	values   *values
	pool     *Pool
	queue    queue
	wire     wire
	counters Counters
	floor    time.Duration // least delay of a packet that leaves the queue
	orderly  bool          // see wire.orderly
}

// Verdict says what became of a packet on entry.
type Verdict uint8

// The verdicts.
const (
	Accepted     Verdict = iota // queued; it may still be lost on the wire
	DroppedQueue                // the queue was full
	DroppedDown                 // the link is down
	DroppedMTU                  // larger than the link's MTU
)

var verdictNames = [...]string{"accepted", "dropped: queue full", "dropped: link down", "dropped: larger than the MTU"}

// String names the verdict.
func (v Verdict) String() string { return verdictNames[v] }

// New makes a link. Its random streams are named from seed and name. Packets that it drops go back to pool, and duplicates come
// from there. The error is Spec.Check's.
func New(name string, spec Spec, seed uint64, pool *Pool) (*Link, error) {
	if err := spec.Check(); err != nil {
		return nil, fmt.Errorf("link %q: %w", name, err)
	}
	l := &Link{name: name, spec: spec, values: newValues(&spec), pool: pool}
	l.queue = queue{values: l.values, headAt: clock.Never}
	if len(spec.TraceMs) > 0 {
		l.queue.trace = newOpportunities(spec.TraceMs)
	}
	l.wire = newWire(seed, name, &spec, l.values, pool, &l.counters)
	l.summarise()
	return l, nil
}

// summarise keeps what NextEvent asks on every packet.
func (l *Link) summarise() {
	l.floor = 0
	if d := &l.values[delay]; d.constant() {
		l.floor = clockDuration(d.base)
	}
	l.orderly = l.wire.orderly()
}

// Name is the link's name.
func (l *Link) Name() string { return l.name }

// Spec is what the link was made from.
func (l *Link) Spec() Spec { return l.spec }

// Counters are the link's counts so far.
func (l *Link) Counters() *Counters { return &l.counters }

// Apply changes the link from now on; c.AtS is ignored, c.OverS is not. What was scheduled for the same fields is forgotten.
func (l *Link) Apply(now clock.Time, c Change) error {
	c.AtS = 0
	if err := c.check(&l.spec); err != nil {
		return fmt.Errorf("link %q: %w", l.name, err)
	}
	l.advance(now)
	l.values.apply(now, &c)
	l.queue.changed()
	l.summarise()
	return nil
}

// Enqueue offers a packet, which belongs to the link from here on whatever the verdict.
func (l *Link) Enqueue(now clock.Time, p *Packet) Verdict {
	if l.queue.headAt <= now {
		l.advance(now)
	}
	c := &l.counters
	c.Offered++
	c.OfferedBytes += int64(p.Size)
	v := l.admit(now, p)
	if v != Accepted {
		l.pool.Put(p)
		return v
	}
	l.queue.add(now, p)
	c.MaxQueueBytes = max(c.MaxQueueBytes, l.queue.bytes)
	c.MaxQueuePackets = max(c.MaxQueuePackets, l.queue.ring.n)
	if l.queue.headAt <= now {
		l.advance(now)
	}
	return Accepted
}

// admit decides whether a packet may enter the queue and counts it if not.
func (l *Link) admit(now clock.Time, p *Packet) Verdict {
	v := l.values
	if v[down].at(now) != 0 {
		l.counters.DropsDown++
		return DroppedDown
	}
	if m := int(v[mtu].at(now)); m > 0 && p.Size > m {
		l.counters.DropsMTU++
		return DroppedMTU
	}
	bytes, packets := int(v[queueBytes].at(now)), int(v[queuePackets].at(now))
	if (bytes > 0 && l.queue.bytes+p.Size > bytes) || (packets > 0 && l.queue.ring.n >= packets) {
		l.counters.DropsQueue++
		return DroppedQueue
	}
	return Accepted
}

// advance moves everything that has left the queue by now onto the wire.
func (l *Link) advance(now clock.Time) {
	for l.queue.headAt <= now {
		t := l.queue.headAt
		if t == clock.Never {
			return
		}
		p, arrived := l.queue.take()
		wait := t.Sub(arrived)
		l.counters.Departed++
		l.counters.QueueDelay += wait
		l.counters.MaxQueueDelay = max(l.counters.MaxQueueDelay, wait)
		l.wire.carry(t, p)
	}
}

// NextEvent returns when Dequeue may next have something; clock.Never: not before the next Enqueue. It holds until the next
// call of Enqueue, Dequeue or Apply.
func (l *Link) NextEvent() clock.Time {
	t := l.wire.next()
	if l.queue.headAt == clock.Never || (l.orderly && l.wire.ring.n > 0) {
		return t
	}
	return min(t, l.queue.headAt.Add(l.floor))
}

// Dequeue returns the next packet that has arrived by now, and when it arrived; the packet is the caller's. Drain it until it
// reports false.
func (l *Link) Dequeue(now clock.Time) (p *Packet, arrived clock.Time, ok bool) {
	if l.queue.headAt <= now {
		l.advance(now)
	}
	if l.wire.next() > now || now == clock.Never {
		return nil, 0, false
	}
	it := l.wire.take()
	l.counters.Delivered++
	l.counters.DeliveredBytes += int64(it.packet.Size)
	return it.packet, it.at, true
}

// Queue returns what waits in the queue, the packet in transmission included.
func (l *Link) Queue(now clock.Time) (bytes, packets int) {
	l.advance(now)
	return l.queue.bytes, l.queue.ring.n
}

// InFlight is the number of packets on the wire.
func (l *Link) InFlight() int { return l.wire.ring.n + len(l.wire.heap) }

// MTU returns the largest packet that the link takes; 0: any.
func (l *Link) MTU(now clock.Time) int { return int(l.values[mtu].at(now)) }

// Down reports whether the link loses everything.
func (l *Link) Down(now clock.Time) bool { return l.values[down].at(now) != 0 }
