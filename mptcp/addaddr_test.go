package mptcp

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"braid/clock"
	"braid/wire"
)

// two is a client with one path and a server with two addresses.
var two = terrain{clients: make([]Path, 1), servers: make([]Path, 2)}

// RFC 8684, Section 3.4.1 (ADD-01, ADD-03, ADD-05, ADD-08, ADD-10, ADD-13, LNX-15): the server announces its other address with the HMAC of
// both keys on an ACK of its own, the client echoes it and joins, and the join's answer names the announced ID.
func TestServerAnnouncesItsOtherAddress(t *testing.T) {
	for _, kind := range []PathKind{IP, UDP} {
		for _, v6 := range []bool{false, true} {
			t.Run(fmt.Sprintf("udp %t IPv6 %t", kind == UDP, v6), func(t *testing.T) {
				g := two
				g.kind, g.v6 = kind, v6
				w := newMesh(t, g, Config{}, Config{})
				var answer *wire.Segment
				seen := w.watchFor(wire.OptAddAddr|wire.OptMPJoin, func(_ int, f *flight, seg *wire.Segment) bool {
					if seg.Has(wire.OptMPJoin) && seg.Join.Form == wire.JoinSYNACK {
						answer = seg
					}
					return true
				})
				c, s := w.connectMesh(300 * time.Millisecond)
				checkAnnouncement(t, w, c, s, *seen, g)
				if got := w.pairs(c); got != "0-0 0-1" || got != w.pairs(s) {
					t.Fatalf("subflows %s", got)
				}
				if answer == nil || answer.Join.AddressID != (*seen)[0].AddAddr.ID || c.subflows[1].remoteID != answer.Join.AddressID {
					t.Errorf("the join is answered from %+v", answer)
				}
				if port := c.subflows[1].remote.Port(); port != serverPort {
					t.Errorf("joined at port %d", port)
				}
				a, b := w.client.counters, w.server.counters
				if b.AddAddrsSent != 1 || b.AddAddrsEchoed != 1 || a.AddAddrsAccepted != 1 || a.AddAddrEchoesSent != 1 || a.AnnouncedJoins != 1 {
					t.Errorf("client %+v\nserver %+v", a.AddressCounters, b.AddressCounters)
				}
				w.transfer(s, c, 300_000, 5*time.Second)
				w.run(time.Minute)
				if a, b := w.client.NextTimeout(), w.server.NextTimeout(); kind == IP && (a != clock.Never || b != clock.Never) {
					t.Errorf("timers at %v and %v", a, b)
				}
			})
		}
	}
}

// checkAnnouncement judges the first announcement and its echo.
func checkAnnouncement(t *testing.T, w *world, c, s *Conn, seen []seenSegment, g terrain) {
	t.Helper()
	if len(seen) < 2 {
		t.Fatalf("%d segments", len(seen))
	}
	seen = slices.DeleteFunc(slices.Clone(seen), func(s seenSegment) bool { return !s.Has(wire.OptAddAddr) })
	add, echo := &seen[0], &seen[1]
	want := wire.AddAddr{ID: add.AddAddr.ID, Addr: g.serverAddress(1).Addr()}
	if g.kind == UDP { // docs/encapsulation.md: outer address and UDP port
		want.Port = serverPort
	}
	want.MAC = wire.AddAddrMAC(s.hs.localKey, c.hs.localKey, want.ID, want.Addr, want.Port)
	if add.toServer || add.AddAddr != want || want.ID == 0 {
		t.Errorf("announced %+v, want %+v", add.AddAddr, want)
	}
	want.Echo, want.MAC = true, [8]byte{}
	if !echo.toServer || echo.AddAddr != want {
		t.Errorf("echoed %+v, want %+v", echo.AddAddr, want)
	}
	for _, seg := range seen[:2] {
		alone := seg.Options&wire.OptMPTCP == wire.OptAddAddr && seg.Flags == wire.ACK && len(seg.Payload) == 0
		full := g.v6 && g.kind == UDP && !seg.toServer // LNX-20: 30 bytes and the timestamps are more than 40
		if !alone || seg.Options&wire.OptTimestamps == 0 != full {
			t.Errorf("not alone on an ACK: %v", &seg.Segment)
		}
	}
	if wait := echo.at.Sub(add.at); wait > 12*time.Millisecond {
		t.Errorf("echoed after %v", wait)
	}
}

// RFC 8684, Section 3.4.1 (ADD-06): what is not echoed is announced again, after about an RTO, then twice as long, and so on, a few times; and once more when
// a subflow comes up.
func TestAnnouncementIsRepeated(t *testing.T) {
	g := terrain{clients: make([]Path, 2), servers: make([]Path, 2)}
	w := newMesh(t, g, Config{}, Config{})
	seen := w.watchFor(wire.OptAddAddr, func(int, *flight, *wire.Segment) bool { return false })
	for _, l := range w.links[2:] {
		l.down = true
	}
	c, s := w.connectMesh(20 * time.Second)
	if len(*seen) != addAddrTries {
		t.Fatalf("announced %d times", len(*seen))
	}
	for i, seg := range (*seen)[1:] {
		if wait := seg.at.Sub((*seen)[i].at); wait < addAddrFirst<<i || wait > 2*addAddrFirst<<i {
			t.Errorf("wait %d is %v", i, wait)
		}
		if seg.AddAddr != (*seen)[0].AddAddr {
			t.Errorf("announced %+v, then %+v", (*seen)[0].AddAddr, seg.AddAddr)
		}
	}
	n := &w.server.counters
	if n.AddAddrsSent != addAddrTries || n.AddAddrsRepeated != addAddrTries-1 || n.AddAddrsGivenUp != 1 || w.pairs(c) != "0-0" {
		t.Errorf("counters %+v", n.AddressCounters)
	}
	for _, l := range w.links {
		l.down = false
	}
	w.tap = nil
	w.run(5 * time.Second)
	if got := w.pairs(s); got != "0-0 0-1 1-0" && got != "0-0 1-0 1-1" {
		t.Errorf("subflows %s", got)
	}
}

// RFC 8684, Section 3.4.1 (ADD-06, ADD-12): a lost echo makes the announcement come again; it is echoed again and joined once.
func TestLostEcho(t *testing.T) {
	w := newMesh(t, two, Config{}, Config{})
	seen := w.watchFor(wire.OptAddAddr, func(n int, _ *flight, _ *wire.Segment) bool { return n != 2 })
	c, _ := w.connectMesh(time.Second)
	if len(*seen) != 4 || w.pairs(c) != "0-0 0-1" || w.client.counters.JoinsSent != 1 || w.client.counters.AddAddrsKnown != 1 {
		t.Errorf("%d segments, subflows %s, counters %+v", len(*seen), w.pairs(c), w.client.counters.AddressCounters)
	}
}

// RFC 8684, Section 3.4.1 (ADD-07): only the echo of ID, address and port stops the repetitions.
func TestWrongEchoes(t *testing.T) {
	w := newMesh(t, two, Config{}, Config{})
	changes := []func(*wire.AddAddr){
		func(a *wire.AddAddr) { a.ID++ },
		func(a *wire.AddAddr) { a.Addr = a.Addr.Next() },
		func(a *wire.AddAddr) { a.Port = 99 },
	}
	seen := w.watchFor(wire.OptAddAddr, func(n int, f *flight, seg *wire.Segment) bool {
		if seg.AddAddr.Echo && n/2 <= len(changes) {
			f.rewrite(t, func(seg *wire.Segment) { changes[n/2-1](&seg.AddAddr) })
		}
		return true
	})
	w.connectMesh(4 * time.Second)
	n := &w.server.counters
	if len(*seen) != 8 || n.AddAddrEchoesUnwanted != 3 || n.AddAddrsSent != 4 || n.AddAddrsEchoed != 1 {
		t.Errorf("%d segments, counters %+v", len(*seen), n.AddressCounters)
	}
}

// RFC 8684, Section 3.4.1 (ADD-04): a wrong HMAC is ignored: no echo, no subflow; so is what does not pass TCP's checks (SEC-05).
func TestForgedAnnouncements(t *testing.T) {
	w := newMesh(t, two, Config{}, Config{NoAnnounce: true})
	c, s := w.connectMesh(100 * time.Millisecond)
	seen := w.watchFor(wire.OptAddAddr|wire.OptMPJoin, nil)
	genuine := s.addAddr(1, "192.0.3.1", 0)
	for _, change := range []func(*wire.Segment){
		func(seg *wire.Segment) { seg.AddAddr.MAC[7]++ },
		func(seg *wire.Segment) { seg.AddAddr.ID++ },
		func(seg *wire.Segment) { seg.AddAddr.Addr = seg.AddAddr.Addr.Next() },
		func(seg *wire.Segment) { seg.AddAddr.Port = serverPort },
		func(seg *wire.Segment) { // of the other direction
			seg.AddAddr.MAC = wire.AddAddrMAC(c.hs.localKey, s.hs.localKey, 1, seg.AddAddr.Addr, 0)
		},
		func(seg *wire.Segment) { seg.Seq += 1 << 30 },
		func(seg *wire.Segment) { seg.Seq-- },
		func(seg *wire.Segment) { seg.Ack += 1 << 30 },
	} {
		w.say(s.subflows[0], func(seg *wire.Segment) { genuine(seg); change(seg) })
		w.run(time.Second)
	}
	if len(*seen) != 0 || len(c.pm.known) != 0 || w.client.counters.AddAddrsBadMAC != 5 {
		t.Errorf("%d answers, counters %+v", len(*seen), w.client.counters.AddressCounters)
	}
	w.say(s.subflows[0], genuine)
	w.run(time.Second)
	if w.pairs(c) != "0-0 0-1" {
		t.Errorf("subflows %s", w.pairs(c))
	}
}

// RFC 8684, Section 3.4.1 (ADD-09): an ID belongs to one address until that is removed; with another port it is announced beside the first.
func TestClashingAnnouncement(t *testing.T) {
	g := terrain{clients: make([]Path, 1), servers: make([]Path, 3)}
	w := newMesh(t, g, Config{}, Config{NoAnnounce: true})
	c, s := w.connectMesh(100 * time.Millisecond)
	echoes := w.watchFor(wire.OptAddAddr, nil)
	say := func(by func(*wire.Segment)) {
		w.say(s.subflows[0], by)
		w.run(time.Second)
	}
	say(s.addAddr(7, "192.0.3.1", 0))
	say(s.addAddr(7, "192.0.4.1", 0))
	say(s.addAddr(0, "192.0.4.1", 0))
	if w.pairs(c) != "0-0 0-1" || len(*echoes) != 1 || w.client.counters.AddAddrsClashing != 2 {
		t.Errorf("subflows %s, %d echoes, counters %+v", w.pairs(c), len(*echoes), w.client.counters.AddressCounters)
	}
	say(s.addAddr(0, "192.0.2.1", 0)) // no news, and no clash
	say(s.addAddr(7, "192.0.3.1", 444))
	if len(c.pm.known) != 2 || len(*echoes) != 3 || w.client.counters.AddAddrsKnown != 1 {
		t.Errorf("%+v, %d echoes", c.pm.known, len(*echoes))
	}
	say(removeAddr(7))
	say(s.addAddr(7, "192.0.4.1", 0))
	if !strings.Contains(w.pairs(c), "0-2") {
		t.Errorf("subflows %s", w.pairs(c))
	}
}

// RFC 8684, Sections 3.4.1 and 5 (ADD-14, ADD-15): addresses that can only be a mistake, or lead to another host here, are echoed and not used.
func TestUnusableAnnouncements(t *testing.T) {
	global, private, loopback := "192.0.2.1", "10.9.9.9", "127.0.0.1"
	for _, tc := range []struct {
		peer, addr string
		port       uint16
		ok         bool
	}{
		{global, "192.0.3.1", 443, true},
		{global, "2001:db8::1", 443, true},
		{global, "0.0.0.0", 443, false},
		{global, "::", 443, false},
		{global, "0.1.2.3", 443, false},
		{global, "224.0.0.1", 443, false},
		{global, "ff02::1", 443, false},
		{global, "255.255.255.255", 443, false},
		{global, "240.0.0.1", 443, false},
		{global, "169.254.1.1", 443, false},
		{global, "fe80::1", 443, false},
		{global, "127.0.0.1", 443, false},
		{global, "::1", 443, false},
		{global, "10.9.9.9", 443, false},
		{global, "172.16.1.1", 443, false},
		{global, "192.168.1.1", 443, false},
		{global, "100.64.1.1", 443, false},
		{global, "fd00::1", 443, false},
		{global, "10.0.0.1", 443, false}, // our own
		{global, "192.0.3.1", 0, false},
		{private, "192.168.1.1", 443, true},
		{private, "192.0.3.1", 443, true},
		{private, "10.0.0.1", 443, false}, // our own
		{private, "127.0.0.1", 443, false},
		{"10.0.0.1", "10.0.0.1", 443, true}, // the peer is on this host
		{loopback, "127.0.0.2", 443, true},
		{loopback, "10.0.0.1", 443, true},
		{loopback, "192.0.3.1", 443, true},
		{loopback, "0.0.0.0", 443, false},
		{"fe80::1", "fd00::1", 443, true},
		{"fe80::1", "::1", 443, false},
	} {
		w := newMesh(t, two, Config{}, Config{})
		pm := &pathManager{conn: &Conn{}}
		pm.conn.stack = w.client
		pm.target = netip.AddrPortFrom(netip.MustParseAddr(tc.peer), 443)
		if got := pm.acceptable(netip.AddrPortFrom(netip.MustParseAddr(tc.addr), tc.port)); got != tc.ok {
			t.Errorf("%s, port %d from a peer at %s: %t", tc.addr, tc.port, tc.peer, got)
		}
	}
	w := newMesh(t, two, Config{}, Config{NoAnnounce: true})
	c, s := w.connectMesh(100 * time.Millisecond)
	seen := w.watchFor(wire.OptAddAddr|wire.OptMPJoin, nil)
	w.say(s.subflows[0], s.addAddr(1, "10.0.0.7", 0))
	w.run(time.Second)
	if len(*seen) != 1 || !(*seen)[0].AddAddr.Echo || len(c.pm.known) != 0 || w.client.counters.AddAddrsRefused != 1 {
		t.Errorf("%v, counters %+v", *seen, w.client.counters.AddressCounters)
	}
}

// RFC 8684, Section 5 (ADD-14, SEC-06, SEC-07, LNX-15, LNX-16): a flood of announcements is bounded in memory, in subflows and in echoes under way.
func TestManyAnnouncements(t *testing.T) {
	for _, tc := range []struct{ accepted, want int }{{-1, 0}, {0, 8}, {3, 3}, {1000, 64}} {
		w := newMesh(t, two, Config{Limits: Limits{AddAddrAccepted: tc.accepted}}, Config{NoAnnounce: true})
		c, s := w.connectMesh(100 * time.Millisecond)
		most := 0
		for i := range 250 {
			w.say(s.subflows[0], s.addAddr(uint8(i+1), fmt.Sprintf("192.0.9.%d", i+1), 0))
			most = max(most, len(c.pm.echoes))
			if i%20 == 0 {
				w.run(100 * time.Millisecond)
			}
		}
		w.run(time.Second)
		n := &w.client.counters
		if len(c.pm.known) != tc.want || most > maxEchoes || len(c.subflows) > 8 || n.AddAddrsAccepted != int64(tc.want) || n.AddAddrsOverLimit != int64(250-tc.want) {
			t.Errorf("limit %d: %d known, %d echoes waiting, %d subflows, counters %+v", tc.accepted, len(c.pm.known), most, len(c.subflows), n.AddressCounters)
		}
		if n.AddAddrEchoesSent+n.AddAddrEchoesLost != 250 || n.AddAddrEchoesSent < 50 {
			t.Errorf("limit %d: counters %+v", tc.accepted, n.AddressCounters)
		}
		w.run(30 * time.Second)
		if len(c.subflows) != 1 || len(c.pm.entries) > 1+maxAccepted || w.client.NextTimeout() != clock.Never || c.pm.joinsFailed > announcedTries+8 {
			t.Errorf("limit %d: %d subflows, %d entries, %d failed joins", tc.accepted, len(c.subflows), len(c.pm.entries), c.pm.joinsFailed)
		}
	}
}

// RFC 8684, Section 3.4.1 (ADD-11, ADD-12): an address that cannot be reached is not tried again until it is announced again; the connection does
// not suffer.
func TestUnreachableAnnouncement(t *testing.T) {
	w := newMesh(t, two, Config{}, Config{})
	w.links[1].down = true
	c, s := w.connectMesh(20 * time.Second)
	n := &w.client.counters
	if n.AnnouncedJoins != 1 || n.AnnouncedJoinsLost != 1 || !c.Info(w.now).PeerAddresses[0].Failed {
		t.Errorf("counters %+v, %+v", n.AddressCounters, c.Info(w.now).PeerAddresses)
	}
	if at := w.client.NextTimeout(); at != clock.Never {
		t.Errorf("a timer at %v", at)
	}
	w.run(10 * time.Minute)
	if n.AnnouncedJoins != 1 || len(c.subflows) != 1 {
		t.Errorf("%d joins, %d subflows", n.AnnouncedJoins, len(c.subflows))
	}
	w.links[1].down = false
	w.say(s.subflows[0], s.addAddr(1, "192.0.3.1", 0))
	w.run(time.Second)
	if w.pairs(c) != "0-0 0-1" {
		t.Errorf("subflows %s", w.pairs(c))
	}
	// Having worked, it is a path like any other: it is taken again when it is back.
	w.links[1].down = true
	w.stream(c, s, 1<<30).noClose = true
	w.links[0].rate, w.links[1].rate = 1e5, 1e5
	w.run(3 * time.Second)
	for _, sf := range c.subflows {
		if sf.remoteID == 1 {
			w.client.drop(w.now, sf, wire.ResetPerformance, true)
			break
		}
	}
	w.run(20 * time.Second)
	if w.links[1].down = false; !w.until(2*time.Second, func() bool { return w.pairs(c) == "0-0 0-1" }) {
		t.Errorf("subflows %s", w.pairs(c))
	}
}

// RFC 8684, Section 5 (ADD-14): a peer cannot make a host send SYNs without end.
func TestAnnouncedJoinsAreBounded(t *testing.T) {
	w := newMesh(t, two, Config{}, Config{NoAnnounce: true})
	c, s := w.connectMesh(100 * time.Millisecond)
	syns := w.watchFor(wire.OptMPJoin, nil)
	w.links[1].down = true
	for range 200 {
		w.say(s.subflows[0], removeAddr(1))
		w.say(s.subflows[0], s.addAddr(1, "192.0.3.1", 0))
		w.run(8 * time.Second)
	}
	if n := len(*syns); n == 0 || n > (announcedTries+1)*(synsPerJoin+1) || c.pm.joinsFailed != announcedTries {
		t.Errorf("%d SYNs, %d failed joins", n, c.pm.joinsFailed)
	}
	w.transfer(c, s, 1000, time.Second)
}

// RFC 8684, Section 3.1 (CAP-14, CAP-15, LNX-22): with flag C nothing joins the address that the connection was opened to; announced ones are used.
func TestFlagCAndAnnouncements(t *testing.T) {
	for _, kind := range []PathKind{IP, UDP} {
		g := terrain{kind: kind, clients: make([]Path, 2), servers: make([]Path, 2)}
		w := newMesh(t, g, Config{}, Config{NoJoinInitial: true})
		c, s := w.connectMesh(500 * time.Millisecond)
		if got := w.pairs(c); got != "0-0 1-1" && got != "0-0 0-1" {
			t.Errorf("subflows %s", got)
		}
		before := w.client.counters.JoinsSent
		if kind == IP { // even if it is announced
			w.say(s.subflows[0], s.addAddr(9, "192.0.2.1", 0))
		}
		w.run(20 * time.Second)
		if n := w.client.counters.JoinsSent - before; n != 0 || w.server.counters.JoinRefusedState != 0 {
			t.Errorf("%d joins, %d refused", n, w.server.counters.JoinRefusedState)
		}
		w.client.paths[1].Flags = EndpointFullmesh
		w.client.SetPathFlags(w.now, 1, EndpointFullmesh)
		w.run(time.Second)
		if got := w.pairs(c); !strings.Contains(got, "1-1") || strings.Contains(got, "1-0") {
			t.Errorf("subflows %s", got)
		}
	}
}

// RFC 8684, Section 3.4.1 (ADD-10): over UDP the announced port is that of the socket.
func TestAnnouncedPort(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		g := terrain{kind: UDP, v6: v6, clients: make([]Path, 1), servers: make([]Path, 2), ports: []uint16{443, 8443}}
		w := newMesh(t, g, Config{}, Config{})
		c, s := w.connectMesh(time.Second)
		if w.pairs(c) != "0-0 0-1" || c.subflows[1].remote != g.serverAddress(1) || c.subflows[1].dstPort != serverPort || w.server.counters.AddAddrsSent != 1 {
			t.Errorf("subflows %s", w.pairs(c))
		}
		w.transfer(c, s, 100_000, time.Second)
	}
	// On IP paths it stands in the option when the subflow that carries it uses another one.
	pm := &pathManager{conn: &Conn{}}
	a := announcement{id: 1, addr: netip.MustParseAddr("192.0.3.1"), port: 443}
	sf := &Subflow{}
	sf.srcPort = 443
	if o := pm.option(&a, sf); o.Port != 0 || !a.bare || a.full {
		t.Errorf("%+v", o)
	}
	sf.srcPort = 444
	if o := pm.option(&a, sf); o.Port != 443 || !a.full {
		t.Errorf("%+v", o)
	}
}

// RFC 8684, Section 3.1: an announcement that arrives before any DATA_ACK is echoed, and used when there is data-level proof (JOIN-01).
func TestAnnouncementBeforeProof(t *testing.T) {
	w := newMesh(t, two, Config{}, Config{NoAnnounce: true})
	l := w.listen()
	c := w.dialMesh()
	var s *Conn
	w.until(time.Second, func() bool { s, _ = l.Accept(); return s != nil })
	seen := w.watchFor(wire.OptAddAddr|wire.OptMPJoin, nil)
	w.say(s.subflows[0], s.addAddr(1, "192.0.3.1", 0))
	w.run(100 * time.Millisecond)
	if len(*seen) != 1 || (*seen)[0].Options&wire.OptMPTCP != wire.OptAddAddr || c.hs.confirmed {
		t.Fatalf("%v", *seen)
	}
	w.transfer(c, s, 100_000, time.Second)
	if w.client.counters.JoinsSentUp != 1 {
		t.Errorf("subflows %s", w.pairs(c))
	}
}

// An announcement on a subflow that is busy in both directions goes out at once, and is not lost among the data; the window that an ACK without a
// DATA_ACK could not tell follows.
func TestAnnouncementAmongData(t *testing.T) {
	g := terrain{clients: make([]Path, 1), servers: make([]Path, 3)}
	cfg := Config{ReceiveBuffer: 64 << 10}
	quiet := cfg
	quiet.NoAnnounce = true
	w := newMesh(t, g, cfg, quiet)
	for _, l := range w.links {
		l.rate = 2e6
	}
	c, s := w.connectMesh(100 * time.Millisecond)
	up, down := w.stream(c, s, 3_000_000), w.stream(s, c, 3_000_000)
	w.run(300 * time.Millisecond)
	seen := w.watchFor(wire.OptAddAddr, nil)
	start := w.now
	w.server.SetPathFlags(w.now, 1, EndpointSignal)
	w.server.SetPathFlags(w.now, 2, EndpointSignal)
	if !w.until(time.Second, func() bool { return w.pairs(c) == "0-0 0-1 0-2" }) || w.now.Sub(start) > 300*time.Millisecond {
		t.Errorf("subflows %s after %v", w.pairs(c), w.now.Sub(start))
	}
	if len(*seen) != 4 { // one at a time
		t.Errorf("%d segments", len(*seen))
	}
	if !w.until(10*time.Second, func() bool { return up.eof && down.eof }) {
		t.Errorf("%d and %d bytes", up.read, down.read)
	}
}

// After a fallback no address is announced, echoed or joined.
func TestNoAddressesAfterFallback(t *testing.T) {
	w := newMesh(t, two, Config{}, Config{NoMPTCP: true})
	c, s := w.connectMesh(time.Second)
	seen := w.watchFor(wire.OptMPTCP, nil)
	w.say(s.subflows[0], s.addAddr(1, "192.0.3.1", 0))
	w.say(s.subflows[0], removeAddr(0))
	w.server.RemovePath(w.now, 1)
	w.run(time.Second)
	if len(*seen) != 0 || len(c.subflows) != 1 || w.client.counters.AddAddrsAccepted+w.client.counters.RemoveAddrsReceived != 0 {
		t.Errorf("%v", *seen)
	}
}
