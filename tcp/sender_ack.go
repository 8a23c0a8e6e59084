package tcp

import (
	"time"

	"braid/clock"
	"braid/congestion"
	"braid/seq"
)

// ackProgress is what one ACK turned out to mean.
type ackProgress struct {
	in         *ackInput
	una        int64 // SND.UNA before it
	flight     int64 // in flight before it
	flightSize int64 // FlightSize of RFC 5681 before it: outstanding bytes
	sameWindow bool  // it did not move the peer's right edge

	acked     int64 // bytes delivered by it: cumulatively, if they had not been SACKed, or SACKed
	prrAcked  int64 // what PRR counts as delivered: acked, or without SACK an estimate
	sackedNow bool

	lostDelivered bool      // it delivered something thought lost that had not been retransmitted
	dsack         seq.Range // its D-SACK block; empty: none

	// Sending times of what it newly acknowledged or SACKed and had never been retransmitted.
	ackedFirst, ackedLast   clock.Time
	sackedFirst, sackedLast clock.Time
	ackedAny, sackedAny     bool
	retransAcked            bool // something retransmitted was acknowledged: Karn
	echoesEarlier           bool // ... and the echoed timestamp is older than the retransmission
	rtt                     time.Duration
}

// advanced reports whether SND.UNA moved.
func (a *ackProgress) advanced() bool { return a.in.Ack > a.una }

// duplicate reports whether it is a duplicate ACK in the sense of RFC 5681, Section 2, given that something is outstanding.
func (a *ackProgress) duplicate() bool {
	return a.in.Ack == a.una && !a.in.Payload && a.sameWindow && !a.sackedNow
}

// onAck takes everything that an ACK tells: acknowledged, SACKed and duplicated data, RTT, what is therefore lost, the recovery
// state, the controller's sample, timers.
func (s *sender) onAck(now clock.Time, in *ackInput) ackOutput {
	s.now, s.heardAt = now, now
	if in.Ack > s.sentEnd {
		return ackOutput{}
	}
	a := ackProgress{in: in, una: s.ackedEnd, flight: s.inFlight(), flightSize: s.sentEnd - s.ackedEnd}
	a.sameWindow = in.Edge < 0 || in.Edge == s.edge
	s.sampler.start()
	out := s.acknowledge(now, &a)
	if s.sack {
		s.takeSACK(now, &a)
	} else {
		s.takeDuplicate(&a)
	}
	if in.Edge >= 0 {
		s.setEdge(in.Edge)
	}
	s.takeRTT(now, &a)
	s.tlpOnAck(now, &a)
	if s.sack && (a.acked > 0 || !a.dsack.Empty()) {
		s.rackDetect(now)
	}
	s.recover(now, &a)
	s.report(now, &a)
	s.rearm(now, &a)
	return out
}

// acknowledge takes the cumulative acknowledgement.
func (s *sender) acknowledge(now clock.Time, a *ackProgress) ackOutput {
	ack := a.in.Ack
	if ack <= s.ackedEnd {
		return ackOutput{}
	}
	out := ackOutput{NewData: true, Acked: ack - s.ackedEnd}
	for s.q.head != s.q.unsent {
		i := s.q.at(s.q.head)
		r := &s.q.slab[i]
		if r.end() > ack {
			if r.start >= ack {
				break
			}
			s.q.split(s.q.head, int(ack-r.start)) // acknowledged in part: the front is a record of its own
			r = &s.q.slab[i]
		}
		if r.state != recSacked {
			s.deliver(now, a, r, false)
		}
		out.FINAcked = out.FINAcked || r.fin
		s.q.move(i, recAcked)
		s.q.head++
	}
	s.ackedEnd = ack
	s.q.sacked.RemoveBefore(ack)
	s.rack.advance(ack)
	s.progressAt = now
	return out
}

// deliver counts a record that the peer turns out to have.
func (s *sender) deliver(now clock.Time, a *ackProgress, r *record, bySACK bool) {
	s.sampler.deliver(r)
	if !r.counted {
		a.acked += r.space()
	}
	if r.state == recLost && !r.retransmitted {
		a.lostDelivered = true
	}
	s.loss.note(false)
	if s.sack {
		s.rack.deliver(now, r, r.retransmitted && s.ambiguous(now, a, r, bySACK))
	}
	switch {
	case r.retransmitted:
		if !bySACK {
			a.retransAcked = true
			a.echoesEarlier = a.echoesEarlier || a.in.HasTS && int32(a.in.TSEcr-s.tsval(r.sentAt)) < 0
		}
	case bySACK:
		if !a.sackedAny || r.sentAt < a.sackedFirst {
			a.sackedFirst = r.sentAt
		}
		a.sackedLast = max(a.sackedLast, r.sentAt)
		a.sackedAny = true
	default:
		if !a.ackedAny {
			a.ackedFirst = r.sentAt
		}
		a.ackedLast = r.sentAt
		a.ackedAny = true
	}
}

// ambiguous reports whether an ACK of a retransmitted record may be for an earlier transmission of it (RFC 8985, Section 6.2, step 2):
// it came sooner than any round trip, or it echoes an older timestamp. The echo says so only for what is acknowledged
// cumulatively: behind a hole the receiver echoes what came before the hole.
func (s *sender) ambiguous(now clock.Time, a *ackProgress, r *record, bySACK bool) bool {
	if now.Sub(r.sentAt) < s.rtt.min.value {
		return true
	}
	return !bySACK && a.in.HasTS && int32(a.in.TSEcr-s.tsval(r.sentAt)) < 0
}

// tsval returns the timestamp that a segment sent at t carries.
func (s *sender) tsval(t clock.Time) uint32 { return uint32(uint64(t)/uint64(tick)) + s.tsOffset }

// takeSACK takes the SACK blocks. Each costs a search and what it newly covers: ranges known to be SACKed are skipped.
func (s *sender) takeSACK(now clock.Time, a *ackProgress) {
	blocks := a.in.SACK
	if len(blocks) == 0 {
		return
	}
	if d := duplicateBlock(blocks, a.in.Ack); !d.Empty() {
		s.takeDSACK(a, d)
		blocks = blocks[1:]
	}
	for _, b := range blocks {
		b = b.Intersect(seq.Range{Start: s.ackedEnd, End: s.sentEnd})
		for !b.Empty() {
			gap := s.q.sacked.FirstGap(b)
			if gap.Empty() {
				break
			}
			s.sackGap(now, a, gap)
			b.Start = gap.End
		}
	}
}

// duplicateBlock returns the first block if it is a D-SACK: below the cumulative acknowledgement or inside the second
// block (RFC 2883, Section 4).
func duplicateBlock(blocks []seq.Range, ack int64) seq.Range {
	first := blocks[0]
	if first.End <= ack || len(blocks) > 1 && blocks[1].Covers(first) {
		return first
	}
	return seq.Range{}
}

// takeDSACK takes the report of a duplicate: RACK's window and the undo account.
func (s *sender) takeDSACK(a *ackProgress, d seq.Range) {
	if d.Start < 1 || d.End > s.sentEnd {
		return // of something that was never sent
	}
	a.dsack = d
	s.rack.onDSACK(s.sentEnd)
	if s.undo.marker > 0 && d.End > s.undo.marker && d.End <= a.in.Ack {
		s.undo.onDSACK((d.Len() + int64(s.mss) - 1) / int64(s.mss))
	}
}

// sackGap marks the records that lie wholly in a range of which nothing is SACKed yet. A record covered in part stays as it is:
// SACK is advice, and no peer that we know of acknowledges part of a segment.
func (s *sender) sackGap(now clock.Time, a *ackProgress, gap seq.Range) {
	pos := s.q.find(gap.Start)
	covered := seq.Range{Start: -1}
	for ; pos != s.q.unsent; pos++ {
		i := s.q.at(pos)
		r := &s.q.slab[i]
		if r.end() > gap.End {
			break
		}
		if r.start < gap.Start {
			continue
		}
		if covered.Start < 0 {
			covered.Start = r.start
		}
		covered.End = r.end()
		s.deliver(now, a, r, true)
		s.q.move(i, recSacked)
		a.sackedNow = true
	}
	if covered.Start >= 0 {
		s.q.sacked.Add(covered)
		s.q.hint = pos
	}
}

// takeDuplicate counts duplicate ACKs when there is no SACK (RFC 5681, Section 3.2; RFC 6582).
func (s *sender) takeDuplicate(a *ackProgress) {
	a.prrAcked = a.acked
	switch {
	case a.advanced():
		// One segment of what was acknowledged filled the hole; the rest had been announced by duplicate ACKs.
		known := min(s.renoSacked, max(a.acked-int64(s.mss), 0))
		s.renoSacked -= known
		a.prrAcked -= known
		if s.state < stateRecovery {
			s.dupAcks, s.renoSacked = 0, 0
		}
	case s.q.outstanding() && a.duplicate():
		s.dupAcks++
		n := min(int64(s.mss), s.q.bytes[recFlying]-s.renoSacked)
		s.renoSacked += n
		a.prrAcked = n
	}
	s.renoSacked = min(s.renoSacked, s.q.bytes[recFlying])
}

// setEdge takes a new right edge of the peer's window. It may move left (RFC 9293, Section 3.8.6: a sender is robust against it).
func (s *sender) setEdge(edge int64) {
	s.edge = edge
	s.maxWindow = max(s.maxWindow, edge-s.ackedEnd)
}

// takeRTT takes at most one RTT sample from an ACK.
//
// RFC 6298, Section 3 (Karn): nothing from retransmitted data, except by the echoed timestamp (RFC 7323, Section 4.1: only from
// segments that acknowledge new data). SRTT takes the oldest segment acknowledged, so that delayed ACKs count; the minimum and the
// controller take the newest.
func (s *sender) takeRTT(now clock.Time, a *ackProgress) {
	var oldest time.Duration
	if a.ackedAny && !a.retransAcked {
		oldest, a.rtt = now.Sub(a.ackedFirst), now.Sub(a.ackedLast)
	}
	if a.sackedAny {
		if oldest <= 0 {
			oldest = now.Sub(a.sackedFirst)
		}
		a.rtt = now.Sub(a.sackedLast)
	}
	if oldest <= 0 && a.advanced() && a.in.HasTS {
		oldest = a.in.RTT
		// A receiver whose ACKs were lost may echo what it had before the outage (RFC 7323, Section 4.3, rule 2): not a round
		// trip, but a pause. A path that really became so slow is believed step by step.
		if a.echoesEarlier && s.rtt.srtt > 0 {
			oldest = min(oldest, 2*s.rtt.srtt)
		}
	}
	if oldest <= 0 {
		return
	}
	s.rtt.min.sample(now, a.rtt)
	// RFC 7323, Appendix G: one ACK for every second segment is expected.
	s.rtt.sample(oldest, (a.flightSize+2*int64(s.mss)-1)/(2*int64(s.mss)))
}

// report tells PRR and the controller what the ACK did.
func (s *sender) report(now clock.Time, a *ackProgress) {
	if s.sack {
		a.prrAcked = a.acked
	}
	if s.state == stateRecovery {
		safe := a.advanced() && s.newlyLost == 0
		s.prr.onAck(a.prrAcked, s.inFlight(), int64(s.mss), safe)
	}
	if a.acked > 0 {
		s.lastAck = now
		s.backoff = 0
		s.lostSYN = false
	}
	if a.acked == 0 && s.newlyLost == 0 {
		return
	}
	s.sample = congestion.Sample{
		Now: now, PriorInFlight: a.flight, InFlight: s.inFlight(),
		Acked: a.acked, Lost: s.newlyLost,
		RTT: a.rtt, SRTT: s.rtt.srtt, MinRTT: s.rtt.min.value,
		WindowLimited: s.windowLimited(),
		InRecovery:    s.state >= stateRecovery,
	}
	s.newlyLost = 0
	s.sampler.finish(now, a.acked, s.rtt.min.value, &s.sample)
	s.ctl.OnAck(&s.sample)
	s.refresh(now)
	s.traceAck(now)
}
