package paper

import (
	"fmt"

	"braid/experiment"
	"braid/link"
	"braid/netsim"
)

// schemes are the pairs of congestion control and scheduler of Figs. 19 and 20.
var schemes = []struct{ name, algorithm, scheduler string }{
	{"LIA + minRTT", "lia", "minrtt"}, {"OLIA + minRTT", "olia", "minrtt"}, {"BALIA + minRTT", "balia", "minrtt"},
	{"Coupled BBR + minRTT", "coupledbbr", "minrtt"}, {proposed, "coupledbbr", "arp"},
}

// modernMinRTT and theProposed are the last two of them.
const modernMinRTT, theProposed = "Coupled BBR + minRTT", proposed

// fig19Windows are the receive windows of Fig. 19, in bandwidth-delay products of the connection; the loss-based ones run with the
// first only.
var fig19Windows = []float64{2, 1, 0.5}

// connectionBDP is the sum of the rates times the longest RTT, in bytes.
func connectionBDP(specs []link.Spec) float64 {
	rate, delay := 0.0, 0.0
	for _, s := range specs {
		rate += s.RateMbps
		delay = max(delay, s.DelayMs)
	}
	return float64(link.BDP(rate, 2*delay))
}

// randomPoint draws the parameters of Fig. 19: 10-100 Mbit/s, 1-100 ms, 0-5 %, uniform.
func randomPoint(i int) []link.Spec {
	r := link.Stream(19, fmt.Sprintf("point %d", i))
	specs := make([]link.Spec, 3)
	for k := range specs {
		specs[k] = netsim.Bottleneck(10+float64(90*r.Float64()), 1+float64(99*r.Float64()), float64(0.05*r.Float64()))
	}
	return specs
}

func fig19Cell(scheme string, window float64, point int) string {
	return fmt.Sprintf("%s, %v BDP, point %d", scheme, window, point)
}

func fig19Points(m Mode) int { return pick(m, 100, 10) }

// fig19 is Fig. 19: random networks.
func fig19() Figure {
	return Figure{
		ID:    "fig19",
		Title: "AR&P in random networks",
		Claim: "Coupled BBR with minRTT is far faster than the loss-based algorithms and has far more packets out of order. AR&P adds goodput on top, with as few packets out of order as the loss-based ones.",
		Setup: "Three bottlenecks drawn at random (10-100 Mbit/s, 1-100 ms one way, 0-5 % loss), one background flow on each; 100 points (quick: 10). Receive windows of 2, 1 and 0.5 times the connection's bandwidth-delay product (sum of rates times longest RTT).",
		Cells: func(m Mode) []experiment.Cell {
			var cells []experiment.Cell
			for p := range fig19Points(m) {
				specs := randomPoint(p)
				for i, w := range fig19Windows {
					for k, scheme := range schemes {
						if i > 0 && k < 3 {
							continue
						}
						s := bottlenecks(specs, scheme.algorithm, scheme.scheduler, 1).During(pick(m, 30.0, 12))
						s.Flows[0].ReceiveBufferBytes, s.Flows[0].FixedReceiveWindow = int64(w*connectionBDP(specs)), true
						cells = append(cells, experiment.Cell{Name: fig19Cell(scheme.name, w, p), Scenario: s, Seeds: 1, Vary: stagger})
					}
				}
			}
			return cells
		},
		Judge: judgeRandom,
	}
}

// overPoints applies f to the run of every point.
func (d *Data) overPoints(m Mode, scheme string, window float64, f func(*netsim.Result) float64) []float64 {
	var out []float64
	for p := range fig19Points(m) {
		out = append(out, d.values(fig19Cell(scheme, window, p), f)...)
	}
	return out
}

func judgeRandom(m Mode, d *Data) *Findings {
	f := &Findings{}
	good := Chart{Name: "goodput", Title: "Fig. 19: goodput over random points", Kind: CDF, X: "goodput (Mbit/s)", Y: "share of points"}
	through := Chart{Name: "throughput", Title: "Fig. 19: throughput over random points", Kind: Boxes, Y: "throughput (Mbit/s)", Series: []Series{{Name: "throughput"}}}
	queue := Chart{Name: "queue", Title: "Fig. 19: out-of-order packets over random points", Kind: Boxes, Y: "mean out-of-order queue (packets)", LogY: true, Series: []Series{{Name: "queue"}}}
	t := Table{Name: "medians", Title: "Medians over points", Header: []string{"scheme", "window (BDP)", "throughput (Mbit/s)", "goodput (Mbit/s)", "out-of-order queue (packets)"}}
	for i, w := range fig19Windows {
		for k, s := range schemes {
			if i > 0 && k < 3 {
				continue
			}
			g, x, q := d.overPoints(m, s.name, w, goodput), d.overPoints(m, s.name, w, total), d.overPoints(m, s.name, w, disorder)
			if i == 0 {
				good.Series = append(good.Series, cdf(s.name, g))
				through.Categories, queue.Categories = append(through.Categories, s.name), append(queue.Categories, s.name)
				through.Series[0].Samples, queue.Series[0].Samples = append(through.Series[0].Samples, x), append(queue.Series[0].Samples, q)
			}
			t.Rows = append(t.Rows, []string{s.name, fmt.Sprint(w), experiment.Median(x).String(), experiment.Median(g).String(), experiment.Median(q).String()})
		}
	}
	f.Charts, f.Tables = []Chart{good, through, queue}, []Table{t}
	for _, w := range fig19Windows {
		ours, theirs := d.overPoints(m, theProposed, w, goodput), d.overPoints(m, modernMinRTT, w, goodput)
		f.atLeast(fmt.Sprintf("median goodput, AR&P / minRTT, window %v BDP", w), experiment.MedianRatio(ours, theirs), "", 1)
		f.atMost(fmt.Sprintf("median out-of-order queue, AR&P / minRTT, window %v BDP", w),
			experiment.MedianRatio(d.overPoints(m, theProposed, w, disorder), d.overPoints(m, modernMinRTT, w, disorder)), "", 0.5)
	}
	for _, s := range schemes[:3] {
		f.atLeast("median throughput, Coupled BBR + minRTT / "+s.name, experiment.MedianRatio(d.overPoints(m, modernMinRTT, 2, total), d.overPoints(m, s.name, 2, total)), "", 2)
	}
	low := 0.0
	for _, s := range schemes[:3] {
		low = max(low, experiment.Median(d.overPoints(m, s.name, 2, disorder)).Mean)
	}
	f.atMost("median out-of-order queue, AR&P / the longest of the loss-based ones'", experiment.Median(scaled(d.overPoints(m, theProposed, 2, disorder), 1/low)), "", 1.5)
	return f
}
