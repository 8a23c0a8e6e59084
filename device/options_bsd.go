//go:build freebsd || netbsd || openbsd || dragonfly

package device

import (
	"net"
	"net/netip"
)

// bindInterface does nothing: these systems choose the interface by the route, and the bound address chooses among routes.
func bindInterface(int, string, *net.Interface) error { return nil }

// dontFragment does nothing: these systems differ too much in it. Packets larger than a path takes are fragmented there.
func dontFragment(uintptr, netip.Addr) {}
