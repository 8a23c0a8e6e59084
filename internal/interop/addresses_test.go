//go:build linux

package interop

import (
	"net/netip"
	"testing"

	"braid/mptcp"
)

// announced returns the subflow to an address of the kernel's, nil if there is none.
func announced(p pair, addr netip.Addr) *mptcp.SubflowInfo {
	info := p.own.Info()
	for i := range info.Subflows {
		if sf := &info.Subflows[i]; sf.Remote.Addr() == addr && sf.State == "active" {
			return sf
		}
	}
	return nil
}

// TestAnnounceToKernel: we have two addresses in each family, the kernel dials one of them. RFC 8684, Sections 3.4.1 and 3.4.2: it believes our HMACs,
// echoes all, joins what its family of sockets can reach, and lets go of what we remove.
func TestAnnounceToKernel(t *testing.T) {
	upward, down := stream(16*mib, 31), stream(16*mib, 32)
	for _, tc := range []struct {
		name   string
		role   int
		path   string // that is joined, and removed
		number [2]int // its link and family
		joins  int64
		noJoin bool // flag C
	}{
		{"IPv4", 2, "tun2", [2]int{1, 0}, 1, false},
		{"IPv6", 3, "tun2v6", [2]int{1, 1}, 3, false}, // an IPv6 socket of the kernel's joins IPv4 addresses too
		{"IPv4 with flag C", 2, "tun2", [2]int{1, 0}, 1, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, setup{links: 2, limits: true, announce: true, stack: mptcp.Config{NoJoinInitial: tc.noJoin}})
			p := roles[tc.role].dial(w, true)
			send(t, p.kernel, p.own, upward[:mib])
			w.until("the joins", func() bool {
				return int64(p.own.Info().Subflows[0].ID) >= 0 && w.count("MPJoinSynAckRx") == tc.joins && up(p, tc.path)
			})
			w.until("the echoes", func() bool { return w.engine.Counters().AddAddrsEchoed == 3 })
			send(t, p.own, p.kernel, down[:4*mib])
			w.wantMPTCP(p)
			w.engine.RemovePath(w.paths[tc.number[0]][tc.number[1]])
			w.until("the removal", func() bool { return w.count("RmAddr") >= 1 })
			exchange(t, p, upward, down)
			n := w.engine.Counters()
			if n.AddAddrEchoesUnwanted != 0 || n.RemoveAddrsSent == 0 {
				t.Errorf("%+v", n.AddressCounters)
			}
			w.wantCounts(map[string]int64{"EchoAddTx": 3, "MPJoinSynTx": tc.joins})
			w.calm("MPRstTx", "RmAddrDrop") // of the subflow over the path that is gone; copies of the removal
		})
	}
}

// TestAnnouncementOfKernel: the kernel announces an address, with and without a port; we believe its HMAC, echo it and join. When the kernel removes it, the
// subflow goes.
func TestAnnouncementOfKernel(t *testing.T) {
	upward, down := stream(16*mib, 33), stream(16*mib, 34)
	for _, tc := range []struct {
		name   string
		role   int
		addr   string
		port   []string
		noJoin bool // the kernel says flag C
	}{
		{"IPv4", 0, "10.2.0.1", nil, false},
		{"IPv6", 1, "fd00:2::1", nil, false},
		{"IPv4 with port", 0, "10.2.0.1", []string{"port", "5100"}, false},
		{"IPv6 with port", 1, "fd00:2::1", []string{"port", "5100"}, false}, // 40 bytes have no room for timestamps beside it
		{"IPv4 with flag C", 0, "10.2.0.1", []string{"port", "5100"}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, setup{links: 2, limits: true})
			if tc.role == 1 && tc.port != nil {
				w.ns.Sysctl("ipv4/tcp_timestamps", "0")
			}
			if tc.noJoin {
				w.ns.Sysctl("mptcp/allow_join_initial_addr_port", "0")
			}
			w.ns.IP(append([]string{"mptcp", "endpoint", "add", tc.addr, "id", "9"}, append(tc.port, "signal")...)...)
			addr := netip.MustParseAddr(tc.addr)
			p := roles[tc.role].dial(w, true)
			send(t, p.own, p.kernel, []byte("hello"))
			w.until("the join", func() bool { return announced(p, addr) != nil })
			sf := announced(p, addr)
			if want := uint16(servicePort); tc.port == nil && sf.Remote.Port() != want || tc.port != nil && sf.Remote.Port() != 5100 || sf.RemoteID != 9 {
				t.Errorf("joined %v, address ID %d", sf.Remote, sf.RemoteID)
			}
			if info := p.own.Info(); len(info.PeerAddresses) != 1 || tc.noJoin && len(info.Subflows) != 2 {
				t.Errorf("%d subflows, announced %v", len(info.Subflows), info.PeerAddresses)
			}
			w.until("the echo", func() bool { return w.count("EchoAdd") == 1 })
			send(t, p.own, p.kernel, down[:4*mib])
			w.wantMPTCP(p)
			w.ns.IP("mptcp", "endpoint", "delete", "id", "9")
			w.until("the removal", func() bool {
				return w.engine.Counters().RemoveAddrsReceived > 0 && announced(p, addr) == nil && len(p.own.Info().PeerAddresses) == 0
			})
			exchange(t, p, upward, down)
			if n := w.engine.Counters(); n.AddAddrsBadMAC+n.AddAddrsClashing != 0 || n.AddAddrEchoesSent != 1 {
				t.Errorf("%+v", n.AddressCounters)
			}
			w.calm("MPRstTx")
		})
	}
}

// TestRemovalToKernel: a path of ours vanishes. RFC 8684, Section 3.4.2: the kernel learns it by REMOVE_ADDR, of the initial address too, and the
// stream goes on.
func TestRemovalToKernel(t *testing.T) {
	upward, down := stream(16*mib, 35), stream(16*mib, 36)
	for _, link := range []int{0, 1} {
		w := newWorld(t, setup{links: 2, limits: true})
		p := roles[0].dial(w, true)
		w.joined(p, "tun1", "tun2")
		send(t, p.own, p.kernel, down[:4*mib])
		w.engine.RemovePath(w.paths[link][0])
		w.until("the removal", func() bool { return w.count("RmAddr") >= 1 })
		exchange(t, p, upward, down)
		w.wantMPTCP(p)
		w.calm("MPRstTx", "RmAddrDrop")
	}
}
