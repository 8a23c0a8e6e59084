package paper

import (
	"fmt"
	"slices"

	"braid/experiment"
	"braid/link"
	"braid/netsim"
)

// uncoupledToo are the algorithms of Table I and Fig. 3.
var uncoupledToo = []string{"lia", "olia", "balia", "cubic", "bbr"}

// settling is how long quick runs take: BBR flows need a minute to come to terms.
func settling(algorithm string) float64 {
	if algorithm == "bbr" || algorithm == "cubic" {
		return 60
	}
	return 24
}

// quickRuns is how many seeds quick runs have: more where who comes first matters more.
func quickRuns(algorithm string) int {
	if algorithm == "bbr" || algorithm == "cubic" {
		return 4
	}
	return 2
}

// table1 is Table I: what random loss does to each algorithm.
func table1() Figure {
	specs := []link.Spec{netsim.Bottleneck(100, 25, 1e-4), netsim.Bottleneck(100, 25, 1e-3)}
	return Figure{
		ID:    "table1",
		Title: "Throughput under a little random loss",
		Claim: "With 0.01 % and 0.1 % of random loss on the two paths, the loss-based algorithms stay far below what is available, CUBIC best among them; BBR gets the most.",
		Setup: "Two bottlenecks of 100 Mbit/s, 25 ms one way, loss 0.01 % and 0.1 %; on each, two background flows with the same algorithm (NewReno for the coupled loss-based ones).",
		Cells: func(m Mode) []experiment.Cell {
			var cells []experiment.Cell
			for _, a := range uncoupledToo {
				cells = append(cells, experiment.Cell{Name: a, Scenario: bottlenecks(specs, a, "minrtt", 2).During(pick(m, 90.0, settling(a))),
					Seeds: m.seeds(8, quickRuns(a)), Vary: stagger})
			}
			return cells
		},
		Judge: func(_ Mode, d *Data) *Findings {
			f := &Findings{}
			t := Table{Name: "throughput", Title: "Throughput (Mbit/s), mean and 95 % interval", Header: []string{"algorithm", "subflow 1 (0.01 %)", "subflow 2 (0.1 %)", "total", "one background flow, path 1", "path 2"}}
			chart := Chart{Name: "throughput", Title: "Table I: throughput by subflow", Kind: Bars, X: "congestion control", Y: "throughput (Mbit/s)",
				Series: []Series{{Name: "subflow 1 (0.01 % loss)", Group: 1}, {Name: "subflow 2 (0.1 % loss)", Group: 1}}}
			// Available is what an ideal algorithm would take of two bottlenecks that it shares with two others each.
			available := (capacity(100, 1e-4) + capacity(100, 1e-3)) / 3
			chart.Limit, chart.LimitName = available, "a third of each link"
			for _, a := range uncoupledToo {
				chart.Categories = append(chart.Categories, label(a))
				one, two, all := d.mean(a, subflow(1)), d.mean(a, subflow(2)), d.mean(a, total)
				chart.Series[0].bar(one)
				chart.Series[1].bar(two)
				t.Rows = append(t.Rows, []string{label(a), one.String(), two.String(), all.String(), d.mean(a, onPath(1)).String(), d.mean(a, onPath(2)).String()})
			}
			f.Charts, f.Tables = []Chart{chart}, []Table{t}
			totals := func(a string) []float64 { return d.values(a, total) }
			for _, a := range []string{"lia", "olia", "balia", "cubic"} {
				used := experiment.Mean(ratios(totals(a), slices.Repeat([]float64{available}, len(totals(a)))))
				f.atMost(fmt.Sprintf("%s's total / a third of each link", label(a)), used, "", 0.75)
			}
			for _, a := range coupledNames {
				f.atLeast(fmt.Sprintf("CUBIC's total / %s's", label(a)), experiment.Mean(ratios(totals("cubic"), totals(a))), "", 1)
			}
			f.atLeast("BBR's total / CUBIC's", experiment.Mean(ratios(totals("bbr"), totals("cubic"))), "", 1)
			return f
		},
	}
}
