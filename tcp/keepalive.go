package tcp

import (
	"time"

	"braid/clock"
	"braid/wire"
)

const (
	defaultKeepAliveEvery = 75 * time.Second
	defaultKeepAliveCount = 9
)

// keepalive asks a silent peer whether it is there (RFC 9293, Section 3.8.4). Off unless the Config says otherwise.
//
// The timer is not moved when segments arrive; when it fires, it looks how long ago that was.
type keepalive struct {
	at         clock.Time // when to look again; Never: off
	unanswered int        // probes since the peer was heard last
	due        bool       // a probe is to be sent at the next poll
	probes     int64      // sent since the start
}

// startKeepAlive begins to watch an established connection.
func (c *Conn) startKeepAlive(now clock.Time) {
	if c.cfg.KeepAlive > 0 {
		c.keep.at = now.Add(c.keepAliveIdle())
	}
}

// keepAliveIdle is the configured idle time, up to a sixteenth earlier: connections that fell silent together should not
// all probe together.
func (c *Conn) keepAliveIdle() time.Duration {
	idle := c.cfg.KeepAlive
	if c.cfg.Rand != nil && idle >= 16 {
		idle -= time.Duration(c.cfg.Rand.Int64N(int64(idle / 16)))
	}
	return idle
}

// keepAliveTimeout looks whether the peer has been silent for long enough to send a probe, or too long. A probe is not sent
// while something is outstanding: its retransmissions ask the same question.
func (c *Conn) keepAliveTimeout(now clock.Time) {
	every := c.cfg.KeepAliveEvery
	if every <= 0 {
		every = defaultKeepAliveEvery
	}
	count := c.cfg.KeepAliveCount
	if count <= 0 {
		count = defaultKeepAliveCount
	}
	k := &c.keep
	switch silent := now.Sub(c.lastHeard); {
	case !states(Established, FinWait2, CloseWait).has(c.state):
		k.at = clock.Never
	case c.snd.nxt() != c.snd.una():
		k.unanswered = 0
		k.at = now.Add(c.keepAliveIdle())
	case k.unanswered == 0 && silent < c.cfg.KeepAlive-c.cfg.KeepAlive/16:
		k.at = c.lastHeard.Add(c.keepAliveIdle())
	case k.unanswered >= count:
		// RFC 9293, Section 3.8.4: one lost probe means nothing; this many do.
		c.giveUp(ErrTimeout)
	default:
		k.unanswered++
		k.due = true
		k.at = now.Add(min(every, c.keepAliveIdle()))
	}
}

// noteKeepAlive recognises the peer's keep-alive probe among unacceptable segments: it says that the peer is there, so that two idle ends do
// not both ask.
func (c *Conn) noteKeepAlive(now clock.Time, seg *wire.Segment, start, end int64) {
	if seg.Flags == wire.ACK && start == c.rcv.nxt-1 && end-start <= 1 && c.state >= Established &&
		c.ackPossible(c.iss.Offset(seg.Ack, c.snd.nxt())) {
		c.lastHeard = now
		c.keep.unanswered = 0
	}
}

// Probe makes the peer answer, whatever back-off the timers have reached: at the next poll the SYN leaves again, or, once the retransmission
// timer has expired, the oldest outstanding segment; else an empty segment that the peer must acknowledge. The owner asks a path this
// way whether it works (RFC 8684, Section 3.4.2: before an address is given up) and finds the answer in LastHeard.
func (c *Conn) Probe(now clock.Time) {
	switch {
	case c.state == SynSent:
		c.syn.due = true
		c.syn.retries = max(c.syn.retries, 1) // Karn: no RTT sample without timestamps
	case sendStates.has(c.state) && c.snd.resendOldest():
		// It starts the retransmission timer afresh, which may then never expire: it counts as an expiry.
		c.mtu.asked++
		c.blackHole(now)
	case sendStates.has(c.state) || c.state == FinWait2:
		c.keep.due = true
	}
}

// LastHeard returns when the last acceptable segment arrived.
func (c *Conn) LastHeard() clock.Time { return c.lastHeard }
