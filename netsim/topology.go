package netsim

import (
	"fmt"
	"math"

	"braid/link"
)

// Bottleneck is a link of 100 Mbit/s and the like, as topologies take it: a rate, a one-way delay and a loss share, with a drop-tail queue of
// one bandwidth-delay product. Its acknowledgments come back over a link with the same delay and nothing else.
func Bottleneck(rateMbps, delayMs, loss float64) link.Spec {
	return link.Spec{RateMbps: rateMbps, DelayMs: delayMs, Loss: loss}
}

// Background is competing traffic: on each bottleneck so many flows of plain TCP with an algorithm, sending in bulk from the start.
type Background struct {
	Congestion string
	PerPath    int
}

// Bottlenecks returns the topology of n paths, path i (from 1) through bottleneck i alone. The links are called "bottleneck 1" and so on, the paths
// "path 1". flow runs over all paths, and background flows, called "background 1.1" and so on (path, number), over one each.
// Two and three of them are the paper's topologies; one, without background, is a dumbbell with one flow.
func Bottlenecks(specs []link.Spec, flow Flow, b Background) Scenario {
	s := Scenario{Seed: 1}
	for i, spec := range specs {
		name := fmt.Sprintf("bottleneck %d", i+1)
		s.Links = append(s.Links, Medium{Name: name, Spec: spec})
		s.Paths = append(s.Paths, Route{Name: PathName(i + 1), Forward: []string{name}})
		flow.Paths = append(flow.Paths, PathName(i+1))
	}
	s.Flows = append(s.Flows, flow)
	for i := range specs {
		for j := range b.PerPath {
			s.Flows = append(s.Flows, Flow{Name: fmt.Sprintf("background %d.%d", i+1, j+1), Paths: []string{PathName(i + 1)},
				Congestion: b.Congestion, PlainTCP: true})
		}
	}
	return s
}

// PathName is what Bottlenecks calls path i.
func PathName(i int) string { return fmt.Sprintf("path %d", i) }

// Dumbbell returns the topology of flows that share one bottleneck, "bottleneck 1", over path "path 1".
func Dumbbell(spec link.Spec, flows ...Flow) Scenario {
	s := Scenario{Seed: 1, Links: []Medium{{Name: "bottleneck 1", Spec: spec}},
		Paths: []Route{{Name: PathName(1), Forward: []string{"bottleneck 1"}}}}
	for _, f := range flows {
		f.Paths = []string{PathName(1)}
		s.Flows = append(s.Flows, f)
	}
	return s
}

// During gives a Scenario a duration, of which the first third is left out of averages.
func (s Scenario) During(durationS float64) Scenario {
	s.DurationS, s.WarmupS = durationS, math.Round(durationS/3*1e3)/1e3
	return s
}
