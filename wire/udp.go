package wire

import (
	"fmt"
	"slices"
)

// UDPHeaderLen is the size of a UDP header (RFC 768).
const UDPHeaderLen = 8

// UDP is a UDP datagram (RFC 768).
type UDP struct {
	SrcPort, DstPort uint16
	Checksum         uint16 // as it stands in the header; 0: none was computed
	Payload          []byte // points into the parsed buffer
}

// ParseUDP reads a UDP datagram: header and payload, what follows them cut off. The checksum is kept but
// not looked at (see UDPChecksumOK).
func ParseUDP(b []byte, u *UDP) error {
	if len(b) < UDPHeaderLen {
		return ErrUDPShort
	}
	n := int(be.Uint16(b[4:]))
	if n < UDPHeaderLen || n > len(b) {
		return ErrUDPLength
	}
	u.SrcPort = be.Uint16(b[0:])
	u.DstPort = be.Uint16(b[2:])
	u.Checksum = be.Uint16(b[6:])
	u.Payload = b[UDPHeaderLen:n]
	return nil
}

// AppendUDPHeader appends a UDP header for payloadLen bytes, which the caller puts behind it; the checksum
// field is zero (see SetUDPChecksum). It panics if the datagram does not fit the length field.
func AppendUDPHeader(b []byte, srcPort, dstPort uint16, payloadLen int) []byte {
	if payloadLen > 0xffff-UDPHeaderLen {
		panic(fmt.Sprintf("wire: UDP payload of %d bytes", payloadLen))
	}
	start := len(b)
	b = slices.Grow(b, UDPHeaderLen)[:start+UDPHeaderLen]
	h := b[start:]
	be.PutUint16(h[0:], srcPort)
	be.PutUint16(h[2:], dstPort)
	be.PutUint16(h[4:], uint16(UDPHeaderLen+payloadLen))
	be.PutUint16(h[6:], 0)
	return b
}

// SetUDPChecksum fills in the checksum of a UDP header followed by bytes whose sum is payload. pseudo is the
// PseudoSum of the addresses; the length comes from the header. A computed checksum of zero is sent as its
// other representation, because zero means that there is none (RFC 768).
func SetUDPChecksum(header []byte, pseudo, payload Sum) {
	header[6], header[7] = 0, 0
	s := sum(header[:UDPHeaderLen]) + pseudo.fold() + payload.fold() + Sum(be.Uint16(header[4:]))
	c := s.Checksum()
	if c == 0 {
		c = 0xffff
	}
	be.PutUint16(header[6:], c)
}

// UDPChecksumOK reports whether the checksum of a whole datagram, as ParseUDP accepted it, is there and right.
// A missing checksum is legal in IPv4 (RFC 768) but not here: the inner TCP segment of MPTCP over UDP
// has none of its own.
func UDPChecksumOK(b []byte, pseudo Sum) bool {
	n := int(be.Uint16(b[4:]))
	if be.Uint16(b[6:]) == 0 {
		return false
	}
	return (sum(b[:n]) + pseudo.fold() + Sum(n)).Checksum() == 0
}
