package mptcp

import (
	"testing"
	"time"

	"braid/seq"
	"braid/wire"
)

// stateless makes a world whose listener has a full backlog.
func stateless(t *testing.T, client, server Config) (*world, *Listener) {
	server.Backlog = 1
	w := newWorld(t, client, server)
	w.link(10 * time.Millisecond)
	w.link(10 * time.Millisecond)
	lis := w.listen()
	w.inject(w.links[1], true, syn(1, 1))
	w.collect(false)
	return w, lis
}

// CAP-23: a listener without room keeps nothing of a SYN and rebuilds the connection from the third packet, with data or without: MPTCP with
// its keys, window scale, SACK, timestamps, checksums.
func TestCookie(t *testing.T) {
	for _, tc := range []struct {
		name           string
		client, server Config
		first          bool // data in the third packet
		plain          bool
	}{
		{"multipath", Config{}, Config{}, false, false},
		{"data first", Config{}, Config{}, true, false},
		{"checksums", Config{Checksums: true}, Config{}, true, false},
		{"plain client", Config{NoMPTCP: true}, Config{}, true, true},
		{"plain server", Config{}, Config{NoMPTCP: true}, false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, lis := stateless(t, tc.client, tc.server)
			tokens := len(w.server.tokens)
			c := w.dial()
			var st *stream
			if tc.first {
				st = w.stream(c, nil, 300000)
			}
			w.until(12*time.Millisecond, func() bool { return w.server.counters.CookiesSent > 0 })
			if len(w.server.halves) != 1 || len(w.server.tokens) != tokens || len(w.server.conns) != 0 {
				t.Fatalf("%d half-open, %d tokens", len(w.server.halves), len(w.server.tokens))
			}
			var s *Conn
			if !w.until(time.Second, func() bool { s, _ = lis.Accept(); return s != nil && c.Established() }) {
				t.Fatal("not connected")
			}
			if st == nil {
				st = w.stream(c, s, 300000)
			}
			st.to = s
			if !w.until(10*time.Second, func() bool { return st.eof }) {
				t.Fatalf("read %d", st.read)
			}
			w.transfer(s, c, 300000, 10*time.Second)
			if c.fallen() != tc.plain || s.fallen() != tc.plain {
				t.Errorf("plain: %t, %t", c.fallen(), s.fallen())
			}
			if c.hs.checksums != s.hs.checksums || !tc.plain && c.hs.checksums != tc.client.Checksums {
				t.Errorf("checksums: %t, %t", c.hs.checksums, s.hs.checksums)
			}
			if w.server.counters.CookiesReturned != 1 {
				t.Errorf("%d cookies returned", w.server.counters.CookiesReturned)
			}
		})
	}
}

// The RTT that a cookie brings is at most 64 ms too long, and options survive as they were.
func TestCookieOptions(t *testing.T) {
	w, _ := stateless(t, Config{}, Config{})
	for port := uint16(100); port < 200; port++ {
		w.now = w.now.Add(time.Duration(port) * 997 * time.Microsecond)
		seg := syn(port, seq.Number(port)*77)
		seg.Options = wire.OptMSS | wire.OptTimestamps | wire.OptWindowScale | wire.OptSACKPermitted
		seg.MSS, seg.TSVal, seg.WindowScale = 1400, 5, uint8(port%16)
		if port%2 == 0 {
			seg.Options &^= wire.OptSACKPermitted
		}
		w.inject(w.links[0], true, seg)
		segs := w.collect(false)
		if len(segs) != 1 {
			t.Fatal("no answer")
		}
		sent := w.now
		w.now = w.now.Add(30 * time.Millisecond)
		ack := wire.Segment{SrcPort: port, DstPort: serverPort, Seq: seg.Seq + 1, Ack: segs[0].Seq + 1, Flags: wire.ACK, Options: wire.OptTimestamps, TSVal: 30, TSEcr: segs[0].TSVal}
		w.inject(w.links[0], true, ack)
		if len(w.server.conns) == 0 {
			t.Fatal("not accepted")
		}
		c := w.server.conns[len(w.server.conns)-1]
		info := c.subflows[0].tcp.Info(w.now)
		if info.SRTT < 30*time.Millisecond || info.SRTT > 95*time.Millisecond {
			t.Errorf("RTT %v", info.SRTT)
		}
		if info.MSS > 1400 || info.MSS < 1300 {
			t.Errorf("MSS %d", info.MSS)
		}
		w.now = max(w.now, sent)
		c.Abort(w.now)
		w.server.listeners[listenKey{port: serverPort}].queue = nil
		w.collect(false)
	}
}

// A cookie is good for its time, its addresses and its ports, and cannot be guessed.
func TestCookieForged(t *testing.T) {
	w, _ := stateless(t, Config{}, Config{})
	w.inject(w.links[0], true, syn(100, 5))
	segs := w.collect(false)
	good := wire.Segment{SrcPort: 100, DstPort: serverPort, Seq: 6, Ack: segs[0].Seq + 1, Flags: wire.ACK}
	for _, change := range []func(*wire.Segment){
		func(s *wire.Segment) { s.SrcPort++ },
		func(s *wire.Segment) { s.Seq++ },
		func(s *wire.Segment) { s.Ack++ },
		func(s *wire.Segment) { s.Ack += 1 << 27 },
	} {
		bad := good
		change(&bad)
		w.inject(w.links[0], true, bad)
		if segs := w.collect(false); len(segs) != 1 || segs[0].Flags != wire.RST || len(w.server.conns) != 0 {
			t.Errorf("answer %v, %d connections", segs, len(w.server.conns))
		}
	}
	w.now = w.now.Add(2 * cookieSlot)
	w.inject(w.links[0], true, good)
	if len(w.server.conns) != 0 {
		t.Error("an old cookie is good")
	}
	w.now = w.now.Add(-2 * cookieSlot)
	w.inject(w.links[0], true, good)
	if len(w.server.conns) != 1 {
		t.Error("the good one is not")
	}
}

// What comes of a connection before the packet that brings its cookie back is dropped and not reset, also when another SYN left a half-open connection
// in the meantime: the peer, which is connected, sends its first byte again.
func TestCookieAfterALostFlight(t *testing.T) {
	w, _ := stateless(t, Config{}, Config{})
	seg := syn(100, 5)
	seg.Options = wire.OptMSS | wire.OptTimestamps
	seg.MSS, seg.TSVal = 1400, 5
	w.now = w.now.Add(time.Second)
	w.inject(w.links[0], true, seg)
	segs := w.collect(false)
	ack := wire.Segment{SrcPort: 100, DstPort: serverPort, Seq: 6, Ack: segs[0].Seq + 1, Flags: wire.ACK, Options: wire.OptTimestamps, TSVal: 30, TSEcr: segs[0].TSVal}
	late := ack
	late.Seq += 14000
	w.now = w.now.Add(20 * time.Millisecond)
	w.inject(w.links[0], true, late)
	if segs := w.collect(false); len(segs) != 0 {
		t.Errorf("answer %v", segs)
	}
	for _, l := range w.server.listeners { // there is room again, and a copy of the SYN
		l.half.first.close()
	}
	w.inject(w.links[0], true, seg)
	if segs := w.collect(false); len(segs) != 1 || segs[0].Ack != 6 || segs[0].Seq+1 == ack.Ack {
		t.Fatalf("answer %v", segs)
	}
	w.inject(w.links[0], true, late)
	if segs := w.collect(false); len(segs) != 0 {
		t.Errorf("answer %v", segs)
	}
	w.inject(w.links[0], true, ack)
	if len(w.server.conns) != 1 || len(w.server.halves) != 0 {
		t.Errorf("%d connections, %d half-open", len(w.server.conns), len(w.server.halves))
	}
	other := late // of another connection
	other.SrcPort++
	w.inject(w.links[0], true, other)
	if segs := w.collect(false); len(segs) != 1 || segs[0].Flags != wire.RST {
		t.Errorf("answer %v", segs)
	}
}
