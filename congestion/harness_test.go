package congestion

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"braid/clock"
)

const testMSS = 1000

func testConfig() Config {
	return Config{MSS: testMSS, Rand: rand.New(rand.NewPCG(1, 2))}
}

// harness is a subflow as a controller sees it: it sends, acknowledges and loses packets of one MSS when the test says so and
// keeps the counts that tcp would. Packets leave the flight in the order in which they entered it.
type harness struct {
	t         *testing.T
	c         Controller
	now       clock.Time
	rtt       time.Duration // of every ACK, until changed
	minRTT    time.Duration
	flight    []flying
	delivered int64
	weighted  float64
	lastAck   clock.Time
	round     int64 // delivered at which the next round starts

	appLimited bool // the application has little to say: packets sent now are stamped so, and the window does not limit
	recovering bool
}

type flying struct {
	sent      clock.Time
	delivered int64
	weighted  float64
	ackedAt   clock.Time // when delivered was reached
	weight    float64
	limited   bool
}

func newHarness(t *testing.T, c Controller) *harness {
	return &harness{t: t, c: c, now: clock.Time(time.Second), rtt: 100 * time.Millisecond}
}

func (h *harness) inFlight() int64 { return int64(len(h.flight)) * testMSS }

// send sends n packets at once.
func (h *harness) send(n int) {
	for range n {
		if len(h.flight) == 0 {
			h.lastAck = h.now
		}
		w := h.c.OnSend(Send{Now: h.now, Bytes: testMSS, InFlight: h.inFlight()})
		h.flight = append(h.flight, flying{
			sent: h.now, delivered: h.delivered, weighted: h.weighted, ackedAt: h.lastAck, weight: w, limited: h.appLimited,
		})
	}
}

// fill sends until the window is full.
func (h *harness) fill() {
	for h.inFlight()+testMSS <= h.c.Window() {
		h.send(1)
	}
}

// ack acknowledges the n oldest packets with one ACK.
func (h *harness) ack(n int) { h.ackLosing(n, 0) }

// ackLosing acknowledges n packets with one ACK that also marks the lost oldest ones before them as lost.
func (h *harness) ackLosing(n, lost int) {
	h.t.Helper()
	if n+lost > len(h.flight) {
		h.t.Fatalf("ack of %d and loss of %d packets, %d in flight", n, lost, len(h.flight))
	}
	prior := h.inFlight()
	h.flight = h.flight[lost:]
	var last flying
	for _, p := range h.flight[:n] {
		h.delivered += testMSS
		h.weighted += float64(testMSS * p.weight)
		last = p
	}
	h.flight = h.flight[n:]
	s := Sample{
		Now: h.now, Delivered: h.delivered, PriorInFlight: prior, InFlight: h.inFlight(),
		Acked: int64(n) * testMSS, Lost: int64(lost) * testMSS,
		WindowLimited: !h.appLimited, InRecovery: h.recovering,
	}
	if n > 0 {
		s.PriorDelivered = last.delivered
		s.Weighted = h.weighted - last.weighted
		s.Interval = h.now.Sub(last.ackedAt)
		s.AppLimited = last.limited
		s.RTT, s.SRTT = h.rtt, h.rtt
		if last.delivered >= h.round {
			h.round = h.delivered
			s.RoundStart = true
		}
		if h.minRTT == 0 || h.rtt < h.minRTT {
			h.minRTT = h.rtt
		}
		s.MinRTT = h.minRTT
		h.lastAck = h.now
	}
	h.c.OnAck(&s)
}

// lose reports a loss event as tcp does: congestion, recovery, and the ACK that told of it (n packets acknowledged).
func (h *harness) lose(lost, n int) {
	h.t.Helper()
	h.c.OnCongestion(h.now, Loss, h.inFlight())
	h.recovering = true
	h.c.OnRecoveryEnter(h.now, h.inFlight()-int64(lost)*testMSS)
	h.ackLosing(n, lost)
}

// recover ends the recovery.
func (h *harness) recover() {
	h.recovering = false
	h.c.OnRecoveryExit(h.now, h.inFlight())
}

// timeout reports an expired retransmission timer; everything in flight is lost.
func (h *harness) timeout() {
	h.c.OnCongestion(h.now, Timeout, h.inFlight())
	h.flight = nil
	h.recovering = true
	h.c.OnRecoveryEnter(h.now, 0)
}

func (h *harness) advance(d time.Duration) { h.now = h.now.Add(d) }

// rounds runs n round trips: a window is sent, and one RTT later acknowledged packet by packet.
func (h *harness) rounds(n int) {
	h.t.Helper()
	for range n {
		h.fill()
		h.advance(h.rtt)
		for len(h.flight) > 0 {
			h.ack(1)
		}
	}
}

// wantWindow compares the window in packets.
func (h *harness) wantWindow(packets float64, what string) {
	h.t.Helper()
	if got := float64(h.c.Window()) / testMSS; math.Abs(got-packets) > 0.001 {
		h.t.Fatalf("%s: window %.3f packets, want %.3f", what, got, packets)
	}
}

func (h *harness) wantPhase(phase, what string) {
	h.t.Helper()
	if got := h.c.State().Phase; got != phase {
		h.t.Fatalf("%s: %s, want %s", what, got, phase)
	}
}

func wantClose(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > 1e-6*math.Max(1, math.Abs(want)) {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
}
