package paper

import (
	"fmt"
	"slices"

	"braid/experiment"
	"braid/link"
	"braid/netsim"
)

// threeNames are the algorithms of Figs. 17 and 18.
var threeNames = []string{"coupledbbr", "balia", "olia", "lia"}

// threeSpecs are the three bottlenecks of Fig. 16, all alike.
func threeSpecs(rateMbps, delayMs, loss float64) []link.Spec {
	return slices.Repeat([]link.Spec{netsim.Bottleneck(rateMbps, delayMs, loss)}, 3)
}

// background is the throughput of all single-path flows.
func background(r *netsim.Result) float64 {
	sum := 0.0
	for i := range r.Flows {
		if f := &r.Flows[i]; f.Name != multipath {
			sum += f.Subflows[0].ThroughputMbps
		}
	}
	return sum
}

// sweepFigure is Fig. 17(a) or (b): the algorithms over a parameter of three equal paths.
type sweepFigure struct {
	x      string // axis
	points func(m Mode) []float64
	specs  func(x float64) []link.Spec
}

func (s *sweepFigure) cell(algorithm string, x float64) string {
	return fmt.Sprintf("%s, %v", algorithm, x)
}

func (s *sweepFigure) cells(m Mode) []experiment.Cell {
	var cells []experiment.Cell
	for _, x := range s.points(m) {
		for _, a := range threeNames {
			cells = append(cells, experiment.Cell{Name: s.cell(a, x), Scenario: bottlenecks(s.specs(x), a, "minrtt", 1).During(pick(m, 40.0, 12)), Seeds: m.seeds(5, 1), Vary: stagger})
		}
	}
	return cells
}

// draw makes the figure's charts and its table.
func (s *sweepFigure) draw(m Mode, d *Data, title string) ([]Chart, Table) {
	own := Chart{Name: "mptcp", Title: title + ": MPTCP", Kind: Lines, X: s.x, Y: "throughput (Mbit/s)"}
	others := Chart{Name: "background", Title: title + ": background TCP", Kind: Lines, X: s.x, Y: own.Y}
	used := Chart{Name: "utilisation", Title: title + ": utilisation of the three links", Kind: Lines, X: s.x, Y: "share of capacity"}
	t := Table{Name: "throughput", Title: "Throughput (Mbit/s) of MPTCP, of background flows together, and share of the three links' capacity", Header: []string{"algorithm", s.x, "MPTCP", "background", "utilisation"}}
	for _, a := range threeNames {
		mine, theirs, all := Series{Name: label(a)}, Series{Name: label(competitor(a)) + " beside " + label(a)}, Series{Name: label(a)}
		for _, x := range s.points(m) {
			c := s.cell(a, x)
			mine.add(x, d.mean(c, total))
			theirs.add(x, d.mean(c, background))
			all.add(x, experiment.Mean(s.utilisation(d, a, x)))
			t.Rows = append(t.Rows, []string{label(a), fmt.Sprint(x), d.mean(c, total).String(), d.mean(c, background).String(), experiment.Mean(s.utilisation(d, a, x)).String()})
		}
		own.Series, others.Series, used.Series = append(own.Series, mine), append(others.Series, theirs), append(used.Series, all)
	}
	return []Chart{own, others, used}, t
}

// utilisation is the share of the three links' capacity that MPTCP and background use.
func (s *sweepFigure) utilisation(d *Data, algorithm string, x float64) []float64 {
	sum := 0.0
	for _, spec := range s.specs(x) {
		sum += capacity(spec.RateMbps, spec.Loss)
	}
	return scaled(d.values(s.cell(algorithm, x), func(r *netsim.Result) float64 { return total(r) + background(r) }), 1/sum)
}

// decline is the throughput at one point over that at another.
func (s *sweepFigure) decline(d *Data, algorithm string, from, to float64) experiment.Interval {
	return experiment.Mean(ratios(d.values(s.cell(algorithm, to), total), d.values(s.cell(algorithm, from), total)))
}
