package paper

import (
	"fmt"
	"slices"

	"braid/experiment"
	"braid/netsim"
)

// fig14 is Fig. 14: servers far away.
func fig14() Figure {
	type region struct {
		name  string
		paths []wireless
	}
	var regions []region
	for _, r := range []struct{ rtt, loss float64 }{{150, 0.02}, {200, 0.01}, {300, 0.005}} {
		regions = append(regions, region{fmt.Sprintf("%v ms, %v %%", r.rtt, 100*r.loss), []wireless{
			{model: &lte, recorded: recordedLTE, meanMbps: 10, rttMs: r.rtt + 20, loss: r.loss},
			{model: &wifi24, recorded: recordedWifi, meanMbps: 20, rttMs: r.rtt, loss: r.loss},
		}})
	}
	prefix := func(r region) string { return r.name + ": " }
	return Figure{
		ID:    "fig14",
		Title: "Download speed from far regions",
		Claim: "With long RTTs and random loss the original MPTCP stays below 0.2 MB/s; the proposed scheme is over ten times as fast wherever the server is.",
		Setup: "4G (10 Mbit/s in the mean) and Wi-Fi (20 Mbit/s) as in Fig. 12, no background; RTT and loss to each region as given, 20 ms more over 4G. This project asks for 0.9 of the two links' capacity besides, measured on links with these rates that do not vary.",
		Cells: func(m Mode) []experiment.Cell {
			var cells []experiment.Cell
			for _, r := range regions {
				cells = append(cells, wirelessCells(m, r.paths, prefix(r), pick(m, 60.0, 40))...)
				cells = append(cells, experiment.Cell{Name: prefix(r) + steady, Seeds: m.seeds(10, 1), Vary: stagger,
					Scenario: steadyPaths(r.paths, netsim.Flow{Name: multipath, Congestion: "coupledbbr", Scheduler: "arp"}).During(120)})
			}
			return cells
		},
		Real: func(cell string) bool {
			return cell == prefix(regions[0])+steady || slices.ContainsFunc(regions, func(r region) bool {
				return cell == prefix(r)+proposed || cell == prefix(r)+original("balia")
			})
		},
		Judge: func(_ Mode, d *Data) *Findings {
			f := &Findings{}
			chart := Chart{Name: "speed", Title: "Fig. 14: far regions", Kind: Boxes, X: "RTT and loss to the region", Y: "download speed (MB/s)", LogY: true}
			t := Table{Name: "speed", Title: "Download speed (MB/s), mean", Header: []string{"protocol"}}
			for _, v := range wirelessVariants(regions[0].paths) {
				s, row := Series{Name: v.name}, []string{v.name}
				for _, r := range regions {
					speeds := d.speeds(prefix(r) + v.name)
					s.Samples = append(s.Samples, speeds)
					row = append(row, experiment.Mean(speeds).String())
				}
				if v.only == 0 {
					chart.Series = append(chart.Series, s)
				}
				t.Rows = append(t.Rows, row)
			}
			for _, r := range regions {
				chart.Categories = append(chart.Categories, r.name)
				t.Header = append(t.Header, r.name)
				fastest := experiment.Interval{}
				for _, a := range coupledNames {
					if s := experiment.Mean(d.speeds(prefix(r) + original(a))); s.N > 0 && s.Mean >= fastest.Mean {
						fastest = s
					}
				}
				f.atMost("the fastest original MPTCP, "+r.name, fastest, "MB/s", 0.2)
				f.atLeast(proposed+" / mean of the original MPTCP's, "+r.name, d.overOriginal(prefix(r)), "", 10)
				sum := 0.0
				for i := range r.paths {
					sum += r.paths[i].meanCapacity()
				}
				f.atLeast(proposed+" / the two links' capacity, steady, "+r.name, experiment.Mean(scaled(d.values(prefix(r)+steady, goodput), 1/sum)), "", 0.9)
				f.note("%s, trace-driven: %v of the links' mean capacity. A rate estimate is up to ten round trips old, the capacity is not: it misses opportunities, and takes the queue that a dip leaves for a competitor.",
					r.name, experiment.Mean(scaled(d.values(prefix(r)+proposed, goodput), 1/sum)))
			}
			f.Charts, f.Tables = []Chart{chart}, []Table{t}
			return f
		},
	}
}
