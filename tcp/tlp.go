package tcp

import (
	"time"

	"braid/clock"
	"braid/congestion"
)

// Constants of RFC 8985, Section 7.2.
const (
	tlpNoSample   = time.Second            // probe timeout without an RTT sample
	tlpMaxDelay   = 200 * time.Millisecond // the longest that the peer may delay an ACK
	tlpTimerSlack = 2 * time.Millisecond   // for the granularity of the peer's and our timers
)

// tlp is the tail loss probe (RFC 8985, Section 7): when ACKs stop coming, one segment is sent early so that its ACK or SACK
// starts fast recovery instead of a timeout.
type tlp struct {
	deadline       clock.Time // probe timer
	pending        bool       // the timer expired: the next segment is a probe
	end            int64      // TLP.end_seq: SND.NXT when the probe left; 0: no probe outstanding
	retransmission bool       // TLP.is_retrans
}

func (p *tlp) init() { *p = tlp{deadline: clock.Never} }

// stop cancels timer and wish.
func (p *tlp) stop() { p.deadline, p.pending = clock.Never, false }

// tlpSchedule arms the probe timer if a probe is allowed: Section 7.2 wants SACK, no recovery going on, nothing SACKed,
// and no probe outstanding.
func (s *sender) tlpSchedule(now clock.Time) {
	p := &s.tlp
	p.stop()
	if !s.sack || s.state != stateOpen || !s.q.outstanding() || p.end != 0 {
		return
	}
	p.deadline = min(now.Add(s.tlpTimeout()), s.rtoAt)
}

// tlpTimeout computes PTO (Section 7.2): two round trips, and time for a delayed ACK if only one segment is out.
func (s *sender) tlpTimeout() time.Duration {
	if s.rtt.srtt == 0 {
		return tlpNoSample
	}
	pto := 2*s.rtt.srtt + tlpTimerSlack
	if s.q.unsent-s.q.head == 1 {
		pto += tlpMaxDelay
	}
	return pto
}

// tlpExpired is the probe timer's expiry (Section 7.3). The retransmission timer is started afresh: the probe takes its place.
func (s *sender) tlpExpired(now clock.Time) {
	s.tlp.deadline = clock.Never
	s.tlp.pending = s.q.outstanding()
	s.restartRTO(now)
}

// tlpSent notes that the probe left.
func (s *sender) tlpSent(now clock.Time, t *transmission) {
	p := &s.tlp
	p.stop()
	p.end = s.sentEnd
	p.retransmission = t.Retransmission
	s.stats.tlps++
	s.traceTLP(now, t)
	s.restartRTO(now)
}

// tlpOnAck decides whether an outstanding probe repaired a loss all alone: then nothing else would reduce the window (Section 7.4.2).
func (s *sender) tlpOnAck(now clock.Time, a *ackProgress) {
	p := &s.tlp
	switch {
	case p.end == 0 || a.in.Ack < p.end:
	case !p.retransmission: // the probe was new data: it is simply acknowledged
		p.end = 0
	case a.dsack.End == p.end: // original and probe both arrived
		p.end = 0
	case a.in.Ack > p.end: // the ACK goes beyond without a sign of the duplicate: the original was lost
		p.end = 0
		if s.state == stateOpen || s.state == stateDisorder {
			s.ctl.OnCongestion(now, congestion.Loss, a.flightSize)
		}
	case a.duplicate(): // the probe's own duplicate ACK: nothing was lost
		p.end = 0
	}
}
