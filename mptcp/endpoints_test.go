package mptcp

import (
	"net/netip"
	"testing"
	"time"

	"braid/clock"
	"braid/wire"
)

// What the flags of "ip mptcp endpoint" and the numbers of "ip mptcp limits" make of two hosts with several addresses: which of the client's
// paths end up with a subflow to which of the server's addresses. A backup is a subflow like others.
func TestPolicies(t *testing.T) {
	const sub, sig, back, full = EndpointSubflow, EndpointSignal, EndpointBackup, EndpointFullmesh
	none := EndpointFlags(0)
	f := func(flags ...EndpointFlags) []EndpointFlags { return flags }
	for _, tc := range []struct {
		name            string
		clients, server []EndpointFlags
		client, serving Config
		want            string
	}{
		{"defaults", f(none, none), f(none, none), Config{}, Config{}, "0-0 0-1 1-0"},
		{"one address", f(none, none, none), f(none), Config{}, Config{}, "0-0 1-0 2-0"},
		{"three addresses", f(none), f(none, none, none), Config{}, Config{}, "0-0 0-1 0-2"},
		{"the server is silent", f(none, none), f(none, none), Config{}, Config{NoAnnounce: true}, "0-0 1-0"},
		{"the server is silent but for one", f(none), f(none, none, sig), Config{}, Config{NoAnnounce: true}, "0-0 0-2"},
		{"the client takes none", f(none), f(none, none), Config{Limits: Limits{AddAddrAccepted: -1}}, Config{}, "0-0"},
		{"the client takes one", f(none), f(none, none, none), Config{Limits: Limits{AddAddrAccepted: 1}}, Config{}, "0-0 0-1"},
		{"fullmesh", f(full, full), f(none, none), Config{}, Config{}, "0-0 0-1 1-0 1-1"},
		{"fullmesh of one path", f(none, full), f(none, none), Config{}, Config{}, "0-0 1-0 1-1"},
		{"fullmesh backup", f(none, full|back), f(none, none), Config{}, Config{}, "0-0 1-0 1-1"},
		{"fullmesh, one more subflow", f(full, full), f(none, none), Config{Limits: Limits{Subflows: 1}}, Config{}, "0-0 1-0"},
		{"no more subflows", f(full, full), f(none, none), Config{Limits: Limits{Subflows: -1}}, Config{}, "0-0"},
		{"no more subflows at the server", f(full, full), f(none, none), Config{}, Config{Limits: Limits{Subflows: -1}}, "0-0"},
		{"MaxSubflows", f(full, full), f(none, none), Config{MaxSubflows: 3}, Config{}, "0-0 0-1 1-0"},
		{"subflow only", f(none, sub), f(none, sig), Config{}, Config{}, "0-0 0-1 1-0"},
		{"a client path without subflow", f(none, sig), f(none, none), Config{}, Config{}, "0-0 0-1"},
		{"the server joins what the client announces", f(none, sig), f(none), Config{}, Config{Limits: Limits{AddAddrAccepted: 1}}, "0-0 1-0"},
		{"... and does not by default", f(none, sig), f(none), Config{}, Config{}, "0-0"},
		{"the server opens subflows", f(none), f(none, sub), Config{}, Config{}, "0-0 0-1"},
		{"a regular path is better than a backup", f(back, none), f(none, none), Config{}, Config{}, "0-0 1-0 1-1"},
	} {
		for _, kind := range []PathKind{IP, UDP} {
			g := terrain{kind: kind}
			for _, flags := range tc.clients {
				g.clients = append(g.clients, Path{Flags: flags})
			}
			for _, flags := range tc.server {
				g.servers = append(g.servers, Path{Flags: flags})
			}
			w := newMesh(t, g, tc.client, tc.serving)
			c, s := w.connectMesh(time.Second)
			if got := w.pairs(c); got != tc.want || w.pairs(s) != got {
				t.Errorf("%s, udp %t: subflows %s at the client, %s at the server, want %s", tc.name, kind == UDP, got, w.pairs(s), tc.want)
			}
			w.transfer(c, s, 100_000, 5*time.Second)
			w.run(20 * time.Second)
			if at := w.client.NextTimeout(); kind == IP && tc.serving.Limits.Subflows == 0 && at != clock.Never {
				t.Errorf("%s: a timer at %v", tc.name, at)
			}
		}
	}
}

// An address in the network of one of the client's paths is reached over that one, else over the one with the fewest subflows.
func TestBestPathForAnAddress(t *testing.T) {
	w := newMesh(t, terrain{clients: make([]Path, 3), servers: make([]Path, 1)}, Config{}, Config{})
	c, _ := w.connectMesh(200 * time.Millisecond)
	best := func(a string) PathID {
		p := c.pm.bestFor(netip.MustParseAddrPort(a))
		if p == nil {
			return -1
		}
		return p.id
	}
	c.pm.entries[1].failed = true
	for addr, want := range map[string]PathID{"10.0.2.9:443": 2, "10.0.0.9:443": 0, "192.0.2.9:443": 1, "[2001:db8::1]:443": -1} {
		if got := best(addr); got != want {
			t.Errorf("%s over path %d, want %d", addr, got, want)
		}
	}
	w.client.paths[1].Backup = true
	if got := best("192.0.2.9:443"); got == 1 {
		t.Errorf("over the backup")
	}
	w.client.paths[0].Remote = netip.MustParseAddrPort("192.0.2.9:443")
	w.client.paths[2].Remote = netip.MustParseAddrPort("192.0.2.8:443")
	if got := best("192.0.2.9:443"); got != 0 { // a path that leads to one address only is good for that one
		t.Errorf("over path %d", got)
	}
}

// RFC 8684, Section 3.4.1 (ADD-15): by default an address is not announced that reaches less far than the one that the client came to, nor one of
// another kind of path, nor the same twice.
func TestWhatIsAnnounced(t *testing.T) {
	at := func(addr string) netip.AddrPort { return netip.MustParseAddrPort(addr) }
	for _, tc := range []struct {
		name, here, peer string
		p                Path
		want             bool
	}{
		{"global", "192.0.2.1:443", "192.0.9.9:5", Path{Local: at("192.0.3.1:443")}, true},
		{"private beside global", "192.0.2.1:443", "192.0.9.9:5", Path{Local: at("10.0.0.1:443")}, false},
		{"private beside private", "10.0.1.1:443", "10.0.9.9:5", Path{Local: at("192.168.0.1:443")}, true},
		{"private by flag", "192.0.2.1:443", "192.0.9.9:5", Path{Local: at("10.0.0.1:443"), Flags: EndpointSignal}, true},
		{"not by flag", "192.0.2.1:443", "192.0.9.9:5", Path{Local: at("192.0.3.1:443"), Flags: EndpointSubflow | EndpointBackup}, false},
		{"a backup", "192.0.2.1:443", "192.0.9.9:5", Path{Local: at("192.0.3.1:443"), Flags: EndpointBackup}, true},
		{"loopback", "127.0.0.1:443", "127.0.0.1:5", Path{Local: at("127.0.0.2:443")}, true},
		{"loopback beside private", "10.0.1.1:443", "10.0.9.9:5", Path{Local: at("127.0.0.1:443")}, false},
		{"link-local by flag", "192.0.2.1:443", "192.0.9.9:5", Path{Local: at("169.254.0.1:443"), Flags: EndpointSignal}, false},
		{"a socket at all addresses", "192.0.2.1:443", "192.0.9.9:5", Path{Local: at("0.0.0.0:443"), Flags: EndpointSignal}, false},
		{"beside a socket at all addresses", "0.0.0.0:443", "192.0.9.9:5", Path{Local: at("192.0.3.1:443")}, true},
		{"private beside a socket at all addresses", "0.0.0.0:443", "192.0.9.9:5", Path{Local: at("10.0.3.1:443")}, false},
		{"private to a private peer", "0.0.0.0:443", "10.0.9.9:5", Path{Local: at("10.0.3.1:443")}, true},
		{"another kind", "192.0.2.1:443", "192.0.9.9:5", Path{Local: at("192.0.3.1:443"), Kind: UDP}, false},
		{"the same address", "192.0.2.1:443", "192.0.9.9:5", Path{Local: at("192.0.2.1:0")}, false},
	} {
		w := newWorld(t, Config{}, Config{})
		pm := &pathManager{conn: &Conn{}, initialPath: 7, initialLocal: at(tc.here), initialRemote: at(tc.peer)}
		pm.conn.stack = w.server
		for range 8 { // the connection came to the last one
			w.server.AddPath(w.now, Path{})
		}
		id := w.server.AddPath(w.now, tc.p)
		if got := pm.announces(w.server.paths[id]); got != tc.want {
			t.Errorf("%s: %t", tc.name, got)
		}
	}
}

// RFC 8684, Sections 3.2 and 3.3.8 (JOIN-15, PRI-02, LNX-18): the answer to a join says whether the announced address is a backup, and a change of the
// flag is told by MP_PRIO on each subflow over the path.
func TestBackupEndpoints(t *testing.T) {
	g := terrain{clients: make([]Path, 1), servers: []Path{{}, {Flags: EndpointBackup}}}
	w := newMesh(t, g, Config{}, Config{})
	c, s := w.connectMesh(time.Second)
	if w.pairs(c) != "0-0 0-1" || !c.subflows[1].backupPeer || c.subflows[0].backupPeer || !s.subflows[1].backupLocal {
		t.Fatalf("subflows %s", w.pairs(c))
	}
	seen := w.watchFor(wire.OptMPPrio, nil)
	if !w.server.SetPathFlags(w.now, 0, EndpointBackup) || !w.server.SetPathFlags(w.now, 1, 0) || w.server.SetPathFlags(w.now, 9, 0) {
		t.Error("SetPathFlags")
	}
	w.run(time.Second)
	if len(*seen) != 2 || w.server.counters.PriosSent != 2 || !c.subflows[0].backupPeer || c.subflows[1].backupPeer {
		t.Errorf("%d MP_PRIO", len(*seen))
	}
	w.server.SetPathFlags(w.now, 1, 0) // no change
	w.run(time.Second)
	if len(*seen) != 2 {
		t.Errorf("%d MP_PRIO", len(*seen))
	}
	if got := (EndpointSubflow | EndpointBackup | EndpointFullmesh).String(); got != "subflow backup fullmesh" {
		t.Error(got)
	}
	if got := EndpointSignal.String(); got != "signal" {
		t.Error(got)
	}
}

// SetPathFlags: what a new flag asks for happens in connections that exist.
func TestFlagsUnderWay(t *testing.T) {
	g := terrain{clients: make([]Path, 2), servers: make([]Path, 2)}
	w := newMesh(t, g, Config{}, Config{NoAnnounce: true})
	w.client.paths[1].Flags = EndpointSignal
	c, s := w.connectMesh(200 * time.Millisecond)
	for _, step := range []struct {
		stack *Stack
		path  PathID
		flags EndpointFlags
		want  string
	}{
		{w.client, 1, EndpointSubflow, "0-0 1-0"},
		{w.server, 1, EndpointSignal, "0-0 0-1 1-0"},
		{w.client, 1, EndpointFullmesh, "0-0 0-1 1-0 1-1"},
		{w.client, 1, 0, "0-0 0-1 1-0 1-1"},
	} {
		step.stack.SetPathFlags(w.now, step.path, step.flags)
		w.run(200 * time.Millisecond)
		if got := w.pairs(c); got != step.want || w.pairs(s) != got {
			t.Errorf("path %d %v: subflows %s, want %s", step.path, step.flags, got, step.want)
		}
	}
}

// The path that the connection was opened over leads to a relay: other paths go to the address that was dialled, not to the relay's.
func TestRelayedInitialPath(t *testing.T) {
	for _, kind := range []PathKind{IP, UDP} {
		g := square
		g.kind = kind
		g.clients = []Path{{Remote: g.serverAddress(1)}, {}}
		w := newMesh(t, g, Config{}, Config{NoAnnounce: true})
		c, _ := w.connectMesh(time.Second)
		if got := w.pairs(c); got != "0-1 1-0" || !c.subflows[0].initial || c.subflows[0].path != 0 {
			t.Errorf("subflows %s", got)
		}
	}
}
