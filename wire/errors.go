package wire

import "errors"

// What a parser reports. They are fixed values: refusing a packet allocates nothing.
var (
	ErrTCPShort      = errors.New("wire: TCP segment shorter than its header")
	ErrTCPDataOffset = errors.New("wire: TCP data offset outside the segment")

	ErrIPShort     = errors.New("wire: IP packet shorter than its header")
	ErrIPVersion   = errors.New("wire: IP version is neither 4 nor 6")
	ErrIPLength    = errors.New("wire: IP length field contradicts the packet")
	ErrIPChecksum  = errors.New("wire: wrong IPv4 header checksum")
	ErrIPFragment  = errors.New("wire: IP fragment")
	ErrIPExtension = errors.New("wire: IPv6 extension header that is malformed or not understood")

	ErrUDPShort    = errors.New("wire: UDP datagram shorter than its header")
	ErrUDPLength   = errors.New("wire: UDP length field contradicts the datagram")
	ErrUDPChecksum = errors.New("wire: wrong UDP checksum")

	ErrICMPShort    = errors.New("wire: ICMP message too short")
	ErrICMPChecksum = errors.New("wire: wrong ICMP checksum")
	ErrICMPOther    = errors.New("wire: ICMP message is no error report")
	ErrICMPQuote    = errors.New("wire: ICMP error quotes no usable packet")

	ErrShimShort   = errors.New("wire: MPTCP-over-UDP header too short")
	ErrShimVersion = errors.New("wire: MPTCP-over-UDP version not spoken")
	ErrShimType    = errors.New("wire: MPTCP-over-UDP type not known")
	ErrShimBody    = errors.New("wire: MPTCP-over-UDP body malformed")
)
