package congestion

import "testing"

// beta = max BW BW_i / sum BW^2; alpha = (8 beta - 2) / 6, by hand:
//
//	equal: beta 0.5, alpha 1/3, window max(2/3, 0.583333)
//	100/50: beta 0.8 and 0.4; alpha 0.733333 and 0.2; window 1.466667 and 0.45
//	100/20: beta 0.961538 and 0.192308; alpha 0.948718 and below zero: 0.05, window 0.1
func TestCoupledBBRCycle(t *testing.T) {
	for _, c := range []struct {
		bw           []float64
		beta         []float64
		alpha, gains []float64
	}{
		{[]float64{100}, []float64{1}, []float64{1}, []float64{2}},
		{[]float64{100, 100}, []float64{0.5, 0.5}, []float64{0.33333333, 0.33333333}, []float64{0.66666667, 0.66666667}},
		{[]float64{100, 50}, []float64{0.8, 0.4}, []float64{0.73333333, 0.2}, []float64{1.46666667, 0.45}},
		{[]float64{100, 20}, []float64{0.96153846, 0.19230769}, []float64{0.94871795, 0.05}, []float64{1.8974359, 0.1}},
	} {
		g := NewCoupledBBRCycle().(*coupledBBRCycleGroup)
		for i, bw := range c.bw {
			m := g.Join(i, testConfig()).(*coupledBBRCycle)
			m.full = true
			m.bandwidth.add(0, bw)
		}
		for i, m := range g.list {
			wantClose(t, "beta", g.beta(m), c.beta[i])
			alpha, window := cycleGains(g.beta(m))
			wantClose(t, "alpha", alpha, c.alpha[i])
			wantClose(t, "window gain", window, c.gains[i])
		}
		if len(c.bw) == 2 {
			g.list[1].full = false
			wantClose(t, "uncoupled while one looks for its bandwidth", g.beta(g.list[0]), 1)
			g.Silence(1, true)
			wantClose(t, "a silent one does not count", g.beta(g.list[0]), 1)
		}
	}
}

// In the machine: cruise phases cruise at alpha, the probe and the drain are BBR's; the mean rate is beta.
func TestCoupledBBRCyclePhases(t *testing.T) {
	h, b := bbrAt(t, 2)
	b.cruise, b.cruiseWindow = cycleGains(0.5)
	h.ack(1)
	wantClose(t, "cruise", b.PacingRate()/testMSS, 330)
	h.wantWindow(74, "2/3 BDP and the budget") // 66.67: 67 + 6, even
	wantClose(t, "mean rate", b.State().SendingRate/testMSS, 495)
	b.cycle, b.phaseStart = 0, h.now
	h.ack(1)
	wantClose(t, "probe", b.PacingRate()/testMSS, 0.99*1250)
}
