package tcp

import (
	"time"

	"braid/clock"
	"braid/seq"
	"braid/wire"
)

// MakeReset makes the answer to a segment that belongs to no connection (RFC 9293, Section 3.10.7.1): with an ACK in it, the
// RST takes its sequence number from there; without, it acknowledges all that the segment takes. It reports false, and makes nothing,
// for a RST: that is never answered.
func MakeReset(seg, reset *wire.Segment) bool {
	if seg.Flags.Has(wire.RST) {
		return false
	}
	reset.SrcPort, reset.DstPort = seg.DstPort, seg.SrcPort
	reset.Window, reset.Urgent, reset.Options, reset.Payload = 0, 0, 0, nil
	if seg.Flags.Has(wire.ACK) {
		reset.Flags, reset.Seq, reset.Ack = wire.RST, seg.Ack, 0
		return true
	}
	reset.Flags, reset.Seq, reset.Ack = wire.RST|wire.ACK, 0, seg.Seq.Add(int64(seg.Len()))
	return true
}

// Challenge ACKs and other ACKs that answer a segment without payload which was not acceptable: ten at once, then one in half a second
// (RFC 5961, Section 7). Two sides that disagree about everything would otherwise answer each other for ever.
const (
	challengeBurst = 10
	challengeEvery = 500 * time.Millisecond
)

// limiter is a token bucket of its own for each Conn: nothing can be learned about one connection from another's
// (the flaw of a limit shared by a whole host).
type limiter struct {
	tokens int
	at     clock.Time // of the last refill
}

// challenge asks for an ACK because of a segment that an attacker may have sent (RFC 5961, Sections 3.2, 4.2 and 5.2), if the
// limit allows.
func (c *Conn) challenge(now clock.Time) {
	l := &c.limit
	every := challengeEvery
	if n := int64(now.Sub(l.at) / every); n > 0 {
		l.tokens = int(min(challengeBurst, int64(l.tokens)+n))
		l.at = now
		if c.cfg.Rand != nil { // a little later or earlier, so that the limit cannot be counted out
			l.at = now.Add(time.Duration(c.cfg.Rand.Int64N(int64(every/2))) - every/4)
		}
	}
	if l.tokens > 0 {
		l.tokens--
		c.rcv.ackNow()
		c.challenges++
	}
}

// reply is a RST that answers one segment and leaves the connection as it is (RFC 9293, Section 3.10.7.3 and the handshake's
// part of 3.10.7.4).
type reply struct {
	due bool
	seq seq.Number
}

// refuse answers a segment whose ACK acknowledges what was never sent.
func (c *Conn) refuse(seg *wire.Segment) {
	if !seg.Flags.Has(wire.RST) {
		c.reply = reply{due: true, seq: seg.Ack}
	}
}
