package paper

import (
	"braid/experiment"
	"braid/link"
)

// fig17a is Fig. 17(a): throughput against random loss over three paths.
func fig17a() Figure {
	s := &sweepFigure{x: "loss (%)", specs: func(x float64) []link.Spec { return threeSpecs(100, 20, x/100) },
		points: func(m Mode) []float64 {
			return pick(m, []float64{0, 0.01, 0.05, 0.1, 0.2, 0.5}, []float64{0, 0.1, 0.5})
		}}
	return Figure{
		ID:    "fig17a",
		Title: "Three paths: throughput against loss",
		Claim: "Without loss all use the links well. As loss grows Coupled BBR hardly declines; LIA, OLIA and BALIA decline sharply.",
		Setup: "Three bottlenecks of 100 Mbit/s, 20 ms one way, random loss as given; one background flow on each (BBR beside Coupled BBR, NewReno beside the others).",
		Cells: s.cells,
		Judge: func(m Mode, d *Data) *Findings {
			f := &Findings{}
			charts, table := s.draw(m, d, "Fig. 17(a)")
			f.Charts, f.Tables = charts, []Table{table}
			for _, a := range threeNames {
				f.atLeast("utilisation without loss, "+label(a), experiment.Mean(s.utilisation(d, a, 0)), "", 0.85)
			}
			f.atLeast("Coupled BBR at 0.5 % / without loss", s.decline(d, "coupledbbr", 0, 0.5), "", 0.85)
			f.atLeast("utilisation at 0.5 %, Coupled BBR", experiment.Mean(s.utilisation(d, "coupledbbr", 0.5)), "", 0.85)
			for _, a := range coupledNames {
				f.atMost(label(a)+" at 0.5 % / without loss", s.decline(d, a, 0, 0.5), "", 0.5)
			}
			return f
		},
	}
}
