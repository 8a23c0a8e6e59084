package seq

// Set is a set of offsets kept as sorted, disjoint, non-adjacent ranges. Adding at the end, taking from
// the front and looking up cost O(log n) of the number of ranges or less; a change in the middle moves
// the ranges behind it. The zero Set is empty and ready. Not safe for concurrent use.
type Set struct {
	buf  []Range // buf[head:] are the ranges
	head int
}

func (s *Set) ranges() []Range { return s.buf[s.head:] }

// search returns the index of the first range whose end is at or after o. Most look-ups are at either end.
func (s *Set) search(o int64) int {
	rs := s.ranges()
	n := len(rs)
	if n == 0 || rs[n-1].End < o {
		return n
	}
	if rs[0].End >= o {
		return 0
	}
	low, high := 0, n-1 // rs[low] ends before o, rs[high] does not
	for low+1 < high {
		if mid := int(uint(low+high) >> 1); rs[mid].End < o {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// Add puts r into the set.
func (s *Set) Add(r Range) {
	if r.Empty() {
		return
	}
	rs := s.ranges()
	i := s.search(r.Start)
	if i == len(rs) {
		s.compact()
		s.buf = append(s.buf, r)
		return
	}
	if r.End < rs[i].Start { // a gap on both sides
		if i == 0 && s.head > 0 {
			s.head--
			s.buf[s.head] = r
			return
		}
		s.compact()
		s.buf = append(s.buf, Range{})
		rs = s.ranges()
		copy(rs[i+1:], rs[i:])
		rs[i] = r
		return
	}
	r.Start = min(r.Start, rs[i].Start)
	j := i
	for j < len(rs) && rs[j].Start <= r.End {
		r.End = max(r.End, rs[j].End)
		j++
	}
	rs[i] = r
	s.delete(i+1, j)
}

// Remove takes r out of the set.
func (s *Set) Remove(r Range) {
	if r.Empty() {
		return
	}
	rs := s.ranges()
	i := s.search(r.Start + 1)
	if i < len(rs) && rs[i].Start < r.Start {
		if rs[i].End > r.End { // r cuts a hole
			tail := Range{r.End, rs[i].End}
			rs[i].End = r.Start
			s.compact()
			s.buf = append(s.buf, Range{})
			rs = s.ranges()
			copy(rs[i+2:], rs[i+1:])
			rs[i+1] = tail
			return
		}
		rs[i].End = r.Start
		i++
	}
	j := i
	for j < len(rs) && rs[j].End <= r.End {
		j++
	}
	if j < len(rs) && rs[j].Start < r.End {
		rs[j].Start = r.End
	}
	s.delete(i, j)
}

// RemoveBefore takes every offset below o out of the set.
func (s *Set) RemoveBefore(o int64) {
	rs := s.ranges()
	for len(rs) > 0 && rs[0].End <= o {
		rs = rs[1:]
		s.head++
	}
	if len(rs) == 0 {
		s.Clear()
		return
	}
	rs[0].Start = max(rs[0].Start, o)
}

// delete removes ranges i to j, exclusive.
func (s *Set) delete(i, j int) {
	if i >= j {
		return
	}
	if i == 0 {
		s.head += j
		if s.head == len(s.buf) {
			s.Clear()
		}
		return
	}
	rs := s.ranges()
	n := copy(rs[i:], rs[j:])
	s.buf = s.buf[:s.head+i+n]
}

// compact moves the ranges to the front of the buffer when it would otherwise grow for nothing.
func (s *Set) compact() {
	if len(s.buf) == cap(s.buf) && s.head > len(s.buf)/2 {
		n := copy(s.buf, s.buf[s.head:])
		s.buf = s.buf[:n]
		s.head = 0
	}
}

// Clear empties the set and keeps its memory.
func (s *Set) Clear() { s.buf, s.head = s.buf[:0], 0 }

// Reset empties the set and gives its memory up.
func (s *Set) Reset() { s.buf, s.head = nil, 0 }

// Empty reports whether the set holds nothing.
func (s *Set) Empty() bool { return s.head == len(s.buf) }

// Count returns the number of ranges.
func (s *Set) Count() int { return len(s.buf) - s.head }

// At returns the i-th range in ascending order.
func (s *Set) At(i int) Range { return s.buf[s.head+i] }

// Len returns the number of offsets in the set.
func (s *Set) Len() int64 {
	var n int64
	for _, r := range s.ranges() {
		n += r.Len()
	}
	return n
}

// Contains reports whether o is in the set.
func (s *Set) Contains(o int64) bool {
	i := s.search(o + 1)
	return i < s.Count() && s.At(i).Contains(o)
}

// Covers reports whether all of r is in the set.
func (s *Set) Covers(r Range) bool {
	if r.Empty() {
		return true
	}
	i := s.search(r.Start + 1)
	return i < s.Count() && s.At(i).Covers(r)
}

// Overlaps reports whether any of r is in the set.
func (s *Set) Overlaps(r Range) bool { return !s.FirstIn(r).Empty() }

// FirstIn returns the first part of r that is in the set, empty if there is none.
func (s *Set) FirstIn(r Range) Range {
	if i := s.search(r.Start + 1); i < s.Count() && !r.Empty() {
		return s.At(i).Intersect(r)
	}
	return Range{r.Start, r.Start}
}

// FirstGap returns the first part of r that is not in the set, empty if r is covered.
func (s *Set) FirstGap(r Range) Range {
	if i := s.search(r.Start + 1); i < s.Count() && !r.Empty() {
		if s.At(i).Start <= r.Start {
			r.Start = s.At(i).End
			i++
		}
		if i < s.Count() {
			r.End = min(r.End, s.At(i).Start)
		}
	}
	return r
}
