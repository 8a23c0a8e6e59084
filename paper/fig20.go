package paper

import (
	"fmt"

	"braid/experiment"
	"braid/link"
	"braid/netsim"
)

// fig20 is Fig. 20: paths that get worse one after the other.
func fig20() Figure {
	const first, second, ramp, end = 10.0, 20.0, 5.0, 30.0
	specs := threeSpecs(100, 20, 1e-4)
	backs := []link.Spec{{}, {DelayMs: 20}, {DelayMs: 20}}
	for i, at := range map[int]float64{1: first, 2: second} {
		specs[i].Changes = []link.Change{{AtS: at, OverS: ramp, RateMbps: ptr(10.0), DelayMs: ptr(100.0), Loss: ptr(0.01)}}
		backs[i].Changes = []link.Change{{AtS: at, OverS: ramp, DelayMs: ptr(100.0)}}
	}
	queue := func(r *netsim.Result) float64 { return span(r.BinS, disorderSeries(r), first, end) }
	return Figure{
		ID:    "fig20",
		Title: "Three paths that get worse one after the other",
		Claim: "The loss-based algorithms have little goodput throughout. Coupled BBR with minRTT has more, and many packets out of order; with AR&P it has the most goodput and far fewer packets out of order while paths change.",
		Setup: "Three bottlenecks of 100 Mbit/s, 20 ms one way, 0.01 % loss, one background flow on each; path 2 goes to 10 Mbit/s, 100 ms, 1 % from 10 s to 15 s, path 3 from 20 s to 25 s (linearly, then staying so). Receive window of twice the bandwidth-delay product of the beginning. Averages from 10 s on.",
		Cells: func(m Mode) []experiment.Cell {
			var cells []experiment.Cell
			for _, scheme := range schemes {
				s := bottlenecks(specs, scheme.algorithm, scheme.scheduler, 1)
				for i := 1; i < 3; i++ {
					name := fmt.Sprintf("back %d", i+1)
					s.Links = append(s.Links, netsim.Medium{Name: name, Spec: backs[i]})
					s.Paths[i].Reverse = []string{name}
				}
				s.DurationS, s.BinMs = end, 200
				s.Flows[0].ReceiveBufferBytes, s.Flows[0].FixedReceiveWindow = int64(2*connectionBDP(specs)), true
				cells = append(cells, experiment.Cell{Name: scheme.name, Scenario: s, Seeds: m.seeds(8, 1), Vary: stagger, Keep: keepOf(experiment.Keep{Goodput: true, OutOfOrder: true})})
			}
			return cells
		},
		Judge: func(_ Mode, d *Data) *Findings {
			f := &Findings{}
			marks := []Mark{{first, "path 2"}, {second, "path 3"}}
			good := Chart{Name: "goodput", Title: "Fig. 20: goodput while paths get worse", Kind: Lines, X: "time (s)", Y: "goodput (Mbit/s)", Marks: marks}
			ofo := Chart{Name: "queue", Title: "Fig. 20: out-of-order packets while paths get worse", Kind: Lines, X: "time (s)", Y: "out-of-order queue (packets)", Marks: marks}
			t := Table{Name: "means", Title: "From 10 s on", Header: []string{"scheme", "goodput (Mbit/s)", "out-of-order queue (packets)", "goodput before"}}
			for _, s := range schemes {
				bin, g := d.meanSeries(s.name, goodputSeries)
				_, q := d.meanSeries(s.name, disorderSeries)
				good.Series = append(good.Series, overTime(s.name, bin*5, smooth(g, 5)))
				ofo.Series = append(ofo.Series, overTime(s.name, bin*5, smooth(q, 5)))
				t.Rows = append(t.Rows, []string{s.name, d.mean(s.name, goodputBetween(first, end)).String(), d.mean(s.name, queue).String(), d.mean(s.name, goodputBetween(3, first)).String()})
			}
			f.Charts, f.Tables = []Chart{good, ofo}, []Table{t}
			ours := d.values(theProposed, goodputBetween(first, end))
			for _, s := range schemes[:4] {
				f.atLeast("goodput from 10 s on, AR&P / "+s.name, experiment.Mean(ratios(ours, d.values(s.name, goodputBetween(first, end)))), "", 1)
			}
			f.atMost("out-of-order queue from 10 s on, AR&P / "+modernMinRTT, experiment.Mean(ratios(d.values(theProposed, queue), d.values(modernMinRTT, queue))), "", 0.5)
			return f
		},
	}
}
