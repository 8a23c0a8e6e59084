package paper

import (
	"fmt"

	"braid/experiment"
	"braid/link"
	"braid/netsim"
)

// fig9a is Fig. 9(a): Coupled BBR over paths of different bandwidth.
func fig9a() Figure {
	var cases []pairCase
	for _, b := range [][2]float64{{100, 100}, {100, 50}, {100, 20}, {50, 20}} {
		cases = append(cases, pairCase{fmt.Sprintf("%v/%v", b[0], b[1]), []link.Spec{netsim.Bottleneck(b[0], 25, 0), netsim.Bottleneck(b[1], 25, 0)}})
	}
	return Figure{
		ID:    "fig9a",
		Title: "Coupled BBR over paths of different bandwidth",
		Claim: "The total equals what one BBR flow gets on the best path, with more data on the better one.",
		Setup: "As Fig. 8(a), without loss, bandwidths as given (Mbit/s). Quick: a quarter of the rates.",
		Cells: func(m Mode) []experiment.Cell { return pairCells(m, cases, pick(m, 1, quickRates), m.seeds(8, 3)) },
		Judge: func(_ Mode, d *Data) *Findings {
			f := &Findings{}
			chart, table := pairChart(d, cases, "throughput", "Fig. 9(a): Coupled BBR over different bandwidths", "bandwidths (Mbit/s)")
			f.Charts, f.Tables = []Chart{chart}, []Table{table}
			for i, k := range cases {
				f.between("total / one BBR on the best path, "+k.name, d.fairness(k.name), "", fairLow, fairHigh)
				if i > 0 {
					f.atLeast("subflow 1's share, "+k.name, d.mean(k.name, share(1)), "", 0.5)
				}
			}
			return f
		},
	}
}
