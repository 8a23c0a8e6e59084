package device

import (
	"errors"
	"net"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"braid/wire"
)

const sendMessages = 64 // packets that one sendmmsg takes

// rawBatch gathers packets and sends them by the raw IP socket, with one system call for many.
type rawBatch struct {
	r     *Raw
	vec   [sendMessages]mmsghdr
	iov   [sendMessages]unix.Iovec
	name4 [sendMessages]unix.RawSockaddrInet4
	name6 [sendMessages]unix.RawSockaddrInet6
	n     int

	from, sent int // of what the poller runs
	errno      syscall.Errno
	fn         func(fd uintptr) bool
}

func (b *rawBatch) init(r *Raw) {
	b.r, b.fn = r, b.send
	for i := range b.vec {
		h := &b.vec[i].hdr
		h.Iov = &b.iov[i]
		h.SetIovlen(1)
		if r.local.Is4() {
			b.name4[i].Family = unix.AF_INET
			h.Name, h.Namelen = (*byte)(unsafe.Pointer(&b.name4[i])), unix.SizeofSockaddrInet4
		} else {
			b.name6[i].Family = unix.AF_INET6
			h.Name, h.Namelen = (*byte)(unsafe.Pointer(&b.name6[i])), unix.SizeofSockaddrInet6
		}
	}
}

// Write sends the packets of a train. To is of no meaning: the destination stands in the packets.
func (r *Raw) Write(t Train) error {
	var first error
	keep := func(err error) {
		if err != nil && (first == nil || errors.Is(first, ErrTooLarge)) {
			first = err
		}
	}
	for rest := t.Data; len(rest) > 0; {
		packets, n, vectors := r.rows.merge(rest, t.Size)
		if packets > 1 && r.rows.reach(rest) {
			keep(r.tx.flush())
			keep(r.rows.send(packets, n, vectors))
			rest = rest[n:]
			continue
		}
		for row := rest[:n]; len(row) > 0; {
			size := min(t.Size, len(row))
			keep(r.tx.add(row[:size]))
			row = row[size:]
		}
		rest = rest[n:]
	}
	keep(r.tx.flush())
	runtime.KeepAlive(t.Data)
	return first
}

// add puts a packet into the batch, and sends the batch if it is full.
func (b *rawBatch) add(packet []byte) error {
	i := b.n
	if b.r.local.Is4() {
		if len(packet) < wire.IPv4HeaderLen {
			b.r.count.unreachable.Add(1)
			return nil
		}
		b.name4[i].Addr = [4]byte(packet[16:])
	} else {
		if len(packet) < wire.IPv6HeaderLen {
			b.r.count.unreachable.Add(1)
			return nil
		}
		b.name6[i].Addr = [16]byte(packet[24:])
		b.name6[i].Scope_id = 0
		if packet[24] == 0xfe && packet[25]&0xc0 == 0x80 { // link-local: the interface is the zone
			b.name6[i].Scope_id = uint32(b.r.index)
		}
	}
	b.iov[i].Base = &packet[0]
	b.iov[i].SetLen(len(packet))
	if b.n++; b.n == sendMessages {
		return b.flush()
	}
	return nil
}

// flush sends the batch. What is refused is counted, and what stands behind it may go.
func (b *rawBatch) flush() error {
	var first error
	for b.from = 0; b.from < b.n; {
		if err := b.r.ip.Write(b.fn); err != nil {
			b.n = 0
			return b.r.ended(err)
		}
		bytes := 0
		for i := range b.sent {
			bytes += int(b.iov[b.from+i].Len)
		}
		b.from += b.sent
		if b.sent > 0 {
			b.r.count.sent.Add(int64(b.sent))
			b.r.count.sentBytes.Add(int64(bytes))
			b.r.count.sentCalls.Add(1)
		}
		if b.errno != 0 {
			b.from++
			if err := b.r.classify(b.errno, 1); err != nil && first == nil {
				first = err
			}
		}
	}
	for i := range b.n {
		b.iov[i].Base = nil
	}
	b.n = 0
	return first
}

// send is what the poller runs: it never waits.
func (b *rawBatch) send(fd uintptr) bool {
	for {
		n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&b.vec[b.from])), uintptr(b.n-b.from), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		if errno == unix.EINTR {
			continue
		}
		b.sent, b.errno = int(n), errno
		if errno != 0 {
			b.sent = 0
		}
		return true
	}
}

// classify counts n packets that were refused and says whether the owner must hear of it.
func (r *Raw) classify(errno syscall.Errno, n int64) error {
	switch errno {
	case unix.EAGAIN, unix.ENOBUFS, unix.ENOMEM:
		r.count.dropped.Add(n)
	case unix.EMSGSIZE:
		r.count.tooLarge.Add(n)
		return ErrTooLarge
	case unix.ENODEV, unix.ENXIO, unix.EBADF:
		r.count.unreachable.Add(n)
		if r.closed.Load() {
			return net.ErrClosed
		}
		return &GoneError{Name: r.name, Err: errno}
	default:
		r.count.unreachable.Add(n)
	}
	return nil
}

// rows sends what can leave as one packet that the kernel, or the interface, cuts (TSO). A raw IP socket does not take such packets; the packet
// socket does, but asks for the next hop's link address. So the kernel is asked which way it would send (see nextHops), and as often as that is
// asked anew a row goes the ordinary way, packet by packet: that keeps the kernel's knowledge of the neighbour fresh. Where the kernel has
// anything to say about what leaves, nothing is sent as a row: see bypass.
type rows struct {
	merger
	r    *Raw
	hops nextHops

	head struct { // what stands in front of the merged packet
		virtio vnetHeader
		link   [ethernetHeader]byte
	}
	name  unix.RawSockaddrLinklayer
	hdr   unix.Msghdr
	errno syscall.Errno
	fn    func(fd uintptr) bool
}

func (w *rows) init(r *Raw, segments bool) error {
	w.r, w.segments, w.fn = r, segments, w.write
	w.txIov[0].Base = (*byte)(unsafe.Pointer(&w.head))
	w.name.Family, w.name.Protocol = unix.AF_PACKET, r.etherType()
	w.hdr.Name, w.hdr.Namelen = (*byte)(unsafe.Pointer(&w.name)), uint32(unsafe.Sizeof(w.name))
	w.hdr.Iov = &w.txIov[0]
	return w.hops.init(r.local, r.index)
}

// reach prepares the link's header for the destination of a packet that merge has merged. False: packets go there one by one.
func (w *rows) reach(packet []byte) bool {
	hop := w.hops.of(packet)
	if hop == nil {
		return false
	}
	w.name.Ifindex = int32(hop.index)
	w.txIov[0].SetLen(vnetHeaderLen + hop.length)
	w.head.virtio = w.txHead
	w.head.virtio.headerLen += uint16(hop.length)
	w.head.virtio.checksumFrom += uint16(hop.length)
	w.head.link = hop.header
	return true
}

// send sends the merged packet.
func (w *rows) send(packets, bytes, vectors int) error {
	w.hdr.SetIovlen(vectors)
	err := w.r.packet.Write(w.fn)
	w.release(vectors)
	if err != nil {
		return w.r.ended(err)
	}
	if w.errno != 0 {
		w.hops.forget()
		return w.r.classify(w.errno, int64(packets))
	}
	w.r.count.sent.Add(int64(packets))
	w.r.count.sentBytes.Add(int64(bytes))
	w.r.count.sentCalls.Add(1)
	return nil
}

// write is what the poller runs: it never waits.
func (w *rows) write(fd uintptr) bool {
	for {
		_, _, errno := unix.Syscall(unix.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&w.hdr)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		if errno != unix.EINTR {
			w.errno = errno
			return true
		}
	}
}
