package device

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// bindInterface ties a socket to an interface before it is bound to an address. Kernels since 5.7 let anyone do so; where it
// is refused, the interface is at least asked for by index when the kernel looks for a route.
func bindInterface(fd int, network string, ifc *net.Interface) error {
	err := unix.BindToDevice(fd, ifc.Name)
	if !errors.Is(err, unix.EPERM) {
		return err
	}
	index := int(networkIndex(uint32(ifc.Index)))
	if network == "udp6" {
		return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_UNICAST_IF, index)
	}
	return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_UNICAST_IF, index)
}

// setOptions sets everything that Read and Write rely on. Offload is used if the kernel has it.
func (p *port) setOptions(fd int, cfg Config) error {
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return err
	}
	p.six = domain == unix.AF_INET6
	setBuffer(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, cfg.ReceiveBuffer)
	setBuffer(fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, cfg.SendBuffer)

	// DF set, and no path MTU of the kernel's in the way: the stack probes for itself (RFC 8899, Section 4.2).
	if p.six {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE)
		// The IPv4 side of a dual-stack socket; a pure IPv6 one may refuse.
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE)
	} else {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE)
	}
	if err != nil {
		return err
	}
	if p.u.local.Addr().IsUnspecified() {
		if p.six {
			err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
		} else {
			err = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
		}
		if err != nil {
			return err
		}
		p.sources = new(sources)
	}
	// What the socket has lost comes along as a control message, and only if it has lost anything.
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1); err != nil {
		return err
	}
	if !cfg.NoOffload {
		_, err := unix.GetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT)
		p.segment.Store(err == nil)
		// Kernels before 5.0 have no UDP_GRO: datagrams then come one by one.
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_GRO, 1)
	}
	return nil
}

// setBuffer asks for a buffer beyond the system's limit, which takes privilege, and else for as much as the limit allows.
// Smaller buffers lose packets, not correctness.
func setBuffer(fd, force, plain, bytes int) {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, bytes) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, plain, bytes)
	}
}
