package tcp

import (
	"slices"
	"testing"
	"time"

	"braid/wire"
)

func TestBulkTransfer(t *testing.T) {
	p := connected(t, nil)
	const n = 5 << 20
	p.a.write(n)
	p.a.close()
	p.b.close()
	if !p.run(time.Minute, func() bool { return p.b.got == n && p.b.gotFIN }) {
		t.Fatalf("b got %d bytes; a: %+v", p.b.got, p.a.c.Info(p.now))
	}
	p.advance(time.Second)
	if p.a.released != n {
		t.Errorf("released %d", p.a.released)
	}
	if segments := n/1448 + 1; p.a.sent > segments+20 || p.b.sent > segments*3/4 {
		t.Errorf("%d segments for %d, %d ACKs", p.a.sent, segments, p.b.sent)
	}
	p.advance(2 * time.Minute)
	p.wantStates(Closed, Closed)
}

// Both directions at once, with loss, reordering and duplication: all arrives, both sides close in order, and the pool is empty in the end.
func TestBothDirections(t *testing.T) {
	p := connected(t, nil)
	p.fate = randomFate(3, 0.005, 0.02, 0.01)
	const n = 2 << 20
	p.a.write(n)
	p.b.write(n)
	p.a.close()
	p.b.close()
	if !p.run(2*time.Minute, func() bool { return p.a.got == n && p.b.got == n && p.a.gotFIN && p.b.gotFIN }) {
		t.Fatalf("received %d and %d of %d", p.a.got, p.b.got, n)
	}
	p.advance(5 * time.Minute)
	p.wantStates(Closed, Closed)
	for _, s := range [...]*side{p.a, p.b} {
		if s.c.Err() != nil || s.c.cfg.Pool.InUse() != 0 {
			t.Errorf("%s: %v, %d bytes in use", s.name, s.c.Err(), s.c.cfg.Pool.InUse())
		}
	}
}

// The same input gives the same output.
func TestDeterministic(t *testing.T) {
	run := func() []string {
		p := newPair(t, nil)
		p.logged = true
		p.fate = randomFate(11, 0.05, 0.1, 0.05)
		p.a.write(200_000)
		p.b.write(50_000)
		p.a.close()
		p.b.close()
		p.advance(time.Minute)
		return p.log
	}
	if a, b := run(), run(); len(a) < 100 || !slices.Equal(a, b) {
		t.Errorf("%d and %d lines differ", len(a), len(b))
	}
}

// A peer that vanishes is given up after the configured patience, or after R2 (RFC 9293, Section 3.8.3: at least 100 s).
func TestVanishedPeer(t *testing.T) {
	for _, tc := range []struct{ patience, least, most time.Duration }{
		{0, 100 * time.Second, 20 * time.Minute}, {30 * time.Second, 30 * time.Second, 31 * time.Second},
	} {
		p := connected(t, func(a, b *Config) { a.UserTimeout = tc.patience })
		p.fate = func(*side, *wire.Segment, *Out) verdict { return verdict{lose: true} }
		p.a.write(10_000)
		start := p.now
		p.run(time.Hour, func() bool { return p.a.c.State() == Closed })
		if d := p.now.Sub(start); p.a.c.Err() != ErrTimeout || d < tc.least || d > tc.most {
			t.Errorf("patience %v: %v after %v", tc.patience, p.a.c.Err(), d)
		}
	}
}
