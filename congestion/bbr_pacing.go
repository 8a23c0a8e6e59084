package congestion

import (
	"math"
	"time"

	"braid/clock"
)

// The Coupled BBR's part of the machine: how a share b of a full flow is sent. With b = 1 each formula is BBR's own.
const (
	withheldFloor     = 0.1 // a share's draining rate is at least this part of the share
	drainLongest      = 4.0 // RTprops
	conserveQueueFree = 1.3 // an smoothed RTT below this many RTprops says that no full queue caused the loss
	conserveMax       = 8   // rounds
	conserveMemory    = 16  // rounds that tell how often there are losses
	conserveRare      = 0.001
	slackNone         = 1.8 // at this many RTprops of smoothed RTT the window gives the probe no room beyond 2b ...
	slackSpan         = 0.5 // ... and at this much less, all of it
	weightGuard       = 0.001
)

// gains returns the pacing gain, as a multiple of the bandwidth, and the window gain, as a multiple of the BDP, of the state.
func (b *BBR) gains() (pacing, window float64) {
	switch b.mode {
	case bbrStartup:
		return bbrHighGain, bbrHighGain
	case bbrDraining:
		return bbrDrainGain, bbrHighGain
	case bbrProbeRTT:
		return b.share, b.share
	}
	switch {
	case b.share < 1:
		return b.withheldGains()
	case b.cycle == 0:
		return bbrProbe, bbrWindowGain
	case b.cycle == 1:
		return bbrDrain, bbrWindowGain
	}
	return b.cruise, b.cruiseWindow
}

// cycleGain returns the gain of the phase for a full flow.
func (b *BBR) cycleGain() float64 {
	switch b.cycle {
	case 0:
		return bbrProbe
	case 1:
		return bbrDrain
	}
	return 1
}

// withheldGains returns the gains of a full flow less its withheld part 1 - b: the probe and the drain stay as high as a
// full flow's, only their level is lower.
func (b *BBR) withheldGains() (pacing, window float64) {
	pacing = b.withheldPacing(b.cycleGain())
	window = 2 * b.share
	if pacing > window {
		room := min(max((slackNone-b.stretch())/slackSpan, 0), 1)
		window += float64((pacing - window) * room)
	}
	return pacing, window
}

func (b *BBR) withheldPacing(gain float64) float64 {
	a := gain - (1 - b.share)
	if gain < 1 {
		a = max(a, withheldFloor*b.share)
	}
	return a
}

// stretch returns smoothed RTT over RTprop, at least 1: how much queue there is.
func (b *BBR) stretch() float64 {
	if b.rtprop <= 0 || b.srtt <= b.rtprop {
		return 1
	}
	return float64(b.srtt) / float64(b.rtprop)
}

// drainLength returns for how many RTprops a drain phase lasts at most: as long as it takes to drain a full flow's quarter.
func (b *BBR) drainLength() float64 {
	a := b.withheldPacing(bbrDrain)
	return min(max((1-bbrDrain)/max(b.share-a, 0.01), 1), drainLongest)
}

// weight returns w, what a packet sent now stands for, so that the weighted delivery rate is that of a full flow: what the
// full flow would have in flight or send over what the share does.
func (b *BBR) weight() float64 {
	if b.share >= 1 || b.mode == bbrStartup || b.mode == bbrDraining {
		return 1
	}
	if b.mode == bbrProbeRTT {
		return 1 / b.share
	}
	_, window := b.withheldGains()
	rho := min(b.cycleGain(), 2/b.stretch())
	return min(2/window, rho/max(rho-(1-b.share), weightGuard))
}

// control sets pacing rate, window and weight after the model moved.
func (b *BBR) control(s *Sample) {
	if !b.seenRTT && b.srtt > 0 {
		b.seenRTT = true
		b.initialPacing(b.srtt)
	}
	before := b.pacing
	pacing, _ := b.gains()
	b.setPacing(pacing)
	if !b.full { // before the pipe is full the rate only rises
		b.pacing = max(b.pacing, before)
	}
	b.setWindow(s)
	b.stamp = b.weight()
}

func (b *BBR) setPacing(gain float64) {
	b.pacing = max(bbrPacingMargin*gain*b.bandwidth.best, float64(bbrSlowestPacing*b.mss))
}

// initialPacing spreads the initial window over an RTT, at STARTUP's gain.
func (b *BBR) initialPacing(rtt time.Duration) {
	rtt = max(rtt, time.Microsecond)
	b.pacing = bbrPacingMargin * bbrHighGain * float64(b.window) / rtt.Seconds()
}

// quantum is the send quantum in packets: what may leave back to back.
func (b *BBR) quantum() int64 {
	if b.pacing < bbrSmallRate {
		return 1
	}
	return 2
}

// sized returns gain times the bandwidth-delay product plus extra bytes plus a budget for what the end systems hold, in bytes:
// three send quanta, an even number of packets in all for the sake of delayed ACKs, and two packets so that the probe
// shows at small windows. A share of a flow gets that share of the budget and no rounding, which would be a large part of a
// small window and in nobody's favour but its own. Without an RTT it is the initial window.
func (b *BBR) sized(gain, extra float64) int64 {
	if b.rtprop <= 0 {
		return b.initial * b.mss
	}
	packets := (float64(gain*b.bandwidth.best*b.rtprop.Seconds()) + extra) / float64(b.mss)
	packets = min(packets, maximumWindow)
	budget := 3 * b.quantum()
	probe := int64(0)
	if b.mode == bbrProbeBW && b.cycle == 0 {
		probe = 2
	}
	if b.share < 1 {
		return int64((packets + float64(b.share*float64(budget+probe+1))) * float64(b.mss))
	}
	n := int64(math.Ceil(packets)) + budget
	return (n + n&1 + probe) * b.mss
}

// inflight returns how many bytes in flight keep gain BDPs in the network.
func (b *BBR) inflight(gain float64) int64 { return b.sized(gain, 0) }

// target returns the window that the model asks for.
func (b *BBR) target() int64 {
	_, gain := b.gains()
	extra := 0.0
	if b.opt.Aggregation && b.full {
		extra = min(b.aggregation.max(), b.bandwidth.best*bbrExtraMax.Seconds())
	}
	return b.sized(gain, extra)
}

// setWindow moves the window towards the target, by as much as was acknowledged at most; in recovery it conserves packets first, and
// a full flow's follows losses. A share of a flow does not take losses off: it is at home where every round has some, and a window of a few
// packets that pays for each would hold its probe down, and with it an estimate that is to be a full flow's.
func (b *BBR) setWindow(s *Sample) {
	if s.Acked > 0 {
		if s.Lost > 0 && b.share >= 1 {
			b.window = max(b.window-s.Lost, b.mss)
		}
		if b.conserve > 0 {
			b.window = max(b.window, s.InFlight+s.Acked)
		} else {
			b.approach(s.Acked)
		}
	}
	b.window = min(b.window, maximumWindow)
	b.capProbeRTT()
}

func (b *BBR) approach(acked int64) {
	target := b.target()
	switch {
	case b.full: // only a full pipe proves the target: cut down to it
		b.window = min(b.window+acked, target)
	case b.window < target || b.delivered < b.initial*b.mss:
		b.window += acked
	}
	b.window = max(b.window, bbrMinWindow*b.mss)
}

func (b *BBR) capProbeRTT() {
	if b.mode == bbrProbeRTT {
		b.window = min(b.window, bbrMinWindow*b.mss)
	}
}

// Window returns the congestion window in bytes.
func (b *BBR) Window() int64 { return b.window }

// PacingRate returns the pacing rate in bytes per second, never 0.
func (b *BBR) PacingRate() float64 { return b.pacing }

// OwnsRecovery is true: packet conservation takes PRR's place.
func (b *BBR) OwnsRecovery() bool { return true }

// State describes the model. SendingRate is the share of the bandwidth, without the probing gain.
func (b *BBR) State() State {
	pacing, window := b.gains()
	st := State{
		Phase: bbrPhase[b.mode], Startup: b.mode == bbrStartup, ProbeRTT: b.mode == bbrProbeRTT,
		Bandwidth: b.bandwidth.best, MinRTT: b.rtprop, PacingGain: pacing, WindowGain: window,
	}
	share := b.share
	if b.mode == bbrProbeBW && b.cruise < 1 {
		share = b.cruiseAverage()
	}
	st.SendingRate = bbrPacingMargin * share * b.bandwidth.best
	if b.bandwidth.best == 0 {
		st.SendingRate = b.pacing / bbrHighGain
	}
	return st
}

// cruiseAverage is the mean gain of a cycle.
func (b *BBR) cruiseAverage() float64 {
	return (bbrProbe + bbrDrain + float64((bbrCycleLength-2)*b.cruise)) / bbrCycleLength
}

// aggregation is Linux's extra_acked: the most that arrived in a burst of ACKs beyond what the bandwidth explains, over
// the last five to ten rounds.
type aggregation struct {
	start  clock.Time
	acked  float64    // since start
	extra  [2]float64 // maximum of this and the last filter period
	index  uint8
	rounds uint8
}

func (a *aggregation) restart(now clock.Time) { a.start, a.acked = now, 0 }

func (a *aggregation) max() float64 { return max(a.extra[0], a.extra[1]) }

func (a *aggregation) update(b *BBR, s *Sample) {
	if s.Acked <= 0 || s.Interval <= 0 {
		return
	}
	if b.roundStart {
		if a.rounds++; a.rounds >= bbrExtraRounds {
			a.rounds = 0
			a.index ^= 1
			a.extra[a.index] = 0
		}
	}
	expected := b.share * b.bandwidth.best * s.Now.Sub(a.start).Seconds()
	if a.acked <= expected {
		a.restart(s.Now)
		expected = 0
	}
	a.acked += float64(s.Acked)
	extra := min(a.acked-float64(expected), float64(b.window))
	a.extra[a.index] = max(a.extra[a.index], extra)
}
