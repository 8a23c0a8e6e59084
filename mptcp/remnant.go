package mptcp

import (
	"net/netip"

	"time"

	"braid/clock"
	"braid/seq"
	"braid/tcp"
	"braid/wire"
)

// remnant is the closing handshake or TIME-WAIT of a subflow without its connection: it repeats its FIN until that is acknowledged,
// and answers what the peer repeats, DATA_FINs included (RFC 9293, Section 3.6; RFC 8684, Section 3.3.3).
type remnant struct {
	task
	route
	stack   *Stack
	tcp     *tcp.Conn
	mptcp   bool
	dataAck seq.Data   // what every segment acknowledges
	until   clock.Time // when a closing handshake that does not end is given up
	prev    *remnant
	after   *remnant
}

const (
	maxRemnants = 4096            // the oldest is cut short
	closingTime = 2 * time.Minute // for a closing handshake whose peer does not answer any more
)

// remnantTable holds the remnants of a Stack in order of age.
type remnantTable struct {
	tuples      map[tuple]*remnant
	tags        map[uint32]*remnant
	first, last *remnant
	n           int
}

func newRemnantTable() remnantTable {
	return remnantTable{tuples: make(map[tuple]*remnant), tags: make(map[uint32]*remnant)}
}

// add keeps what is left of sf, which the caller detaches from its connection.
func (t *remnantTable) add(s *Stack, now clock.Time, sf *Subflow) {
	for t.n >= maxRemnants {
		s.counters.TimeWaitEvicted++
		t.first.close(now)
	}
	c := sf.conn
	r := &remnant{stack: s, route: sf.route, tcp: sf.tcp, mptcp: !c.hs.plain, dataAck: c.dataAck(), until: now.Add(closingTime)}
	r.env.tell = false // it may have been true of the last packet
	if !states(r.tcp.State(), tcp.TimeWait, tcp.Closed) {
		r.tcp.Close(now)
	}
	if r.kind == UDP {
		t.tags[r.env.localTag] = r
	} else {
		t.tuples[r.tuple()] = r
	}
	r.prev = t.last
	if t.last != nil {
		t.last.after = r
	} else {
		t.first = r
	}
	t.last = r
	t.n++
	s.start(&r.task, r)
	r.drain()
	s.wakeTask(&r.task)
	s.rearmTask(&r.task)
}

func states(s tcp.State, list ...tcp.State) bool {
	for _, l := range list {
		if s == l {
			return true
		}
	}
	return false
}

// close forgets r.
func (r *remnant) close(now clock.Time) {
	if r.dead {
		return
	}
	t := &r.stack.remnants
	if r.tcp.State() != tcp.Closed {
		r.tcp.Abort(now)
		for r.tcp.PollSegment(now, &r.stack.rstSeg, &r.stack.rstOut, 0, 0) { // its RST is not sent
		}
	}
	if r.kind == UDP {
		delete(t.tags, r.env.localTag)
	} else if key := r.tuple(); t.tuples[key] == r {
		delete(t.tuples, key)
	}
	if r.prev != nil {
		r.prev.after = r.after
	} else {
		t.first = r.after
	}
	if r.after != nil {
		r.after.prev = r.prev
	} else {
		t.last = r.prev
	}
	t.n--
	r.stack.stop(&r.task)
}

// dropPath forgets the remnants over a path.
func (t *remnantTable) dropPath(s *Stack, now clock.Time, id PathID) {
	for r := t.first; r != nil; {
		next := r.after
		if r.path == id {
			r.close(now)
		}
		r = next
	}
}

// drain gives back what the TCP still hands up: nobody reads it.
func (r *remnant) drain() {
	for ch := r.tcp.NextReceived(); ch != nil; ch = r.tcp.NextReceived() {
		r.stack.pool.Release(ch)
	}
	for _, ok := r.tcp.NextReleased(); ok; _, ok = r.tcp.NextReleased() {
	}
}

// handle takes a segment. It reports whether the remnant made room for a new connection with the same addresses and ports: a SYN
// that can be no duplicate of an old one (RFC 9293, Section 3.6.1; RFC 6191).
func (r *remnant) handle(now clock.Time, seg *wire.Segment) (reopened bool) {
	if r.tcp.AcceptsNewSYN(seg) {
		r.close(now)
		return true
	}
	r.take(now, seg)
	return false
}

// handleEnveloped takes a segment over a UDP path. What is left of a subflow carries no payload, so that it follows the peer to a new outer
// address without a challenge: it sends there no more than an ACK or FIN for what came from there.
func (r *remnant) handleEnveloped(now clock.Time, from netip.AddrPort, seg *wire.Segment) {
	if res := r.take(now, seg); res.Acceptable || res.Repeats {
		r.env.to = from
	}
}

func (r *remnant) take(now clock.Time, seg *wire.Segment) tcp.Result {
	res := r.tcp.HandleSegment(now, seg)
	if r.mptcp && res.Acceptable && seg.Has(wire.OptDSS) && seg.DSS.HasMap && seg.DSS.DataFIN {
		r.tcp.RequestAck(now) // the peer did not see our DATA_ACK of it (RFC 8684, Section 3.3.3)
	}
	r.drain()
	r.stack.wakeTask(&r.task)
	r.stack.rearmTask(&r.task)
	return res
}

func (r *remnant) pollTask(now clock.Time, buf []byte) (Packet, bool) {
	s := r.stack
	seg := &s.seg
	room := 0
	if r.mptcp {
		room = ackReserve
	}
	if !r.tcp.PollSegment(now, seg, &s.out, room, room) {
		if r.tcp.State() == tcp.Closed {
			r.close(now)
		}
		return Packet{}, false
	}
	if r.mptcp && seg.Flags&wire.RST == 0 {
		seg.Options |= wire.OptDSS
		seg.DSS = wire.DSS{HasAck: true, Ack64: true, DataAck: r.dataAck}
	}
	return r.buildBare(seg, buf), true
}

func (r *remnant) expire(now clock.Time) {
	r.tcp.HandleTimeout(now)
	if s := r.tcp.State(); s == tcp.Closed || s != tcp.TimeWait && now >= r.until {
		r.close(now)
	}
}

func (r *remnant) deadline() clock.Time {
	at := r.tcp.NextTimeout()
	if r.tcp.State() != tcp.TimeWait {
		at = min(at, r.until)
	}
	return at
}
