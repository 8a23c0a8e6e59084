package mptcp

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"braid/seq"
	"braid/wire"
)

// syn is a SYN of somebody's.
func syn(port uint16, n seq.Number) wire.Segment {
	return wire.Segment{
		SrcPort: port, DstPort: serverPort, Seq: n, Flags: wire.SYN, Window: 60000, MSS: 1460,
		Options: wire.OptMSS | wire.OptMPCapable, Capable: wire.MPCapable{Version: 1, HMACSHA256: true},
	}
}

// SEC-02: a flood of SYNs costs no more than the backlog, and does not lock others out.
func TestSYNFlood(t *testing.T) {
	w := newWorld(t, Config{}, Config{Backlog: 64})
	w.link(10 * time.Millisecond)
	attacker := w.link(10 * time.Millisecond)
	lis := w.listen()
	address := attacker.clientAddr
	next := uint32(0)
	var c, s *Conn
	for tick := range 400 { // 20 SYNs a millisecond
		for range 20 {
			next++
			seg := syn(uint16(next), seq.Number(next))
			attacker.clientAddr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{172, byte(next >> 16), byte(next >> 8), 9}), 0)
			w.inject(attacker, true, seg)
		}
		if tick == 100 {
			c = w.dial()
		}
		w.run(time.Millisecond)
		if s == nil {
			s, _ = lis.Accept()
		}
	}
	attacker.clientAddr = address
	if n := lis.half.n; n > 64 || len(w.server.halves) > 64 || len(w.server.tokens) > 66 {
		t.Errorf("%d half-open connections, %d tokens", n, len(w.server.tokens))
	}
	if s == nil || !c.Established() {
		t.Fatal("locked out")
	}
	w.transfer(c, s, 100000, 5*time.Second)
	if c.fallen() || s.fallen() {
		t.Error("fell back")
	}
	c.Close(w.now)
	s.Close(w.now)
	w.run(3 * time.Minute)
	lis.Close(w.now)
	wantEmpty(t, "server", w.server)
}

// Connections that nobody accepts are bounded too; the peer is not refused but waits.
func TestAcceptQueueIsBounded(t *testing.T) {
	w := newWorld(t, Config{}, Config{Backlog: 4})
	w.link(10 * time.Millisecond)
	lis := w.listen()
	for range 10 {
		c := w.dial()
		c.Write(w.now, []byte("hello"))
	}
	w.run(time.Second)
	if len(lis.queue) != 4 || w.server.counters.AcceptOverflows == 0 {
		t.Errorf("%d wait, %d overflows", len(lis.queue), w.server.counters.AcceptOverflows)
	}
	accepted := 0
	w.until(20*time.Second, func() bool {
		for {
			s, ok := lis.Accept()
			if !ok {
				return accepted == 10
			}
			accepted++
			s.Abort(w.now)
		}
	})
	if accepted < 8 { // those that came last were evicted from the backlog
		t.Errorf("%d accepted", accepted)
	}
}

// Listen, Close, and what they refuse.
func TestListener(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(10 * time.Millisecond)
	lis := w.listen()
	if _, err := w.server.Listen(w.now, serverPort, netip.IPv4Unspecified()); !errors.Is(err, ErrAddressInUse) {
		t.Errorf("second listener: %v", err)
	}
	if _, err := w.server.Listen(w.now, 0, netip.Addr{}); err == nil {
		t.Error("port 0")
	}
	one, err := w.server.Listen(w.now, serverPort, netip.MustParseAddr("192.0.2.1"))
	if err != nil {
		t.Fatal(err)
	}
	c := w.dial()
	w.run(time.Second)
	if s, ok := one.Accept(); !ok || s == nil { // the more exact listener gets it
		t.Error("not accepted")
	}
	c2 := w.dial()
	w.run(time.Second)
	if one.Close(w.now) != nil || one.Close(w.now) != net.ErrClosed {
		t.Error("Close")
	}
	w.run(time.Second)
	if c.Err() != nil || !errors.Is(c2.Err(), ErrReset) {
		t.Errorf("accepted: %v; not accepted: %v", c.Err(), c2.Err())
	}
	if _, ok := one.Accept(); ok {
		t.Error("a closed listener accepts")
	}
	lis.Close(w.now)
}

// RFC 9293, Section 3.10.7.4: a half-open connection and segments that do not fit.
func TestHalfOpenSegments(t *testing.T) {
	open := func(t *testing.T) (w *world, synack wire.Segment) {
		w = newWorld(t, Config{}, Config{})
		w.link(10 * time.Millisecond)
		w.listen()
		w.inject(w.links[0], true, syn(1000, 100))
		segs := w.collect(false)
		if len(segs) != 1 || !segs[0].Flags.Has(wire.SYN|wire.ACK) || segs[0].Ack != 101 {
			t.Fatalf("answer %v", segs)
		}
		return w, segs[0]
	}
	reply := func(n, ack seq.Number, flags wire.Flags) wire.Segment {
		return wire.Segment{SrcPort: 1000, DstPort: serverPort, Seq: n, Ack: ack, Flags: flags, Window: 1000}
	}
	t.Run("wrong ACK", func(t *testing.T) {
		w, synack := open(t)
		w.inject(w.links[0], true, reply(101, synack.Seq+5, wire.ACK))
		if segs := w.collect(false); len(segs) != 1 || segs[0].Flags != wire.RST || segs[0].Seq != synack.Seq+5 {
			t.Errorf("answer %v", segs)
		}
		if len(w.server.halves) != 1 {
			t.Error("the half-open connection is gone")
		}
	})
	t.Run("wrong sequence", func(t *testing.T) {
		w, synack := open(t)
		w.inject(w.links[0], true, reply(500, synack.Seq+1, wire.ACK))
		if segs := w.collect(false); len(segs) != 0 || len(w.server.conns) != 0 {
			t.Errorf("answer %v", segs)
		}
	})
	t.Run("RST", func(t *testing.T) {
		w, _ := open(t)
		w.inject(w.links[0], true, reply(102, 0, wire.RST))
		if len(w.server.halves) != 1 {
			t.Error("a RST with a wrong number was believed")
		}
		w.inject(w.links[0], true, reply(101, 0, wire.RST))
		wantEmpty(t, "server", &Stack{paths: w.server.paths, halves: w.server.halves, tokens: w.server.tokens, pool: w.server.pool, sendPool: w.server.sendPool})
	})
	t.Run("SYN again", func(t *testing.T) {
		w, synack := open(t)
		w.inject(w.links[0], true, syn(1000, 100))
		segs := w.collect(false)
		if len(segs) != 1 || segs[0].Seq != synack.Seq || segs[0].Capable != synack.Capable {
			t.Errorf("answer %v", segs)
		}
	})
	t.Run("another SYN", func(t *testing.T) { // RFC 5961, Section 4.2: it may be anybody's
		w, synack := open(t)
		w.now = w.now.Add(time.Millisecond) // its number goes with the clock
		w.inject(w.links[0], true, syn(1000, 7777))
		segs := w.collect(false)
		if len(segs) != 1 || segs[0].Flags != wire.ACK || segs[0].Seq != synack.Seq+1 || segs[0].Ack != 101 || len(w.server.halves) != 1 {
			t.Errorf("answer %v, %d half-open", segs, len(w.server.halves))
		}
		rst := syn(1000, segs[0].Ack) // of a peer that started anew
		rst.Flags = wire.RST
		w.inject(w.links[0], true, rst)
		w.inject(w.links[0], true, syn(1000, 7777))
		segs = w.collect(false)
		if len(segs) != 1 || segs[0].Seq == synack.Seq || segs[0].Ack != 7778 || len(w.server.halves) != 1 || len(w.server.tokens) != 1 {
			t.Errorf("then %v, %d half-open", segs, len(w.server.halves))
		}
		for range 1000 {
			w.inject(w.links[0], true, syn(1000, 9999))
		}
		if n := len(w.collect(false)); n > limiterBurst {
			t.Errorf("%d challenges at once", n)
		}
	})
	t.Run("not answered", func(t *testing.T) {
		w, _ := open(t)
		n := 0
		for range 100 {
			at := w.server.NextTimeout()
			if at > w.now.Add(5*time.Minute) {
				break
			}
			w.now = at
			w.server.HandleTimeout(w.now)
			n += len(w.collect(false))
		}
		if n != synAckTries-1 || len(w.server.halves) != 0 {
			t.Errorf("%d SYN/ACKs more, %d half-open", n, len(w.server.halves))
		}
		wantEmpty(t, "server", &Stack{paths: w.server.paths, halves: w.server.halves, tokens: w.server.tokens, pool: w.server.pool, sendPool: w.server.sendPool})
	})
}

// The SYN/ACK is lost: the handshake is slower, and TCP knows that something was lost.
func TestLostSYNACK(t *testing.T) {
	for lose := 1; lose <= 2; lose++ { // after three the client goes without MPTCP
		w := newWorld(t, Config{}, Config{})
		w.link(10 * time.Millisecond)
		n := 0
		w.tap = func(f *flight) bool {
			if seg := f.segment(t); !f.toServer && seg.Flags&wire.SYN != 0 {
				n++
				return n > lose
			}
			return true
		}
		c, s := w.connect(w.listen())
		w.transfer(c, s, 100000, 5*time.Second)
		w.transfer(s, c, 100000, 5*time.Second)
		if c.fallen() || s.fallen() {
			t.Errorf("%d lost: fell back", lose)
		}
	}
}
