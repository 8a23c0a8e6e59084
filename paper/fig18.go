package paper

import (
	"braid/experiment"
	"braid/link"
	"braid/netsim"
)

// fig18 is Fig. 18: loss that grows over time on three paths.
func fig18() Figure {
	const begin, full, end = 10.0, 30.0, 40.0
	between := func(fromS, toS float64) func(*netsim.Result) float64 {
		return func(r *netsim.Result) float64 { return span(r.BinS, throughputSeries(r), fromS, toS) }
	}
	return Figure{
		ID:    "fig18",
		Title: "Three paths: loss that grows",
		Claim: "As loss grows from 0.01 % to 1 % between 10 s and 30 s, LIA, OLIA and BALIA lose most of their throughput; Coupled BBR keeps it.",
		Setup: "As Fig. 17(a), loss linear in time.",
		Cells: func(m Mode) []experiment.Cell {
			specs := threeSpecs(100, 20, 1e-4)
			for i := range specs {
				specs[i].Changes = []link.Change{{AtS: begin, OverS: full - begin, Loss: ptr(0.01)}}
			}
			var cells []experiment.Cell
			for _, a := range threeNames {
				s := bottlenecks(specs, a, "minrtt", 1)
				s.DurationS, s.BinMs = pick(m, end, 34), 200
				cells = append(cells, experiment.Cell{Name: a, Scenario: s, Seeds: m.seeds(5, 1), Vary: stagger, Keep: keepOf(experiment.Keep{Throughput: true})})
			}
			return cells
		},
		Judge: func(_ Mode, d *Data) *Findings {
			f := &Findings{}
			chart := Chart{Name: "throughput", Title: "Fig. 18: loss grows from 10 s to 30 s", Kind: Lines, X: "time (s)", Y: "throughput (Mbit/s)", Marks: []Mark{{begin, "0.01 %"}, {full, "1 %"}}}
			t := Table{Name: "throughput", Title: "Throughput (Mbit/s)", Header: []string{"algorithm", "5-10 s", "10-20 s", "20-30 s", "from 30 s"}}
			for _, a := range threeNames {
				bin, values := d.meanSeries(a, throughputSeries)
				chart.Series = append(chart.Series, overTime(label(a), bin*5, smooth(values, 5)))
				t.Rows = append(t.Rows, []string{label(a), d.mean(a, between(5, begin)).String(), d.mean(a, between(begin, 20)).String(), d.mean(a, between(20, full)).String(), d.mean(a, between(full, end)).String()})
				kept := experiment.Mean(ratios(d.values(a, between(full, end)), d.values(a, between(5, begin))))
				if a == "coupledbbr" {
					f.atLeast(label(a)+" from 30 s on / 5-10 s", kept, "", 0.8)
				} else {
					f.atMost(label(a)+" from 30 s on / 5-10 s", kept, "", 0.5)
				}
			}
			f.Charts, f.Tables = []Chart{chart}, []Table{t}
			return f
		},
	}
}
