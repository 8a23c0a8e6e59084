// Package seq does the arithmetic of sequence numbers: 32-bit subflow numbers and 64-bit data numbers
// as they stand on the wire, the unwrapped 64-bit offsets that the stack computes with, and sets of
// ranges of such offsets.
//
// The wire's numbers wrap; offsets do not. Everything above the codec converts a number to an offset
// once, at the edge, next to the offset it expects, and from there on compares plain integers.
// The package knows no packets and no connections.
package seq

// Number is a TCP sequence number as it stands in a header (RFC 9293, Section 3.4): modulo 2^32.
type Number uint32

// Before reports whether a comes before b in sequence space.
func (a Number) Before(b Number) bool { return int32(a-b) < 0 }

// Add returns the number n bytes after a.
func (a Number) Add(n int64) Number { return a + Number(uint32(n)) }

// At returns the number of the given offset in a stream whose offset 0 is numbered a.
// With a an initial sequence number, offset 0 is the SYN and offset 1 the first byte: the offset is
// RFC 8684's relative subflow sequence number (Section 3.3.1).
func (a Number) At(offset int64) Number { return a + Number(uint32(offset)) }

// Offset returns the offset of n in a stream whose offset 0 is numbered a: of all candidates the one
// nearest to near. It is negative for numbers before the stream's start.
func (a Number) Offset(n Number, near int64) int64 {
	return near + int64(int32(n-a.At(near)))
}

// Data is a data sequence number (RFC 8684, Section 3.3.1): modulo 2^64.
type Data uint64

// At returns the number of the given offset in a data stream whose offset 0 is numbered d.
// With d an initial data sequence number, offset 1 is the first byte of data.
func (d Data) At(offset int64) Data { return d + Data(uint64(offset)) }

// Offset returns the offset of n in a data stream whose offset 0 is numbered d, negative for numbers
// before the stream's start.
func (d Data) Offset(n Data) int64 { return int64(n - d) }

// Promote widens the low 32 bits of a data sequence number or DATA_ACK to the 64-bit number nearest to
// expected (RFC 8684, Section 3.3.1: a host may send 32 bits, the receiver supplies the rest).
func Promote(low uint32, expected Data) Data {
	return expected + Data(int64(int32(low-uint32(expected))))
}
