package device

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// configureLink gives an interface its MTU, the kernel's addresses, brings it up and sets the routes to the stack's addresses.
func configureLink(name string, cfg TUNConfig) error {
	ifc, err := net.InterfaceByName(name)
	if err != nil {
		return fmt.Errorf("device: no interface %s: %w", name, err)
	}
	nl, err := dialNetlink()
	if err != nil {
		return fmt.Errorf("device: %s: %w", name, err)
	}
	defer nl.close()
	if err := nl.setLink(ifc.Index, cfg.MTU); err != nil {
		return fmt.Errorf("device: bring up %s: %w", name, err)
	}
	for _, p := range cfg.Kernel {
		if err := nl.addAddress(ifc.Index, p); err != nil {
			return fmt.Errorf("device: address %s on %s: %w", p, name, err)
		}
	}
	for _, a := range cfg.Own {
		if err := nl.addRoute(ifc.Index, a); err != nil {
			return fmt.Errorf("device: route to %s over %s: %w", a, name, err)
		}
	}
	return nil
}

// deleteLink removes an interface.
func deleteLink(name string) error {
	ifc, err := net.InterfaceByName(name)
	if err != nil {
		return fmt.Errorf("device: no interface %s: %w", name, err)
	}
	nl, err := dialNetlink()
	if err != nil {
		return fmt.Errorf("device: %s: %w", name, err)
	}
	defer nl.close()
	nl.begin(unix.RTM_DELLINK, 0)
	nl.body(unix.IfInfomsg{Index: int32(ifc.Index)})
	if err := nl.do(); err != nil {
		return fmt.Errorf("device: remove %s: %w", name, err)
	}
	return nil
}

// netlink talks to the kernel's routing configuration: rtnetlink(7). One request at a time.
type netlink struct {
	fd  int
	msg []byte
	seq uint32
}

func dialNetlink() (*netlink, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, os.NewSyscallError("netlink socket", err)
	}
	return &netlink{fd: fd}, nil
}

func (n *netlink) close() { unix.Close(n.fd) }

// setLink brings an interface up, and sets its MTU if it is positive.
func (n *netlink) setLink(index, mtu int) error {
	n.begin(unix.RTM_NEWLINK, 0)
	n.body(unix.IfInfomsg{Index: int32(index), Flags: unix.IFF_UP, Change: unix.IFF_UP})
	if mtu > 0 {
		n.attribute(unix.IFLA_MTU, binary.NativeEndian.AppendUint32(nil, uint32(mtu)))
	}
	return n.do()
}

// addAddress puts an address on an interface; one that is there already is left as it is.
func (n *netlink) addAddress(index int, p netip.Prefix) error {
	n.begin(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_REPLACE)
	n.body(unix.IfAddrmsg{Family: family(p.Addr()), Prefixlen: uint8(p.Bits()), Index: uint32(index)})
	n.attribute(unix.IFA_LOCAL, p.Addr().AsSlice())
	n.attribute(unix.IFA_ADDRESS, p.Addr().AsSlice())
	if p.Addr().Is6() { // nobody else can have it on a point-to-point link
		n.attribute(unix.IFA_FLAGS, binary.NativeEndian.AppendUint32(nil, unix.IFA_F_NODAD))
	}
	return n.do()
}

// addRoute routes one address to an interface.
func (n *netlink) addRoute(index int, to netip.Addr) error {
	n.begin(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_REPLACE)
	n.body(unix.RtMsg{
		Family: family(to), Dst_len: uint8(to.BitLen()), Table: unix.RT_TABLE_MAIN, Protocol: unix.RTPROT_BOOT,
		Scope: unix.RT_SCOPE_LINK, Type: unix.RTN_UNICAST,
	})
	n.attribute(unix.RTA_DST, to.AsSlice())
	n.attribute(unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, uint32(index)))
	return n.do()
}

func family(a netip.Addr) uint8 {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// begin starts a request.
func (n *netlink) begin(kind uint16, flags uint16) {
	n.seq++
	n.msg = append(n.msg[:0], make([]byte, unix.SizeofNlMsghdr)...)
	h := (*unix.NlMsghdr)(unsafe.Pointer(&n.msg[0]))
	h.Type, h.Flags, h.Seq = kind, unix.NLM_F_REQUEST|unix.NLM_F_ACK|flags, n.seq
}

// body appends the request's fixed part, one of the structures of rtnetlink(7).
func (n *netlink) body(v any) {
	var err error
	n.msg, err = binary.Append(n.msg, binary.NativeEndian, v)
	if err != nil {
		panic(err) // a structure without a fixed size
	}
}

// attribute appends an attribute, padded to 4 bytes.
func (n *netlink) attribute(kind uint16, value []byte) {
	n.msg = binary.NativeEndian.AppendUint16(n.msg, uint16(unix.SizeofRtAttr+len(value)))
	n.msg = binary.NativeEndian.AppendUint16(n.msg, kind)
	n.msg = append(n.msg, value...)
	for len(n.msg)%unix.RTA_ALIGNTO != 0 {
		n.msg = append(n.msg, 0)
	}
}

// do sends the request and returns what the kernel says to it.
func (n *netlink) do() error { return n.dump(func([]byte) {}) }

// ask sends the request and returns the body of the answer, nil if there was none.
func (n *netlink) ask() (body []byte, err error) {
	if err = n.dump(func(part []byte) { body = slices.Clone(part) }); err != nil {
		return nil, err
	}
	return body, nil
}

// dump sends the request and calls f for the body of each part of the answer, which is valid during the call only.
func (n *netlink) dump(f func(body []byte)) error {
	(*unix.NlMsghdr)(unsafe.Pointer(&n.msg[0])).Len = uint32(len(n.msg))
	if err := unix.Sendto(n.fd, n.msg, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return os.NewSyscallError("netlink send", err)
	}
	answer := make([]byte, 32<<10)
	for {
		size, _, err := unix.Recvfrom(n.fd, answer, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return os.NewSyscallError("netlink receive", err)
		}
		for b := answer[:size]; len(b) >= unix.SizeofNlMsghdr; {
			h := (*unix.NlMsghdr)(unsafe.Pointer(&b[0]))
			length := int(h.Len)
			if length < unix.SizeofNlMsghdr || length > len(b) {
				break
			}
			data := b[unix.SizeofNlMsghdr:length]
			switch {
			case h.Seq != n.seq, h.Type == unix.NLMSG_ERROR && len(data) < 4:
			case h.Type == unix.NLMSG_ERROR || h.Type == unix.NLMSG_DONE:
				if len(data) >= 4 {
					if code := int32(binary.NativeEndian.Uint32(data)); code != 0 {
						return unix.Errno(-code)
					}
				}
				return nil
			default:
				f(data)
			}
			b = b[min((length+3)&^3, len(b)):]
		}
	}
}
