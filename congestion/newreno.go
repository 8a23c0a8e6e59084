package congestion

import "braid/clock"

// NewReno is the standard's congestion control: RFC 5681 with the once-a-window reduction of RFC 6582, an initial window
// of ten packets (RFC 6928) and appropriate byte counting (RFC 3465, L = 2). Recovery itself is tcp's (PRR, RACK).
type NewReno struct{ window }

// NewNewReno returns a NewReno controller in slow start.
func NewNewReno(cfg Config) *NewReno {
	return &NewReno{newWindow(cfg, byteLimitRFC)}
}

// OnAck opens the window: slow start below the threshold, one packet a window of acknowledged bytes above it.
func (r *NewReno) OnAck(s *Sample) {
	r.observe(s)
	if !r.mayGrow(s) {
		return
	}
	if rest := r.slowStart(s.Acked); rest > 0 {
		r.avoid(rest)
	}
}

// avoid is congestion avoidance by bytes: RFC 5681, Section 3.1, equation 3 summed over the bytes of the ACK.
func (r *NewReno) avoid(acked int64) {
	r.grow(float64(acked) * float64(r.mss) / float64(r.size))
}

// OnCongestion halves: ssthresh = max(FlightSize / 2, 2 SMSS) (RFC 5681, Section 3.1, equation 4).
func (r *NewReno) OnCongestion(_ clock.Time, cause Cause, inFlight int64) {
	r.reduce(cause, r.flight(inFlight)/2)
}
