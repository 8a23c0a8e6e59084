package congestion

import "testing"

// draft-khalili-mptcp-congestion-control-05: growth = (w_i / rtt_i^2) / (sum w / rtt)^2 + alpha_i / w_i, by hand:
//
//	10 at 100 ms, 20 at 50 ms: (10/0.01)/500^2 = 0.004; (20/0.0025)/500^2 = 0.032.
//	Loss intervals: path 0 bears more (l^2/rtt 300^2/0.1 against 100^2/0.05): B = {0}, M = {1}: alpha_0 = 1/(2x1) = 0.5, alpha_1 = -0.5:
//	0.004 + 0.05 = 0.054; 0.032 - 0.025 = 0.007.
//	Path 1 is best and largest: alpha = 0.
//	Equal windows, both in M: whatever B is, alpha = 0.
func TestOLIA(t *testing.T) {
	for _, c := range []struct {
		what    string
		windows [2]int64
		rtts    [2]int
		since   [2]int64 // packets since the last loss
		between [2]int64
		want    [2]float64
	}{
		{"the smaller is best", [2]int64{10, 20}, [2]int{100, 50}, [2]int64{300, 100}, [2]int64{0, 0}, [2]float64{0.054, 0.007}},
		{"by the interval between losses", [2]int64{10, 20}, [2]int{100, 50}, [2]int64{1, 100}, [2]int64{300, 90}, [2]float64{0.054, 0.007}},
		{"the larger is best", [2]int64{10, 20}, [2]int{100, 50}, [2]int64{100, 100}, [2]int64{0, 0}, [2]float64{0.004, 0.032}},
		{"equal windows", [2]int64{10, 10}, [2]int{100, 100}, [2]int64{300, 100}, [2]int64{0, 0}, [2]float64{0.025, 0.025}},
	} {
		for i := range 2 {
			pair := coupledPair(t, "olia", c.windows, c.rtts)
			for j := range pair {
				o := pair[j].c.(*olia)
				o.since, o.between = c.since[j]*testMSS, c.between[j]*testMSS
			}
			wantClose(t, c.what, pair[i].growth(), c.want[i])
		}
	}
}

// alpha with three paths: B = {2}, M = {0, 1}: +1/(3x1) for 2, -1/(3x2) for 0 and 1.
func TestOLIAAlphaThree(t *testing.T) {
	g := NewOLIA().(*oliaGroup)
	var c [3]*olia
	for i, packets := range []int64{20, 20, 5} {
		c[i] = g.Join(i, testConfig()).(*olia)
		c[i].size, c[i].threshold, c[i].srtt, c[i].since = packets*testMSS, testMSS, 1e8, 10
	}
	c[2].since = 1000
	wantClose(t, "alpha of the best", g.alpha(c[2]), 1.0/3)
	wantClose(t, "alpha of the largest", g.alpha(c[0]), -1.0/6)
	c[1].size = 10 * testMSS
	wantClose(t, "alpha of neither", g.alpha(c[1]), 0)
	g.Silence(2, true)
	wantClose(t, "alpha when the best is silent", g.alpha(c[0]), -1.0/2) // 0 and 1 are equally good, 0 is larger
}

// Losses end the intervals; a penalty or a repeated timeout does not.
func TestOLIAIntervals(t *testing.T) {
	pair := coupledPair(t, "olia", [2]int64{10, 10}, [2]int{100, 100})
	h, o := pair[0], pair[0].c.(*olia)
	h.send(5)
	h.ack(5)
	h.c.OnCongestion(h.now, Penalty, 0)
	if o.since != 5*testMSS {
		t.Fatalf("since %d", o.since)
	}
	h.send(5)
	h.lose(1, 2)
	if o.between != 5*testMSS || o.since != 2*testMSS {
		t.Fatalf("between %d, since %d", o.between, o.since)
	}
	h.timeout() // within the recovery: the same window of data
	if o.between != 5*testMSS {
		t.Fatalf("between %d after the timeout", o.between)
	}
}

// A negative alpha may close the window, never below a packet.
func TestOLIAFloor(t *testing.T) {
	pair := coupledPair(t, "olia", [2]int64{2, 1}, [2]int{100, 1})
	pair[1].c.(*olia).since = 1e9
	for range 200 {
		pair[0].growth()
	}
	if pair[0].c.Window() < testMSS {
		t.Fatalf("window %d", pair[0].c.Window())
	}
}
