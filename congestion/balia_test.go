package congestion

import "testing"

// draft-walid-mptcp-congestion-control-04, by hand. 10 at 100 ms and 20 at 50 ms: x = 100 and 400 packets/s, a = 4 and 1:
//
//	growth 0: 100/0.1/500^2 x (1+4)/2 x (4+4)/5 = 0.004 x 2.5 x 1.6 = 0.016
//	growth 1: 400/0.05/500^2 x 1 x 1 = 0.032
//	decrease 0: 10 - 10/2 min(4, 1.5) = 2.5; decrease 1: 20 - 10 = 10
//
// Equal paths, 10 at 100 ms: 100/0.1/200^2 = 0.025; the decrease is half. 12 and 10 at 100 ms: a = 1 and 1.2, 1200/220^2 and
// 1000/220^2 x 1.1 x 1.04; 12 - 6 and 10 - 5 x 1.2.
func TestBALIA(t *testing.T) {
	for _, c := range []struct {
		windows [2]int64
		rtts    [2]int
		growth  [2]float64
		after   [2]float64
	}{
		{[2]int64{10, 20}, [2]int{100, 50}, [2]float64{0.016, 0.032}, [2]float64{2.5, 10}},
		{[2]int64{10, 10}, [2]int{100, 100}, [2]float64{0.025, 0.025}, [2]float64{5, 5}},
		{[2]int64{12, 10}, [2]int{100, 100}, [2]float64{0.02479338843, 0.02363636364}, [2]float64{6, 4}},
	} {
		for i := range 2 {
			pair := coupledPair(t, "balia", c.windows, c.rtts)
			wantClose(t, "growth", pair[i].growth(), c.growth[i])
			pair = coupledPair(t, "balia", c.windows, c.rtts)
			windowOf(pair[i].c).limited = true
			pair[i].c.OnCongestion(0, Loss, 0)
			pair[i].wantWindow(c.after[i], "after a loss")
		}
	}
}

// Alone it is NewReno: a = 1, growth 1/w, half on a loss. Without an RTT too.
func TestBALIAAlone(t *testing.T) {
	pair := coupledPair(t, "balia", [2]int64{10, 30}, [2]int{100, 10})
	pair[0].c.(*balia).group.Leave(1)
	wantClose(t, "growth", pair[0].growth(), 0.1)
	windowOf(pair[0].c).srtt = 0
	pair[0].c.OnCongestion(0, Loss, 10*testMSS)
	pair[0].wantWindow(5.05, "after a loss")
}
