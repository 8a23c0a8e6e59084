package tcp

import (
	"time"

	"braid/clock"
)

// Constants of this implementation.
const (
	giveUpBackoffs = 15                // R2, in back-offs (RFC 9293, Section 3.8.3)
	giveUpAfter    = 100 * time.Second // R2, at least (ibid.)
	renegeDelay    = 10 * time.Millisecond
	trimDelay      = time.Second // an idle sender gives its memory back after that
)

// nextTimeout returns when timeout wants to be called, clock.Never if no timer runs.
func (s *sender) nextTimeout() clock.Time {
	t := min(s.rtoAt, s.pacerAt, s.tlp.deadline, s.rack.deadline, s.persist.at, s.trimAt)
	if s.userTimeout > 0 {
		t = min(t, s.userTimeoutAt())
	}
	return t
}

// userTimeoutAt returns when the configured patience ends.
func (s *sender) userTimeoutAt() clock.Time {
	switch {
	case s.q.outstanding():
		return s.stalledSince().Add(s.userTimeout)
	case s.persist.unanswered > 0:
		return max(s.persist.began, s.heardAt).Add(s.userTimeout)
	}
	return clock.Never
}

// stalledSince returns since when outstanding data makes no progress. While the peer keeps its window closed
// it need only answer (RFC 9293, Section 3.8.6.1).
func (s *sender) stalledSince() clock.Time {
	if s.edge <= s.ackedEnd {
		return max(s.progressAt, s.heardAt)
	}
	return s.progressAt
}

// timeout handles every timer that is due. giveUp says that the peer has been silent for too long (R2).
func (s *sender) timeout(now clock.Time) (giveUp bool) {
	s.now = now
	if s.userTimeout > 0 && s.userTimeoutAt() <= now {
		return true
	}
	if s.pacerAt <= now {
		s.pacerAt = clock.Never
	}
	if s.trimAt <= now {
		s.trim()
	}
	if s.tlp.deadline <= now {
		s.tlpExpired(now)
	}
	if s.rack.deadline <= now {
		s.rackExpired(now)
	}
	if s.rtoAt <= now {
		giveUp = s.rtoExpired(now)
	}
	if s.persist.at <= now {
		giveUp = s.persistExpired(now) || giveUp
	}
	return giveUp
}

// rtoExpired is the retransmission timer's expiry (RFC 6298, Section 5.4 to 5.6): back off, collapse the window, send the
// earliest segment again.
func (s *sender) rtoExpired(now clock.Time) (giveUp bool) {
	s.rtoAt = clock.Never
	if !s.q.outstanding() {
		return false
	}
	if s.exhausted(now, s.backoff, s.stalledSince()) {
		return true
	}
	expired, inFlight := s.rto(), s.inFlight()
	s.stats.rtos++
	s.backoff++
	s.traceRTO(now, expired, inFlight)
	flightSize := s.sentEnd - s.ackedEnd
	s.markLostOnTimeout(now)
	s.enterLoss(now, flightSize)
	s.forced = true
	s.rack.deadline = clock.Never
	s.restartRTO(now)
	return false
}

// exhausted reports whether R2 is reached after a number of attempts without an answer since a time.
func (s *sender) exhausted(now clock.Time, attempts int, since clock.Time) bool {
	switch waited := now.Sub(since); {
	case s.userTimeout < 0:
		return false
	case s.userTimeout > 0:
		return waited >= s.userTimeout
	default:
		return attempts >= giveUpBackoffs && waited >= giveUpAfter
	}
}

// restartRTO starts the retransmission timer afresh (RFC 6298, Section 5.3).
func (s *sender) restartRTO(now clock.Time) { s.rtoAt = now.Add(s.rto()) }

// armAfterSend starts what a transmission needs: the retransmission timer if it does not run (RFC 6298, Section 5.1),
// the probe timer after new data (RFC 8985, Section 7.2).
func (s *sender) armAfterSend(now clock.Time, t *transmission) {
	s.pacerAt = clock.Never
	s.trimAt = clock.Never
	if s.rtoAt == clock.Never {
		s.restartRTO(now)
	}
	switch {
	case t.probe:
		s.tlpSent(now, t)
	case !t.Retransmission:
		s.tlpSchedule(now)
	}
	if s.persist.at != clock.Never || s.persist.override {
		s.persist.stop()
	}
}

// rearm sets the timers after an ACK.
func (s *sender) rearm(now clock.Time, a *ackProgress) {
	if !s.q.outstanding() {
		// RFC 6298, Section 5.2: everything is acknowledged.
		s.rtoAt, s.rack.deadline = clock.Never, clock.Never
		s.tlp.stop()
		if len(s.q.slab) > initialRecords {
			s.trimAt = now.Add(trimDelay)
		}
	} else {
		if a.advanced() {
			s.restartRTO(now)
		}
		if a.acked > 0 {
			s.tlpSchedule(now)
		}
		if s.reneged() {
			// The receiver forgot what it SACKed. It may be repairing that: a short timeout decides.
			s.rtoAt = min(s.rtoAt, now.Add(max(s.rtt.srtt/2, renegeDelay)))
		}
	}
	s.persist.unanswered = 0
	s.armPersist(now)
}

// trim gives the memory of an idle sender back.
func (s *sender) trim() {
	s.trimAt = clock.Never
	if s.lostTaken == len(s.lostQueue) {
		s.lostQueue, s.lostTaken = nil, 0
	}
	s.q.shrink()
}

// resendOldest sends the oldest outstanding segment again although its timer, backed off, is not due. It reports whether there is one:
// the timer must have expired before, otherwise the segment may well arrive.
func (s *sender) resendOldest() bool {
	if s.backoff == 0 || !s.q.outstanding() {
		return false
	}
	if i := s.q.at(s.q.head); s.q.slab[i].state == recFlying {
		s.q.move(i, recLost)
	}
	s.forced = true
	return true
}
