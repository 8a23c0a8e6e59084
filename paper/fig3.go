package paper

import (
	"fmt"

	"braid/experiment"
	"braid/link"
	"braid/netsim"
)

// fig3 is Fig. 3: the distribution of RTTs.
func fig3() Figure {
	return Figure{
		ID:    "fig3",
		Title: "Distribution of RTTs",
		Claim: "BBR's RTTs lie around 55 ms; half of the others' lie around 85 ms, on the path without random loss, whose buffer they fill.",
		Setup: "As Table I, with loss 0 and 0.01 % on the paths; base RTT 50 ms, buffers of one bandwidth-delay product (a full one adds 50 ms), and of two. The test is that BBR's median on the loss-free path is below the others'.",
		Cells: func(m Mode) []experiment.Cell {
			var cells []experiment.Cell
			for _, buffer := range rttBuffers {
				specs := []link.Spec{netsim.Bottleneck(100, 25, 0), netsim.Bottleneck(100, 25, 1e-4)}
				specs[0].QueueBDP, specs[1].QueueBDP = buffer, buffer
				for _, a := range uncoupledToo {
					cells = append(cells, experiment.Cell{Name: rttCell(a, buffer), Scenario: bottlenecks(specs, a, "minrtt", 2).During(pick(m, 60.0, 24*buffer)),
						Seeds: m.seeds(8, 1), Vary: stagger, Keep: keepOf(experiment.Keep{Percentile: true})})
				}
			}
			return cells
		},
		Judge: judgeRTTs,
	}
}

// rttBuffers are the bottlenecks' buffers in bandwidth-delay products.
var rttBuffers = []float64{1, 2}

func rttCell(algorithm string, buffer float64) string {
	return fmt.Sprintf("%s, %v BDP", algorithm, buffer)
}

// rttPercentile is a percentile of the RTTs over path i.
func rttPercentile(i, percentile int) func(*netsim.Result) float64 {
	return func(r *netsim.Result) float64 {
		p := r.Flow(multipath).Subflow(netsim.PathName(i)).RTTPercentilesMs
		if len(p) == 0 {
			return 0
		}
		return p[percentile]
	}
}

// rttCDF is the distribution of RTTs of runs, each path's weighted by what it carried.
func rttCDF(name string, results []*netsim.Result, paths ...int) Series {
	const parts = 200
	var samples []float64
	for _, r := range results {
		sum := 0.0
		for _, i := range paths {
			sum += subflow(i)(r)
		}
		for _, i := range paths {
			p := r.Flow(multipath).Subflow(netsim.PathName(i)).RTTPercentilesMs
			n := int(parts*subflow(i)(r)/sum + 0.5)
			for k := range n {
				if len(p) > 0 {
					samples = append(samples, p[(2*k+1)*(len(p)-1)/(2*n)])
				}
			}
		}
	}
	return cdf(name, samples)
}

func judgeRTTs(_ Mode, d *Data) *Findings {
	f := &Findings{}
	t := Table{Name: "rtt", Title: "RTT (ms), mean of runs", Header: []string{"buffer", "algorithm", "path 1 (0), median", "95th percentile", "path 2 (0.01 %), median", "95th percentile"}}
	for _, buffer := range rttBuffers {
		both := Chart{Name: fmt.Sprintf("rtt-%vbdp", buffer), Title: fmt.Sprintf("Fig. 3: RTTs of the connection, buffers of %v BDP", buffer), Kind: CDF, X: "RTT (ms)", Y: "share of samples"}
		for _, a := range uncoupledToo {
			c := rttCell(a, buffer)
			both.Series = append(both.Series, rttCDF(label(a), d.results(c), 1, 2))
			t.Rows = append(t.Rows, []string{fmt.Sprintf("%v BDP", buffer), label(a), d.mean(c, rttPercentile(1, 50)).String(), d.mean(c, rttPercentile(1, 95)).String(),
				d.mean(c, rttPercentile(2, 50)).String(), d.mean(c, rttPercentile(2, 95)).String()})
		}
		f.Charts = append(f.Charts, both)
		bbr := d.values(rttCell("bbr", buffer), rttPercentile(1, 50))
		for _, a := range uncoupledToo[:4] {
			f.atMost(fmt.Sprintf("BBR's median RTT on the loss-free path / %s's, buffers of %v BDP", label(a), buffer),
				experiment.Mean(ratios(bbr, d.values(rttCell(a, buffer), rttPercentile(1, 50)))), "", 1)
		}
		f.note("The paper's 55 ms: with buffers of %v BDP ours is %v ms on the loss-free path. Three BBR flows, each allowed twice its bandwidth-delay product, hold a standing queue of one such product if the buffer has room for it.",
			buffer, experiment.Mean(bbr))
	}
	f.Tables = []Table{t}
	return f
}
