package tcp

import (
	"testing"
	"time"

	"braid/clock"

	"pgregory.net/rapid"
)

func newTestPacer(rate float64, quantum time.Duration) *pacer {
	p := &pacer{}
	p.init(0, testMSS, quantum)
	p.unpaced = 0
	p.setRate(0, rate)
	return p
}

// drainPacer sends while the pacer lets it and returns how many bytes left.
func drainPacer(p *pacer, now clock.Time) (n int) {
	for p.ready(now, testMSS) && n < 1<<30 {
		p.spend(now, testMSS)
		n += testMSS
	}
	return n
}

func TestPacerSpreads(t *testing.T) {
	p := newTestPacer(1e6, 0) // a segment takes 1 ms
	if n := drainPacer(p, 0); n != 2*testMSS {
		t.Fatalf("%d bytes at once, want two packets", n)
	}
	if at := p.readyAt(0, testMSS); at != clock.Time(ms) {
		t.Fatalf("ready at %v, want 1ms", at)
	}
	if p.ready(clock.Time(ms)-1000, testMSS) {
		t.Fatal("ready too early")
	}
	for i := 1; i < 100; i++ {
		if n := drainPacer(p, clock.Time(i)*clock.Time(ms)); n != testMSS {
			t.Fatalf("%d bytes after %d ms, want one packet", n, i)
		}
	}
}

// A faster path may send a millisecond's worth at once.
func TestPacerBurst(t *testing.T) {
	p := newTestPacer(1e8, 0) // 100 segments a millisecond
	if n := drainPacer(p, clock.Time(time.Second)); n != 100*testMSS {
		t.Fatalf("%d bytes at once, want 1 ms of data", n)
	}
	if r := p.room(clock.Time(time.Second + ms/2)); r != 50*testMSS {
		t.Fatalf("room %d after half a millisecond", r)
	}
}

// The quantum delays wake-ups, not sending.
func TestPacerQuantum(t *testing.T) {
	p := newTestPacer(1e8, 200*time.Microsecond)
	drainPacer(p, 0)
	if at := p.readyAt(0, testMSS); at != clock.Time(200*time.Microsecond) {
		t.Fatalf("wake-up at %v, want 200µs", at)
	}
	if !p.ready(clock.Time(10*time.Microsecond), testMSS) {
		t.Fatal("not ready although a packet's credit is there")
	}
	p = newTestPacer(1e8, time.Second) // more than a burst: the burst
	drainPacer(p, 0)
	if at := p.readyAt(0, testMSS); at != clock.Time(ms) {
		t.Fatalf("wake-up at %v, want 1ms", at)
	}
}

// A new rate holds at once, also for who waits at the old one.
func TestPacerRateChange(t *testing.T) {
	p := newTestPacer(1e3, 0) // a segment a second
	drainPacer(p, 0)
	p.setRate(clock.Time(100*ms), 1e6)
	if at := p.readyAt(clock.Time(100*ms), testMSS); at != clock.Time(100*ms+900*time.Microsecond) {
		t.Fatalf("ready at %v, want 0.9 ms after the change", at)
	}
	p.setRate(clock.Time(200*ms), 0)
	if !p.ready(clock.Time(200*ms), 1<<30) {
		t.Fatal("rate 0 paces")
	}
}

// A packet larger than a burst leaves with a full burst's credit, and is paid for.
func TestPacerJumbo(t *testing.T) {
	p := newTestPacer(1e5, 0)
	if !p.ready(0, 9*testMSS) {
		t.Fatal("a probe larger than a burst never leaves")
	}
	p.spend(0, 9*testMSS)
	if at := p.readyAt(0, testMSS); at != clock.Time(80*ms) {
		t.Fatalf("ready at %v, want when 8000 bytes are paid", at)
	}
}

// The initial window is not paced.
func TestPacerStart(t *testing.T) {
	p := &pacer{}
	p.init(0, testMSS, 0)
	p.setRate(0, 1e6)
	if n := drainPacer(p, 0); n != (unpacedSegments+2)*testMSS {
		t.Fatalf("%d bytes at once, want ten segments and a burst", n)
	}
}

// A machine whose timers are 5 ms late still sends at the rate.
func TestPacerLateTimers(t *testing.T) {
	const rate = 5e6
	p := newTestPacer(rate, time.Millisecond)
	now, sent := clock.Time(0), 0
	for now < clock.Time(time.Second) {
		sent += drainPacer(p, now)
		now = p.readyAt(now, testMSS).Add(5 * time.Millisecond)
	}
	if got := float64(sent) / now.Seconds(); got < 0.98*rate {
		t.Fatalf("%.0f bytes/s, want %.0f", got, rate)
	}
}

// In any stretch of time no more leaves than the rate brings plus one burst, and a sender that always wants to gets the rate.
func TestPacerBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Float64Range(1e4, 2e9).Draw(t, "rate")
		quantum := time.Duration(rapid.Int64Range(0, int64(2*ms)).Draw(t, "quantum"))
		p := newTestPacer(rate, quantum)
		burst := max(rate*1e-3, 2*testMSS)
		now, sent := clock.Time(0), 0
		lateness := rapid.Int64Range(0, int64(ms)).Draw(t, "lateness")
		for range 200 {
			n := drainPacer(p, now)
			most := burst
			if quantum > 0 { // late wake-ups keep their credit
				most += rate * pacerLateTime.Seconds()
			}
			if float64(n) > most+1 {
				t.Fatalf("burst of %d bytes, at most %v", n, most)
			}
			sent += n
			if limit := burst + rate*float64(now)*1e-9 + 1; float64(sent) > limit {
				t.Fatalf("%d bytes by %v, at most %v", sent, now, limit)
			}
			next := p.readyAt(now, testMSS)
			if next <= now {
				t.Fatalf("not ready and ready at %v, now %v", next, now)
			}
			now = next
			if lateness > 0 {
				now = now.Add(time.Duration(rapid.Int64Range(0, lateness).Draw(t, "late")))
			}
		}
		if lateness == 0 && float64(sent) < rate*float64(now)*1e-9-2*testMSS {
			t.Fatalf("%d bytes by %v: slower than the rate %v", sent, now, rate)
		}
	})
}
