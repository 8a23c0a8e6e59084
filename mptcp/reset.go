package mptcp

import (
	"time"

	"braid/clock"
	"braid/seq"
	"braid/wire"
)

// controlQueue holds small packets that the Stack itself has to send: resets, challenges, version negotiations. It is bounded; what
// does not fit is lost, as any packet may be.
type controlQueue struct {
	packets []controlPacket
	head    int
}

// controlPacket is one of them. The largest is an IPv6 header and a TCP header full of options, or their likes over UDP.
type controlPacket struct {
	p Packet
	b [wire.IPv6HeaderLen + wire.TCPHeaderLen + wire.MaxOptionsLen + wire.ShimSYNLen]byte
}

const maxControl = 256

// next returns room for a packet; nil if the queue is full.
func (q *controlQueue) next() []byte {
	if len(q.packets)-q.head >= maxControl {
		return nil
	}
	if q.head > 0 && len(q.packets) == cap(q.packets) {
		n := copy(q.packets, q.packets[q.head:])
		q.packets, q.head = q.packets[:n], 0
	}
	q.packets = append(q.packets, controlPacket{})
	return q.packets[len(q.packets)-1].b[:]
}

// add puts the packet that was written to next's room into the queue.
func (q *controlQueue) add(p Packet) { q.packets[len(q.packets)-1].p = p }

// poll takes the first packet whose path still exists.
func (q *controlQueue) poll(s *Stack, buf []byte) (Packet, bool) {
	for q.head < len(q.packets) {
		e := &q.packets[q.head]
		q.head++
		p := e.p
		copy(buf, e.b[:p.Len])
		if q.head == len(q.packets) {
			q.packets, q.head = q.packets[:0], 0
		}
		if p.Len > 0 && s.livePath(p.Path) != nil {
			return p, true
		}
	}
	return Packet{}, false
}

// limiter is a token bucket for packets that answer packets of no connection (SEC-06).
type limiter struct {
	tokens float64
	at     clock.Time
	begun  bool
}

const (
	limiterRate  = 200 // packets a second
	limiterBurst = 100
)

// allow reports whether one more packet may be sent.
func (l *limiter) allow(now clock.Time) bool {
	if !l.begun {
		l.begun, l.tokens = true, limiterBurst
	} else {
		l.tokens = min(limiterBurst, l.tokens+float64(limiterRate*now.Sub(l.at))/float64(time.Second))
	}
	l.at = now
	if l.tokens < 1 {
		return false
	}
	l.tokens--
	return true
}

// knownReason returns the reason as an index; reasons that RFC 8684 does not know are unspecified (Section 3.6).
func knownReason(r wire.ResetReason) wire.ResetReason {
	if r > wire.ResetMiddlebox {
		return wire.ResetUnspecified
	}
	return r
}

// refuse answers a segment of no connection with a RST (RFC 9293, Section 3.5.2, group 1).
func (s *Stack) refuse(now clock.Time, r *route, seg *wire.Segment) {
	s.sendReset(now, r, seg, 0, nil)
}

// refuseJoin answers a segment of an MP_JOIN handshake that leads to nothing with a RST that says why
// (RFC 8684, Sections 3.2 and 3.6).
func (s *Stack) refuseJoin(now clock.Time, r *route, seg *wire.Segment, reason wire.ResetReason, transient bool) {
	s.sendReset(now, r, seg, wire.OptMPTCPReset, &wire.MPTCPReset{Reason: reason, Transient: transient})
	s.counters.ResetReasonsOut[reason]++
}

// sendReset answers seg with a RST. A RST is never answered with one.
func (s *Stack) sendReset(now clock.Time, r *route, seg *wire.Segment, opt wire.Option, reset *wire.MPTCPReset) {
	if seg.Flags&wire.RST != 0 {
		s.counters.DropUnknownFlow++
		return
	}
	if !s.limiter.allow(now) {
		s.counters.ResetsLimited++
		return
	}
	b := s.control.next()
	if b == nil {
		s.counters.ResetsLimited++
		return
	}
	rst := wire.Segment{SrcPort: r.srcPort, DstPort: r.dstPort, Options: opt}
	if reset != nil {
		rst.Reset = *reset
	}
	if seg.Flags&wire.ACK != 0 {
		rst.Flags, rst.Seq = wire.RST, seg.Ack
	} else {
		rst.Flags, rst.Ack = wire.RST|wire.ACK, seg.Seq+seq.Number(seg.Len())
	}
	s.control.add(r.buildBare(&rst, b))
	s.counters.ResetsSent++
}
