package tcp

import (
	"time"

	"braid/clock"
)

// Constants of RFC 8985.
const (
	rackDupThreshold = 3  // segments SACKed that make waiting for reordering needless (Section 6.2, step 4)
	rackPersist      = 16 // recoveries for which a widened reordering window lasts
)

// rack is the time-based loss detection of RFC 8985, Section 6: what was sent sufficiently long before something
// that has been delivered is lost. RACK runs only with SACK (Section 3).
type rack struct {
	sentAt clock.Time    // RACK.xmit_ts: transmission time of the delivered segment that was sent last
	end    int64         // RACK.end_seq of that segment
	rtt    time.Duration // RACK.rtt; 0: nothing delivered yet
	fack   int64         // highest offset delivered

	reordering bool          // RACK.reordering_seen
	window     time.Duration // RACK.reo_wnd
	multiplier int           // RACK.reo_wnd_mult
	persist    int           // RACK.reo_wnd_persist
	roundEnd   int64         // RACK.dsack_round: SND.NXT at the last D-SACK that counted; -1: none
	deadline   clock.Time    // reordering timer
}

func (k *rack) init() { *k = rack{multiplier: 1, roundEnd: -1, deadline: clock.Never} }

// deliver takes a newly acknowledged or SACKed record (Section 6.2, steps 2 and 3). ambiguous says that the record was retransmitted
// and that the ACK may be for an earlier transmission of it.
func (k *rack) deliver(now clock.Time, r *record, ambiguous bool) {
	end := r.end()
	if end > k.fack {
		k.fack = end
	} else if end < k.fack && !r.retransmitted {
		k.reordering = true
	}
	if ambiguous {
		return
	}
	if k.rtt == 0 || sentAfter(r.sentAt, end, k.sentAt, k.end) {
		k.sentAt, k.end, k.rtt = r.sentAt, end, max(now.Sub(r.sentAt), 1)
	}
}

// onDSACK widens the window, at most once per round trip, because a D-SACK says that a retransmission was needless
// (Section 6.2, step 4).
func (k *rack) onDSACK(nxt int64) {
	if k.roundEnd < 0 {
		k.roundEnd = nxt
		k.multiplier++
		k.persist = rackPersist
	}
}

// advance ends the round of the last D-SACK when una passes it.
func (k *rack) advance(una int64) {
	if k.roundEnd >= 0 && una >= k.roundEnd {
		k.roundEnd = -1
	}
}

// onRecoveryExit counts down how long a widened window lasts.
func (k *rack) onRecoveryExit() {
	if k.persist--; k.persist <= 0 {
		k.persist, k.multiplier = 0, 1
	}
}

// update computes the reordering window (Section 6.2, step 4, RACK_update_reo_wnd).
func (k *rack) update(recovering bool, sackedSegs int32, minRTT, srtt time.Duration) {
	if !k.reordering && (recovering || sackedSegs >= rackDupThreshold) {
		k.window = 0
		return
	}
	k.window = min(time.Duration(k.multiplier)*minRTT/4, srtt)
}

// remaining returns how much longer a transmission may stay unacknowledged; nothing or less: it is lost.
func (k *rack) remaining(now clock.Time, r *record) time.Duration {
	return r.sentAt.Sub(now) + k.rtt + k.window
}

// detect marks what is lost now and arms the timer for the rest (Section 6.2, step 5).
//
// The flying list is in the order of transmission, so the first record that is not overdue ends the search, and each
// record is looked at once. RFC 8985 arms the timer for the last of the rest; here it is the first, plus a quarter of the
// window so that neighbours share one expiry.
func (s *sender) rackDetect(now clock.Time) {
	k := &s.rack
	k.deadline = clock.Never
	if k.rtt == 0 {
		return
	}
	k.update(s.state != stateOpen && s.state != stateDisorder, s.q.segs[recSacked], s.rtt.min.value, s.rtt.srtt)
	for i := s.q.flying.first; i != none; i = s.q.flying.first {
		r := &s.q.slab[i]
		if !sentAfter(k.sentAt, k.end, r.sentAt, r.end()) {
			return
		}
		if left := k.remaining(now, r); left > 0 {
			last := k.sentAt.Add(k.rtt + k.window)
			k.deadline = max(now+1, min(now.Add(left+k.window/4), last))
			return
		}
		s.markLost(i)
	}
}
