package device

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Hold keeps TCP ports of this machine for a stack in user space. Its kernel neither gives them to other programs nor answers what arrives
// for them: a RST for each segment, as for any port where nobody listens (RFC 9293, Section 3.10.7.1), would end the stack's connections.
//
// It is a listening socket for each port, with a filter that drops everything: the kernel finds the socket of every segment that goes
// there, and before it looks at the segment the filter throws it away. A Raw device has had its copy by then. Compared with rules of the
// kernel's packet filter, there is nothing to undo: however the process ends, its sockets end with it. It needs no program and no module, and
// connection tracking sees both directions of what it follows.
type Hold struct {
	Ports Ports
	fds   []int
}

// HoldPort holds one port at an address, at all addresses of both families if it is unspecified. Port 0 is one that is free.
func HoldPort(local netip.AddrPort) (*Hold, error) {
	fd, port, err := holdSocket(local)
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		err = fmt.Errorf("%w: another program has it (see \"ss -tlnp\")", err)
	case errors.Is(err, unix.EPERM):
		err = unprivileged(err)
	case errors.Is(err, unix.EACCES):
		err = fmt.Errorf("%w: ports this low take root or CAP_NET_BIND_SERVICE", err)
	case errors.Is(err, unix.EADDRNOTAVAIL):
		err = fmt.Errorf("%w: no interface has that address", err)
	}
	if err != nil {
		return nil, fmt.Errorf("device: cannot hold TCP port %d at %s: %w", local.Port(), local.Addr(), err)
	}
	return &Hold{Ports: Ports{First: port, Count: 1}, fds: []int{fd}}, nil
}

const (
	firstDynamic = 32768 // where blocks are looked for: as package mptcp's ports
	holdTries    = 512
)

// HoldBlock holds count ports next to each other at all addresses, for connections that the stack opens. Where they are is random (RFC 6056,
// Section 3.1).
func HoldBlock(count int) (*Hold, error) {
	if count < 1 || count > 1024 {
		panic("device: a block of ports is 1 to 1024")
	}
	var err error
	for range holdTries {
		h := &Hold{Ports: Ports{First: uint16(firstDynamic + rand.IntN(1<<16-firstDynamic-count)), Count: count}}
		if err = h.fill(); err == nil {
			return h, nil
		}
		h.Close()
		if !errors.Is(err, unix.EADDRINUSE) {
			break
		}
	}
	if errors.Is(err, unix.EPERM) {
		err = unprivileged(err)
	}
	return nil, fmt.Errorf("device: cannot hold %d TCP ports next to each other: %w", count, err)
}

func (h *Hold) fill() error {
	for i := range h.Ports.Count {
		fd, _, err := holdSocket(netip.AddrPortFrom(netip.IPv6Unspecified(), h.Ports.First+uint16(i)))
		if err != nil {
			return err
		}
		h.fds = append(h.fds, fd)
	}
	return nil
}

// unprivileged says what is missing. CAP_NET_RAW is for the sockets of Raw; socket filters take CAP_NET_ADMIN on some kernels, and so does finding out
// whether rows may be sent.
func unprivileged(err error) error {
	return fmt.Errorf("%w: it takes root, or CAP_NET_RAW and CAP_NET_ADMIN (\"setcap cap_net_raw,cap_net_admin+ep\" gives them to a program)", err)
}

// Close gives the ports back. From then on the kernel answers what still arrives for them.
func (h *Hold) Close() {
	for _, fd := range h.fds {
		unix.Close(fd)
	}
	h.fds = nil
}

// dropAll is the filter of such a socket.
var dropAll = []bpf.Instruction{bpf.RetConstant{Val: 0}}

// holdSocket opens a socket that listens and hears nothing.
func holdSocket(local netip.AddrPort) (fd int, port uint16, err error) {
	addr := local.Addr()
	family := unix.AF_INET6
	if addr.Is4() && !addr.IsUnspecified() {
		family = unix.AF_INET
	}
	fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_TCP)
	if errors.Is(err, unix.EAFNOSUPPORT) && addr.IsUnspecified() { // a machine without IPv6
		family = unix.AF_INET
		fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_TCP)
	}
	if err != nil {
		return 0, 0, err
	}
	if port, err = holdWith(fd, family, local); err != nil {
		unix.Close(fd)
		return 0, 0, err
	}
	return fd, port, nil
}

func holdWith(fd, family int, local netip.AddrPort) (port uint16, err error) {
	if err := attachFilter(fd, dropAll); err != nil {
		return 0, err
	}
	var sa unix.Sockaddr
	if family == unix.AF_INET {
		sa = &unix.SockaddrInet4{Port: int(local.Port())}
		if local.Addr().Is4() {
			sa = &unix.SockaddrInet4{Port: int(local.Port()), Addr: local.Addr().As4()}
		}
	} else {
		only := 1
		if local.Addr().IsUnspecified() {
			only = 0
		}
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, only); err != nil {
			return 0, err
		}
		six := &unix.SockaddrInet6{Port: int(local.Port())}
		if !local.Addr().IsUnspecified() {
			six.Addr = local.Addr().As16()
		}
		var z zones
		if zone := local.Addr().Zone(); zone != "" {
			six.ZoneId = z.index(zone)
		}
		sa = six
	}
	if err := unix.Bind(fd, sa); err != nil {
		return 0, err
	}
	if err := unix.Listen(fd, 1); err != nil {
		return 0, err
	}
	bound, err := unix.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	switch b := bound.(type) {
	case *unix.SockaddrInet4:
		return uint16(b.Port), nil
	case *unix.SockaddrInet6:
		return uint16(b.Port), nil
	}
	panic("device: a TCP socket of an unknown family")
}

// attachFilter gives a socket a filter: what it drops is never seen.
func attachFilter(fd int, program []bpf.Instruction) error {
	assembled, err := bpf.Assemble(program)
	if err != nil {
		panic(err) // a program of ours that makes no sense
	}
	filter := make([]unix.SockFilter, len(assembled))
	for i, in := range assembled {
		filter[i] = unix.SockFilter{Code: in.Op, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]})
}
