package paper

import (
	"fmt"
	"slices"

	"braid/experiment"
	"braid/link"
	"braid/netsim"
)

// fairRange is how far a connection's total may be from what one BBR flow gets on the best path.
const fairLow, fairHigh = 0.85, 1.15

// pairCase is a setting of the two bottlenecks, for Figs. 8 and 9.
type pairCase struct {
	name  string
	specs []link.Spec
}

// quickRates is the share of the links' rates that quick runs have where BBR flows compete: they take a minute to come to terms, whatever
// the rate.
const quickRates = 0.25

// pairCells runs Coupled BBR, and in its place a BBR flow on each path, in each setting.
func pairCells(m Mode, cases []pairCase, rates float64, seeds int) []experiment.Cell {
	var cells []experiment.Cell
	for _, c := range cases {
		specs := slices.Clone(c.specs)
		for i := range specs {
			specs[i].RateMbps *= rates
		}
		cells = append(cells,
			experiment.Cell{Name: c.name, Scenario: bottlenecks(specs, "coupledbbr", "arp", 2).During(pick(m, 90.0, 75)), Seeds: seeds, Vary: stagger},
			experiment.Cell{Name: c.name + ", BBR", Scenario: alone(specs, "bbr", 2).During(pick(m, 90.0, 30)), Seeds: pick(m, seeds, 1), Vary: stagger})
	}
	return cells
}

// fairness is the total of the connection over what one of three BBR flows gets on the best path.
func (d *Data) fairness(cell string) experiment.Interval {
	best := d.mean(cell+", BBR", bestPath(2)).Mean
	return experiment.Mean(scaled(d.values(cell, total), 1/best))
}

// pairChart shows each setting's subflows beside a BBR flow on each path.
func pairChart(d *Data, cases []pairCase, name, title, x string) (Chart, Table) {
	c := Chart{Name: name, Title: title, Kind: Bars, X: x, Y: "throughput (Mbit/s)", Series: []Series{
		{Name: "Coupled BBR, subflow 1"}, {Name: "Coupled BBR, subflow 2"}, {Name: "one BBR flow on path 1", Group: 1}, {Name: "one BBR flow on path 2", Group: 2}}}
	t := Table{Name: name, Title: "Throughput (Mbit/s), mean and 95 % interval", Header: []string{x, "subflow 1", "subflow 2", "total", "one BBR, path 1", "one BBR, path 2", "total / best", "background beside it, path 1", "path 2"}}
	for _, k := range cases {
		c.Categories = append(c.Categories, k.name)
		all := []experiment.Interval{d.mean(k.name, subflow(1)), d.mean(k.name, subflow(2)), d.mean(k.name+", BBR", onPath(1)), d.mean(k.name+", BBR", onPath(2))}
		for i := range all {
			c.Series[i].bar(all[i])
		}
		t.Rows = append(t.Rows, []string{k.name, all[0].String(), all[1].String(), d.mean(k.name, total).String(), all[2].String(), all[3].String(), d.fairness(k.name).String(),
			d.mean(k.name, onPath(1)).String(), d.mean(k.name, onPath(2)).String()})
	}
	return c, t
}

// fig8a is Fig. 8(a): Coupled BBR under loss on one path.
func fig8a() Figure {
	var cases []pairCase
	for _, loss := range []float64{0, 1e-4, 1e-2} {
		cases = append(cases, pairCase{fmt.Sprintf("%v %%", loss*100), []link.Spec{netsim.Bottleneck(100, 25, 0), netsim.Bottleneck(100, 25, loss)}})
	}
	return Figure{
		ID:    "fig8a",
		Title: "Coupled BBR in lossy networks",
		Claim: "Whatever the loss on path 2, the connection's total equals what one BBR flow gets on the best path, and it falls only slightly as loss grows.",
		Setup: "Two bottlenecks of 100 Mbit/s, 25 ms one way; loss 0 on path 1 and 0, 0.01 % or 1 % on path 2; two background BBR flows on each. The comparison is the same network with a third BBR flow on each path in the place of the connection. Quick: a quarter of the rates.",
		Cells: func(m Mode) []experiment.Cell { return pairCells(m, cases, pick(m, 1, quickRates), m.seeds(8, 3)) },
		Judge: func(_ Mode, d *Data) *Findings {
			f := &Findings{}
			chart, table := pairChart(d, cases, "throughput", "Fig. 8(a): Coupled BBR under loss", "loss on path 2")
			f.Charts, f.Tables = []Chart{chart}, []Table{table}
			for _, k := range cases {
				f.between("total / one BBR on the best path, loss "+k.name, d.fairness(k.name), "", fairLow, fairHigh)
			}
			f.atLeast("total at 1 % loss / total at 0", experiment.Mean(ratios(d.values(cases[2].name, total), d.values(cases[0].name, total))), "", 0.85)
			return f
		},
	}
}
