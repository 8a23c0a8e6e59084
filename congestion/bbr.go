package congestion

import (
	"math"
	"math/rand/v2"
	"time"

	"braid/clock"
)

// Constants of BBR version 1 (Cardwell et al., "BBR: Congestion-Based Congestion Control", ACM Queue 14(5), 2016;
// draft-cardwell-iccrg-bbr-congestion-control-00, Section 4), as Linux deploys it.
const (
	bbrHighGain      = 2 / math.Ln2 // doubles the rate each round, as slow start does
	bbrDrainGain     = 1 / bbrHighGain
	bbrWindowGain    = 2.0
	bbrProbe         = 1.25
	bbrDrain         = 0.75
	bbrCycleLength   = 8
	bbrPacingMargin  = 0.99 // pace 1 % below the estimate, so that queues drain on average
	bbrFullGrowth    = 1.25 // the pipe is full when the estimate grows less than this ...
	bbrFullRounds    = 3    // ... in so many rounds
	bbrMinWindow     = 4    // packets
	bbrRTTWindow     = 10 * time.Second
	bbrProbeRTTTime  = 200 * time.Millisecond
	bbrSmallRate     = 1.2e6 / 8 // bytes/s: below it the send quantum is one packet
	bbrNominalRTT    = time.Millisecond
	bbrExtraRounds   = 5                      // rounds after which the ACK-aggregation filter turns over
	bbrExtraMax      = 100 * time.Millisecond // aggregation is provided for up to this much of the bandwidth
	bbrSlowestPacing = 1                      // packets a second: the pacing rate never falls below this
)

// bbrMode is the state of BBR's machine.
type bbrMode uint8

const (
	bbrStartup bbrMode = iota
	bbrDraining
	bbrProbeBW
	bbrProbeRTT
)

var bbrPhase = [...]string{"startup", "drain", "probe bandwidth", "probe rtt"}

// BBROptions are the parts of BBR that can be switched.
type BBROptions struct {
	// Aggregation adds room for the ACK aggregation seen (extra_acked, Linux since 5.0) to the window.
	Aggregation bool
}

// BBR is BBR version 1: it models the path by its bottleneck bandwidth (the largest delivery rate of ten rounds) and its
// propagation time (the smallest RTT of ten seconds), paces at the bandwidth and bounds what is in flight by twice
// their product. Losses bound the window for the time of a recovery only.
//
// The same machine is the body of the Coupled BBRs, which set share, cruise and cruiseWindow; plain BBR leaves them at 1, 1
// and 2. bbr_pacing.go holds the answers (rate, window, weight), this file the model and the states.
//
// Invariants: window >= one packet; pacing > 0; 0 < share <= 1; conserve > 0 only in fast recovery.
type BBR struct {
	mss     int64
	initial int64 // packets
	rand    *rand.Rand
	opt     BBROptions

	mode       bbrMode
	cycle      uint8 // phase of the gain cycle: 0 probes, 1 drains, 2 to 7 cruise
	full       bool  // the pipe has been filled once
	fullCount  uint8 // rounds without much growth
	seenRTT    bool  // the initial pacing rate was set from an RTT
	idle       bool  // restarting from idle: no PROBE_RTT until data is delivered
	probeRound bool  // a whole round passed in PROBE_RTT
	roundStart bool  // the last ACK opened a round
	recovery   recovery
	conserve   uint8   // rounds of packet conservation left
	lossy      float64 // the part of rounds that began in fast recovery, smoothed

	round     int64
	nextRound int64 // packets sent from this value of delivered on belong to the next round
	delivered int64
	bandwidth maxFilter // bytes/s
	fullRate  float64   // the estimate that the next rounds must outgrow

	srtt        time.Duration
	rtprop      time.Duration // 0: none yet
	rtpropStamp clock.Time    // when rtprop was measured
	phaseStart  clock.Time
	probeDone   clock.Time // when PROBE_RTT may end; Never: the window has not drained yet
	limitedFrom int64      // samples of packets sent between these values of delivered count as application-limited:
	limitedTo   int64      // PROBE_RTT held them back. -1: none yet

	window      int64
	prior       int64 // the window to restore after recovery or PROBE_RTT
	pacing      float64
	aggregation aggregation

	share        float64 // b: the part of a full flow that is sent
	cruise       float64 // pacing gain of the cruise phases
	cruiseWindow float64 // window gain of the cruise phases
	stamp        float64 // w: the weight of packets sent now
}

// NewBBR returns a BBR controller in STARTUP. cfg.Rand must not be nil.
func NewBBR(cfg Config) *BBR { return NewBBRWith(cfg, BBROptions{}) }

// NewBBRWith returns a BBR controller in STARTUP with the given options.
func NewBBRWith(cfg Config, opt BBROptions) *BBR {
	b := newBBR(cfg, opt)
	return &b
}

func newBBR(cfg Config, opt BBROptions) BBR {
	if cfg.MSS < 1 || cfg.Rand == nil {
		panic("congestion: BBR needs an MSS and a random stream")
	}
	b := BBR{
		mss: int64(cfg.MSS), initial: int64(cfg.InitialWindow), rand: cfg.Rand, opt: opt,
		probeDone: clock.Never, limitedTo: -1, share: 1, cruise: 1, cruiseWindow: bbrWindowGain, stamp: 1,
	}
	if b.initial <= 0 {
		b.initial = initialWindow
	}
	b.window = min(b.initial*b.mss, maximumWindow)
	b.initialPacing(bbrNominalRTT)
	return b
}

// OnSend takes the first RTT to pace the initial window over it, and stamps the transmission.
func (b *BBR) OnSend(e Send) float64 {
	if !b.seenRTT && e.SRTT > 0 {
		b.seenRTT = true
		b.initialPacing(e.SRTT)
	}
	return b.stamp
}

// OnAck updates the model of the path, moves the machine, and sets rate and window.
func (b *BBR) OnAck(s *Sample) {
	b.observe(s, s.Rate())
	b.control(s)
}

// observe updates model and state. rate is the bandwidth sample, in bytes/s.
func (b *BBR) observe(s *Sample, rate float64) {
	b.delivered = s.Delivered
	if s.SRTT > 0 {
		b.srtt = s.SRTT
	}
	b.updateBandwidth(s, rate)
	if b.opt.Aggregation {
		b.aggregation.update(b, s)
	}
	if b.mode == bbrProbeBW && b.phaseOver(s) {
		b.nextPhase(s.Now)
	}
	b.updateFull(s)
	b.updateDrain(s)
	b.updateRTprop(s)
}

// updateBandwidth counts rounds and feeds the filter. A round ends when a packet sent after its start is acknowledged.
func (b *BBR) updateBandwidth(s *Sample, rate float64) {
	b.roundStart = false
	if s.Interval <= 0 {
		return
	}
	if s.PriorDelivered >= b.nextRound {
		b.nextRound = s.Delivered
		b.round++
		b.roundStart = true
		lost := 0.0
		if b.recovery == recoveryFast {
			lost = 1
		}
		b.lossy += (lost - b.lossy) / conserveMemory
		if b.conserve > 0 {
			b.conserve--
		}
	}
	// A sample taken while the sender held back tells of the sender unless it tops the estimate.
	if !b.heldBack(s) || rate >= b.bandwidth.best {
		b.bandwidth.add(b.round, rate)
	}
}

// heldBack reports whether the sampled packet was sent while application or PROBE_RTT left the path idle.
func (b *BBR) heldBack(s *Sample) bool {
	return s.AppLimited || b.limitedFrom <= s.PriorDelivered && s.PriorDelivered <= b.limitedTo
}

// phaseOver reports whether the phase of the gain cycle ends with this ACK. Probing lasts one RTprop and until the probe is
// in flight or lost; draining one RTprop at most; cruising one RTprop. The Coupled BBR's withheld part drains longer,
// its slope being smaller.
func (b *BBR) phaseOver(s *Sample) bool {
	elapsed := s.Now.Sub(b.phaseStart)
	switch b.cycle {
	case 0:
		if elapsed <= b.rtprop {
			return false
		}
		target := b.inflight(b.share + (bbrProbe - 1))
		if b.share < 1 {
			target = min(target, b.target()-b.mss)
		}
		// Half a quantum: on average so much more will be in the network when the next packet leaves.
		return s.Lost > 0 || s.PriorInFlight+b.quantum()*b.mss/2 >= target
	case 1:
		length := b.drainLength()
		return float64(elapsed) > length*float64(b.rtprop) || s.PriorInFlight <= b.inflight(b.share)
	}
	return elapsed > b.rtprop
}

func (b *BBR) nextPhase(now clock.Time) {
	b.cycle = (b.cycle + 1) % bbrCycleLength
	b.phaseStart = now
}

// enterProbeBW starts the cycle at a random phase, any but draining: there is nothing to drain, and flows that start
// together shall not probe together.
func (b *BBR) enterProbeBW(now clock.Time) {
	b.mode = bbrProbeBW
	b.cycle = uint8(bbrCycleLength-b.rand.IntN(bbrCycleLength-1)) % bbrCycleLength
	b.phaseStart = now
}

// updateFull looks for the plateau that says that STARTUP has filled the pipe.
func (b *BBR) updateFull(s *Sample) {
	if b.full || !b.roundStart || s.AppLimited {
		return
	}
	if b.bandwidth.best >= float64(b.fullRate*bbrFullGrowth) {
		b.fullRate = b.bandwidth.best
		b.fullCount = 0
		return
	}
	b.fullCount++
	b.full = b.fullCount >= bbrFullRounds
}

// updateDrain leaves STARTUP when the pipe is full, and DRAIN when the queue is gone.
func (b *BBR) updateDrain(s *Sample) {
	if b.mode == bbrStartup && b.full {
		b.mode = bbrDraining
	}
	if b.mode == bbrDraining && s.InFlight <= b.inflight(1) {
		b.enterProbeBW(s.Now)
	}
}

// updateRTprop keeps the smallest RTT of ten seconds and enters and leaves PROBE_RTT when it was not seen again. A sample
// from an ACK for a lone packet may have been delayed by the receiver: it lowers the estimate but does not replace it.
func (b *BBR) updateRTprop(s *Sample) {
	if b.rtprop == 0 && s.MinRTT > 0 {
		b.rtprop, b.rtpropStamp = s.MinRTT, s.Now
	}
	expired := b.rtprop > 0 && s.Now.After(b.rtpropStamp.Add(bbrRTTWindow))
	delayed := s.PriorInFlight <= b.mss
	if s.RTT > 0 && (b.rtprop == 0 || s.RTT < b.rtprop || expired && !delayed) {
		b.rtprop, b.rtpropStamp = s.RTT, s.Now
	}
	if expired && !b.idle && b.mode != bbrProbeRTT {
		b.mode = bbrProbeRTT
		b.save()
		b.probeDone = clock.Never
		b.limitedFrom = s.Delivered
	}
	if b.mode == bbrProbeRTT {
		b.probeRTT(s)
	}
	if s.Acked > 0 {
		b.idle = false
	}
}

// probeRTT waits until at most four packets are in flight, then for the longer of 200 ms and a round.
func (b *BBR) probeRTT(s *Sample) {
	b.limitedTo = s.Delivered + s.InFlight
	if b.probeDone == clock.Never {
		if s.InFlight <= bbrMinWindow*b.mss {
			b.probeDone = s.Now.Add(bbrProbeRTTTime)
			b.probeRound = false
			b.nextRound = s.Delivered
		}
		return
	}
	b.probeRound = b.probeRound || b.roundStart
	if b.probeRound {
		b.endProbeRTT(s.Now)
	}
}

// endProbeRTT leaves PROBE_RTT if its time is over.
func (b *BBR) endProbeRTT(now clock.Time) {
	if b.probeDone == clock.Never || !now.After(b.probeDone) {
		return
	}
	b.rtpropStamp = now
	b.window = max(b.window, b.prior)
	b.probeDone = clock.Never
	if b.full {
		b.enterProbeBW(now)
	} else {
		b.mode = bbrStartup
	}
}

// save remembers the window to return to. Within recovery or PROBE_RTT the window is a cut one.
func (b *BBR) save() {
	if b.recovery == recoveryNone && b.mode != bbrProbeRTT {
		b.prior = b.window
	} else {
		b.prior = max(b.prior, b.window)
	}
}

// OnCongestion saves the window; only a timeout (and a penalty) cuts it. The bandwidth is what the path delivers, whatever it
// loses.
func (b *BBR) OnCongestion(_ clock.Time, cause Cause, _ int64) {
	if cause == Penalty {
		b.window = max(b.window/2, b.mss)
		return
	}
	b.save()
	if cause == Timeout {
		b.recovery = recoveryRTO
		b.conserve = 0
		b.fullRate = 0
		b.window = b.mss
	}
}

// OnRecoveryEnter starts packet conservation for one round: as much is sent as is acknowledged.
func (b *BBR) OnRecoveryEnter(_ clock.Time, inFlight int64) {
	if b.recovery != recoveryNone {
		return
	}
	b.recovery = recoveryFast
	b.conserve = b.conservation()
	b.nextRound = b.delivered
	b.window = max(inFlight, b.mss)
}

// conservation returns for how many rounds packets are conserved. Plain BBR: one. Where only a share of a full flow is sent
// and the queue is short, the loss was a random one, and one round with a loss stands for as many of the full flow's: 1/share
// where losses are rare, one where every round has one and the full flow could not have more.
func (b *BBR) conservation() uint8 {
	if b.share >= 1 || float64(b.srtt) >= float64(conserveQueueFree*float64(b.rtprop)) {
		return 1
	}
	n := 1 / b.share
	if b.lossy > conserveRare {
		n = (1 - math.Pow(1-b.lossy, n)) / b.lossy
	}
	whole := math.Floor(n)
	if b.rand.Float64() < n-whole {
		whole++
	}
	return uint8(min(max(whole, 1), conserveMax))
}

// OnRecoveryExit restores the window.
func (b *BBR) OnRecoveryExit(clock.Time, int64) {
	b.recovery = recoveryNone
	b.conserve = 0
	b.window = max(b.window, b.prior)
	b.capProbeRTT()
}

// OnRestart goes on at the estimated bandwidth: no burst, and no slow start either.
func (b *BBR) OnRestart(now clock.Time, _, _ time.Duration) {
	b.idle = true
	b.aggregation.restart(now)
	switch b.mode {
	case bbrProbeBW:
		b.setPacing(b.share)
	case bbrProbeRTT:
		b.endProbeRTT(now)
	}
}

// OnUndo restores the window and lets STARTUP look for the plateau again.
func (b *BBR) OnUndo(now clock.Time) {
	b.fullRate, b.fullCount = 0, 0
	b.OnRecoveryExit(now, 0)
}

// OnMSS changes the packet size. The model is in bytes and stays.
func (b *BBR) OnMSS(mss int) {
	b.mss = max(int64(mss), 1)
	b.window = max(b.window, b.mss)
}
