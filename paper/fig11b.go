package paper

import (
	"fmt"

	"braid/experiment"
	"braid/link"
	"braid/netsim"
)

// fig11b is Fig. 11(b): the out-of-order queue over time.
func fig11b() Figure {
	specs := []link.Spec{netsim.Bottleneck(20, 75, 0), netsim.Bottleneck(20, 25, 0)}
	names := []string{"arp", "arp-paper", "minrtt", "roundrobin"}
	const after = 2.0
	return Figure{
		ID:    "fig11b",
		Title: "Out-of-order queue over time",
		Claim: "In the first two seconds, while subflows start, every scheduler's queue is long; then AR&P's stays much shorter and empties again and again.",
		Setup: "As Fig. 11(a), RTTs of 150 and 50 ms. Much shorter is half at most. Empty is a step of 50 ms with less than one packet in the mean over its arrivals.",
		Cells: func(m Mode) []experiment.Cell {
			var cells []experiment.Cell
			for _, name := range names {
				s := bottlenecks(specs, "coupledbbr", name, 0)
				s.DurationS, s.BinMs = 10, 50
				cells = append(cells, experiment.Cell{Name: name, Scenario: s, Seeds: m.seeds(10, 3), Vary: stagger, Keep: keepOf(experiment.Keep{OutOfOrder: true, Goodput: true})})
			}
			return cells
		},
		Judge: func(_ Mode, d *Data) *Findings {
			f := &Findings{}
			chart := Chart{Name: "queue", Title: "Fig. 11(b): out-of-order queue, RTTs 150/50 ms (one run)", Kind: Lines, X: "time (s)", Y: "out-of-order queue (packets)"}
			t := Table{Name: "queue", Title: "Out-of-order queue after 2 s", Header: []string{"scheduler", "mean (packets)", "share of time empty", "goodput (Mbit/s)"}}
			queue := func(r *netsim.Result) float64 { return span(r.BinS, disorderSeries(r), after, r.DurationS) }
			empty := func(r *netsim.Result) float64 {
				all := disorderSeries(r)[int(after/r.BinS):]
				n := 0.0
				for _, v := range all {
					if v < 1 {
						n++
					}
				}
				return n / float64(len(all))
			}
			for _, name := range names {
				if r := d.results(name); len(r) > 0 {
					chart.Series = append(chart.Series, overTime(label(name), r[0].BinS, disorderSeries(r[0])))
				}
				t.Rows = append(t.Rows, []string{label(name), d.mean(name, queue).String(), d.mean(name, empty).String(), d.mean(name, goodputBetween(after, 10)).String()})
			}
			f.Charts, f.Tables = []Chart{chart}, []Table{t}
			for _, other := range []string{"minrtt", "roundrobin"} {
				f.atMost(fmt.Sprintf("AR&P's queue after 2 s / %s's", label(other)), experiment.Mean(ratios(d.values("arp", queue), d.values(other, queue))), "", 0.5)
				f.atLeast(fmt.Sprintf("AR&P's share of time empty less %s's", label(other)), experiment.Mean(differences(d.values("arp", empty), d.values(other, empty))), "", 0.2)
			}
			return f
		},
	}
}
