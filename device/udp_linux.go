package device

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	readMessages = 8       // messages that one recvmmsg takes; each may be a train of datagrams
	messageSize  = 1 << 16 // bytes of the largest message
	maxSegments  = 64      // datagrams that one sendmsg may be cut into (UDP_MAX_SEGMENTS of the oldest kernels with UDP_SEGMENT)
	controlSize  = 128     // room for the control messages below, aligned
)

// port is the Linux half of UDP: recvmmsg and sendmsg on the socket's descriptor under the runtime's poller, so that neither
// allocates and a full send buffer drops instead of waiting.
type port struct {
	u       *UDP
	raw     syscall.RawConn
	six     bool        // an AF_INET6 socket: IPv4 peers stand as mapped addresses
	segment atomic.Bool // the kernel segments trains
	zones   zones
	sources *sources // of an unspecified socket: which local address each peer talks to

	rx     [readMessages]receiveSlot
	rxVec  [readMessages]mmsghdr
	rxN    int
	rxErr  syscall.Errno
	readFn func(fd uintptr) bool

	tx      sendSlot
	source  netip.Addr // local address of the message being sent; zero: the kernel's choice
	txErr   syscall.Errno
	writeFn func(fd uintptr) bool
}

// mmsghdr is struct mmsghdr of recvmmsg(2); Go pads it as C does.
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
}

type receiveSlot struct {
	name    unix.RawSockaddrInet6 // large enough for both families
	iov     unix.Iovec
	control [controlSize / 8]uint64 // aligned
}

type sendSlot struct {
	hdr     unix.Msghdr
	name4   unix.RawSockaddrInet4
	name6   unix.RawSockaddrInet6
	iov     unix.Iovec
	control [controlSize / 8]uint64
}

func (p *port) open(u *UDP, cfg Config) error {
	raw, err := u.conn.SyscallConn()
	if err != nil {
		return err
	}
	p.u, p.raw = u, raw
	if err := raw.Control(func(fd uintptr) { err = p.setOptions(int(fd), cfg) }); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	p.readFn, p.writeFn = p.receive, p.send
	for i := range p.rx {
		s, h := &p.rx[i], &p.rxVec[i].hdr
		h.Name = (*byte)(unsafe.Pointer(&s.name))
		h.Iov = &s.iov
		h.SetIovlen(1)
		h.Control = (*byte)(unsafe.Pointer(&s.control))
	}
	p.tx.hdr.Iov = &p.tx.iov
	p.tx.hdr.SetIovlen(1)
	return nil
}

func (p *port) offload() bool { return p.segment.Load() }

// Read waits for packets with the poller and takes what has arrived, up to readMessages messages.
func (u *UDP) Read(b *Batch) error {
	p := &u.port
	for strange := 0; ; {
		for i := range p.rx {
			s, h := &p.rx[i], &p.rxVec[i].hdr
			buf := b.Room(i, messageSize)
			s.iov.Base = &buf[0]
			s.iov.SetLen(len(buf))
			h.Namelen = uint32(unsafe.Sizeof(s.name))
			h.SetControllen(controlSize)
		}
		if err := p.raw.Read(p.readFn); err != nil {
			return closedOr(err)
		}
		switch {
		case p.rxErr == 0:
			if p.split(b) {
				return nil
			}
		case p.rxErr == unix.ENODEV || p.rxErr == unix.EBADF || strange > maxStrange:
			return u.gone(p.rxErr)
		default:
			u.count.receiveErrors.Add(1)
			if !isNotice(p.rxErr) {
				strange++
			}
		}
	}
}

// isNotice tells the errors that a UDP socket reports about earlier packets or passing states, each once.
func isNotice(errno syscall.Errno) bool {
	switch errno {
	case unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.ENETDOWN, unix.EMSGSIZE:
		return true
	}
	return false
}

// receive is what the poller runs: false asks it to wait until the socket is readable.
func (p *port) receive(fd uintptr) bool {
	for {
		n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&p.rxVec[0])), readMessages, unix.MSG_DONTWAIT, 0, 0)
		switch errno {
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			return false
		}
		p.rxN, p.rxErr = int(n), errno
		return true
	}
}

// split turns the messages received into packets: a message may be a train that the kernel has coalesced. It reports whether
// there is any packet.
func (p *port) split(b *Batch) bool {
	b.Packets = b.Packets[:0]
	bytes := 0
	for i := range p.rxN {
		s, h := &p.rx[i], &p.rxVec[i].hdr
		if h.Flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
			p.u.count.truncated.Add(1)
			continue
		}
		data := b.Room(i, messageSize)[:p.rxVec[i].n]
		from := p.peer(&s.name)
		got := parseControl(s.controlBytes()[:h.Controllen])
		size := got.segment
		if size == 0 {
			size = len(data)
		}
		if got.overflow > 0 {
			p.u.count.overflowed.Store(int64(got.overflow))
		}
		if p.sources != nil && got.local.IsValid() {
			p.sources.learn(from, got.local)
		}
		bytes += len(data)
		for len(data) > size {
			b.Packets = append(b.Packets, Packet{data[:size:size], from})
			data = data[size:]
		}
		b.Packets = append(b.Packets, Packet{data, from})
	}
	p.u.count.received.Add(int64(len(b.Packets)))
	p.u.count.receivedBytes.Add(int64(bytes))
	p.u.count.receivedCalls.Add(1)
	return len(b.Packets) > 0
}

func (s *receiveSlot) controlBytes() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&s.control)), controlSize)
}

func (s *sendSlot) controlBytes() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&s.control)), controlSize)
}

// peer converts the source address that the kernel wrote.
func (p *port) peer(name *unix.RawSockaddrInet6) netip.AddrPort {
	if name.Family == unix.AF_INET {
		sa := (*unix.RawSockaddrInet4)(unsafe.Pointer(name))
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), networkPort(sa.Port))
	}
	addr := netip.AddrFrom16(name.Addr).Unmap()
	if name.Scope_id != 0 && addr.Is6() {
		addr = addr.WithZone(p.zones.name(name.Scope_id))
	}
	return netip.AddrPortFrom(addr, networkPort(name.Port))
}

// networkPort converts a port between host and network order: the field holds the bytes as they are on the wire.
func networkPort(field uint16) uint16 {
	var b [2]byte
	binary.NativeEndian.PutUint16(b[:], field)
	return binary.BigEndian.Uint16(b[:])
}

// networkIndex does the same for an interface index.
func networkIndex(index uint32) uint32 {
	var b [4]byte
	binary.NativeEndian.PutUint32(b[:], index)
	return binary.BigEndian.Uint32(b[:])
}

// Write sends t in as few system calls as the kernel lets it.
func (u *UDP) Write(t Train) error {
	p := &u.port
	if err := p.setDestination(t.To); err != nil {
		u.count.unreachable.Add(int64(t.Len()))
		return nil
	}
	most := maxSegments * t.Size
	if most > MaxTrain {
		most = max(MaxTrain/t.Size, 1) * t.Size
	}
	var first error
	for rest := t.Data; len(rest) > 0; {
		n := min(len(rest), most)
		if err := p.sendTrain(rest[:n], t.Size); err != nil && first == nil {
			first = err
		}
		rest = rest[n:]
	}
	if first == ErrTooLarge {
		return p.tooLarge(t.Data[:min(t.Size, len(t.Data))])
	}
	return first
}

// sendTrain sends one message that the kernel cuts into datagrams of size bytes, or datagram by datagram if it does not.
func (p *port) sendTrain(data []byte, size int) error {
	c := &p.u.count
	if len(data) <= size || !p.segment.Load() {
		return p.sendSingly(data, size)
	}
	errno, err := p.sendMessage(data, size)
	if err != nil {
		return err
	}
	switch errno {
	case 0:
		n := int64((len(data) + size - 1) / size)
		c.sent.Add(n)
		c.sentBytes.Add(int64(len(data)))
		c.sentCalls.Add(1)
		return nil
	case unix.EIO, unix.EINVAL, unix.EMSGSIZE, unix.EOPNOTSUPP, unix.ENOPROTOOPT:
		// Either this kernel or this interface does not segment (no checksum offload: EIO), or the packets are too large, or the
		// source address is gone: single packets tell. If they go through, segmentation was the trouble.
		c.unsegmented.Add(1)
		before := c.sent.Load()
		err := p.sendSingly(data, size)
		if errno != unix.EMSGSIZE && c.sent.Load() > before {
			p.segment.Store(false)
		}
		return err
	}
	return p.classify(errno, int64((len(data)+size-1)/size))
}

// sendSingly sends data as datagrams of size bytes with a system call each.
func (p *port) sendSingly(data []byte, size int) error {
	var first error
	for len(data) > 0 {
		n := min(size, len(data))
		errno, err := p.sendMessage(data[:n], 0)
		if err != nil {
			return err
		}
		if errno == 0 {
			p.u.count.sent.Add(1)
			p.u.count.sentBytes.Add(int64(n))
			p.u.count.sentCalls.Add(1)
		} else if err := p.classify(errno, 1); err != nil && first == nil {
			first = err
		}
		data = data[n:]
	}
	return first
}

// classify counts n packets that were refused and says whether the owner must hear of it.
func (p *port) classify(errno syscall.Errno, n int64) error {
	c := &p.u.count
	switch errno {
	case unix.EAGAIN:
		c.dropped.Add(n)
		return nil
	case unix.EMSGSIZE:
		c.tooLarge.Add(n)
		return ErrTooLarge
	case unix.ENODEV, unix.ENXIO, unix.EBADF:
		c.unreachable.Add(n)
		return p.u.gone(errno)
	case unix.EINVAL: // the socket's own address does not stand on this machine any more
		c.unreachable.Add(n)
		if p.u.local.Addr().IsUnspecified() {
			return nil
		}
		return p.u.gone(errno)
	}
	c.unreachable.Add(n)
	return nil
}

// sendMessage sends one message, cut by the kernel into datagrams of segment bytes if segment > 0. The error is that of a
// closed socket.
func (p *port) sendMessage(data []byte, segment int) (syscall.Errno, error) {
	p.tx.iov.Base = &data[0]
	p.tx.iov.SetLen(len(data))
	p.setControl(segment)
	if err := p.raw.Write(p.writeFn); err != nil {
		return 0, closedOr(err)
	}
	p.tx.iov.Base = nil
	return p.txErr, nil
}

// send is what the poller runs: always true, a full buffer is the caller's to count.
func (p *port) send(fd uintptr) bool {
	for {
		_, _, errno := unix.Syscall(unix.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&p.tx.hdr)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		if errno != unix.EINTR {
			p.txErr = errno
			return true
		}
	}
}

// closedOr maps the error of the poller to the one that Device promises.
func closedOr(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return net.ErrClosed
	}
	return err
}
