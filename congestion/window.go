package congestion

import (
	"math"
	"time"

	"braid/clock"
)

// Constants of the standards that every loss-based controller here obeys.
const (
	initialWindow    = 10 // packets (RFC 6928, Section 2)
	minimumThreshold = 2  // packets: the floor of the slow-start threshold (RFC 5681, Section 3.1, equation 4)
	byteLimitRFC     = 2  // packets: L of RFC 3465, Section 2.2: what one ACK may add to the window in slow start
	byteLimitTimeout = 1  // packets: L after a timeout (RFC 3465, Section 2.3)
)

// Constants of this implementation.
const (
	noThreshold   = math.MaxInt64 // the threshold before the first congestion event
	maximumWindow = 1 << 40       // bytes: far beyond any path, far below overflow
)

// recovery says which kind of loss recovery a controller is in.
type recovery uint8

const (
	recoveryNone recovery = iota
	recoveryFast          // after a loss was detected: tcp's PRR decides, the window stands still
	recoveryRTO           // after a timeout: the window slow-starts from one packet
)

// window is the common body of the loss-based controllers: congestion window, threshold, slow start, the reaction to a
// timeout, restart after idle and undo (RFC 5681). What differs, growth in congestion avoidance and the size of a
// reduction, is left to the controller that embeds it.
//
// Invariants: mss >= 1; mss <= size <= maximumWindow; threshold >= 2 mss at the mss of its setting; |credit| < 1.
type window struct {
	mss       int64
	initial   int64 // packets
	byteLimit int64 // packets one ACK may add in slow start; 0: no limit
	size      int64 // the congestion window, bytes
	threshold int64 // bytes
	credit    float64
	recovery  recovery
	heard     bool // an ACK came since the last timeout
	limited   bool // the window limited sending in the last round
	srtt      time.Duration
	undo      undo
}

// undo is what a congestion event replaced.
type undo struct {
	valid           bool
	size, threshold int64
}

func newWindow(cfg Config, byteLimit int64) window {
	if cfg.MSS < 1 {
		panic("congestion: MSS below 1")
	}
	w := window{mss: int64(cfg.MSS), initial: int64(cfg.InitialWindow), byteLimit: byteLimit, threshold: noThreshold}
	if w.initial <= 0 {
		w.initial = initialWindow
	}
	w.size = min(w.initial*w.mss, maximumWindow)
	return w
}

// observe takes from an ACK what is remembered whether or not the window may grow.
func (w *window) observe(s *Sample) {
	w.limited = s.WindowLimited
	w.heard = true
	if s.SRTT > 0 {
		w.srtt = s.SRTT
	}
	if !s.InRecovery {
		w.recovery = recoveryNone
	}
}

// mayGrow reports whether this ACK may open the window. Never in fast recovery; in RTO recovery always, because lost data
// is waiting by definition; else only if the window was what limited sending, so that it stays a tested
// value (RFC 5681 leaves this open; RFC 7661, Section 3 and RFC 9438, Section 5.8 give the reason).
func (w *window) mayGrow(s *Sample) bool {
	if w.recovery == recoveryRTO {
		return true
	}
	return !s.InRecovery && s.WindowLimited
}

func (w *window) inSlowStart() bool { return w.size < w.threshold }

// slowStart opens the window for acked bytes and returns what is left of them for congestion avoidance.
//
// RFC 5681, Section 3.1 with RFC 3465: by the bytes acknowledged, at most L packets for one ACK.
func (w *window) slowStart(acked int64) (rest int64) {
	if !w.inSlowStart() {
		return acked
	}
	limit := w.byteLimit
	if w.recovery == recoveryRTO && limit > 0 {
		limit = byteLimitTimeout
	}
	if limit > 0 {
		acked = min(acked, limit*w.mss)
	}
	add := min(acked, w.threshold-w.size)
	w.size = min(w.size+add, maximumWindow)
	return acked - add
}

// grow adds a number of bytes, possibly a fraction or negative, to the window.
func (w *window) grow(bytes float64) {
	w.credit += float64(bytes) // rounded here: the caller's product must not be fused into the sum
	whole := math.Trunc(w.credit)
	if whole == 0 {
		return
	}
	w.credit -= whole
	if whole >= float64(maximumWindow-w.size) {
		w.size, w.credit = maximumWindow, 0
		return
	}
	if w.size += int64(whole); w.size < w.mss {
		w.size, w.credit = w.mss, 0
	}
}

// flight returns the amount of data that a reduction starts from: FlightSize of RFC 5681, Section 3.1. While the window
// limits sending that is the window itself: inFlight leaves out what was SACKed or found lost, FlightSize does not.
func (w *window) flight(inFlight int64) int64 {
	if w.limited {
		return w.size
	}
	return min(max(inFlight, 0), w.size)
}

// reduce is the reaction to a congestion event; threshold is what the controller wants it to be. It reports whether the
// threshold changed: not if a timeout follows an event of the same window of data (RFC 5681, Section 3.1: held
// constant while the same segment times out again).
func (w *window) reduce(cause Cause, threshold int64) bool {
	if cause == Penalty {
		w.penalise()
		return false
	}
	again := cause == Timeout && (w.recovery == recoveryFast || w.recovery == recoveryRTO && !w.heard)
	if !again {
		w.undo = undo{true, w.size, w.threshold}
		w.threshold = max(threshold, minimumThreshold*w.mss)
	}
	w.credit = 0
	if cause == Timeout { // RFC 5681, Section 3.1: the loss window is one full-sized segment
		w.size = w.mss
		w.recovery = recoveryRTO
		w.heard = false
	} else {
		w.size = min(w.size, w.threshold)
	}
	return !again
}

// penalise halves window and threshold, as MPTCP v0.9x does to a slow subflow that holds up the shared receive window.
// A window in its first slow start keeps no threshold from it.
func (w *window) penalise() {
	if !w.inSlowStart() {
		w.threshold = max(w.threshold/2, minimumThreshold*w.mss)
	}
	w.size = max(w.size/2, w.mss)
	w.credit = 0
}

// OnSend gives every transmission the weight 1.
func (w *window) OnSend(Send) float64 { return 1 }

// OnRecoveryEnter starts fast recovery, unless a timeout started RTO recovery.
func (w *window) OnRecoveryEnter(clock.Time, int64) {
	if w.recovery == recoveryNone {
		w.recovery = recoveryFast
	}
}

// OnRecoveryExit ends either recovery. The window is the threshold already (RFC 6582, Section 3.2, step 3).
func (w *window) OnRecoveryExit(clock.Time, int64) { w.recovery = recoveryNone }

// OnRestart applies the restart window after an idle time of more than one RTO (RFC 5681, Section 4.1). The threshold
// remembers three quarters of the window (RFC 2861, Section 3.1), so that slow start finds the way back.
func (w *window) OnRestart(_ clock.Time, idle, rto time.Duration) {
	if idle <= rto {
		return
	}
	if w.threshold != noThreshold {
		w.threshold = max(w.threshold, w.size/4*3)
	}
	w.size = min(w.size, w.initial*w.mss)
	w.credit = 0
}

// OnUndo takes the last reduction back (RFC 4015, Section 3.2 restores both values). The window does not shrink by it.
func (w *window) OnUndo(clock.Time) { w.restore() }

func (w *window) restore() bool {
	if !w.undo.valid {
		return false
	}
	w.size = max(w.size, w.undo.size)
	w.threshold = max(w.threshold, w.undo.threshold)
	w.undo = undo{}
	w.recovery = recoveryNone
	return true
}

// OnMSS changes the packet size; the window keeps its bytes but never falls below one packet.
func (w *window) OnMSS(mss int) {
	w.mss = max(int64(mss), 1)
	w.size = max(w.size, w.mss)
	w.threshold = max(w.threshold, minimumThreshold*w.mss)
}

// Window returns the congestion window in bytes.
func (w *window) Window() int64 { return w.size }

// PacingRate is 0: loss-based controllers leave the spreading of bursts to tcp.
func (w *window) PacingRate() float64 { return 0 }

// OwnsRecovery is false: PRR (RFC 6937) governs fast recovery.
func (w *window) OwnsRecovery() bool { return false }

// State describes the window.
func (w *window) State() State {
	st := State{Phase: "avoidance", Threshold: w.threshold}
	switch {
	case w.recovery == recoveryRTO:
		st.Phase = "timeout recovery"
	case w.recovery == recoveryFast:
		st.Phase = "fast recovery"
	case w.inSlowStart():
		st.Phase = "slow start"
	}
	if w.threshold == noThreshold {
		st.Threshold = 0
		st.Startup = true
	}
	return st
}
