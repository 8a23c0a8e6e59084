package wire

import (
	"bytes"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"braid/seq"
)

// naiveSum is RFC 1071 word by word.
func naiveSum(b []byte) uint16 {
	var n uint32
	for i, v := range b {
		if i%2 == 0 {
			n += uint32(v) << 8
		} else {
			n += uint32(v)
		}
		n = n>>16 + n&0xffff
	}
	return uint16(n)
}

// sameSum compares one's complement numbers: 0 and 0xffff are both zero.
func sameSum(a, b uint16) bool { return a == b || a%0xffff == 0 && b%0xffff == 0 }

func TestSumTable(t *testing.T) {
	tests := []struct {
		bytes []byte
		want  uint16
	}{
		{nil, 0},
		{[]byte{0x12}, 0x1200},
		{[]byte{0x12, 0x34}, 0x1234},
		{[]byte{0x12, 0x34, 0x56}, 0x6834},
		{[]byte{0xff, 0xff, 0x00, 0x01}, 0x0001},
		{[]byte{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7}, 0xddf2}, // RFC 1071, Section 3
	}
	for _, tt := range tests {
		if got := uint16(Sum(0).Add(tt.bytes).fold()); got != tt.want {
			t.Errorf("sum of %x = %04x, want %04x", tt.bytes, got, tt.want)
		}
		if got := Sum(0).Add(tt.bytes).Checksum(); got != ^tt.want {
			t.Errorf("checksum of %x = %04x, want %04x", tt.bytes, got, ^tt.want)
		}
	}
}

// All bytes 0xff carry at every single step.
func TestSumCarries(t *testing.T) {
	for n := range 400 {
		b := bytes.Repeat([]byte{0xff}, n)
		if got, want := uint16(sum(b)), naiveSum(b); !sameSum(got, want) {
			t.Errorf("%d bytes of ff: %04x, want %04x", n, got, want)
		}
	}
}

func TestSumMatchesNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0x7f, 0x80, 0xfe, 0xff}), 0, 700).Draw(t, "bytes")
		want := naiveSum(b)
		if got := uint16(sum(b)); !sameSum(got, want) {
			t.Fatalf("sum = %04x, want %04x", got, want)
		}
		cut := rapid.IntRange(0, len(b)).Draw(t, "cut")
		pieces := Sum(0).Add(b[:cut]).Plus(Sum(0).Add(b[cut:]).At(cut))
		if got := uint16(pieces.fold()); !sameSum(got, want) {
			t.Fatalf("in two pieces cut at %d: %04x, want %04x", cut, got, want)
		}
		dst := bytes.Repeat([]byte{0xaa}, len(b)+3)
		if got := uint16(CopyAndSum(dst, b)); !sameSum(got, want) {
			t.Fatalf("CopyAndSum = %04x, want %04x", got, want)
		}
		if !bytes.Equal(dst[:len(b)], b) || !bytes.Equal(dst[len(b):], []byte{0xaa, 0xaa, 0xaa}) {
			t.Fatal("CopyAndSum copied something else")
		}
	})
}

func TestSumOfWords(t *testing.T) {
	b := []byte{0xff, 0xfe, 0xfd, 0xfc, 0xfb, 0xfa, 0xf9, 0xf8}
	want := naiveSum(b)
	sums := map[string]Sum{
		"Add16": Sum(0).Add16(0xfffe).Add16(0xfdfc).Add16(0xfbfa).Add16(0xf9f8),
		"Add32": Sum(0).Add32(0xfffefdfc).Add32(0xfbfaf9f8),
		"Add64": Sum(0).Add64(0xfffefdfcfbfaf9f8),
		"full":  Sum(0xffffffff).Add64(0xfffefdfcfbfaf9f8), // any Sum is folded before it is added to
	}
	for name, s := range sums {
		if got := uint16(s.fold()); !sameSum(got, want) {
			t.Errorf("%s: %04x, want %04x", name, got, want)
		}
	}
}

// RFC 9293, Section 3.1: pseudo-header, header, options and data are covered.
func TestTCPChecksum(t *testing.T) {
	pairs := [][2]string{{"192.0.2.1", "198.51.100.2"}, {"2001:db8::1", "2001:db8::ffff:2"}}
	for _, pair := range pairs {
		src, dst := netip.MustParseAddr(pair[0]), netip.MustParseAddr(pair[1])
		pseudo := PseudoSum(src, dst, ProtoTCP)
		for _, payload := range []string{"", "x", "hello, odd", "hello, world"} {
			s := Segment{SrcPort: 1, DstPort: 2, Options: OptTimestamps, TSVal: 0xdeadbeef}
			raw := AppendTCPHeader(nil, &s)
			header := len(raw)
			raw = append(raw, payload...)
			raw[16], raw[17] = 0x55, 0xaa // whatever stood there does not matter
			SetTCPChecksum(raw[:header], len(payload), pseudo, Sum(0).Add(raw[header:]))

			full := append(src.AsSlice(), dst.AsSlice()...)
			full = append(full, 0, ProtoTCP, 0, uint8(len(raw)))
			if len(full)%2 != 0 {
				t.Fatal("pseudo-header of odd length")
			}
			if got := naiveSum(append(full, raw...)); got != 0xffff {
				t.Errorf("%s, %q: everything sums up to %04x, want ffff", pair, payload, got)
			}
			if !TCPChecksumOK(raw, pseudo) {
				t.Errorf("%s, %q: right checksum not recognised", pair, payload)
			}
			for i := range raw {
				raw[i] ^= 0x10
				if TCPChecksumOK(raw, pseudo) {
					t.Errorf("%s, %q: wrong byte %d not noticed", pair, payload, i)
				}
				raw[i] ^= 0x10
			}
		}
	}
}

// RFC 8684, Section 3.3.1: the pseudo-header has the 64-bit data sequence number, the relative subflow sequence
// number, the length of the mapping and zeros.
func TestDSSChecksum(t *testing.T) {
	hello := Sum(0).Add([]byte("hello"))
	if got := DSSChecksum(0x0102030405060708, 1, 5, hello); got != 0xac13 {
		t.Errorf("checksum = %04x, want ac13", got)
	}
	// The length counts a DATA_FIN, the data does not (CSUM-03).
	if got := DSSChecksum(0x0102030405060708, 1, 6, hello); got != 0xac12 {
		t.Errorf("checksum with DATA_FIN = %04x, want ac12", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		dsn, sub, length := rapid.Uint64().Draw(t, "dsn"), rapid.Uint32().Draw(t, "sub"), rapid.Uint16().Draw(t, "len")
		data := rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(t, "data")
		full := be.AppendUint64(nil, dsn)
		full = be.AppendUint32(full, sub)
		full = be.AppendUint16(full, length)
		full = be.AppendUint16(full, 0)
		want := ^naiveSum(append(full, data...))
		if got := DSSChecksum(seq.Data(dsn), sub, length, Sum(0).Add(data)); !sameSum(got, want) {
			t.Fatalf("checksum = %04x, want %04x", got, want)
		}
		if !DSSChecksumOK(seq.Data(dsn), sub, length, want, Sum(0).Add(data)) {
			t.Fatal("right checksum not recognised")
		}
		if DSSChecksumOK(seq.Data(dsn), sub, length, want^0x0400, Sum(0).Add(data)) {
			t.Fatal("wrong checksum not noticed")
		}
	})
}
