package device

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"braid/internal/netns"
)

// knock dials a port of the namespace's own kernel for a moment.
func knock(ns *netns.Namespace, at netip.AddrPort) error {
	return ns.Do(func() error {
		c, err := net.DialTimeout("tcp", at.String(), 200*time.Millisecond)
		if err == nil {
			c.Close()
		}
		return err
	})
}

// hold takes a port in a namespace.
func hold(t *testing.T, ns *netns.Namespace, at netip.AddrPort) *Hold {
	t.Helper()
	var h *Hold
	ns.Must(func() (err error) {
		h, err = HoldPort(at)
		return err
	})
	t.Cleanup(h.Close)
	return h
}

// TestHold: while a port is held the kernel neither accepts nor refuses what comes for it, over either family, and nobody else gets it; afterwards
// it is as before (RFC 9293, Section 3.10.7.1).
func TestHold(t *testing.T) {
	ns := netns.New(t)
	any4, any6 := netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()
	h := hold(t, ns, netip.AddrPortFrom(netip.IPv6Unspecified(), 0))
	if h.Ports.First == 0 || h.Ports.Count != 1 {
		t.Fatalf("holds %+v", h.Ports)
	}
	for _, addr := range []netip.Addr{any4, any6} {
		at := netip.AddrPortFrom(addr, h.Ports.First)
		var timeout net.Error
		if err := knock(ns, at); !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("%s while it is held: %v, want silence", at, err)
		}
	}
	err := ns.Do(func() error {
		_, err := HoldPort(netip.AddrPortFrom(any4, h.Ports.First))
		return err
	})
	if !errors.Is(err, unix.EADDRINUSE) || !strings.Contains(err.Error(), "another program has it") {
		t.Errorf("the port again: %v", err)
	}
	h.Close()
	for _, addr := range []netip.Addr{any4, any6} {
		if err := knock(ns, netip.AddrPortFrom(addr, h.Ports.First)); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("%s after it was held: %v, want a refusal", addr, err)
		}
	}
}

// TestHoldAtAnAddress leaves the port at other addresses to others.
func TestHoldAtAnAddress(t *testing.T) {
	ns := netns.New(t)
	h := hold(t, ns, netip.MustParseAddrPort("127.0.0.2:0"))
	hold(t, ns, netip.AddrPortFrom(netip.IPv6Loopback(), h.Ports.First))
	ns.Must(func() error {
		l, err := net.Listen("tcp", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.3"), h.Ports.First).String())
		if err == nil {
			l.Close()
		}
		return err
	})
	err := ns.Do(func() error {
		_, err := HoldPort(netip.MustParseAddrPort("192.0.2.77:80"))
		return err
	})
	if !errors.Is(err, unix.EADDRNOTAVAIL) || !strings.Contains(err.Error(), "no interface has that address") {
		t.Errorf("an address of nobody's: %v", err)
	}
}

// TestHoldBlock holds each port of a block, and finds another block where one port is taken.
func TestHoldBlock(t *testing.T) {
	ns := netns.New(t)
	var blocks []*Hold
	for range 3 {
		ns.Must(func() error {
			h, err := HoldBlock(64)
			if err == nil {
				blocks = append(blocks, h)
			}
			return err
		})
		t.Cleanup(blocks[len(blocks)-1].Close)
	}
	for i, h := range blocks {
		if h.Ports.Count != 64 || h.Ports.First < firstDynamic || int(h.Ports.First)+64 > 1<<16 {
			t.Errorf("holds %+v", h.Ports)
		}
		for _, port := range []uint16{h.Ports.First, h.Ports.First + 31, h.Ports.First + 63} {
			ns.Must(func() error {
				if l, err := net.Listen("tcp", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port).String()); err == nil {
					l.Close()
					t.Errorf("port %d of block %d is free", port, i)
				}
				return nil
			})
			for j, other := range blocks {
				if j != i && other.Ports.Contains(port) {
					t.Errorf("port %d is in blocks %d and %d", port, i, j)
				}
			}
		}
	}
}
