package paper

import (
	"math"
	"math/rand/v2"
	"slices"

	"braid/link"
	"braid/netsim"
)

// access is a stochastic model of a wireless access network's capacity. The logarithm of the rate is a first-order autoregression in steps of
// 100 ms; on top of it each step has a noise of its own, and the network pauses now and then. Satellites get a new level at each
// reallocation.
//
// The parameters are fitted to recordings that others published (see docs/paper.md, "Generated paths"): coefficient of variation in seconds
// and in tenths of a second, correlation time, pauses.
type access struct {
	name       string
	slow       float64 // standard deviation of the log rate that lasts
	memoryS    float64 // its correlation time
	fast       float64 // ... of each 100 ms
	pauseEvery float64 // mean seconds between pauses; 0: none
	pauseS     float64 // mean length of a pause
	reallocS   float64 // a new level at every multiple; 0: never
	queueBDP   float64 // buffer, in bandwidth-delay products of the mean rate
}

// The models.
var (
	lte      = access{name: "4G", slow: 0.45, memoryS: 3, fast: 0.35, pauseEvery: 12, pauseS: 0.25, queueBDP: 2}
	wifi24   = access{name: "Wi-Fi 2.4 GHz", slow: 0.3, memoryS: 3, fast: 0.25, pauseEvery: 20, pauseS: 0.15, queueBDP: 2}
	wifi5    = access{name: "Wi-Fi 5 GHz", slow: 0.5, memoryS: 2.5, fast: 0.3, pauseEvery: 15, pauseS: 0.3, queueBDP: 2}
	starlink = access{name: "Starlink", slow: 0.15, memoryS: 5, fast: 0.12, pauseEvery: 30, pauseS: 0.1, reallocS: 15, queueBDP: 2}
)

// generate returns delivery opportunities with the given mean for so many seconds.
func (a *access) generate(meanMbps, seconds float64, r *rand.Rand) []int64 {
	const stepMs = 100
	keep := math.Exp(-0.001 * stepMs / a.memoryS)
	level := a.slow * r.NormFloat64()
	paused := 0 // ms left
	steps := int(seconds * 1000 / stepMs)
	rates := make([]float64, steps*stepMs) // Mbit/s, by millisecond
	sum := 0.0
	for step := range steps {
		if a.reallocS > 0 && step%int(a.reallocS*1000/stepMs) == 0 {
			level = a.slow * r.NormFloat64()
		} else {
			level = float64(keep*level) + float64(a.slow*math.Sqrt(1-keep*keep)*r.NormFloat64())
		}
		rate := math.Exp(level + a.fast*r.NormFloat64())
		for ms := range stepMs {
			if paused == 0 && a.pauseEvery > 0 && r.Float64() < 0.001/a.pauseEvery {
				paused = 1 + int(a.pauseS*1000*r.ExpFloat64())
			}
			if paused > 0 {
				paused--
				continue
			}
			rates[step*stepMs+ms] = rate
			sum += rate
		}
	}
	return opportunities(rates, meanMbps*float64(len(rates))/sum)
}

// opportunities turns a rate by millisecond, times scale, into delivery opportunities of 1500 bytes.
func opportunities(mbps []float64, scale float64) []int64 {
	var ms []int64
	credit := 0.0
	for i, rate := range mbps {
		credit += float64(rate*scale) * 1000 / 8 / link.OpportunityBytes
		for ; credit >= 1; credit-- {
			ms = append(ms, int64(i+1))
		}
	}
	if last := int64(len(mbps)); len(ms) == 0 || ms[len(ms)-1] != last {
		ms = append(ms, last) // the last number is the period
	}
	return ms
}

// wireless is a path over an access network to a server.
type wireless struct {
	model    *access
	recorded string  // file among Traces
	meanMbps float64 // recorded ones are scaled to it
	rttMs    float64 // base
	loss     float64
}

// meanCapacity is the goodput that the path could carry if no opportunity were missed.
func (w *wireless) meanCapacity() float64 { return capacity(w.meanMbps, w.loss) }

// traceSeconds is how long generated traces are before they repeat.
const traceSeconds = 60

// wirelessPaths is an MPTCP connection, or with plain a single-path flow on one of the paths, over access networks; their capacity is
// filled in by vary. background competes on each path.
func wirelessPaths(paths []wireless, flow netsim.Flow, background netsim.Background) netsim.Scenario {
	var specs []link.Spec
	for _, w := range paths {
		specs = append(specs, link.Spec{DelayMs: w.rttMs / 2, Loss: w.loss, QueueBytes: max(int(w.model.queueBDP*float64(link.BDP(w.meanMbps, w.rttMs))), 16*1500),
			TraceMs: even(w.meanMbps)})
	}
	return netsim.Bottlenecks(specs, flow, background)
}

// even is a second of capacity without variation: what stands in a Scenario before its seed is known.
func even(mbps float64) []int64 { return opportunities(slices.Repeat([]float64{mbps}, 1000), 1) }

// steadyLinks marks cells over steadyPaths; steady is that of the proposed scheme.
const (
	steadyLinks = ", steady links"
	steady      = proposed + steadyLinks
)

// steadyPaths are wirelessPaths whose capacity is always the mean.
func steadyPaths(paths []wireless, flow netsim.Flow) netsim.Scenario {
	s := wirelessPaths(paths, flow, netsim.Background{})
	for i := range paths {
		s.Links[i].TraceMs, s.Links[i].RateMbps = nil, paths[i].meanMbps
	}
	return s
}

// weather gives every path of a seed its own capacity over time, the same for all protocols, and staggers the starts.
func weather(m Mode, paths []wireless) func(*netsim.Scenario, uint64) {
	return func(s *netsim.Scenario, seed uint64) {
		for i := range paths {
			w := &paths[i]
			r := link.Stream(seed, "capacity of "+w.model.name)
			if rates := m.Traces.rates(w.recorded); rates != nil {
				turned := turn(rates, r.IntN(len(rates)))
				s.Links[i].TraceMs = opportunities(turned, w.meanMbps*float64(len(turned))/sumOf(turned))
				continue
			}
			s.Links[i].TraceMs = w.model.generate(w.meanMbps, traceSeconds, r)
		}
		stagger(s, seed)
	}
}

// turn lets a recording begin somewhere else.
func turn(v []float64, at int) []float64 {
	return append(append(make([]float64, 0, len(v)), v[at:]...), v[:at]...)
}

func sumOf(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum
}
