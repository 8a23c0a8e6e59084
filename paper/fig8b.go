package paper

import (
	"braid/experiment"
	"braid/link"
	"braid/netsim"
)

// fig8b is Fig. 8(b): throughput over time with 1 % of loss on path 2.
func fig8b() Figure {
	specs := []link.Spec{netsim.Bottleneck(100, 25, 0), netsim.Bottleneck(100, 25, 1e-2)}
	return Figure{
		ID:    "fig8b",
		Title: "Coupled BBR over time at 1 % of loss",
		Claim: "With 1 % of loss on its path, subflow 2 still gets a useful throughput, and the rates fluctuate little.",
		Setup: "As Fig. 8(a), 1 % on path 2. Fluctuation is the coefficient of variation of throughput in steps of one second in the last two thirds. Quick: a quarter of the rates.",
		Cells: func(m Mode) []experiment.Cell {
			s := []link.Spec{specs[0], specs[1]}
			for i := range s {
				s[i].RateMbps *= pick(m, 1, quickRates)
			}
			return []experiment.Cell{{Name: "1 %", Scenario: bottlenecks(s, "coupledbbr", "arp", 2).During(60), Seeds: m.seeds(8, 2), Vary: stagger,
				Keep: keepOf(experiment.Keep{Throughput: true})}}
		},
		Judge: func(_ Mode, d *Data) *Findings {
			f := &Findings{}
			results := d.results("1 %")
			if len(results) > 0 {
				r := results[0]
				chart := Chart{Name: "throughput", Title: "Fig. 8(b): throughput over time, loss 0 and 1 % (one run)", Kind: Lines, X: "time (s)", Y: "throughput (Mbit/s)"}
				for i, name := range []string{"subflow 1 (0)", "subflow 2 (1 %)"} {
					chart.Series = append(chart.Series, overTime(name, r.BinS*5, smooth(r.Flow(multipath).Subflows[i].Series.ThroughputMbps, 5)))
				}
				chart.Series = append(chart.Series, overTime("total", r.BinS*5, smooth(throughputSeries(r), 5)))
				f.Charts = []Chart{chart}
			}
			f.atLeast("subflow 2's share of the throughput", d.mean("1 %", share(2)), "", 0.2)
			f.atMost("coefficient of variation of the total, by second", d.mean("1 %", fluctuation), "", 0.25)
			return f
		},
	}
}

// fluctuation is the coefficient of variation of the connection's throughput by second, after the warm-up.
func fluctuation(r *netsim.Result) float64 {
	perSecond := int(1/r.BinS + 0.5)
	all := smooth(throughputSeries(r), perSecond)
	return variation(all[min(int(r.WarmupS+0.5), len(all)):])
}
