package paper

import (
	"fmt"

	"braid/experiment"
	"braid/link"
	"braid/netsim"
)

// fig9b is Fig. 9(b): Coupled BBR over paths of different RTT.
func fig9b() Figure {
	var cases []pairCase
	for _, rtt := range []float64{50, 100, 150, 250} {
		cases = append(cases, pairCase{fmt.Sprintf("50/%v", rtt), []link.Spec{netsim.Bottleneck(20, 25, 0), netsim.Bottleneck(20, rtt/2, 0)}})
	}
	return Figure{
		ID:    "fig9b",
		Title: "Coupled BBR over paths of different RTT",
		Claim: "As the RTTs move apart, the total falls only slightly and stays fair to BBR flows, and each subflow keeps the same proportion of the data.",
		Setup: "As Fig. 8(a), 20 Mbit/s each, without loss, RTTs as given (ms).",
		Cells: func(m Mode) []experiment.Cell { return pairCells(m, cases, 1, m.seeds(8, 3)) },
		Judge: func(_ Mode, d *Data) *Findings {
			f := &Findings{}
			chart, table := pairChart(d, cases, "throughput", "Fig. 9(b): Coupled BBR over different RTTs", "RTTs (ms)")
			f.Charts, f.Tables = []Chart{chart}, []Table{table}
			for _, k := range cases {
				f.between("total / one BBR on the best path, "+k.name, d.fairness(k.name), "", fairLow, fairHigh)
				f.atLeast("the smaller subflow's share, "+k.name, d.mean(k.name, func(r *netsim.Result) float64 { return min(share(1)(r), share(2)(r)) }), "", 0.25)
			}
			first, last := cases[0].name, cases[len(cases)-1].name
			f.atLeast("total at "+last+" / at "+first, experiment.Mean(ratios(d.values(last, total), d.values(first, total))), "", 0.8)
			return f
		},
	}
}
