package seq

import "testing"

func TestRange(t *testing.T) {
	tests := []struct {
		r     Range
		n     int64
		empty bool
	}{
		{Range{}, 0, true},
		{Range{3, 7}, 4, false},
		{Range{7, 3}, 0, true},
		{Range{-2, -1}, 1, false},
	}
	for _, tt := range tests {
		if tt.r.Len() != tt.n || tt.r.Empty() != tt.empty {
			t.Errorf("%v: Len %d, Empty %t", tt.r, tt.r.Len(), tt.r.Empty())
		}
	}
	r := Range{3, 7}
	for o, want := range map[int64]bool{2: false, 3: true, 6: true, 7: false} {
		if r.Contains(o) != want {
			t.Errorf("%v.Contains(%d) = %t", r, o, !want)
		}
	}
	if got := r.String(); got != "[3,7)" {
		t.Errorf("String = %q", got)
	}
}

func TestRangePairs(t *testing.T) {
	r := Range{10, 20}
	tests := []struct {
		s                Range
		covers, overlaps bool
		both             Range // checked if they overlap
	}{
		{Range{10, 20}, true, true, Range{10, 20}},
		{Range{12, 15}, true, true, Range{12, 15}},
		{Range{5, 15}, false, true, Range{10, 15}},
		{Range{15, 25}, false, true, Range{15, 20}},
		{Range{5, 25}, false, true, Range{10, 20}},
		{Range{0, 10}, false, false, Range{}},
		{Range{20, 30}, false, false, Range{}},
		{Range{15, 15}, true, false, Range{}}, // nothing is covered by anything and overlaps nothing
		{Range{30, 30}, true, false, Range{}},
	}
	for _, tt := range tests {
		if got := r.Covers(tt.s); got != tt.covers {
			t.Errorf("%v.Covers(%v) = %t", r, tt.s, got)
		}
		if r.Overlaps(tt.s) != tt.overlaps || tt.s.Overlaps(r) != tt.overlaps {
			t.Errorf("%v and %v: Overlaps is not %t both ways", r, tt.s, tt.overlaps)
		}
		got := r.Intersect(tt.s)
		if got.Empty() == tt.overlaps || tt.overlaps && got != tt.both {
			t.Errorf("%v.Intersect(%v) = %v", r, tt.s, got)
		}
	}
}
