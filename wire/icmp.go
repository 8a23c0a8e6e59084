package wire

import (
	"net/netip"

	"braid/seq"
)

// ICMPKind sorts ICMP errors by what TCP does about them (RFC 9293, Section 3.9.2.2).
type ICMPKind uint8

// The kinds.
const (
	ICMPSoft         ICMPKind = iota + 1 // no reason to abort: net or host unreachable, time exceeded, ...
	ICMPHard                             // aborts a connection that is being opened: port, protocol, policy
	ICMPPacketTooBig                     // a packet exceeded the MTU of a link
)

// ICMPError is an ICMPv4 (RFC 792) or ICMPv6 (RFC 4443) error about a TCP or UDP packet that this host sent.
type ICMPError struct {
	Kind       ICMPKind
	Type, Code uint8
	MTU        int // ICMPPacketTooBig: of the next hop; 0 from routers older than RFC 1191

	// The quoted packet, as this host sent it.
	Src, Dst         netip.Addr
	Proto            uint8 // ProtoTCP or ProtoUDP
	SrcPort, DstPort uint16
	Seq              seq.Number // TCP only
}

// ParseICMP reads the ICMP error that p carries. ErrICMPOther says that it is no error (an echo, say); a
// quotation too short for ports and sequence number, or of another protocol, is ErrICMPQuote: such a
// message cannot be matched with what is in flight and is not to be believed (RFC 5927, Section 4).
func ParseICMP(p *IP, m *ICMPError) error {
	b := p.Payload
	if len(b) < 8 {
		return ErrICMPShort
	}
	check := sum(b)
	*m = ICMPError{Type: b[0], Code: b[1]}
	switch p.Proto {
	case ProtoICMPv4:
		m.Kind, m.MTU = icmp4Kind(b)
	case ProtoICMPv6:
		check += PseudoSum(p.Src, p.Dst, ProtoICMPv6) + Sum(len(b))
		m.Kind, m.MTU = icmp6Kind(b)
	default:
		return ErrICMPOther
	}
	if check.Checksum() != 0 {
		return ErrICMPChecksum
	}
	if m.Kind == 0 {
		return ErrICMPOther
	}
	return m.parseQuote(b[8:], p.Proto == ProtoICMPv6)
}

// icmp4Kind sorts an ICMPv4 message; 0 is none of ours.
func icmp4Kind(b []byte) (k ICMPKind, mtu int) {
	const (
		unreachable      = 3
		timeExceeded     = 11
		parameterProblem = 12
	)
	switch b[0] {
	case unreachable:
		switch b[1] {
		case 4: // fragmentation needed and DF set (RFC 1191, Section 4)
			return ICMPPacketTooBig, int(be.Uint16(b[6:]))
		case 2, 3, 9, 10, 13: // protocol, port; prohibited: network, host, by filter
			return ICMPHard, 0
		}
		return ICMPSoft, 0
	case timeExceeded, parameterProblem:
		return ICMPSoft, 0
	}
	return 0, 0
}

// icmp6Kind sorts an ICMPv6 message; 0 is none of ours.
func icmp6Kind(b []byte) (k ICMPKind, mtu int) {
	const (
		unreachable      = 1
		packetTooBig     = 2
		timeExceeded     = 3
		parameterProblem = 4
	)
	switch b[0] {
	case unreachable:
		switch b[1] {
		case 1, 4, 5, 6: // prohibited, port, source address policy, rejected route
			return ICMPHard, 0
		}
		return ICMPSoft, 0
	case packetTooBig:
		return ICMPPacketTooBig, int(min(be.Uint32(b[4:]), 0xffff))
	case parameterProblem:
		if b[1] == 1 { // next header not known: this protocol is not there
			return ICMPHard, 0
		}
		return ICMPSoft, 0
	case timeExceeded:
		return ICMPSoft, 0
	}
	return 0, 0
}

// parseQuote reads the start of the packet that the error is about; it may be cut anywhere.
func (m *ICMPError) parseQuote(b []byte, ipv6 bool) error {
	if ipv6 {
		if len(b) < IPv6HeaderLen || b[0]>>4 != 6 {
			return ErrICMPQuote
		}
		m.Src = netip.AddrFrom16([16]byte(b[8:]))
		m.Dst = netip.AddrFrom16([16]byte(b[24:]))
		proto, rest, err := skipExtensions(b[6], b[IPv6HeaderLen:])
		if err != nil {
			return ErrICMPQuote
		}
		m.Proto, b = proto, rest
	} else {
		if len(b) < IPv4HeaderLen || b[0]>>4 != 4 {
			return ErrICMPQuote
		}
		hlen := int(b[0]&0xf) * 4
		if hlen < IPv4HeaderLen || hlen > len(b) || be.Uint16(b[6:])&0x1fff != 0 {
			return ErrICMPQuote
		}
		m.Src = netip.AddrFrom4([4]byte(b[12:]))
		m.Dst = netip.AddrFrom4([4]byte(b[16:]))
		m.Proto, b = b[9], b[hlen:]
	}
	if len(b) < 8 || m.Proto != ProtoTCP && m.Proto != ProtoUDP {
		return ErrICMPQuote
	}
	m.SrcPort = be.Uint16(b[0:])
	m.DstPort = be.Uint16(b[2:])
	if m.Proto == ProtoTCP {
		m.Seq = seq.Number(be.Uint32(b[4:]))
	}
	return nil
}
