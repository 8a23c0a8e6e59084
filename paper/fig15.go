package paper

import (
	"fmt"

	"braid/experiment"
	"braid/netsim"
)

// fig15 is Fig. 15: the out-of-order queue over wireless paths to two regions.
func fig15() Figure {
	names := []string{"arp", "minrtt", "roundrobin", "arp-paper"}
	rtts := [][2]float64{{60, 40}, {120, 40}, {200, 60}}
	paths := func(rtt [2]float64) []wireless {
		return []wireless{
			{model: &lte, recorded: recordedLTE, meanMbps: 10, rttMs: rtt[0], loss: 0.001},
			{model: &wifi24, recorded: recordedWifi, meanMbps: 20, rttMs: rtt[1], loss: 0.001},
		}
	}
	cell := func(name string, rtt [2]float64) string { return fmt.Sprintf("%s, %v/%v ms", name, rtt[0], rtt[1]) }
	return Figure{
		ID:    "fig15",
		Title: "Out-of-order queue over wireless paths",
		Claim: "minRTT's and Round-Robin's out-of-order queues are up to five times as long as AR&P's (80 % less), and grow with the difference of the RTTs while AR&P's does not.",
		Setup: "4G (10 Mbit/s in the mean) and Wi-Fi (20 Mbit/s) as in Fig. 12, 0.1 % of loss, Coupled BBR; RTTs of 4G/Wi-Fi as given: two servers, of different regions. The same besides on links whose rate does not vary.",
		Cells: func(m Mode) []experiment.Cell {
			var cells []experiment.Cell
			for _, rtt := range rtts {
				for _, name := range names {
					p := paths(rtt)
					flow := netsim.Flow{Name: multipath, Congestion: "coupledbbr", Scheduler: name}
					cells = append(cells, experiment.Cell{Name: cell(name, rtt), Seeds: m.seeds(10, 3), Vary: weather(m, p),
						Scenario: wirelessPaths(p, flow, netsim.Background{}).During(pick(m, 45.0, 24))},
						experiment.Cell{Name: cell(name, rtt) + steadyLinks, Seeds: m.seeds(10, 1), Vary: stagger,
							Scenario: steadyPaths(p, flow).During(pick(m, 45.0, 36))})
				}
			}
			return cells
		},
		Real: func(is string) bool {
			for _, rtt := range [][2]float64{rtts[0], rtts[2]} {
				for _, name := range []string{"arp", "minrtt"} {
					if c := cell(name, rtt); is == c || is == c+steadyLinks {
						return true
					}
				}
			}
			return false
		},
		Judge: func(_ Mode, d *Data) *Findings {
			f := &Findings{}
			chart := Chart{Name: "queue", Title: "Fig. 15: out-of-order queue over 4G and Wi-Fi", Kind: Bars, X: "RTTs of 4G/Wi-Fi (ms)", Y: "mean out-of-order queue (packets)"}
			calm := Chart{Name: "queue-steady", Title: "Fig. 15 on links whose rate does not vary", Kind: Bars, X: chart.X, Y: chart.Y}
			t := Table{Name: "queue", Title: "Mean out-of-order queue (packets) and goodput (Mbit/s)", Header: []string{"scheduler"}}
			for _, rtt := range rtts {
				chart.Categories = append(chart.Categories, fmt.Sprintf("%v/%v", rtt[0], rtt[1]))
				t.Header = append(t.Header, fmt.Sprintf("%v/%v ms", rtt[0], rtt[1]), "goodput")
			}
			for _, name := range names {
				s, row := Series{Name: label(name)}, []string{label(name)}
				for _, rtt := range rtts {
					s.bar(d.mean(cell(name, rtt), disorder))
					row = append(row, d.mean(cell(name, rtt), disorder).String(), d.mean(cell(name, rtt), goodput).String())
				}
				chart.Series, t.Rows = append(chart.Series, s), append(t.Rows, row)
				still, row := Series{Name: label(name)}, []string{label(name) + steadyLinks}
				for _, rtt := range rtts {
					c := cell(name, rtt) + steadyLinks
					still.bar(d.mean(c, disorder))
					row = append(row, d.mean(c, disorder).String(), d.mean(c, goodput).String())
				}
				calm.Series, t.Rows = append(calm.Series, still), append(t.Rows, row)
			}
			calm.Categories = chart.Categories
			f.Charts, f.Tables = []Chart{chart, calm}, []Table{t}
			first, last := rtts[0], rtts[len(rtts)-1]
			queue := func(name string, rtt [2]float64) []float64 { return d.values(cell(name, rtt), disorder) }
			least := func(other, suffix string) experiment.Interval { // "up to": where the difference is largest
				var best experiment.Interval
				for _, rtt := range rtts {
					v := experiment.Mean(ratios(d.values(cell("arp", rtt)+suffix, disorder), d.values(cell(other, rtt)+suffix, disorder)))
					if best.N == 0 || v.Mean < best.Mean {
						best = v
					}
				}
				return best
			}
			for _, other := range []string{"minrtt", "roundrobin"} {
				f.atMost(fmt.Sprintf("AR&P's queue / %s's, where it is smallest, steady links", label(other)), least(other, steadyLinks), "", 0.2)
				f.atMost(fmt.Sprintf("AR&P's queue / %s's, where it is smallest", label(other)), least(other, ""), "", 0.2)
				f.atLeast(fmt.Sprintf("%s's queue at %v/%v ms / at %v/%v ms", label(other), last[0], last[1], first[0], first[1]), experiment.Mean(ratios(queue(other, last), queue(other, first))), "", 1.5)
				f.atLeast(fmt.Sprintf("AR&P's goodput / %s's at %v/%v ms", label(other), last[0], last[1]), experiment.Mean(ratios(d.values(cell("arp", last), goodput), d.values(cell(other, last), goodput))), "", 0.98)
			}
			return f
		},
	}
}
