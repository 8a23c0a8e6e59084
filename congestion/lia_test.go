package congestion

import (
	"testing"
	"time"
)

// coupledPair joins two subflows of the named algorithm, in congestion avoidance at the given windows (packets) and RTTs (ms).
func coupledPair(t *testing.T, name string, windows [2]int64, rtts [2]int) [2]*harness {
	t.Helper()
	newGroup, err := ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	g := newGroup()
	var out [2]*harness
	for i := range out {
		h := newHarness(t, g.Join(i, testConfig()))
		h.rtt = time.Duration(rtts[i]) * time.Millisecond
		w := windowOf(h.c)
		w.size, w.threshold, w.srtt = windows[i]*testMSS, testMSS, h.rtt
		out[i] = h
	}
	return out
}

func windowOf(c Controller) *window {
	switch c := c.(type) {
	case *lia:
		return &c.window
	case *olia:
		return &c.window
	case *balia:
		return &c.window
	}
	panic("not a linked controller")
}

// growth returns by how many packets one acknowledged packet opens the window.
func (h *harness) growth() float64 {
	w := windowOf(h.c)
	before := float64(w.size) + w.credit
	if len(h.flight) == 0 {
		h.send(1)
	}
	h.ack(1)
	return (float64(w.size) + w.credit - before) / testMSS
}

// RFC 6356, Section 3, equations 1 and 2 (CC-02, CC-03), worked out by hand:
//
//	10 packets at 100 ms beside 20 at 50 ms: alpha = 30 (20/0.05^2) / (10/0.1 + 20/0.05)^2 = 30 x 8000 / 500^2 = 0.96;
//	each grows by min(0.96/30, 1/cwnd) = 0.032.
//	10 at 100 beside 10 at 100: alpha = 20 x 1000 / 200^2 = 0.5; 0.025.
//	100 at 10 beside 2 at 100: alpha = 102 x 1e6 / 10020^2 = 1.015932; alpha / 102 = 0.00996012 < 1/100.
//	2 at 100 beside 30 at 400: alpha = 32 max(200, 187.5) / 95^2 = 0.709141; 0.0221607.
func TestLIA(t *testing.T) {
	for _, c := range []struct {
		windows [2]int64
		rtts    [2]int
		want    [2]float64
	}{
		{[2]int64{10, 20}, [2]int{100, 50}, [2]float64{0.032, 0.032}},
		{[2]int64{10, 10}, [2]int{100, 100}, [2]float64{0.025, 0.025}},
		{[2]int64{100, 2}, [2]int{10, 100}, [2]float64{0.0099601193622, 0.0099601193622}},
		{[2]int64{2, 30}, [2]int{100, 400}, [2]float64{0.0221606648, 0.0221606648}},
	} {
		for i := range 2 {
			pair := coupledPair(t, "lia", c.windows, c.rtts)
			wantClose(t, "growth", pair[i].growth(), c.want[i])
		}
	}
}

// The cap of RFC 6356, Section 3, equation 1: never faster than TCP on its own: 1 packet at 10 ms beside 20 at 200: alpha / total =
// 10000 / 200^2 = 0.25, and the larger window gains no more than 1/20.
func TestLIACap(t *testing.T) {
	pair := coupledPair(t, "lia", [2]int64{1, 20}, [2]int{10, 200})
	wantClose(t, "growth of the large window", pair[1].growth(), 0.05)
	pair = coupledPair(t, "lia", [2]int64{1, 20}, [2]int{10, 200})
	wantClose(t, "growth of the small window", pair[0].growth(), 0.25)
}

// Alone, after Leave or Silence of the other, LIA is NewReno.
func TestLIAAlone(t *testing.T) {
	for _, leave := range []func(Group){
		func(g Group) { g.Leave(1) },
		func(g Group) { g.Silence(1, true) },
	} {
		pair := coupledPair(t, "lia", [2]int64{10, 10}, [2]int{100, 100})
		leave(pair[0].c.(*lia).group)
		wantClose(t, "growth", pair[0].growth(), 0.1)
	}
	pair := coupledPair(t, "lia", [2]int64{10, 10}, [2]int{100, 100})
	g := pair[0].c.(*lia).group
	g.Silence(1, true)
	g.Silence(1, false)
	wantClose(t, "growth after Silence ended", pair[0].growth(), 0.025)
}

// CC-04: slow start and decrease stay standard TCP's (RFC 6356, Section 3).
func TestLIAStandardParts(t *testing.T) {
	pair := coupledPair(t, "lia", [2]int64{10, 20}, [2]int{100, 50})
	w := windowOf(pair[1].c)
	w.threshold = 100 * testMSS
	wantClose(t, "slow start", pair[1].growth(), 1)
	pair[1].fill()
	pair[1].lose(1, 1)
	pair[1].wantWindow(10.5, "half of 21")
}
