package device

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	rawMessages    = 16 // packets that one recvmmsg takes; each may be a row that the kernel has merged
	ethernetHeader = 14 // destination, source, type
)

// Raw is a Device of whole IP packets from and to one of this machine's addresses, past its kernel's TCP.
//
// A packet socket takes them: it sees what arrives before the kernel's packet filter and its TCP do, and a filter of its own lets only
// the stack's ports through. It hands over as one packet what the kernel has merged (GRO), and says what is left to do with checksums: that is done
// here. A raw IP socket sends: the kernel then finds the route, the next hop and its link address, as for any packet of the
// machine's, and its packet filter sees them. What Write can send as one packet takes a shorter way: see rows.
//
// The kernel sees every packet that arrives too, as far as its packet filter lets it, and connection tracking follows both directions. A
// filter that silently drops them does not keep them from the stack; one that rejects them would answer the peer: so the ports are opened there as for
// any server.
type Raw struct {
	name  string // for errors: interface or address
	local netip.Addr
	index int // of the interface; 0: any
	mtu   int
	count counters

	closed atomic.Bool
	file   *os.File // packet socket: receives, and sends rows
	packet syscall.RawConn
	out    *os.File // raw IP socket: sends
	ip     syscall.RawConn

	rx     [rawMessages]rawSlot
	rxVec  [rawMessages]mmsghdr
	rxN    int
	rxErr  syscall.Errno
	readFn func(fd uintptr) bool

	tx   rawBatch
	rows rows
}

var _ Device = (*Raw)(nil)

type rawSlot struct {
	name    unix.RawSockaddrLinklayer
	iov     unix.Iovec
	control [controlSize / 8]uint64 // aligned
}

// OpenRaw opens a Raw device as cfg says. The error names what privilege is missing.
func OpenRaw(cfg RawConfig) (*Raw, error) {
	if len(cfg.Ports) == 0 || !cfg.Local.IsValid() || cfg.Local.IsUnspecified() {
		return nil, errors.New("device: a raw device needs an address of this machine and ports")
	}
	at := Config{Local: netip.AddrPortFrom(cfg.Local, 0), Interface: cfg.Interface}
	ifc, err := findInterface(at)
	if err != nil {
		return nil, err
	}
	if ifc == nil {
		return nil, fmt.Errorf("device: no interface has the address %s", cfg.Local)
	}
	r := &Raw{name: cfg.Local.String(), local: cfg.Local.WithZone("").Unmap(), mtu: ifc.MTU}
	if cfg.Interface != "" {
		r.name, r.index = cfg.Interface, ifc.Index
	}
	if err := r.open(cfg, ifc); err != nil {
		r.Close()
		if errors.Is(err, unix.EPERM) {
			err = unprivileged(err)
		}
		return nil, fmt.Errorf("device: cannot use %s past the kernel's TCP: %w", r.name, err)
	}
	return r, nil
}

func (r *Raw) open(cfg RawConfig, ifc *net.Interface) (err error) {
	if cfg.ReceiveBuffer == 0 {
		cfg.ReceiveBuffer = defaultRawReceiveBuffer
	}
	if cfg.SendBuffer == 0 {
		cfg.SendBuffer = defaultSendBuffer
	}
	if r.file, err = r.openPacket(cfg); err != nil {
		return err
	}
	if r.packet, err = r.file.SyscallConn(); err != nil {
		return err
	}
	if r.out, err = r.openIP(cfg, ifc); err != nil {
		return err
	}
	if r.ip, err = r.out.SyscallConn(); err != nil {
		return err
	}
	r.readFn = r.receive
	for i := range r.rx {
		s, h := &r.rx[i], &r.rxVec[i].hdr
		h.Name = (*byte)(unsafe.Pointer(&s.name))
		h.Iov = &s.iov
		h.SetIovlen(1)
		h.Control = (*byte)(unsafe.Pointer(&s.control))
	}
	r.tx.init(r)
	return r.rows.init(r, !cfg.NoOffload)
}

// openPacket opens the socket that receives. Until it is bound nothing reaches it, and then only what its filter lets through.
func (r *Raw) openPacket(cfg RawConfig) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, os.NewSyscallError("packet socket", err)
	}
	file := os.NewFile(uintptr(fd), "packet socket")
	fail := func(what string, err error) (*os.File, error) {
		file.Close()
		return nil, os.NewSyscallError(what, err)
	}
	setBuffer(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, cfg.ReceiveBuffer)
	setBuffer(fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, cfg.SendBuffer)
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1); err != nil {
		return fail("virtio headers", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1); err != nil {
		return fail("count of losses", err)
	}
	if err := attachFilter(fd, rawFilter(r.local, cfg.Ports)); err != nil {
		return fail("filter", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: r.etherType(), Ifindex: r.index}); err != nil {
		return fail("bind", err)
	}
	return file, nil
}

// etherType is the type of the packets in network order. Asking for one type, and not for all, gives each packet once, when it has been
// through bridges, bonds and VLANs, and none that leaves.
func (r *Raw) etherType() uint16 {
	if r.local.Is4() {
		return networkPort(unix.ETH_P_IP)
	}
	return networkPort(unix.ETH_P_IPV6)
}

// openIP opens the socket that sends. It receives nothing.
func (r *Raw) openIP(cfg RawConfig, ifc *net.Interface) (*os.File, error) {
	family := unix.AF_INET
	if r.local.Is6() {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_RAW)
	if err != nil {
		return nil, os.NewSyscallError("raw socket", err)
	}
	setBuffer(fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, cfg.SendBuffer)
	if r.index != 0 {
		network := "ip4"
		if family == unix.AF_INET6 {
			network = "udp6" // IPv6's option
		}
		if err := bindInterface(fd, network, ifc); err != nil {
			unix.Close(fd)
			return nil, os.NewSyscallError("bind to the interface", err)
		}
	}
	var sa unix.Sockaddr = &unix.SockaddrInet4{}
	if family == unix.AF_INET {
		sa = &unix.SockaddrInet4{Addr: r.local.As4()}
	} else {
		six := &unix.SockaddrInet6{Addr: r.local.As16()}
		if r.local.IsLinkLocalUnicast() {
			six.ZoneId = uint32(ifc.Index)
		}
		sa = six
	}
	if err := unix.Bind(fd, sa); err != nil { // routing rules about the source then apply, and the address must be there
		unix.Close(fd)
		return nil, os.NewSyscallError("bind", err)
	}
	return os.NewFile(uintptr(fd), "raw socket"), nil
}

// LocalAddr is the address, with port 0.
func (r *Raw) LocalAddr() netip.AddrPort { return netip.AddrPortFrom(r.local, 0) }

// MTU is that of the interface which has the address, when the device was opened.
func (r *Raw) MTU() int { return r.mtu }

// Counters returns what happened so far.
func (r *Raw) Counters() Counters { return r.count.load() }

// Burst is how many packets of one connection Write sends as one: what mptcp.Path.Burst can be.
func (r *Raw) Burst() int {
	if !r.rows.segments {
		return 1
	}
	return max(1, min(maxMerged, MaxTrain/r.mtu))
}

// Close closes the sockets.
func (r *Raw) Close() error {
	r.closed.Store(true)
	var errs []error
	for _, f := range []*os.File{r.file, r.out} {
		if f == nil {
			continue
		}
		if err := f.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			errs = append(errs, fmt.Errorf("device: close %s: %w", r.name, err))
		}
	}
	r.rows.hops.close()
	return errors.Join(errs...)
}

// Read waits for packets and takes what has arrived, up to rawMessages of them. Their From is the zero AddrPort: it stands in the packet.
func (r *Raw) Read(b *Batch) error {
	for strange := 0; ; {
		for i := range r.rx {
			s, h := &r.rx[i], &r.rxVec[i].hdr
			buf := b.Room(i, tunPacket)
			s.iov.Base = &buf[0]
			s.iov.SetLen(len(buf))
			h.Namelen = uint32(unsafe.Sizeof(s.name))
			h.SetControllen(controlSize)
		}
		if err := r.packet.Read(r.readFn); err != nil {
			return r.ended(err)
		}
		switch {
		case r.rxErr == 0:
			if r.gather(b) {
				return nil
			}
		case r.rxErr == unix.ENETDOWN || r.rxErr == unix.ENXIO || r.rxErr == unix.ENODEV || r.rxErr == unix.EBADF || strange > maxStrange:
			return &GoneError{Name: r.name, Err: r.rxErr} // the interface is down or was removed
		default:
			r.count.receiveErrors.Add(1)
			strange++
		}
	}
}

// receive is what the poller runs: false asks it to wait until the socket is readable.
func (r *Raw) receive(fd uintptr) bool {
	for {
		n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&r.rxVec[0])), rawMessages, unix.MSG_DONTWAIT, 0, 0)
		switch errno {
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			return false
		}
		r.rxN, r.rxErr = int(n), errno
		return true
	}
}

// gather makes packets of the messages received. It reports whether there is any.
func (r *Raw) gather(b *Batch) bool {
	b.Packets = b.Packets[:0]
	bytes := 0
	for i := range r.rxN {
		s, h := &r.rx[i], &r.rxVec[i].hdr
		control := unsafe.Slice((*byte)(unsafe.Pointer(&s.control)), controlSize)
		if got := parseControl(control[:h.Controllen]); got.overflow > 0 {
			r.count.overflowed.Store(int64(got.overflow))
		}
		var packet []byte
		if h.Flags&unix.MSG_TRUNC == 0 {
			packet = finishPacket(b.Room(i, tunPacket)[:r.rxVec[i].n], linkHeader(s.name.Hatype))
		}
		if packet == nil {
			r.count.truncated.Add(1)
			continue
		}
		bytes += len(packet)
		b.Packets = append(b.Packets, Packet{Data: packet})
	}
	r.count.received.Add(int64(len(b.Packets)))
	r.count.receivedBytes.Add(int64(bytes))
	r.count.receivedCalls.Add(1)
	return len(b.Packets) > 0
}

// linkHeader is the length of the header in front of the IP packets of an interface; the filter's beginning says the same.
func linkHeader(kind uint16) int {
	if kind == unix.ARPHRD_ETHER || kind == unix.ARPHRD_LOOPBACK {
		return ethernetHeader
	}
	return 0
}

// ended maps an error of the poller, which is final.
func (r *Raw) ended(err error) error {
	if r.closed.Load() {
		return net.ErrClosed
	}
	return &GoneError{Name: r.name, Err: err}
}
