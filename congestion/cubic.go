package congestion

import (
	"math"
	"time"

	"braid/clock"
)

// Constants of CUBIC (RFC 9438, Sections 4.1 and 4.6).
const (
	cubicC    = 0.4 // packets / s^3
	cubicBeta = 0.7
	// cubicAlpha makes the Reno-friendly estimate as aggressive as Reno: 3 (1 - beta) / (1 + beta) (RFC 9438, Section 4.3).
	cubicAlpha = 3 * (1 - cubicBeta) / (1 + cubicBeta)
)

// CubicOptions are the choices that RFC 9438 leaves open.
type CubicOptions struct {
	NoHystart         bool // plain slow start instead of HyStart++ (RFC 9406)
	NoFastConvergence bool // without RFC 9438, Section 4.7
}

// Cubic is CUBIC (RFC 9438): after a reduction the window follows a cubic of the time since, flat around the size at which
// the last loss came, never slower than Reno would be. Slow start is HyStart++'s (RFC 9406), which stands in for the
// HyStart that Linux's CUBIC uses: without it the first slow start overruns a buffer of one bandwidth-delay product by
// hundreds of packets.
type Cubic struct {
	window
	opt     CubicOptions
	hystart hystart
	curve   cubicCurve
	lastAck clock.Time
	undone  cubicCurve // the curve that the last congestion event replaced
}

// cubicCurve is the epoch: the growth since the last congestion event. Windows are in packets.
type cubicCurve struct {
	max    float64 // W_max: the window at the last event, after fast convergence; 0: none
	prior  float64 // cwnd_prior: the window at the last event
	began  bool    // the epoch has begun: the first ACK of congestion avoidance came
	start  clock.Time
	k      float64 // seconds from start until the curve reaches origin
	origin float64
	reno   float64 // W_est: the window of a Reno flow in the same place
}

// NewCubic returns a CUBIC controller in slow start with HyStart++ and fast convergence.
func NewCubic(cfg Config) *Cubic { return NewCubicWith(cfg, CubicOptions{}) }

// NewCubicWith returns a CUBIC controller in slow start.
func NewCubicWith(cfg Config, opt CubicOptions) *Cubic {
	return &Cubic{window: newWindow(cfg, 0), opt: opt, hystart: newHystart()}
}

// OnAck opens the window.
func (c *Cubic) OnAck(s *Sample) {
	c.observe(s)
	c.excludeLimited(s)
	divisor := c.slowStartDivisor(s)
	if !c.mayGrow(s) {
		return
	}
	acked := s.Acked
	if c.inSlowStart() {
		acked = c.slowStart(acked / divisor)
	}
	if acked > 0 && !c.inSlowStart() {
		c.avoid(s.Now, acked)
	}
}

// excludeLimited keeps time in which the application limited sending out of the epoch (RFC 9438, Section 5.8): the
// curve would otherwise jump over what was never tried.
func (c *Cubic) excludeLimited(s *Sample) {
	if c.curve.began && !s.WindowLimited {
		c.curve.start = c.curve.start.Add(s.Now.Sub(c.lastAck))
	}
	c.lastAck = s.Now
}

// slowStartDivisor asks HyStart++, which watches the first slow start only (RFC 9406, Section 4.3).
func (c *Cubic) slowStartDivisor(s *Sample) int64 {
	if c.opt.NoHystart || c.threshold != noThreshold {
		return 1
	}
	divisor, done := c.hystart.ack(s)
	if done {
		c.threshold = max(c.size, minimumThreshold*c.mss)
	}
	return divisor
}

// avoid grows the window for acked bytes in congestion avoidance (RFC 9438, Sections 4.2 to 4.5).
func (c *Cubic) avoid(now clock.Time, acked int64) {
	size := float64(c.size) / float64(c.mss)
	packets := float64(acked) / float64(c.mss)
	e := &c.curve
	if !e.began {
		e.begin(now, size)
	}
	alpha := cubicAlpha
	if e.reno >= e.prior { // Section 4.3: beyond the window of the last event, Reno's own pace
		alpha = 1
	}
	e.reno += float64(alpha * packets / size)

	t := now.Sub(e.start).Seconds()
	if e.at(t) < e.reno { // Section 4.3: the Reno-friendly region
		if e.reno > size {
			c.grow((e.reno - size) * float64(c.mss))
		}
		return
	}
	target := min(max(e.at(t+c.srtt.Seconds()), size), float64(1.5*size)) // Section 4.2
	c.grow((target - size) / size * packets * float64(c.mss))
}

// begin starts an epoch at the given window (RFC 9438, Section 4.2).
func (e *cubicCurve) begin(now clock.Time, size float64) {
	e.began, e.start, e.reno = true, now, size
	e.k, e.origin = 0, size
	if size < e.max {
		e.k = math.Cbrt((e.max - size) / cubicC)
		e.origin = e.max
	}
}

// at returns W_cubic, t seconds into the epoch (RFC 9438, Section 4.2, figure 1).
func (e *cubicCurve) at(t float64) float64 {
	d := t - e.k
	return float64(cubicC*d*d*d) + e.origin
}

// OnCongestion reduces the window to 0.7 of the flight (RFC 9438, Section 4.6).
func (c *Cubic) OnCongestion(_ clock.Time, cause Cause, inFlight int64) {
	flight := c.flight(inFlight)
	curve := c.curve
	if !c.reduce(cause, int64(cubicBeta*float64(flight))) {
		if cause == Timeout {
			c.curve = cubicCurve{prior: curve.prior}
		}
		return
	}
	c.undone = curve
	c.curve = cubicCurve{prior: float64(flight) / float64(c.mss)}
	if cause == Timeout { // Section 4.8: the next epoch starts at K = 0
		return
	}
	c.curve.max = c.curve.prior
	if c.curve.prior < curve.max && !c.opt.NoFastConvergence { // Section 4.7: release bandwidth to newcomers
		c.curve.max = c.curve.prior * (1 + cubicBeta) / 2
	}
}

// OnRestart shifts the epoch by the idle time (RFC 9438, Section 5.8) and applies the restart window.
func (c *Cubic) OnRestart(now clock.Time, idle, rto time.Duration) {
	if c.curve.began && now.After(c.lastAck) {
		c.curve.start = c.curve.start.Add(now.Sub(c.lastAck))
	}
	c.lastAck = now
	c.window.OnRestart(now, idle, rto)
}

// OnUndo restores window, threshold and curve (RFC 9438, Section 4.9).
func (c *Cubic) OnUndo(clock.Time) {
	if c.restore() {
		c.curve = c.undone
	}
}

// OnMSS changes the packet size. The curve counts packets: it goes on from the same number of bytes.
func (c *Cubic) OnMSS(mss int) {
	f := float64(c.mss) / float64(max(mss, 1))
	for _, e := range []*cubicCurve{&c.curve, &c.undone} {
		e.max *= f
		e.prior *= f
		e.origin *= f
		e.reno *= f
	}
	c.window.OnMSS(mss)
}

// State describes the controller.
func (c *Cubic) State() State {
	st := c.window.State()
	if c.hystart.css && st.Startup {
		st.Phase = "conservative slow start"
	}
	return st
}
