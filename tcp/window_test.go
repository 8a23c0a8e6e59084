package tcp

import (
	"testing"
	"time"

	"braid/clock"
	"braid/wire"
)

func TestReceiveBufferLimits(t *testing.T) {
	for _, tc := range []struct{ initial, max, size, limit int64 }{
		{0, 0, 64 << 10, 64 << 20}, {1, 1, 64 << 10, 64 << 10}, {1 << 20, 0, 1 << 20, 64 << 20}, {1 << 30, 1 << 30, 64 << 20, 64 << 20},
		{1 << 20, 1 << 18, 1 << 18, 1 << 18},
	} {
		b := NewReceiveBuffer(tc.initial, tc.max)
		if b.Size() != tc.size || b.max != tc.limit {
			t.Errorf("%d, %d: size %d limit %d", tc.initial, tc.max, b.Size(), b.max)
		}
		if got := b.Window(0); got != tc.size {
			t.Errorf("window %d", got)
		}
	}
}

// transferInto plays a sender that fills the window once per round trip, limited by rate, and an application that reads at once.
func transferInto(b *ReceiveBuffer, rtt time.Duration, rate float64, rounds int) {
	now := clock.Time(0)
	for range rounds {
		n := min(b.Window(0), int64(rate*rtt.Seconds()))
		for range 10 {
			b.OnData(now, n/10)
			b.OnRead(now, n/10, rtt)
			now = now.Add(rtt / 10)
		}
	}
}

// RFC 8684, Section 3.3.4: the buffer tends to twice the bandwidth-delay product, from the smallest size, within few round trips.
func TestReceiveBufferGrows(t *testing.T) {
	const rtt = 100 * time.Millisecond
	for _, rate := range []float64{1e5, 1e6, 1e7, 1e8} { // bytes/s
		b := NewReceiveBuffer(0, 0)
		transferInto(&b, rtt, rate, 12)
		bdp := int64(rate * rtt.Seconds())
		if want := max(64<<10, 2*bdp); b.Size() < want || b.Size() > 3*want {
			t.Errorf("rate %g: size %d, twice the product is %d", rate, b.Size(), 2*bdp)
		}
	}
}

// A slow reader needs no more than it reads.
func TestReceiveBufferFollowsTheReader(t *testing.T) {
	b := NewReceiveBuffer(0, 0)
	now := clock.Time(0)
	b.OnData(now, 64<<10)
	for range 100 {
		now = now.Add(100 * time.Millisecond)
		b.OnRead(now, 1000, 100*time.Millisecond)
		b.OnData(now, 1000)
	}
	if b.Size() != 64<<10 {
		t.Errorf("size %d", b.Size())
	}
}

// RFC 9293, Section 3.8.6.2.2: the right edge moves right only by a full segment or half of the buffer, and never left.
func TestReceiveBufferAvoidsSillyWindows(t *testing.T) {
	b := NewReceiveBuffer(64<<10, 64<<10)
	b.SetMSS(1000)
	size := b.Size()
	b.OnData(0, size)
	for _, tc := range []struct{ read, window int64 }{
		{0, 0}, {999, 0}, {1000, 1000}, {1999, 1000}, {2000, 2000}, {500, 2000}, {size, size},
	} {
		if got := b.Window(size - tc.read); got != tc.window {
			t.Errorf("read %d: window %d, want %d", tc.read, got, tc.window)
		}
	}
	b = NewReceiveBuffer(0, 0)
	b.SetMSS(1 << 20) // larger than half of the buffer
	b.OnData(0, size)
	if got := b.Window(size/2 + 1); got != 0 {
		t.Errorf("less than half: %d", got)
	}
	if got := b.Window(size / 2); got != size/2 {
		t.Errorf("half: %d", got)
	}
}

// An ACK of its own tells the peer only what is worth it: at least twice the window that it knows.
func TestReceiveBufferUpdates(t *testing.T) {
	b := NewReceiveBuffer(0, 0)
	size := b.Size()
	b.Window(0)
	b.Announced()
	if b.WantsUpdate(0) {
		t.Error("wants to tell what was told")
	}
	b.OnData(0, size)
	if b.WantsUpdate(size) {
		t.Error("wants to tell that nothing is left")
	}
	if !b.WantsUpdate(size - 2000) {
		t.Error("does not tell that a closed window opened")
	}
	b.Window(size - 2000)
	b.Announced()
	if b.WantsUpdate(size - 3999) {
		t.Error("tells less than double")
	}
	if !b.WantsUpdate(size - 6000) {
		t.Error("does not tell double")
	}
}

// A window that closes and opens again: the transfer stops, the peer probes, and goes on when the reader does (RFC 9293,
// Section 3.8.6.1).
func TestZeroWindow(t *testing.T) {
	p := connected(t, func(a, b *Config) { b.InitialWindow = 64 << 10 })
	p.b.stalled = true
	p.a.write(1 << 20)
	p.advance(10 * time.Minute)
	stalled := p.b.got
	if stalled < 63<<10 || stalled > 65<<10 {
		t.Fatalf("received %d", stalled)
	}
	p.wantStates(Established, Established) // a zero window of any duration is survived while probes are answered
	if n := p.a.sent; n > 100 {
		t.Errorf("sent %d segments", n)
	}
	p.b.stalled = false
	if !p.run(10*time.Second, func() bool { return p.b.got == 1<<20 }) {
		t.Errorf("received %d of %d", p.b.got, 1<<20)
	}
}

// The same when the ACK that opens the window is lost: the probe brings another.
func TestLostWindowUpdate(t *testing.T) {
	p := connected(t, func(a, b *Config) { b.InitialWindow = 64 << 10 })
	p.b.stalled = true
	p.a.write(1 << 20)
	p.advance(30 * time.Second)
	lose := true
	p.fate = func(from *side, _ *wire.Segment, _ *Out) verdict { return verdict{lose: lose && from == p.b} }
	p.b.stalled = false
	p.b.pump()
	lose = false
	if !p.run(5*time.Minute, func() bool { return p.b.got == 1<<20 }) {
		t.Errorf("received %d of %d", p.b.got, 1<<20)
	}
}
