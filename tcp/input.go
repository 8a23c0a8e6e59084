package tcp

import (
	"braid/clock"
	"braid/seq"
	"braid/wire"
)

// HandleSegment takes a segment of this connection. Its payload is copied, once, before the call returns.
//
// The order of the checks is that of RFC 9293, Section 3.10.7, with those of RFC 7323 (PAWS) and RFC 5961 in their places. What
// fails one is dropped, with an ACK where one is due; Result.Acceptable stays false then.
func (c *Conn) HandleSegment(now clock.Time, seg *wire.Segment) (r Result) {
	c.rcv.segments++
	switch {
	case c.state == Closed || c.end.aborting:
		r.Closed = c.state == Closed
		return r
	case c.state == SynSent:
		c.inSynSent(now, seg, &r)
	default:
		c.inSynchronized(now, seg, &r)
	}
	r.Closed = c.state == Closed
	return r
}

// inSynSent is RFC 9293, Section 3.10.7.3.
func (c *Conn) inSynSent(now clock.Time, seg *wire.Segment, r *Result) {
	acked := seg.Flags.Has(wire.ACK)
	if acked && c.iss.Offset(seg.Ack, 1) != 1 {
		c.refuse(seg) // a half-open peer's connection is cleared that way (RFC 9293, Section 3.5.1)
		return
	}
	if seg.Flags.Has(wire.RST) {
		if acked {
			r.Acceptable, r.Reset = true, true
			c.closed(ErrRefused)
		}
		return
	}
	if !seg.Flags.Has(wire.SYN) {
		return
	}
	r.Acceptable = true
	c.lastHeard = now
	c.irs = seg.Seq
	c.negotiate(now, seg)
	if !acked {
		// Simultaneous open (RFC 9293, Section 3.5, Figure 8): answer with SYN/ACK, timed from now on.
		c.setState(SynReceived)
		c.syn.due = true
		return
	}
	c.complete(now, seg, r)
	c.rcv.ackNow()
	r.InOrder = true
	c.text(now, seg, 1, r) // RFC 9293 lets a SYN/ACK carry payload
}

// inSynchronized is RFC 9293, Section 3.10.7.4: SYN-RECEIVED and all later states.
func (c *Conn) inSynchronized(now clock.Time, seg *wire.Segment, r *Result) {
	start := c.irs.Offset(seg.Seq, c.rcv.nxt)
	if seg.Flags&wire.SYN != 0 {
		if !c.synAgain(now, seg, start) {
			return
		}
		start++ // the ACK of a SYN/ACK that crossed ours, without its SYN
	}
	end := start + int64(len(seg.Payload))
	if seg.Flags&wire.FIN != 0 {
		end++
	}
	if c.ts.on && !c.timely(now, seg, start, end, r) {
		return
	}
	if !c.rcv.acceptable(start, end) {
		c.noteKeepAlive(now, seg, start, end)
		r.Repeats = c.repeats(seg, start, end)
		c.unacceptable(now, seg, start, end, r)
		return
	}
	if seg.Flags&wire.RST != 0 {
		c.resetBy(now, start, r)
		return
	}
	if seg.Flags&wire.ACK == 0 {
		return
	}
	if c.state == SynReceived {
		if c.iss.Offset(seg.Ack, 1) != 1 {
			c.refuse(seg)
			return
		}
		c.complete(now, seg, r)
	}
	ack := c.iss.Offset(seg.Ack, c.snd.nxt())
	if !c.ackPossible(ack) {
		c.challenge(now)
		return
	}
	r.Acceptable = true
	r.InOrder = start == c.rcv.nxt
	c.lastHeard = now
	c.keep.unanswered = 0
	if c.ts.on && seg.Options&wire.OptTimestamps != 0 {
		c.ts.update(now, seg.TSVal, start, c.rcv.lastAck)
		if len(seg.Payload) > 0 {
			c.ts.onPayload(now, seg.TSEcr)
		}
	}
	c.acknowledged(now, seg, start, ack, r)
	if end > start {
		c.text(now, seg, start, r)
	}
}

// synAgain handles a SYN in a synchronized state. It reports true if the segment is the SYN/ACK of a simultaneous open,
// which counts as an ACK. A repeated SYN gets the SYN/ACK again; any other SYN gets a challenge ACK, whatever its sequence
// number (RFC 5961, Section 4.2; in SYN-RECEIVED too: a peer that has restarted answers it with a RST).
func (c *Conn) synAgain(now clock.Time, seg *wire.Segment, start int64) bool {
	if c.state == SynReceived && start == 0 && seg.Flags&wire.RST == 0 {
		if seg.Flags.Has(wire.ACK) {
			c.rcv.ackNow()
			return true
		}
		c.syn.due = true
		return false
	}
	if seg.Flags&wire.RST == 0 {
		c.challenge(now)
	}
	return false
}

// timely is PAWS (RFC 7323, Section 5.3, R1). A segment without the negotiated option is dropped if it carries text
// (Section 3.2); bare ACKs without it are let through unless the Config is strict: some hosts leave it out to make room.
func (c *Conn) timely(now clock.Time, seg *wire.Segment, start, end int64, r *Result) bool {
	if seg.Flags&wire.RST != 0 {
		return true
	}
	if seg.Options&wire.OptTimestamps == 0 {
		return end == start && !c.cfg.StrictTimestamps
	}
	if !c.ts.older(now, seg.TSVal) {
		return true
	}
	c.pawsDrops++
	c.unacceptable(now, seg, start, end, r)
	return false
}

// unacceptable answers a segment outside the window with an ACK, unless it is a RST (RFC 9293, Section 3.10.7.4, first check).
// Payload that came before is reported in a D-SACK block. Segments without text are answered at a limited rate.
func (c *Conn) unacceptable(now clock.Time, seg *wire.Segment, start, end int64, r *Result) {
	if seg.Flags&wire.RST != 0 {
		return
	}
	if end > start && end <= c.rcv.nxt {
		r.Duplicate = true
		n := int64(len(seg.Payload))
		c.rcv.duplicate(seq.Range{Start: start, End: start + n})
		if seg.Flags&wire.FIN != 0 && c.state == TimeWait {
			c.restartTimeWait(now) // RFC 9293, Section 3.10.7.4, eighth check
		}
		c.repeated(now, seg, start)
		if n > 0 {
			c.rcv.dupAcks = max(c.rcv.dupAcks, 1)
			return
		}
	}
	if end > start {
		c.rcv.ackNow()
		return
	}
	c.challenge(now)
}

// repeats reports whether a segment that is not acceptable has all numbers from where the peer was a window ago.
func (c *Conn) repeats(seg *wire.Segment, start, end int64) bool {
	return seg.Flags&(wire.SYN|wire.RST|wire.ACK) == wire.ACK && end <= c.rcv.nxt && c.recent(start) && c.ackPossible(c.iss.Offset(seg.Ack, c.snd.nxt()))
}

// recent reports whether an offset lies at most a window before what was received.
func (c *Conn) recent(start int64) bool {
	return start >= c.rcv.nxt-max(c.rcv.advertised(), defaultInitialWindow)
}

// repeated lets a repeated segment update TS.Recent. By the order of RFC 7323, Section 5.3 it would not, having been rejected; but
// then a lost ACK costs the sender twice: the next one echoes the first transmission and makes a round trip of the whole back-off.
// What an attacker off the path could have sent is left out: the numbers must lie in a window's distance.
func (c *Conn) repeated(now clock.Time, seg *wire.Segment, start int64) {
	if !c.ts.on || seg.Options&wire.OptTimestamps == 0 || !c.recent(start) {
		return
	}
	if c.state == SynReceived || !c.ackPossible(c.iss.Offset(seg.Ack, c.snd.nxt())) {
		return
	}
	c.ts.update(now, seg.TSVal, start, c.rcv.lastAck)
}

// resetBy is the second check with RFC 5961, Section 3.2: only a RST at exactly RCV.NXT resets; elsewhere in the window it
// may be a guess and is challenged.
func (c *Conn) resetBy(now clock.Time, start int64, r *Result) {
	if start != c.rcv.nxt {
		if c.rcv.nxt < start && start < c.rcv.edge {
			c.challenge(now)
		}
		return
	}
	r.Acceptable, r.Reset = true, true
	switch {
	case c.state == SynReceived && c.active:
		c.closed(ErrRefused)
	case c.state == TimeWait || c.state == LastAck || c.state == Closing:
		c.closed(nil) // everything had been said (RFC 9293, Section 3.10.7.4: simply enter CLOSED)
	default:
		c.closed(ErrReset)
	}
}

// ackPossible is RFC 5961, Section 5.2: SND.UNA - MAX.SND.WND <= SEG.ACK <= SND.NXT.
func (c *Conn) ackPossible(ack int64) bool {
	return ack <= c.snd.nxt() && ack >= c.snd.una()-c.peer.largest
}

// acknowledged is the fifth check: the ACK field, the window and the SACK blocks go to the sender.
func (c *Conn) acknowledged(now clock.Time, seg *wire.Segment, start, ack int64, r *Result) {
	before := c.peer.edge
	edge := c.peer.update(ack, start, int64(seg.Window)<<c.opts.sndScale, c.snd.una())
	if len(seg.Payload) > 0 && ack == c.snd.una() && c.peer.edge == before && seg.Options&wire.OptSACK == 0 {
		return // payload in one direction: the ACK field says nothing new
	}
	in := ackInput{Ack: ack, Edge: edge, Payload: len(seg.Payload) > 0 || seg.Flags&wire.FIN != 0}
	if c.ts.on && seg.Options&wire.OptTimestamps != 0 {
		in.HasTS, in.TSEcr = true, seg.TSEcr
		in.RTT, _ = c.ts.echo(now, seg.TSEcr)
	}
	if c.opts.sack && seg.Options&wire.OptSACK != 0 {
		in.SACK = c.sackOffsets(seg)
	}
	out := c.snd.onAck(now, &in)
	if out.NewData {
		r.AckedData = true
		c.mtuProgress(now)
	}
	if out.FINAcked {
		c.finAcked(now)
	}
}

// sackOffsets converts the blocks that make sense: not empty, and about what was sent.
func (c *Conn) sackOffsets(seg *wire.Segment) []seq.Range {
	n := 0
	for _, b := range seg.SACK[:seg.SACKBlocks] {
		g := seq.Range{Start: c.iss.Offset(b.Start, c.snd.una()), End: c.iss.Offset(b.End, c.snd.una())}
		if !g.Empty() && g.Start > 0 && g.End <= c.snd.nxt() {
			c.sackIn[n] = g
			n++
		}
	}
	return c.sackIn[:n]
}

// text is the seventh and eighth check: payload and FIN.
func (c *Conn) text(now clock.Time, seg *wire.Segment, start int64, r *Result) {
	fin := seg.Flags&wire.FIN != 0
	if !receiveStates.has(c.state) {
		// The peer's FIN was received: what seems to lie behind it is ignored.
		if len(seg.Payload) > 0 || fin {
			c.rcv.ackNow()
		}
		return
	}
	if c.end.readClosed && start+int64(len(seg.Payload)) > c.rcv.nxt {
		c.giveUp(ErrDataAfterClose) // RFC 9293, Section 3.10.7.1; RFC 2525, Section 2.17
		return
	}
	if len(seg.Payload) == 0 && !fin {
		return
	}
	a := c.rcv.take(now, c.cfg.Pool, start, seg.Payload, fin, c.snd.rto())
	r.Duplicate = a.duplicate
	if a.fin {
		r.PeerFIN = true
		c.peerFIN(now)
	}
}
