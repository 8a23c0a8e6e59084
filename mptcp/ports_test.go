package mptcp

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"braid/clock"
	"braid/wire"
)

// TestPortsOfARow: subflows come from the ports that the driver has, each of them sooner or later, and when all are in use to one server there is no
// further connection. RFC 6056, Section 3.1: which one is not to be guessed.
func TestPortsOfARow(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s := NewStack(Config{Entropy: r.Uint64, FirstPort: 65528, PortCount: 8})
	id := s.AddPath(0, Path{Local: netip.MustParseAddrPort("192.0.2.1:0")})
	buf := make([]byte, 2000)
	seen := map[uint16]bool{}
	for range 8 {
		if _, err := s.Dial(0, Target{Remote: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.2:80")}, Paths: []PathID{id}}); err != nil {
			t.Fatal(err)
		}
		for {
			p, ok := s.PollPacket(clock.Time(0), buf)
			if !ok {
				break
			}
			var ip wire.IP
			var seg wire.Segment
			if err := wire.ParseIP(buf[:p.Len], &ip); err != nil {
				t.Fatal(err)
			}
			if err := wire.ParseTCP(ip.Payload, &seg); err != nil {
				t.Fatal(err)
			}
			if seg.SrcPort < 65528 || seen[seg.SrcPort] {
				t.Errorf("port %d, after %v", seg.SrcPort, seen)
			}
			seen[seg.SrcPort] = true
		}
	}
	if len(seen) != 8 {
		t.Errorf("%d ports used", len(seen))
	}
	if c, err := s.Dial(0, Target{Remote: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.2:80")}, Paths: []PathID{id}}); err == nil {
		if _, ok := s.PollPacket(0, buf); ok || c.Established() {
			t.Error("a ninth connection from eight ports")
		}
	}
}
