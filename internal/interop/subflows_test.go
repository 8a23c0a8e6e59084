//go:build linux

package interop

import (
	"net/netip"
	"testing"
)

// up reports whether a connection has an active subflow on each of the named paths.
func up(p pair, paths ...string) bool {
	info := p.own.Info()
	for _, name := range paths {
		if sf := subflow(&info, name); sf == nil || sf.State != "active" {
			return false
		}
	}
	return true
}

// joined says a few bytes, which are the data-level proof that a host that dials waits for (RFC 8684, Section 3.2), and waits until a subflow
// is active on each of the paths.
func (w *world) joined(p pair, paths ...string) {
	w.t.Helper()
	send(w.t, p.own, p.kernel, []byte("hello"))
	w.until("the join", func() bool { return up(p, paths...) })
}

// TestJoin opens a second subflow from our side: RFC 8684, Section 3.2.
func TestJoin(t *testing.T) {
	upward, down := stream(32*mib, 12), stream(32*mib, 13)
	for _, tc := range []struct {
		name      string
		role      int
		paths     []string
		checksums bool
	}{
		{"IPv4", 0, []string{"tun1", "tun2"}, false},
		{"IPv6", 1, []string{"tun1v6", "tun2v6"}, false},
		{"IPv4 with checksums", 0, []string{"tun1", "tun2"}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, setup{links: 2, limits: true, checksums: tc.checksums})
			p := roles[tc.role].dial(w, true)
			w.joined(p, tc.paths...)
			exchange(t, p, upward, down)
			w.wantMPTCP(p)
			w.wantCounts(map[string]int64{"MPJoinSynRx": 1, "MPJoinAckRx": 1})
			w.calm()
		})
	}
}

// TestJoinShares checks that both subflows carry data, both ways. How much is the machine's business: nothing limits these links.
func TestJoinShares(t *testing.T) {
	w := newWorld(t, setup{links: 2, limits: true})
	p := w.dialKernel(kernel4(1), true)
	w.joined(p, "tun1", "tun2")
	data := stream(32*mib, 14)
	send(t, p.own, p.kernel, data)
	send(t, p.kernel, p.own, data)
	info := p.own.Info()
	for _, name := range []string{"tun1", "tun2"} {
		sf := subflow(&info, name)
		t.Logf("%s: sent %d bytes, received %d", name, sf.NewBytes, sf.ReceivedBytes)
		if some := int64(64 << 10); sf.NewBytes < some || sf.ReceivedBytes < some {
			t.Errorf("%s carried %d bytes there and %d back of %d", name, sf.NewBytes, sf.ReceivedBytes, len(data))
		}
	}
	w.calm()
}

// TestJoinOfKernel lets the kernel open the second subflow: from a second address over the same link, and over a second link.
func TestJoinOfKernel(t *testing.T) {
	upward, down := stream(32*mib, 15), stream(32*mib, 16)
	for _, tc := range []struct {
		name  string
		role  int
		links int
		from  string
		kind  []string
		joins int64
	}{
		{"IPv4 over the same link", 2, 1, "10.1.0.77", []string{"subflow"}, 1},
		{"IPv6 over the same link", 3, 1, "fd00:1::77", []string{"subflow"}, 1},
		{"IPv4 over a second link", 2, 2, "10.2.0.1", []string{"dev", "tun2", "subflow"}, 1},
		{"IPv6 over a second link", 3, 2, "fd00:2::1", []string{"dev", "tun2", "subflow"}, 1},
		{"IPv4 fullmesh", 2, 2, "10.2.0.1", []string{"dev", "tun2", "subflow", "fullmesh"}, 1},
		{"IPv4 backup", 2, 2, "10.2.0.1", []string{"dev", "tun2", "subflow", "backup"}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, setup{links: tc.links, limits: true, shared: true})
			if tc.links == 1 {
				if tc.role == 2 {
					w.ns.IP("address", "add", tc.from+"/24", "dev", "tun1")
				} else {
					w.ns.IP("address", "add", tc.from+"/64", "dev", "tun1", "nodad", "preferred_lft", "0") // deprecated: not for the first subflow
					w.usable(netip.MustParseAddr(tc.from))
				}
			}
			w.ns.IP(append([]string{"mptcp", "endpoint", "add", tc.from}, tc.kind...)...)
			p := roles[tc.role].dial(w, true)
			send(t, p.kernel, p.own, upward[:mib])
			w.until("the join", func() bool { return len(p.own.Info().Subflows) == 2 && w.count("MPJoinSynAckRx") == tc.joins })
			exchange(t, p, upward, down)
			w.wantMPTCP(p)
			w.wantCounts(map[string]int64{"MPJoinSynTx": tc.joins, "MPJoinSynAckRx": tc.joins})
			if got := w.engine.Counters().JoinsReceivedUp; got != tc.joins {
				t.Errorf("%d joins received", got)
			}
			w.calm()
		})
	}
}

// TestBackup: a subflow that was joined with the B bit (RFC 8684, Section 3.2) is used by neither end while the other one works, and by both
// when it is all there is.
func TestBackup(t *testing.T) {
	w := newWorld(t, setup{links: 2, limits: true, backup: []int{2}})
	p := w.dialKernel(kernel4(1), true)
	w.joined(p, "tun1", "tun2")
	w.wantCounts(map[string]int64{"MPJoinSynBackupRx": 1})
	data := stream(8*mib, 17)
	send(t, p.own, p.kernel, data)
	send(t, p.kernel, p.own, data)
	info := p.own.Info()
	if sf := subflow(&info, "tun2"); sf.NewBytes > 0 || sf.ReceivedBytes > 0 {
		t.Errorf("the backup carried %d bytes there and %d back", sf.NewBytes, sf.ReceivedBytes)
	}
	w.engine.RemovePath(w.paths[0][0])
	send(t, p.own, p.kernel, data)
	w.ns.IP("link", "set", "tun1", "down")
	send(t, p.kernel, p.own, data)
	w.wantMPTCP(p)
	w.calm()
}

// TestPriority lets the kernel change its mind about a subflow: MP_PRIO (RFC 8684, Section 3.3.8).
func TestPriority(t *testing.T) {
	w := newWorld(t, setup{links: 2, limits: true, shared: true})
	w.ns.IP("mptcp", "endpoint", "add", "10.2.0.1", "id", "7", "dev", "tun2", "subflow")
	p := w.dialOwn(own4(1), true)
	data := stream(8*mib, 18)
	send(t, p.kernel, p.own, data)
	w.until("the join", func() bool { return up(p, "tun1", "tun2") })
	w.ns.IP("mptcp", "endpoint", "change", "id", "7", "backup")
	w.until("MP_PRIO", func() bool { return w.engine.Counters().PriosReceived == 1 })
	info := p.own.Info()
	if sf := subflow(&info, "tun2"); !sf.BackupPeer {
		t.Error("the subflow is no backup")
	}
	before := subflow(&info, "tun2").NewBytes
	send(t, p.own, p.kernel, data)
	info = p.own.Info()
	if sent := subflow(&info, "tun2").NewBytes - before; sent > 0 {
		t.Errorf("%d bytes went over the backup", sent)
	}
	w.ns.IP("mptcp", "endpoint", "change", "id", "7", "nobackup")
	w.until("MP_PRIO", func() bool { return w.engine.Counters().PriosReceived == 2 })
	w.wantCounts(map[string]int64{"MPPrioTx": 2})
	exchange(t, p, data, data)
	w.calm()
}

// TestCut takes a link down under a transfer and brings it back: the data goes on over the other, and both ends use the link again.
func TestCut(t *testing.T) {
	for _, cut := range []int{1, 2} {
		t.Run([]string{"", "the initial subflow", "the joined subflow"}[cut], func(t *testing.T) {
			w := newWorld(t, setup{links: 2, limits: true})
			p := w.dialKernel(kernel4(1), true)
			w.joined(p, "tun1", "tun2")
			dev := []string{"", "tun1", "tun2"}[cut]
			data := stream(16*mib, 19)
			send(t, p.own, p.kernel, data)
			w.ns.IP("link", "set", dev, "down")
			if cut == 1 { // the connection's own address must stay the machine's, as on a host with several interfaces
				w.ns.IP("address", "add", "10.1.0.1/32", "dev", "lo")
			}
			send(t, p.own, p.kernel, data)
			send(t, p.kernel, p.own, data)
			w.ns.IP("link", "set", dev, "up")
			w.until("the link is used again", func() bool {
				info := p.own.Info()
				sf := subflow(&info, dev)
				return sf != nil && sf.State == "active" && !sf.TimedOut
			})
			info := p.own.Info()
			sent := subflow(&info, dev).NewBytes
			w.until("the link carries new data", func() bool { // it may have to find out by its timer that it is up
				send(t, p.own, p.kernel, data[:mib])
				send(t, p.kernel, p.own, data[:mib])
				info = p.own.Info()
				sf := subflow(&info, dev)
				return sf != nil && sf.NewBytes > sent
			})
			exchange(t, p, data, data)
			w.wantMPTCP(p)
			w.calm()
		})
	}
}
