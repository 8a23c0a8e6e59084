package wire

import (
	"encoding/binary"
	"math/bits"
	"net/netip"

	"braid/seq"
)

// Sum is a partial Internet checksum (RFC 1071): the one's complement sum of the 16-bit words seen so
// far, not yet inverted. The zero Sum is the sum of nothing. Sums add up in any order.
type Sum uint32

// Add returns the sum with the bytes of b, whose first byte stands at an even offset. If the length of b
// is odd, a zero byte is taken to follow: what comes behind it must be shifted (see At).
func (s Sum) Add(b []byte) Sum { return s.fold() + sum(b) }

// Plus returns the sum of both.
func (s Sum) Plus(t Sum) Sum { return s.fold() + t.fold() }

// At returns the sum as that of bytes which start at the given offset: at odd offsets each byte stands in
// the other half of its word (RFC 1071, Section 2, (B)).
func (s Sum) At(offset int) Sum {
	s = s.fold()
	if offset&1 != 0 {
		s = Sum(bits.ReverseBytes16(uint16(s)))
	}
	return s
}

// Add16 returns the sum with one 16-bit word.
func (s Sum) Add16(v uint16) Sum { return s.fold() + Sum(v) }

// Add32 returns the sum with two 16-bit words.
func (s Sum) Add32(v uint32) Sum { return s.fold() + Sum(v>>16) + Sum(v&0xffff) }

// Add64 returns the sum with four 16-bit words.
func (s Sum) Add64(v uint64) Sum { return s.Add32(uint32(v >> 32)).Add32(uint32(v)) }

// Checksum returns the value for a header's checksum field: the sum folded to 16 bits and inverted.
func (s Sum) Checksum() uint16 { return ^uint16(s.fold()) }

// fold brings the sum down to 16 bits.
func (s Sum) fold() Sum {
	s = s>>16 + s&0xffff
	return s>>16 + s&0xffff
}

// foldNative folds the 64-bit sum of little-endian words to a Sum. The one's complement sum does not depend on
// the byte order but for swapping the bytes of the result (RFC 1071, Section 2, (B)).
func foldNative(acc uint64) Sum {
	acc = acc>>32 + acc&0xffffffff
	acc = acc>>16&0xffff + acc>>32 + acc&0xffff
	acc = acc>>16 + acc&0xffff
	acc = acc>>16 + acc&0xffff
	return Sum(bits.ReverseBytes16(uint16(acc)))
}

// sum returns the one's complement sum of b, below 2^16. It keeps two sums so that two chains of additions
// with carry run side by side in the processor: half as fast again as one chain.
func sum(b []byte) Sum {
	le := binary.LittleEndian
	var s, sc, t, tc uint64
	for len(b) >= 128 {
		w := b[:128]
		s, sc = bits.Add64(s, le.Uint64(w[0:]), sc)
		s, sc = bits.Add64(s, le.Uint64(w[8:]), sc)
		s, sc = bits.Add64(s, le.Uint64(w[16:]), sc)
		s, sc = bits.Add64(s, le.Uint64(w[24:]), sc)
		s, sc = bits.Add64(s, le.Uint64(w[32:]), sc)
		s, sc = bits.Add64(s, le.Uint64(w[40:]), sc)
		s, sc = bits.Add64(s, le.Uint64(w[48:]), sc)
		s, sc = bits.Add64(s, le.Uint64(w[56:]), sc)
		t, tc = bits.Add64(t, le.Uint64(w[64:]), tc)
		t, tc = bits.Add64(t, le.Uint64(w[72:]), tc)
		t, tc = bits.Add64(t, le.Uint64(w[80:]), tc)
		t, tc = bits.Add64(t, le.Uint64(w[88:]), tc)
		t, tc = bits.Add64(t, le.Uint64(w[96:]), tc)
		t, tc = bits.Add64(t, le.Uint64(w[104:]), tc)
		t, tc = bits.Add64(t, le.Uint64(w[112:]), tc)
		t, tc = bits.Add64(t, le.Uint64(w[120:]), tc)
		b = b[128:]
	}
	s, sc = bits.Add64(s, t, sc)
	s, sc = bits.Add64(s, tc, sc)
	return sumTail(s, sc, b)
}

// sumTail adds fewer than 128 bytes to acc and the carry that belongs to it, and folds.
func sumTail(acc, carry uint64, b []byte) Sum {
	le := binary.LittleEndian
	for len(b) >= 32 {
		w := b[:32]
		acc, carry = bits.Add64(acc, le.Uint64(w[0:]), carry)
		acc, carry = bits.Add64(acc, le.Uint64(w[8:]), carry)
		acc, carry = bits.Add64(acc, le.Uint64(w[16:]), carry)
		acc, carry = bits.Add64(acc, le.Uint64(w[24:]), carry)
		b = b[32:]
	}
	for len(b) >= 8 {
		acc, carry = bits.Add64(acc, le.Uint64(b), carry)
		b = b[8:]
	}
	var last uint64
	if len(b) >= 4 {
		last = uint64(le.Uint32(b)) << 32
		b = b[4:]
	}
	switch len(b) { // of the low half, which is still free
	case 3:
		last |= uint64(b[2])<<16 | uint64(le.Uint16(b))
	case 2:
		last |= uint64(le.Uint16(b))
	case 1:
		last |= uint64(b[0])
	}
	acc, carry = bits.Add64(acc, last, carry)
	acc, carry = bits.Add64(acc, 0, carry)
	return foldNative(acc + carry)
}

// CopyAndSum copies src to dst, which must be at least as long, and returns the sum of what it copied as if
// it started at an even offset. (The machine's own copy and then a sum over what is now in its nearest cache is
// faster than one loop that does both: BenchmarkCopyAndSum1460.)
func CopyAndSum(dst, src []byte) Sum {
	copy(dst[:len(src)], src)
	return sum(dst[:len(src)])
}

// PseudoSum returns the sum of the pseudo-header of TCP, UDP or ICMPv6 without the length, which
// SetTCPChecksum and the others add: one such sum serves every packet between two addresses
// (RFC 9293, Section 3.1; RFC 8200, Section 8.1). Both addresses are of one family.
func PseudoSum(src, dst netip.Addr, proto uint8) Sum {
	var s Sum
	if src.Is4() {
		a, b := src.As4(), dst.As4()
		s = s.Add32(be.Uint32(a[:])).Add32(be.Uint32(b[:]))
	} else {
		a, b := src.As16(), dst.As16()
		s = s.Add(a[:]).Add(b[:])
	}
	return s.Add16(uint16(proto))
}

// SetTCPChecksum fills in the checksum of a TCP header (with its options) that is followed by payloadLen
// bytes whose sum is payload (see CopyAndSum). pseudo is the PseudoSum of the addresses.
func SetTCPChecksum(header []byte, payloadLen int, pseudo, payload Sum) {
	header[16], header[17] = 0, 0
	s := sum(header) + pseudo.fold() + payload.fold() + Sum(len(header)+payloadLen)
	be.PutUint16(header[16:], s.Checksum())
}

// TCPChecksumOK reports whether the checksum of a whole TCP segment is right.
func TCPChecksumOK(segment []byte, pseudo Sum) bool {
	return (sum(segment) + pseudo.fold() + Sum(len(segment))).Checksum() == 0
}

// DSSChecksum returns the checksum of a mapping: over a pseudo-header of the 64-bit data sequence number (even
// if 32 bits travel), the relative subflow sequence number, the data-level length as it stands in
// the option (a DATA_FIN counted) and a zero checksum, and over the mapped data (RFC 8684, Section 3.3.1).
// data is the sum of the mapped bytes.
func DSSChecksum(dsn seq.Data, subflow uint32, length uint16, data Sum) uint16 {
	return data.Add64(uint64(dsn)).Add32(subflow).Add16(length).Checksum()
}

// DSSChecksumOK reports whether checksum is right for a mapping received with it.
func DSSChecksumOK(dsn seq.Data, subflow uint32, length, checksum uint16, data Sum) bool {
	return data.Add64(uint64(dsn)).Add32(subflow).Add16(length).Add16(checksum).Checksum() == 0
}
