package paper

import (
	"braid/experiment"
	"braid/link"
)

// fig17b is Fig. 17(b): throughput against delay over three paths.
func fig17b() Figure {
	s := &sweepFigure{x: "one-way delay (ms)", specs: func(x float64) []link.Spec { return threeSpecs(100, x, 5e-4) },
		points: func(m Mode) []float64 {
			return pick(m, []float64{2, 5, 10, 20, 50, 100}, []float64{2, 20, 100})
		}}
	return Figure{
		ID:    "fig17b",
		Title: "Three paths: throughput against delay",
		Claim: "With 0.05 % of loss and little delay, loss does not hurt. As delay grows LIA, OLIA and BALIA decline sharply, and Coupled BBR stays high.",
		Setup: "As Fig. 17(a), 0.05 % of loss, one-way delay as given.",
		Cells: s.cells,
		Judge: func(m Mode, d *Data) *Findings {
			f := &Findings{}
			charts, table := s.draw(m, d, "Fig. 17(b)")
			f.Charts, f.Tables = charts, []Table{table}
			for _, a := range threeNames {
				f.atLeast("utilisation at 2 ms, "+label(a), experiment.Mean(s.utilisation(d, a, 2)), "", 0.85)
			}
			f.atLeast("utilisation at 100 ms, Coupled BBR", experiment.Mean(s.utilisation(d, "coupledbbr", 100)), "", 0.85)
			f.atLeast("Coupled BBR at 100 ms / at 2 ms", s.decline(d, "coupledbbr", 2, 100), "", 0.6)
			for _, a := range coupledNames {
				f.atMost(label(a)+" at 100 ms / at 2 ms", s.decline(d, a, 2, 100), "", 0.5)
			}
			return f
		},
	}
}
