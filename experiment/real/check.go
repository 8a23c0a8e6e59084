package real

import (
	"fmt"
	"slices"

	"braid/link"
	"braid/netsim"
)

// MaxMbps is what the links that carry data may deliver in all: more than this machine-bound emulation keeps time with for certain.
const MaxMbps = 250

// maxMTU is the largest packet that an emulated path takes.
const maxMTU = 9000

// Encapsulated returns the Scenario with UDP around every packet, as it is in real time: where a flow does not say, the simulator's packets are
// IP packets, which are smaller.
func Encapsulated(s netsim.Scenario) netsim.Scenario {
	s.Flows = slices.Clone(s.Flows)
	for i := range s.Flows {
		if s.Flows[i].Encapsulation == "" {
			s.Flows[i].Encapsulation = "udp"
		}
	}
	return s
}

// Check says what is wrong with a Scenario (see netsim.Scenario.Check), or why it cannot be run in real time: the place, the value, and what may
// stand there.
func Check(s *netsim.Scenario) error {
	if err := s.Check(); err != nil {
		return err
	}
	for i := range s.Flows {
		f := &s.Flows[i]
		if err := checkFlow(f); err != nil {
			return fmt.Errorf("flow %q: %w", f.Name, err)
		}
	}
	ways, err := waysOf(s)
	if err != nil {
		return err
	}
	return checkRates(s, ways)
}

func checkFlow(f *netsim.Flow) error {
	switch w := &f.Workload; {
	case w.Kind == netsim.Churn:
		return fmt.Errorf("workload.kind %q cannot be run in real time; bulk, paced and request can", w.Kind)
	case w.ReadRateMbps > 0:
		return fmt.Errorf("workload.read_rate_mbps %v cannot be run in real time: leave it out", w.ReadRateMbps)
	case f.Encapsulation == "ip":
		return fmt.Errorf(`encapsulation "ip" cannot be run in real time, where packets travel over UDP: leave it out or say "udp"`)
	case f.MTU > maxMTU:
		return fmt.Errorf("mtu %d cannot be run in real time: at most %d", f.MTU, maxMTU)
	}
	return nil
}

// way is what one or more paths of a Scenario come to in real time: one emulated path.
type way struct {
	name     string // of the first path
	up, down link.Spec
	links    [2]string // names by direction
	used     bool
}

// waysOf returns the emulated paths that a Scenario needs, and for each path's name the index of its own. Paths over the same links share one.
func waysOf(s *netsim.Scenario) (*ways, error) {
	w := &ways{of: map[string]int{}}
	owner := map[string]int{} // of a link: the way that it is in
	for _, r := range s.Paths {
		links, err := linksOf(&r)
		if err != nil {
			return nil, err
		}
		same := slices.IndexFunc(w.all, func(o way) bool { return o.links == links })
		if same >= 0 {
			w.of[r.Name] = same
			continue
		}
		next := len(w.all)
		for _, name := range links {
			if other, taken := owner[name]; taken {
				return nil, fmt.Errorf("path %q: link %q is also one of path %q, whose other link differs: in real time paths share both directions or none", r.Name, name, w.all[other].name)
			}
			if name != "" {
				owner[name] = next
			}
		}
		up, err := specOf(s, links[0])
		if err != nil {
			return nil, err
		}
		down := link.Spec{DelayMs: up.DelayMs}
		if links[1] != "" {
			if down, err = specOf(s, links[1]); err != nil {
				return nil, err
			}
		}
		w.all = append(w.all, way{name: r.Name, up: up, down: down, links: links})
		w.of[r.Name] = next
	}
	for _, f := range s.Flows {
		for _, p := range f.Paths {
			w.all[w.of[p]].used = true
		}
	}
	return w, nil
}

type ways struct {
	all []way
	of  map[string]int // by the path's name
}

// linksOf returns the names of a path's links, forward and back; "": the one back that netsim makes.
func linksOf(r *netsim.Route) (links [2]string, err error) {
	for i, names := range [][]string{r.Forward, r.Reverse} {
		if len(names) > 1 {
			return links, fmt.Errorf("path %q: %s names %d links: in real time a path is one link each way", r.Name, []string{"forward", "reverse"}[i], len(names))
		}
		if len(names) == 1 {
			links[i] = names[0]
		}
	}
	if links[0] == links[1] {
		return links, fmt.Errorf("path %q: link %q is in forward and in reverse: in real time each direction has a link of its own", r.Name, links[0])
	}
	return links, nil
}

// specOf is the link of a name as the simulator would make it: with the trace that its walk generates.
func specOf(s *netsim.Scenario, name string) (link.Spec, error) {
	m := &s.Links[slices.IndexFunc(s.Links, func(m netsim.Medium) bool { return m.Name == name })]
	spec := m.Spec
	if m.TraceWalk != nil {
		var err error
		if spec.TraceMs, err = link.GenerateOpportunities(*m.TraceWalk, link.Stream(s.Seed, "trace of "+m.Name)); err != nil {
			return spec, fmt.Errorf("link %q: %w", m.Name, err)
		}
	}
	return spec, nil
}

// checkRates sees to it that nothing sends without limit, and that all together do not send more than a machine emulates.
func checkRates(s *netsim.Scenario, ways *ways) error {
	total, counted := 0.0, map[string]bool{}
	for i := range s.Flows {
		f := &s.Flows[i]
		paced := f.Workload.Kind == netsim.Paced
		if paced {
			total += f.Workload.RateMbps
		}
		for _, name := range f.Paths {
			w := &ways.all[ways.of[name]]
			spec, dir := &w.up, 0
			if f.Download || f.Workload.Kind == netsim.Request {
				spec, dir = &w.down, 1
			}
			carrier := w.links[dir]
			if carrier == "" {
				carrier = name + " back"
			}
			rate := fastest(spec)
			if rate == 0 && !paced {
				return fmt.Errorf("flow %q: link %q has no rate_mbps: in real time what carries data must have one, or a trace", f.Name, carrier)
			}
			if !counted[carrier] && !paced {
				total += rate
				counted[carrier] = true
			}
			if total > MaxMbps {
				return fmt.Errorf("link %q: its rate_mbps makes it %.0f Mbit/s in all: in real time the links that carry data may have %d together", carrier, total, MaxMbps)
			}
		}
	}
	return nil
}

// fastest is the highest rate that a link ever has, of a trace the mean, in Mbit/s; 0: unlimited.
func fastest(s *link.Spec) float64 {
	if n := len(s.TraceMs); n > 0 {
		return float64(n) * link.OpportunityBytes * 8 / 1000 / float64(max(s.TraceMs[n-1], 1))
	}
	rate := s.RateMbps
	for _, c := range s.Changes {
		if c.RateMbps != nil {
			rate = max(rate, *c.RateMbps)
		}
	}
	return rate
}
