package tcp

import (
	"braid/clock"
	"braid/congestion"
)

// recoveryState is the state of loss recovery.
type recoveryState uint8

// The states, as Linux names them. The order matters: from stateRecovery on a recovery is going on.
const (
	stateOpen     recoveryState = iota // nothing suspicious
	stateDisorder                      // something SACKed or duplicate ACKs, nothing thought lost
	stateRecovery                      // fast recovery: PRR, or the controller's own way
	stateLoss                          // after a retransmission timeout: slow start
)

// dupThreshold is DupThresh of RFC 5681, Section 3.2, for peers without SACK.
const dupThreshold = 3

// recovery is the part of the sender that knows whether it is repairing losses, and up to where.
type recovery struct {
	state      recoveryState
	point      int64 // SND.NXT when recovery began: it ends when that is acknowledged (RFC 6582, recover)
	lostEnd    int64 // end of the furthest record marked lost and not undone
	began      clock.Time
	forced     bool // after a timeout one segment goes whatever window and pacer say
	dupAcks    int
	renoSacked int64 // bytes that duplicate ACKs stand for, without SACK

	retransEnd   int64  // nothing beyond has been retransmitted
	retransStamp uint32 // TSval of the oldest retransmission since nothing retransmitted was outstanding
	undo         undoAccount
}

// undoAccount collects evidence that the last reduction was needless (RFC 4015, RFC 3708).
type undoAccount struct {
	marker int64 // SND.UNA when the window was reduced; 0: nothing to undo
	until  int64 // after recovery: when that is acknowledged no evidence is expected any more
	sent   int64 // retransmissions since then
	open   int64 // of those and the ones still in flight from before, not reported as duplicates
}

func (u *undoAccount) onRetransmit() {
	if u.marker > 0 {
		u.sent++
		u.open++
	}
}

func (u *undoAccount) onDSACK(segs int64) { u.open -= segs }

// markLost takes a flying (or reneged) record for lost. A lost MTU probe is sent again like any other but is no sign of
// congestion: it starts no recovery and is not reported (RFC 4821, Section 7.4; RFC 8899, Section 3).
func (s *sender) markLost(i uint32) {
	r := &s.q.slab[i]
	s.q.move(i, recLost)
	s.renoSacked = min(s.renoSacked, s.q.bytes[recFlying])
	if r.mtuProbe {
		return
	}
	s.newlyLost += r.space()
	s.lostEnd = max(s.lostEnd, r.end())
	s.loss.note(true)
	s.stats.lostSegs++
	if r.size > 0 {
		s.queueLost(r.piece())
	}
}

// queueLost remembers a lost piece for the owner. An owner that never asks loses the oldest.
func (s *sender) queueLost(c Chunk) {
	if limit := 4 * (len(s.q.slab) + initialRecords); len(s.lostQueue)-s.lostTaken >= limit {
		s.lostTaken = len(s.lostQueue) - limit/2
	}
	if s.lostTaken > 0 && len(s.lostQueue) == cap(s.lostQueue) {
		n := copy(s.lostQueue, s.lostQueue[s.lostTaken:])
		s.lostQueue, s.lostTaken = s.lostQueue[:n], 0
	}
	s.lostQueue = append(s.lostQueue, c)
}

// nextLost drains the pieces newly marked lost.
func (s *sender) nextLost() (Chunk, bool) {
	if s.lostTaken == len(s.lostQueue) {
		s.lostQueue, s.lostTaken = s.lostQueue[:0], 0
		return Chunk{}, false
	}
	c := s.lostQueue[s.lostTaken]
	s.lostTaken++
	return c, true
}

// recover moves the recovery state after an ACK was taken and losses were looked for.
func (s *sender) recover(now clock.Time, a *ackProgress) {
	if s.spurious(a) {
		s.undoReduction(now)
	}
	if s.state >= stateRecovery && s.ackedEnd >= s.point {
		s.exitRecovery(now, false)
	}
	if s.state < stateRecovery && s.undo.marker > 0 && s.ackedEnd > s.undo.until {
		s.undo.marker = 0
	}
	switch {
	case s.state == stateRecovery && !s.sack && a.advanced():
		s.retransmitNextHole()
	case s.state >= stateRecovery:
	case s.lostEnd > s.ackedEnd:
		s.enterRecovery(now, a.flightSize, a.acked)
	case !s.sack && s.dupAcks >= dupThreshold && s.ackedEnd > s.point:
		// RFC 6582, Section 3.2, step 2: not for duplicates of what an earlier recovery retransmitted.
		s.dupAckLoss(now, a)
	case s.q.segs[recSacked] > 0 || s.dupAcks > 0:
		s.state = stateDisorder
	default:
		s.state = stateOpen
	}
}

// dupAckLoss takes the head for lost at the third duplicate ACK (RFC 5681, Section 3.2).
func (s *sender) dupAckLoss(now clock.Time, a *ackProgress) {
	i := s.q.at(s.q.head)
	if s.q.slab[i].state != recFlying {
		return
	}
	s.markLost(i)
	if s.lostEnd > s.ackedEnd {
		s.enterRecovery(now, a.flightSize, a.prrAcked)
	}
}

// resendLarge marks what is larger than a full segment for retransmission at once: it did not pass the path. That is
// no congestion (RFC 1191, Section 6.5), so neither the controller nor the loss share hears of it.
func (s *sender) resendLarge(now clock.Time) {
	s.now = now
	for p := s.q.head; p != s.q.unsent; p++ {
		i := s.q.at(p)
		if r := &s.q.slab[i]; r.state == recFlying && int(r.size) > s.mss {
			s.q.move(i, recLost)
		}
	}
	s.renoSacked = min(s.renoSacked, s.q.bytes[recFlying])
}

// retransmitNextHole takes the head for lost after a partial acknowledgement (RFC 6582, Section 3.2, step 3), unless it was
// retransmitted in this recovery.
func (s *sender) retransmitNextHole() {
	i := s.q.at(s.q.head)
	r := &s.q.slab[i]
	if r.state == recFlying && !(r.retransmitted && r.sentAt >= s.began) {
		s.markLost(i)
	}
}

// enterRecovery begins fast recovery. It reduces the window, once per window of data (RFC 5681, Section 3.2; RFC 6675, Section 5).
func (s *sender) enterRecovery(now clock.Time, flightSize, acked int64) {
	s.state = stateRecovery
	s.beginReduction(now)
	s.ctl.OnCongestion(now, congestion.Loss, flightSize)
	s.ctl.OnRecoveryEnter(now, s.inFlight())
	s.refresh(now)
	// RFC 9937, Section 6.1: what was SACKed before is never delivered again.
	s.prr.start(s.ctlWindow, s.sentEnd-s.ackedEnd-s.q.bytes[recSacked]+acked)
	s.traceEnter(now, congestion.Loss)
}

// enterLoss begins RTO recovery (RFC 5681, Section 3.1; RFC 6298, Section 5).
func (s *sender) enterLoss(now clock.Time, flightSize int64) {
	entered := s.state >= stateRecovery
	s.state = stateLoss
	s.beginReduction(now)
	s.dupAcks, s.renoSacked = 0, 0
	s.ctl.OnCongestion(now, congestion.Timeout, flightSize)
	if !entered {
		s.ctl.OnRecoveryEnter(now, s.inFlight())
	}
	s.refresh(now)
	s.traceEnter(now, congestion.Timeout)
}

// beginReduction opens the undo account and sets the recovery point.
func (s *sender) beginReduction(now clock.Time) {
	s.point = s.sentEnd
	s.began = now
	s.undo = undoAccount{marker: s.ackedEnd}
	if s.retransmissionOutstanding(s.ackedEnd) {
		for i := s.q.flying.first; i != none; i = s.q.slab[i].next {
			if s.q.slab[i].retransmitted { // may still cause a D-SACK
				s.undo.open++
			}
		}
	}
	s.tlp.stop()
	s.tlp.end = 0
}

// exitRecovery ends either recovery: everything outstanding when it began has arrived.
func (s *sender) exitRecovery(now clock.Time, undone bool) {
	s.state = stateOpen
	s.dupAcks, s.renoSacked = 0, 0
	s.forced = false
	s.undo.until = s.sentEnd
	s.rack.onRecoveryExit()
	s.ctl.OnRecoveryExit(now, s.inFlight())
	s.refresh(now)
	s.traceExit(now, undone)
}

// retransmissionOutstanding reports whether something retransmitted was outstanding when SND.UNA was una.
func (s *sender) retransmissionOutstanding(una int64) bool { return s.retransEnd > una }

// spurious reports whether the ACK proves that the last reduction was needless.
//
// RFC 2883 with RFC 3708: every retransmission was reported as a duplicate. RFC 3522 and RFC 4015 (Eifel): the ACK that advances
// echoes a timestamp older than every retransmission that it could be for. And if nothing was retransmitted yet, what was thought lost has arrived by itself.
func (s *sender) spurious(a *ackProgress) bool {
	u := &s.undo
	switch {
	case u.marker == 0:
		return false
	case u.sent > 0 && u.open <= 0:
		return true
	case !a.advanced() || s.state < stateRecovery:
		return false
	case u.sent == 0:
		return !s.retransmissionOutstanding(a.una) &&
			(s.state == stateLoss || a.lostDelivered && s.q.lost.first == none)
	}
	return s.timestamps && a.in.HasTS && int32(a.in.TSEcr-s.retransStamp) < 0
}

// undoReduction takes the last reduction back: what still waits for retransmission flies again, the controller restores its window.
func (s *sender) undoReduction(now clock.Time) {
	s.stats.undone++
	s.undo = undoAccount{}
	s.lostEnd = 0
	if s.state == stateRecovery {
		s.rack.reordering = true // it was no loss: then it was reordering
	}
	if s.state >= stateRecovery {
		s.q.refly()
		s.exitRecovery(now, true)
	}
	s.ctl.OnUndo(now)
	s.refresh(now)
}

// reneged reports whether the receiver has forgotten what it SACKed: it acknowledges up to a record that it SACKed and
// no further (RFC 2018, Section 8; RFC 6675, Section 5.1).
func (s *sender) reneged() bool {
	return s.q.outstanding() && s.q.slab[s.q.at(s.q.head)].state == recSacked
}

// forgetSACK takes everything SACKed for lost after all.
func (s *sender) forgetSACK() {
	for p := s.q.head; p != s.q.unsent; p++ {
		i := s.q.at(p)
		if r := &s.q.slab[i]; r.state == recSacked {
			r.counted = true
			s.markLost(i)
		}
	}
	s.q.sacked.Clear()
}

// rackExpired is the reordering timer's expiry (RFC 8985, Section 6.3).
func (s *sender) rackExpired(now clock.Time) {
	flightSize := s.sentEnd - s.ackedEnd
	s.rackDetect(now)
	if s.newlyLost > 0 && s.state < stateRecovery {
		s.enterRecovery(now, flightSize, 0)
		s.prr.onAck(0, s.inFlight(), int64(s.mss), false)
	}
	s.refresh(now)
}

// markLostOnTimeout decides what a retransmission timeout means for what is outstanding.
//
// RFC 8985, Section 6.3: the first segment is lost, and every other that was sent longer ago than the RTT and the
// reordering window. Without SACK all of it is.
func (s *sender) markLostOnTimeout(now clock.Time) {
	if s.reneged() {
		s.forgetSACK()
	}
	for i := s.q.flying.first; i != none; i = s.q.flying.first {
		if s.sack && s.rack.rtt > 0 && s.rack.remaining(now, &s.q.slab[i]) > 0 {
			break
		}
		s.markLost(i)
	}
	if i := s.q.at(s.q.head); s.q.slab[i].state == recFlying {
		s.markLost(i)
	}
}
