package link

import (
	"encoding/binary"
	"testing"
	"time"

	"braid/clock"
)

// rig drives a Link as a simulator would: it offers numbered packets and collects what arrives, going to each event in turn.
type rig struct {
	t    testing.TB
	pool *Pool
	link *Link
	now  clock.Time
	sent uint32
	got  []arrival
}

// arrival is a packet that came out: its number and the time in milliseconds.
type arrival struct {
	N    uint32
	AtMs float64
}

func newRig(t testing.TB, spec Spec, seed uint64) *rig {
	t.Helper()
	pool := NewPool(1500)
	l, err := New("test", spec, seed, pool)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, pool: pool, link: l}
}

func ms(v float64) clock.Time { return clock.Time(v * 1e6) }

// send offers n packets of size bytes at the present time and returns the last verdict.
func (r *rig) send(n, size int) (v Verdict) {
	for range n {
		p := r.pool.Get()
		p.Data = binary.BigEndian.AppendUint32(p.Data, r.sent)
		p.Data = p.Data[:min(size, cap(p.Data))]
		clear(p.Data[4:])
		p.Size, p.Header = size, 4 // the number survives corruption
		r.sent++
		v = r.link.Enqueue(r.now, p)
	}
	return v
}

// to goes to a time, stopping at each event on the way.
func (r *rig) to(end clock.Time) {
	for {
		next := r.link.NextEvent()
		if next < r.now {
			r.t.Fatalf("event at %v lies before now, %v", next, r.now)
		}
		r.now = min(next, end)
		for {
			p, at, ok := r.link.Dequeue(r.now)
			if !ok {
				break
			}
			if at != r.now {
				r.t.Fatalf("packet arrived at %v, noticed at %v", at, r.now)
			}
			r.got = append(r.got, arrival{binary.BigEndian.Uint32(p.Data), float64(at) / 1e6})
			r.pool.Put(p)
		}
		if next > end || next == clock.Never {
			r.now = end
			return
		}
	}
}

// drain goes on until nothing is left.
func (r *rig) drain() {
	r.to(clock.Never)
	if r.link.InFlight() != 0 || r.pool.Outstanding() != 0 {
		r.t.Fatalf("%d packets on the wire and %d out of the pool after draining", r.link.InFlight(), r.pool.Outstanding())
	}
}

func (r *rig) want(want ...arrival) {
	r.t.Helper()
	if len(r.got) != len(want) {
		r.t.Fatalf("got %v, want %v", r.got, want)
	}
	for i := range want {
		if r.got[i].N != want[i].N || absDiff(r.got[i].AtMs, want[i].AtMs) > 1e-5 {
			r.t.Fatalf("arrival %d: got %v, want %v (all: %v)", i, r.got[i], want[i], r.got)
		}
	}
	r.got = nil
}

func absDiff(a, b float64) float64 {
	if a > b {
		return a - b
	}
	return b - a
}

func value[T any](v T) *T { return &v }

// spread sends n packets of 100 bytes, one every gap, and drains.
func (r *rig) spread(n int, gap time.Duration) {
	for range n {
		r.send(1, 100)
		r.to(r.now.Add(gap))
	}
	r.drain()
}
