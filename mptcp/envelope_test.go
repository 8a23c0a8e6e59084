package mptcp

import (
	"net/netip"
	"testing"
	"time"

	"braid/clock"
	"braid/wire"
)

// udpBulk connects over so many UDP paths and starts a transfer without end.
func udpBulk(t *testing.T, paths int, download bool) (w *world, c, s *Conn, st *stream) {
	t.Helper()
	w = newWorld(t, Config{}, Config{})
	for i := range paths {
		l := w.linkUDP(time.Duration(10+10*i) * time.Millisecond)
		l.rate, l.limit = 2e5, 100*time.Millisecond
	}
	c, s = w.connect(w.listen())
	if download {
		st = w.stream(s, c, 1<<40)
		c.Write(w.now, []byte("request"))
	} else {
		st = w.stream(c, s, 1<<40)
	}
	w.run(2 * time.Second)
	return w, c, s, st
}

// A NAT gives the client another outer address in the middle of a transfer: the flow's tag finds the connection, a challenge proves
// the address, and the transfer goes on.
func TestRebinding(t *testing.T) {
	for _, download := range []bool{false, true} {
		w, c, s, st := udpBulk(t, 1, download)
		l := w.links[0]
		l.clientAddr = netip.MustParseAddrPort("203.0.113.7:61000")
		before := st.read
		if !w.until(3*time.Second, func() bool { return st.read > before+200000 }) {
			t.Fatalf("download %t: %d bytes after the rebinding", download, st.read-before)
		}
		if n := w.server.counters.Rebindings; n != 1 || w.server.counters.ChallengesSent == 0 {
			t.Errorf("download %t: %d rebindings, %d challenges", download, n, w.server.counters.ChallengesSent)
		}
		if to := s.subflows[0].env.to; to != l.clientAddr {
			t.Errorf("the server sends to %v", to)
		}
		if len(c.subflows) != 1 || w.client.counters.JoinsSent != 0 {
			t.Error("the client opened another subflow")
		}
	}
}

// Nobody gets more than three times what he sent, and nothing but challenges, before he returned the number; and a segment that TCP
// does not accept moves nothing.
func TestRebindingNeedsProof(t *testing.T) {
	w, _, s, st := udpBulk(t, 1, false)
	l := w.links[0]
	thief := netip.MustParseAddrPort("198.51.100.66:6")
	received, sent := 0, 0
	steal := false
	w.tap = func(f *flight) bool {
		if seg := f.segment(t); f.toServer && steal && seg.Len() > 0 {
			// The thief sends what the client sent, from his own address, before it arrives.
			received += len(f.b)
			w.server.HandlePacket(w.now, l.server, thief, f.b)
			return false
		}
		return true
	}
	steal = true
	// Packets to the thief belong to no link: watch the Stack's queue by hand.
	for range 200 {
		w.step(w.now.Add(50 * time.Millisecond))
		for {
			p, ok := w.server.PollPacket(w.now, w.buf[:])
			if !ok {
				break
			}
			if p.To == thief {
				sent += p.Len
				if shim, _, err := wire.ParseShim(w.buf[:p.Len]); err != nil || shim.Type != wire.ShimChallenge {
					t.Fatalf("the thief gets %+v", shim)
				}
			}
		}
	}
	if sent > 3*received || received == 0 {
		t.Errorf("%d bytes for %d", sent, received)
	}
	if s.subflows[0].env.to != l.clientAddr || w.server.counters.Rebindings != 0 {
		t.Errorf("the server sends to %v", s.subflows[0].env.to)
	}
	// A wrong number proves nothing.
	before := s.subflows[0].env
	w.server.HandlePacket(w.now, l.server, thief, wire.AppendShim(nil, &wire.Shim{
		Version: wire.ShimVersion, Type: wire.ShimResponse, Tag: before.localTag, Challenge: 12345,
	}))
	if s.subflows[0].env.to != l.clientAddr {
		t.Error("a wrong number was believed")
	}
	steal = false
	n := st.read
	w.run(5 * time.Second)
	if st.read == n {
		t.Error("the transfer did not go on")
	}
	// An unacceptable segment from elsewhere: the right tag, a sequence number of nowhere.
	challenges := w.server.counters.ChallengesSent
	b := wire.AppendShim(nil, &wire.Shim{Version: wire.ShimVersion, Tag: before.localTag})
	b = wire.AppendTCP(b, &wire.Segment{SrcPort: s.subflows[0].dstPort, DstPort: serverPort, Seq: s.subflows[0].irs + 1<<30, Ack: s.subflows[0].iss, Flags: wire.ACK})
	w.server.HandlePacket(w.now, l.server, thief, b)
	if w.server.counters.ChallengesSent != challenges {
		t.Error("an unacceptable segment was answered with a challenge")
	}
}

// Another version of the envelope is answered with the versions spoken, but not without limit; a client whose version is not spoken is refused.
func TestVersionNegotiation(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	l := w.linkUDP(10 * time.Millisecond)
	w.listen()
	b := wire.AppendShim(nil, &wire.Shim{Version: wire.ShimVersion, HasSender: true, SenderTag: 77})
	b[0] = 9<<4 | b[0]&0xf
	from := netip.MustParseAddrPort("198.51.100.66:6")
	n := 0
	for range 1000 {
		w.server.HandlePacket(w.now, l.server, from, b)
		for {
			p, ok := w.server.PollPacket(w.now, w.buf[:])
			if !ok {
				break
			}
			shim, _, err := wire.ParseShim(w.buf[:p.Len])
			if err != nil || shim.Type != wire.ShimVersions || shim.Tag != 77 || shim.Versions != 1<<wire.ShimVersion || p.To != from || p.Len > len(b) {
				t.Fatalf("answer %+v to %v, %v", shim, p.To, err)
			}
			n++
		}
	}
	if n == 0 || n > limiterBurst {
		t.Errorf("%d answers", n)
	}
	w.tap = func(f *flight) bool {
		if f.toServer {
			shim, _, _ := wire.ParseShim(f.b)
			w.client.HandlePacket(w.now, l.client, l.serverAddr, wire.AppendShim(nil, &wire.Shim{Type: wire.ShimVersions, Tag: shim.SenderTag, Versions: 1 << 5}))
		}
		return false
	}
	c := w.dial()
	w.run(100 * time.Millisecond)
	if c.Err() == nil {
		t.Error("the client goes on")
	}
}

// An idle connection over UDP says something every 20 s, and nothing else; with KeepAlive < 0 it is silent.
func TestUDPKeepAlive(t *testing.T) {
	for _, silent := range []bool{false, true} {
		cfg := Config{}
		if silent {
			cfg.KeepAlive = -1
		}
		w := newWorld(t, cfg, cfg)
		w.linkUDP(10 * time.Millisecond)
		c, s := w.connect(w.listen())
		st := w.stream(c, s, 1000)
		st.noClose = true
		w.run(5 * time.Second)
		l := w.links[0]
		up, down := l.count[1], l.count[0]
		w.run(10 * time.Minute)
		up, down = l.count[1]-up, l.count[0]-down
		if silent && (up != 0 || down != 0 || w.client.NextTimeout() != clock.Never) {
			t.Errorf("silence: %d and %d packets", up, down)
		}
		if !silent && (up < 29 || up > 35 || down < 29 || down > 35) {
			t.Errorf("%d and %d packets in 10 minutes", up, down)
		}
		if c.Err() != nil || s.Err() != nil {
			t.Errorf("%v, %v", c.Err(), s.Err())
		}
	}
}

// A SYN/ACK is never larger than its SYN, MP_JOIN's and those with checksums included; bare SYNs of small size get nothing large.
func TestSYNACKNotLarger(t *testing.T) {
	w := newWorld(t, Config{Checksums: true}, Config{})
	w.linkUDP(10 * time.Millisecond)
	w.linkUDP(10 * time.Millisecond)
	syns := map[*testLink]int{}
	answers := 0
	w.tap = func(f *flight) bool {
		seg := f.segment(t)
		if seg.Flags&wire.SYN != 0 {
			if f.toServer {
				syns[f.link] = len(f.b)
			} else {
				answers++
				if len(f.b) > syns[f.link] {
					t.Errorf("SYN/ACK of %d bytes for a SYN of %d", len(f.b), syns[f.link])
				}
			}
		}
		return true
	}
	c, s := w.connect(w.listen())
	w.transfer(c, s, 10000, time.Second)
	w.run(time.Second)
	if answers != 2 {
		t.Errorf("%d SYN/ACKs", answers)
	}
	w.collect(false)
	// No padding, many options: the answer would be larger, so there is none.
	b := wire.AppendShim(nil, &wire.Shim{Version: wire.ShimVersion, HasSender: true, SenderTag: 78})
	b = wire.AppendTCP(b, &wire.Segment{
		SrcPort: 1, DstPort: serverPort, Flags: wire.SYN, Options: wire.OptMPCapable | wire.OptMSS | wire.OptTimestamps | wire.OptSACKPermitted,
		Capable: wire.MPCapable{Version: 1, HMACSHA256: true},
	})
	w.server.HandlePacket(w.now, w.links[0].server, netip.MustParseAddrPort("198.51.100.66:6"), b)
	if p, ok := w.server.PollPacket(w.now, w.buf[:]); ok && p.Len > len(b) {
		t.Errorf("%d bytes for %d", p.Len, len(b))
	}
}

// What has no tag of ours is counted and dropped.
func TestUnknownTag(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	l := w.linkUDP(10 * time.Millisecond)
	w.listen()
	from := netip.MustParseAddrPort("198.51.100.66:6")
	for _, shim := range []wire.Shim{
		{Version: wire.ShimVersion, Tag: 5},
		{Version: wire.ShimVersion, Type: wire.ShimChallenge, Tag: 5},
		{Version: wire.ShimVersion, Type: wire.ShimResponse, Tag: 5},
	} {
		b := wire.AppendShim(nil, &shim)
		if shim.Type == wire.ShimSegment {
			b = wire.AppendTCP(b, &wire.Segment{SrcPort: 1, DstPort: serverPort, Flags: wire.ACK})
		}
		before := w.server.counters.DropUnknownTag
		w.server.HandlePacket(w.now, l.server, from, b)
		if _, ok := w.server.PollPacket(w.now, w.buf[:]); ok || w.server.counters.DropUnknownTag != before+1 {
			t.Errorf("%v: not dropped", shim.Type)
		}
	}
	for _, b := range [][]byte{nil, {0x10}, make([]byte, 7), make([]byte, 40)} {
		w.server.HandlePacket(w.now, l.server, from, b)
	}
	wantEmpty(t, "server", w.server)
}

// A SYN/ACK that acknowledges what was never sent brings no tag: the SYNs that follow are still a first contact.
func TestForgedSYNACKBringsNoTag(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	l := w.linkUDP(10 * time.Millisecond)
	l.down = true
	w.listen()
	c := w.dial()
	w.run(100 * time.Millisecond)
	sf := c.subflows[0]
	b := wire.AppendShim(nil, &wire.Shim{Version: wire.ShimVersion, Tag: sf.env.localTag, HasSender: true, SenderTag: 77})
	b = wire.AppendTCP(b, &wire.Segment{SrcPort: sf.dstPort, DstPort: sf.srcPort, Seq: 1, Ack: sf.iss + 2, Flags: wire.SYN | wire.ACK})
	w.client.HandlePacket(w.now, l.client, sf.env.to, b)
	if sf.env.remoteTag != 0 {
		t.Errorf("tag %d", sf.env.remoteTag)
	}
	l.down = false
	if !w.until(5*time.Second, c.Established) {
		t.Error("not connected")
	}
}
