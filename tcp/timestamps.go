package tcp

import (
	"time"

	"braid/clock"
	"braid/wire"
)

// The timestamp clock ticks once a millisecond (RFC 7323, Section 5.4: between 1 ms and 1 s).
const tick = time.Millisecond

// recentLifetime is how long TS.Recent may be believed without an update (RFC 7323, Section 5.5: 24 days).
const recentLifetime = 24 * 24 * time.Hour

// timestamps is the Timestamps option of one Conn: the clock that it sends, TS.Recent, PAWS, and what the echoes tell.
type timestamps struct {
	on       bool       // both SYNs carried the option
	offset   uint32     // added to the clock (RFC 7323, Section 7.1)
	start    clock.Time // when the Conn came up: nothing older can be echoed
	recent   uint32     // TS.Recent
	recentAt clock.Time

	lastEcho uint32        // newest echo on a payload segment, for receiverRTT
	rtt      time.Duration // round-trip time as a receiver sees it, smoothed; 0: none
}

// value returns TSval at now.
func (ts *timestamps) value(now clock.Time) uint32 {
	return uint32(uint64(now)/uint64(tick)) + ts.offset
}

// older reports whether PAWS refuses the value: it is before TS.Recent, which has not expired
// (RFC 7323, Section 5.3 R1 and Section 5.5).
func (ts *timestamps) older(now clock.Time, value uint32) bool {
	return int32(value-ts.recent) < 0 && now.Sub(ts.recentAt) <= recentLifetime
}

// update takes the value of an acceptable segment for TS.Recent if the segment covers what the next ACK answers:
// SEG.SEQ <= Last.ACK.sent (RFC 7323, Section 4.3 (2)).
func (ts *timestamps) update(now clock.Time, value uint32, start, lastAck int64) {
	if start <= lastAck && !ts.older(now, value) {
		ts.recent, ts.recentAt = value, now
	}
}

// echo returns the time since the echoed value was sent. ok is false for an echo of something that was never sent.
func (ts *timestamps) echo(now clock.Time, echo uint32) (rtt time.Duration, ok bool) {
	ticks := int32(ts.value(now) - echo)
	if ticks < 0 || time.Duration(ticks)*tick > now.Sub(ts.start)+tick {
		return 0, false
	}
	// Zero ticks are less than one: say half of it, since 0 would mean "no sample".
	return max(time.Duration(ticks)*tick, tick/2), true
}

// onPayload measures the round trip from the receiver's side: payload that echoes a new value left the peer at least one
// round trip after that value was sent. A host that only receives has no other sample.
func (ts *timestamps) onPayload(now clock.Time, echo uint32) {
	if echo == ts.lastEcho {
		return
	}
	ts.lastEcho = echo
	if rtt, ok := ts.echo(now, echo); ok {
		if ts.rtt == 0 {
			ts.rtt = rtt
		} else { // a pause of the peer's looks like a long round trip: it counts as twice the usual one at most
			ts.rtt += (min(rtt, 2*ts.rtt) - ts.rtt) / 8
		}
	}
}

// negotiation is what the two SYNs agreed on.
type negotiation struct {
	sack     bool
	scaling  bool
	sndScale uint8 // shift of the windows that the peer advertises
	rcvScale uint8 // shift of ours
}

// negotiate takes the options of the peer's SYN or SYN/ACK (RFC 7323, Sections 2.2 and 3.2; RFC 2018, Section 2): each is
// used if both sides sent it. The passive side answers only what was offered.
func (c *Conn) negotiate(now clock.Time, seg *wire.Segment) {
	c.opts.sack = !c.cfg.NoSACK && seg.Has(wire.OptSACKPermitted)
	if c.opts.scaling = !c.cfg.NoWindowScale && seg.Has(wire.OptWindowScale); c.opts.scaling {
		c.opts.sndScale = min(seg.WindowScale, maxWindowScale) // RFC 7323, Section 2.3: more counts as 14
		c.opts.rcvScale = c.offeredScale()
	}
	if c.ts.on = !c.cfg.NoTimestamps && seg.Has(wire.OptTimestamps); c.ts.on {
		c.ts.recent, c.ts.recentAt = seg.TSVal, now
	}
	mss := 0
	if seg.Has(wire.OptMSS) {
		mss = int(seg.MSS)
	}
	c.mtu.setPeerMSS(mss)
}
