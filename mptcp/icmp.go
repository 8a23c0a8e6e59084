package mptcp

import (
	"net/netip"

	"braid/clock"
	"braid/tcp"
	"braid/wire"
)

// handleICMP takes an ICMP error (RFC 9293, Section 3.9.2.2). It is believed only if the packet that it quotes is in flight
// (RFC 5927, Section 4), and concerns that subflow alone.
func (s *Stack) handleICMP(now clock.Time, ip *wire.IP) {
	m := &s.icmp
	if err := wire.ParseICMP(ip, m); err != nil || m.Proto != wire.ProtoTCP || m.Src != ip.Dst {
		s.counters.DropICMP++
		return
	}
	sf := s.tuples[tupleOf(m.Dst, m.Src, m.DstPort, m.SrcPort)]
	if sf == nil || !sf.inFlight(m) {
		s.counters.DropICMP++
		return
	}
	switch {
	case m.Kind == wire.ICMPPacketTooBig:
		mtu := m.MTU
		if mtu == 0 { // a router older than RFC 1191
			mtu = sf.overhead() + wire.TCPHeaderLen + 536
		}
		s.counters.ICMPTooBig++
		sf.tcp.HandleMTU(now, mtu)
	case m.Kind == wire.ICMPHard && sf.state == synSent:
		s.counters.ICMPHard++
		s.abandon(now, sf, ErrRefused)
	default: // what may pass, or hit a connection that works, changes nothing
		s.counters.ICMPSoft++
		return
	}
	s.wake(sf.conn)
	s.rearm(sf.conn)
}

// HandleTooLarge says that a packet on a path to an address was not sent because packets beyond mtu bytes (as Path.MTU counts) do not leave the machine
// (EMSGSIZE). The subflows that go there send again in smaller ones.
func (s *Stack) HandleTooLarge(now clock.Time, id PathID, to netip.AddrPort, mtu int) {
	s.counters.SendsTooLarge++
	for _, c := range s.conns {
		for _, sf := range c.subflows {
			if sf.path == id && sf.state != gone && (sf.kind == IP || sf.env.to == to) {
				sf.tcp.HandleMTU(now, mtu)
			}
		}
		s.wake(c)
		s.rearm(c)
	}
}

// inFlight reports whether the sequence number of a quoted packet is one that is not acknowledged.
func (sf *Subflow) inFlight(m *wire.ICMPError) bool {
	if sf.tcp.State() == tcp.SynSent {
		return m.Seq == sf.iss
	}
	out := sf.tcp.Outstanding()
	return out.Contains(sf.iss.Offset(m.Seq, out.Start))
}
