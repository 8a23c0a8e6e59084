package mptcp

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"braid/wire"
)

// handshakeSegments runs a handshake and returns the first segments of each kind that crossed the wire.
func handshakeSegments(t *testing.T, client, server Config, data int) (syn, synack, third wire.Segment, w *world, c, s *Conn) {
	t.Helper()
	w = newWorld(t, client, server)
	w.link(10 * time.Millisecond)
	var n int
	w.tap = func(f *flight) bool {
		seg := f.segment(t)
		switch {
		case f.toServer && seg.Flags&wire.SYN != 0:
			syn = seg
		case !f.toServer && seg.Flags&wire.SYN != 0:
			synack = seg
		case f.toServer && n == 0:
			third, n = seg, 1
		}
		return true
	}
	l := w.listen()
	c = w.dial()
	if data > 0 {
		if k, err := c.Write(w.now, make([]byte, data)); k != data || err != nil {
			t.Fatalf("wrote %d, %v", k, err)
		}
	}
	if !w.until(5*time.Second, func() bool { s, _ = l.Accept(); return s != nil }) {
		t.Fatal("not connected")
	}
	w.run(100 * time.Millisecond)
	return syn, synack, third, w, c, s
}

// RFC 8684, Section 3.1: the three packets of the handshake (CAP-01 to CAP-05, CAP-09, CAP-10, CAP-13).
func TestCapablePackets(t *testing.T) {
	for _, tc := range []struct {
		name           string
		client, server bool // ask for checksums
		data           int
	}{
		{"plain", false, false, 0},
		{"client asks for checksums", true, false, 0},
		{"server asks for checksums", false, true, 0},
		{"first data is the third packet", false, false, 100},
		{"with checksums", true, true, 100},
	} {
		t.Run(tc.name, func(t *testing.T) {
			syn, synack, third, _, c, s := handshakeSegments(t, Config{Checksums: tc.client}, Config{Checksums: tc.server}, tc.data)
			for i, seg := range []*wire.Segment{&syn, &synack, &third} {
				o := seg.Capable
				if !seg.Has(wire.OptMPCapable) {
					t.Fatalf("packet %d has no MP_CAPABLE", i+1)
				}
				if o.Version != 1 || o.Extensibility || !o.HMACSHA256 || o.OtherFlags != 0 || o.NoJoin {
					t.Errorf("packet %d: %+v", i+1, o)
				}
				if o.Keys != i {
					t.Errorf("packet %d has %d keys", i+1, o.Keys)
				}
			}
			sums := tc.client || tc.server
			if syn.Capable.Checksums != tc.client || synack.Capable.Checksums != sums || third.Capable.Checksums != sums {
				t.Errorf("flag A: %t %t %t", syn.Capable.Checksums, synack.Capable.Checksums, third.Capable.Checksums)
			}
			if third.Capable.Sender != c.hs.localKey || third.Capable.Receiver != s.hs.localKey || synack.Capable.Sender != s.hs.localKey {
				t.Error("the keys are not the ends' own")
			}
			if third.Capable.HasData != (tc.data > 0) || third.Capable.HasChecksum != (tc.data > 0 && sums) || int(third.Capable.DataLength) != tc.data {
				t.Errorf("third packet with %d bytes: %+v", tc.data, third.Capable)
			}
			if c.hs.checksums != sums || s.hs.checksums != sums {
				t.Errorf("checksums: client %t, server %t", c.hs.checksums, s.hs.checksums)
			}
			if c.fallen() || s.fallen() {
				t.Error("fell back")
			}
			if c.hs.localToken != s.hs.peerToken || c.hs.peerIDSN != s.hs.localIDSN {
				t.Error("the ends disagree on tokens or IDSNs")
			}
			if tc.data > 0 {
				if n, err := s.Read(0, make([]byte, 1000)); n != tc.data || err != nil {
					t.Errorf("read %d, %v", n, err)
				}
			}
		})
	}
}

// RFC 8684, Section 3.1, CAP-26: nothing of the SYN's options is cut off.
func TestSYNOptionsFit(t *testing.T) {
	syn, synack, _, _, _, _ := handshakeSegments(t, Config{}, Config{}, 0)
	const all = wire.OptMSS | wire.OptWindowScale | wire.OptSACKPermitted | wire.OptTimestamps | wire.OptMPCapable
	if !syn.Has(all) || !synack.Has(all) {
		t.Errorf("options %#x and %#x", syn.Options, synack.Options)
	}
	if syn.MSS != 1460 {
		t.Errorf("MSS %d", syn.MSS)
	}
}

// fallen reports whether a connection is plain TCP.
func (c *Conn) fallen() bool { return c.hs.plain }

// RFC 8684, Section 3.1 and 3.7: whatever is wrong with an MP_CAPABLE makes the connection plain TCP, and the stream goes through
// (CAP-09, CAP-11, CAP-12, CAP-16, CAP-17, CAP-18, CAP-20, CAP-21, CAP-22, CAP-24, FB-01, FB-06, MB-03, MB-08).
func TestCapableFallback(t *testing.T) {
	strip := func(seg *wire.Segment) { seg.Options &^= wire.OptMPTCP }
	capable := func(change func(*wire.MPCapable)) func(*wire.Segment) {
		return func(seg *wire.Segment) {
			if seg.Has(wire.OptMPCapable) {
				change(&seg.Capable)
			}
		}
	}
	join := wire.MPJoin{Form: wire.JoinSYN, Token: 1, Nonce: 2}
	for _, tc := range []struct {
		name             string
		syn, synack, ack func(*wire.Segment)
		client, server   FallbackReason
	}{
		{"SYN stripped", strip, nil, nil, FallbackNotAnswered, FallbackNotOffered},
		{"SYN/ACK stripped", nil, strip, nil, FallbackNotAnswered, FallbackThirdPacket},
		{"all but SYNs stripped", nil, nil, strip, NoFallback, FallbackThirdPacket},
		{"B in the SYN", capable(func(o *wire.MPCapable) { o.Extensibility = true }), nil, nil, FallbackNotAnswered, FallbackNotOffered},
		{"B in the SYN/ACK", nil, capable(func(o *wire.MPCapable) { o.Extensibility = true }), nil, FallbackNotAnswered, FallbackThirdPacket},
		{"version 0 in the SYN", capable(func(o *wire.MPCapable) { o.Version = 0 }), nil, nil, FallbackNotAnswered, FallbackNotOffered},
		{"version 2 in the SYN/ACK", nil, capable(func(o *wire.MPCapable) { o.Version = 2 }), nil, FallbackNotAnswered, FallbackThirdPacket},
		{"no algorithm offered", capable(func(o *wire.MPCapable) { o.HMACSHA256 = false }), nil, nil, FallbackNotAnswered, FallbackNotOffered},
		{"two algorithms in the SYN/ACK", nil, capable(func(o *wire.MPCapable) { o.OtherFlags = 2 }), nil, FallbackNotAnswered, FallbackThirdPacket},
		{"another algorithm in the SYN/ACK", nil, capable(func(o *wire.MPCapable) { o.OtherFlags, o.HMACSHA256 = 2, false }), nil, FallbackNotAnswered, FallbackThirdPacket},
		{"MP_CAPABLE and MP_JOIN in the SYN", func(seg *wire.Segment) {
			seg.Options &^= wire.OptWindowScale
			seg.Options |= wire.OptMPJoin
			seg.Join = join
		}, nil, nil, FallbackNotAnswered, FallbackNotOffered},
		{"SYN's option reflected", nil, capable(func(o *wire.MPCapable) { *o = wire.MPCapable{Version: 1, HMACSHA256: true} }), nil, FallbackNotAnswered, FallbackThirdPacket},
		{"wrong echo of the key", nil, nil, capable(func(o *wire.MPCapable) { o.Receiver[3]++ }), NoFallback, FallbackThirdPacket},
		{"version 2 in the third packet", nil, nil, capable(func(o *wire.MPCapable) { o.Version = 2 }), NoFallback, FallbackThirdPacket},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, Config{}, Config{})
			w.link(10 * time.Millisecond)
			w.link(10 * time.Millisecond)
			joins := 0
			w.tap = func(f *flight) bool {
				seg := f.segment(t)
				change := tc.ack
				switch {
				case f.toServer && seg.Flags&wire.SYN != 0:
					change = tc.syn
				case seg.Flags&wire.SYN != 0:
					change = tc.synack
				}
				if f.toServer && seg.Has(wire.OptMPJoin) && !seg.Has(wire.OptMPCapable) {
					joins++
				}
				if change != nil && !(f.toServer && f.link != w.links[0]) {
					f.rewrite(t, change)
				}
				return true
			}
			l := w.listen()
			c, s := w.connect(l)
			up, down := w.stream(c, s, 200000), w.stream(s, c, 100000)
			if !w.until(20*time.Second, func() bool { return up.eof && down.eof }) {
				t.Fatalf("up %d, down %d", up.read, down.read)
			}
			if got := s.Info(w.now).Fallback; got != tc.server {
				t.Errorf("server: fallback %v, want %v", got, tc.server)
			}
			if got := c.Info(w.now).Fallback; tc.client != NoFallback && got != tc.client || got == NoFallback {
				t.Errorf("client: fallback %v, want %v", got, tc.client)
			}
			if joins > 0 {
				t.Errorf("%d joins after fallback", joins)
			}
			if n := len(w.server.tokens) + len(w.client.tokens); n != 0 {
				t.Errorf("%d tokens are still taken", n) // KEY-07
			}
			c.Close(w.now)
			s.Close(w.now)
			w.run(90 * time.Second)
			l.Close(w.now)
			wantEmpty(t, "client", w.client)
			wantEmpty(t, "server", w.server)
		})
	}
}

// FB-12: plain and multipath hosts in all combinations.
func TestPlainTCPCombinations(t *testing.T) {
	for _, tc := range []struct{ client, server bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		w := newWorld(t, Config{NoMPTCP: tc.client}, Config{NoMPTCP: tc.server})
		w.link(10 * time.Millisecond)
		var options wire.Option
		w.tap = func(f *flight) bool {
			if seg := f.segment(t); f.toServer == tc.client && tc.client {
				options |= seg.Options // CAP-20: no option from a host that does not want any
			}
			return true
		}
		l := w.listen()
		c, s := w.connect(l)
		w.transfer(c, s, 100000, 10*time.Second)
		if want := tc.client || tc.server; c.fallen() != want || s.fallen() != want {
			t.Errorf("%+v: plain %t and %t", tc, c.fallen(), s.fallen())
		}
		if options&wire.OptMPTCP != 0 {
			t.Errorf("%+v: MPTCP options from a plain host", tc)
		}
	}
}

// RFC 8684, Section 3.1 (CAP-19): after some SYNs with MP_CAPABLE that were not answered the next goes without. FB-11: the path is
// remembered, so that the next connection does not wait again.
func TestSYNFallback(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(10 * time.Millisecond)
	var syns []bool
	w.tap = func(f *flight) bool {
		seg := f.segment(t)
		if seg.Flags&wire.SYN != 0 && f.toServer {
			syns = append(syns, seg.Has(wire.OptMPCapable))
		}
		return seg.Options&wire.OptMPTCP == 0
	}
	l := w.listen()
	start := w.now
	c := w.dial()
	var s *Conn
	if !w.until(time.Minute, func() bool { s, _ = l.Accept(); return s != nil }) {
		t.Fatal("not connected")
	}
	if len(syns) != 4 || !syns[0] || !syns[1] || !syns[2] || syns[3] {
		t.Errorf("SYNs with MP_CAPABLE: %v", syns)
	}
	w.transfer(c, s, 10000, 10*time.Second)
	if d := w.now.Sub(start); d > 10*time.Second {
		t.Errorf("took %v", d)
	}
	if got := c.Info(w.now).Fallback; got != FallbackSYN {
		t.Errorf("fallback %v", got)
	}
	syns = nil
	start = w.now
	w.connect(l)
	if d := w.now.Sub(start); d > 100*time.Millisecond || len(syns) != 1 || syns[0] {
		t.Errorf("the next one took %v, SYNs with MP_CAPABLE: %v", d, syns)
	}
	// After a limited time the option is tried again.
	w.tap = nil
	w.run(11 * time.Minute)
	if c, _ := w.connect(l); c.fallen() {
		t.Error("the path is remembered for ever")
	}
}

// RFC 8684, Section 3.1 (CAP-07): the first data keeps its form until the peer is known to have the keys; what follows uses DSS.
func TestFirstDataKeepsItsForm(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(10 * time.Millisecond)
	var forms []wire.Option
	lose := 3
	w.tap = func(f *flight) bool {
		seg := f.segment(t)
		if !f.toServer || seg.Flags&wire.SYN != 0 {
			return true
		}
		if seg.Len() > 0 {
			forms = append(forms, seg.Options&wire.OptMPTCP)
		}
		if lose > 0 {
			lose--
			return false
		}
		return true
	}
	l := w.listen()
	c := w.dial()
	st := w.stream(c, nil, 2000)
	if !w.until(20*time.Second, func() bool {
		if st.to == nil {
			if s, ok := l.Accept(); ok {
				st.to = s
			}
		}
		return st.eof
	}) {
		t.Fatalf("read %d", st.read)
	}
	if c.fallen() || st.to.fallen() {
		t.Errorf("fell back: %v", st.to.Info(w.now).Fallback)
	}
	if len(forms) < 3 || forms[0] != wire.OptMPCapable || forms[1] != wire.OptDSS || forms[2] != wire.OptMPCapable && forms[3] != wire.OptMPCapable {
		t.Errorf("options of data segments: %#x", forms)
	}
}

// RFC 8684, Section 3.1 (CAP-08): the listener sends first; no MP_CAPABLE with data is needed. The third ACK may get lost.
func TestServerSendsFirst(t *testing.T) {
	for _, lose := range []bool{false, true} {
		w := newWorld(t, Config{}, Config{})
		w.link(10 * time.Millisecond)
		n := 0
		w.tap = func(f *flight) bool {
			seg := f.segment(t)
			if f.toServer && seg.Flags&wire.SYN == 0 {
				n++
				return n > 1 || !lose
			}
			return true
		}
		l := w.listen()
		c, s := w.connect(l)
		w.transfer(s, c, 100000, 10*time.Second)
		w.transfer(c, s, 1000, 10*time.Second)
		if c.fallen() || s.fallen() {
			t.Errorf("lose %t: fell back", lose)
		}
	}
}

// A connection that ends without data: DATA_FIN must not overtake the keys, even if the third ACK is lost.
func TestCloseWithoutData(t *testing.T) {
	for _, lose := range []int{0, 1, 2, 3} {
		w := newWorld(t, Config{}, Config{})
		w.link(10 * time.Millisecond)
		n := 0
		w.tap = func(f *flight) bool {
			seg := f.segment(t)
			if f.toServer && seg.Flags&wire.SYN == 0 {
				n++
				return n > lose
			}
			return true
		}
		l := w.listen()
		c := w.dial()
		var s *Conn
		if !w.until(10*time.Second, func() bool { return c.Established() }) {
			t.Fatal("not connected")
		}
		c.Close(w.now)
		if !w.until(20*time.Second, func() bool { s, _ = l.Accept(); return s != nil }) {
			t.Fatalf("lose %d: not accepted", lose)
		}
		w.run(2 * time.Second)
		if s.fallen() {
			t.Errorf("lose %d: server fell back", lose)
		}
		if !s.Readable() {
			t.Errorf("lose %d: the server does not see the end", lose)
		}
		s.Close(w.now)
		w.run(90 * time.Second)
		if c.Err() != nil || s.Err() != nil {
			t.Errorf("lose %d: %v, %v", lose, c.Err(), s.Err())
		}
		l.Close(w.now)
		wantEmpty(t, "client", w.client)
		wantEmpty(t, "server", w.server)
	}
}

// RFC 8684, Section 3.1 (CAP-14, CAP-15): after flag C no joins go to the address and port, and those that come are refused.
func TestNoJoinFlag(t *testing.T) {
	w := newWorld(t, Config{}, Config{NoJoinInitial: true})
	w.link(10 * time.Millisecond)
	w.link(10 * time.Millisecond)
	l := w.listen()
	c, s := w.connect(l)
	w.transfer(c, s, 100000, 10*time.Second)
	if n := w.client.counters.JoinsSent; n != 0 || !c.hs.peerNoJoin {
		t.Errorf("%d joins sent, flag seen: %t", n, c.hs.peerNoJoin)
	}
	w = newWorld(t, Config{}, Config{NoJoinInitial: true})
	w.link(10 * time.Millisecond)
	w.link(10 * time.Millisecond)
	w.tap = func(f *flight) bool {
		if seg := f.segment(t); !f.toServer && seg.Has(wire.OptMPCapable) {
			f.rewrite(t, func(seg *wire.Segment) { seg.Capable.NoJoin = false })
		}
		return true
	}
	l = w.listen()
	c, s = w.connect(l)
	w.transfer(c, s, 100000, 10*time.Second)
	if n := w.server.counters.JoinRefusedState; n == 0 || len(s.subflows) != 1 {
		t.Errorf("%d joins refused, %d subflows", n, len(s.subflows))
	}
}

// RFC 8684, Section 3.1 (KEY-01, KEY-02): keys come from the configured entropy and are drawn again while their token is in use.
func TestKeysAndShards(t *testing.T) {
	draws := []uint64{0, 0, 0, 0, 1, 1, 2}
	s := NewStack(Config{Entropy: func() uint64 { v := draws[0]; draws = draws[1:]; return v }})
	a, ta, _ := s.newKey()
	b, tb, ok := s.newKey()
	if a == b || ta == tb || !ok || ta != a.Token() {
		t.Errorf("keys %x %x", a, b)
	}
	shard := NewStack(Config{Entropy: entropy(3), Shards: 4, Shard: 2})
	for range 100 {
		if _, token, ok := shard.newKey(); !ok || token%4 != 2 {
			t.Fatalf("token %d", token)
		}
	}
}

// RFC 9293, Section 3.5.2: nobody listens.
func TestDialRefused(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(10 * time.Millisecond)
	w.link(20 * time.Millisecond)
	start := w.now
	c := w.dial()
	if !w.until(time.Minute, func() bool { return c.Err() != nil }) {
		t.Fatal("no error")
	}
	if !errors.Is(c.Err(), ErrRefused) || w.now.Sub(start) > 200*time.Millisecond {
		t.Errorf("%v after %v", c.Err(), w.now.Sub(start))
	}
	wantEmpty(t, "client", w.client)
	if _, err := w.client.Dial(w.now, Target{Remote: []netip.AddrPort{netip.MustParseAddrPort("[2001:db8::1]:1")}}); !errors.Is(err, ErrNoPath) {
		t.Errorf("IPv6 over IPv4 paths: %v", err)
	}
}
