package wire

import (
	"encoding/binary"

	"braid/seq"
)

var be = binary.BigEndian

// nopNopTimestamps is how every common stack starts the options of a data segment.
const nopNopTimestamps = kindNOP<<24 | kindNOP<<16 | kindTimestamps<<8 | 10

// ParseTCP reads a TCP segment: header, options, payload. b must be exactly the segment; Payload points
// into it. The checksum is not looked at (see TCPChecksumOK).
//
// The only errors are ErrTCPShort and ErrTCPDataOffset. Options never are: RFC 9293, Section 3.2, asks to
// survive illegal lengths. Unknown kinds and subtypes are skipped by their length; an option whose length
// is not legal counts as absent, for MPTCP options also when it is not legal in this kind of segment; of
// repeated options the first legal one counts; and where a length points outside the list, reading ends
// with what was found so far.
func ParseTCP(b []byte, s *Segment) error {
	if len(b) < TCPHeaderLen {
		return ErrTCPShort
	}
	off := int(b[12]>>4) * 4
	if off < TCPHeaderLen || off > len(b) {
		return ErrTCPDataOffset
	}
	s.SrcPort = be.Uint16(b[0:])
	s.DstPort = be.Uint16(b[2:])
	s.Seq = seq.Number(be.Uint32(b[4:]))
	s.Ack = seq.Number(be.Uint32(b[8:]))
	s.Flags = Flags(b[13])
	s.Window = be.Uint16(b[14:])
	s.Urgent = be.Uint16(b[18:])
	s.Payload = b[off:]
	s.Options = 0
	s.SACKBlocks = 0
	if off > TCPHeaderLen {
		s.parseOptions(b[TCPHeaderLen:off])
	}
	return nil
}

// parseOptions walks the option list.
func (s *Segment) parseOptions(o []byte) {
	if len(o) >= TimestampsLen && be.Uint32(o) == nopNopTimestamps {
		s.TSVal = be.Uint32(o[4:])
		s.TSEcr = be.Uint32(o[8:])
		s.Options = OptTimestamps
		o = o[TimestampsLen:]
	}
	for len(o) > 0 {
		kind := o[0]
		if kind <= kindNOP {
			if kind == kindEnd {
				return
			}
			o = o[1:]
			continue
		}
		if len(o) < 2 {
			return
		}
		n := int(o[1])
		if n < 2 || n > len(o) {
			return
		}
		if kind == kindMPTCP {
			s.parseMPTCP(o[:n])
		} else {
			s.parseOption(kind, o[:n])
		}
		o = o[n:]
	}
}

// parseOption reads one of TCP's own options; o is the whole option.
func (s *Segment) parseOption(kind uint8, o []byte) {
	switch kind {
	case kindMSS:
		if len(o) == 4 && s.first(OptMSS) {
			s.MSS = be.Uint16(o[2:])
		}
	case kindWindowScale:
		if len(o) == 3 && s.first(OptWindowScale) {
			s.WindowScale = o[2]
		}
	case kindSACKPermitted:
		if len(o) == 2 {
			s.first(OptSACKPermitted)
		}
	case kindSACK:
		// RFC 2018, Section 3: 8n+2 bytes for n blocks; 40 option bytes hold no more than four.
		if n := (len(o) - 2) / 8; n >= 1 && n <= len(s.SACK) && len(o) == 2+8*n && s.first(OptSACK) {
			s.SACKBlocks = n
			for i := range n {
				s.SACK[i].Start = seq.Number(be.Uint32(o[2+8*i:]))
				s.SACK[i].End = seq.Number(be.Uint32(o[6+8*i:]))
			}
		}
	case kindTimestamps:
		if len(o) == 10 && s.first(OptTimestamps) {
			s.TSVal = be.Uint32(o[2:])
			s.TSEcr = be.Uint32(o[6:])
		}
	case kindFastOpen:
		// RFC 7413, Section 4.1.1: no cookie, or 4 to 16 bytes and an even number of them.
		if n := len(o) - 2; (n == 0 || n >= 4 && n <= 16 && n%2 == 0) && s.first(OptFastOpen) {
			s.FastOpen = FastOpenCookie{Len: n}
			copy(s.FastOpen.Value[:], o[2:])
		}
	}
}

// first marks o as present and reports whether it was not: of duplicated options the first counts.
func (s *Segment) first(o Option) bool {
	if s.Options&o != 0 {
		return false
	}
	s.Options |= o
	return true
}
