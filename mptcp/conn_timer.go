package mptcp

import (
	"fmt"

	"braid/clock"
	"braid/tcp"
	"braid/wire"
)

// nextTimeout returns when handleTimeout is due: the earliest timer of the connection and its subflows.
func (c *Conn) nextTimeout() clock.Time {
	t := min(c.snd.rtoAt, c.fin.resendAt, c.fb.failAt, c.lonelyAt, c.lingerAt)
	for _, sf := range c.subflows {
		if sf.tcp == nil {
			continue
		}
		t = min(t, sf.tcp.NextTimeout())
		if sf.data.backlog.unmapped > 0 {
			t = min(t, sf.data.backlog.since.Add(maxUnmappedWait))
		}
	}
	if c.snd.stuckAt != clock.Never {
		t = min(t, c.snd.stuckAt.Add(c.stack.cfg.UserTimeout))
	}
	if len(c.views.list) > 1 && c.state == connOpen && (c.snd.waiting() > 0 || c.snd.inFlight()) {
		t = min(t, c.views.planAt, c.views.wakeAt)
	}
	return t
}

// handleTimeout does what is due.
func (c *Conn) handleTimeout(now clock.Time) {
	for i := 0; i < len(c.subflows); {
		sf := c.subflows[i]
		c.subflowTimeout(now, sf)
		if i < len(c.subflows) && c.subflows[i] == sf {
			i++
		}
	}
	switch c.state {
	case connOpen:
		c.ownTimeouts(now)
	case connOpening:
		if now >= c.lingerAt || c.snd.stuckAt != clock.Never && now >= c.snd.stuckAt.Add(c.stack.cfg.UserTimeout) {
			c.end(now, fmt.Errorf("%w: not connected", ErrTimeout))
		}
	}
	c.stack.wake(c)
	c.stack.rearm(c)
}

// subflowTimeout runs the timers of one subflow.
func (c *Conn) subflowTimeout(now clock.Time, sf *Subflow) {
	if sf.tcp == nil {
		return
	}
	if sf.tcp.NextTimeout() <= now {
		sf.tcp.HandleTimeout(now)
		c.views.touch(sf)
		if c.state == connOpen {
			c.takeLost(now, sf)
			c.checkTimedOut(now, sf)
		}
		sf.checkClosed(now)
	}
	b := &sf.data.backlog
	if sf.state != gone && b.unmapped > 0 && now >= b.since.Add(maxUnmappedWait) {
		c.stack.counters.UnmappedResets++
		c.stack.drop(now, sf, wire.ResetMiddlebox, false)
	}
}

// ownTimeouts runs the timers of the connection itself.
func (c *Conn) ownTimeouts(now clock.Time) {
	if now >= c.snd.rtoAt {
		c.dataTimeout(now)
	}
	if now >= c.fin.resendAt {
		c.repeatFIN(now)
	}
	if now >= c.fb.failAt {
		c.failTimeout(now)
	}
	v := &c.views
	if now >= v.wakeAt {
		v.wakeAt = clock.Never
	}
	if now >= v.planAt && c.several() && (c.snd.waiting() > 0 || c.snd.inFlight()) {
		c.plan(now)
	}
	switch {
	case c.state != connOpen:
	case now >= c.lonelyAt:
		c.end(now, fmt.Errorf("%w: no subflow was left and none could be opened", ErrTimeout))
	case now >= c.lingerAt && c.closedBothWays():
		c.end(now, nil)
	case now >= c.lingerAt:
		c.lingerAt = clock.Never
		c.abort(now, fmt.Errorf("%w: the peer did not finish the close", ErrTimeout))
	case c.snd.stuckAt != clock.Never && now >= c.snd.stuckAt.Add(c.stack.cfg.UserTimeout):
		c.stuck(now)
	}
}

// stuck handles data that found no way for as long as the configuration allows. A peer that answers and has no room
// is waited for without end (RFC 9293, Section 3.8.6.1).
func (c *Conn) stuck(now clock.Time) {
	if !c.waits() {
		c.snd.stuckAt = clock.Never
		return
	}
	for _, sf := range c.subflows {
		if c.snd.blocked && sf.data.stale.heardAt > c.snd.stuckAt {
			c.snd.stuckAt = now
			return
		}
	}
	c.abort(now, fmt.Errorf("%w: no subflow delivered the data in %v", ErrTimeout, c.stack.cfg.UserTimeout))
}

// noteStuck notes since when something waits without progress: from now on, if anything waits.
func (c *Conn) noteStuck(now clock.Time) {
	c.snd.stuckAt = clock.Never
	if c.waits() {
		c.snd.stuckAt = now
	}
}

// waits reports whether something of ours waits for the peer: data, or the end of our stream, which in plain TCP is the
// subflow's FIN.
func (c *Conn) waits() bool {
	switch {
	case c.snd.buf.Len() > 0:
		return true
	case !c.fin.sent || c.fin.acked:
		return false
	case !c.fb.sending:
		return true
	}
	return len(c.subflows) > 0 && c.subflows[0].finWaits()
}

// finWaits reports whether the subflow's FIN waits for its acknowledgment.
func (sf *Subflow) finWaits() bool {
	return sf.tcp != nil && states(sf.tcp.State(), tcp.FinWait1, tcp.Closing, tcp.LastAck)
}
