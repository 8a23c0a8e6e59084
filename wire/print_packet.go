package wire

import "net/netip"

// FormatPacket prints an IP packet in one line, much as tcpdump would: addresses, then the TCP segment with
// its options, or what else it is. What cannot be parsed is printed as the reason why.
func FormatPacket(packet []byte) string {
	var p IP
	if err := ParseIP(packet, &p); err != nil {
		return appendError(nil, err, len(packet))
	}
	b := make([]byte, 0, 160)
	b = append(b, "IP "...)
	if !p.Src.Is4() {
		b = append(b[:0], "IP6 "...)
	}
	switch p.Proto {
	case ProtoTCP:
		var s Segment
		if err := ParseTCP(p.Payload, &s); err != nil {
			return appendError(appendFlow(b, p.Src, p.Dst), err, len(p.Payload))
		}
		b = appendEndpoints(b, p.Src, p.Dst, s.SrcPort, s.DstPort)
		b = s.appendBody(b)
		if !TCPChecksumOK(p.Payload, PseudoSum(p.Src, p.Dst, ProtoTCP)) {
			b = append(b, ", bad checksum"...)
		}
	case ProtoUDP:
		var u UDP
		if err := ParseUDP(p.Payload, &u); err != nil {
			return appendError(appendFlow(b, p.Src, p.Dst), err, len(p.Payload))
		}
		b = appendEndpoints(b, p.Src, p.Dst, u.SrcPort, u.DstPort)
		b = appendUint(b, "UDP, length ", uint64(len(u.Payload)))
	case ProtoICMPv4, ProtoICMPv6:
		b = appendICMP(appendFlow(b, p.Src, p.Dst), &p)
	default:
		b = appendUint(appendFlow(b, p.Src, p.Dst), "protocol ", uint64(p.Proto))
		b = appendUint(b, ", length ", uint64(len(p.Payload)))
	}
	if p.ECN() == CE {
		b = append(b, ", CE"...)
	}
	return string(b)
}

// FormatDatagram prints the payload of a UDP datagram of MPTCP over UDP in one line.
func FormatDatagram(payload []byte) string {
	s, rest, err := ParseShim(payload)
	if err != nil {
		return appendError(nil, err, len(payload))
	}
	b := appendHex([]byte("tag "), uint64(s.Tag), 8)
	switch s.Type {
	case ShimChallenge:
		b = appendHex(append(b, " challenge "...), s.Challenge, 16)
		return string(appendUint(b, ", padding ", uint64(len(rest))))
	case ShimResponse:
		return string(appendHex(append(b, " response "...), s.Challenge, 16))
	case ShimVersions:
		return string(appendHex(append(b, " versions "...), uint64(s.Versions), 4))
	}
	if s.HasSender {
		b = appendHex(append(b, " sender "...), uint64(s.SenderTag), 8)
	}
	b = append(b, ' ')
	var seg Segment
	if err := ParseTCP(rest, &seg); err != nil {
		return appendError(b, err, len(rest))
	}
	b, _ = seg.AppendText(b)
	return string(b)
}

// appendICMP prints an ICMP message.
func appendICMP(b []byte, p *IP) []byte {
	var m ICMPError
	err := ParseICMP(p, &m)
	if err != nil {
		return []byte(appendError(append(b, "ICMP "...), err, len(p.Payload)))
	}
	b = appendUint(b, "ICMP type ", uint64(m.Type))
	b = appendUint(b, " code ", uint64(m.Code))
	if m.Kind == ICMPPacketTooBig {
		b = appendUint(b, " mtu ", uint64(m.MTU))
	}
	b = append(b, " about "...)
	b = appendEndpoints(b, m.Src, m.Dst, m.SrcPort, m.DstPort)
	if m.Proto == ProtoTCP {
		return appendUint(b, "seq ", uint64(m.Seq))
	}
	return append(b, "UDP"...)
}

// appendFlow prints addresses without ports.
func appendFlow(b []byte, src, dst netip.Addr) []byte {
	b = src.AppendTo(b)
	b = dst.AppendTo(append(b, " > "...))
	return append(b, ": "...)
}

// appendEndpoints prints addresses and ports.
func appendEndpoints(b []byte, src, dst netip.Addr, srcPort, dstPort uint16) []byte {
	b = appendUint(src.AppendTo(b), ".", uint64(srcPort))
	b = dst.AppendTo(append(b, " > "...))
	b = appendUint(b, ".", uint64(dstPort))
	return append(b, ": "...)
}

// appendError prints why something cannot be printed.
func appendError(b []byte, err error, length int) string {
	b = append(append(append(b, '('), err.Error()...), ')')
	return string(appendUint(b, ", length ", uint64(length)))
}
