package congestion

import (
	"math"
	"testing"
	"time"
)

// inAvoidance returns a harness whose CUBIC had one loss at the given window and has left recovery.
func cubicAfterLoss(t *testing.T, at int) (*harness, *Cubic) {
	t.Helper()
	cfg := testConfig()
	cfg.InitialWindow = at
	c := NewCubicWith(cfg, CubicOptions{NoHystart: true})
	h := newHarness(t, c)
	h.fill()
	h.c.OnCongestion(h.now, Loss, h.inFlight())
	h.wantWindow(0.7*float64(at), "beta of RFC 9438, Section 4.6")
	h.flight = nil
	return h, c
}

// RFC 9438, Section 4.2: K = cbrt((W_max - cwnd_epoch) / C); the window is back at W_max after K seconds, nearly flat there, and
// climbs beyond. 1000 packets: K = cbrt(300 / 0.4) = 9.086 s.
func TestCubicCurve(t *testing.T) {
	h, c := cubicAfterLoss(t, 1000)
	start := h.now
	var at4, at9, at13 float64
	for h.now.Sub(start) < 13*time.Second {
		h.rounds(1)
		switch d := h.now.Sub(start); {
		case d <= 4*time.Second:
			at4 = float64(c.Window()) / testMSS
		case d <= 9086*time.Millisecond:
			at9 = float64(c.Window()) / testMSS
		default:
			at13 = float64(c.Window()) / testMSS
		}
	}
	wantClose(t, "K", c.curve.k, math.Cbrt(300/0.4))
	// The epoch starts at the first ACK; the window trails the curve by at most a round or two.
	wantAbout(t, "W(4 s) = 0.4 (4 - 9.086)^3 + 1000", at4, 947.4, 5)
	wantAbout(t, "W(K) = W_max", at9, 1000, 1)
	wantAbout(t, "W(13 s) = 0.4 (13 - 9.086)^3 + 1000", at13, 1024, 5)
}

func wantAbout(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > tolerance {
		t.Fatalf("%s: %.3f, want %.3f", what, got, want)
	}
}

// RFC 9438, Section 4.3: at small windows and RTTs CUBIC is as fast as Reno: alpha = 3 (1 - 0.7) / (1 + 0.7) = 0.529 packets a round up to
// the window of the last loss, one packet a round beyond.
func TestCubicRenoFriendly(t *testing.T) {
	h, c := cubicAfterLoss(t, 20)
	h.rtt = 10 * time.Millisecond
	h.rounds(8) // K = cbrt(6 / 0.4) = 2.47 s: the curve moves little in 80 ms
	wantAbout(t, "eight rounds at 0.529", float64(c.Window())/testMSS, 14+8*cubicAlpha, 0.25)
	h.rounds(6)
	before := float64(c.Window()) / testMSS
	h.rounds(10)
	wantAbout(t, "ten rounds at 1", float64(c.Window())/testMSS-before, 10, 0.5)
}

// RFC 9438, Section 4.7: a loss below the last W_max releases some more: W_max = 700 (1 + 0.7) / 2.
func TestCubicFastConvergence(t *testing.T) {
	h, c := cubicAfterLoss(t, 1000)
	h.c.OnCongestion(h.now, Loss, c.Window())
	wantClose(t, "W_max", c.curve.max, 700*0.85)
	wantClose(t, "cwnd_prior", c.curve.prior, 700)
}

// RFC 9438, Section 4.8: after a timeout the epoch starts where slow start ends, at K = 0.
func TestCubicTimeout(t *testing.T) {
	h, c := cubicAfterLoss(t, 100)
	h.fill()
	h.timeout()
	h.wantWindow(1, "after the timeout")
	if got := c.State().Threshold; got != 49*testMSS {
		t.Fatalf("threshold %d, want 0.7 of 70 packets", got)
	}
	h.recover()
	h.rtt = 50 * time.Millisecond
	h.rounds(7)
	if !c.curve.began || c.curve.k != 0 {
		t.Fatalf("epoch %+v, want one that began with K = 0", c.curve)
	}
}

// RFC 9438, Section 5.8: time without need for the window is not time on the curve.
func TestCubicIdleAndLimited(t *testing.T) {
	h, c := cubicAfterLoss(t, 1000)
	h.rounds(5)
	before := c.Window()
	elapsed := h.now.Sub(c.curve.start)
	h.advance(30 * time.Second)
	h.c.OnRestart(h.now, 30*time.Second, time.Minute)
	if got := h.now.Sub(c.curve.start); got != elapsed {
		t.Fatalf("%v on the curve after the idle time, %v before", got, elapsed)
	}
	h.appLimited = true
	for range 100 {
		h.send(1)
		h.advance(h.rtt)
		h.ack(1)
	}
	if got := h.now.Sub(c.curve.start); got != elapsed || c.Window() != before {
		t.Fatalf("%v on the curve and window %d after the limited time, %v and %d before", got, c.Window(), elapsed, before)
	}
}

// RFC 9438, Section 4.9: everything that the event replaced comes back.
func TestCubicUndo(t *testing.T) {
	h, c := cubicAfterLoss(t, 1000)
	h.rounds(5)
	curve, window := c.curve, c.Window()
	h.fill()
	h.c.OnCongestion(h.now, Loss, h.inFlight())
	h.c.OnUndo(h.now)
	if c.curve != curve || c.Window() != window {
		t.Fatalf("%+v %d, want %+v %d", c.curve, c.Window(), curve, window)
	}
}

// The growth of a round is bounded: target <= 1.5 cwnd (RFC 9438, Section 4.2), however long ago the loss was.
func TestCubicTargetBound(t *testing.T) {
	h, c := cubicAfterLoss(t, 1000)
	h.rounds(1)
	c.curve.start -= 1000e9
	before := c.Window()
	h.rounds(1)
	if c.Window() > before*3/2+testMSS {
		t.Fatalf("a round brought %d bytes to %d", before, c.Window())
	}
}

// RFC 9406, Section 4.2: eight samples 1/8 above the last round's minimum start CSS; five rounds of it end slow start. The window
// grows by a quarter meanwhile.
func TestHystart(t *testing.T) {
	h := newHarness(t, NewCubic(testConfig()))
	h.rtt = 40 * time.Millisecond
	h.rounds(2)
	h.wantWindow(40, "slow start")
	h.rtt = 44 * time.Millisecond // threshold: max(4, min(40/8, 16)) = 5 ms
	h.rounds(1)
	h.wantWindow(80, "4 ms more: no alarm")
	h.rtt = 50 * time.Millisecond // 44 + 5.5
	h.rounds(1)
	h.wantPhase("conservative slow start", "6 ms more")
	w := float64(h.c.Window()) / testMSS // 8 ACKs at 1, 72 at 1/4 of 80 packets
	wantAbout(t, "the alarm round", w, 80+7+73*0.25, 0.01)
	h.rounds(4)
	h.wantPhase("conservative slow start", "the fifth round, the part of the alarm round counted, has not ended")
	h.rounds(1)
	h.wantPhase("avoidance", "after five rounds")
	if h.c.State().Threshold == 0 {
		t.Fatal("no threshold")
	}
}

// RFC 9406, Section 4.2: an RTT back below the baseline takes the alarm back.
func TestHystartFalseAlarm(t *testing.T) {
	h := newHarness(t, NewCubic(testConfig()))
	h.rounds(2)
	h.rtt = 130 * time.Millisecond
	h.rounds(1)
	h.wantPhase("conservative slow start", "30 ms more")
	h.rtt = 100 * time.Millisecond
	h.rounds(1)
	h.wantPhase("slow start", "back at the old RTT")
}

func TestHystartOff(t *testing.T) {
	h := newHarness(t, NewCubicWith(testConfig(), CubicOptions{NoHystart: true}))
	h.rounds(2)
	h.rtt = 200 * time.Millisecond
	h.rounds(2)
	h.wantWindow(160, "plain slow start")
}
