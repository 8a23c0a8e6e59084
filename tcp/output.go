package tcp

import (
	"braid/clock"
	"braid/wire"
)

const maxOptions = wire.MaxOptionsLen

// PollSegment makes the next segment that is to leave now and reports whether there is one. It fills seg, but for the payload and the
// owner's options, and says in out which bytes of which chunk belong into it and how much option room is left.
// reserveData and reserveAck are the option bytes that the owner needs on segments with payload and on others:
// so much is left at least, as far as 40 bytes go; SACK blocks take what is beyond.
//
// The order: a RST; SYN or SYN/ACK; payload and FIN, retransmissions first; window probe; keep-alive probe; an ACK alone,
// if nothing else carried it.
func (c *Conn) PollSegment(now clock.Time, seg *wire.Segment, out *Out, reserveData, reserveAck int) bool {
	*out = Out{}
	switch {
	case c.reply.due:
		c.pollReply(seg, out)
		return true
	case c.end.aborting:
		c.pollReset(now, seg, out)
		return true
	case c.syn.due:
		c.pollSYN(now, seg, out)
		return true
	case c.state <= SynSent:
		return false
	}
	if sendStates.has(c.state) && (c.pollPayload(now, seg, out, pad4(reserveData), pad4(reserveAck)) || c.pollProbe(now, seg, out, reserveAck)) {
		return true
	}
	if c.keep.due {
		// RFC 9293, Section 3.8.4: a sequence number below what the peer expects makes it answer.
		c.keep.due = false
		c.keep.probes++
		c.pollEmpty(now, seg, out, c.snd.una()-1, reserveAck)
		return true
	}
	if c.rcv.due {
		c.pollEmpty(now, seg, out, c.sndNxt(), reserveAck)
		return true
	}
	return false
}

// sndNxt is SND.NXT: the sender counts from the handshake on.
func (c *Conn) sndNxt() int64 {
	if c.state == SynReceived {
		return 1
	}
	return c.snd.nxt()
}

// optionsLen is the room of TCP's own options on every segment after the SYN.
func (c *Conn) optionsLen() int {
	if c.ts.on {
		return wire.TimestampsLen
	}
	return 0
}

// header fills what every segment of a synchronized connection has and returns the bytes of its options.
func (c *Conn) header(now clock.Time, seg *wire.Segment, start int64, flags wire.Flags) int {
	seg.SrcPort, seg.DstPort = c.cfg.LocalPort, c.cfg.RemotePort
	seg.Seq, seg.Ack = c.iss.At(start), c.irs.At(c.rcv.nxt)
	seg.Flags = flags | wire.ACK
	seg.Window = c.rcv.advertise(c.opts.rcvScale)
	seg.Urgent = 0
	seg.Payload = nil
	if c.ts.on {
		seg.Options = wire.OptTimestamps
		seg.TSVal, seg.TSEcr = c.ts.value(now), c.ts.recent
		return wire.TimestampsLen
	}
	seg.Options = 0
	return 0
}

// pollPayload yields what the sender wants to send: a retransmission, new payload, a FIN.
func (c *Conn) pollPayload(now clock.Time, seg *wire.Segment, out *Out, reserveData, reserveAck int) bool {
	used := c.optionsLen()
	m := &c.mtu
	maxLen, probe := m.base-used-reserveData, false
	if m.probe.wanted && c.snd.q.lost.first == none && !c.snd.tlp.pending { // what leaves next is new
		maxLen, probe = m.payloadRoom(used+reserveData, min(int64(c.snd.firstUnsent()), c.snd.edge-c.snd.nxt()))
	}
	var t transmission
	if !c.snd.next(now, maxLen, &t) {
		return false
	}
	switch {
	case probe && !t.Retransmission && t.Len == maxLen:
		m.sent(&t)
		out.Probe, t.mtuProbe = true, true
	case m.probe.sent && t.Retransmission && t.Start >= m.probe.start && t.Start < m.probe.end:
		m.lost(now)
	}
	flags := wire.Flags(0)
	if t.FIN {
		flags = wire.FIN
	}
	last := t.Start + int64(t.Len)
	if t.Len > 0 && !c.more && (t.FIN || last == c.snd.pushed()) {
		flags |= wire.PSH // RFC 9293, Section 3.9.1.2: nothing follows for now
	}
	c.header(now, seg, t.Start, flags)
	reserve := reserveData
	if t.Len == 0 {
		reserve = reserveAck
	}
	news := c.rcv.sackNews()
	room := min(maxOptions, c.mtu.base-t.Len) - reserve
	if out.Probe {
		room = used
	}
	if news {
		used += c.rcv.fillSACK(seg, c.irs, room-used)
	}
	out.Chunk, out.Start, out.Len, out.Retransmission = t.Chunk, t.Start, t.Len, t.Retransmission
	out.OptionRoom = max(min(maxOptions, c.mtu.base-t.Len)-used, min(reserve, maxOptions-used)) &^ 3
	c.snd.sent(now, &t)
	if t.Len > 0 && !t.Retransmission {
		c.rcv.onReply(now)
	}
	// A full segment has no room for SACK blocks: an ACK that is due for their sake still goes out alone.
	c.acked(!c.rcv.forced && (!news || seg.Options&wire.OptSACK != 0))
	return true
}

// acked notes that a segment with our ACK leaves. all: nothing is left for an ACK alone.
func (c *Conn) acked(all bool) {
	c.rcv.lastAck = c.rcv.nxt
	if all || !c.rcv.due {
		c.rcv.acked()
	}
}

// pollProbe yields a window probe: an empty segment below SND.UNA, which the peer must answer with its window (RFC 9293,
// Section 3.8.6.1).
func (c *Conn) pollProbe(now clock.Time, seg *wire.Segment, out *Out, reserveAck int) bool {
	if !c.snd.wantsWindowProbe(now) {
		return false
	}
	c.snd.windowProbeSent(now)
	c.pollEmpty(now, seg, out, c.snd.una()-1, reserveAck)
	return true
}

// pollEmpty yields an ACK without payload at offset start.
func (c *Conn) pollEmpty(now clock.Time, seg *wire.Segment, out *Out, start int64, reserveAck int) {
	used := c.header(now, seg, start, 0)
	if c.rcv.sackNews() {
		used += c.rcv.fillSACK(seg, c.irs, maxOptions-used-pad4(reserveAck))
	}
	out.OptionRoom = maxOptions - used
	out.Start = start
	// Without SACK every out-of-order segment gets its own duplicate ACK: the peer counts them (RFC 5681, Section 3.2).
	again := !c.opts.sack && c.rcv.dupAcks > 1
	c.rcv.dupAcks = max(0, c.rcv.dupAcks-1)
	if c.opts.sack {
		c.rcv.dupAcks = 0
	}
	c.rcv.forced = false
	c.acked(true)
	if again {
		c.rcv.ackNow()
	}
}

// pollSYN yields the SYN, or the SYN/ACK.
func (c *Conn) pollSYN(now clock.Time, seg *wire.Segment, out *Out) {
	c.syn.sent(now)
	seg.SrcPort, seg.DstPort = c.cfg.LocalPort, c.cfg.RemotePort
	seg.Seq, seg.Ack, seg.Flags = c.iss, 0, wire.SYN
	seg.Urgent, seg.Payload, seg.SACKBlocks = 0, nil, 0
	seg.Options = wire.OptMSS
	seg.MSS = c.mtu.offered
	sack, timestamps, scaling := !c.cfg.NoSACK, !c.cfg.NoTimestamps, !c.cfg.NoWindowScale
	seg.TSEcr = 0
	if c.state == SynReceived {
		seg.Flags |= wire.ACK
		seg.Ack = c.irs.At(c.rcv.nxt)
		sack, timestamps, scaling = c.opts.sack, c.ts.on, c.opts.scaling
		seg.TSEcr = c.ts.recent
		c.acked(true)
	}
	if sack {
		seg.Options |= wire.OptSACKPermitted
	}
	if timestamps {
		seg.Options |= wire.OptTimestamps
		seg.TSVal = c.ts.value(now)
	}
	if scaling {
		seg.Options |= wire.OptWindowScale
		seg.WindowScale = c.offeredScale()
	}
	seg.Window = c.rcv.advertise(0) // RFC 7323, Section 2.2: never scaled
	out.OptionRoom = maxOptions - seg.OptionsLen()
	out.Retransmission = c.syn.retries > 0
}

// pollReset yields the RST of an abort and closes.
func (c *Conn) pollReset(now clock.Time, seg *wire.Segment, out *Out) {
	c.header(now, seg, c.sndNxt(), wire.RST)
	seg.Options = 0
	out.OptionRoom = maxOptions
	out.Start = c.sndNxt()
	c.closed(c.err)
}

// pollReply yields a RST that leaves the connection as it is.
func (c *Conn) pollReply(seg *wire.Segment, out *Out) {
	seg.SrcPort, seg.DstPort = c.cfg.LocalPort, c.cfg.RemotePort
	seg.Seq, seg.Ack, seg.Flags = c.reply.seq, 0, wire.RST
	seg.Window, seg.Urgent, seg.Options, seg.Payload = 0, 0, 0, nil
	out.OptionRoom = maxOptions
	c.reply = reply{}
}
