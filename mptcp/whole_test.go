package mptcp

import (
	"net/netip"
	"testing"
	"time"

	"braid/wire"
)

// The first whole: handshake, a second subflow, a transfer each way, close, nothing left.
func TestHandshakeTransferClose(t *testing.T) {
	for _, udp := range []bool{false, true} {
		w := newWorld(t, Config{}, Config{})
		for i := range 2 {
			if udp {
				w.linkUDP(time.Duration(10+20*i) * time.Millisecond)
			} else {
				w.link(time.Duration(10+20*i) * time.Millisecond)
			}
			w.links[i].rate = 2e6
		}
		l := w.listen()
		c, s := w.connect(l)
		up := w.stream(c, s, 3<<20)
		down := w.stream(s, c, 2<<20)
		if !w.until(20*time.Second, func() bool { return up.eof && down.eof }) {
			t.Fatalf("udp %v: up %+v down %+v\n%v\n%v", udp, up, down, c.Err(), s.Err())
		}
		if n := w.links[1].count[1]; n < 100 {
			t.Errorf("udp %v: second path carried %d packets", udp, n)
		}
		c.Close(w.now)
		s.Close(w.now)
		w.run(70 * time.Second)
		l.Close(w.now)
		wantEmpty(t, "client", w.client)
		wantEmpty(t, "server", w.server)
		if c.Err() != nil || s.Err() != nil {
			t.Errorf("udp %v: %v, %v", udp, c.Err(), s.Err())
		}
	}
}

// The same over IPv6.
func TestIPv6(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	for i := range 2 {
		l := w.link(10 * time.Millisecond)
		l.clientAddr = netip.AddrPortFrom(netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, byte(i), 15: 1}), 0)
		l.serverAddr = netip.MustParseAddrPort("[2001:db8:ffff::1]:443")
		w.client.RemovePath(w.now, l.client)
		l.client = w.client.AddPath(w.now, Path{Local: l.clientAddr})
		if i == 0 {
			w.server.RemovePath(w.now, l.server)
			l.server = w.server.AddPath(w.now, Path{Local: l.serverAddr})
		} else {
			l.server = w.links[0].server
		}
	}
	lis := w.listen()
	c, err := w.client.Dial(w.now, Target{Remote: []netip.AddrPort{w.links[0].serverAddr}})
	if err != nil {
		t.Fatal(err)
	}
	var s *Conn
	if !w.until(time.Second, func() bool { s, _ = lis.Accept(); return s != nil }) {
		t.Fatal("not connected")
	}
	w.transfer(c, s, 500000, 5*time.Second)
	w.transfer(s, c, 500000, 5*time.Second)
	if w.client.counters.JoinsSentUp != 1 {
		t.Errorf("%d joins", w.client.counters.JoinsSentUp)
	}
}

// RFC 9293, Section 3.5 (TCP-04): a simultaneous open works; it is plain TCP.
func TestSimultaneousOpen(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	l := w.link(10 * time.Millisecond)
	c := w.dial()
	out := w.collect(true)
	w.inject(l, false, wire.Segment{SrcPort: serverPort, DstPort: out[0].SrcPort, Seq: 500, Flags: wire.SYN, Window: 60000})
	answer := w.collect(true)
	if len(answer) != 1 || !answer[0].Flags.Has(wire.SYN|wire.ACK) || answer[0].Ack != 501 || answer[0].Options&wire.OptMPTCP != 0 {
		t.Fatalf("answer %v", answer)
	}
	w.inject(l, false, wire.Segment{SrcPort: serverPort, DstPort: out[0].SrcPort, Seq: 501, Ack: out[0].Seq + 1, Flags: wire.ACK, Window: 60000, Payload: []byte("hi")})
	if !c.Established() || !c.fallen() {
		t.Errorf("established %t, plain %t", c.Established(), c.fallen())
	}
	var b [10]byte
	if n, err := c.Read(w.now, b[:]); string(b[:n]) != "hi" {
		t.Errorf("read %q, %v", b[:n], err)
	}
}

// A Dial that is closed or aborted before it is answered leaves nothing.
func TestCloseWhileDialing(t *testing.T) {
	for _, abort := range []bool{false, true} {
		w := newWorld(t, Config{}, Config{})
		w.link(10 * time.Millisecond).down = true
		w.link(10 * time.Millisecond).down = true
		c := w.dial()
		w.run(200 * time.Millisecond)
		if abort {
			c.Abort(w.now)
		} else {
			c.Close(w.now)
		}
		w.run(6 * time.Minute)
		wantEmpty(t, "client", w.client)
		if n := w.events[c]; len(n) != 1 || n[0].Kind != EventClosed {
			t.Errorf("abort %t: events %v", abort, n)
		}
	}
}

// Events: one of a kind at a time, nothing after the last.
func TestEvents(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(10 * time.Millisecond)
	lis := w.listen()
	c, s := w.connect(lis)
	c.Write(w.now, []byte("a"))
	w.run(50 * time.Millisecond)
	for _, tc := range []struct {
		c    *Conn
		want []EventKind
	}{
		{c, []EventKind{EventConnected, EventWritable, EventSubflowUp}},
		{s, []EventKind{EventSubflowUp, EventReadable}},
	} {
		seen := map[EventKind]int{}
		for _, e := range w.events[tc.c] {
			seen[e.Kind]++
		}
		for _, k := range tc.want {
			if seen[k] != 1 {
				t.Errorf("%v came %d times: %v", k, seen[k], w.events[tc.c])
			}
		}
	}
	if e := w.events[nil]; len(e) != 1 || e[0].Kind != EventAccept || e[0].Listener != lis {
		t.Errorf("listener's events %v", e)
	}
	clear(w.events)
	s.Abort(w.now)
	s.Write(w.now, []byte("x"))
	w.run(time.Second)
	for _, x := range []*Conn{c, s} {
		if e := w.events[x]; len(e) == 0 || e[len(e)-1].Kind != EventClosed {
			t.Errorf("events %v", e)
		}
	}
	if EventKind(0).String() != "accept" || EventSubflowDown.String() != "subflow down" || EventKind(99).String() != "event?" {
		t.Error("names")
	}
}
