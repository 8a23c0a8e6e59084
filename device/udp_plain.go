//go:build !linux

package device

import (
	"errors"
	"net"
	"net/netip"
)

// readSize is the largest UDP payload that the path MTUs of the Internet and of loopback interfaces bring.
const readSize = 1 << 16

// port is UDP on systems where a datagram is a system call.
type port struct{}

func (p *port) open(u *UDP, cfg Config) error {
	// Smaller buffers lose packets, not correctness: what the system refuses is left as it is.
	_ = u.conn.SetReadBuffer(cfg.ReceiveBuffer)
	_ = u.conn.SetWriteBuffer(cfg.SendBuffer)
	raw, err := u.conn.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(func(fd uintptr) { dontFragment(fd, u.local.Addr()) })
}

func (p *port) offload() bool { return false }

// Read takes one datagram.
func (u *UDP) Read(b *Batch) error {
	buf := b.Room(0, readSize)
	for strange := 0; ; {
		n, from, err := u.conn.ReadFromUDPAddrPort(buf)
		switch {
		case err == nil:
			from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
			b.Packets = append(b.Packets[:0], Packet{buf[:n], from})
			u.count.received.Add(1)
			u.count.receivedBytes.Add(int64(n))
			u.count.receivedCalls.Add(1)
			return nil
		case errors.Is(err, net.ErrClosed):
			return net.ErrClosed
		case strange > maxStrange:
			return u.gone(err)
		}
		u.count.receiveErrors.Add(1)
		if !isNotice(err) {
			strange++
		}
	}
}

// Write sends t datagram by datagram.
func (u *UDP) Write(t Train) error {
	var first error
	for data := t.Data; len(data) > 0; {
		n := min(t.Size, len(data))
		_, err := u.conn.WriteToUDPAddrPort(data[:n], t.To)
		data = data[n:]
		switch {
		case err == nil:
			u.count.sent.Add(1)
			u.count.sentBytes.Add(int64(n))
			u.count.sentCalls.Add(1)
			continue
		case errors.Is(err, net.ErrClosed):
			return net.ErrClosed
		case isTooLarge(err):
			u.count.tooLarge.Add(1)
			err = ErrTooLarge
		case isGone(err):
			u.count.unreachable.Add(1)
			err = u.gone(err)
		default:
			u.count.unreachable.Add(1)
			err = nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}
