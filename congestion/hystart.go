package congestion

import (
	"math"
	"time"
)

// Constants of HyStart++ (RFC 9406, Section 4.3). Its L is infinite here, as the RFC wants for paced senders.
const (
	hystartMinThreshold  = 4 * time.Millisecond
	hystartMaxThreshold  = 16 * time.Millisecond
	hystartDivisor       = 8 // the RTT threshold is an eighth of the last round's minimum RTT, within the bounds above
	hystartSamples       = 8 // RTT samples that a round needs before it says anything
	hystartGrowthDivisor = 4 // conservative slow start grows by a quarter of what was acknowledged
	hystartRounds        = 5 // rounds of conservative slow start before congestion avoidance
)

// hystart ends the first slow start before it overruns the bottleneck's buffer (RFC 9406): a round whose minimum RTT
// is clearly above that of the round before starts conservative slow start (CSS); five rounds of that end slow start, an
// RTT back below the baseline takes the alarm back.
type hystart struct {
	last, current time.Duration // minimum RTT of the last and of the current round
	samples       int
	css           bool
	baseline      time.Duration
	rounds        int // rounds begun since CSS was entered
}

const hystartUnknown = time.Duration(math.MaxInt64)

func newHystart() hystart { return hystart{last: hystartUnknown, current: hystartUnknown} }

// ack takes one ACK of slow start and returns by what to divide the growth, and whether slow start is over.
func (h *hystart) ack(s *Sample) (divisor int64, done bool) {
	if s.RoundStart {
		h.last, h.current, h.samples = h.current, hystartUnknown, 0
		if h.css {
			h.rounds++
		}
	}
	if s.RTT > 0 {
		h.current = min(h.current, s.RTT)
		h.samples++
		h.judge()
	}
	if !h.css {
		return 1, false
	}
	return hystartGrowthDivisor, h.rounds >= hystartRounds
}

// judge compares the rounds (RFC 9406, Section 4.2).
func (h *hystart) judge() {
	if h.samples < hystartSamples || h.last == hystartUnknown {
		return
	}
	if h.css {
		if h.current < h.baseline {
			h.css, h.rounds = false, 0
		}
		return
	}
	threshold := max(hystartMinThreshold, min(h.last/hystartDivisor, hystartMaxThreshold))
	if h.current >= h.last+threshold {
		h.css, h.baseline, h.rounds = true, h.current, 0
	}
}
