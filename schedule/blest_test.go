package schedule

import (
	"math"
	"testing"
	"time"
)

// The fast subflow sends 10 packets each 10 ms; a packet on the slow one, 100 ms, lingers for 100/10 + 1 = 11 fast RTTs, in which
// the fast one sends (10 + (11-1)/2) 11 = 165 packets, by lambda 1.19 (moved once) 196.35. The slow one holds 1.
func TestBLEST(t *testing.T) {
	for _, c := range []struct {
		window int64 // packets
		want   string
	}{{198, "-n"}, {197, "-w"}} {
		h := newHarness(t, NewBLEST(), view(10*ms, 1000), view(100*ms, 1000))
		h.q.Window = c.window * testMSS
		h.want("nw", "the fast one can send")
		h.views[0].CanSend = false
		h.want(c.want, "the fast one is full")
	}
}

// In slow start the fast subflow doubles: 10 (2^3 - 1) = 70 packets in 2 + 1 rounds.
func TestBLESTFastBytes(t *testing.T) {
	v := view(10*ms, 1)
	v.MSS, v.Window, v.Startup = testMSS, 10*testMSS, true
	r := &blestRTT{10 * ms, 10 * ms}
	if got := fastBytes(&v, r, 20*ms); got != 70*testMSS {
		t.Fatalf("%v bytes, want 70 packets", got)
	}
	if got := fastBytes(&v, r, time.Hour); got != 10*testMSS*65535 {
		t.Fatalf("%v bytes, want 16 doublings", got)
	}
}

// The slow packet lingers the longer the fuller the window is: 100 ms + (200 - 100) 5/10.
func TestBLESTLinger(t *testing.T) {
	b := NewBLEST().(*blest)
	v := view(200*ms, 1)
	v.MSS, v.Window = testMSS, 10*testMSS
	b.note(&v)
	v.SRTT = 100 * ms
	b.note(&v)
	v.InFlight = 4 * testMSS
	if got := b.linger(&v); got != 150*ms {
		t.Fatalf("%v, want 150 ms", got)
	}
	v.InFlight = 9 * testMSS
	if got := b.linger(&v); got != 200*ms {
		t.Fatalf("%v with a full window, want the longest RTT", got)
	}
}

// Lambda moves once in a slow RTT: up after blocking, down without, within bounds.
func TestBLESTLambda(t *testing.T) {
	b := NewBLEST().(*blest)
	h := newHarness(t, b, view(10*ms, 1000), view(100*ms, 1000))
	h.views[0].CanSend = false
	lambda := func(want float64, what string) {
		t.Helper()
		h.pick(1)
		if math.Abs(b.lambda-want) > 1e-9 {
			t.Fatalf("%s: lambda %v, want %v", what, b.lambda, want)
		}
	}
	lambda(1.19, "first")
	lambda(1.19, "within an RTT")
	edge := h.q.Edge
	h.q.Edge = h.q.Unsent.Start
	h.pick(1)
	h.q.Edge = edge
	h.now = h.now.Add(100 * ms)
	lambda(1.23, "the window had blocked")
	for range 40 {
		h.now = h.now.Add(100 * ms)
		h.pick(1)
	}
	lambda(1, "long without blocking")
	b.OnGone(1)
}

func TestBLESTReinject(t *testing.T) {
	h := newHarness(t, NewBLEST(), view(10*ms, 1000), view(100*ms, 1000))
	h.views[0].CanSend = false
	h.q.Window = testMSS
	h.q.Reinject = true
	if d := h.pick(1); d.Kind != Reinject || d.Else != Wait {
		t.Fatalf("%+v, want a reinjection, and no new data that would block", d)
	}
}
