package wire

import (
	"fmt"
	"slices"
)

// ShimVersion is the version of MPTCP over UDP that this package speaks. Version 0 is never spoken: it
// marks version negotiation.
const ShimVersion = 1

// Sizes of the header of MPTCP over UDP in bytes.
const (
	ShimLen          = 8  // in front of a segment
	ShimSYNLen       = 12 // with the sender's tag
	ShimChallengeLen = 16 // a whole challenge or response
	ShimVersionsLen  = 12 // a whole version negotiation
	ShimMaxPadding   = 60 // between header and segment
)

// ShimType says what follows the header of MPTCP over UDP.
type ShimType uint8

// The types.
const (
	ShimSegment   ShimType = 0 // a TCP segment
	ShimChallenge ShimType = 1 // a number to be returned; also a keep-alive and a path MTU probe
	ShimResponse  ShimType = 2 // the number returned
	ShimVersions  ShimType = 3 // the versions that the sender speaks; never answered
)

// Shim is the header that stands in front of a TCP segment in a UDP datagram (docs/encapsulation.md), or
// the whole of a datagram without a segment. Tags are random and never 0.
type Shim struct {
	Version   uint8
	Type      ShimType
	Tag       uint32 // the receiver's; 0 in a first SYN: not known yet
	HasSender bool   // SenderTag follows
	SenderTag uint32
	Padding   int    // zero bytes between header and segment, 0 to 60, a multiple of 4
	Challenge uint64 // ShimChallenge, ShimResponse
	Versions  uint16 // ShimVersions: bit v is set if version v is spoken
}

// shimSender is the flag that a sender's tag follows the receiver's.
const shimSender = 1 << 7

// Len returns the bytes that AppendShim writes.
func (s *Shim) Len() int {
	switch s.Type {
	case ShimChallenge, ShimResponse:
		return ShimChallengeLen
	case ShimVersions:
		return ShimVersionsLen
	}
	if s.HasSender {
		return ShimSYNLen + s.Padding
	}
	return ShimLen + s.Padding
}

// SYNPadding returns the Padding that a segment travels with so that its answer need not be larger: in a SYN as much
// as MP_CAPABLE or MP_JOIN grows in the SYN/ACK, otherwise 0 (docs/encapsulation.md, Size of the first packets).
func SYNPadding(s *Segment) int {
	switch {
	case s.Flags&(SYN|ACK) != SYN:
		return 0
	case s.Has(OptMPCapable):
		return MPCapableLen(1, false, false) - MPCapableLen(0, false, false)
	case s.Has(OptMPJoin):
		return MPJoinSYNACKLen - MPJoinSYNLen
	}
	return 0
}

// ParseShim reads the header from the payload of a UDP datagram; rest is what follows it: the segment, or
// padding that a challenge may have to probe for a path MTU.
//
// With ErrShimVersion the result still holds the fields that every version has in the same place, Version,
// Tag, HasSender and SenderTag, so that the receiver can answer with the versions it speaks.
func ParseShim(b []byte) (s Shim, rest []byte, err error) {
	if len(b) < ShimLen {
		return s, nil, ErrShimShort
	}
	s.Version = b[0] >> 4
	s.Type = ShimType(b[0] & 0xf)
	s.Tag = be.Uint32(b[4:])
	if b[1]&shimSender != 0 {
		if len(b) < ShimSYNLen {
			return s, nil, ErrShimShort
		}
		s.HasSender = true
		s.SenderTag = be.Uint32(b[8:])
	}
	if s.Version == 0 {
		return s.parseVersions(b)
	}
	if s.Version != ShimVersion {
		return s, nil, ErrShimVersion
	}
	switch s.Type {
	case ShimSegment:
		return s.parseSegment(b)
	case ShimChallenge, ShimResponse:
		if s.HasSender {
			return s, nil, ErrShimBody
		}
		if len(b) < ShimChallengeLen {
			return s, nil, ErrShimShort
		}
		s.Challenge = be.Uint64(b[8:])
		return s, b[ShimChallengeLen:], nil
	}
	return s, nil, ErrShimType
}

// parseVersions reads the body of a version negotiation.
func (s Shim) parseVersions(b []byte) (Shim, []byte, error) {
	if s.Type != ShimVersions {
		return s, nil, ErrShimType
	}
	if s.HasSender {
		return s, nil, ErrShimBody
	}
	if len(b) < ShimVersionsLen {
		return s, nil, ErrShimShort
	}
	s.Versions = be.Uint16(b[8:])
	return s, b[ShimVersionsLen:], nil
}

// parseSegment finds the segment behind header and padding.
func (s Shim) parseSegment(b []byte) (Shim, []byte, error) {
	n := ShimLen
	if s.HasSender {
		n = ShimSYNLen
		if s.SenderTag == 0 {
			return s, nil, ErrShimBody
		}
	}
	s.Padding = int(b[2])
	if s.Padding > ShimMaxPadding || s.Padding%4 != 0 {
		return s, nil, ErrShimBody
	}
	n += s.Padding
	if len(b) < n {
		return s, nil, ErrShimShort
	}
	return s, b[n:], nil
}

// AppendShim appends the header to b; the segment goes behind it. It panics on a header that cannot be.
func AppendShim(b []byte, s *Shim) []byte {
	plain := s.Type == ShimSegment
	switch {
	case s.Type > ShimVersions || (s.Type == ShimVersions) != (s.Version == 0) || s.Version > 0xf,
		!plain && (s.HasSender || s.Padding != 0),
		s.HasSender && s.SenderTag == 0,
		s.Padding < 0 || s.Padding > ShimMaxPadding || s.Padding%4 != 0:
		panic(fmt.Sprintf("wire: MPTCP-over-UDP header %+v", *s))
	}
	start, n := len(b), s.Len()
	b = slices.Grow(b, n)[:start+n]
	h := b[start:]
	h[0], h[1], h[2], h[3] = s.Version<<4|uint8(s.Type), 0, uint8(s.Padding), 0
	be.PutUint32(h[4:], s.Tag)
	switch s.Type {
	case ShimChallenge, ShimResponse:
		be.PutUint64(h[8:], s.Challenge)
		return b
	case ShimVersions:
		be.PutUint16(h[8:], s.Versions)
		h[10], h[11] = 0, 0
		return b
	}
	h = h[ShimLen:]
	if s.HasSender {
		b[start+1] = shimSender
		be.PutUint32(h, s.SenderTag)
		h = h[4:]
	}
	clear(h)
	return b
}
