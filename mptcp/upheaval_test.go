package mptcp

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"braid/wire"
)

// Everything that can happen to paths and subflows, at random, while both ends transfer: the streams arrive whole, and nothing stays.
func TestUpheaval(t *testing.T) {
	seeds := uint64(40)
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		if upheaval(t, seed); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func upheaval(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 99))
	udp := seed%2 == 1
	w := newWorld(t, Config{Checksums: seed%4 == 2}, Config{Backlog: 4})
	for range 2 + rng.IntN(2) {
		add := w.link
		if udp {
			add = w.linkUDP
		}
		l := add(time.Duration(5+rng.IntN(60)) * time.Millisecond)
		l.rate, l.limit = 1e5*float64(1+rng.IntN(5)), 200*time.Millisecond
		l.loss = float64(rng.IntN(3)) / 100
	}
	lis := w.listen()
	c, s := w.connect(lis)
	up, down := w.stream(c, s, 1<<20+rng.IntN(1<<20)), w.stream(s, c, 1<<20+rng.IntN(1<<20))
	done := func() bool { return up.eof && down.eof }
	for range 60 {
		if w.until(time.Duration(50+rng.IntN(1500))*time.Millisecond, done) {
			break
		}
		if !up.fin || !down.fin { // who loses the last acknowledgment and the way to repeat it cannot know how it ended
			upset(w, c, s, rng, done)
		}
	}
	for _, l := range w.links {
		l.down = false
	}
	if !w.until(2*time.Minute, done) {
		t.Errorf("up %d of %d, down %d of %d, %v, %v\nclient %+v\nserver %+v", up.read, up.total, down.read, down.total, c.Err(), s.Err(), c.Info(w.now), s.Info(w.now))
		return
	}
	c.Close(w.now)
	s.Close(w.now)
	w.run(10 * time.Minute)
	lis.Close(w.now)
	if c.Err() != nil || s.Err() != nil {
		t.Errorf("%v, %v", c.Err(), s.Err())
	}
	wantEmpty(t, "client", w.client)
	wantEmpty(t, "server", w.server)
}

// upset does one thing to a path or a subflow.
func upset(w *world, c, s *Conn, rng *rand.Rand, done func() bool) {
	l := w.links[rng.IntN(len(w.links))]
	if !c.hs.confirmed || !s.hs.confirmed {
		return // a connection that never was multipath has but one subflow to lose
	}
	switch rng.IntN(8) {
	case 0, 1:
		l.down = !l.down
	case 2:
		if n := len(s.subflows); n > 0 {
			w.server.drop(w.now, s.subflows[rng.IntN(n)], wire.ResetUnspecified, true)
		}
	case 3:
		if n := len(c.subflows); n > 0 {
			w.client.drop(w.now, c.subflows[rng.IntN(n)], wire.ResetPerformance, true)
		}
	case 4:
		if n := len(s.subflows); n > 0 {
			w.server.abandon(w.now, s.subflows[rng.IntN(n)], errors.New("test"))
		}
	case 5:
		w.client.RemovePath(w.now, l.client)
		w.until(time.Duration(rng.IntN(2000))*time.Millisecond, done)
		l.client = w.client.AddPath(w.now, Path{Kind: l.kind, Local: l.clientAddr})
	case 6:
		if l.kind == UDP { // a NAT rebinds
			l.clientAddr = netip.AddrPortFrom(l.clientAddr.Addr(), uint16(1024+rng.IntN(60000)))
		}
	case 7:
		l.delay = time.Duration(5+rng.IntN(200)) * time.Millisecond
	}
}

// Whatever arrives, nothing panics.
func FuzzHandlePacket(f *testing.F) {
	w := newWorld(f, Config{}, Config{})
	w.link(time.Millisecond)
	w.listen()
	w.tap = func(p *flight) bool {
		f.Add(p.toServer, false, p.b)
		return true
	}
	w.dial()
	w.run(time.Second)
	f.Fuzz(func(t *testing.T, toServer, udp bool, b []byte) {
		w := newWorld(t, Config{}, Config{})
		if udp {
			w.linkUDP(time.Millisecond)
		} else {
			w.link(time.Millisecond)
		}
		c, _ := w.connect(w.listen())
		c.Write(w.now, []byte("hello"))
		w.run(10 * time.Millisecond)
		for range 2 {
			if toServer {
				w.server.HandlePacket(w.now, 0, w.links[0].clientAddr, b)
			} else {
				w.client.HandlePacket(w.now, 0, w.links[0].serverAddr, b)
			}
			w.run(time.Second)
		}
	})
}
