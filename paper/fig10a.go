package paper

import (
	"fmt"
	"slices"

	"braid/experiment"
	"braid/link"
	"braid/netsim"
)

// changing are the schedulers of Fig. 10.
var changing = []string{"arp", "roundrobin", "redundant", "minrtt"}

// changingWindow is the receive window of Fig. 10: twice the bandwidth-delay product of both paths while they are good.
var changingWindow = 2 * int64(link.BDP(2*20, 50))

// unlimited marks cells whose receive window is tuned without bound.
const unlimited = ", any window"

// pathOneOnly is the cell that says what the surviving path sustains.
const pathOneOnly = "path 1 alone"

// changingCells runs the schedulers over two paths of 20 Mbit/s and 50 ms, the second with changes in both directions, and one
// subflow over the first path alone.
func changingCells(forward, back []link.Change, seconds float64, seeds int) []experiment.Cell {
	specs := []link.Spec{netsim.Bottleneck(20, 25, 0), netsim.Bottleneck(20, 25, 0)}
	specs[1].Changes = forward
	keep := keepOf(experiment.Keep{Goodput: true, Throughput: true, OutOfOrder: true})
	var cells []experiment.Cell
	add := func(name string, s netsim.Scenario, window int64) {
		s.DurationS, s.WarmupS, s.BinMs = seconds, 0, 20
		s.Flows = slices.Clone(s.Flows)
		s.Flows[0].ReceiveBufferBytes, s.Flows[0].FixedReceiveWindow = window, window > 0
		cells = append(cells, experiment.Cell{Name: name, Scenario: s, Seeds: seeds, Keep: keep, Vary: stagger, Measure: roles{}})
	}
	for _, name := range changing {
		s := bottlenecks(specs, "coupledbbr", name, 0)
		s.Links = append(s.Links, netsim.Medium{Name: "back 2", Spec: link.Spec{DelayMs: specs[1].DelayMs, Changes: back}})
		s.Paths[1].Reverse = []string{"back 2"}
		add(name, s, changingWindow)
		add(name+unlimited, s, 0)
	}
	add(pathOneOnly, bottlenecks(specs[:1], "coupledbbr", "minrtt", 0), changingWindow)
	return cells
}

// everyChanging are the cells of the schedulers: with the window of the experiment, then with any.
func everyChanging() []string {
	names := slices.Clone(changing)
	for _, name := range changing {
		names = append(names, name+unlimited)
	}
	return names
}

// recovery is how long after a fault the goodput is back at 90 % of what the surviving path sustains: the start of the first 500 ms
// that have as much, and the two seconds after it too. Never is the rest of the run.
func recovery(r *netsim.Result, faultS, sustained float64) float64 {
	series := goodputSeries(r)
	end := float64(len(series)) * r.BinS
	for t := faultS; t+2 <= end; t += r.BinS {
		if span(r.BinS, series, t, t+0.5) >= 0.9*sustained && span(r.BinS, series, t, t+2) >= 0.9*sustained {
			return t - faultS
		}
	}
	return end - faultS
}

// recovered is recovery by seed, against what path 1 alone sustains in the same time.
func (d *Data) recovered(cell string, faultS, toS float64) []float64 {
	sustained := d.mean(pathOneOnly, goodputBetween(faultS, toS)).Mean
	return d.values(cell, func(r *netsim.Result) float64 { return recovery(r, faultS, sustained) })
}

// recoveries is the mean of recovered.
func (d *Data) recoveries(cell string, faultS, toS float64) experiment.Interval {
	return experiment.Mean(d.recovered(cell, faultS, toS))
}

// changingChart shows goodput over time, in steps of 200 ms.
func changingChart(d *Data, title string, marks ...Mark) Chart {
	c := Chart{Name: "goodput", Title: title, Kind: Lines, X: "time (s)", Y: "goodput (Mbit/s)", Marks: marks}
	for _, name := range changing {
		bin, values := d.meanSeries(name, goodputSeries)
		c.Series = append(c.Series, overTime(label(name), bin*10, smooth(values, 10)))
	}
	return c
}

// fig10a is Fig. 10(a): one of two paths dies.
func fig10a() Figure {
	const fault, end = 15.0, 22.0
	dead := []link.Change{{AtS: fault, Down: ptr(true)}}
	return Figure{
		ID:    "fig10a",
		Title: "A path dies",
		Claim: "While both paths are good, AR&P adds them up, and Redundant is flat and low. When one dies, AR&P recovers much faster than Round-Robin.",
		Setup: fmt.Sprintf("Two paths of 20 Mbit/s and 50 ms round trip without background; both directions of path 2 fall silent at %v s. Coupled BBR under each scheduler; the receive window is twice the bandwidth-delay product. Recovered is when the goodput is back at 90 %% of what a subflow alone on path 1 has, over the next 500 ms and the next 2 s.", fault),
		Cells: func(m Mode) []experiment.Cell { return changingCells(dead, dead, end, m.seeds(10, 2)) },
		Judge: func(_ Mode, d *Data) *Findings {
			f := &Findings{Charts: []Chart{changingChart(d, "Fig. 10(a): path 2 dies at 15 s", Mark{fault, "path 2 dies"})}}
			t := Table{Name: "recovery", Title: "Goodput (Mbit/s) and time to recover (s)", Header: []string{"scheduler", "goodput 5-15 s", "goodput 16-22 s", "recovered after"}}
			for _, name := range everyChanging() {
				t.Rows = append(t.Rows, []string{label(name), d.mean(name, goodputBetween(5, fault)).String(), d.mean(name, goodputBetween(fault+1, end)).String(), d.recoveries(name, fault, end).String()})
			}
			f.Tables = []Table{t}
			before := d.values("arp", goodputBetween(5, fault))
			sum := 2 * capacity(20, 0)
			f.atLeast("AR&P's goodput before the fault / the two links' capacity", experiment.Mean(scaled(before, 1/sum)), "", 0.97)
			f.atMost("AR&P recovers after", d.recoveries("arp", fault, end), "s", 0.5)
			f.atMost("AR&P's recovery less Round-Robin's", experiment.Mean(differences(d.recovered("arp", fault, end), d.recovered("roundrobin", fault, end))), "s", 0)
			flat := ratios(d.values("redundant", goodputBetween(fault+1, end)), d.values("redundant", goodputBetween(5, fault)))
			f.atLeast("Redundant after the fault / before", experiment.Mean(flat), "", 0.9)
			f.atMost("Redundant before the fault / AR&P", experiment.Mean(ratios(d.values("redundant", goodputBetween(5, fault)), before)), "", 0.6)
			return f
		},
	}
}
