package tcp

import (
	"testing"
	"time"

	"braid/clock"
)

// silence runs the timers against a peer that never answers and returns when the sender gave up.
func silence(b *bench, limit time.Duration) (time.Duration, bool) {
	b.t.Helper()
	begin := b.now
	for b.now.Sub(begin) < limit {
		at := b.s.nextTimeout()
		if at == clock.Never {
			b.t.Fatal("no timer runs")
		}
		b.now = max(b.now, at)
		if b.s.timeout(b.now) {
			return b.now.Sub(begin), true
		}
		b.poll()
	}
	return limit, false
}

// TCP-09 (RFC 9293, Section 3.8.3): R2 is at least 100 s by default, and configurable.
func TestGiveUp(t *testing.T) {
	tests := []struct {
		name     string
		timeout  time.Duration
		min, max time.Duration
		gaveUp   bool
	}{
		{"default", 0, giveUpAfter, 20 * time.Minute, true},
		{"five seconds", 5 * time.Second, 5 * time.Second, 5 * time.Second, true},
		{"never", -1, 10 * time.Hour, 10 * time.Hour, false},
	}
	for _, tt := range tests {
		b := newBench(t, func(b *bench) { b.cfg.UserTimeout = tt.timeout })
		b.send(3)
		took, gaveUp := silence(b, 10*time.Hour)
		if gaveUp != tt.gaveUp || took < tt.min || took > tt.max {
			t.Errorf("%s: %v after %v", tt.name, gaveUp, took)
		}
	}
}

// Progress starts the user timeout afresh.
func TestProgressResetsPatience(t *testing.T) {
	b := newBench(t, func(b *bench) { b.cfg.UserTimeout = 5 * time.Second })
	b.send(2)
	b.advance(4 * time.Second)
	b.ackEcho(1, b.now)
	b.advance(4 * time.Second)
	b.ackEcho(2, b.now)
	if at := b.s.nextTimeout(); at != clock.Never {
		t.Fatalf("a timer at %v with nothing outstanding", at)
	}
}

// RFC 6298, Section 5.1 to 5.3: start with the first segment, restart with new data acknowledged, stop with everything.
func TestRetransmissionTimer(t *testing.T) {
	b := newBench(t, withoutSACK)
	if b.s.rtoAt != clock.Never {
		t.Fatal("runs with nothing outstanding")
	}
	b.send(2)
	first := b.s.rtoAt
	if first != b.now.Add(300*ms) {
		t.Fatalf("at %v, now %v", first, b.now)
	}
	b.advance(50 * ms)
	b.send(1)
	if b.s.rtoAt != first {
		t.Fatal("restarted by new data")
	}
	b.advance(50 * ms)
	b.ack(0)
	if b.s.rtoAt != first {
		t.Fatal("restarted by a duplicate")
	}
	b.ack(1)
	if b.s.rtoAt != b.now.Add(b.s.rto()) {
		t.Fatalf("at %v after new data was acknowledged at %v", b.s.rtoAt, b.now)
	}
	b.ack(3)
	if b.s.rtoAt != clock.Never {
		t.Fatal("runs with everything acknowledged")
	}
}
