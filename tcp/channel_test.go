package tcp

import (
	"math/rand/v2"
	"testing"
	"time"

	"braid/clock"
	"braid/wire"
	"pgregory.net/rapid"
)

// randomFate loses, delays, reorders and duplicates with the given shares, from its own stream.
func randomFate(seed uint64, loss, reorder, duplicate float64) func(*side, *wire.Segment, *Out) verdict {
	r := rand.New(rand.NewPCG(seed, 7))
	return func(*side, *wire.Segment, *Out) (v verdict) {
		v.lose = r.Float64() < loss
		if r.Float64() < reorder {
			v.extra = time.Duration(r.Int64N(int64(60 * time.Millisecond)))
		}
		if r.Float64() < duplicate {
			v.copies = 2
		}
		return v
	}
}

// Whatever the channel does, each byte arrives once and in order, or both sides hear of an error; and both end.
func TestRandomChannel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		loss := rapid.SampledFrom([]float64{0, 0.01, 0.1, 0.3}).Draw(rt, "loss")
		abort := rapid.IntRange(0, 9).Draw(rt, "abort") == 0
		edit := func(a, b *Config) {
			for _, c := range [...]*Config{a, b} {
				c.NoSACK = rapid.IntRange(0, 3).Draw(rt, "no SACK") == 0
				c.NoTimestamps = rapid.IntRange(0, 3).Draw(rt, "no timestamps") == 0
				c.NoWindowScale = rapid.IntRange(0, 3).Draw(rt, "no scaling") == 0
				c.NoDelay = rapid.Bool().Draw(rt, "no delay")
				c.WindowScale = rapid.Uint8Range(0, 14).Draw(rt, "scale")
				c.InitialWindow = rapid.SampledFrom([]int64{1 << 16, 1 << 20}).Draw(rt, "window")
				c.MTU = rapid.SampledFrom([]int{576, 1500, 9000}).Draw(rt, "mtu")
				c.MSL = 5 * time.Second
				if abort || loss > 0.1 || rapid.Bool().Draw(rt, "keep alive") {
					c.KeepAlive = 30 * time.Second // a RST may be lost, and a reader without a timer waits for ever
				}
			}
		}
		p := newPair(rt, edit)
		p.fate = randomFate(rapid.Uint64().Draw(rt, "seed"), loss,
			rapid.SampledFrom([]float64{0, 0.1, 0.5}).Draw(rt, "reorder"), rapid.SampledFrom([]float64{0, 0.2}).Draw(rt, "duplicate"))
		for _, s := range [...]*side{p.a, p.b} {
			s.pending = rapid.Int64Range(0, 100_000).Draw(rt, "bytes")
			s.chunk = rapid.SampledFrom([]int{0, 0, 1, 100, 5000, 65536}).Draw(rt, "chunk")
			if s.chunk == 1 {
				s.pending = min(s.pending, 500)
			}
			s.reserve = rapid.SampledFrom([]int{0, 20, 28}).Draw(rt, "reserve")
			s.reserveAck = rapid.SampledFrom([]int{0, 12}).Draw(rt, "reserve on ACKs")
			if rapid.IntRange(0, 3).Draw(rt, "tiny window") == 0 {
				s.rb.size = rapid.Int64Range(1, 5000).Draw(rt, "buffer") + 2<<s.c.cfg.WindowScale // less could not be told
				s.rb.edge, s.rb.max = s.rb.size, s.rb.size
				s.c.rcv.limit = 1 + s.rb.size
				s.c.cfg.InitialWindow = s.rb.size
			}
			s.closeAfter = rapid.IntRange(0, 3).Draw(rt, "closes at once") > 0
		}
		p.a.pending = min(p.a.pending, 300*p.b.rb.size) // a byte per round trip takes its time
		p.b.pending = min(p.b.pending, 300*p.a.rb.size)
		wantA, wantB := p.b.pending, p.a.pending
		late := clock.Time(rapid.Int64Range(0, int64(20*time.Second)).Draw(rt, "late close"))
		finished := func() bool { return p.a.c.State() == Closed && p.b.c.State() == Closed && p.b.c.iss != 0 }
		p.run(time.Duration(late), finished)
		if abort {
			p.a.c.Abort(p.now)
			p.a.pump()
		}
		p.a.close()
		p.b.close()
		p.run(time.Hour, func() bool { return finished() || p.a.c.State() == Closed && len(p.queue) == 0 && p.b.c.iss == 0 })
		if p.b.c.iss == 0 {
			if p.a.c.Err() == nil {
				rt.Fatalf("a ended without an error and without a peer: %v", p.a.c.State())
			}
			return
		}
		if !finished() {
			rt.Fatalf("still %v and %v at %v; a %+v\nb %+v", p.a.c.State(), p.b.c.State(), p.now, p.a.c.Info(p.now), p.b.c.Info(p.now))
		}
		// A side may only end early with an error on one of the two: the last ACK of a side can be lost after the other is gone.
		whole := p.a.got == wantA && p.b.got == wantB
		if !whole && p.a.c.Err() == nil && p.b.c.Err() == nil {
			rt.Fatalf("a got %d of %d, b %d of %d, and nobody knows", p.a.got, wantA, p.b.got, wantB)
		}
		if !abort && loss < 0.3 && !whole {
			rt.Fatalf("a got %d of %d, b %d of %d: %v, %v", p.a.got, wantA, p.b.got, wantB, p.a.c.Err(), p.b.c.Err())
		}
		for _, s := range [...]*side{p.a, p.b} {
			if n := s.c.cfg.Pool.InUse(); n != 0 {
				rt.Fatalf("%s: %d bytes of payload leaked", s.name, n)
			}
		}
	})
}
