package device

import (
	"errors"
	"math/bits"
	"net"
	"net/netip"

	"golang.org/x/sys/windows"
)

// Socket options of ws2ipdef.h that x/sys/windows does not name.
const (
	ipUnicastIf   = 31 // IP_UNICAST_IF: interface index in network byte order
	ipv6UnicastIf = 31 // IPV6_UNICAST_IF: interface index in host byte order
	pmtudProbe    = 3  // IP_PMTUDISC_PROBE: DF set, the cached path MTU ignored
)

func isTooLarge(err error) bool { return errors.Is(err, windows.WSAEMSGSIZE) }

func isGone(err error) bool {
	return errors.Is(err, windows.WSAEADDRNOTAVAIL) || errors.Is(err, windows.WSAENETDOWN)
}

// isNotice tells the errors that a UDP socket reports about earlier packets, each once.
func isNotice(err error) bool {
	return errors.Is(err, windows.WSAECONNRESET) || errors.Is(err, windows.WSAENETRESET) || errors.Is(err, windows.WSAEMSGSIZE)
}

// bindInterface makes packets leave from an interface.
func bindInterface(fd int, network string, ifc *net.Interface) error {
	if network == "udp6" {
		return windows.SetsockoptInt(windows.Handle(fd), windows.IPPROTO_IPV6, ipv6UnicastIf, ifc.Index)
	}
	return windows.SetsockoptInt(windows.Handle(fd), windows.IPPROTO_IP, ipUnicastIf, int(int32(bits.ReverseBytes32(uint32(ifc.Index)))))
}

// dontFragment sets DF. Systems before Windows 10 refuse; large packets are then fragmented instead of lost.
func dontFragment(fd uintptr, local netip.Addr) {
	if local.Is6() {
		_ = windows.SetsockoptInt(windows.Handle(fd), windows.IPPROTO_IPV6, windows.IP_MTU_DISCOVER, pmtudProbe)
	}
	if local.Is4() || local.IsUnspecified() {
		_ = windows.SetsockoptInt(windows.Handle(fd), windows.IPPROTO_IP, windows.IP_MTU_DISCOVER, pmtudProbe)
	}
}
