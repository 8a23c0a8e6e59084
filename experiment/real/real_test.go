package real

import (
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"braid/link"
	"braid/netsim"
)

func ptr[T any](v T) *T { return &v }

// two is a Scenario over two slow paths.
func two(flow netsim.Flow) netsim.Scenario {
	flow.Name = "mptcp"
	return netsim.Bottlenecks([]link.Spec{netsim.Bottleneck(6, 10, 0), netsim.Bottleneck(3, 30, 0)}, flow, netsim.Background{}).During(6)
}

func TestCheckNamesTheField(t *testing.T) {
	for want, spoil := range map[string]func(s *netsim.Scenario){
		`workload.kind "churn"`:                func(s *netsim.Scenario) { s.Flows[0].Workload.Kind = netsim.Churn },
		"workload.read_rate_mbps 2":            func(s *netsim.Scenario) { s.Flows[0].Workload.ReadRateMbps = 2 },
		`encapsulation "ip"`:                   func(s *netsim.Scenario) { s.Flows[0].Encapsulation = "ip" },
		"mtu 20000":                            func(s *netsim.Scenario) { s.Flows[0].MTU = 20000 },
		`link "bottleneck 1": its rate`:        func(s *netsim.Scenario) { s.Links[0].RateMbps = 900 },
		`link "bottleneck 2" has no rate_mbps`: func(s *netsim.Scenario) { s.Links[1].RateMbps = 0 },
		`link "path 1 back" has no rate_mbps`:  func(s *netsim.Scenario) { s.Flows[0].Download = true },
		`forward names 2 links`:                func(s *netsim.Scenario) { s.Paths[0].Forward = []string{"bottleneck 1", "bottleneck 2"} },
		`is also one of path`: func(s *netsim.Scenario) {
			s.Paths[0].Reverse, s.Paths[1].Reverse = []string{"bottleneck 2"}, nil
		},
		"duration_s": func(s *netsim.Scenario) { s.DurationS = 0 },
	} {
		s := two(netsim.Flow{})
		spoil(&s)
		if err := Check(&s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %s", err, want)
		}
		if _, err := Run(t.Context(), s); err == nil {
			t.Errorf("%s: it was run", want)
		}
	}
	if s := two(netsim.Flow{}); Check(&s) != nil {
		t.Error("refused what can be run")
	}
}

// agrees says whether what was measured in real time is what the simulator says, give or take a share: the goodput and each path's part of it.
func agrees(sim, real *netsim.Result, tolerance float64) bool {
	s, r := &sim.Flows[0], &real.Flows[0]
	ok := math.Abs(r.GoodputMbps/s.GoodputMbps-1) <= tolerance
	for i := range s.Subflows {
		part := func(f *netsim.FlowResult) float64 {
			return f.Subflows[i].ThroughputMbps / (f.Subflows[0].ThroughputMbps + f.Subflows[1].ThroughputMbps)
		}
		ok = ok && math.Abs(part(s)-part(r)) <= tolerance/2
	}
	return ok
}

// The tolerances of goodput: of a run that kept time, and of one that did not because the machine was busy. One that was late by more than hopeless
// (99th percentile, in ms) was another network.
const (
	onTime   = 0.15
	isLate   = 0.35
	hopeless = 10
)

// The simulator and the host, over real sockets, agree about what schemes get from two paths; and not with a simulation of other paths.
func TestSimulatedAndRealAgree(t *testing.T) {
	var all sync.WaitGroup
	var judged atomic.Int32
	for _, k := range [][2]string{{"bbr", "minrtt"}, {"cubic", "minrtt"}, {"coupledbbr", "arp"}} {
		all.Go(func() {
			s := two(netsim.Flow{Congestion: k[0], Scheduler: k[1]})
			p, err := Beside(t.Context(), s, 1, 2)
			if err != nil {
				t.Error(err)
				return
			}
			sim, r := p.Simulated[0], p.Real
			tolerance := onTime
			if r.Timing.Late {
				tolerance = isLate
			}
			f := &r.Flows[0]
			t.Logf("%v: %.2f Mbit/s simulated, %.2f real (%.2f and %.2f); %v", k, sim.Flows[0].GoodputMbps, f.GoodputMbps, f.Subflows[0].ThroughputMbps, f.Subflows[1].ThroughputMbps, r.Timing)
			if f.Subflows[0].ThroughputMbps == 0 || f.Subflows[1].ThroughputMbps == 0 {
				t.Errorf("%v: a path was not used", k)
			}
			if r.Timing.LatenessP99Ms > hopeless {
				return
			}
			judged.Add(1)
			if !agrees(sim, &r.Result, tolerance) || f.Error != "" || f.Corrupted != 0 {
				t.Errorf("%v: %.2f Mbit/s simulated, %.2f real (%.2f and %.2f), %s; %v", k, sim.Flows[0].GoodputMbps, f.GoodputMbps, f.Subflows[0].ThroughputMbps, f.Subflows[1].ThroughputMbps, f.Error, r.Timing)
			}
			s.Links[0].RateMbps = 3
			other, err := netsim.Run(Encapsulated(s))
			if err != nil {
				t.Error(err)
				return
			}
			if !r.Timing.Late && agrees(other, &r.Result, onTime) {
				t.Errorf("%v: also agrees with a simulation of half the first path's rate", k)
			}
		})
	}
	all.Wait()
	if judged.Load() == 0 && !t.Failed() {
		t.Skipf("the machine is too busy to tell: packets were late by more than %d ms", hopeless)
	}
}

// What a Scenario says beside bulk over two paths is done too, all of it at the same time.
func TestScenariosInRealTime(t *testing.T) {
	var all sync.WaitGroup
	run := func(name string, s netsim.Scenario, check func(t *testing.T, r *Result)) {
		all.Go(func() {
			r, err := Run(t.Context(), s)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			for _, f := range r.Flows {
				if f.Error != "" || f.Corrupted != 0 {
					t.Errorf("%s: flow %q: %s", name, f.Name, f.Error)
				}
			}
			check(t, r)
		})
	}
	run("paced", two(netsim.Flow{Workload: netsim.Workload{Kind: netsim.Paced, RateMbps: 2}}).During(3), func(t *testing.T, r *Result) {
		if g := r.Flows[0].GoodputMbps; g > 2.5 || !r.Timing.Late && g < 1.7 {
			t.Errorf("paced: %v Mbit/s, want 2", g)
		}
	})
	run("bytes", two(netsim.Flow{Workload: netsim.Workload{Bytes: 500_000}}).During(4), func(t *testing.T, r *Result) {
		if f := &r.Flows[0]; f.Bytes != 500_000 || f.CompletedS < 0.4 {
			t.Errorf("bytes: %d received, complete after %v s", f.Bytes, f.CompletedS)
		}
	})
	asks := two(netsim.Flow{Workload: netsim.Workload{Kind: netsim.Request, ResponseBytes: 20_000, ThinkS: 0.1}}).During(3)
	asks.Links = append(asks.Links, netsim.Medium{Name: "down", Spec: netsim.Bottleneck(5, 10, 0)}, netsim.Medium{Name: "down 2", Spec: netsim.Bottleneck(5, 10, 0)})
	asks.Paths[0].Reverse, asks.Paths[1].Reverse = []string{"down"}, []string{"down 2"}
	run("request", asks, func(t *testing.T, r *Result) {
		if f := &r.Flows[0]; f.Requests < 3 || f.LatencyMs < 20 || f.Bytes < f.Requests*20_000 {
			t.Errorf("request: %d requests, %d bytes, %v ms", f.Requests, f.Bytes, f.LatencyMs)
		}
	})
	cut := two(netsim.Flow{}).During(3)
	cut.Links[0].Changes = []link.Change{{AtS: 1.5, Down: ptr(true)}}
	run("cut", cut, func(t *testing.T, r *Result) {
		after := r.Flows[0].Subflow("path 1").Series.ThroughputMbps[20:]
		for _, v := range after {
			if v > 0.2 {
				t.Errorf("cut: %v Mbit/s over a path that is down", v)
				return
			}
		}
		if before := r.Flows[0].Subflow("path 1").SentBytes; before < 100_000 {
			t.Errorf("cut: %d bytes before", before)
		}
	})
	shared := netsim.Dumbbell(netsim.Bottleneck(8, 10, 0), netsim.Flow{Name: "a", Congestion: "cubic"}, netsim.Flow{Name: "b", Congestion: "cubic", PlainTCP: true}).During(3)
	run("shared", shared, func(t *testing.T, r *Result) {
		a, b := r.Flow("a").GoodputMbps, r.Flow("b").GoodputMbps
		if a == 0 || b == 0 || a+b > 8.5 || !r.Timing.Late && a+b < 5 {
			t.Errorf("shared: %v and %v Mbit/s of 8", a, b)
		}
	})
	all.Wait()
}
