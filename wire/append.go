package wire

import (
	"fmt"
	"slices"
)

// AppendTCP appends the segment, header, options and payload, to b and returns the longer slice. The
// checksum field is zero (see SetTCPChecksum). It panics on a segment that cannot be: more than 40 bytes of
// options, or an option whose fields contradict each other.
func AppendTCP(b []byte, s *Segment) []byte {
	return append(AppendTCPHeader(b, s), s.Payload...)
}

// AppendTCPHeader is AppendTCP without the payload, for callers that put it behind the header themselves
// (and sum it on the way).
//
// Options stand in one order, each padded with NOPs to a multiple of 4: MSS, timestamps (SACK-permitted
// takes the place of their NOPs), window scale, SACK, fast open, then MPTCP's: MP_CAPABLE or MP_JOIN, DSS,
// and what may accompany a DSS. A peer that takes options in order and drops what does not go together
// keeps the important ones that way.
func AppendTCPHeader(b []byte, s *Segment) []byte {
	olen := s.OptionsLen()
	if olen > MaxOptionsLen {
		panic(fmt.Sprintf("wire: %d bytes of TCP options do not fit (options %#x)", olen, s.Options))
	}
	start, size := len(b), TCPHeaderLen+olen
	b = slices.Grow(b, size)[:start+size]
	h := b[start:]
	be.PutUint16(h[0:], s.SrcPort)
	be.PutUint16(h[2:], s.DstPort)
	be.PutUint32(h[4:], uint32(s.Seq))
	be.PutUint32(h[8:], uint32(s.Ack))
	h[12] = uint8(size/4) << 4
	h[13] = uint8(s.Flags)
	be.PutUint16(h[14:], s.Window)
	h[16], h[17] = 0, 0
	be.PutUint16(h[18:], s.Urgent)
	if s.Options == 0 {
		return b
	}
	o := h[TCPHeaderLen:]
	if s.Options == OptTimestamps || s.Options == OptTimestamps|OptDSS { // nearly every segment
		be.PutUint32(o, nopNopTimestamps)
		be.PutUint32(o[4:], s.TSVal)
		be.PutUint32(o[8:], s.TSEcr)
		if s.Options&OptDSS != 0 {
			s.DSS.put(o[TimestampsLen:])
		}
		return b
	}
	o = s.putPlainOptions(o)
	if s.Options&OptMPTCP != 0 {
		s.putMPTCPOptions(o)
	}
	return b
}

// putPlainOptions writes TCP's own options to o and returns what is left of it.
func (s *Segment) putPlainOptions(o []byte) []byte {
	if s.Options&OptMSS != 0 {
		o[0], o[1] = kindMSS, 4
		be.PutUint16(o[2:], s.MSS)
		o = o[MSSLen:]
	}
	if s.Options&OptTimestamps != 0 {
		be.PutUint32(o, nopNopTimestamps)
		if s.Options&OptSACKPermitted != 0 {
			o[0], o[1] = kindSACKPermitted, 2
		}
		be.PutUint32(o[4:], s.TSVal)
		be.PutUint32(o[8:], s.TSEcr)
		o = o[TimestampsLen:]
	} else if s.Options&OptSACKPermitted != 0 {
		o[0], o[1], o[2], o[3] = kindNOP, kindNOP, kindSACKPermitted, 2
		o = o[SACKPermittedLen:]
	}
	if s.Options&OptWindowScale != 0 {
		o[0], o[1], o[2], o[3] = kindNOP, kindWindowScale, 3, s.WindowScale
		o = o[WindowScaleLen:]
	}
	if s.Options&OptSACK != 0 && s.SACKBlocks > 0 {
		o[0], o[1], o[2], o[3] = kindNOP, kindNOP, kindSACK, uint8(2+8*s.SACKBlocks)
		for i := range s.SACKBlocks {
			be.PutUint32(o[4+8*i:], uint32(s.SACK[i].Start))
			be.PutUint32(o[8+8*i:], uint32(s.SACK[i].End))
		}
		o = o[SACKLen(s.SACKBlocks):]
	}
	if s.Options&OptFastOpen != 0 {
		n := s.FastOpen.Len
		if n != 0 && (n < 4 || n > 16 || n%2 != 0) {
			panic(fmt.Sprintf("wire: fast open cookie of %d bytes", n))
		}
		o[0], o[1] = kindFastOpen, uint8(2+n)
		copy(o[2:], s.FastOpen.Value[:n])
		o = padNOP(o, 2+n)
	}
	return o
}

// padNOP fills o from n to the next multiple of 4 with NOPs and returns what lies behind.
func padNOP(o []byte, n int) []byte {
	for ; n%4 != 0; n++ {
		o[n] = kindNOP
	}
	return o[n:]
}
