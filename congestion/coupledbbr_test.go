package congestion

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// coupledAt returns subflows of one Coupled BBR group in PROBE_BW with the given bandwidths (packets/s), free parts and RTprop 100 ms.
func coupledAt(v, free []float64) []*CoupledBBR {
	g := NewCoupledBBR()
	var out []*CoupledBBR
	for i := range v {
		c := g.Join(i, testConfig()).(*CoupledBBR)
		c.full, c.mode, c.cycle = true, bbrProbeBW, 2
		c.bandwidth.add(0, v[i]*testMSS)
		c.real.add(0, v[i]*testMSS)
		c.free = free[i]
		c.rtprop, c.srtt, c.seenRTT = 100*time.Millisecond, 100*time.Millisecond, true
		out = append(out, c)
	}
	return out
}

// The shares, by hand. c = max(0, T - F) / sum (1 - s) v, then c / (1 + 0.75 (1 - c)), b = s + (1 - s) c:
//
//	equal: c = 1/2, 0.5/1.375 = 0.363636
//	100/50: c = 100/150 = 0.666667, 0.666667/1.25 = 0.533333 on both
//	three equal: c = 1/3, 0.333333/1.5 = 0.222222
//	one free (s = 1, 0), equal: T - F = 0: b = 1 and 0, floored at 0.1
//	half free each: c = (100 - 100)/100 = 0: b = 0.5
//	s = 0.2, 0: F = 20, c = 80/180 = 0.444444, /1.416667 = 0.313725; b = 0.2 + 0.8 x 0.313725 = 0.450980 and 0.313725
//	all free: 1
func TestCoupledBBRShares(t *testing.T) {
	for _, c := range []struct {
		what          string
		v, free, want []float64
	}{
		{"alone", []float64{100}, []float64{0.3}, []float64{1}},
		{"equal", []float64{100, 100}, []float64{0, 0}, []float64{0.36363636, 0.36363636}},
		{"100/50", []float64{100, 50}, []float64{0, 0}, []float64{0.53333333, 0.53333333}},
		{"three", []float64{100, 100, 100}, []float64{0, 0, 0}, []float64{0.22222222, 0.22222222, 0.22222222}},
		{"one free", []float64{100, 100}, []float64{1, 0}, []float64{1, 0.1}},
		{"half free", []float64{100, 100}, []float64{0.5, 0.5}, []float64{0.5, 0.5}},
		{"a fifth free", []float64{100, 100}, []float64{0.2, 0}, []float64{0.45098039, 0.31372549}},
		{"all free", []float64{100, 20}, []float64{1, 1}, []float64{1, 1}},
	} {
		members := coupledAt(c.v, c.free)
		for i, m := range members {
			wantClose(t, c.what, m.group.share(m), c.want[i])
		}
	}
}

// With exponent 2 the better path gets more: 100/50: c = 100 x 100 / (100^2 + 50^2) = 0.8 and 100 x 50 / 12500 = 0.4; 0.8/1.15, 0.4/1.45.
func TestCoupledBBRExponent(t *testing.T) {
	members := coupledAt([]float64{100, 50}, []float64{0, 0})
	members[0].group.opt.Exponent = 2
	wantClose(t, "better", members[0].group.share(members[0]), 0.8/1.15)
	wantClose(t, "worse", members[0].group.share(members[1]), 0.4/1.45)
}

// A share is not above what was really delivered, and not below a tenth.
func TestCoupledBBRRealCap(t *testing.T) {
	members := coupledAt([]float64{100, 100}, []float64{0.5, 0.5})
	members[0].real = maxFilter{best: 30 * testMSS}
	wantClose(t, "capped", members[0].group.share(members[0]), 0.3)
	members[0].real = maxFilter{best: 3 * testMSS}
	wantClose(t, "floor", members[0].group.share(members[0]), 0.1)
}

// Subflows in startup and silent ones are outside the group.
func TestCoupledBBROutside(t *testing.T) {
	members := coupledAt([]float64{100, 100}, []float64{0, 0})
	g := members[0].group
	g.Silence(1, true)
	wantClose(t, "the other is silent", g.share(members[0]), 1)
	wantClose(t, "it is silent itself", g.share(members[1]), 1)
	g.Silence(1, false)
	members[1].full = false
	wantClose(t, "the other is in startup", g.share(members[0]), 1)
	members[1].full = true
	g.Leave(1)
	wantClose(t, "the other is gone", g.share(members[0]), 1)
}

// Gains of a share b = 0.4, by hand: a = g - 0.6: 0.65, 0.15, 0.4; k = 0.8. w = min(2/k, rho / (rho - 0.6)) at rho = min(g, 2/r):
// r = 1: probe 1.25/0.65 = 1.923077, drain 0.75/0.15 = 5 above 2/0.8 = 2.5, cruise 1/0.4 = 2.5; r = 2: rho = 1 at most.
func TestCoupledBBRGains(t *testing.T) {
	for _, c := range []struct {
		share          float64
		cycle          uint8
		stretch        int // percent
		pacing, window float64
		weight         float64
		drain          float64 // longest drain, RTprops; 0: does not matter
	}{
		{0.4, 0, 100, 0.65, 0.8, 1.923076923, 0},
		{0.4, 1, 100, 0.15, 0.8, 2.5, 1},
		{0.4, 2, 100, 0.4, 0.8, 2.5, 0},
		{0.4, 0, 200, 0.65, 0.8, 2.5, 0},
		{0.1, 0, 100, 0.35, 0.35, 1.25 / 0.35, 0},                // a > 2b: all the room there is
		{0.1, 0, 155, 0.35, 0.275, 1.25 / 0.35, 0},               // half the room; rho = min(1.25, 1.290)
		{0.1, 0, 180, 0.35, 0.2, 2.0 / 1.8 / (2.0/1.8 - 0.9), 0}, // none
		{0.1, 1, 100, 0.01, 0.2, 10, 2.77777778},                 // the drain's floor 0.1 b; 0.25/0.09 RTprops
		{0.9, 1, 100, 0.65, 1.8, 2 / 1.8, 1},
	} {
		m := coupledAt([]float64{1000}, []float64{0})[0]
		m.share, m.cycle, m.srtt = c.share, c.cycle, time.Duration(c.stretch)*time.Millisecond
		pacing, window := m.gains()
		wantClose(t, "pacing", pacing, c.pacing)
		wantClose(t, "window", window, c.window)
		wantClose(t, "weight", m.weight(), c.weight)
		if c.drain > 0 {
			wantClose(t, "drain length", m.drainLength(), c.drain)
		}
	}
}

func TestCoupledBBRWeightByMode(t *testing.T) {
	m := coupledAt([]float64{1000}, []float64{0})[0]
	m.share = 0.25
	for mode, want := range map[bbrMode]float64{bbrStartup: 1, bbrDraining: 1, bbrProbeRTT: 4} {
		m.mode = mode
		wantClose(t, bbrPhase[mode], m.weight(), want)
	}
}

// Three rounds without a queue begin to free a path, 2 % each; three with one begin to halve it.
func TestCoupledBBRElastic(t *testing.T) {
	m := coupledAt([]float64{1000}, []float64{0})[0]
	rounds := func(n int, rtt time.Duration, want float64) {
		t.Helper()
		for range n {
			m.roundMin = rtt
			m.elastic()
		}
		wantClose(t, "free part", m.free, want)
	}
	rounds(2, 111*time.Millisecond, 0)
	rounds(1, 111*time.Millisecond, 0.02)
	rounds(9, 100*time.Millisecond, 0.2)
	rounds(2, 112*time.Millisecond, 0.2) // one's own probe and drain
	rounds(1, 100*time.Millisecond, 0.22)
	rounds(2, 112*time.Millisecond, 0.22)
	rounds(1, 112*time.Millisecond, 0.11)
	rounds(1, 112*time.Millisecond, 0.055)
	rounds(4, 112*time.Millisecond, 0)
	rounds(2, 100*time.Millisecond, 0)
	rounds(500, 100*time.Millisecond, 1)
}

// Recovery from a random loss lasts 1/b rounds, at most 8; from a full queue one.
func TestCoupledBBRConservation(t *testing.T) {
	m := coupledAt([]float64{1000}, []float64{0})[0]
	for _, c := range []struct {
		share  float64
		srtt   time.Duration
		lo, hi uint8
	}{{0.5, 100 * time.Millisecond, 2, 2}, {0.4, 129 * time.Millisecond, 2, 3}, {0.1, 100 * time.Millisecond, 8, 8}, {0.4, 130 * time.Millisecond, 1, 1}, {1, 100 * time.Millisecond, 1, 1}} {
		m.share, m.srtt = c.share, c.srtt
		sum := 0
		for range 1000 {
			n := m.conservation()
			if n < c.lo || n > c.hi {
				t.Fatalf("%+v: %d rounds", c, n)
			}
			sum += int(n)
		}
		if c.share == 0.4 && c.hi == 3 && (sum < 2400 || sum > 2600) {
			t.Fatalf("1000 recoveries took %d rounds, want 2500", sum)
		}
	}
}

// Alone, Coupled BBR answers every event exactly as BBR does.
func TestCoupledBBRAloneIsBBR(t *testing.T) {
	for _, name := range []string{"coupledbbr", "coupledbbr-cycle"} {
		rapid.Check(t, func(t *rapid.T) {
			newGroup, _ := ByName(name)
			seed := rapid.Uint64().Draw(t, "seed")
			config := func() Config { return Config{MSS: testMSS, Rand: rand.New(rand.NewPCG(seed, 0))} }
			a, b := Controller(NewBBR(config())), newGroup().Join(3, config())
			e := newEvents(t, a)
			for range rapid.IntRange(1, 60).Draw(t, "events") {
				e.step(t, a, b)
				if a.Window() != b.Window() || a.PacingRate() != b.PacingRate() || a.State() != b.State() {
					t.Fatalf("%+v %d %v\n%+v %d %v", a.State(), a.Window(), a.PacingRate(), b.State(), b.Window(), b.PacingRate())
				}
			}
		})
	}
}

// A member of a group whose others left is BBR again.
func TestCoupledBBRAloneOnPath(t *testing.T) {
	run := func(name string) (float64, float64) {
		n := &network{}
		n.connect(name, 5, 0, newBottleneck(50, 40*time.Millisecond, 1, 1e-3, 9))
		mbps, rtt := n.measure(5*time.Second, 25*time.Second)
		return mbps[0], rtt[0]
	}
	m1, r1 := run("bbr")
	m2, r2 := run("coupledbbr")
	if m1 != m2 || r1 != r2 {
		t.Fatalf("bbr %v %v, coupledbbr %v %v", m1, r1, m2, r2)
	}
}

// One round with a loss stands for 1/share of the full flow's while such rounds are rare, for one when there is no other kind.
func TestCoupledBBRConservationInDenseLoss(t *testing.T) {
	m := coupledAt([]float64{1000}, []float64{0})[0]
	m.srtt = 100 * time.Millisecond
	for _, c := range []struct{ share, lossy, want float64 }{
		{0.25, 0, 4}, {0.25, 0.0005, 4}, {0.25, 0.5, 1.875}, {0.25, 1, 1}, {0.5, 0.2, 1.8}, {0.1, 0.002, 8}, {1, 0.5, 1},
	} {
		m.share, m.lossy = c.share, c.lossy
		const draws = 4000
		sum := 0.0
		for range draws {
			sum += float64(m.conservation())
		}
		if got := sum / draws; math.Abs(got-c.want) > 0.04 {
			t.Errorf("share %v, %v of the rounds with losses: %v rounds on average, want %v", c.share, c.lossy, got, c.want)
		}
	}
}

// The part of rounds with losses follows what happens within some sixteen rounds.
func TestBBRCountsRoundsWithLosses(t *testing.T) {
	_, b := bbrAt(t, 2)
	rounds := func(n int, r recovery) float64 {
		b.recovery = r
		for range n {
			b.delivered += testMSS
			b.updateBandwidth(&Sample{Now: 1, Delivered: b.delivered, PriorDelivered: b.delivered, Interval: time.Millisecond}, 1)
		}
		return b.lossy
	}
	before := rounds(1, recoveryNone)
	during := rounds(64, recoveryFast)
	after := rounds(64, recoveryNone)
	if before != 0 || during < 0.95 || after > 0.05 {
		t.Errorf("without losses %v, after 64 rounds of them %v, after 64 without %v", before, during, after)
	}
}
