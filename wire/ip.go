package wire

import (
	"fmt"
	"net/netip"
	"slices"
)

// Protocol numbers in an IP header.
const (
	ProtoICMPv4 = 1
	ProtoTCP    = 6
	ProtoUDP    = 17
	ProtoICMPv6 = 58
)

// Header sizes in bytes, as this package appends them.
const (
	IPv4HeaderLen = 20
	IPv6HeaderLen = 40
)

// ECN is the lower two bits of TOS (RFC 3168, Section 5).
type ECN uint8

// The codepoints.
const (
	NotECT ECN = 0
	ECT1   ECN = 1
	ECT0   ECN = 2
	CE     ECN = 3
)

// IP is an IPv4 (RFC 791) or IPv6 (RFC 8200) packet that is no fragment. Src and Dst are of one family,
// which is the packet's version; the addresses carry no zone.
type IP struct {
	Src, Dst netip.Addr
	Proto    uint8  // of the payload: extension headers of IPv6 are skipped
	TTL      uint8  // hop limit in IPv6; 0 on append means 64
	TOS      uint8  // DSCP and ECN; traffic class in IPv6
	ID       uint16 // IPv4 only; of no use to packets with DF set (RFC 6864, Section 4.1)
	DF       bool   // IPv4: don't fragment; parsed only, append always sets it
	Flow     uint32 // IPv6 only: flow label, 20 bits
	Payload  []byte // after parsing: points into the packet
}

// ECN returns the packet's ECN codepoint.
func (p *IP) ECN() ECN { return ECN(p.TOS & 3) }

// HeaderLen returns the size of the header that AppendIPHeader writes.
func (p *IP) HeaderLen() int {
	if p.Src.Is4() {
		return IPv4HeaderLen
	}
	return IPv6HeaderLen
}

// ParseIP reads an IP packet. What follows the packet in b (link-layer padding) is cut off. Fragments are
// refused, as TCP over a path with DF set has none; so are IPv6 extension headers other than hop-by-hop and
// destination options and whole ("atomic") fragments.
func ParseIP(b []byte, p *IP) error {
	if len(b) < 1 {
		return ErrIPShort
	}
	switch b[0] >> 4 {
	case 4:
		return p.parse4(b)
	case 6:
		return p.parse6(b)
	}
	return ErrIPVersion
}

// parse4 reads an IPv4 packet. Options are skipped (RFC 791, Section 3.1).
func (p *IP) parse4(b []byte) error {
	if len(b) < IPv4HeaderLen {
		return ErrIPShort
	}
	hlen, total := int(b[0]&0xf)*4, int(be.Uint16(b[2:]))
	if hlen < IPv4HeaderLen || hlen > total || total > len(b) {
		return ErrIPLength
	}
	if sum(b[:hlen]).Checksum() != 0 {
		return ErrIPChecksum
	}
	frag := be.Uint16(b[6:])
	if frag&0x3fff != 0 { // MF or an offset
		return ErrIPFragment
	}
	p.TOS = b[1]
	p.ID = be.Uint16(b[4:])
	p.DF = frag&0x4000 != 0
	p.Flow = 0
	p.TTL = b[8]
	p.Proto = b[9]
	p.Src = netip.AddrFrom4([4]byte(b[12:]))
	p.Dst = netip.AddrFrom4([4]byte(b[16:]))
	p.Payload = b[hlen:total]
	return nil
}

// parse6 reads an IPv6 packet.
func (p *IP) parse6(b []byte) error {
	if len(b) < IPv6HeaderLen {
		return ErrIPShort
	}
	total := IPv6HeaderLen + int(be.Uint16(b[4:]))
	if total > len(b) {
		return ErrIPLength
	}
	first := be.Uint32(b)
	p.TOS = uint8(first >> 20)
	p.Flow = first & 0xfffff
	p.ID = 0
	p.DF = true // only a sender may fragment (RFC 8200, Section 5)
	p.TTL = b[7]
	p.Src = netip.AddrFrom16([16]byte(b[8:]))
	p.Dst = netip.AddrFrom16([16]byte(b[24:]))
	proto, payload, err := skipExtensions(b[6], b[IPv6HeaderLen:total])
	p.Proto, p.Payload = proto, payload
	return err
}

// skipExtensions passes over IPv6 extension headers (RFC 8200, Section 4) to the upper-layer header.
func skipExtensions(next uint8, b []byte) (proto uint8, payload []byte, err error) {
	const (
		hopByHop    = 0
		routing     = 43
		fragment    = 44
		destination = 60
	)
	for {
		switch next {
		case hopByHop, destination:
			if len(b) < 8 || len(b) < 8+int(b[1])*8 {
				return next, nil, ErrIPExtension
			}
			next, b = b[0], b[8+int(b[1])*8:]
		case fragment:
			if len(b) < 8 {
				return next, nil, ErrIPExtension
			}
			if be.Uint16(b[2:])&^6 != 0 { // an offset, or more fragments (RFC 6946 for neither)
				return next, nil, ErrIPFragment
			}
			next, b = b[0], b[8:]
		case routing:
			return next, nil, ErrIPExtension
		default:
			return next, b, nil
		}
	}
}

// AppendIPHeader appends the header of a packet with payloadLen bytes of payload, which the caller puts
// behind it. DF is set (RFC 1191, Section 3: the stack discovers path MTUs). It panics if the addresses are not of
// one family or the packet does not fit the length field.
func AppendIPHeader(b []byte, p *IP, payloadLen int) []byte {
	ttl := p.TTL
	if ttl == 0 {
		ttl = 64
	}
	start := len(b)
	switch {
	case p.Src.Is4() && p.Dst.Is4():
		total := IPv4HeaderLen + payloadLen
		if total > 0xffff {
			panic(fmt.Sprintf("wire: IPv4 packet of %d bytes", total))
		}
		b = slices.Grow(b, IPv4HeaderLen)[:start+IPv4HeaderLen]
		h := b[start:]
		src, dst := p.Src.As4(), p.Dst.As4()
		h[0], h[1] = 4<<4|IPv4HeaderLen/4, p.TOS
		be.PutUint16(h[2:], uint16(total))
		be.PutUint16(h[4:], p.ID)
		be.PutUint16(h[6:], 0x4000) // DF
		h[8], h[9], h[10], h[11] = ttl, p.Proto, 0, 0
		copy(h[12:16], src[:])
		copy(h[16:20], dst[:])
		be.PutUint16(h[10:], sum(h).Checksum())
	case p.Src.Is6() && p.Dst.Is6():
		if payloadLen > 0xffff {
			panic(fmt.Sprintf("wire: IPv6 payload of %d bytes", payloadLen))
		}
		b = slices.Grow(b, IPv6HeaderLen)[:start+IPv6HeaderLen]
		h := b[start:]
		src, dst := p.Src.As16(), p.Dst.As16()
		be.PutUint32(h, 6<<28|uint32(p.TOS)<<20|p.Flow&0xfffff)
		be.PutUint16(h[4:], uint16(payloadLen))
		h[6], h[7] = p.Proto, ttl
		copy(h[8:24], src[:])
		copy(h[24:40], dst[:])
	default:
		panic(fmt.Sprintf("wire: IP packet from %v to %v", p.Src, p.Dst))
	}
	return b
}
