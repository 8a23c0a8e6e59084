package congestion

import (
	"math"
	"time"
)

// CoupledBBROptions are the constants of Coupled BBR. 0 takes the default.
type CoupledBBROptions struct {
	Exponent     float64 // e: 1; above 1 leans harder on the better path
	Displacement float64 // 0.75: a full flow would have displaced others by this much; it cannot be observed
	Floor        float64 // 0.1: the smallest share
	Claim        float64 // 0.02: what a free path adds to the free part each round: fifty rounds to claim a path
	Patience     int     // 2: rounds with (without) a queue in a row before the free part moves; one's own probe and drain spoil at most two
}

func (o *CoupledBBROptions) fill() {
	set := func(v *float64, def float64) {
		if *v <= 0 {
			*v = def
		}
	}
	set(&o.Exponent, 1)
	set(&o.Displacement, 0.75)
	set(&o.Floor, 0.1)
	set(&o.Claim, 0.02)
	if o.Patience <= 0 {
		o.Patience = 2
	}
}

// What counts as a round without a queue, and when the free part is gone.
const (
	freeStretch = 1.10 // round-minimum RTT up to this many RTprops ...
	freeSlack   = time.Millisecond
	freeNothing = 0.01
)

// coupledBBRGroup couples BBR flows so that all of them together take what one BBR flow would on the best path.
//
// Source: Han et al., "Leveraging Coupled BBR and Adaptive Packet Scheduling to Boost MPTCP", give the goals: detect the
// bandwidth as BBR does, be as fair as one flow on the best path, balance congestion, keep the rate steady. The rule here is
// this project's: each subflow is a complete BBR flow of bandwidth v of which the part 1 - b is withheld, as if phantom
// packets shared the fate of the real ones. Its probe and drain stay a full flow's, so competitors see one, and its v settles
// where a full flow's would, whatever the share b. Shares are computed here from all members' v.
type coupledBBRGroup struct {
	roster[*CoupledBBR]
	opt CoupledBBROptions
	bbr BBROptions
}

// NewCoupledBBR returns the Group of Coupled BBR with its default constants.
func NewCoupledBBR() Group { return NewCoupledBBRWith(CoupledBBROptions{}, BBROptions{}) }

// NewCoupledBBRWith returns the Group of Coupled BBR.
func NewCoupledBBRWith(opt CoupledBBROptions, bbr BBROptions) Group {
	opt.fill()
	return &coupledBBRGroup{opt: opt, bbr: bbr}
}

// CoupledBBR is one subflow of Coupled BBR: BBR's machine fed with weighted deliveries, and the share that it may send.
// With a single subflow it answers every event exactly as BBR does.
type CoupledBBR struct {
	BBR
	member
	group *coupledBBRGroup

	real     maxFilter // A: the delivery rate without weights
	free     float64   // s: the part of the flow that found the path free and is not coupled
	good     int       // rounds in a row without a queue
	bad      int       // rounds in a row with one
	roundMin time.Duration
}

// Join adds a subflow.
func (g *coupledBBRGroup) Join(id int, cfg Config) Controller {
	return g.add(&CoupledBBR{BBR: newBBR(cfg, g.bbr), member: member{id: id}, group: g, roundMin: math.MaxInt64})
}

// OnAck feeds the machine with the weighted delivery rate and moves the share once a round.
func (c *CoupledBBR) OnAck(s *Sample) {
	c.observe(s, weightedRate(s))
	if rate := s.Rate(); s.Interval > 0 && (!c.heldBack(s) || rate >= c.real.best) {
		c.real.add(c.round, rate)
	}
	if c.roundStart {
		if c.mode == bbrProbeBW {
			c.elastic()
			c.share = c.group.share(c)
		}
		c.roundMin = math.MaxInt64
	}
	if s.RTT > 0 {
		c.roundMin = min(c.roundMin, s.RTT)
	}
	c.control(s)
}

func weightedRate(s *Sample) float64 {
	if s.Interval <= 0 {
		return 0
	}
	return s.Weighted / s.Interval.Seconds()
}

// elastic moves the free part: slowly up while rounds pass without a queue, so that idle capacity is used; down by halves
// when a queue stays.
func (c *CoupledBBR) elastic() {
	o := &c.group.opt
	if c.roundMin == math.MaxInt64 || c.rtprop <= 0 {
		return
	}
	if float64(c.roundMin) <= float64(freeStretch*float64(c.rtprop))+float64(freeSlack) {
		c.bad = 0
		if c.good++; c.good > o.Patience {
			c.free = min(1, c.free+o.Claim)
		}
		return
	}
	if c.bad++; c.bad > o.Patience {
		c.good = 0
		if c.free /= 2; c.free < freeNothing {
			c.free = 0
		}
	}
}

// coupled reports whether the subflow takes part: it knows its bandwidth and is heard from.
func (c *CoupledBBR) coupled() bool { return c.full && !c.silent && c.bandwidth.best > 0 }

// share returns b of member c: the part of its full flow that it shall send.
func (g *coupledBBRGroup) share(c *CoupledBBR) float64 {
	if !c.coupled() {
		return 1
	}
	var total, free, weights float64 // T, F, sum of the coupled parts
	n := 0
	for _, m := range g.list {
		if !m.coupled() {
			continue
		}
		n++
		v := m.bandwidth.best
		total = max(total, v)
		free += float64(m.free * v)
		weights += g.power(float64((1 - m.free) * v))
	}
	b := 1.0
	v := c.bandwidth.best
	// Alone it is plain BBR, but for the cap below: whoever is left alone by a path's death has an estimate from its coupled days, which may be
	// well above what the path carries.
	if n > 1 && weights > 0 {
		part := 0.0
		if rest := (1 - c.free) * v; rest > 0 {
			part = min(1, max(0, total-free)*(g.power(rest)/rest)/weights)
		}
		part /= 1 + float64(g.opt.Displacement*(1-part))
		b = c.free + float64((1-c.free)*part)
	}
	b = max(b, g.opt.Floor)
	return min(b, max(g.opt.Floor, c.real.best/v), 1)
}

func (g *coupledBBRGroup) power(x float64) float64 {
	if g.opt.Exponent == 1 {
		return x
	}
	return math.Pow(x, g.opt.Exponent)
}
