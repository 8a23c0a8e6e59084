package paper

import (
	"braid/experiment"
	"braid/link"
)

// fig10b is Fig. 10(b): one of two paths gets worse and worse, and is gone in the end.
func fig10b() Figure {
	const begin, gone, end = 8.0, 20.0, 25.0
	forward := []link.Change{
		{AtS: begin, OverS: gone - begin, RateMbps: ptr(1.0), DelayMs: ptr(150.0), Loss: ptr(0.1)},
		{AtS: gone, Down: ptr(true)},
	}
	back := []link.Change{{AtS: begin, OverS: gone - begin, DelayMs: ptr(150.0), Loss: ptr(0.1)}, {AtS: gone, Down: ptr(true)}}
	return Figure{
		ID:    "fig10b",
		Title: "A path gets worse and worse",
		Claim: "AR&P makes the worsening path redundant (the paper: at 12 s) and keeps its goodput; Round-Robin's collapses; Redundant's is flat.",
		Setup: "As Fig. 10(a), but path 2 goes from 20 to 1 Mbit/s, from 50 to 300 ms and from 0 to 10 % of loss, linearly from 8 s to 20 s, and is gone then. Kept goodput is the 10th percentile of the seconds from 8 s on (which leaves PROBE_RTT out), against a subflow alone on path 1.",
		Cells: func(m Mode) []experiment.Cell { return changingCells(forward, back, end, m.seeds(10, 2)) },
		Judge: func(_ Mode, d *Data) *Findings {
			f := &Findings{Charts: []Chart{changingChart(d, "Fig. 10(b): path 2 worsens from 8 s, gone at 20 s", Mark{begin, "worsens"}, Mark{gone, "gone"})}}
			t := Table{Name: "goodput", Title: "Goodput (Mbit/s)", Header: []string{"scheduler", "5-8 s", "8-12 s", "12-16 s", "16-20 s", "20-25 s", "10th percentile of seconds 8-25", "path 2 redundant, share of time", "for good from (s)"}}
			for _, name := range append(everyChanging(), pathOneOnly) {
				row := []string{label(name)}
				for _, s := range [][2]float64{{5, begin}, {begin, 12}, {12, 16}, {16, gone}, {gone, end}} {
					row = append(row, d.mean(name, goodputBetween(s[0], s[1])).String())
				}
				row = append(row, experiment.Mean(d.lowSeconds(name, begin, end)).String(), experiment.Mean(d.measured(name, "redundant 1")).String(), experiment.Mean(d.measured(name, "redundant 1 from")).String())
				t.Rows = append(t.Rows, row)
			}
			f.Tables = []Table{t}
			alone := experiment.Mean(d.lowSeconds(pathOneOnly, begin, end)).Mean
			f.atLeast("AR&P's kept goodput / path 1 alone", experiment.Mean(scaled(d.lowSeconds("arp", begin, end), 1/alone)), "", 0.9)
			f.atMost("Round-Robin's kept goodput / path 1 alone", experiment.Mean(scaled(d.lowSeconds("roundrobin", begin, end), 1/alone)), "", 0.5)
			late := func(name string) []float64 { return d.values(name, goodputBetween(12, gone)) }
			f.atLeast("AR&P's goodput 12-20 s / Round-Robin's", experiment.Mean(ratios(late("arp"), late("roundrobin"))), "", 1.2)
			f.between("AR&P has path 2 redundant for good from", experiment.Mean(d.measured("arp", "redundant 1 from")), "s", begin, gone)
			flat := ratios(d.values("redundant", goodputBetween(12, gone)), d.values("redundant", goodputBetween(3, begin)))
			f.atLeast("Redundant's goodput 12-20 s / 3-8 s", experiment.Mean(flat), "", 0.9)
			f.note("What the others lose depends on the receive window: with one that grows without bound (\"any window\" in the table) late data only waits, and every scheduler keeps its goodput.")
			f.note("The paper sees path 2 redundant from 12 s on; here AR&P has it so for good from %v s on.", experiment.Mean(d.measured("arp", "redundant 1 from")))
			return f
		},
	}
}

// lowSeconds is the 10th percentile of the seconds of each run between two times.
func (d *Data) lowSeconds(cell string, fromS, toS float64) []float64 {
	var out []float64
	for _, r := range d.results(cell) {
		var seconds []float64
		for t := fromS; t+1 <= toS; t++ {
			seconds = append(seconds, goodputBetween(t, t+1)(r))
		}
		out = append(out, experiment.Quantile(seconds, 0.1))
	}
	return out
}
