//go:build linux

package interop

import (
	"testing"

	"braid/mptcp"
)

// roles are the ways to connect the two stacks.
var roles = []struct {
	name string
	dial func(w *world, multipath bool) pair // multipath: of the kernel's end
}{
	{"braid dials IPv4", func(w *world, multipath bool) pair { return w.dialKernel(kernel4(1), multipath) }},
	{"braid dials IPv6", func(w *world, multipath bool) pair { return w.dialKernel(kernel6(1), multipath) }},
	{"kernel dials IPv4", func(w *world, multipath bool) pair { return w.dialOwn(own4(1), multipath) }},
	{"kernel dials IPv6", func(w *world, multipath bool) pair { return w.dialOwn(own6(1), multipath) }},
}

// TestOneSubflow moves data both ways at once: the handshake (RFC 8684, Section 3.1), mappings and acknowledgements (Section 3.3) and the close of
// both directions (Section 3.3.3) are what the kernel takes them for.
func TestOneSubflow(t *testing.T) {
	up, down := stream(64*mib, 1), stream(64*mib, 2)
	for _, role := range roles {
		for _, packets := range []string{"offloaded", "on the wire"} {
			t.Run(role.name+" "+packets, func(t *testing.T) {
				w := newWorld(t, setup{noOffload: packets != "offloaded"})
				p := role.dial(w, true)
				w.wantMPTCP(p)
				if packets == "offloaded" {
					exchange(t, p, up, down)
				} else {
					exchange(t, p, up[:len(up)/4], down[:len(down)/4])
				}
				w.wantMPTCP(p)
				w.calm()
			})
		}
	}
}

// TestChecksums checks that the A bit is negotiated as RFC 8684, Section 3.1 says (one that asks is enough), and that what each end
// computes is what the other verifies (Section 3.3.1).
func TestChecksums(t *testing.T) {
	up, down := stream(8*mib, 3), stream(8*mib, 4)
	for _, role := range roles {
		for _, who := range []struct {
			name        string
			own, kernel bool
		}{{"braid asks", true, false}, {"kernel asks", false, true}, {"both ask", true, true}} {
			t.Run(role.name+" "+who.name, func(t *testing.T) {
				w := newWorld(t, setup{checksums: who.kernel, stack: mptcp.Config{Checksums: who.own}})
				p := role.dial(w, true)
				if !p.own.Info().Checksums {
					t.Error("no checksums")
				}
				exchange(t, p, up, down)
				w.wantMPTCP(p)
				w.calm()
			})
		}
	}
}

// TestPlainPeer talks to a kernel end that does not speak MPTCP: RFC 8684, Section 3.7, the fallback at the handshake.
func TestPlainPeer(t *testing.T) {
	up, down := stream(8*mib, 5), stream(8*mib, 6)
	for i, role := range roles {
		t.Run(role.name, func(t *testing.T) {
			w := newWorld(t, setup{})
			p := role.dial(w, false)
			exchange(t, p, up, down)
			want := mptcp.FallbackNotAnswered
			if i >= 2 {
				want = mptcp.FallbackNotOffered
			}
			if got := p.own.Info().Fallback; got != want {
				t.Errorf("fallback %v, want %v", got, want)
			}
			w.calm()
		})
	}
}

// TestPlainStack is the other way round: ours does not speak MPTCP, the kernel falls back.
func TestPlainStack(t *testing.T) {
	up, down := stream(8*mib, 7), stream(8*mib, 8)
	for i, role := range roles {
		t.Run(role.name, func(t *testing.T) {
			w := newWorld(t, setup{stack: mptcp.Config{NoMPTCP: true}})
			p := role.dial(w, true)
			exchange(t, p, up, down)
			if is, err := p.kernel.MultipathTCP(); err != nil || is {
				t.Errorf("the kernel's end is MPTCP: %v, %v", is, err)
			}
			if i >= 2 {
				w.wantCounts(map[string]int64{"MPCapableFallbackSYNACK": 1})
			}
			w.calm("MPCapableFallbackSYNACK")
		})
	}
}
