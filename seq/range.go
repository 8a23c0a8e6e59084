package seq

import "fmt"

// Range is a half-open range of offsets: Start is in it, End is not.
type Range struct {
	Start, End int64
}

// Len returns the number of offsets in r, 0 if it is empty or inverted.
func (r Range) Len() int64 { return max(0, r.End-r.Start) }

// Empty reports whether r holds no offset.
func (r Range) Empty() bool { return r.End <= r.Start }

// Contains reports whether offset o lies in r.
func (r Range) Contains(o int64) bool { return r.Start <= o && o < r.End }

// Covers reports whether every offset of s lies in r.
func (r Range) Covers(s Range) bool { return s.Empty() || (r.Start <= s.Start && s.End <= r.End) }

// Overlaps reports whether r and s share an offset.
func (r Range) Overlaps(s Range) bool {
	return max(r.Start, s.Start) < min(r.End, s.End)
}

// Intersect returns the offsets that r and s share; the result may be empty.
func (r Range) Intersect(s Range) Range {
	return Range{max(r.Start, s.Start), min(r.End, s.End)}
}

// String prints r as [start,end).
func (r Range) String() string { return fmt.Sprintf("[%d,%d)", r.Start, r.End) }
