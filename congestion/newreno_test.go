package congestion

import (
	"testing"
	"time"
)

// RFC 6928, Section 2: ten packets. RFC 5681, Section 3.1 with RFC 3465, Section 2.2: slow start doubles the window each round;
// one ACK adds at most two packets.
func TestNewRenoSlowStart(t *testing.T) {
	h := newHarness(t, NewNewReno(testConfig()))
	h.wantWindow(10, "initial window")
	h.rounds(1)
	h.wantWindow(20, "after a round")
	h.rounds(2)
	h.wantWindow(80, "after three rounds")
	h.fill()
	h.ack(80)
	h.wantWindow(82, "after one ACK for everything: L = 2")
}

// RFC 5681, Section 3.1, equation 4 and Section 3.2: half the flight, once; no growth in fast recovery; then one packet a round.
func TestNewRenoLoss(t *testing.T) {
	h := newHarness(t, NewNewReno(testConfig()))
	h.rounds(2)
	h.fill()
	h.lose(1, 3)
	h.wantWindow(20, "on loss")
	h.ack(10)
	h.wantWindow(20, "in fast recovery")
	h.recover()
	h.wantWindow(20, "after recovery")
	for len(h.flight) > 0 {
		h.ack(1)
	}
	h.rounds(1) // 26 acknowledged packets remained: more than one round
	if got := float64(h.c.Window()) / testMSS; got < 21.9 || got > 22.3 {
		t.Fatalf("two rounds of congestion avoidance brought 20 packets to %.3f", got)
	}
}

func TestNewRenoThresholdFloor(t *testing.T) {
	h := newHarness(t, NewNewReno(Config{MSS: testMSS, InitialWindow: 2}))
	h.fill()
	h.lose(1, 1)
	h.wantWindow(2, "half of two packets is not below two") // RFC 5681, Section 3.1, equation 4
}

// RFC 5681, Section 3.1: the loss window is one segment, the threshold stays when the same segment times out again, slow start
// follows (RFC 3465, Section 2.3: one packet an ACK).
func TestNewRenoTimeout(t *testing.T) {
	h := newHarness(t, NewNewReno(testConfig()))
	h.rounds(2)
	h.fill()
	h.timeout()
	h.wantWindow(1, "after the timeout")
	h.advance(time.Second)
	h.timeout()
	if got := h.c.State().Threshold; got != 20*testMSS {
		t.Fatalf("threshold %d after the second timeout of the same data, want 20 packets", got)
	}
	h.send(1)
	h.ack(1)
	h.wantWindow(2, "slow start goes on in RTO recovery")
	h.send(2)
	h.ack(2)
	h.wantWindow(3, "one packet an ACK")
	h.recover()
	h.rounds(2)
	h.wantWindow(12, "slow start: 3, 6, 12 packets")
	h.fill()
	for range 8 {
		h.ack(1)
	}
	h.wantWindow(20, "slow start reached the threshold")
	h.ack(1)
	h.wantWindow(20.05, "a twentieth of a packet an ACK beyond it")
}

// A timeout within fast recovery ends it; the threshold was set for this window of data already.
func TestNewRenoTimeoutInRecovery(t *testing.T) {
	h := newHarness(t, NewNewReno(testConfig()))
	h.rounds(2)
	h.fill()
	h.lose(1, 3)
	h.timeout()
	h.wantWindow(1, "after the timeout")
	if got := h.c.State().Threshold; got != 20*testMSS {
		t.Fatalf("threshold %d, want 20 packets", got)
	}
}

// The window only grows while it is what limits sending (RFC 7661, Section 3), and a reduction starts from what was in flight.
func TestNewRenoApplicationLimited(t *testing.T) {
	h := newHarness(t, NewNewReno(testConfig()))
	h.appLimited = true
	for range 5 {
		h.send(6)
		h.advance(h.rtt)
		h.ack(6)
	}
	h.wantWindow(10, "not window limited")
	h.send(6)
	h.lose(1, 3)
	h.wantWindow(3, "half the flight")
}

// RFC 5681, Section 4.1: more than one RTO of silence, then the initial window again.
func TestNewRenoRestart(t *testing.T) {
	h := newHarness(t, NewNewReno(testConfig()))
	h.rounds(3)
	h.c.OnRestart(h.now, 200*time.Millisecond, 300*time.Millisecond)
	h.wantWindow(80, "idle for less than an RTO")
	h.c.OnRestart(h.now, 400*time.Millisecond, 300*time.Millisecond)
	h.wantWindow(10, "idle for more than an RTO")
	if !h.c.State().Startup {
		t.Fatal("the first slow start is over, though nothing was lost")
	}
}

// RFC 4015, Section 3.2: a spurious event is taken back, once.
func TestNewRenoUndo(t *testing.T) {
	h := newHarness(t, NewNewReno(testConfig()))
	h.rounds(2)
	h.fill()
	h.timeout()
	h.c.OnUndo(h.now)
	h.recovering = false
	h.wantWindow(40, "after undo")
	h.wantPhase("slow start", "after undo")
	h.c.OnCongestion(h.now, ECN, h.inFlight())
	h.wantWindow(20, "ECN halves")
	h.c.OnUndo(h.now)
	h.c.OnUndo(h.now)
	h.wantWindow(40, "a second undo has nothing left")
}

func TestNewRenoPenalty(t *testing.T) {
	h := newHarness(t, NewNewReno(testConfig()))
	h.rounds(2)
	h.c.OnCongestion(h.now, Penalty, h.inFlight())
	h.wantWindow(20, "halved")
	h.wantPhase("slow start", "a penalty in the first slow start sets no threshold")
	h.c.OnCongestion(h.now, Loss, 20*testMSS)
	h.c.OnCongestion(h.now, Penalty, h.inFlight())
	h.wantWindow(5, "halved again")
	if got := h.c.State().Threshold; got != 5*testMSS {
		t.Fatalf("threshold %d, want 5 packets", got)
	}
}

func TestNewRenoMSS(t *testing.T) {
	h := newHarness(t, NewNewReno(Config{MSS: 100, InitialWindow: 1}))
	h.c.OnMSS(1400)
	if h.c.Window() != 1400 {
		t.Fatalf("window %d, want one packet of the new size", h.c.Window())
	}
	h.c.OnMSS(500)
	if h.c.Window() != 1400 {
		t.Fatalf("window %d: a smaller packet size keeps the bytes", h.c.Window())
	}
}
