package device

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// nextHops remembers for a while which way the kernel sends packets to a destination. It is a cache without chains.
type nextHops struct {
	local netip.Addr
	index int // the only interface; 0: any
	slots [256]nextHop

	mu     sync.Mutex // Close may come while Write asks
	routes *netlink   // nil: closed
	bypass bypass
}

const (
	hopKept   = time.Second            // then the kernel is asked anew
	hopUnable = 200 * time.Millisecond // ... if it did not know
)

// nextHop is how packets to a destination leave.
type nextHop struct {
	to     netip.Addr
	until  time.Time
	known  bool // the rest is valid
	index  int  // interface
	length int  // bytes of the link's header
	header [ethernetHeader]byte
}

// init opens what asks the kernel, now: a later moment may be another network namespace's.
func (n *nextHops) init(local netip.Addr, index int) (err error) {
	n.local, n.index = local, index
	if n.routes, err = dialNetlink(); err != nil {
		return err
	}
	n.bypass.init(family(local))
	return nil
}

func (n *nextHops) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.routes != nil {
		n.routes.close()
		n.routes = nil
	}
	n.bypass.close()
}

// of returns the way of a packet, nil if it is not known or has just been found out.
func (n *nextHops) of(packet []byte) *nextHop {
	var to netip.Addr
	if n.local.Is4() {
		to = netip.AddrFrom4([4]byte(packet[16:]))
	} else {
		to = netip.AddrFrom16([16]byte(packet[24:]))
	}
	hop := &n.slots[slotOf(netip.AddrPortFrom(to, 0))%len(n.slots)]
	now := time.Now()
	if hop.to == to && now.Before(hop.until) {
		if !hop.known {
			return nil
		}
		return hop
	}
	*hop = nextHop{to: to, until: now.Add(hopUnable)}
	if err := n.find(hop); err == nil && hop.known {
		hop.until = now.Add(hopKept)
	}
	return nil
}

// forget makes that every destination is asked for anew: what was known has not worked.
func (n *nextHops) forget() {
	for i := range n.slots {
		n.slots[i].known = false
	}
}

// find asks the kernel. An error, or a way that rows cannot go, leaves the hop unknown.
func (n *nextHops) find(hop *nextHop) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	nl := n.routes
	if nl == nil || hop.to.IsLinkLocalUnicast() || !n.bypass.harmless(time.Now()) {
		return nil
	}
	gateway, index, err := n.route(nl, hop.to)
	if err != nil || index == 0 || n.index != 0 && n.index != index {
		return err
	}
	hop.index = index
	kind, own, err := linkOf(nl, index)
	if err != nil {
		return err
	}
	switch kind {
	case unix.ARPHRD_NONE, unix.ARPHRD_RAWIP, unix.ARPHRD_PPP: // a link of two ends
		hop.known = true
		return nil
	case unix.ARPHRD_ETHER:
	default:
		return nil
	}
	peer, err := neighbour(nl, gateway, index)
	if err != nil || len(peer) != 6 || len(own) != 6 {
		return err
	}
	hop.length = ethernetHeader
	copy(hop.header[:], peer)
	copy(hop.header[6:], own)
	kindOf := uint16(unix.ETH_P_IP)
	if hop.to.Is6() {
		kindOf = unix.ETH_P_IPV6
	}
	binary.BigEndian.PutUint16(hop.header[12:], kindOf)
	hop.known = true
	return nil
}

// route returns the next hop (the destination itself on its own link) and the interface; 0 if that is not for rows.
func (n *nextHops) route(nl *netlink, to netip.Addr) (gateway netip.Addr, index int, err error) {
	nl.begin(unix.RTM_GETROUTE, 0)
	nl.body(unix.RtMsg{Family: family(to), Dst_len: uint8(to.BitLen()), Src_len: uint8(to.BitLen())})
	nl.attribute(unix.RTA_DST, to.AsSlice())
	nl.attribute(unix.RTA_SRC, n.local.AsSlice())
	if n.index != 0 {
		nl.attribute(unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, uint32(n.index)))
	}
	answer, err := nl.ask()
	if err != nil || len(answer) < unix.SizeofRtMsg {
		return to, 0, err
	}
	m := (*unix.RtMsg)(unsafe.Pointer(&answer[0]))
	if m.Type != unix.RTN_UNICAST {
		return to, 0, nil
	}
	gateway = to
	lightweight := false
	attributes(answer[unix.SizeofRtMsg:], func(kind uint16, value []byte) {
		switch kind {
		case unix.RTA_OIF:
			index = int(binary.NativeEndian.Uint32(value))
		case unix.RTA_GATEWAY:
			gateway, _ = netip.AddrFromSlice(value)
		case unix.RTA_VIA:
			gateway, _ = netip.AddrFromSlice(value[min(2, len(value)):])
		case unix.RTA_ENCAP, unix.RTA_ENCAP_TYPE:
			lightweight = true // a tunnel in the route
		}
	})
	if lightweight || !gateway.IsValid() {
		return gateway, 0, nil
	}
	return gateway, index, nil
}

// linkOf returns the kind of an interface, one of ARPHRD_*, and its link address.
func linkOf(nl *netlink, index int) (kind uint16, address []byte, err error) {
	nl.begin(unix.RTM_GETLINK, 0)
	nl.body(unix.IfInfomsg{Index: int32(index)})
	answer, err := nl.ask()
	if err != nil || len(answer) < unix.SizeofIfInfomsg {
		return 0, nil, err
	}
	attributes(answer[unix.SizeofIfInfomsg:], func(kind uint16, value []byte) {
		if kind == unix.IFLA_ADDRESS {
			address = slices.Clone(value)
		}
	})
	return (*unix.IfInfomsg)(unsafe.Pointer(&answer[0])).Type, address, nil
}

// neighbour returns a link address that the kernel would send to now without asking first; nil if it has none.
func neighbour(nl *netlink, of netip.Addr, index int) (address []byte, err error) {
	nl.begin(unix.RTM_GETNEIGH, 0)
	nl.body(unix.NdMsg{Family: family(of), Ifindex: int32(index)})
	nl.attribute(unix.NDA_DST, of.AsSlice())
	answer, err := nl.ask()
	if err == unix.ENOENT {
		return nil, nil
	}
	if err != nil || len(answer) < unix.SizeofNdMsg {
		return nil, err
	}
	const valid = unix.NUD_PERMANENT | unix.NUD_REACHABLE | unix.NUD_STALE | unix.NUD_DELAY | unix.NUD_PROBE
	if (*unix.NdMsg)(unsafe.Pointer(&answer[0])).State&valid == 0 {
		return nil, nil
	}
	attributes(answer[unix.SizeofNdMsg:], func(kind uint16, value []byte) {
		if kind == unix.NDA_LLADDR {
			address = slices.Clone(value)
		}
	})
	return address, nil
}

// attributes calls f for each attribute of a message. It stops at one that cannot be.
func attributes(b []byte, f func(kind uint16, value []byte)) {
	for len(b) >= unix.SizeofRtAttr {
		length := int(binary.NativeEndian.Uint16(b))
		if length < unix.SizeofRtAttr || length > len(b) {
			return
		}
		f(binary.NativeEndian.Uint16(b[2:])&^(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER), b[unix.SizeofRtAttr:length])
		b = b[min((length+3)&^3, len(b)):]
	}
}
