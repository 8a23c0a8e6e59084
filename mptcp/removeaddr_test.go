package mptcp

import (
	"slices"
	"testing"
	"time"

	"braid/wire"
)

// square is a client and a server with two paths each.
var square = terrain{clients: make([]Path, 2), servers: make([]Path, 2)}

// RFC 8684, Section 3.4.2 (REM-01, REM-02, REM-03, REM-06, REM-08): a path of the client's vanishes. Its REMOVE_ADDR goes on the other subflow
// beside a DATA_ACK; the server asks the affected one, gets no answer, resets it, and sends what it carried over the other.
func TestRemovedPathIsWithdrawn(t *testing.T) {
	for _, kind := range []PathKind{IP, UDP} {
		for path := range 2 {
			g := terrain{kind: kind, clients: make([]Path, 2), servers: make([]Path, 1)}
			w := newMesh(t, g, Config{}, Config{})
			for _, l := range w.links {
				l.rate, l.limit = 5e5, 100*time.Millisecond
			}
			c, s := w.connectMesh(time.Second)
			down := w.stream(s, c, 1<<30)
			w.run(2 * time.Second)
			id := s.subflows[path].remoteID
			seen := w.watchFor(wire.OptRemoveAddr|wire.OptMPTCPReset, nil)
			w.client.RemovePath(w.now, PathID(path))
			start, before := w.now, down.read
			w.until(3*time.Second, func() bool { return len(s.subflows) == 1 })
			if d := w.now.Sub(start); len(s.subflows) != 1 || d > 2500*time.Millisecond || w.server.counters.RemovedSubflowsClosed != 1 {
				t.Errorf("path %d: %d subflows at the server after %v, counters %+v", path, len(s.subflows), d, w.server.counters.AddressCounters)
			}
			w.run(time.Second)
			if len(*seen) < 2 {
				t.Fatalf("path %d: %d segments", path, len(*seen))
			}
			rem, rst := &(*seen)[0], &(*seen)[1]
			if !rem.toServer || rem.RemoveAddr.Count != 1 || rem.RemoveAddr.IDs[0] != id || !rem.Has(wire.OptDSS) || !rem.DSS.HasAck || rem.link != w.links[1-path] {
				t.Errorf("path %d: %v", path, &rem.Segment)
			}
			if rst.toServer || rst.Flags&wire.RST == 0 || rst.link != w.links[path] {
				t.Errorf("path %d: %v", path, &rst.Segment)
			}
			if n := down.read - before; n < 500_000 {
				t.Errorf("path %d: %d bytes meanwhile", path, n)
			}
			if w.client.counters.RemoveAddrsSent != 1 || w.server.counters.RemoveAddrsReceived != 1 || w.server.counters.RemoveAddrsUnknown != 0 {
				t.Errorf("counters %+v", w.client.counters.AddressCounters)
			}
		}
	}
}

// RFC 8684, Section 3.4.2 (REM-03, REM-04): a subflow that answers stays, but nothing is opened to its address any more, until it is announced again.
func TestRemovedAddressThatAnswers(t *testing.T) {
	w := newMesh(t, square, Config{}, Config{})
	c, s := w.connectMesh(time.Second)
	if w.pairs(c) != "0-0 0-1 1-0" {
		t.Fatalf("subflows %s", w.pairs(c))
	}
	for _, id := range []uint8{0, 1, 1} {
		w.say(s.subflows[0], removeAddr(id))
		w.run(5 * time.Second)
	}
	n := &w.client.counters
	if w.pairs(c) != "0-0 0-1 1-0" || n.RemovedSubflowsKept != 4 || n.RemovedSubflowsClosed != 0 || len(c.pm.known) != 0 {
		t.Fatalf("subflows %s, counters %+v", w.pairs(c), n.AddressCounters)
	}
	for _, i := range []int{2, 1} { // a reset that otherwise makes it join again at once
		w.server.drop(w.now, s.subflows[i], wire.ResetPerformance, true)
	}
	joins := n.JoinsSent
	w.run(20 * time.Second)
	if n.JoinsSent != joins || len(c.subflows) != 1 {
		t.Errorf("%d joins, %d subflows", n.JoinsSent-joins, len(c.subflows))
	}
	w.client.RemovePath(w.now, 1)
	w.client.AddPath(w.now, Path{Local: w.links[2].clientAddr})
	w.run(20 * time.Second)
	if n.JoinsSent != joins {
		t.Errorf("%d joins over a new path", n.JoinsSent-joins)
	}
	w.say(s.subflows[0], s.addAddr(5, "192.0.2.1", 0))
	w.say(s.subflows[0], s.addAddr(6, "192.0.3.1", 0))
	w.run(time.Second)
	if len(c.subflows) != 2 {
		t.Errorf("%d subflows", len(c.subflows))
	}
	w.transfer(c, s, 100_000, time.Second)
}

// RFC 8684, Section 3.4.2 (REM-01, REM-05): IDs that mean nothing are skipped, and a segment that TCP does not accept removes nothing.
func TestRemovalsThatMeanNothing(t *testing.T) {
	w := newMesh(t, square, Config{}, Config{})
	c, s := w.connectMesh(time.Second)
	ids := []uint8{}
	for i := range 37 {
		ids = append(ids, uint8(100+i))
	}
	w.say(s.subflows[0], removeAddr(ids...))
	n := &w.client.counters
	if n.RemoveAddrsReceived != 1 || n.RemoveAddrsUnknown != 37 {
		t.Errorf("counters %+v", n.AddressCounters)
	}
	probes := n.PathProbes
	for _, change := range []func(*wire.Segment){
		func(seg *wire.Segment) { seg.Seq += 1 << 30 },
		func(seg *wire.Segment) { seg.Seq-- },
		func(seg *wire.Segment) { seg.Ack += 1 << 30 },
	} {
		w.say(s.subflows[0], func(seg *wire.Segment) { removeAddr(0, 1)(seg); change(seg) })
	}
	if n.RemoveAddrsReceived != 1 || n.PathProbes != probes || len(c.pm.known) != 1 {
		t.Errorf("counters %+v", n.AddressCounters)
	}
	w.say(s.subflows[0], removeAddr(100, 1, 101))
	if n.RemoveAddrsUnknown != 39 || len(c.pm.known) != 0 || n.PathProbes != probes+1 {
		t.Errorf("counters %+v", n.AddressCounters)
	}
}

// RFC 8684, Sections 3.4.1 and 3.4.2 (ADD-08, REM-02, REM-09): an address of the server's goes and comes: it is withdrawn, and announced again under
// an ID that nothing else has.
func TestServerAddressComesAndGoes(t *testing.T) {
	for _, kind := range []PathKind{IP, UDP} {
		for path := range 2 {
			g := square
			g.kind = kind
			w := newMesh(t, g, Config{}, Config{})
			c, s := w.connectMesh(time.Second)
			st := w.stream(s, c, 1<<30)
			for _, l := range w.links {
				l.rate, l.limit = 3e5, 100*time.Millisecond
			}
			used := map[uint8]bool{0: true, 1: true}
			for range 3 {
				w.run(2 * time.Second)
				id := PathID(-1)
				for _, p := range w.server.paths {
					if p.Local == g.serverAddress(path) && !p.removed {
						id = p.id
					}
				}
				w.server.RemovePath(w.now, id)
				w.run(4 * time.Second)
				for _, sf := range c.subflows {
					if sf.remote == g.serverAddress(path) {
						t.Errorf("path %d: a subflow to an address that is gone", path)
					}
				}
				if len(c.subflows) == 0 {
					t.Fatalf("path %d: no subflow left", path)
				}
				id = w.server.AddPath(w.now, Path{Kind: kind, Local: g.serverAddress(path)})
				for _, l := range w.links {
					if l.serverAddr == g.serverAddress(path) {
						l.server = id
					}
				}
				before := st.read
				w.run(time.Second)
				back := slices.IndexFunc(c.subflows, func(sf *Subflow) bool { return sf.remote == g.serverAddress(path) && sf.state == active })
				if back < 0 || used[c.subflows[back].remoteID] || st.read == before {
					t.Fatalf("path %d: subflows %s, %d bytes", path, w.pairs(c), st.read-before)
				}
				used[c.subflows[back].remoteID] = true
			}
			w.server.RemovePath(w.now, w.links[0].server)
			w.server.RemovePath(w.now, w.links[1].server)
		}
	}
}

// A removal waits while there is no subflow to tell it on (break before make, RFC 8684, Section 3.3.3), and goes on the first one.
func TestRemovalWaitsForASubflow(t *testing.T) {
	g := terrain{clients: make([]Path, 1), servers: make([]Path, 1)}
	w := newMesh(t, g, Config{}, Config{})
	c, s := w.connectMesh(100 * time.Millisecond)
	seen := w.watchFor(wire.OptRemoveAddr, nil)
	w.client.RemovePath(w.now, 0)
	w.run(5 * time.Second)
	if len(*seen) != 0 || len(s.subflows) != 1 {
		t.Fatalf("%d removals, %d subflows", len(*seen), len(s.subflows))
	}
	l := w.links[0]
	l.client = w.client.AddPath(w.now, Path{Local: l.clientAddr})
	w.run(3 * time.Second)
	if len(*seen) != 1 || (*seen)[0].RemoveAddr.IDs[0] != 0 || len(s.subflows) != 1 || s.subflows[0].remoteID != 1 {
		t.Errorf("%d removals, %d subflows", len(*seen), len(s.subflows))
	}
	w.transfer(c, s, 100_000, time.Second)
}

// RFC 8684, Section 3.4.2: nothing says whether a REMOVE_ADDR arrived, so it goes on every subflow; more than fit one option at once are not piled up.
func TestRemovalGoesEverywhere(t *testing.T) {
	g := terrain{clients: make([]Path, 20), servers: make([]Path, 1)}
	w := newMesh(t, g, Config{MaxSubflows: 20}, Config{MaxSubflows: 20})
	c, s := w.connectMesh(time.Second)
	if len(c.subflows) != 20 {
		t.Fatalf("%d subflows", len(c.subflows))
	}
	seen := w.watchFor(wire.OptRemoveAddr, nil)
	w.client.RemovePath(w.now, 3)
	w.run(3 * time.Second)
	links := map[*testLink]bool{}
	for _, seg := range *seen {
		links[seg.link] = true
	}
	if len(*seen) != 19 || len(links) != 19 || len(s.subflows) != 19 {
		t.Errorf("%d removals on %d links, %d subflows, counters %+v", len(*seen), len(links), len(s.subflows), w.server.counters.AddressCounters)
	}
	for i := range 15 {
		w.client.RemovePath(w.now, PathID(4+i))
	}
	w.run(5 * time.Second)
	if n := w.client.counters.RemoveAddrsForgotten; n != 2 || w.server.counters.RemovedSubflowsClosed != 14 || len(c.pm.removing) != 0 {
		t.Errorf("%d forgotten, counters %+v", n, w.server.counters.AddressCounters)
	}
	w.transfer(c, s, 100_000, time.Second)
}

// RFC 8684, Section 3.4.2 (REM-09): a removed address is not announced any more.
func TestRemovalEndsAnnouncement(t *testing.T) {
	w := newMesh(t, two, Config{}, Config{})
	seen := w.watchFor(wire.OptAddAddr|wire.OptRemoveAddr, func(_ int, _ *flight, seg *wire.Segment) bool { return seg.Has(wire.OptRemoveAddr) })
	c, _ := w.connectMesh(300 * time.Millisecond)
	w.server.RemovePath(w.now, 1)
	n := len(*seen)
	w.run(10 * time.Second)
	if len(*seen) != n+1 || !(*seen)[n].Has(wire.OptRemoveAddr) || w.client.counters.RemoveAddrsUnknown != 1 || len(c.subflows) != 1 {
		t.Errorf("%d segments, then %d", n, len(*seen))
	}
}

// RFC 8684, Section 3.4.2 (REM-07): subflows that work are closed by FINs; no address is removed for that.
func TestCloseRemovesNoAddress(t *testing.T) {
	w := newMesh(t, square, Config{}, Config{})
	c, s := w.connectMesh(time.Second)
	seen := w.watchFor(wire.OptRemoveAddr|wire.OptMPTCPReset, nil)
	w.transfer(c, s, 1000, time.Second)
	w.transfer(s, c, 1000, time.Second)
	w.run(5 * time.Second)
	if len(*seen) != 0 || len(c.subflows)+len(s.subflows) != 0 {
		t.Errorf("%d segments", len(*seen))
	}
}

// RFC 8684, Section 3.4.1 (ADD-08, REM-09): IDs are unique, 0 is nobody's but the initial address's, and one that is free is taken as late as possible.
func TestAddressIDTable(t *testing.T) {
	var ids addressIDs
	idle := func(uint8) bool { return false }
	seen := map[uint8]PathID{}
	for p := range PathID(255) {
		id, ok := ids.assign(p, idle)
		if _, twice := seen[id]; !ok || id == 0 || twice {
			t.Fatalf("path %d has %d", p, id)
		}
		seen[id] = p
	}
	if _, ok := ids.assign(300, idle); ok {
		t.Error("a 256th ID")
	}
	for p := range PathID(10) {
		if id, ok := ids.free(p); !ok || seen[id] != p {
			t.Errorf("path %d had %d", p, id)
		}
	}
	if _, ok := ids.free(3); ok {
		t.Error("freed twice")
	}
	if id, _ := ids.assign(400, func(id uint8) bool { return id < 4 }); id != 4 {
		t.Errorf("path 400 has %d", id)
	}
	if id, ok := ids.of(400); !ok || id != 4 {
		t.Errorf("path 400 has %d", id)
	}
	if _, ok := ids.of(3); ok {
		t.Error("path 3 has an ID")
	}
	ids.free(400)
	if id, _ := ids.assign(401, idle); id != 5 {
		t.Errorf("path 401 has %d", id)
	}
}

// More paths than IDs: those without a subflow give theirs up.
func TestMorePathsThanIDs(t *testing.T) {
	g := terrain{clients: make([]Path, 1), servers: make([]Path, 1)}
	w := newMesh(t, g, Config{}, Config{})
	c, _ := w.connectMesh(100 * time.Millisecond)
	seen := map[uint8]bool{}
	for p := range PathID(600) {
		seen[c.pm.addressID(1+p)] = true
	}
	if len(seen) != 255 || seen[0] || len(c.pm.ids.held) != 255 {
		t.Errorf("%d IDs", len(seen))
	}
}

// The last subflow goes, and all that is known was taken back or could not be reached: everything is tried again as long as the connection waits for
// a subflow (RFC 8684, Section 3.3.3), instead of ending for sure.
func TestLastResort(t *testing.T) {
	w := newMesh(t, two, Config{}, Config{})
	w.links[1].down = true
	c, s := w.connectMesh(20 * time.Second)
	if !c.pm.known[0].failed {
		t.Fatal("the announced address was reached")
	}
	st := w.stream(c, s, 1<<30)
	w.links[0].rate, w.links[1].rate = 3e5, 3e5
	w.run(time.Second)
	w.say(s.subflows[0], removeAddr(0)) // a lie, or the truth for a while
	w.run(2 * time.Second)
	w.links[0].down = true
	w.server.drop(w.now, s.subflows[0], wire.ResetPerformance, true)
	w.client.drop(w.now, c.subflows[0], wire.ResetPerformance, true)
	w.run(30 * time.Second)
	before := st.read
	w.links[1].down = false
	if !w.until(2*time.Second, func() bool { return st.read > before }) || w.pairs(c) != "0-1" {
		t.Errorf("subflows %s, %v", w.pairs(c), c.Err())
	}
	w.links[0].down = false
	w.run(2 * time.Second)
	if w.pairs(c) != "0-0 0-1" {
		t.Errorf("subflows %s", w.pairs(c))
	}
}

// At the limit, a subflow that the peer has forgotten is replaced: it does not hold its place for minutes.
func TestForgottenSubflowAtTheLimit(t *testing.T) {
	g := terrain{kind: UDP, clients: make([]Path, 2), servers: make([]Path, 1)}
	limited := Config{Limits: Limits{Subflows: 1}}
	w := newMesh(t, g, limited, limited)
	c, s := w.connectMesh(time.Second)
	for _, l := range w.links {
		l.rate, l.limit = 1e5, 100*time.Millisecond
	}
	st := w.stream(c, s, 1<<30)
	w.run(time.Second)
	for len(s.subflows) > 0 {
		w.server.abandon(w.now, s.subflows[0], ErrAborted)
	}
	before := st.read
	w.run(15 * time.Second)
	if w.pairs(s) != "0-0 1-0" || len(c.subflows) != 2 || st.read == before {
		t.Errorf("subflows %s at the server, %d at the client, %d bytes", w.pairs(s), len(c.subflows), st.read-before)
	}
}
