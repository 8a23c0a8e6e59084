package paper

import (
	"fmt"
	"math"

	"braid/experiment"
	"braid/link"
	"braid/netsim"
)

// The bars of never-worse: how much of the best single path's goodput counts as not worse, for what share of the networks, and how much of
// the sum of all paths' goodputs the mean network gives.
const notWorse, almostAll, together = 0.97, 0.99, 0.9

// worseSchemes are the schedulers compared, with receive windows in bandwidth-delay products. The first is what is judged.
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

// drawNetwork draws network i: rates from 1 Mbit/s to fastest, 5-400 ms and 0.5-4 BDP (uniform in the logarithm), 0-3 % loss (a third of
// the paths without), one path in four with a varying capacity.
func drawNetwork(i int, fastest float64) network {
	r := link.Stream(200, fmt.Sprintf("network %d", i))
	log := func(from, to float64) float64 { return from * math.Pow(to/from, r.Float64()) }
	var n network
	for range 2 + r.IntN(2) {
		s := link.Spec{RateMbps: log(1, fastest), DelayMs: log(5, 400) / 2, QueueBDP: log(0.5, 4)}
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

// String lists the paths.
func (n network) String() string {
	out := ""
	for k, s := range n.specs {
		if k > 0 {
			out += "; "
		}
		out += fmt.Sprintf("%.3g Mbit/s", s.RateMbps)
		if a := n.access[k]; a != nil {
			out += " as " + a.name
		}
		out += fmt.Sprintf(", %.0f ms, %.2f %%, %.1f BDP", 2*s.DelayMs, 100*s.Loss, s.QueueBDP)
	}
	return out
}

// scenario runs a flow over some of the network's paths.
func (n *network) scenario(flow netsim.Flow, paths ...int) netsim.Scenario {
	var specs []link.Spec
	for _, i := range paths {
		s := n.specs[i]
		if n.access[i] != nil {
			s.QueueBytes = max(int(s.QueueBDP*float64(link.BDP(s.RateMbps, 2*s.DelayMs))), link.MinQueuePackets*1500)
			s.RateMbps, s.TraceMs = 0, even(s.RateMbps)
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

func worseNetworks(m Mode) []network {
	out := make([]network, pick(m, 200, 12))
	for i := range out {
		out[i] = drawNetwork(i, pick(m, 300.0, 60))
	}
	return out
}

// neverworse is the comparison with the best single path.
func neverworse() Figure {
	return Figure{
		ID:    "neverworse",
		Title: "Never worse than the best path",
		Claim: "Over networks drawn at random, Coupled BBR with AR&P is not worse than BBR over the best path alone.",
		Setup: "200 networks of two or three paths without background, 1-300 Mbit/s, 5-400 ms, 0-3 % loss, buffers of 0.5-4 BDP, one path in four with a varying capacity; transfers of 30 s from their start (quick: 12 networks, up to 60 Mbit/s, 15 s). Receive windows of 2 and 0.5 times the connection's bandwidth-delay product; the comparison has that of 2. Not worse is at least 0.97 of the goodput of the best path alone. This table is this project's own.",
		Cells: worseCells,
		Judge: judgeWorse,
	}
}

func worseCells(m Mode) []experiment.Cell {
	var cells []experiment.Cell
	for i, n := range worseNetworks(m) {
		bdp := connectionBDP(n.specs)
		add := func(name, congestion, scheduler string, window float64, paths ...int) {
			flow := netsim.Flow{Name: multipath, Congestion: congestion, Scheduler: scheduler, FixedReceiveWindow: true,
				ReceiveBufferBytes: max(int64(window*bdp), 64<<10), SendBufferBytes: max(int64(4*bdp), 16<<20)}
			s := n.scenario(flow, paths...)
			s.DurationS = pick(m, 30.0, 15)
			cells = append(cells, experiment.Cell{Name: name, Scenario: s, Seeds: 1, Vary: n.vary(paths...)})
		}
		every := make([]int, len(n.specs))
		for k := range every {
			every[k] = k
			add(worseAlone(i, k), "bbr", "minrtt", 2, k)
		}
		for k, s := range worseSchemes {
			if !m.Quick || k < 2 {
				add(worseCell(i, s.scheduler, s.window), "coupledbbr", s.scheduler, s.window, every...)
			}
		}
	}
	return cells
}

// worseRatios divides a scheme's goodput in each network by that of the best path alone and by the sum of all paths'. Networks without
// results are left out of all three lists.
func worseRatios(m Mode, d *Data, scheduler string, window float64) (networks []int, best, sum []float64) {
	for i, n := range worseNetworks(m) {
		g := d.values(worseCell(i, scheduler, window), goodput)
		if len(g) == 0 {
			continue
		}
		most, all := 0.0, 0.0
		for k := range n.specs {
			for _, v := range d.values(worseAlone(i, k), goodput) {
				most, all = max(most, v), all+v
			}
		}
		networks, best, sum = append(networks, i), append(best, g[0]/most), append(sum, g[0]/all)
	}
	return networks, best, sum
}

func judgeWorse(m Mode, d *Data) *Findings {
	f := &Findings{}
	chart := Chart{Name: "ratio", Title: "Goodput / that of the best path alone", Kind: CDF, X: "ratio", Y: "share of networks"}
	t := Table{Name: "schemes", Title: "Over all networks", Header: []string{"scheduler", "window (BDP)", "not worse than the best path", "median ratio", "smallest ratio", "mean share of the sum of single goodputs"}}
	worse := Table{Name: "worse", Title: "Networks where AR&P is worse than the best path", Header: []string{"network", "goodput / best path's", "paths"}}
	for k, s := range worseSchemes {
		networks, best, sum := worseRatios(m, d, s.scheduler, s.window)
		if len(best) == 0 {
			continue
		}
		fine := experiment.Share(best, func(v float64) bool { return v >= notWorse })
		chart.Series = append(chart.Series, cdf(fmt.Sprintf("%s, %v BDP", label(s.scheduler), s.window), best))
		t.Rows = append(t.Rows, []string{label(s.scheduler), fmt.Sprint(s.window), fine.String(), experiment.Median(best).String(), fmt.Sprintf("%.2f", experiment.Quantile(best, 0)), experiment.Mean(sum).String()})
		if k > 0 {
			continue
		}
		f.atLeast("share of networks where AR&P is not worse than the best path", fine, "", almostAll)
		f.atLeast("AR&P's goodput / the sum of the paths' alone, mean", experiment.Mean(sum), "", together)
		all := worseNetworks(m)
		for j, v := range best {
			if v < notWorse {
				worse.Rows = append(worse.Rows, []string{fmt.Sprint(networks[j]), fmt.Sprintf("%.3f", v), all[networks[j]].String()})
			}
		}
		f.note("AR&P is worse in %d of %d networks.", len(worse.Rows), len(best))
	}
	f.Charts, f.Tables = []Chart{chart}, []Table{t, worse}
	return f
}
