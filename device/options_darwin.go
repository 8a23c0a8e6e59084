package device

import (
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// bindInterface ties a socket to an interface, which macOS permits to everyone.
func bindInterface(fd int, network string, ifc *net.Interface) error {
	if network == "udp6" {
		return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_BOUND_IF, ifc.Index)
	}
	return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_BOUND_IF, ifc.Index)
}

// dontFragment sets DF. Systems before macOS 11 refuse; large packets are then fragmented instead of lost.
func dontFragment(fd uintptr, local netip.Addr) {
	if local.Is6() {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_DONTFRAG, 1)
	}
	if local.Is4() || local.IsUnspecified() {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_DONTFRAG, 1)
	}
}
