package mptcp

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"braid/wire"
)

// Each of these is what a seed of netsim's TestFaults found, in its smallest form.

// dropLarge makes a link swallow packets to the server beyond a size.
func dropLarge(size int) func(*flight) bool {
	return func(f *flight) bool { return !f.toServer || len(f.b) <= size }
}

// A path swallows large packets, and its round trip is so long that the path manager's probes come before the retransmission timer expires, and
// start it afresh each time: they count as expiries. Where all that is outstanding would fit the first step down, the size goes
// to the floor at once (RFC 8899, Section 4.3).
func TestBlackHoleUnderProbes(t *testing.T) {
	for _, tc := range []struct{ mtu, window int }{{1400, 0}, {1000, 0}, {900, 1000}} {
		w := newWorld(t, Config{}, Config{ReceiveBuffer: int64(tc.window), FixedReceiveWindow: tc.window > 0})
		w.link(time.Second)
		c, s := w.connect(w.listen())
		w.tap = dropLarge(tc.mtu)
		w.transfer(c, s, 4000, 3*time.Minute)
	}
}

// An idle client's NAT forgets it. Only the client can show where it is now, and all that it has to say are keep-alives, which lie outside of
// the server's window.
func TestKeepAliveShowsNewAddress(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	l := w.linkUDP(10 * time.Millisecond)
	c, s := w.connect(w.listen())
	w.transfer(c, s, 1000, time.Second)
	w.run(time.Second)
	l.clientAddr = netip.MustParseAddrPort("203.0.113.7:61000")
	w.transfer(s, c, 5000, time.Minute)
	if w.server.counters.Rebindings != 1 {
		t.Errorf("%d rebindings", w.server.counters.Rebindings)
	}
}

// What is left of a closed subflow answers where the peer is now: its last ACK was lost together with the NAT's binding.
func TestTimeWaitFollowsPeer(t *testing.T) {
	w := newWorld(t, Config{NoMPTCP: true}, Config{})
	l := w.linkUDP(10 * time.Millisecond)
	c, s := w.connect(w.listen())
	s.CloseWrite(w.now)
	w.run(time.Second)
	c.Close(w.now)
	w.tap = func(f *flight) bool { // the server's ACK of the client's FIN
		if f.toServer {
			return true
		}
		w.tap = nil
		l.clientAddr = netip.MustParseAddrPort("203.0.113.7:61000")
		return false
	}
	w.until(time.Second, func() bool { return w.tap == nil })
	s.Close(w.now)
	w.run(20 * time.Second)
	if c.Err() != nil || s.Err() != nil || len(w.client.conns)+len(w.server.conns) != 0 {
		t.Errorf("client %v, server %v; %d and %d connections left", c.Err(), s.Err(), len(w.client.conns), len(w.server.conns))
	}
}

// In plain TCP the FIN alone may wait for a peer that is gone: UserTimeout ends that too.
func TestFINAloneTimesOut(t *testing.T) {
	w := newWorld(t, Config{NoMPTCP: true, UserTimeout: time.Minute}, Config{})
	l := w.link(10 * time.Millisecond)
	c, _ := w.connect(w.listen())
	l.down = true
	c.CloseWrite(w.now)
	w.run(2 * time.Minute)
	if !errors.Is(c.Err(), ErrTimeout) {
		t.Errorf("%v, want %v", c.Err(), ErrTimeout)
	}
}

// A RST in LAST-ACK is no error to TCP (RFC 9293, Section 3.10.7.4), but the connection's data did not arrive.
func TestResetInLastAckIsAnError(t *testing.T) {
	w := newWorld(t, Config{NoMPTCP: true}, Config{})
	l := w.link(10 * time.Millisecond)
	c, s := w.connect(w.listen())
	c.CloseWrite(w.now)
	w.run(time.Second)
	var end wire.Segment
	w.tap = func(f *flight) bool {
		if seg := f.segment(t); !f.toServer && len(seg.Payload) > 0 {
			end = seg
		}
		return f.toServer
	}
	s.Write(w.now, make([]byte, 100))
	s.CloseWrite(w.now)
	w.until(time.Second, func() bool { return end.Len() > 0 })
	w.inject(l, true, wire.Segment{SrcPort: end.DstPort, DstPort: end.SrcPort, Seq: end.Ack, Flags: wire.RST})
	w.run(time.Second)
	if !errors.Is(s.Err(), ErrReset) {
		t.Errorf("%v, want %v", s.Err(), ErrReset)
	}
}

// A SYN/ACK echoes the latest SYN: of the first one, it would make a round trip of the client's whole back-off.
func TestSYNACKEchoesLatestSYN(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	l := w.link(10 * time.Millisecond)
	w.listen()
	syn := wire.Segment{SrcPort: 4000, DstPort: serverPort, Seq: 77, Flags: wire.SYN, Window: 1000, Options: wire.OptTimestamps, TSVal: 100}
	for _, tc := range []struct{ val, want uint32 }{{100, 100}, {5100, 5100}, {2100, 5100}} { // the last one was overtaken
		syn.TSVal = tc.val
		w.inject(l, true, syn)
		if got := w.collect(false); len(got) != 1 || got[0].TSEcr != tc.want {
			t.Errorf("SYN with %d: answers %v, want an echo of %d", tc.val, got, tc.want)
		}
	}
}

// The peer closes its half of the only subflow that there ever was. Our FIN must not answer it while our stream has not ended: a peer that fell
// back to plain TCP would take it for the end, and the rest of the data would be missing without an error.
func TestNoFINInReturnOnOnlySubflow(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(10 * time.Millisecond).rate = 1e6
	c, s := w.connect(w.listen())
	st := w.stream(c, s, 300_000)
	w.until(time.Second, func() bool { return st.read > 50_000 })
	s.closeSubflow(w.now, s.subflows[0])
	w.server.wake(s)
	if !w.until(5*time.Second, func() bool { return st.eof }) {
		t.Errorf("%d bytes read; client %v, server %v", st.read, c.Err(), s.Err())
	}
}

// After an MP_FAIL everything is sent again under the infinite mapping, a last small segment included: it does not wait for one that Nagle's
// algorithm remembers from before.
func TestSmallTailAfterFail(t *testing.T) {
	w := newWorld(t, Config{Checksums: true}, Config{})
	w.link(10 * time.Millisecond)
	c, s := w.connect(w.listen())
	spoilt := false
	w.tap = func(f *flight) bool {
		if seg := f.segment(t); f.toServer && len(seg.Payload) > 0 && seg.Has(wire.OptDSS) && !spoilt {
			spoilt = true
			f.b[len(f.b)-1] ^= 1
			f.rewrite(t, func(*wire.Segment) {})
		}
		return true
	}
	st := w.stream(c, s, 5*1420+100)
	st.noClose = true
	if !w.until(10*time.Second, func() bool { return st.read == st.total }) || !spoilt {
		t.Errorf("%d of %d bytes read", st.read, st.total)
	}
}

// Small buffers stay small when the Stack's memory is short: what every connection may always do is bounded by them.
func TestShortMemoryKeepsSmallBuffers(t *testing.T) {
	w := newWorld(t, Config{SendBuffer: 2000, StackMemory: 1}, Config{ReceiveBuffer: 4000, FixedReceiveWindow: true, StackMemory: 1})
	w.link(10 * time.Millisecond)
	c, s := w.connect(w.listen())
	if n, err := c.Write(w.now, make([]byte, 10_000)); n != 2000 || !errors.Is(err, ErrWouldBlock) {
		t.Errorf("Write took %d bytes (%v), want 2000", n, err)
	}
	w.run(time.Second)
	if n := s.Info(w.now).ReceiveWindow; n > 4000 {
		t.Errorf("window %d, want at most 4000", n)
	}
}

// The server's DATA_ACK of the first data is lost, though TCP's ACK, which an ADD_ADDR left no room beside, is not. Sent again at data level, the
// first data is not the first of the subflow: an MP_CAPABLE cannot carry it any more (RFC 8684, Section 3.1), a DSS can.
func TestFirstDataAgainAtDataLevel(t *testing.T) {
	w := newWorld(t, Config{Checksums: true}, Config{Checksums: true})
	w.link(10 * time.Millisecond)
	w.server.AddPath(w.now, Path{Name: "s2", Local: netip.MustParseAddrPort("192.0.2.2:0")})
	l := w.listen()
	capables := 0
	w.tap = func(f *flight) bool {
		seg := f.segment(t)
		if f.toServer && seg.Has(wire.OptMPCapable) && len(seg.Payload) > 0 {
			capables++
		}
		return f.toServer || !seg.Has(wire.OptDSS)
	}
	c := w.dial()
	c.Write(w.now, []byte("first"))
	w.run(200 * time.Millisecond)
	s, ok := l.Accept()
	if !ok || capables != 1 || c.hs.confirmed {
		t.Fatalf("accepted %t, %d MP_CAPABLEs with data, confirmed %t", ok, capables, c.hs.confirmed)
	}
	if !w.until(time.Minute, func() bool { return w.client.counters.Reinjections > 0 }) {
		t.Fatal("the data was not sent again")
	}
	w.run(10 * time.Second)
	w.tap = nil
	var b [10]byte
	if n, err := s.Read(w.now, b[:]); string(b[:n]) != "first" {
		t.Fatalf("read %q, %v", b[:n], err)
	}
	w.transfer(c, s, 100_000, time.Minute)
	if n := w.server.counters.UnmappedResets + w.server.counters.FailsSent; n != 0 || w.server.counters.SubflowsLost != 0 {
		t.Errorf("%+v", w.server.counters)
	}
}

// The server has forgotten a subflow and its RST was lost. A peer whose segments go unanswered says who it is (docs/encapsulation.md, Tags), so that the next
// RST finds it: also when all that it has to send are keep-alives.
func TestForgottenSubflowIsTold(t *testing.T) {
	for _, idle := range []bool{false, true} {
		w := newWorld(t, Config{}, Config{})
		l := w.linkUDP(10 * time.Millisecond)
		c, s := w.connect(w.listen())
		w.transfer(s, c, 1000, time.Second)
		w.run(time.Second)
		l.down = true
		s.Abort(w.now)
		w.run(100 * time.Millisecond)
		if c.Err() != nil {
			t.Fatal("the client knows already")
		}
		l.down = false
		if !idle {
			c.Write(w.now, patternTable[:3000]) // in full segments, which have no room for the tag
		}
		// Until then nothing tells it that this is no outage.
		wait := 5 * time.Second
		if idle {
			wait = 45 * time.Second
		}
		if !w.until(wait, func() bool { return w.client.counters.SubflowsLost > 0 }) {
			t.Errorf("idle %t: the client never learns it", idle)
		}
	}
}

// Without a peer that is silent, no segment but those of the handshake brings the sender's tag.
func TestTagOnlyInSYNs(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.linkUDP(10 * time.Millisecond)
	w.linkUDP(20 * time.Millisecond)
	w.tap = func(f *flight) bool {
		shim, _, err := wire.ParseShim(f.b)
		if err != nil {
			t.Fatal(err)
		}
		if seg := f.segment(t); shim.HasSender != (seg.Flags&wire.SYN != 0) {
			t.Fatalf("sender's tag %t on %v", shim.HasSender, seg.Flags)
		}
		return true
	}
	c, s := w.connect(w.listen())
	w.transfer(c, s, 500_000, time.Minute)
}
