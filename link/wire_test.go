package link

import (
	"math"
	"math/bits"
	"testing"
	"time"
)

func TestLossShare(t *testing.T) {
	const n = 200_000
	for _, c := range []struct {
		name string
		spec Spec
		want float64
	}{
		{"independent", Spec{Loss: 0.01}, 0.01},
		{"bursts", Spec{GilbertElliott: &GilbertElliott{0.01, 0.24, 0, 0.5}}, 0.02},
		{"both states", Spec{GilbertElliott: &GilbertElliott{0.1, 0.1, 0.02, 0.04}}, 0.03},
		{"never", Spec{}, 0},
		{"always", Spec{Loss: 1}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if g := c.spec.GilbertElliott; g != nil && math.Abs(g.MeanLoss()-c.want) > 1e-12 {
				t.Errorf("MeanLoss is %v, want %v", g.MeanLoss(), c.want)
			}
			r := newRig(t, c.spec, 7)
			r.send(n, 100)
			r.drain()
			got := float64(r.link.Counters().DropsLoss) / n
			if math.Abs(got-c.want) > 0.05*c.want {
				t.Errorf("lost %v, want about %v", got, c.want)
			}
		})
	}
}

// The chain stays in its bad state for 1/p_bad_good packets on average: that is what makes bursts.
func TestBurstLength(t *testing.T) {
	r := newRig(t, Spec{GilbertElliott: &GilbertElliott{PGoodBad: 0.01, PBadGood: 0.2, LossBad: 1}}, 3)
	r.send(100_000, 100)
	r.drain()
	var lost, bursts int
	next := uint32(0)
	for _, a := range r.got {
		if gap := int(a.N - next); gap > 0 {
			lost += gap
			bursts++
		}
		next = a.N + 1
	}
	if mean := float64(lost) / float64(bursts); math.Abs(mean-5) > 0.4 {
		t.Errorf("bursts of %v packets, want about 5", mean)
	}
}

func TestLossRamp(t *testing.T) {
	r := newRig(t, Spec{Changes: []Change{{AtS: 1, OverS: 1, Loss: value(0.4)}}}, 5)
	r.spread(30_000, 100*time.Microsecond)
	var lost [3]int
	seen := make([]bool, 30_000)
	for _, a := range r.got {
		seen[a.N] = true
	}
	for i, ok := range seen {
		if !ok {
			lost[i/10_000]++
		}
	}
	if lost[0] != 0 || math.Abs(float64(lost[1])-2000) > 200 || math.Abs(float64(lost[2])-4000) > 300 {
		t.Errorf("lost %v of 10000 each second, want about 0, 2000, 4000", lost)
	}
}

func TestJitter(t *testing.T) {
	for _, inOrder := range []bool{false, true} {
		r := newRig(t, Spec{DelayMs: 10, JitterMs: 8, InOrder: inOrder}, 2)
		r.spread(1000, time.Millisecond)
		overtakes := 0
		for i, a := range r.got {
			if extra := a.AtMs - float64(a.N) - 10; extra < 0 || extra > 8 {
				t.Fatalf("packet %d was delayed by 10 + %v ms", a.N, extra)
			}
			if i > 0 && a.N < r.got[i-1].N {
				overtakes++
			}
		}
		if (overtakes == 0) != inOrder {
			t.Errorf("in order %v: %d overtakes", inOrder, overtakes)
		}
	}
}

func TestReorder(t *testing.T) {
	r := newRig(t, Spec{DelayMs: 10, Reorder: &Reorder{Probability: 0.1, DelayMs: 2.5}}, 2)
	r.spread(2000, time.Millisecond)
	late := 0
	for _, a := range r.got {
		switch d := a.AtMs - float64(a.N); {
		case absDiff(d, 12.5) < 1e-6:
			late++
		case absDiff(d, 10) > 1e-6:
			t.Fatalf("packet %d took %v ms", a.N, d)
		}
	}
	if late < 150 || late > 250 || int64(late) != r.link.Counters().Reordered {
		t.Errorf("%d of 2000 held back, %d counted", late, r.link.Counters().Reordered)
	}
}

// A delay that falls does not let packets overtake each other.
func TestFallingDelayKeepsOrder(t *testing.T) {
	r := newRig(t, Spec{DelayMs: 20, Changes: []Change{{AtS: 0.005, DelayMs: value(1.0)}}}, 1)
	r.spread(10, 2*time.Millisecond)
	r.want(arrival{0, 20}, arrival{1, 22}, arrival{2, 24}, arrival{3, 24}, arrival{4, 24}, arrival{5, 24}, arrival{6, 24}, arrival{7, 24},
		arrival{8, 24}, arrival{9, 24})
}

func TestDelayRamp(t *testing.T) {
	r := newRig(t, Spec{DelayMs: 10, Changes: []Change{{AtS: 0, OverS: 0.1, DelayMs: value(20.0)}}}, 1)
	for _, want := range []float64{10, 50 + 15, 100 + 20, 500 + 20} {
		r.now = ms([]float64{0, 50, 100, 500}[r.sent])
		r.send(1, 100)
		r.drain()
		r.want(arrival{r.sent - 1, want})
	}
}

func TestDuplicate(t *testing.T) {
	r := newRig(t, Spec{DelayMs: 1, Duplicate: 1}, 1)
	r.send(2, 1500)
	r.drain()
	r.want(arrival{0, 1}, arrival{0, 1}, arrival{1, 1}, arrival{1, 1})
}

// Corruption flips between 1 and 15 bits that lie within 15 bits of each other, behind the header and anywhere there.
func TestCorrupt(t *testing.T) {
	pool := NewPool(100)
	l, err := New("corrupt", Spec{Corrupt: 1}, 4, pool)
	if err != nil {
		t.Fatal(err)
	}
	var everywhere [100]byte
	for i := range 20_000 {
		p := pool.Get()
		p.Data = p.Data[:60+i%40]
		clear(p.Data)
		p.Size, p.Header = len(p.Data), 20
		l.Enqueue(0, p)
		p, _, ok := l.Dequeue(0)
		if !ok || !p.Corrupted {
			t.Fatal("packet not delivered, or not marked as corrupted")
		}
		first, last, flipped := -1, -1, 0
		for j, b := range p.Data {
			everywhere[j] |= b
			if b == 0 {
				continue
			}
			if first < 0 {
				first = 8*j + bits.LeadingZeros8(b)
			}
			last = 8*j + 7 - bits.TrailingZeros8(b)
			flipped += bits.OnesCount8(b)
		}
		if flipped == 0 || last-first >= 15 || first < 8*20 {
			t.Fatalf("flipped %d bits, from %d to %d", flipped, first, last)
		}
		pool.Put(p)
	}
	for j := 20; j < 97; j++ {
		if everywhere[j] != 0xff {
			t.Errorf("byte %d: bits %#x were flipped at some time, want all", j, everywhere[j])
		}
	}
}

// What one cause draws does not depend on the others: adding jitter loses the same packets.
func TestStreamsAreSeparate(t *testing.T) {
	lost := func(s Spec) map[uint32]bool {
		r := newRig(t, s, 9)
		r.spread(5000, time.Millisecond)
		m := map[uint32]bool{}
		for _, a := range r.got {
			m[a.N] = true
		}
		return m
	}
	plain := lost(Spec{Loss: 0.1})
	other := lost(Spec{Loss: 0.1, JitterMs: 3, Corrupt: 0.2, Duplicate: 0.2, Reorder: &Reorder{0.1, 1}})
	if len(plain) == 5000 || len(plain) != len(other) {
		t.Fatalf("%d and %d packets survived", len(plain), len(other))
	}
	for n := range plain {
		if !other[n] {
			t.Fatalf("packet %d was lost in one run only", n)
		}
	}
}
