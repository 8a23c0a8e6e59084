package mptcp

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"braid/wire"
)

// A dead or slow first path costs the pause between two SYNs, not seconds.
func TestDialRace(t *testing.T) {
	ms := time.Millisecond
	for _, tc := range []struct {
		name   string
		delays []time.Duration // 0: dead
		want   time.Duration   // until the connection stands
		winner PathID
	}{
		{"one path", []time.Duration{10 * ms}, 20 * ms, 0},
		{"first is dead", []time.Duration{0, 10 * ms}, 120 * ms, 1},
		{"two are dead", []time.Duration{0, 0, 10 * ms}, 220 * ms, 2},
		{"first is slow", []time.Duration{400 * ms, 10 * ms}, 120 * ms, 1},
		{"first is not too slow", []time.Duration{40 * ms, 10 * ms}, 80 * ms, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, Config{}, Config{})
			for _, d := range tc.delays {
				w.link(d).down = d == 0
			}
			l := w.listen()
			start := w.now
			c := w.dial()
			if !w.until(time.Minute, func() bool { return c.Established() }) {
				t.Fatal("not connected")
			}
			if d := w.now.Sub(start); d != tc.want {
				t.Errorf("connected after %v, want %v", d, tc.want)
			}
			if p := c.subflows[0].path; len(c.subflows) != 1 || p != tc.winner || !c.subflows[0].initial {
				t.Errorf("path %d won, %d subflows", p, len(c.subflows))
			}
			var s *Conn
			w.until(time.Second, func() bool { s, _ = l.Accept(); return s != nil })
			w.transfer(c, s, 300000, 10*time.Second)
			// Losers that live are joined to the winner.
			alive := 0
			for _, d := range tc.delays {
				if d != 0 {
					alive++
				}
			}
			w.until(5*time.Second, func() bool { return w.client.counters.JoinsSentUp == int64(alive-1) })
			if n := w.client.counters.JoinsSentUp; n != int64(alive-1) {
				t.Errorf("%d joins, want %d", n, alive-1)
			}
			if n := len(w.client.tokens); n != 1 {
				t.Errorf("%d tokens", n)
			}
			// The server has forgotten the losers: their SYN/ACKs were answered with RST.
			w.run(2 * time.Second)
			if n := len(w.server.halves); n != 0 {
				t.Errorf("%d half-open connections", n)
			}
			if _, again := l.Accept(); again {
				t.Error("a second connection was accepted")
			}
		})
	}
}

// A Dial ends with an error that says what happened: at once if all paths refuse, else when its time is over.
func TestDialErrors(t *testing.T) {
	for _, tc := range []struct {
		name       string
		dead       []bool
		want       error
		atMost     time.Duration
		atLeast    time.Duration
		pathsLeave bool
	}{
		{"all refuse", []bool{false, false}, ErrRefused, 130 * time.Millisecond, 0, false},
		{"one is silent", []bool{true, false}, ErrTimeout, 21 * time.Second, 20 * time.Second, false},
		{"all are silent", []bool{true, true}, ErrTimeout, 21 * time.Second, 20 * time.Second, false},
		{"the paths vanish", []bool{true, true}, ErrNoPath, 6 * time.Second, 0, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, Config{DialTimeout: 20 * time.Second}, Config{})
			for _, dead := range tc.dead {
				w.link(10 * time.Millisecond).down = dead
			}
			start := w.now
			c := w.dial()
			if tc.pathsLeave {
				w.run(5 * time.Second)
				w.client.RemovePath(w.now, 0)
				w.client.RemovePath(w.now, 1)
			}
			w.until(time.Minute, func() bool { return c.Err() != nil })
			d := w.now.Sub(start)
			if !errors.Is(c.Err(), tc.want) || d > tc.atMost || d < tc.atLeast {
				t.Errorf("%v after %v", c.Err(), d)
			}
			w.drain()
			if ev := w.events[c]; len(ev) == 0 || ev[len(ev)-1].Kind != EventClosed || !errors.Is(ev[len(ev)-1].Err, tc.want) {
				t.Errorf("events %v", ev)
			}
			wantEmpty(t, "client", w.client)
		})
	}
}

// A refusal on one path does not wait for the pause before the next one is tried, and does not end the Dial.
func TestDialRefusedOnOnePath(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(10 * time.Millisecond)
	w.link(10 * time.Millisecond)
	w.listen()
	w.tap = func(f *flight) bool {
		if f.link != w.links[0] || !f.toServer {
			return true
		}
		syn := f.segment(t)
		w.inject(f.link, false, wire.Segment{SrcPort: syn.DstPort, DstPort: syn.SrcPort, Ack: syn.Seq + 1, Flags: wire.RST | wire.ACK})
		return false
	}
	start := w.now
	c := w.dial()
	w.until(time.Minute, func() bool { return c.Established() })
	if d := w.now.Sub(start); d > 25*time.Millisecond || c.Err() != nil {
		t.Errorf("%v, connected after %v", c.Err(), d)
	}
}

// What was best is first the next time; paths that lose MPTCP's options come last (FB-11). The memory is bounded.
func TestDialRemembers(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(time.Second)
	w.link(10 * time.Millisecond)
	l := w.listen()
	c, _ := w.connect(l)
	if c.subflows[0].path != 1 {
		t.Fatalf("path %d won", c.subflows[0].path)
	}
	start := w.now
	c, _ = w.connect(l)
	if d := w.now.Sub(start); c.subflows[0].path != 1 || d > 50*time.Millisecond {
		t.Errorf("the second Dial began on path %d, %v", c.subflows[0].path, d)
	}
	d := newDestinations()
	for i := range 3 * maxDestinations {
		addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 1)
		for p := range PathID(20) {
			d.remember(0, addr, p, NoFallback)
		}
		if len(d.byAddr[addr].paths) > maxRacers {
			t.Fatalf("%d paths are remembered", len(d.byAddr[addr].paths))
		}
	}
	if len(d.byAddr) != maxDestinations || len(d.fifo) != maxDestinations {
		t.Errorf("%d destinations are remembered", len(d.byAddr))
	}
}

// A path that strips MPTCP's options is tried after the others the next time.
func TestDialAvoidsStrippingPath(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(10 * time.Millisecond)
	w.link(10 * time.Millisecond)
	w.tap = func(f *flight) bool {
		if f.link == w.links[0] {
			f.rewrite(t, func(seg *wire.Segment) { seg.Options &^= wire.OptMPTCP })
		}
		return true
	}
	l := w.listen()
	if c, _ := w.connect(l); !c.fallen() {
		t.Fatal("the path did not strip")
	}
	if c, _ := w.connect(l); c.fallen() || c.subflows[0].path != 1 {
		t.Error("the stripping path was tried first again")
	}
}

// Path.Remote takes the place of the dialled address.
func TestPathRemote(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(10 * time.Millisecond)
	w.client.RemovePath(w.now, 0)
	w.links[0].client = w.client.AddPath(w.now, Path{Local: w.links[0].clientAddr, Remote: w.links[0].serverAddr})
	l := w.listen()
	c, err := w.client.Dial(w.now, Target{Remote: []netip.AddrPort{netip.MustParseAddrPort("198.51.100.9:80")}})
	if err != nil {
		t.Fatal(err)
	}
	var s *Conn
	if !w.until(time.Second, func() bool { s, _ = l.Accept(); return s != nil }) {
		t.Fatal("not connected")
	}
	if c.RemoteAddr() != w.links[0].serverAddr {
		t.Errorf("remote %v", c.RemoteAddr())
	}
}

// A Dial that finds no port fails at once, not when its time is over.
func TestDialWithoutPort(t *testing.T) {
	w := newWorld(t, Config{Entropy: func() uint64 { return 1 << 40 }}, Config{}) // always the same port
	w.link(10 * time.Millisecond)
	lis := w.listen()
	w.connect(lis)
	c, err := w.client.Dial(w.now, Target{Remote: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:443")}})
	if err != nil || !errors.Is(c.Err(), ErrAddressInUse) {
		t.Errorf("%v, %v", err, c.Err())
	}
}

// RFC 9293, Section 3.8.3 (TCP-09): unless told otherwise, SYNs are tried for at least three minutes.
func TestDialIsPatient(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	l := w.link(10 * time.Millisecond)
	l.down = true
	w.listen()
	c := w.dial()
	w.run(3*time.Minute - time.Second)
	if c.Err() != nil || l.count[1] < 7 {
		t.Fatalf("%v after %d SYNs", c.Err(), l.count[1])
	}
	w.run(2 * time.Second)
	if !errors.Is(c.Err(), ErrTimeout) {
		t.Errorf("%v", c.Err())
	}
}
