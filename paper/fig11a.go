package paper

import (
	"fmt"

	"braid/experiment"
	"braid/link"
	"braid/netsim"
)

// asymmetric are the schedulers of Fig. 11, the paper's first.
var asymmetric = []string{"arp", "arp-paper", "minrtt", "roundrobin", "blest", "ecf"}

// fig11a is Fig. 11(a): the out-of-order queue against the difference of the paths.
func fig11a() Figure {
	rtts := []float64{50, 100, 150, 200, 250}
	cell := func(scheduler string, rtt float64) string { return fmt.Sprintf("%s, 50/%v ms", scheduler, rtt) }
	return Figure{
		ID:    "fig11a",
		Title: "Out-of-order queue in asymmetric networks",
		Claim: "With equal RTTs the schedulers' out-of-order queues are similar. At 50/100 ms those of minRTT and Round-Robin have grown by over 300 % and are much longer than AR&P's; at 50/250 ms AR&P's is 65 % below them.",
		Setup: "Two paths of 20 Mbit/s without background, RTT 50 ms on path 1 and 50 to 250 ms on path 2, Coupled BBR, which takes up to fifty round trips to claim paths that nobody else uses (left out). The queue is sampled at every arrival. AR&P is this project's default; the one as published stands beside it.",
		Cells: func(m Mode) []experiment.Cell {
			var cells []experiment.Cell
			for _, rtt := range rtts {
				for _, name := range asymmetric {
					specs := []link.Spec{netsim.Bottleneck(20, 25, 0), netsim.Bottleneck(20, rtt/2, 0)}
					scenario := bottlenecks(specs, "coupledbbr", name, 0)
					scenario.DurationS, scenario.WarmupS = pick(m, 60.0, 30), pick(m, 20.0, 15)
					cells = append(cells, experiment.Cell{Name: cell(name, rtt), Scenario: scenario, Seeds: m.seeds(8, quickSeeds(name)), Vary: stagger})
				}
			}
			return cells
		},
		Judge: func(_ Mode, d *Data) *Findings {
			f := &Findings{}
			queue := Chart{Name: "queue", Title: "Fig. 11(a): out-of-order queue", Kind: Bars, X: "RTT of path 2 (ms), path 1: 50 ms", Y: "mean out-of-order queue (packets)"}
			good := Chart{Name: "goodput", Title: "Fig. 11(a): goodput beside it", Kind: Bars, X: queue.X, Y: "goodput (Mbit/s)", Limit: 2 * capacity(20, 0), LimitName: "capacity"}
			t := Table{Name: "queue", Title: "Mean out-of-order queue (packets) and goodput (Mbit/s)", Header: []string{"scheduler"}}
			for _, rtt := range rtts {
				queue.Categories = append(queue.Categories, fmt.Sprint(rtt))
				t.Header = append(t.Header, fmt.Sprintf("50/%v ms", rtt), "goodput")
			}
			good.Categories = queue.Categories
			for _, name := range asymmetric {
				q, g, row := Series{Name: label(name)}, Series{Name: label(name)}, []string{label(name)}
				for _, rtt := range rtts {
					c := cell(name, rtt)
					q.bar(d.mean(c, disorder))
					g.bar(d.mean(c, goodput))
					row = append(row, d.mean(c, disorder).String(), d.mean(c, goodput).String())
				}
				queue.Series, good.Series, t.Rows = append(queue.Series, q), append(good.Series, g), append(t.Rows, row)
			}
			f.Charts, f.Tables = []Chart{queue, good}, []Table{t}
			judgeAsymmetry(f, d, cell)
			return f
		},
	}
}

// quickSeeds spends quick runs on the schedulers that the claim is about.
func quickSeeds(scheduler string) int {
	switch scheduler {
	case "arp", "minrtt", "roundrobin":
		return 2
	}
	return 1
}

func judgeAsymmetry(f *Findings, d *Data, cell func(string, float64) string) {
	queue := func(name string, rtt float64) []float64 { return d.values(cell(name, rtt), disorder) }
	good := func(name string, rtt float64) []float64 { return d.values(cell(name, rtt), goodput) }
	for _, other := range []string{"minrtt", "roundrobin"} {
		f.atMost("AR&P's queue / "+label(other)+"'s at 50/50 ms", experiment.Mean(ratios(queue("arp", 50), queue(other, 50))), "", 1.1)
		f.atLeast(label(other)+"'s queue at 50/100 ms / at 50/50 ms", experiment.Mean(ratios(queue(other, 100), queue(other, 50))), "", 4)
		f.atMost("AR&P's queue / "+label(other)+"'s at 50/100 ms", experiment.Mean(ratios(queue("arp", 100), queue(other, 100))), "", 0.5)
		f.atMost("AR&P's queue / "+label(other)+"'s at 50/250 ms", experiment.Mean(ratios(queue("arp", 250), queue(other, 250))), "", 0.2)
		f.atLeast("AR&P's goodput / "+label(other)+"'s at 50/250 ms", experiment.Mean(ratios(good("arp", 250), good(other, 250))), "", 0.98)
	}
	published := experiment.Mean(ratios(queue("arp-paper", 250), queue("minrtt", 250)))
	lost := experiment.Mean(ratios(good("arp-paper", 250), good("minrtt", 250)))
	f.note("AR&P as published, at 50/250 ms: queue / minRTT's %v, goodput / minRTT's %v. The claim of 65 %% asks for at most 0.35; this project asks 0.2 of its own, without loss of goodput.", published, lost)
}
