package paper

import (
	"fmt"
	"math"

	"braid/experiment"
	"braid/link"
	"braid/netsim"
)

// The bar of never-worse: how much of the best single path's goodput counts as not worse, and for what share of the networks.
const notWorse, almostAll = 0.97, 0.98

// worseSchemes are the schedulers compared, with receive windows in bandwidth-delay products.
var worseSchemes = []struct {
	scheduler string
	window    float64
}{{"arp", 2}, {"minrtt", 2}, {"ecf", 2}, {"arp-paper", 2}, {"arp", 0.5}, {"minrtt", 0.5}}

func worseCell(network int, scheduler string, window float64) string {
	return fmt.Sprintf("network %d, %s, %v BDP", network, scheduler, window)
}

func worseAlone(network, path int) string {
	return fmt.Sprintf("network %d, path %d alone", network, path+1)
}

// network is a random set of two or three paths.
type network struct {
	specs  []link.Spec
	access []*access // of a path with varying capacity; nil: constant
}

// drawNetwork draws: 1-300 Mbit/s, 5-400 ms and 0.5-4 BDP (uniform in the logarithm), 0-3 % loss (a third of the paths without), one path in
// four with a varying capacity.
func drawNetwork(i int) network {
	r := link.Stream(200, fmt.Sprintf("network %d", i))
	log := func(from, to float64) float64 { return from * math.Pow(to/from, r.Float64()) }
	var n network
	for range 2 + r.IntN(2) {
		s := link.Spec{RateMbps: log(1, 300), DelayMs: log(5, 400) / 2, QueueBDP: log(0.5, 4)}
		if r.IntN(3) > 0 {
			s.Loss = float64(0.03 * r.Float64())
		}
		var a *access
		if r.IntN(4) == 0 {
			a = []*access{&lte, &wifi24, &wifi5, &starlink}[r.IntN(4)]
		}
		n.specs, n.access = append(n.specs, s), append(n.access, a)
	}
	return n
}

// scenario runs a flow over some of the network's paths.
func (n *network) scenario(flow netsim.Flow, paths ...int) netsim.Scenario {
	var specs []link.Spec
	for _, i := range paths {
		s := n.specs[i]
		if n.access[i] != nil {
			s.QueueBytes = max(int(s.QueueBDP*float64(link.BDP(s.RateMbps, 2*s.DelayMs))), link.MinQueuePackets*1500)
			s.RateMbps, s.TraceMs = 0, []int64{1000}
		}
		specs = append(specs, s)
	}
	return netsim.Bottlenecks(specs, flow, netsim.Background{})
}

// vary fills in the varying capacities; paths are those of the scenario.
func (n *network) vary(paths ...int) func(*netsim.Scenario, uint64) {
	return func(s *netsim.Scenario, seed uint64) {
		for k, i := range paths {
			if a := n.access[i]; a != nil {
				s.Links[k].TraceMs = a.generate(n.specs[i].RateMbps, traceSeconds, link.Stream(seed, fmt.Sprintf("capacity of path %d", i)))
			}
		}
	}
}

func worseNetworks(m Mode) int { return pick(m, 200, 8) }

// neverworse is the comparison with the best single path.
func neverworse() Figure {
	return Figure{
		ID:    "neverworse",
		Title: "Never worse than the best path",
		Claim: "Over networks drawn at random, Coupled BBR with AR&P is not worse than a connection over the best path alone.",
		Setup: "200 networks (quick: 8) of two or three paths without background: 1-300 Mbit/s, 5-400 ms, 0-3 % loss, buffers of 0.5-4 BDP, one path in four with a varying capacity. Receive windows of 2 and 0.5 times the connection's bandwidth-delay product. Not worse is at least 0.97 of the goodput of the best path alone. This table is this project's own.",
		Cells: worseCells,
		Judge: judgeWorse,
	}
}

func worseCells(m Mode) []experiment.Cell {
	var cells []experiment.Cell
	for i := range worseNetworks(m) {
		n := drawNetwork(i)
		every := make([]int, len(n.specs))
		bdp := connectionBDP(n.specs)
		add := func(name, scheduler string, window float64, paths ...int) {
			flow := netsim.Flow{Name: multipath, Congestion: "coupledbbr", Scheduler: scheduler, ReceiveBufferBytes: max(int64(window*bdp), 64<<10), FixedReceiveWindow: true}
			cells = append(cells, experiment.Cell{Name: name, Scenario: n.scenario(flow, paths...).During(pick(m, 30.0, 20)), Seeds: 1, Vary: n.vary(paths...)})
		}
		for k := range every {
			every[k] = k
			add(worseAlone(i, k), "minrtt", 2, k)
		}
		for _, s := range worseSchemes {
			if m.Quick && s.scheduler != "arp" && s.scheduler != "minrtt" {
				continue
			}
			add(worseCell(i, s.scheduler, s.window), s.scheduler, s.window, every...)
		}
	}
	return cells
}

func judgeWorse(m Mode, d *Data) *Findings {
	f := &Findings{}
	chart := Chart{Name: "ratio", Title: "Goodput / that of the best path alone", Kind: CDF, X: "ratio", Y: "share of networks"}
	t := Table{Name: "schemes", Title: "Over all networks", Header: []string{"scheduler", "window (BDP)", "not worse than the best path", "median ratio", "smallest ratio", "mean share of the sum of single goodputs"}}
	for _, s := range worseSchemes {
		var best, sum []float64
		for i := range worseNetworks(m) {
			g := d.values(worseCell(i, s.scheduler, s.window), goodput)
			if len(g) == 0 {
				continue
			}
			most, all := 0.0, 0.0
			for k := range drawNetwork(i).specs {
				for _, v := range d.values(worseAlone(i, k), goodput) {
					most, all = max(most, v), all+v
				}
			}
			best, sum = append(best, g[0]/most), append(sum, g[0]/all)
		}
		if len(best) == 0 {
			continue
		}
		fine := experiment.Share(best, func(v float64) bool { return v >= notWorse })
		name := fmt.Sprintf("%s, %v BDP", label(s.scheduler), s.window)
		chart.Series = append(chart.Series, cdf(name, best))
		t.Rows = append(t.Rows, []string{label(s.scheduler), fmt.Sprint(s.window), fine.String(), experiment.Median(best).String(), fmt.Sprintf("%.2f", experiment.Quantile(best, 0)), experiment.Mean(sum).String()})
		if s.scheduler == "arp" && s.window == 2 {
			f.atLeast("share of networks where AR&P is not worse than the best path", fine, "", almostAll)
			f.atLeast("AR&P's goodput / the sum of the paths' alone, mean", experiment.Mean(sum), "", 0.95)
			f.note("Networks where AR&P is worse: %s.", worseNames(best))
		}
	}
	f.Charts, f.Tables = []Chart{chart}, []Table{t}
	return f
}

// worseNames lists the networks below the bar.
func worseNames(ratios []float64) string {
	out := ""
	for i, v := range ratios {
		if v >= notWorse {
			continue
		}
		out += fmt.Sprintf("%d (%.2f:", i, v)
		n := drawNetwork(i)
		for k, s := range n.specs {
			kind := ""
			if n.access[k] != nil {
				kind = " varying"
			}
			out += fmt.Sprintf(" %.0f Mbit/s%s %.0f ms %.1f %%;", s.RateMbps, kind, 2*s.DelayMs, 100*s.Loss)
		}
		out += ") "
	}
	if out == "" {
		return "none"
	}
	return out
}
