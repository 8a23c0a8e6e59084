package netsim

import (
	"net/netip"

	"braid/clock"
	"braid/mptcp"
	"braid/wire"
)

// loggedStack is a Stack that prints its packets.
type loggedStack struct {
	*mptcp.Stack
	host string
	kind mptcp.PathKind
	log  func(format string, args ...any)
}

// HandlePacket prints and handles.
func (s *loggedStack) HandlePacket(now clock.Time, path mptcp.PathID, from netip.AddrPort, b []byte) {
	s.log("%.6f %s < path %d from %v: %s", float64(now)/1e9, s.host, path, from, s.format(b))
	s.Stack.HandlePacket(now, path, from, b)
}

// PollPacket polls and prints.
func (s *loggedStack) PollPacket(now clock.Time, buf []byte) (mptcp.Packet, bool) {
	p, ok := s.Stack.PollPacket(now, buf)
	if ok {
		s.log("%.6f %s > path %d to %v: %s", float64(now)/1e9, s.host, p.Path, p.To, s.format(buf[:p.Len]))
	}
	return p, ok
}

func (s *loggedStack) format(b []byte) string {
	if s.kind == mptcp.UDP {
		return wire.FormatDatagram(b)
	}
	return wire.FormatPacket(b)
}
