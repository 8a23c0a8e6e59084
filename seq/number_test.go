package seq

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// RFC 9293, Section 3.4: comparisons are modulo 2^32.
func TestBefore(t *testing.T) {
	tests := []struct {
		a, b Number
		want bool
	}{
		{1, 2, true},
		{2, 1, false},
		{5, 5, false},
		{0xffffffff, 0, true},
		{0, 0xffffffff, false},
		{0, 0x7fffffff, true},
		{0x80000001, 0, true},
	}
	for _, tt := range tests {
		if got := tt.a.Before(tt.b); got != tt.want {
			t.Errorf("%#x.Before(%#x) = %t", tt.a, tt.b, got)
		}
	}
}

func TestNumberAddAndAt(t *testing.T) {
	if got := Number(0xffffffff).Add(2); got != 1 {
		t.Errorf("Add over the wrap = %#x", got)
	}
	if got := Number(1).Add(-2); got != 0xffffffff {
		t.Errorf("Add of a negative = %#x", got)
	}
	if got := Number(10).At(1<<32 + 5); got != 15 {
		t.Errorf("At beyond 4 GiB = %#x", got)
	}
}

// The offset of the number at an offset is that offset, wherever the stream is, as long as the reference is
// less than 2 GiB away.
func TestNumberOffset(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		isn := Number(rapid.Uint32().Draw(t, "isn"))
		offset := rapid.Int64Range(-1<<31, 1<<50).Draw(t, "offset")
		near := offset + rapid.Int64Range(-1<<31+1, 1<<31).Draw(t, "distance")
		if got := isn.Offset(isn.At(offset), near); got != offset {
			t.Fatalf("Offset(At(%d), near %d) = %d", offset, near, got)
		}
	})
	if got := Number(100).Offset(99, 0); got != -1 {
		t.Errorf("the number before the stream has offset %d, want -1", got)
	}
}

func TestDataOffset(t *testing.T) {
	idsn := Data(math.MaxUint64) // wraps at once
	for _, offset := range []int64{0, 1, 2, 1 << 40, -1, math.MaxInt64} {
		if got := idsn.Offset(idsn.At(offset)); got != offset {
			t.Errorf("Offset(At(%d)) = %d", offset, got)
		}
	}
	if got := idsn.At(1); got != 0 {
		t.Errorf("number after the last = %d, want 0", got)
	}
}

// RFC 8684, Section 3.3.1: 32 bits are promoted next to what is expected, before and after it.
func TestPromote(t *testing.T) {
	tests := []struct {
		name     string
		low      uint32
		expected Data
		want     Data
	}{
		{"the same", 0x5678, 0x1_0000_5678, 0x1_0000_5678},
		{"later", 0x6000, 0x1_0000_5678, 0x1_0000_6000},
		{"older", 0x5000, 0x1_0000_5678, 0x1_0000_5000},
		{"forward over the wrap", 0x10, 0x1_ffff_fff0, 0x2_0000_0010},
		{"from before the wrap", 0xffff_fff0, 0x2_0000_0010, 0x1_ffff_fff0},
		{"over the end of 64 bits", 0x10, 0xffff_ffff_ffff_fff0, 0x10},
		{"from before its end", 0xffff_fff0, 0x10, 0xffff_ffff_ffff_fff0},
	}
	for _, tt := range tests {
		if got := Promote(tt.low, tt.expected); got != tt.want {
			t.Errorf("%s: Promote(%#x, %#x) = %#x, want %#x", tt.name, tt.low, tt.expected, got, tt.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		expected := Data(rapid.Uint64().Draw(t, "expected"))
		n := expected + Data(rapid.Int64Range(-1<<31, 1<<31-1).Draw(t, "distance"))
		if got := Promote(uint32(n), expected); got != n {
			t.Fatalf("Promote(%#x, %#x) = %#x, want %#x", uint32(n), expected, got, n)
		}
	})
}
