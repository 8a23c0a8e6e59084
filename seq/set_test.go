package seq

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// list returns the ranges of a set.
func list(s *Set) []Range {
	var out []Range
	for i := range s.Count() {
		out = append(out, s.At(i))
	}
	return out
}

// set makes a Set of ranges.
func set(rs ...Range) *Set {
	s := new(Set)
	for _, r := range rs {
		s.Add(r)
	}
	return s
}

func TestSetAddAndRemove(t *testing.T) {
	tests := []struct {
		name string
		do   func(s *Set)
		want []Range
	}{
		{"nothing", func(s *Set) {}, []Range{{10, 20}, {30, 40}}},
		{"add empty", func(s *Set) { s.Add(Range{25, 25}); s.Add(Range{27, 3}) }, []Range{{10, 20}, {30, 40}}},
		{"add in front", func(s *Set) { s.Add(Range{1, 2}) }, []Range{{1, 2}, {10, 20}, {30, 40}}},
		{"add between", func(s *Set) { s.Add(Range{22, 28}) }, []Range{{10, 20}, {22, 28}, {30, 40}}},
		{"add behind", func(s *Set) { s.Add(Range{50, 60}) }, []Range{{10, 20}, {30, 40}, {50, 60}}},
		{"add touching left", func(s *Set) { s.Add(Range{20, 25}) }, []Range{{10, 25}, {30, 40}}},
		{"add touching right", func(s *Set) { s.Add(Range{25, 30}) }, []Range{{10, 20}, {25, 40}}},
		{"add bridging", func(s *Set) { s.Add(Range{20, 30}) }, []Range{{10, 40}}},
		{"add over all", func(s *Set) { s.Add(Range{5, 50}) }, []Range{{5, 50}}},
		{"add inside", func(s *Set) { s.Add(Range{12, 13}) }, []Range{{10, 20}, {30, 40}}},
		{"remove hole", func(s *Set) { s.Remove(Range{12, 15}) }, []Range{{10, 12}, {15, 20}, {30, 40}}},
		{"remove left end", func(s *Set) { s.Remove(Range{5, 15}) }, []Range{{15, 20}, {30, 40}}},
		{"remove right end", func(s *Set) { s.Remove(Range{15, 25}) }, []Range{{10, 15}, {30, 40}}},
		{"remove across", func(s *Set) { s.Remove(Range{15, 35}) }, []Range{{10, 15}, {35, 40}}},
		{"remove one whole", func(s *Set) { s.Remove(Range{30, 40}) }, []Range{{10, 20}}},
		{"remove gap", func(s *Set) { s.Remove(Range{20, 30}) }, []Range{{10, 20}, {30, 40}}},
		{"remove empty", func(s *Set) { s.Remove(Range{15, 15}) }, []Range{{10, 20}, {30, 40}}},
		{"remove all", func(s *Set) { s.Remove(Range{0, 99}) }, nil},
		{"remove before", func(s *Set) { s.RemoveBefore(15) }, []Range{{15, 20}, {30, 40}}},
		{"remove before in gap", func(s *Set) { s.RemoveBefore(25) }, []Range{{30, 40}}},
		{"remove before all", func(s *Set) { s.RemoveBefore(40) }, nil},
		{"clear", (*Set).Clear, nil},
		{"reset", (*Set).Reset, nil},
		{"front again after remove", func(s *Set) { s.RemoveBefore(25); s.Add(Range{1, 2}) }, []Range{{1, 2}, {30, 40}}},
	}
	for _, tt := range tests {
		s := set(Range{30, 40}, Range{10, 20})
		tt.do(s)
		if got := list(s); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestSetQuestions(t *testing.T) {
	s := set(Range{10, 20}, Range{30, 40})
	tests := []struct {
		r          Range
		covers     bool
		first, gap Range // empty: whatever is empty
	}{
		{Range{10, 20}, true, Range{10, 20}, Range{}},
		{Range{12, 14}, true, Range{12, 14}, Range{}},
		{Range{5, 15}, false, Range{10, 15}, Range{5, 10}},
		{Range{15, 35}, false, Range{15, 20}, Range{20, 30}},
		{Range{20, 30}, false, Range{}, Range{20, 30}},
		{Range{20, 31}, false, Range{30, 31}, Range{20, 30}},
		{Range{35, 60}, false, Range{35, 40}, Range{40, 60}},
		{Range{50, 60}, false, Range{}, Range{50, 60}},
		{Range{0, 5}, false, Range{}, Range{0, 5}},
		{Range{15, 15}, true, Range{}, Range{}},
		{Range{50, 50}, true, Range{}, Range{}},
	}
	same := func(got, want Range) bool { return got == want || got.Empty() && want.Empty() }
	for _, tt := range tests {
		if got := s.Covers(tt.r); got != tt.covers {
			t.Errorf("Covers(%v) = %t", tt.r, got)
		}
		if got := s.FirstIn(tt.r); !same(got, tt.first) {
			t.Errorf("FirstIn(%v) = %v, want %v", tt.r, got, tt.first)
		}
		if got := s.Overlaps(tt.r); got == tt.first.Empty() {
			t.Errorf("Overlaps(%v) = %t", tt.r, got)
		}
		if got := s.FirstGap(tt.r); !same(got, tt.gap) {
			t.Errorf("FirstGap(%v) = %v, want %v", tt.r, got, tt.gap)
		}
	}
}

// model is a set as one bool per offset.
type model [64]bool

func (m *model) set(r Range, in bool) {
	for o := max(r.Start, 0); o < min(r.End, int64(len(m))); o++ {
		m[o] = in
	}
}

// ranges lists the runs of members.
func (m *model) ranges() (out []Range) {
	for o := range int64(len(m)) {
		switch {
		case !m[o]:
		case o > 0 && m[o-1]:
			out[len(out)-1].End = o + 1
		default:
			out = append(out, Range{o, o + 1})
		}
	}
	return out
}

// run returns the first run in r of offsets that are (or are not) members, empty if there is none.
func (m *model) run(r Range, in bool) Range {
	for o := r.Start; o < r.End; o++ {
		if m[o] == in {
			end := o
			for end < r.End && m[end] == in {
				end++
			}
			return Range{o, end}
		}
	}
	return Range{}
}

func (m *model) count(r Range) (n int64) {
	for o := r.Start; o < r.End; o++ {
		if m[o] {
			n++
		}
	}
	return n
}

// drawRange draws a range that may be empty or inverted.
func drawRange(t *rapid.T) Range {
	o := rapid.Int64Range(0, int64(len(model{})))
	return Range{o.Draw(t, "start"), o.Draw(t, "end")}
}

// Whatever is done to a Set, it answers like one bool per offset.
func TestSetAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Set
		var m model
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				r := drawRange(t)
				s.Add(r)
				m.set(r, true)
			},
			"remove": func(t *rapid.T) {
				r := drawRange(t)
				s.Remove(r)
				m.set(r, false)
			},
			"remove before": func(t *rapid.T) {
				o := rapid.Int64Range(-1, 65).Draw(t, "before")
				s.RemoveBefore(o)
				m.set(Range{0, o}, false)
			},
			"clear": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "really") == 0 {
					s.Clear()
					m = model{}
				}
			},
			"": func(t *rapid.T) { compare(t, &s, &m) },
		})
	})
}

// compare asks Set and model everything.
func compare(t *rapid.T, s *Set, m *model) {
	if got, want := list(s), m.ranges(); !slices.Equal(got, want) {
		t.Fatalf("ranges %v, want %v", got, want)
	}
	all := Range{0, int64(len(m))}
	if got, want := s.Len(), m.count(all); got != want {
		t.Fatalf("Len = %d, want %d", got, want)
	}
	if s.Empty() != (s.Len() == 0) {
		t.Fatalf("Empty = %t with Len %d", s.Empty(), s.Len())
	}
	for o := range m {
		if s.Contains(int64(o)) != m[o] {
			t.Fatalf("Contains(%d) = %t", o, !m[o])
		}
	}
	r := drawRange(t)
	if got, want := s.Covers(r), r.Empty() || m.count(r) == r.Len(); got != want {
		t.Fatalf("Covers(%v) = %t", r, got)
	}
	if got, want := s.Overlaps(r), !r.Empty() && m.count(r) > 0; got != want {
		t.Fatalf("Overlaps(%v) = %t", r, got)
	}
	for _, q := range []struct {
		name      string
		got, want Range
	}{
		{"FirstIn", s.FirstIn(r), m.run(r, true)},
		{"FirstGap", s.FirstGap(r), m.run(r, false)},
	} {
		if q.got != q.want && !(q.got.Empty() && q.want.Empty()) {
			t.Fatalf("%s(%v) = %v, want %v", q.name, r, q.got, q.want)
		}
	}
}

// A window that slides for ever allocates nothing: what is taken from the front makes room at the end.
func TestSetSlidesWithoutAllocating(t *testing.T) {
	var s Set
	var o int64
	slide := func() {
		for range 100 {
			s.Add(Range{o, o + 5})
			o += 10
			s.RemoveBefore(o - 300)
		}
	}
	slide()
	if n := testing.AllocsPerRun(50, slide); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if n := s.Count(); n != 30 {
		t.Errorf("%d ranges, want 30", n)
	}
}

// Gaps that close at the front (the life of a scoreboard) allocate nothing either.
func TestSetFillsWithoutAllocating(t *testing.T) {
	var s Set
	var o int64
	fill := func() {
		for range 40 {
			s.Add(Range{o + 10, o + 20})
			s.Add(Range{o + 30, o + 40})
			s.Add(Range{o, o + 10})
			s.Remove(Range{o + 32, o + 35})
			o += 40
			s.RemoveBefore(o)
		}
	}
	fill()
	if n := testing.AllocsPerRun(50, fill); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Holes cut into data that only ever grows at its end and shrinks at its front (the life of unsent data) must
// not let the memory grow with them.
func TestSetMemoryIsBoundedByItsRanges(t *testing.T) {
	var s Set
	s.Add(Range{0, 100})
	for o := int64(0); o < 100_000; o += 10 {
		s.Add(Range{o + 100, o + 110}) // touches the last range
		s.Remove(Range{o + 50, o + 55})
		s.RemoveBefore(o)
	}
	if n := s.Count(); n > 10 {
		t.Errorf("%d ranges", n)
	}
	if n := cap(s.buf); n > 100 {
		t.Errorf("room for %d ranges, %d in use", n, s.Count())
	}
}

func BenchmarkSet(b *testing.B) {
	for _, n := range []int64{1, 16, 256} {
		b.Run(fmt.Sprintf("append and drop, %d ranges", n), func(b *testing.B) {
			var s Set
			var o int64
			b.ReportAllocs()
			for b.Loop() {
				s.Add(Range{o, o + 5})
				o += 10
				s.RemoveBefore(o - 10*n)
			}
		})
	}
}
