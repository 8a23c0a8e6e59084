package device

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

var errFamily = errors.New("device: an IPv4 socket cannot reach an IPv6 address, nor the other way round")

// setDestination writes the address of the next messages and remembers which local address to send them from.
func (p *port) setDestination(to netip.AddrPort) error {
	h := &p.tx.hdr
	if !p.six {
		if !to.Addr().Unmap().Is4() {
			return errFamily
		}
		p.tx.name4 = unix.RawSockaddrInet4{Family: unix.AF_INET, Port: networkPort(to.Port()), Addr: to.Addr().Unmap().As4()}
		h.Name, h.Namelen = (*byte)(unsafe.Pointer(&p.tx.name4)), unix.SizeofSockaddrInet4
	} else {
		if to.Addr().Is4() && p.u.local.Addr().Is6() && !p.u.local.Addr().IsUnspecified() {
			return errFamily
		}
		p.tx.name6 = unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: networkPort(to.Port()), Addr: to.Addr().As16()}
		if zone := to.Addr().Zone(); zone != "" {
			p.tx.name6.Scope_id = p.zones.index(zone)
		}
		h.Name, h.Namelen = (*byte)(unsafe.Pointer(&p.tx.name6)), unix.SizeofSockaddrInet6
	}
	p.source = netip.Addr{}
	if p.sources != nil {
		p.source = p.sources.of(to)
	}
	return nil
}

// setControl writes the control messages of the next message: the segment size (0: none) and the source address if the
// socket is bound to none.
func (p *port) setControl(segment int) {
	b := p.tx.controlBytes()
	n := 0
	if segment > 0 {
		*(*uint16)(putControl(b, &n, unix.IPPROTO_UDP, unix.UDP_SEGMENT, 2)) = uint16(segment)
	}
	switch {
	case !p.source.IsValid():
	case p.six:
		*(*unix.Inet6Pktinfo)(putControl(b, &n, unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, unix.SizeofInet6Pktinfo)) =
			unix.Inet6Pktinfo{Addr: p.source.As16()}
	default:
		*(*unix.Inet4Pktinfo)(putControl(b, &n, unix.IPPROTO_IP, unix.IP_PKTINFO, unix.SizeofInet4Pktinfo)) =
			unix.Inet4Pktinfo{Spec_dst: p.source.As4()}
	}
	h := &p.tx.hdr
	h.Control = nil
	if n > 0 {
		h.Control = &b[0]
	}
	h.SetControllen(n)
}

// putControl writes the header of a control message at b[*n:], moves *n behind its data, and returns where the data goes.
func putControl(b []byte, n *int, level, kind int32, size int) unsafe.Pointer {
	h := (*unix.Cmsghdr)(unsafe.Pointer(&b[*n]))
	h.Level, h.Type = level, kind
	h.SetLen(unix.CmsgLen(size))
	data := unsafe.Pointer(&b[*n+unix.CmsgLen(0)])
	*n += unix.CmsgSpace(size)
	return data
}

// received is what the control messages of a message tell.
type received struct {
	segment  int        // size of the coalesced datagrams; 0: the message is one
	local    netip.Addr // which of our addresses it was sent to; zero: not told
	overflow uint32     // how much the socket has lost so far for want of buffer; 0: not told
}

// parseControl reads a row of control messages. It stops at the first that cannot be.
func parseControl(b []byte) (r received) {
	for len(b) >= unix.SizeofCmsghdr {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
		length := int(h.Len)
		if length < unix.CmsgLen(0) || length > len(b) {
			return r
		}
		data := b[unix.CmsgLen(0):length]
		switch {
		case h.Level == unix.IPPROTO_UDP && h.Type == unix.UDP_GRO && len(data) >= 4:
			r.segment = int(*(*int32)(unsafe.Pointer(&data[0])))
		case h.Level == unix.SOL_SOCKET && h.Type == unix.SO_RXQ_OVFL && len(data) >= 4:
			r.overflow = *(*uint32)(unsafe.Pointer(&data[0]))
		case h.Level == unix.IPPROTO_IP && h.Type == unix.IP_PKTINFO && len(data) >= unix.SizeofInet4Pktinfo:
			r.local = netip.AddrFrom4((*unix.Inet4Pktinfo)(unsafe.Pointer(&data[0])).Spec_dst)
		case h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_PKTINFO && len(data) >= unix.SizeofInet6Pktinfo:
			r.local = netip.AddrFrom16((*unix.Inet6Pktinfo)(unsafe.Pointer(&data[0])).Addr)
		}
		b = b[min(unix.CmsgSpace(length-unix.CmsgLen(0)), len(b)):]
	}
	return r
}

// sources remembers which of the machine's addresses each peer sends to, so that answers leave from there: a socket that is
// bound to no address would let the routing table choose, and the peer's NAT would drop what comes from a stranger. It is a
// cache without chains: peers that fall on one slot take turns, and an unknown peer gets the routing table's choice.
type sources struct {
	mu    sync.Mutex
	slots [1024]struct {
		peer  netip.AddrPort
		local netip.Addr
	}
}

func slotOf(peer netip.AddrPort) int {
	h := uint32(peer.Port()) * 0x9e3779b1
	a := peer.Addr().As16()
	for i := 0; i < len(a); i += 4 {
		h = (h ^ (uint32(a[i])<<24 | uint32(a[i+1])<<16 | uint32(a[i+2])<<8 | uint32(a[i+3]))) * 0x85ebca6b
		h ^= h >> 15
	}
	return int(h % 1024)
}

func (s *sources) learn(peer netip.AddrPort, local netip.Addr) {
	slot := &s.slots[slotOf(peer)]
	s.mu.Lock()
	slot.peer, slot.local = peer, local
	s.mu.Unlock()
}

// of returns the address that peer sends to, or the zero Addr.
func (s *sources) of(peer netip.AddrPort) netip.Addr {
	slot := &s.slots[slotOf(peer)]
	s.mu.Lock()
	defer s.mu.Unlock()
	if slot.peer != peer {
		return netip.Addr{}
	}
	return slot.local
}

// zones remembers the last link-local zone in each direction: a socket rarely sees two.
type zones struct {
	mu     sync.Mutex
	last   string
	number uint32
}

func (z *zones) name(index uint32) string {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.number != index {
		z.number, z.last = index, strconv.Itoa(int(index))
		if ifc, err := net.InterfaceByIndex(int(index)); err == nil {
			z.last = ifc.Name
		}
	}
	return z.last
}

func (z *zones) index(name string) uint32 {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.last != name {
		n, err := strconv.ParseUint(name, 10, 32)
		if ifc, lookup := net.InterfaceByName(name); lookup == nil {
			n, err = uint64(ifc.Index), nil
		}
		if err != nil {
			return 0 // no such interface: the kernel refuses the packet
		}
		z.number, z.last = uint32(n), name
	}
	return z.number
}
