package mptcp

import (
	"time"

	"braid/clock"
	"braid/seq"
	"braid/trace"
)

// overdueMargin is what the host and its peer may take for themselves before an ACK counts as overdue.
const overdueMargin = 10 * time.Millisecond

// staleState is what is known of a subflow's silence.
type staleState struct {
	startedAt clock.Time // when it became active
	heardAt   clock.Time // when the last acceptable segment came
	timedOut  bool       // its retransmission timer expired and nothing new was acknowledged since: no new data (REL-05)
	overdue   bool       // no ACK for longer than its round-trip time explains
	offered   seq.Set    // data offsets that it failed and that were offered to the others
}

// heard notes a sign of life.
func (c *Conn) heard(now clock.Time, sf *Subflow) {
	st := &sf.data.stale
	st.heardAt = now
	c.views.touch(sf)
	if st.timedOut && sf.tcp.Backoffs() == 0 {
		// Fresh evidence: the path works again and is used at once.
		st.timedOut = false
		c.stack.counters.RecoveredSubflows++
		c.group.Silence(sf.id, false)
		c.views.changed()
	}
}

// checkTimedOut looks, after sf's timers have run, whether it went silent: what it carries is then for the others as well
// (RFC 8684, Section 3.3.6).
func (c *Conn) checkTimedOut(now clock.Time, sf *Subflow) {
	st := &sf.data.stale
	if st.timedOut || !sf.up() || sf.tcp.Backoffs() == 0 {
		return
	}
	st.timedOut = true
	c.stack.counters.StaleSubflows++
	c.group.Silence(sf.id, true)
	c.views.changed()
	if c.state == connOpen && len(c.subflows) > 1 && !c.fb.any() {
		c.offerAll(now, sf, trace.ReinjectTimeout, false)
	}
}

// overdueAt returns when the next ACK of sf will be overdue: srtt + max(4 rttvar, srtt/2) + 10 ms after the later of the last
// ACK and the sending of the oldest outstanding packet; Never if nothing is outstanding or no round-trip time is known.
func overdueAt(lastAck, oldest clock.Time, srtt, rttvar time.Duration) clock.Time {
	if oldest == clock.Never || srtt <= 0 {
		return clock.Never
	}
	return max(lastAck, oldest).Add(srtt + max(4*rttvar, srtt/2) + overdueMargin)
}

// setOverdue follows a change of a subflow's overdue state; with it everything outstanding is offered to the others once, as
// far as the scheduler wants.
func (c *Conn) setOverdue(now clock.Time, sf *Subflow, overdue bool) {
	st := &sf.data.stale
	if st.overdue == overdue {
		return
	}
	st.overdue = overdue
	c.views.replan()
	if overdue && !c.fb.any() {
		c.offerAll(now, sf, trace.ReinjectTimeout, true)
	}
}
