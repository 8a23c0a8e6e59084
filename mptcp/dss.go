package mptcp

import (
	"braid/clock"
	"braid/seq"
	"braid/tcp"
	"braid/trace"
	"braid/wire"
)

// Option bytes that the data plane reserves.
const (
	// dataReserve is a DSS with a 64-bit mapping, a 64-bit DATA_ACK and a checksum. Sent so, mapping and DATA_ACK need no
	// thought about wrapping within a segment's lifetime (RFC 8684, Section 3.3.1), and with timestamps it fills the 40 bytes
	// exactly.
	dataReserve = wire.DSSMaxLen
	// ackReserve is a DSS with a 64-bit DATA_ACK.
	ackReserve = 12
)

// reserve returns the option bytes that the next segment of sf needs, with payload and without.
func (c *Conn) reserve(sf *Subflow) (data, ack int) {
	if c.fb.active && c.fb.infinite < 0 || c.hs.plain {
		return 0, 0
	}
	d := &sf.data
	ack = ackReserve
	switch {
	case !sf.up():
		ack = dataReserve
	case d.finDue, d.addrDue:
		ack = dataReserve
	case d.failDue:
		ack += wire.MPFailLen
	case d.prioDue:
		ack += wire.MPPrioLen
	case d.removeDue:
		ack += wire.RemoveAddrLen(len(c.pm.removing))
	}
	return dataReserve, ack
}

// fillData adds the MPTCP options of a segment that belongs to no handshake. Everything that carries an ACK carries a DATA_ACK:
// peers fall back when an ACK comes without one (RFC 8684, Section 3.7).
func (c *Conn) fillData(now clock.Time, sf *Subflow, seg *wire.Segment, out *tcp.Out) {
	if seg.Flags&wire.RST != 0 {
		c.fillReset(sf, seg)
		sf.fillReset(seg)
		return
	}
	if c.fb.sending && out.Len > 0 && out.Chunk.Start == c.fb.infinite {
		c.fillInfinite(seg, out)
		return
	}
	if c.fb.active {
		return
	}
	d := &sf.data
	// An address may be announced anew under another ID: the old one goes first.
	if d.addrDue && !d.removeDue && c.fillAddress(now, sf, seg, out) {
		return
	}
	dss := &seg.DSS
	*dss = wire.DSS{HasAck: true, Ack64: c.rcv.ack64, DataAck: c.hs.peerIDSN.At(c.rcv.next)}
	seg.Options |= wire.OptDSS
	switch {
	case out.Len > 0 && !(c.fb.sending && out.Chunk.Start > c.fb.infinite):
		c.fillMapping(d, dss, &out.Chunk)
	case out.Len == 0 && d.finDue:
		c.fillFIN(dss)
		d.finDue = false
	}
	room := out.OptionRoom - wire.DSSLen(true, dss.Ack64, dss.HasMap, dss.Map64, dss.HasCheck)
	if d.failDue && out.Len == 0 && room >= wire.MPFailLen {
		seg.Options |= wire.OptMPFail
		seg.Fail.DataSeq = c.hs.peerIDSN.At(d.fail)
		c.fb.repeats--
		d.failDue = c.fb.repeats > 0 && c.fb.failed && !c.fb.receiving
		c.stack.counters.FailsSent++
		room -= wire.MPFailLen
	}
	if d.prioDue && room >= wire.MPPrioLen {
		seg.Options |= wire.OptMPPrio
		seg.Prio.Backup = sf.backupLocal
		d.prioDue = false
		c.stack.counters.PriosSent++
		room -= wire.MPPrioLen
	}
	if d.removeDue {
		c.pm.fillRemoval(sf, seg, out, room)
	}
	if (d.removeDue || d.addrDue) && !d.failDue { // an MP_FAIL stays due and must not be repeated at once
		sf.tcp.RequestAck(now) // on an ACK of its own
	}
}

// fillMapping writes the mapping of a chunk. It is that of the whole chunk, whatever part of it the segment carries, and the
// same in every transmission (RFC 8684, Section 3.3.1).
func (c *Conn) fillMapping(d *subflowData, dss *wire.DSS, ch *tcp.Chunk) {
	dss.HasMap, dss.Map64 = true, true
	dss.DataSeq = c.hs.localIDSN.At(ch.ID)
	dss.Subflow = uint32(ch.Start)
	dss.Length = uint16(ch.Len)
	if ch.ID == d.finChunk && ch.ID+int64(ch.Len) == c.fin.offset {
		// RFC 8684, Section 3.3.3: with data, the DATA_FIN makes the mapping one longer than its bytes.
		dss.DataFIN = true
		dss.Length++
	}
	if c.hs.checksums {
		dss.HasCheck = true
		dss.Checksum = c.chunkChecksum(ch.ID, ch.Start, ch.Len, dss.Length)
	}
}

// fillFIN writes a DATA_FIN without data: its own number, subflow sequence 0, length 1 (RFC 8684, Section 3.3.3).
func (c *Conn) fillFIN(dss *wire.DSS) {
	dss.HasMap, dss.Map64, dss.DataFIN = true, true, true
	dss.DataSeq = c.hs.localIDSN.At(c.fin.offset)
	dss.Length = 1
	if c.hs.checksums {
		dss.HasCheck = true
		dss.Checksum = wire.DSSChecksum(dss.DataSeq, 0, 1, 0)
	}
}

// mappingChecksum returns the checksum of a mapping of n bytes of the send buffer from data offset o on, at subflow offset
// start (RFC 8684, Section 3.3.1).
func (c *Conn) mappingChecksum(o, start int64, n int) uint16 {
	return c.chunkChecksum(o, start, n, uint16(n))
}

func (c *Conn) chunkChecksum(o, start int64, n int, length uint16) uint16 {
	var sum wire.Sum
	for at := 0; at < n; {
		b := c.snd.buf.At(o+int64(at), n-at)
		sum = sum.Plus(wire.Sum(0).Add(b).At(at))
		at += len(b)
	}
	return wire.DSSChecksum(c.hs.localIDSN.At(o), uint32(start), length, sum)
}

// copyPayload copies n bytes of the send buffer from data offset o on to dst and returns their checksum: the second of the two
// copies on the way out.
func (c *Conn) copyPayload(dst []byte, o int64, n int) wire.Sum {
	b := c.snd.buf.At(o, n)
	sum := wire.CopyAndSum(dst, b)
	for at := len(b); at < n; at += len(b) {
		b = c.snd.buf.At(o+int64(at), n-at)
		sum = sum.Plus(wire.CopyAndSum(dst[at:], b).At(at))
	}
	return sum
}

// takeDSS obeys a DSS.
func (c *Conn) takeDSS(now clock.Time, sf *Subflow, seg *wire.Segment) {
	dss := &seg.DSS
	sf.data.lastDSS, sf.data.dssBytes, sf.data.bare = now, 0, 0
	if !c.hs.confirmed && (dss.HasAck || dss.HasMap) {
		c.pm.confirmed(now)
	}
	if dss.HasMap {
		c.takeMapping(now, sf, dss)
	}
	if dss.HasAck && sf.state != gone && c.state == connOpen {
		c.takeDataAck(now, sf, seg)
	}
}

// takeMapping obeys the mapping or DATA_FIN of a DSS.
func (c *Conn) takeMapping(now clock.Time, sf *Subflow, dss *wire.DSS) {
	data := c.dataOffset(dss.DataSeq, dss.Map64)
	sub := seq.Number(0).Offset(seq.Number(dss.Subflow), sf.tcp.ReceivedOffset())
	if dss.Length == 0 {
		c.takeInfinite(now, sf, sub, data)
		return
	}
	if dss.HasCheck != c.hs.checksums {
		// RFC 8684, Section 3.3: a checksum is there if and only if it was negotiated; else the subflow is closed.
		c.stack.counters.ChecksumPresence++
		c.stack.drop(now, sf, wire.ResetMPTCP, false)
		return
	}
	if dss.Map64 {
		c.rcv.ack64 = true
	}
	n := int64(dss.Length)
	if dss.DataFIN {
		n--
		if n > 0 || !dss.HasCheck || dss.Checksum == wire.DSSChecksum(c.hs.peerIDSN.At(data), dss.Subflow, dss.Length, 0) {
			c.takeDataFIN(now, sf, data+n)
		}
	}
	if n > 0 && c.state == connOpen && sf.state != gone {
		c.addMapping(now, sf, mapping{start: sub, end: sub + n, data: data, checked: dss.HasCheck, length: dss.Length, checksum: dss.Checksum})
	}
}

// takeCapableData reads the MP_CAPABLE of the first data segment as the mapping that it is: subflow offset 1 is the first byte
// of data (RFC 8684, Section 3.1).
func (c *Conn) takeCapableData(now clock.Time, sf *Subflow, o *wire.MPCapable) {
	if o.HasChecksum != c.hs.checksums {
		c.stack.counters.ChecksumPresence++
		c.stack.drop(now, sf, wire.ResetMPTCP, false)
		return
	}
	sf.data.lastDSS = now
	c.rcv.ack64 = true
	if !c.hs.confirmed {
		c.pm.confirmed(now)
	}
	n := int64(o.DataLength)
	c.addMapping(now, sf, mapping{start: 1, end: 1 + n, data: 1, checked: o.HasChecksum, length: o.DataLength, checksum: o.Checksum})
}

// addMapping files a mapping of the peer's.
func (c *Conn) addMapping(now clock.Time, sf *Subflow, m mapping) {
	verdict := sf.data.maps.add(m)
	if c.stack.cfg.Trace != nil && verdict != mapKnown {
		fin := int64(m.length) > m.end-m.start
		c.trace(now, int16(sf.id), trace.Mapping, m.data, m.data+m.end-m.start, m.start, trace.Bool(fin), 0, trace.Bool(verdict == mapNew))
	}
	switch verdict {
	case mapNew:
		if !sf.data.backlog.empty() {
			c.explain(now, sf, true)
		}
	case mapConflict:
		// RFC 8684, Section 3.3.1: a mapping is final. The first one stays, the subflow goes.
		c.stack.counters.MappingConflicts++
		c.stack.drop(now, sf, wire.ResetMPTCP, false)
	case mapTooMany:
		c.stack.counters.MappingsRefused++
	}
}

// dataOffset returns the offset of a data sequence number of the peer's, which is 32 bits long if wide is false: then that of
// the 64-bit number nearest to what is expected (RFC 8684, Section 3.3.1).
func (c *Conn) dataOffset(n seq.Data, wide bool) int64 {
	if !wide {
		n = seq.Promote(uint32(n), c.hs.peerIDSN.At(c.rcv.next))
	}
	return c.hs.peerIDSN.Offset(n)
}

// takeDataAck obeys a DATA_ACK. It is cumulative over all subflows and never goes back; one for data that was never sent is
// not believed (RFC 8684, Section 3.3.2).
func (c *Conn) takeDataAck(now clock.Time, sf *Subflow, seg *wire.Segment) {
	s := &c.snd
	n := seg.DSS.DataAck
	if !seg.DSS.Ack64 {
		n = seq.Promote(uint32(n), c.hs.localIDSN.At(s.acked()))
	}
	ack := c.hs.localIDSN.Offset(n)
	limit := s.firstUnsent()
	if c.fin.sent && limit == s.end() {
		limit++
	}
	if ack > limit {
		c.stack.counters.DataAcksBeyond++
		return
	}
	c.raiseEdge(ack + sf.tcp.WindowOf(seg))
	if ack > s.acked() || c.fin.sent && !c.fin.acked && ack > c.fin.offset {
		c.dataAcked(now, ack)
	}
}

// raiseEdge moves the right edge of the peer's shared window, never to the left: every subflow's window field counts from the
// DATA_ACK beside it, and the highest edge seen on any of them is the one in force (RFC 8684, Sections 3.3.4 and 3.3.5).
func (c *Conn) raiseEdge(edge int64) {
	s := &c.snd
	s.maxWindow = max(s.maxWindow, edge-s.acked())
	if edge > s.edge {
		s.edge = edge
	}
}

// dataAcked takes a DATA_ACK that tells something new: everything below ack has arrived.
func (c *Conn) dataAcked(now clock.Time, ack int64) {
	s := &c.snd
	if c.fin.sent && !c.fin.acked && ack > c.fin.offset {
		c.fin.acked = true
		c.fin.resendAt = clock.Never
		for _, sf := range c.subflows {
			sf.data.finDue = false
		}
	}
	ack = min(ack, s.end())
	if ack == s.acked() {
		c.noteStuck(now)
		return
	}
	s.ack(ack)
	for _, sf := range c.subflows {
		sf.data.carried.acked(ack)
	}
	c.dataProgress(now)
	if s.buf.Held() > c.stack.cfg.HeldLimit {
		c.dropWorstHolder(now)
	}
}
