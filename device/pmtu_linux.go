package device

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"
)

// tooLarge returns the error for a train with a packet that the kernel refused for its size, with the size that passes if the kernel tells.
// Only its error queue does, and only if it is asked to use it: for this one moment, since otherwise every ICMP error would come between the
// socket's other calls.
func (p *port) tooLarge(packet []byte) error {
	mtu := 0
	err := p.raw.Control(func(fd uintptr) {
		p.reportErrors(int(fd), 1)
		defer p.reportErrors(int(fd), 0) // this empties the queue too
		p.tx.iov.Base = &packet[0]
		p.tx.iov.SetLen(len(packet))
		p.setControl(0)
		p.send(fd)
		p.tx.iov.Base = nil
		if p.txErr == unix.EMSGSIZE {
			mtu = reportedMTU(int(fd))
		}
	})
	switch {
	case err != nil:
		return closedOr(err)
	case mtu <= 0:
		return ErrTooLarge
	}
	return &TooLargeError{MTU: mtu}
}

// reportErrors switches the error queue. A socket without it tells less.
func (p *port) reportErrors(fd, on int) {
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_RECVERR, on)
	if p.six {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVERR, on)
	}
}

// reportedMTU reads the error queue: struct sock_extended_err of ip(7) names the MTU of the interface in ee_info.
func reportedMTU(fd int) int {
	var data [1]byte
	var control [256]byte
	for {
		_, n, _, _, err := unix.Recvmsg(fd, data[:], control[:], unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return 0
		}
		messages, err := unix.ParseSocketControlMessage(control[:n])
		if err != nil {
			return 0
		}
		for _, m := range messages {
			queued := m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_RECVERR ||
				m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_RECVERR
			if queued && len(m.Data) >= 12 && binary.NativeEndian.Uint32(m.Data) == uint32(unix.EMSGSIZE) && m.Data[4] == unix.SO_EE_ORIGIN_LOCAL {
				return int(binary.NativeEndian.Uint32(m.Data[8:]))
			}
		}
	}
}
