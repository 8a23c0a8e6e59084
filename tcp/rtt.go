package tcp

import (
	"time"

	"braid/clock"
)

// Constants of RFC 6298 and RFC 8985.
const (
	rttShift      = 3 // SRTT moves by 1/8 of the error (RFC 6298, Section 2.3)
	rttVarShift   = 2 // RTTVAR by 1/4
	rttVarFactor  = 4 // K
	minRTTWindow  = 300 * time.Second
	defaultMinRTO = 200 * time.Millisecond
	defaultMaxRTO = 60 * time.Second // RFC 6298, Section 2.5: no less
	initialRTO    = time.Second      // RFC 6298, Section 2.1
	fallbackRTO   = 3 * time.Second  // RFC 6298, Section 5.7: after a lost SYN
)

// rttEstimator keeps SRTT, RTTVAR, the smallest RTT of the last minutes, and the retransmission timeout that follows.
type rttEstimator struct {
	srtt, variation time.Duration // 0 srtt: no sample yet
	recent          time.Duration // smoothed over the last samples, however many a round trip brings
	floor, ceiling  time.Duration
	initial         time.Duration
	min             minRTT
}

func (e *rttEstimator) init(cfg *Config) {
	*e = rttEstimator{floor: cfg.MinRTO, ceiling: cfg.MaxRTO, initial: cfg.InitialRTO}
	if e.floor <= 0 {
		e.floor = defaultMinRTO
	}
	if e.ceiling <= 0 {
		e.ceiling = defaultMaxRTO
	}
	if e.initial <= 0 {
		e.initial = initialRTO
	}
}

// sample takes a measurement. perRTT is how many of them one round trip is expected to bring.
//
// RFC 6298, Section 2: RTTVAR first, then SRTT. RFC 7323, Section 4.2 and Appendix G: the gains are divided by the number of
// samples per round trip, so that the memory stays a few round trips long however many ACKs one brings.
func (e *rttEstimator) sample(r time.Duration, perRTT int64) {
	if r <= 0 {
		return
	}
	if e.srtt == 0 {
		e.srtt, e.variation, e.recent = r, r/2, r
		return
	}
	e.recent = max(e.recent+(r-e.recent)>>rttShift, 1)
	perRTT = max(perRTT, 1)
	diff := r - e.srtt
	err := diff
	if err < 0 {
		err = -err
	}
	e.variation += (err - e.variation) / time.Duration(perRTT<<rttVarShift)
	e.srtt = max(e.srtt+diff/time.Duration(perRTT<<rttShift), 1)
}

// rto returns the retransmission timeout without back-off.
//
// RFC 6298, Section 2.3 and 2.4, with a deliberate deviation that Linux shares: the floor is 200 ms instead of 1 s (RTO-02),
// and it bounds the variance term, so that the timer always outlasts a delayed ACK, not only on short paths.
func (e *rttEstimator) rto() time.Duration {
	if e.srtt == 0 {
		return min(e.initial, e.ceiling)
	}
	return min(e.srtt+max(rttVarFactor*e.variation, e.floor), e.ceiling)
}

// backedOff returns the timeout doubled n times (RFC 6298, Section 5.5), at most the ceiling.
func (e *rttEstimator) backedOff(n int) time.Duration {
	r := e.rto()
	for ; n > 0 && r < e.ceiling; n-- {
		r *= 2
	}
	return min(r, e.ceiling)
}

// minRTT is the minimum of the last minRTTWindow, coarsely: it remembers the minimum of the current half window and of
// the one before.
type minRTT struct {
	value         time.Duration // 0: no sample
	current       time.Duration
	previous      time.Duration // 0: none
	currentBegins clock.Time
}

func (m *minRTT) sample(now clock.Time, r time.Duration) {
	if r <= 0 {
		return
	}
	if m.current == 0 || now.Sub(m.currentBegins) >= minRTTWindow/2 {
		m.previous, m.current, m.currentBegins = m.current, r, now
	} else if r < m.current {
		m.current = r
	} else {
		return
	}
	m.value = m.current
	if m.previous != 0 && m.previous < m.value {
		m.value = m.previous
	}
}
