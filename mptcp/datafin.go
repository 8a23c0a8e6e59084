package mptcp

import (
	"time"

	"braid/clock"
	"braid/seq"
	"braid/wire"
)

const (
	minFINInterval = 200 * time.Millisecond // before a DATA_FIN is repeated for the first time
	maxFINInterval = 30 * time.Second
)

// closeState is the end of both streams. A DATA_FIN takes one data offset after the last byte (RFC 8684, Section 3.3.3).
//
//	ours:   queued (the application writes no more) -> sent -> acked
//	peer's: peer known (offset seen) -> peerReached (everything before it has come)
type closeState struct {
	queued bool
	sent   bool
	acked  bool
	offset int64 // of our DATA_FIN, once queued

	resendAt clock.Time // when it is repeated; Never: not out, or acknowledged
	repeats  int

	peer        int64 // offset of the peer's DATA_FIN; -1: not seen
	peerReached bool
	closing     bool // the subflows were told to close
}

func (f *closeState) init() { f.peer, f.resendAt = -1, clock.Never }

// finishWriting queues the end of our stream behind everything written.
func (c *Conn) finishWriting(now clock.Time) {
	f := &c.fin
	if f.queued {
		return
	}
	f.queued = true
	f.offset = c.snd.end()
	c.advanceClose(now)
	c.stack.wake(c)
	c.stack.rearm(c)
}

// sendFINWith lets the DATA_FIN travel with r, the last of the data, about to be pushed to the subflow of d.
func (c *Conn) sendFINWith(now clock.Time, r seq.Range, d *subflowData) {
	d.finChunk = r.Start
	if !c.fin.sent {
		c.fin.sent = true
		c.fin.resendAt = now.Add(c.finInterval())
	}
}

// finInterval is how long to wait for the DATA_ACK of a DATA_FIN: it doubles with each repetition.
func (c *Conn) finInterval() time.Duration {
	d := max(minFINInterval, 2*c.rtt(minFINInterval/2))
	return min(d<<min(c.fin.repeats, 16), maxFINInterval)
}

// sendFIN makes a DATA_FIN leave on an ACK of its own on every subflow that works: one that fails cannot hold up the close.
func (c *Conn) sendFIN(now clock.Time) {
	f := &c.fin
	if !f.sent {
		f.sent = true
		c.noteStuck(now)
	}
	for _, sf := range c.subflows {
		if sf.up() {
			sf.data.finDue = true
			sf.tcp.RequestAck(now)
		}
	}
	f.resendAt = now.Add(c.finInterval())
	c.stack.wake(c)
	c.stack.rearm(c)
}

// repeatFIN sends a DATA_FIN again that was not acknowledged in time (RFC 8684, Section 3.3.3). While data before it is
// outstanding the peer cannot acknowledge it: then it is the data that is waited for.
func (c *Conn) repeatFIN(now clock.Time) {
	f := &c.fin
	f.resendAt = clock.Never
	if !f.sent || f.acked || c.fb.sending {
		return
	}
	if c.snd.buf.Len() > 0 {
		f.resendAt = now.Add(c.finInterval())
		return
	}
	f.repeats++
	c.stack.counters.FINRepeats++
	c.sendFIN(now)
}

// takeDataFIN notes the peer's DATA_FIN at a data offset. It may come before earlier data and again after it was acknowledged.
func (c *Conn) takeDataFIN(now clock.Time, sf *Subflow, offset int64) {
	f := &c.fin
	switch {
	case f.peer == offset:
		if f.peerReached {
			sf.tcp.RequestAck(now) // our DATA_ACK of it was lost
		}
		return
	case f.peer >= 0, offset < c.rcv.next, offset < c.rcv.ooo.End(), offset > c.rcv.edge:
		c.stack.counters.DataFINsRefused++
		return
	}
	f.peer = offset
	c.reachPeerFIN(now)
}

// reachPeerFIN lets the stream end when everything before the DATA_FIN has come; only then is it acknowledged.
func (c *Conn) reachPeerFIN(now clock.Time) {
	f := &c.fin
	if f.peerReached || f.peer != c.rcv.next {
		return
	}
	f.peerReached = true
	c.rcv.next++
	for _, sf := range c.subflows {
		if sf.up() {
			sf.tcp.RequestAck(now)
		}
	}
	c.signalReadable()
}

// reackFIN answers a DATA_FIN that is repeated after the connection is over (RFC 8684, Section 3.3.3).
func (c *Conn) reackFIN(now clock.Time, sf *Subflow, seg *wire.Segment) {
	if c.fin.peerReached && seg.Has(wire.OptDSS) && seg.DSS.HasMap && seg.DSS.DataFIN {
		sf.tcp.RequestAck(now)
	}
}

// closedBothWays reports whether both streams have ended and both ends know it.
func (c *Conn) closedBothWays() bool {
	ours := c.fin.acked
	if c.fb.sending {
		ours = c.fin.sent && c.snd.buf.Len() == 0
	}
	return ours && c.fin.peerReached
}

// advanceClose does what the state of the close allows: send our DATA_FIN when all data has been sent; close the subflows when
// both DATA_FINs have been acknowledged. The connection ends with its last subflow. Under an infinite mapping a plain FIN ends
// our stream.
func (c *Conn) advanceClose(now clock.Time) {
	f := &c.fin
	if c.state != connOpen {
		return
	}
	if f.queued && !f.sent && c.snd.waiting() == 0 {
		if c.fb.sending {
			f.sent = true
			c.closeSubflows(now)
			c.noteStuck(now)
		} else if c.everActive > 0 {
			c.sendFIN(now)
		}
	}
	if !c.closedBothWays() || f.closing {
		return
	}
	f.closing = true
	c.hs.noJoins = true
	c.traceState(now)
	c.stack.unregister(c)
	c.closeSubflows(now)
	switch {
	case c.state != connOpen:
	case !c.anyUp():
		c.end(now, nil)
	default:
		// Everything is done but for the subflows' own closing. The connection answers until then: the peer may not know that
		// all has arrived and still send copies.
		c.lingerAt = min(c.lingerAt, now.Add(c.stack.cfg.CloseTimeout))
	}
}

// closeSubflows sends a FIN on every subflow (RFC 8684, Section 3.3.3). Those that are still opening are reset.
func (c *Conn) closeSubflows(now clock.Time) {
	for i := 0; i < len(c.subflows); {
		sf := c.subflows[i]
		switch {
		case sf.state == active:
			c.closeSubflow(now, sf)
		case !sf.up():
			c.stack.drop(now, sf, wire.ResetUnspecified, true)
		}
		if i < len(c.subflows) && c.subflows[i] == sf {
			i++
		}
	}
	c.stack.wake(c)
	c.stack.rearm(c)
}

// closeSubflow sends a FIN on sf behind what was pushed: it carries no new data any more.
func (c *Conn) closeSubflow(now clock.Time, sf *Subflow) {
	sf.setState(closing)
	sf.tcp.CloseWrite(now)
	c.views.changed()
}

// peerClosed obeys the peer's FIN on sf. It ends only what the peer sends on that subflow and says nothing about the connection
// (RFC 8684, Section 3.3.3), except under the infinite mapping, where it ends the peer's stream.
func (c *Conn) peerClosed(now clock.Time, sf *Subflow, seg *wire.Segment) {
	sole := sf.initial && c.everActive <= 1
	if !c.fb.any() && !c.fb.failed && sole && c.inPlace() && c.firstWindow() && seg.Options&wire.OptMPTCP == 0 {
		// No sign of MPTCP gets through: a peer that has fallen back ends its stream so.
		c.setFallback(now, FallbackNoMapping)
	}
	switch {
	case c.fb.any():
		c.plainFIN(now, sf)
	case sf.state == active && !sole:
		// On the only subflow there ever was, a peer that fell back unnoticed would take our FIN for the end of our stream: it comes
		// behind the stream's end only, and what is left goes on over this half of the subflow.
		c.closeSubflow(now, sf)
	}
}

// plainFIN ends the peer's stream with the FIN of the subflow, which must stand where the stream does: if bytes in front of it got lost to
// the stream (they were discarded for a checksum, say), it is no end but a failure.
func (c *Conn) plainFIN(now clock.Time, sf *Subflow) {
	f := &c.fin
	if at := max(1, sf.data.taken) + c.fb.delta; !f.peerReached && c.fb.receiving && at != c.rcv.next {
		c.stack.drop(now, sf, wire.ResetMiddlebox, false)
		return
	}
	f.peer = c.rcv.next
	f.peerReached = true
	c.signalReadable()
	c.advanceClose(now)
}
