package paper

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"braid/experiment"
	"braid/link"
	"braid/netsim"
)

// fairCell is one cell of the fairness table: Coupled BBR beside BBR flows.
type fairCell struct {
	name     string
	specs    []link.Spec
	rivals   int  // BBR flows on each path
	shared   bool // all subflows cross one bottleneck
	quick    bool // part of quick runs
	balance  bool // check the smallest subflow's share: at least least
	least    float64
	together bool // no rivals: the total is compared with the sum of capacities
}

// fairPair is two paths; b's rate, delay and loss, and both buffers in bandwidth-delay products.
func fairPair(a, b, delayB, buffer, loss float64) []link.Spec {
	s := []link.Spec{netsim.Bottleneck(a, 25, 0), netsim.Bottleneck(b, delayB, loss)}
	s[0].QueueBDP, s[1].QueueBDP = buffer, buffer
	return s
}

// fairThree is three equal paths.
func fairThree(buffer float64) []link.Spec {
	s := append(fairPair(100, 100, 25, buffer, 0), netsim.Bottleneck(100, 25, 0))
	s[2].QueueBDP = buffer
	return s
}

// fairCells lists the table: equal paths by rivals, buffer and loss; three of them; unequal ones; one bottleneck for all; no rivals.
func fairCells() []fairCell {
	var cells []fairCell
	rivalries, buffers := []int{1, 2, 4}, []float64{0.5, 1, 2, 4}
	for _, n := range rivalries {
		for _, buffer := range buffers {
			for _, loss := range []float64{0, 1e-4, 1e-2} {
				cells = append(cells, fairCell{name: fmt.Sprintf("2 paths, %d rivals, %v BDP, loss %v %%", n, buffer, 100*loss), specs: fairPair(100, 100, 25, buffer, loss), rivals: n,
					balance: loss == 0, least: 0.4, quick: buffer == 1 && n <= 2 && loss == 0 || buffer == 0.5 && n == 2 && loss == 1e-2})
			}
		}
	}
	for _, n := range rivalries {
		for _, buffer := range buffers {
			cells = append(cells, fairCell{name: fmt.Sprintf("3 paths, %d rivals, %v BDP", n, buffer), specs: fairThree(buffer), rivals: n, balance: true, least: 0.2})
		}
		cells = append(cells,
			fairCell{name: fmt.Sprintf("100/50, %d rivals", n), specs: fairPair(100, 50, 25, 1, 0), rivals: n},
			fairCell{name: fmt.Sprintf("100/20, %d rivals", n), specs: fairPair(100, 20, 25, 1, 0), rivals: n},
			fairCell{name: fmt.Sprintf("20/20, RTT 50/150, %d rivals", n), specs: fairPair(20, 20, 75, 1, 0), rivals: n, balance: true, least: 0.25, quick: n == 2},
			fairCell{name: fmt.Sprintf("shared bottleneck, %d rivals", n), specs: []link.Spec{netsim.Bottleneck(100, 25, 0)}, rivals: n, shared: true, quick: n == 2})
	}
	return append(cells,
		fairCell{name: "alone, 100+100", specs: fairPair(100, 100, 25, 1, 0), together: true, quick: true},
		fairCell{name: "alone, 100+20", specs: fairPair(100, 20, 25, 1, 0), together: true},
		fairCell{name: "alone, RTT 50/150", specs: fairPair(100, 100, 75, 1, 0), together: true, quick: true},
		fairCell{name: "alone, three paths", specs: fairThree(1), together: true})
}

// scenario is the cell's network with the connection; with single a BBR flow on each path takes its place.
func (c *fairCell) scenario(single bool, rates float64) netsim.Scenario {
	specs := slices.Clone(c.specs)
	for i := range specs {
		specs[i].RateMbps *= rates
	}
	switch {
	case single:
		return alone(specs, "bbr", c.rivals)
	case !c.shared:
		return bottlenecks(specs, "coupledbbr", "arp", c.rivals)
	}
	s := bottlenecks(specs, "coupledbbr", "arp", c.rivals)
	s.Paths = append(s.Paths, netsim.Route{Name: netsim.PathName(2), Forward: s.Paths[0].Forward})
	s.Flows[0].Paths = append(s.Flows[0].Paths, netsim.PathName(2))
	return s
}

// starving measures how often a subflow is idle though its path is not: "starving" is the largest share over subflows of steps of a
// second after the warm-up in which it delivered under four packets per round trip.
type starving struct{}

// Name implements experiment.Measure.
func (starving) Name() string { return "starving" }

// Watch implements experiment.Measure.
func (starving) Watch(_ *netsim.Scenario, _ *netsim.Options) func(*netsim.Result) map[string]float64 {
	return func(r *netsim.Result) map[string]float64 {
		worst := 0.0
		perSecond := int(1/r.BinS + 0.5)
		for _, s := range r.Flow(multipath).Subflows {
			rates, rtts := smooth(s.Series.ThroughputMbps, perSecond), smooth(s.Series.SRTTMs, perSecond)
			starved, n := 0.0, 0.0
			for i := int(r.WarmupS + 0.5); i < min(len(rates), len(rtts)); i++ {
				n++
				if rates[i]*1e6/8*rtts[i]/1e3 < 4*1424 {
					starved++
				}
			}
			worst = max(worst, starved/max(n, 1))
		}
		return map[string]float64{"starving": worst}
	}
}

// The cells that are no BBR rivalry.
const (
	lossAlone   = "%s alone, 100+100"
	lossBeside  = "%s beside NewReno, 100+100"
	renoAlone   = "NewReno among NewReno, 100+100"
	freeCell    = "path 1 contended, path 2 free"
	stepsCell   = "100 to 20 to 100 Mbit/s"
	lateCell    = "rivals come at 40 s, %s"
	lateBBRCell = "rivals come at 40 s to one BBR, %s"
)

// fairness is this project's table of who gets what.
func fairness() Figure {
	return Figure{
		ID:    "fairness",
		Title: "Who gets what: fairness, balance, aggregation",
		Claim: "Beside BBR flows Coupled BBR takes in total what one of them would get on the best path (0.85 to 1.15), spreads it over equal paths, fills free paths (0.95 of their capacity), gives way to newcomers, and follows changes of capacity.",
		Setup: "100 Mbit/s, 25 ms one way, buffers of 1 BDP unless the cell says otherwise; rivals are BBR flows on each path. The ratio is the connection's total over the mean of one more BBR flow's in its place, on the best path. This table is this project's own; quick: few cells, a quarter of the rates.",
		Cells: fairnessCells,
		Judge: judgeFairness,
	}
}

func fairnessCells(m Mode) []experiment.Cell {
	rates, seeds := pick(m, 1, quickRates), m.seeds(8, 2)
	var cells []experiment.Cell
	add := func(name string, s netsim.Scenario, seeds int) {
		cells = append(cells, experiment.Cell{Name: name, Scenario: s, Seeds: seeds, Vary: stagger})
	}
	for _, c := range fairCells() {
		if m.Quick && !c.quick {
			continue
		}
		cells = append(cells, experiment.Cell{Name: c.name, Scenario: c.scenario(false, rates).During(pick(m, 90.0, 60)), Seeds: seeds, Vary: stagger, Measure: starving{}})
		if !c.together {
			add(c.name+", BBR", c.scenario(true, rates).During(30), pick(m, 2, 1))
		}
	}
	pair := func() []link.Spec {
		return []link.Spec{netsim.Bottleneck(100*rates, 25, 0), netsim.Bottleneck(100*rates, 25, 0)}
	}
	free := bottlenecks(pair(), "coupledbbr", "arp", 2)
	free.Flows = free.Flows[:3] // those of path 1 only
	add(freeCell, free.During(pick(m, 90.0, 60)), seeds)
	steps := bottlenecks(pair()[:1], "coupledbbr", "arp", 0)
	steps.Links[0].Changes = []link.Change{{AtS: 20, RateMbps: ptr(20 * rates)}, {AtS: 40, RateMbps: ptr(100 * rates)}}
	steps.DurationS, steps.BinMs = 60, 100
	cells = append(cells, experiment.Cell{Name: stepsCell, Scenario: steps, Seeds: seeds, Vary: stagger, Keep: keepOf(experiment.Keep{Goodput: true, RTT: true})})
	if m.Quick {
		return cells
	}
	for _, a := range coupledNames {
		add(fmt.Sprintf(lossAlone, label(a)), bottlenecks(pair(), a, "minrtt", 0).During(90), seeds)
		add(fmt.Sprintf(lossBeside, label(a)), bottlenecks(pair(), a, "minrtt", 1).During(90), seeds)
	}
	add(renoAlone, alone(pair(), "reno", 1).During(90), seeds)
	for _, rival := range []string{"bbr", "cubic"} {
		late := netsim.Bottlenecks(pair(), netsim.Flow{Name: multipath, Congestion: "coupledbbr", Scheduler: "arp"}, netsim.Background{Congestion: rival, PerPath: 1})
		single := netsim.Bottlenecks(pair()[:1], netsim.Flow{Name: multipath, Congestion: "bbr", PlainTCP: true}, netsim.Background{Congestion: rival, PerPath: 1})
		for i, s := range []*netsim.Scenario{&late, &single} {
			s.DurationS, s.WarmupS = 70, 50
			cells = append(cells, experiment.Cell{Name: fmt.Sprintf([]string{lateCell, lateBBRCell}[i], label(rival)), Scenario: *s, Seeds: seeds, Vary: lateRivals})
		}
	}
	return cells
}

// lateRivals lets everyone but the connection start at 40 s.
func lateRivals(s *netsim.Scenario, seed uint64) {
	stagger(s, seed)
	for i := range s.Flows[1:] {
		s.Flows[i+1].StartS += 40
	}
}

// meanRTT is the connection's, weighted by what its subflows carry.
func meanRTT(r *netsim.Result) float64 {
	sum := 0.0
	for _, s := range r.Flow(multipath).Subflows {
		sum += s.MeanRTTMs * s.ThroughputMbps
	}
	return sum / total(r)
}

// rivalRTT is the mean RTT of all single-path flows.
func rivalRTT(r *netsim.Result) float64 {
	sum, n := 0.0, 0.0
	for i := range r.Flows {
		if f := &r.Flows[i]; f.Name != multipath {
			sum += f.Subflows[0].MeanRTTMs
			n++
		}
	}
	return sum / n
}

// smallest is the smallest subflow's share.
func smallest(r *netsim.Result) float64 {
	least, all := math.Inf(1), total(r)
	for _, s := range r.Flow(multipath).Subflows {
		least = min(least, s.ThroughputMbps/all)
	}
	return least
}

func judgeFairness(m Mode, d *Data) *Findings {
	f := &Findings{}
	rates := pick(m, 1, quickRates)
	t := Table{Name: "cells", Title: "Every cell, mean and 95 % interval over seeds", Header: []string{"cell", "ratio to one BBR / to the sum of capacities", "spread (min to max)", "smallest subflow's share", "mean RTT / BBR's", "seconds under 4 packets a round"}}
	chart := Chart{Name: "ratio", Title: "Total / one BBR flow on the best path", Kind: Boxes, Y: "ratio", Series: []Series{{Name: "ratio"}}}
	var outside []string
	for _, c := range fairCells() {
		if len(d.results(c.name)) == 0 {
			continue
		}
		starved := experiment.Mean(d.measured(c.name, "starving"))
		if c.together {
			sum := 0.0
			for _, s := range c.specs {
				sum += capacity(s.RateMbps*rates, s.Loss)
			}
			v := scaled(d.values(c.name, goodput), 1/sum)
			t.Rows = append(t.Rows, []string{c.name, experiment.Mean(v).String(), extremes(v), d.mean(c.name, smallest).String(), "", starved.String()})
			f.atLeast(c.name+": goodput / sum of capacities", experiment.Mean(v), "", 0.95)
			continue
		}
		best := d.mean(c.name+", BBR", bestPath(len(c.specs))).Mean
		v := scaled(d.values(c.name, total), 1/best)
		rtt := experiment.Mean(scaled(d.values(c.name, meanRTT), 1/d.mean(c.name+", BBR", rivalRTT).Mean))
		t.Rows = append(t.Rows, []string{c.name, experiment.Mean(v).String(), extremes(v), d.mean(c.name, smallest).String(), rtt.String(), starved.String()})
		chart.Series[0].Samples, chart.Categories = append(chart.Series[0].Samples, v), append(chart.Categories, fmt.Sprint(len(chart.Categories)+1))
		f.between(c.name+": total / one BBR", experiment.Mean(v), "", fairLow, fairHigh)
		if c.balance {
			f.atLeast(c.name+": smallest subflow's share", d.mean(c.name, smallest), "", c.least)
		}
		if c.rivals == 2 && c.specs[0].QueueBDP <= 1 && !c.shared {
			f.atMost(c.name+": mean RTT / BBR's", rtt, "", 1.05)
		}
		if i := experiment.Mean(v).Mean; i < fairLow || i > fairHigh {
			outside = append(outside, fmt.Sprintf("%s (%.2f)", c.name, i))
		}
	}
	chart.X = "cell, in the order of the table"
	f.Charts, f.Tables = []Chart{chart}, []Table{t}
	f.note("%d of %d cells with rivals are outside %v to %v: %s.", len(outside), len(chart.Categories), fairLow, fairHigh, cmp.Or(strings.Join(outside, "; "), "none"))
	f.atLeast(freeCell+": share on the free path", d.mean(freeCell, share(2)), "", 0.75)
	judgeSteps(f, d, rates)
	if !m.Quick {
		judgeLossBased(f, d)
		judgeLate(f, d)
	}
	return f
}

// extremes writes the smallest and the largest value.
func extremes(v []float64) string {
	if len(v) == 0 {
		return "no data"
	}
	return fmt.Sprintf("%.2f to %.2f", slices.Min(v), slices.Max(v))
}

// judgeSteps judges the cell whose rate falls to a fifth and comes back.
func judgeSteps(f *Findings, d *Data, rates float64) {
	rtt := func(r *netsim.Result) float64 {
		return span(r.BinS, r.Flow(multipath).Subflows[0].Series.RTTMs, 24, 26)
	}
	f.atMost(stepsCell+": RTT 4 to 6 s after the fall", d.mean(stepsCell, rtt), "ms", 75)
	f.atLeast(stepsCell+": goodput 2 to 4 s after the rise / capacity", experiment.Mean(scaled(d.values(stepsCell, goodputBetween(42, 44)), 1/capacity(100*rates, 0))), "", 0.9)
}

// judgeLossBased judges LIA, OLIA and BALIA without loss.
func judgeLossBased(f *Findings, d *Data) {
	share := d.mean(renoAlone, bestPath(2)).Mean
	for _, a := range coupledNames {
		alone, beside := fmt.Sprintf(lossAlone, label(a)), fmt.Sprintf(lossBeside, label(a))
		f.atLeast(alone+": goodput / sum of capacities", experiment.Mean(scaled(d.values(alone, goodput), 1/(2*capacity(100, 0)))), "", 0.9)
		f.between(beside+": total / one NewReno on the best path", experiment.Mean(scaled(d.values(beside, total), 1/share)), "", 0.6, 1.3)
	}
}

// judgeLate judges what newcomers get 10 s after their start.
func judgeLate(f *Findings, d *Data) {
	for _, rival := range []string{"bbr", "cubic"} {
		rivals := func(n float64) func(*netsim.Result) float64 {
			return func(r *netsim.Result) float64 { return background(r) / n }
		}
		ours, single := d.values(fmt.Sprintf(lateCell, label(rival)), rivals(2)), d.mean(fmt.Sprintf(lateBBRCell, label(rival)), rivals(1)).Mean
		f.atLeast("late "+label(rival)+" rivals: what each gets / what it gets from one BBR", experiment.Mean(scaled(ours, 1/single)), "", 1)
	}
}
