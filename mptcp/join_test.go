package mptcp

import (
	"errors"
	"testing"
	"time"

	"braid/wire"
)

// joinPackets connects over two paths and returns the packets of the join.
func joinPackets(t *testing.T, tap func(n int, f *flight, seg *wire.Segment) bool) (w *world, c, s *Conn, seen []wire.Segment) {
	t.Helper()
	w = newWorld(t, Config{}, Config{})
	w.link(10 * time.Millisecond)
	w.link(15 * time.Millisecond)
	w.tap = func(f *flight) bool {
		if f.link != w.links[1] {
			return true
		}
		seg := f.segment(t)
		seen = append(seen, seg)
		return tap == nil || tap(len(seen), f, &seg)
	}
	l := w.listen()
	c, s = w.connect(l)
	c.Write(w.now, []byte("x"))
	w.run(300 * time.Millisecond)
	return w, c, s, seen
}

// RFC 8684, Section 3.2: the four packets of a join (JOIN-01 to JOIN-06, JOIN-10, JOIN-11, JOIN-16, JOIN-21).
func TestJoinPackets(t *testing.T) {
	w, c, s, seen := joinPackets(t, nil)
	if len(seen) < 4 {
		t.Fatalf("%d packets", len(seen))
	}
	syn, synack, third, fourth := &seen[0], &seen[1], &seen[2], &seen[3]
	if !syn.Has(wire.OptMPJoin) || syn.Join.Form != wire.JoinSYN || syn.Join.Token != s.hs.localToken || syn.Len() != 1 || syn.Join.AddressID == 0 {
		t.Errorf("SYN %+v", syn.Join)
	}
	a, b := c.hs.localKey, s.hs.localKey
	want := wire.JoinMAC(b, a, synack.Join.Nonce, syn.Join.Nonce)
	if !synack.Has(wire.OptMPJoin) || [8]byte(synack.Join.MAC[:8]) != [8]byte(want[:8]) || synack.Join.Nonce == syn.Join.Nonce {
		t.Errorf("SYN/ACK %+v", synack.Join)
	}
	want = wire.JoinMAC(a, b, syn.Join.Nonce, synack.Join.Nonce)
	if !third.Has(wire.OptMPJoin) || third.Join.MAC != [20]byte(want[:20]) || third.Len() != 0 {
		t.Errorf("third packet %+v", third.Join)
	}
	if fourth.Flags&wire.ACK == 0 || !fourth.Has(wire.OptDSS) || !fourth.DSS.HasAck {
		t.Errorf("fourth packet: options %#x", fourth.Options) // LNX-05
	}
	if len(c.subflows) != 2 || len(s.subflows) != 2 || !c.subflows[0].initial || c.subflows[1].initial || !c.subflows[1].usable() {
		t.Errorf("%d and %d subflows", len(c.subflows), len(s.subflows))
	}
	if w.client.counters.JoinsSentUp != 1 || w.server.counters.JoinsReceivedUp != 1 {
		t.Errorf("counters %+v", w.client.counters)
	}
	var up int
	for _, e := range w.events[c] {
		if e.Kind == EventSubflowUp {
			up++
		}
	}
	if up != 2 {
		t.Errorf("%d subflows reported up", up)
	}
}

// RFC 8684, Section 3.2 (JOIN-01): no join before there is data-level proof.
func TestNoJoinBeforeProof(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(10 * time.Millisecond)
	w.link(10 * time.Millisecond)
	w.listen()
	c := w.dial()
	w.run(500 * time.Millisecond)
	if n := w.client.counters.JoinsSent; n != 0 || c.hs.confirmed {
		t.Errorf("%d joins without a DATA_ACK", n)
	}
	c.Write(w.now, []byte("x"))
	w.run(500 * time.Millisecond)
	if n := w.client.counters.JoinsSent; n != 1 {
		t.Errorf("%d joins", n)
	}
}

// RFC 8684, Section 3.2 (JOIN-10, JOIN-12, JOIN-13): lost packets of a join are repeated; no data goes before the fourth arrives.
func TestJoinLosses(t *testing.T) {
	for lose := 1; lose <= 4; lose++ {
		early := false
		fourth := false
		w, c, _, _ := joinPackets(t, func(n int, f *flight, seg *wire.Segment) bool {
			if !f.toServer && seg.Flags&wire.SYN == 0 && n != lose {
				fourth = true
			}
			if f.toServer && seg.Len() > 0 && seg.Flags&wire.SYN == 0 && !fourth {
				early = true
			}
			return n != lose
		})
		c.Write(w.now, make([]byte, 100000))
		w.run(3 * time.Second)
		if len(c.subflows) != 2 || c.subflows[1].state != active {
			t.Errorf("packet %d lost: no second subflow", lose)
		}
		if early {
			t.Errorf("packet %d lost: data before the fourth packet", lose)
		}
	}
}

// RFC 8684, Section 3.2: what is wrong with a join resets it, with a reason, and touches nothing else (JOIN-07 to JOIN-09, JOIN-19,
// RST-01, SEC-03).
func TestJoinRefused(t *testing.T) {
	change := func(which int, by func(*wire.Segment)) func(*testing.T, int, *flight) {
		return func(t *testing.T, n int, f *flight) {
			if n == which {
				f.rewrite(t, by)
			}
		}
	}
	for _, tc := range []struct {
		name      string
		how       func(*testing.T, int, *flight)
		by        bool // reset by the client
		reason    wire.ResetReason
		transient bool
	}{
		{"unknown token", change(1, func(s *wire.Segment) { s.Join.Token++ }), false, wire.ResetMPTCP, false},
		{"SYN/ACK without MP_JOIN", change(2, func(s *wire.Segment) { s.Options &^= wire.OptMPTCP }), true, wire.ResetMPTCP, false},
		{"wrong HMAC in the SYN/ACK", change(2, func(s *wire.Segment) { s.Join.MAC[0]++ }), true, wire.ResetMPTCP, false},
		{"third packet without MP_JOIN", change(3, func(s *wire.Segment) { s.Options &^= wire.OptMPTCP }), false, wire.ResetMPTCP, false},
		{"wrong HMAC in the third packet", change(3, func(s *wire.Segment) { s.Join.MAC[19]++ }), false, wire.ResetMPTCP, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var rsts []wire.Segment
			var byClient []bool
			w, c, s, _ := joinPackets(t, func(n int, f *flight, seg *wire.Segment) bool {
				if n <= 3 {
					tc.how(t, n, f)
				}
				if seg.Flags&wire.RST != 0 {
					rsts, byClient = append(rsts, *seg), append(byClient, f.toServer)
				}
				return true
			})
			if len(rsts) == 0 || byClient[0] != tc.by || !rsts[0].Has(wire.OptMPTCPReset) || rsts[0].Reset.Reason != tc.reason || rsts[0].Reset.Transient != tc.transient {
				t.Fatalf("resets %v by client %v", rsts, byClient)
			}
			if len(s.subflows) != 1 || s.Err() != nil || c.Err() != nil {
				t.Errorf("%d subflows at the server, %v, %v", len(s.subflows), c.Err(), s.Err())
			}
			w.transfer(s, c, 1000, time.Second)
		})
	}
}

// RFC 8684, Section 3.2 (JOIN-17): the token alone counts: the listener may be closed, and the port another one.
func TestJoinWithoutListener(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(10 * time.Millisecond)
	w.link(10 * time.Millisecond)
	l := w.listen()
	c, _ := w.connect(l)
	l.Close(w.now)
	c.Write(w.now, []byte("x"))
	w.run(time.Second)
	if len(c.subflows) != 2 {
		t.Errorf("%d subflows", len(c.subflows))
	}
}

// JOIN-18, JOIN-19, SEC-02: subflows and half-open joins are limited, and half-open ones expire.
func TestJoinLimits(t *testing.T) {
	w := newWorld(t, Config{}, Config{MaxSubflows: 2, Backlog: 16})
	l := w.link(10 * time.Millisecond)
	w.link(10 * time.Millisecond)
	w.link(10 * time.Millisecond)
	lis := w.listen()
	c, s := w.connect(lis)
	c.Write(w.now, []byte("x"))
	w.run(time.Second)
	if len(s.subflows) != 2 || w.server.counters.JoinRefusedMax == 0 {
		t.Errorf("%d subflows, %d refused", len(s.subflows), w.server.counters.JoinRefusedMax)
	}
	// Room for one more again; then a flood of joins by somebody who knows the token.
	w.server.cfg.MaxSubflows = 3
	for _, link := range w.links {
		link.down = true
	}
	for i := range 500 {
		w.inject(l, true, wire.Segment{
			SrcPort: uint16(1000 + i), DstPort: serverPort, Seq: 5, Flags: wire.SYN, Window: 1000, Options: wire.OptMPJoin,
			Join: wire.MPJoin{Form: wire.JoinSYN, Token: s.hs.localToken, Nonce: uint32(i + 1), AddressID: 9},
		})
	}
	if s.pm.joins.n != 16 || len(w.server.halves) != 16 || w.server.joining != 16 {
		t.Errorf("%d half-open joins of the connection, %d of the Stack (%d)", s.pm.joins.n, len(w.server.halves), w.server.joining)
	}
	w.run(2 * time.Minute)
	if len(w.server.halves) != 0 || w.server.joining != 0 || w.server.counters.HalfOpenExpired != 16 {
		t.Errorf("%d half-open joins stay", len(w.server.halves))
	}
}

// JOIN-19: a connection that is closing refuses joins.
func TestJoinWhileClosing(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	link := w.link(10 * time.Millisecond)
	lis := w.listen()
	c, s := w.connect(lis)
	token := s.hs.localToken
	w.transfer(c, s, 1000, time.Second)
	w.transfer(s, c, 1000, time.Second)
	w.run(100 * time.Millisecond)
	w.inject(link, true, wire.Segment{
		SrcPort: 999, DstPort: serverPort, Seq: 5, Flags: wire.SYN, Window: 1000, Options: wire.OptMPJoin,
		Join: wire.MPJoin{Form: wire.JoinSYN, Token: token, Nonce: 3, AddressID: 9},
	})
	segs := w.collect(false)
	if len(segs) != 1 || segs[0].Flags&wire.RST == 0 || !segs[0].Has(wire.OptMPTCPReset) {
		t.Errorf("answer %v", segs)
	}
}

// RFC 8684, Section 3.2 (JOIN-15): B asks for a backup, in each direction by itself.
func TestJoinBackup(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(10 * time.Millisecond)
	l := w.link(10 * time.Millisecond)
	w.client.RemovePath(w.now, l.client)
	l.client = w.client.AddPath(w.now, Path{Local: l.clientAddr, Backup: true})
	lis := w.listen()
	c, s := w.connect(lis)
	c.Write(w.now, []byte("x"))
	w.run(time.Second)
	if len(s.subflows) != 2 || !s.subflows[1].backupPeer || c.subflows[1].backupPeer || !c.subflows[1].backupLocal {
		t.Errorf("%d subflows", len(s.subflows))
	}
}

// JOIN-20: the addresses and ports of a subflow that died can be used again.
func TestJoinSameTuple(t *testing.T) {
	w, c, s, seen := joinPackets(t, nil)
	old := c.subflows[1]
	w.client.abandon(w.now, old, errors.New("test")) // the client forgets it without a word
	w.client.RemovePath(w.now, w.links[1].client)
	syn := seen[0]
	syn.Seq += 1 << 20
	syn.Payload = nil
	w.tap = nil
	w.inject(w.links[1], true, syn) // the server still has it: RFC 5961, Section 4.2, a challenge ACK
	segs := w.collect(false)
	if len(segs) != 1 || segs[0].Flags != wire.ACK {
		t.Fatalf("answer %v", segs)
	}
	w.inject(w.links[1], true, wire.Segment{SrcPort: syn.SrcPort, DstPort: syn.DstPort, Seq: segs[0].Ack, Flags: wire.RST})
	if len(s.subflows) != 1 {
		t.Fatal("the reset did not work")
	}
	w.collect(false)
	w.inject(w.links[1], true, syn)
	if segs = w.collect(false); len(segs) != 1 || !segs[0].Flags.Has(wire.SYN|wire.ACK) || !segs[0].Has(wire.OptMPJoin) {
		t.Errorf("answer %v", segs)
	}
}
