package mptcp

import (
	"math"

	"braid/clock"
	"braid/seq"
	"braid/tcp"
	"braid/trace"
	"braid/wire"
)

// bareSegments in a row without a DSS mean that the peer has fallen back although it spoke MPTCP before.
const bareSegments = 3

// youngBytes of data, which is about a first window, may have come before a host follows a peer's fall back that it only infers. Both ends
// count alike, so that a sender knows until when its peer may do so.
const youngBytes = 256 << 10

// fallbackState says how far the connection is plain TCP (RFC 8684, Section 3.7). Falling back is for good. At the handshake
// and at the beginning it happens in both directions at once; after a failed checksum each direction turns to the infinite
// mapping by itself.
type fallbackState struct {
	active    bool // both directions: no MPTCP option is sent or obeyed any more
	sending   bool // what we push from now on is under an infinite mapping: a subflow ACK is a DATA_ACK, FIN ends the stream
	receiving bool // what the peer sends is under one
	reason    FallbackReason

	delta    int64 // receiving: data offset minus subflow offset
	begin    int64 // receiving: subflow offset from which on that holds
	infinite int64 // sending: subflow offset of the chunk that declares the infinite mapping; -1: none has to

	failed  bool       // we sent MP_FAIL
	repeats int        // on how many more ACKs it goes if it is not answered
	discard bool       // after it: nothing is taken until the infinite mapping comes
	failAt  clock.Time // when we stop waiting for it; Never: not waiting
}

func (f *fallbackState) init() { f.infinite, f.failAt = -1, clock.Never }

// any reports whether falling back has begun in any direction.
func (f *fallbackState) any() bool { return f.sending || f.receiving }

// discards reports whether bytes under mapping m are not to be taken.
func (f *fallbackState) discards(m *mapping) bool { return f.discard && m.end != forever }

// inPlace reports whether the connection can become plain TCP on the subflow it has: it is the first and only one there ever
// was, and nothing was sent out of its order (RFC 8684, Section 3.7).
func (c *Conn) inPlace() bool {
	return c.everActive <= 1 && !c.snd.reinjected && len(c.subflows) <= 1
}

// setFallback makes the connection plain TCP in both directions, because its handshake or its first data showed that MPTCP does
// not work. Subflow offsets are data offsets then: no byte is lost or doubled.
func (c *Conn) setFallback(now clock.Time, reason FallbackReason) {
	if c.fb.active {
		return
	}
	c.fb = fallbackState{active: true, sending: true, receiving: true, reason: reason, infinite: -1, failAt: clock.Never}
	c.hs.plain = true
	c.pm.silenceAddresses()
	c.noteFallback(now, reason)
	s := &c.snd
	s.edge = math.MaxInt64
	s.rtoAt = clock.Never
	if c.fin.sent { // a DATA_FIN that the peer does not understand
		c.fin.sent = false
		c.fin.resendAt = clock.Never
	}
	c.fin.peer = -1
	if c.state != connOpen || len(c.subflows) == 0 {
		return
	}
	sf := c.subflows[0]
	sf.data.finChunk, sf.data.finDue, sf.data.prioDue = -1, false, false
	acked := s.next
	if oldest, ok := sf.data.carried.oldest(); ok {
		acked = oldest
	}
	if acked > s.acked() {
		c.dataAcked(now, acked)
	}
	c.flushBacklog(now, sf)
	c.advanceClose(now)
}

// noteFallback tells counters, trace and Stack.
func (c *Conn) noteFallback(now clock.Time, reason FallbackReason) {
	n := &c.stack.counters
	cause := int64(trace.FallbackNoOption)
	switch reason {
	case FallbackNoMapping:
		n.FallbackNoMapping++
		cause = trace.FallbackNoMapping
	case FallbackNoDataAck:
		n.FallbackNoDataAck++
		cause = trace.FallbackNoDataAck
	case FallbackChecksum:
		n.FallbackChecksum++
		cause = trace.FallbackChecksum
	case FallbackPeer:
		n.FallbackPeer++
		cause = trace.FallbackPeer
	}
	c.stack.unregister(c)
	c.hs.noJoins = true
	c.views.changed()
	c.trace(now, -1, trace.Fallback, cause, c.snd.acked())
	c.traceState(now)
}

// flushBacklog delivers what waited for mappings that will never come.
func (c *Conn) flushBacklog(now clock.Time, sf *Subflow) {
	b := &sf.data.backlog
	sf.data.maps.clear()
	for len(b.chunks) > 0 {
		ch := b.chunks[0]
		b.remove(0, 1)
		ch.Start += c.fb.delta
		c.deliver(now, sf, ch)
		if c.state == connOver || sf.state == gone {
			return
		}
	}
	b.unmapped = 0
}

// missingDSS looks at a segment without DSS. At the beginning of a connection, before any sign that MPTCP gets through, data
// without a mapping or an acknowledgment of data without a DATA_ACK means that a middlebox removes the options: both ends go on
// as plain TCP (RFC 8684, Section 3.7). Later, or with more subflows, it is the subflow that is reset, when it is certain.
//
// A host that was shown MPTCP by the peer's first mapping still follows a peer that falls back because none of our DATA_ACKs
// got through: within the first window, while the peer has not DATA_ACKed anything, and when several segments in a row come
// without a DSS.
func (c *Conn) missingDSS(now clock.Time, sf *Subflow, seg *wire.Segment, res tcp.Result) {
	sf.data.bare++
	if c.hs.confirmed && (sf.data.bare < bareSegments || !c.firstWindow()) || seg.Options&wire.OptMPTCP != 0 || seg.Flags&wire.RST != 0 || !sf.initial || !c.inPlace() {
		return
	}
	switch {
	case c.fb.failed: // bytes were discarded: only an infinite mapping can tell where the stream goes on
	case len(seg.Payload) > 0 && !res.Duplicate:
		c.setFallback(now, FallbackNoMapping)
	case res.AckedData:
		c.setFallback(now, FallbackNoDataAck)
	}
}

// contradicts reports whether a segment says, after the fallback, that its payload belongs elsewhere, or, after data without a mapping,
// that what we had sent before as MPTCP was understood: the peer did not fall back and goes on as MPTCP. Nothing can be delivered
// safely then, because what it sends again, when our DATA_ACKs fail to come, would be taken for new. After a fallback at the handshake the
// peer's numbers are not known.
func (c *Conn) contradicts(sf *Subflow, seg *wire.Segment) bool {
	dss := &seg.DSS
	infinite := dss.HasMap && dss.Length == 0
	if c.fb.reason == FallbackNoMapping && dss.HasAck && !infinite && int32(uint32(dss.DataAck)-uint32(c.hs.localIDSN.At(1))) > 0 {
		return true
	}
	if c.hs.peerIDSN == 0 || !dss.HasMap || dss.Length == 0 || dss.DataFIN && dss.Length == 1 || len(seg.Payload) == 0 { // 0: the handshake brought no key
		return false
	}
	sub := seq.Number(0).Offset(seq.Number(dss.Subflow), sf.tcp.ReceivedOffset())
	return c.fb.receiving && sub+c.fb.delta != c.dataOffset(dss.DataSeq, dss.Map64) && sub >= c.fb.begin
}

// firstWindow reports whether no more than a first window of data has come, all in the order of the subflow, and the peer has
// DATA_ACKed nothing, not even a DATA_FIN.
func (c *Conn) firstWindow() bool {
	return c.snd.acked() == 1 && !c.fin.acked && c.rcv.next <= youngBytes && c.rcv.ooo.Empty()
}

// startInfinite turns our direction to the infinite mapping: everything that the peer has not DATA_ACKed is sent again as the
// rest of the subflow's stream, and its first chunk says so (RFC 8684, Section 3.7).
func (c *Conn) startInfinite(now clock.Time, sf *Subflow) {
	f := &c.fb
	if f.sending {
		return
	}
	f.sending = true
	c.pm.silenceAddresses()
	f.infinite = sf.tcp.PushedOffset()
	s := &c.snd
	s.rewind()
	s.edge = math.MaxInt64
	s.rtoAt = clock.Never
	sf.data.finChunk, sf.data.finDue = -1, false
	if c.fin.sent && !c.fin.acked {
		c.fin.sent = false
		c.fin.resendAt = clock.Never
	}
	f.active = f.receiving
	c.traceState(now)
	c.advanceClose(now)
	c.stack.wake(c)
}

// fillInfinite declares the infinite mapping: length 0, checksum 0 (RFC 8684, Sections 3.3.1 and 3.7).
func (c *Conn) fillInfinite(seg *wire.Segment, out *tcp.Out) {
	c.stack.counters.InfiniteSent++
	seg.Options |= wire.OptDSS
	seg.DSS = wire.DSS{
		HasAck: true, Ack64: c.rcv.ack64, DataAck: c.hs.peerIDSN.At(c.rcv.next),
		HasMap: true, Map64: true, DataSeq: c.hs.localIDSN.At(out.Chunk.ID), Subflow: uint32(out.Chunk.Start), HasCheck: c.hs.checksums,
	}
}

// takeInfinite obeys an infinite mapping of the peer's: the rest of what it sends on the subflow is the rest of its stream. It
// is a reset matter when more than one subflow was ever used, or when it does not go on where the data stands.
func (c *Conn) takeInfinite(now clock.Time, sf *Subflow, sub, data int64) {
	f := &c.fb
	if f.receiving {
		return
	}
	if !sf.initial || !c.inPlace() || data > c.rcv.next || data < 1 || sub < sf.data.maps.done {
		c.stack.counters.InfiniteRefused++
		c.stack.drop(now, sf, wire.ResetMPTCP, false)
		return
	}
	f.failAt = clock.Never
	f.delta, f.begin = data-sub, sub
	c.stack.counters.InfiniteReceived++
	sf.data.maps.addInfinite(sub, data)
	if f.reason == NoFallback {
		f.reason = FallbackPeer
		if f.failed {
			f.reason = FallbackChecksum
		}
		c.noteFallback(now, f.reason)
	}
	c.startInfinite(now, sf)
	f.receiving = true
	f.discard = sub > sf.tcp.ReceivedOffset() && f.discard
	f.active = true
	c.traceState(now)
	if !sf.data.backlog.empty() {
		c.explain(now, sf, true)
	}
}
