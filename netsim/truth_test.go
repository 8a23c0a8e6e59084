package netsim

import (
	"flag"
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"

	"braid/link"
)

// long runs more seeds for longer: go test ./netsim -run Truth -long. With -short there is one seed of each.
var long = flag.Bool("long", false, "run the comparisons with Linux over more seeds and time")

// What an MTU of 1500 lets through of 100 Mbit/s: IP and TCP headers and timestamps, and with MPTCP a DSS, cost the rest.
const (
	tcpCeiling   = 100 * 1448.0 / 1500
	mptcpCeiling = 100 * 1424.0 / 1500
	// linuxCeiling is what the measurements on Linux could reach at most (they count Ethernet headers too).
	linuxCeiling      = 95.8
	linuxMPTCPCeiling = 189.9
)

// runAll runs scenarios on all processors and returns their results in order.
func runAll(t *testing.T, scenarios []Scenario) []*Result {
	t.Helper()
	results, errs := make([]*Result, len(scenarios)), make([]error, len(scenarios))
	var wg sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, s := range scenarios {
		wg.Add(1)
		slots <- struct{}{}
		go func() {
			defer wg.Done()
			results[i], errs[i] = Run(s)
			<-slots
		}()
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range results[i].Flows {
			if f.Error != "" || f.Corrupted != 0 {
				t.Errorf("scenario %d, flow %q: %s, first wrong byte %d", i, f.Name, f.Error, f.Corrupted-1)
			}
		}
	}
	return results
}

// seeds returns s with the seeds 1 to n.
func seeds(s Scenario, n int) (out []Scenario) {
	for i := range n {
		s.Seed = uint64(i + 1)
		out = append(out, s)
	}
	return out
}

// average is the mean of a measurement over results.
func average(results []*Result, of func(r *Result) float64) float64 {
	sum := 0.0
	for _, r := range results {
		sum += of(r)
	}
	return sum / float64(len(results))
}

func goodput(r *Result) float64 { return r.Flows[0].GoodputMbps }
func rtt(r *Result) float64     { return r.Flows[0].Subflows[0].MeanRTTMs }

// notUnderRace skips what simulates minutes on one goroutine: the race detector would find nothing in it, ten times more slowly.
func notUnderRace(t *testing.T) {
	if raceDetector {
		t.Skip("minutes of simulated time on one goroutine: run without -race")
	}
}

// One flow over 100 Mbit/s and 50 ms with a drop-tail queue of one bandwidth-delay product does what Linux 6.18 does there: without loss the
// same goodput and nearly the same delay; under random loss BBR holds its own, and the loss-based ones collapse alike.
func TestTruthSingleFlow(t *testing.T) {
	notUnderRace(t)
	for _, c := range []struct {
		congestion string
		loss       float64
		goodput    float64 // Linux, Mbit/s
		rtt        float64 // Linux, ms; 0: not compared
		durationS  float64
	}{
		{"reno", 0, 95.8, 76, 75}, // its saw's tooth takes 31 s
		{"cubic", 0, 95.8, 85, 30},
		{"bbr", 0, 93.8, 54.5, 30},
		{"reno", 0.0001, 37, 0, 45},
		{"cubic", 0.0001, 45, 0, 45},
		{"bbr", 0.0001, 94.6, 0, 20},
		{"reno", 0.001, 10, 0, 60},
		{"cubic", 0.001, 11.5, 0, 60},
		{"bbr", 0.001, 93.4, 0, 20},
		{"reno", 0.01, 3.4, 0, 60},
		{"cubic", 0.01, 3.2, 0, 60},
		{"bbr", 0.01, 91.9, 0, 20},
	} {
		n := 5
		switch {
		case *long:
			n, c.durationS = 20, 3*c.durationS
		case testing.Short():
			n = 1
		}
		s := Dumbbell(Bottleneck(100, 25, c.loss), Flow{Name: "f", Congestion: c.congestion, PlainTCP: true}).During(c.durationS)
		results := runAll(t, seeds(s, n))
		share, linux := average(results, goodput)/tcpCeiling, c.goodput/linuxCeiling
		t.Logf("%-5s loss %-6v goodput %5.1f Mbit/s (%.3f of the ceiling; Linux %.3f), RTT %.1f ms (Linux %v; 0: not compared)",
			c.congestion, c.loss, average(results, goodput), share, linux, average(results, rtt), c.rtt)
		if c.congestion == "bbr" || c.loss == 0 {
			if math.Abs(share/linux-1) > 0.03 {
				t.Errorf("%s, loss %v: %.3f of the ceiling, more than 3 %% off Linux's %.3f", c.congestion, c.loss, share, linux)
			}
		} else if share < linux/2 || share > linux*2 {
			t.Errorf("%s, loss %v: %.4f of the ceiling, not between half and twice Linux's %.4f", c.congestion, c.loss, share, linux)
		}
		if got := average(results, rtt); c.rtt > 0 && math.Abs(got/c.rtt-1) > 0.15 {
			t.Errorf("%s: mean RTT %.1f ms, more than 15 %% off Linux's %v", c.congestion, got, c.rtt)
		}
	}
}

// Two paths of 100 Mbit/s, uncoupled, add up as well as on Linux, with equal and with unequal delays.
func TestTruthTwoPaths(t *testing.T) {
	notUnderRace(t)
	for _, c := range []struct {
		congestion string
		rtt2       float64
		linux      float64 // Mbit/s, of linuxMPTCPCeiling
		n          int
	}{
		{"cubic", 50, 188, 1}, // nothing here is random
		{"cubic", 150, 183, 1},
		{"bbr", 50, 183, 2},
		{"bbr", 150, 180, 2},
	} {
		duration := 24.0
		if *long {
			c.n, duration = 5*c.n, 60
		}
		specs := []link.Spec{Bottleneck(100, 25, 0), Bottleneck(100, c.rtt2/2, 0)}
		s := Bottlenecks(specs, Flow{Name: "f", Congestion: c.congestion, Scheduler: "minrtt"}, Background{}).During(duration)
		got := average(runAll(t, seeds(s, c.n)), goodput)
		share, linux := got/(2*mptcpCeiling), c.linux/linuxMPTCPCeiling
		t.Logf("%-5s 50/%v ms: %.1f Mbit/s, %.3f of the ceiling (Linux %.3f)", c.congestion, c.rtt2, got, share, linux)
		if share < 0.99*linux {
			t.Errorf("%s, 50/%v ms: %.3f of the ceiling, under 0.99 of Linux's %.3f", c.congestion, c.rtt2, share, linux)
		}
	}
}

// One of two paths falls silent: within a second the goodput is at least 90 % of what the other sustains, and the two seconds behind show that it was no
// burst (BBR may spend a fifth of a second there on measuring its minimum RTT). When the path comes back, both are in use again within two
// seconds.
func TestTruthFailover(t *testing.T) {
	notUnderRace(t)
	for _, congestion := range []string{"bbr", "cubic", "coupledbbr"} {
		for _, scheduler := range []string{"minrtt", "roundrobin"} {
			s, err := LoadScenarioFile(exampleDir + "/failover.toml")
			if err != nil {
				t.Fatal(err)
			}
			s.Flows[0].Congestion, s.Flows[0].Scheduler = congestion, scheduler
			n := 3
			if *long {
				n = 20
			}
			const down, up = 8, 16
			for _, r := range runAll(t, seeds(*s, n)) {
				f := &r.Flows[0]
				alone := mean(f.Series.GoodputMbps, r.BinS, 12, up)
				recovered := firstWindow(f.Series.GoodputMbps, r.BinS, down, 0.5, 0.9*alone, 0.8*alone, 2)
				if alone < 17 || recovered > 1 {
					t.Errorf("%s, %s, seed %d: goodput back after %.1f s at %.1f Mbit/s; %.1f", congestion, scheduler, r.Seed, recovered, alone,
						f.Series.GoodputMbps[down*10:(down+4)*10])
				}
				back := firstWindow(f.Subflow("second").Series.ThroughputMbps, r.BinS, up, 0.5, 0.5*alone, 0, 0)
				if back > 2 {
					t.Errorf("%s, %s, seed %d: the path is in use %.1f s after its return", congestion, scheduler, r.Seed, back)
				}
			}
		}
	}
}

// mean averages a series over [from, to) seconds.
func mean(series []float64, binS, from, to float64) float64 {
	sum := 0.0
	part := series[int(math.Round(from/binS)):int(math.Round(to/binS))]
	for _, v := range part {
		sum += v
	}
	return sum / float64(len(part))
}

// firstWindow returns how long after a time the first window begins whose mean is at least level, while the stretch of so many seconds behind it
// has at least another one.
func firstWindow(series []float64, binS, after, window, level, behind, stretch float64) float64 {
	for at := after; at+window+stretch <= float64(len(series))*binS; at += binS {
		if mean(series, binS, at, at+window) >= level && (stretch == 0 || mean(series, binS, at+window, at+window+stretch) >= behind) {
			return at - after
		}
	}
	return math.Inf(1)
}

func TestFirstWindow(t *testing.T) {
	series := slices.Concat(slices.Repeat([]float64{10}, 10), []float64{0, 0, 0, 80, 0, 0, 0}, slices.Repeat([]float64{9}, 30))
	if got := firstWindow(series, 0.1, 1, 0.2, 9, 0, 0); math.Abs(got-0.2) > 1e-9 {
		t.Errorf("without sustaining: %v s, want 0.2 (the burst)", got)
	}
	if got := firstWindow(series, 0.1, 1, 0.2, 9, 9, 1); math.Abs(got-0.7) > 1e-9 {
		t.Errorf("sustained: %v s, want 0.7", got)
	}
	if got := firstWindow(series, 0.1, 1, 0.2, 20, 9, 1); !math.IsInf(got, 1) {
		t.Errorf("never: %v", got)
	}
}
