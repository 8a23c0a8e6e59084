package mptcp

import (
	"braid/clock"
	"braid/schedule"
	"braid/seq"
	"braid/trace"
	"braid/wire"
)

// poll writes the next packet of the connection to buf; false if there is none now. One subflow is asked until it has nothing
// more, so that its packets form a train.
func (c *Conn) poll(now clock.Time, buf []byte) (Packet, bool) {
	for range len(c.subflows) {
		if c.rotor >= len(c.subflows) {
			c.rotor = 0
		}
		if len(c.subflows) == 0 {
			break
		}
		sf := c.subflows[c.rotor]
		if p, ok := c.pollSubflow(now, sf, buf); ok {
			return p, true
		}
		c.rotor++
	}
	c.updateBlocked()
	return Packet{}, false
}

// pollSubflow writes the next packet of sf: data if the scheduler gives it some, else what its tcp has to say.
func (c *Conn) pollSubflow(now clock.Time, sf *Subflow, buf []byte) (Packet, bool) {
	t := sf.tcp
	if t == nil {
		return Packet{}, false
	}
	reserveData, reserveAck := c.reserve(sf)
	if sf.state == active && c.state == connOpen {
		if (c.snd.waiting() > 0 || c.snd.inFlight()) && !sf.data.ackFirst && !sf.data.addrDue {
			c.give(now, sf, reserveData)
		}
		t.SetMore(c.more(sf))
	}
	t.SetWindow(c.rcv.advertise(!c.mayGrow()))
	s := c.stack
	seg, out := &s.seg, &s.out
	if !t.PollSegment(now, seg, out, reserveData, reserveAck) {
		return Packet{}, false
	}
	if !sf.fillHandshake(now, seg, out) {
		c.fillData(now, sf, seg, out)
	}
	sf.data.ackFirst = false
	p := s.build(now, sf, seg, out, buf)
	if seg.Flags&wire.ACK != 0 {
		c.rcv.announced()
	}
	if seg.Flags&wire.RST != 0 {
		sf.checkClosed(now)
	}
	return p, true
}

// more reports whether data waits for sf: new data, or what needs another carrier.
func (c *Conn) more(sf *Subflow) bool {
	return c.snd.waiting() > 0 || !c.snd.reinject.Empty() && !c.fb.sending && !c.reinjectable(sf, 1).Empty()
}

// tail returns how much new data there is if there is nothing else to send.
func (c *Conn) tail() int64 {
	if c.snd.reinject.Empty() {
		return c.snd.waiting()
	}
	return 0
}

// give pushes one chunk to sf if it can send and there is one for it.
func (c *Conn) give(now clock.Time, sf *Subflow, reserve int) {
	sf.tcp.SetTail(c.tail())
	if !sf.tcp.CanSend(now) {
		return
	}
	payload := min(sf.tcp.PayloadRoom(reserve), maxChunk)
	if payload <= 0 {
		return
	}
	most := c.burst(now, sf, payload)
	if most == 0 {
		return
	}
	if !c.several() {
		c.giveAlone(now, sf, payload, most)
		return
	}
	v := &c.views
	i := c.refreshViews(now, sf)
	if now >= v.planAt {
		c.plan(now)
	}
	d := c.sched.Pick(now, c.fillQueue(sf), v.list, v.roles, i)
	if d.Penalise {
		c.penaliseHolder(now)
	}
	if d.Kind == schedule.Wait {
		v.wakeAt = min(v.wakeAt, max(d.Wake, now+1))
		return
	}
	r := c.dataFor(sf, &d, payload, most)
	if r.Empty() && d.Else != schedule.Wait {
		d = schedule.Decision{Kind: d.Else}
		r = c.dataFor(sf, &d, payload, most)
	}
	if r.Empty() {
		return
	}
	c.push(now, sf, r, d.Kind)
	c.sched.OnSent(now, sf.id, d.Kind, r)
	if c.stack.cfg.Trace != nil {
		c.trace(now, int16(sf.id), trace.Schedule, int64(d.Kind), int64(d.Skip), r.Start, r.End)
	}
}

// burstShared is the most packets of one chunk while there are several subflows: the scheduler decides about each chunk.
const burstShared = 16

// burst returns how many bytes of new data a chunk for sf may have: one packet's payload, or that of several which leave together with
// one mapping. 0 says that a chunk given before has not left yet. With checksums a mapping is one packet: the peer
// could deliver nothing before it had all of it.
func (c *Conn) burst(now clock.Time, sf *Subflow, payload int) int {
	most := c.stack.paths[sf.path].Burst
	if most <= 1 || c.hs.checksums || c.fb.active || c.fb.sending || sf.needsKeys() {
		return payload
	}
	if sf.tcp.PushedOffset() > sf.tcp.SentOffset() {
		return 0
	}
	if c.several() {
		most = min(most, burstShared)
	}
	room := min(sf.tcp.SendRoom(now), int64(most)*int64(payload), maxChunk)
	return max(1, int(room)/payload) * payload
}

// dataFor returns the data that a decision means, at most payload bytes, of new data at most most; empty if there is none of its kind for sf.
func (c *Conn) dataFor(sf *Subflow, d *schedule.Decision, payload, most int) seq.Range {
	switch d.Kind {
	case schedule.New:
		if sf.data.stale.timedOut && c.anotherLives(sf) {
			return seq.Range{} // REL-05: no new data for a subflow that does not answer
		}
		return c.newData(d.From, d.Skip, payload, most)
	case schedule.Reinject:
		return c.reinjectable(sf, payload)
	default:
		return c.copyable(sf, d.From, payload)
	}
}

// maxChunk is the longest chunk: with a DATA_FIN its mapping's length must fit 16 bits.
const maxChunk = 65534

// giveAlone is give for the only subflow: there is nothing to schedule.
func (c *Conn) giveAlone(now clock.Time, sf *Subflow, payload, most int) {
	if !c.snd.reinject.Empty() && !c.fb.sending {
		if r := c.reinjectable(sf, payload); !r.Empty() {
			c.push(now, sf, r, schedule.Reinject)
			return
		}
	}
	if r := c.newData(0, 0, payload, most); !r.Empty() {
		c.push(now, sf, r, schedule.New)
	}
}

// anotherLives reports whether an active subflow beside sf answers.
func (c *Conn) anotherLives(sf *Subflow) bool {
	for _, other := range c.views.sfs {
		if other != sf && other.usable() {
			return true
		}
	}
	return false
}

// newData returns the unsent data that segments of the given payload may carry now, at most most bytes of it, skip full packets behind the
// first at or after offset from; empty if there is none, or if a small segment is better held back.
func (c *Conn) newData(from int64, skip, payload, most int) seq.Range {
	s := &c.snd
	r := s.unsentAfter(from, int64(skip)*int64(payload))
	n := r.Len()
	if n >= int64(payload) {
		r.End = r.Start + min(n, int64(most))/int64(payload)*int64(payload)
		return r
	}
	if n == 0 || !c.worthSending(r) {
		return seq.Range{}
	}
	return r
}

// worthSending decides about a range of less than a full segment.
func (c *Conn) worthSending(r seq.Range) bool {
	s := &c.snd
	switch {
	case r.End < s.next:
		return true // it fills a hole in what was sent: it cannot grow
	case r.End < s.end():
		// RFC 9293, Section 3.8.6.2.1: the peer's window is nearly full. Wait for more room, unless this is half of the largest
		// window, or nothing is on its way that would bring news of it.
		return 2*r.Len() >= s.maxWindow || !c.newsComes()
	}
	// RFC 9293, Section 3.7.4: Nagle, so that only one small segment is on its way at a time.
	return c.stack.cfg.NoDelay || c.fin.queued || s.smallEnd <= s.acked() || !c.newsComes()
}

// newsComes reports whether something is on its way that brings an ACK. What a subflow's peer has acknowledged and not DATA_ACKed does
// not: Linux acknowledges data before its connection has taken it, and says nothing when it has.
func (c *Conn) newsComes() bool {
	if !c.snd.inFlight() {
		return false
	}
	for _, sf := range c.subflows {
		if sf.up() && (sf.tcp.SentOffset() > sf.tcp.AckedOffset() || sf.tcp.PushedOffset() > sf.tcp.SentOffset()) {
			return true
		}
	}
	return false
}

// push gives r to sf's tcp as one chunk: one mapping for each segment.
func (c *Conn) push(now clock.Time, sf *Subflow, r seq.Range, kind schedule.Kind) {
	s, d := &c.snd, &sf.data
	n := int(r.Len())
	if kind == schedule.New {
		if r.End == s.end() && n < sf.tcp.MSS()-dataReserve {
			s.smallEnd = r.End
		}
		s.take(r)
		d.stats.newBytes += int64(n)
		if len(c.views.list) > 1 {
			d.carried.firsts.Add(r)
		}
	} else if kind == schedule.Reinject {
		s.reinject.Remove(r)
		d.stats.reinjectedBytes += int64(n)
		c.stack.counters.ReinjectedBytes += int64(n)
	} else {
		d.stats.copiedBytes += int64(n)
		c.stack.counters.CopiedBytes += int64(n)
	}
	if c.fin.queued && !c.fin.acked && s.waiting() == 0 && r.End == s.end() && !c.fb.sending && !sf.needsKeys() {
		c.sendFINWith(now, r, d)
	}
	s.buf.Hold(r.Start, n)
	sf.tcp.Push(r.Start, n)
	d.carried.push(r.Start, n)
	c.armDataRTO(now)
	if c.fin.queued && !c.fin.sent {
		c.advanceClose(now)
	}
}

// penaliseHolder halves the window of the subflow that the connection waits for.
func (c *Conn) penaliseHolder(now clock.Time) {
	id := c.views.queue.Holder
	for i, sf := range c.views.sfs {
		if sf.id == id {
			before := c.views.list[i].Window
			sf.tcp.Penalise(now)
			c.views.touch(sf)
			c.stack.counters.Penalties++
			c.trace(now, int16(id), trace.Penalty, before, sf.tcp.Window())
		}
	}
}

// updateBlocked tells every tcp whether the peer's shared window forbids all that waits while nothing is outstanding that
// would bring news of it: then windows are probed on all subflows, so that no single path's loss can stall the
// connection (RFC 9293, Section 3.8.6.1).
func (c *Conn) updateBlocked() {
	s := &c.snd
	// The edge alone does not tell: window fields are rounded, so that a subflow may have no room below it.
	blocked := s.waiting() > 0 && c.state == connOpen && !c.newsComes()
	if blocked == s.blocked {
		return
	}
	s.blocked = blocked
	for _, sf := range c.subflows {
		if sf.up() {
			sf.tcp.SetBlocked(blocked)
		}
	}
}

// trace records an event of the connection if somebody listens.
func (c *Conn) trace(now clock.Time, subflow int16, kind trace.Kind, values ...int64) {
	sink := c.stack.cfg.Trace
	if sink == nil {
		return
	}
	e := trace.Event{Time: now, Conn: c.id, Subflow: subflow, Kind: kind}
	copy(e.V[:], values)
	sink.Trace(&e)
}
