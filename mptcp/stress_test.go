package mptcp

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"braid/congestion"
	"braid/schedule"
)

// trouble is what the network does to a connection in a stress test.
type trouble struct {
	paths      int
	loss       float64
	reorder    float64 // share of packets that are late by up to 30 ms
	duplicate  float64
	blackholes bool
	checksums  bool
	corrupt    float64 // share of payloads that are changed on paths beside the first, TCP checksum adjusted
	scheduler  string
	congestion string
	size, back int
	window     int64
}

// run transfers both ways under trouble and checks that every byte arrives once and in order, that the close is orderly, and
// that nothing is kept.
func (tr trouble) run(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 99))
	cfg := Config{Checksums: tr.checksums, Entropy: entropy(seed*2 + 11), ReceiveBuffer: tr.window, InitialReceive: tr.window}
	var err error
	if cfg.Scheduler, err = schedule.ByName(tr.scheduler); err != nil {
		t.Fatal(err)
	}
	if cfg.Group, err = congestion.ByName(tr.congestion); err != nil {
		t.Fatal(err)
	}
	server := cfg
	server.Entropy = entropy(seed*2 + 12)
	w := newWorld(t, cfg, server)
	for i := range tr.paths {
		l := w.link(time.Duration(2+rng.IntN(60)) * time.Millisecond)
		l.rate, l.limit, l.loss = 1e6+rng.Float64()*4e6, 80*time.Millisecond, tr.loss
		l.rng = rand.New(rand.NewPCG(seed, uint64(i)))
	}
	w.tap = func(f *flight) bool {
		if tr.corrupt > 0 && f.link != w.links[0] && rng.Float64() < tr.corrupt {
			f.corrupt(t, rng)
		}
		if rng.Float64() < tr.duplicate {
			g := *f
			w.send(&g)
		}
		if rng.Float64() < tr.reorder {
			g := *f
			g.at = w.now.Add(g.link.delay + time.Duration(rng.IntN(30))*time.Millisecond)
			w.sent++
			g.n = w.sent
			heap.Push(&w.queue, &g)
			return false
		}
		return true
	}
	l := w.listen()
	c := w.dial()
	var s *Conn
	if !w.until(time.Minute, func() bool { s, _ = l.Accept(); return s != nil && c.Established() }) {
		t.Fatalf("seed %d %+v: not connected", seed, tr)
	}
	there := w.stream(c, s, tr.size)
	back := w.stream(s, c, tr.back)
	limit := w.now.Add(4 * time.Minute)
	nextHole := w.now.Add(time.Duration(rng.IntN(300)) * time.Millisecond)
	for !(there.eof && back.eof) {
		if w.now > limit {
			t.Fatalf("seed %d %+v: there %d of %d, back %d of %d; %v %v\n%s%s", seed, tr, there.read, tr.size, back.read, tr.back, c.Err(), s.Err(), dump(w, c), dump(w, s))
		}
		w.step(nextHole)
		if tr.blackholes && w.now >= nextHole {
			for _, l := range w.links {
				l.down = false
			}
			longest := 3000
			if tr.paths == 1 {
				longest = 600
			}
			nextHole = w.now.Add(time.Duration(100+rng.IntN(longest)) * time.Millisecond)
			if rng.IntN(2) == 0 {
				w.links[rng.IntN(len(w.links))].down = true
			}
		} else if w.now >= nextHole {
			nextHole = w.now.Add(time.Second)
		}
	}
	for _, l := range w.links {
		l.down = false
	}
	w.run(100 * time.Second)
	if c.state != connOver || s.state != connOver || c.Err() != nil || s.Err() != nil {
		t.Fatalf("seed %d %+v: client %v %v, server %v %v\n%s%s", seed, tr, c.state, c.Err(), s.state, s.Err(), dump(w, c), dump(w, s))
	}
	l.Close(w.now)
	w.run(6 * time.Minute)
	wantEmpty(t, fmt.Sprintf("seed %d client", seed), w.client)
	wantEmpty(t, fmt.Sprintf("seed %d server", seed), w.server)
}

// dump describes a connection for a failed test.
func dump(w *world, c *Conn) string {
	i := c.Info(w.now)
	subs := i.Subflows
	i.Subflows = nil
	out := fmt.Sprintf("%+v\n", i)
	for _, s := range subs {
		out += fmt.Sprintf("   %+v\n", s)
	}
	return out
}

// Whatever the network does short of cutting all paths for good: each byte once and in order.
func TestStress(t *testing.T) {
	seeds := uint64(150)
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		tr := drawTrouble(rand.New(rand.NewPCG(seed, 5)))
		tr.run(t, seed)
	}
}

// drawTrouble draws what happens in one stress test.
func drawTrouble(rng *rand.Rand) trouble {
	names := []string{"minrtt", "roundrobin", "redundant", "arp", "arp-paper"}
	controls := []string{"cubic", "bbr", "coupledbbr", "lia"}
	tr := trouble{
		paths: 1 + rng.IntN(3), loss: []float64{0, 0.01, 0.05}[rng.IntN(3)], reorder: []float64{0, 0.02, 0.1}[rng.IntN(3)],
		duplicate: []float64{0, 0.02}[rng.IntN(2)], blackholes: rng.IntN(3) == 0, checksums: rng.IntN(3) == 0,
		scheduler: names[rng.IntN(len(names))], congestion: controls[rng.IntN(len(controls))],
		size: rng.IntN(600_000), back: rng.IntN(200_000),
		window: []int64{64 << 10, 1 << 20}[rng.IntN(2)],
	}
	if tr.checksums && tr.paths > 1 && rng.IntN(2) == 0 {
		tr.corrupt = 0.01
	}
	return tr
}
