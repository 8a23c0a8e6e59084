package paper

import (
	"fmt"
	"slices"

	"braid/experiment"
	"braid/netsim"
)

// wirelessVariant is a protocol of Figs. 12-14.
type wirelessVariant struct {
	name      string
	algorithm string
	scheduler string
	only      int // plain TCP on this path (from 1); 0: MPTCP
}

// proposed is the scheme under test; the original MPTCP is each loss-based algorithm with minRTT.
const proposed = "Coupled BBR + AR&P"

func original(algorithm string) string { return label(algorithm) + " + minRTT" }

// wirelessVariants lists the protocols: the original MPTCP, the proposed one, and single-path flows.
func wirelessVariants(paths []wireless) []wirelessVariant {
	var v []wirelessVariant
	for _, a := range coupledNames {
		v = append(v, wirelessVariant{original(a), a, "minrtt", 0})
	}
	v = append(v, wirelessVariant{proposed, "coupledbbr", "arp", 0})
	for _, a := range []string{"reno", "bbr"} {
		for i := range paths {
			v = append(v, wirelessVariant{label(a) + ", " + paths[i].model.name, a, "", i + 1})
		}
	}
	return v
}

// severalPaths tells the cells of a connection over all paths, alone on them or beside BBR.
func severalPaths(cell string) bool {
	return cell == proposed || cell == besideBBR || slices.ContainsFunc(coupledNames, func(a string) bool { return cell == original(a) })
}

// besideBBR is the cell of the proposed scheme with a BBR flow on each link.
const besideBBR = proposed + " beside BBR"

// wirelessCells runs every protocol over the paths, ten repetitions of MPTCP and twenty of TCP, and the proposed one beside a
// BBR flow on each link. prefix goes before the cells' names.
func wirelessCells(m Mode, paths []wireless, prefix string, duration float64) []experiment.Cell {
	var cells []experiment.Cell
	for _, v := range wirelessVariants(paths) {
		flow := netsim.Flow{Name: multipath, Congestion: v.algorithm, Scheduler: v.scheduler}
		c := experiment.Cell{Name: prefix + v.name, Seeds: m.seeds(10, 3), Vary: weather(m, paths)}
		c.Scenario = wirelessPaths(paths, flow, netsim.Background{}).During(duration)
		if v.only > 0 {
			f := &c.Scenario.Flows[0]
			f.PlainTCP, f.Paths = true, []string{netsim.PathName(v.only)}
			c.Seeds = m.seeds(20, 3)
		}
		cells = append(cells, c)
	}
	return cells
}

// besideCells runs the proposed scheme beside a BBR flow on each link.
func besideCells(m Mode, paths []wireless, duration float64) []experiment.Cell {
	flow := netsim.Flow{Name: multipath, Congestion: "coupledbbr", Scheduler: "arp"}
	return []experiment.Cell{{Name: besideBBR, Seeds: m.seeds(10, 3), Vary: weather(m, paths),
		Scenario: wirelessPaths(paths, flow, netsim.Background{Congestion: "bbr", PerPath: 1}).During(duration)}}
}

// speeds are a protocol's download speeds in MB/s.
func (d *Data) speeds(cell string) []float64 { return scaled(d.values(cell, goodput), 1.0/8) }

// overOriginal is the proposed scheme's goodput over the mean of the original ones', by seed.
func (d *Data) overOriginal(prefix string) experiment.Interval {
	var sum []float64
	for _, a := range coupledNames {
		v := d.values(prefix+original(a), goodput)
		if sum == nil {
			sum = make([]float64, len(v))
		}
		for i := range min(len(sum), len(v)) {
			sum[i] += v[i] / float64(len(coupledNames))
		}
	}
	return experiment.Mean(ratios(d.values(prefix+proposed, goodput), sum))
}

// speedChart shows the protocols' download speeds as boxes.
func speedChart(d *Data, paths []wireless, title string) (Chart, Table) {
	c := Chart{Name: "speed", Title: title, Kind: Boxes, X: "", Y: "download speed (MB/s)", Series: []Series{{Name: "speed"}}}
	t := Table{Name: "speed", Title: "Download speed (MB/s)", Header: []string{"protocol", "mean", "median", "quartiles"}}
	for _, v := range wirelessVariants(paths) {
		s := d.speeds(v.name)
		c.Categories = append(c.Categories, v.name)
		c.Series[0].Samples = append(c.Series[0].Samples, s)
		t.Rows = append(t.Rows, []string{v.name, experiment.Mean(s).String(), experiment.Median(s).String(), fmt.Sprintf("%.3g to %.3g", experiment.Quantile(s, 0.25), experiment.Quantile(s, 0.75))})
	}
	return c, t
}

// judgeWireless judges Figs. 12 and 13: how many times the original, better than single paths, and no more aggressive than BBR.
func judgeWireless(d *Data, paths []wireless, title string, times float64) *Findings {
	f := &Findings{}
	chart, table := speedChart(d, paths, title)
	f.Charts, f.Tables = []Chart{chart}, []Table{table}
	f.atLeast(proposed+" / mean of the original MPTCP's", d.overOriginal(""), "", times)
	for i := range paths {
		name := label("bbr") + ", " + paths[i].model.name
		f.atLeast(proposed+" / single "+name, experiment.Mean(ratios(d.values(proposed, goodput), d.values(name, goodput))), "", 1)
	}
	f.atMost("beside a BBR flow on each link: total / the better of the two", experiment.Mean(ratios(d.values(besideBBR, total), d.values(besideBBR, bestPath(2)))), "", fairHigh)
	return f
}

// describe says what a path is.
func (w *wireless) describe() string {
	return fmt.Sprintf("%s: mean %v Mbit/s, base RTT %v ms, loss %v %%", w.model.name, w.meanMbps, w.rttMs, 100*w.loss)
}
