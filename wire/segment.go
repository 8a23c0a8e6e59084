package wire

import "braid/seq"

// Flags are the control bits of a TCP header (RFC 9293, Section 3.1).
type Flags uint16

// The control bits, in header order.
const (
	FIN Flags = 1 << iota
	SYN
	RST
	PSH
	ACK
	URG
	ECE
	CWR
)

// Has reports whether all bits of f are set.
func (fl Flags) Has(f Flags) bool { return fl&f == f }

// Option says which options a Segment carries. The value of an absent option is meaningless.
type Option uint32

// The options that this package knows: TCP's own, then MPTCP's (RFC 8684, Section 3).
const (
	OptMSS           Option = 1 << iota // RFC 9293, Section 3.2
	OptWindowScale                      // RFC 7323, Section 2
	OptSACKPermitted                    // RFC 2018, Section 2
	OptSACK                             // RFC 2018, Section 3
	OptTimestamps                       // RFC 7323, Section 3
	OptFastOpen                         // RFC 7413, Section 2
	OptMPCapable                        // RFC 8684, Section 3.1
	OptMPJoin                           // RFC 8684, Section 3.2
	OptDSS                              // RFC 8684, Section 3.3
	OptAddAddr                          // RFC 8684, Section 3.4.1
	OptRemoveAddr                       // RFC 8684, Section 3.4.2
	OptMPPrio                           // RFC 8684, Section 3.3.8
	OptMPFail                           // RFC 8684, Section 3.7
	OptMPFastClose                      // RFC 8684, Section 3.5
	OptMPTCPReset                       // RFC 8684, Section 3.6
)

// OptMPTCP is every option of kind 30.
const OptMPTCP = OptMPCapable | OptMPJoin | OptDSS | OptAddAddr | OptRemoveAddr | OptMPPrio | OptMPFail | OptMPFastClose | OptMPTCPReset

// SACKBlock is one block of a SACK option: Start is received, End is not (RFC 2018, Section 3).
type SACKBlock struct {
	Start, End seq.Number
}

// Segment is a TCP segment in the clear: header, options, payload.
//
// It is made to be used again and again: Parse overwrites what it finds and sets Options; fields of
// absent options keep whatever they had. Payload points into the parsed buffer.
type Segment struct {
	SrcPort, DstPort uint16
	Seq, Ack         seq.Number
	Flags            Flags
	Window           uint16 // as it stands in the header: unscaled
	Urgent           uint16
	Payload          []byte

	Options     Option
	MSS         uint16
	WindowScale uint8 // as received; the user caps it at 14 (RFC 7323, Section 2.3)
	TSVal       uint32
	TSEcr       uint32
	SACK        [4]SACKBlock
	SACKBlocks  int // used entries of SACK
	FastOpen    FastOpenCookie

	Capable    MPCapable
	Join       MPJoin
	DSS        DSS
	AddAddr    AddAddr
	RemoveAddr RemoveAddr
	Prio       MPPrio
	Fail       MPFail
	FastClose  MPFastClose
	Reset      MPTCPReset
}

// Has reports whether the segment carries all options of o.
func (s *Segment) Has(o Option) bool { return s.Options&o == o }

// Len returns the sequence space the segment takes: payload, plus one each for SYN and FIN.
func (s *Segment) Len() int {
	n := len(s.Payload)
	if s.Flags&SYN != 0 {
		n++
	}
	if s.Flags&FIN != 0 {
		n++
	}
	return n
}

// FastOpenCookie is the value of a TCP Fast Open option: empty (a request) or 4 to 16 bytes, an even
// number (RFC 7413, Section 4.1.1).
type FastOpenCookie struct {
	Value [16]byte
	Len   int
}
