package mptcp

import (
	"math"
	"sort"
)

// maxMappings bounds the mappings kept of one subflow: one for each packet of the largest window, out of order, is allowed.
const maxMappings = 1 << 16

// forever is the end of the infinite mapping (RFC 8684, Section 3.7).
const forever = math.MaxInt64

// mapping says where bytes of a subflow belong: subflow offsets [start, end) are the data offsets from data on
// (RFC 8684, Section 3.3.1).
type mapping struct {
	start, end int64
	data       int64

	checked  bool   // a checksum has to be verified over the whole of it
	length   uint16 // of a checked one: the option's length field, which counts a DATA_FIN
	checksum uint16
}

// delta is what turns subflow offsets into data offsets.
func (m *mapping) delta() int64 { return m.data - m.start }

// mapVerdict says what became of a mapping that the peer sent.
type mapVerdict uint8

const (
	mapNew      mapVerdict = iota // it told something new
	mapKnown                      // it was known already, or lies before what has been consumed
	mapConflict                   // the same subflow bytes were mapped elsewhere: a protocol error; the first mapping stays
	mapTooMany                    // no room
)

// mappingTable is what the peer said about the bytes it sends on one subflow and that have not been consumed. Mappings are
// final (RFC 8684, Section 3.3.1): the first one for a byte stays. They are disjoint and ascending. A table in the hands of a
// well-behaved sender has its front used up and its end extended; everything else is possible and slower.
type mappingTable struct {
	list []mapping // list[head:] are in force
	head int
	done int64 // subflow offsets below are consumed: mappings for them are of no interest
}

func (t *mappingTable) len() int { return len(t.list) - t.head }

// find returns the mapping of subflow offset o, nil if there is none.
func (t *mappingTable) find(o int64) *mapping {
	l := t.list[t.head:]
	if len(l) == 0 {
		return nil
	}
	if m := &l[0]; o < m.end {
		if o >= m.start {
			return m
		}
		return nil
	}
	if i := t.search(o); i < len(l) && l[i].start <= o {
		return &l[i]
	}
	return nil
}

// search returns the index, within list[head:], of the first mapping that ends after o.
func (t *mappingTable) search(o int64) int {
	l := t.list[t.head:]
	if n := len(l); n == 0 || l[n-1].end <= o {
		return n
	}
	return sort.Search(len(l), func(i int) bool { return l[i].end > o })
}

// next returns the first mapped subflow offset at or after o, forever if there is none.
func (t *mappingTable) next(o int64) int64 {
	if i := t.search(o); i < t.len() {
		return max(o, t.list[t.head+i].start)
	}
	return forever
}

// consume forgets what concerns subflow offsets below o. A mapping that reaches beyond stays whole.
func (t *mappingTable) consume(o int64) {
	t.done = o
	for t.head < len(t.list) && t.list[t.head].end <= o {
		t.head++
	}
	if t.head == len(t.list) {
		t.list, t.head = t.list[:0], 0
	}
}

// clear forgets everything.
func (t *mappingTable) clear() { t.list, t.head = nil, 0 }

// add takes a mapping that the peer sent. Middleboxes repeat one on every piece of a segment that they split, and hosts on
// every segment of a burst: what is known already is recognised first.
func (t *mappingTable) add(m mapping) mapVerdict {
	if m.end <= m.start || m.end <= t.done {
		return mapKnown
	}
	l := t.list[t.head:]
	if n := len(l); n > 0 {
		last := &l[n-1]
		if m.start >= last.end {
			return t.append(m)
		}
		if m.start >= last.start && m.end <= last.end && sameMapping(last, &m) {
			return mapKnown
		}
		return t.insert(m)
	}
	return t.append(m)
}

// sameMapping reports whether m, which overlaps old, says the same of the bytes that both cover. Checksums are over a whole
// mapping: of a checked one only the identical range is the same.
func sameMapping(old, m *mapping) bool {
	if old.delta() != m.delta() || old.checked != m.checked {
		return false
	}
	return !old.checked || old.start == m.start && old.end == m.end
}

// append adds a mapping behind all others. One that goes on where the last one ends, in both spaces, extends it.
func (t *mappingTable) append(m mapping) mapVerdict {
	if n := len(t.list); n > t.head {
		if last := &t.list[n-1]; last.end == m.start && !last.checked && !m.checked && last.delta() == m.delta() {
			last.end = m.end
			return mapNew
		}
	}
	if t.len() >= maxMappings {
		return mapTooMany
	}
	if len(t.list) == cap(t.list) && t.head > len(t.list)/2 {
		n := copy(t.list, t.list[t.head:])
		t.list, t.head = t.list[:n], 0
	}
	t.list = append(t.list, m)
	return mapNew
}

// insert adds a mapping that is not behind all others: parts that are known and agree are left out, the others fill gaps.
func (t *mappingTable) insert(m mapping) mapVerdict {
	first := t.search(m.start)
	for i := first; i < t.len(); i++ {
		old := &t.list[t.head+i]
		if old.start >= m.end {
			break
		}
		if !sameMapping(old, &m) {
			return mapConflict
		}
	}
	verdict := mapKnown
	for i := first; m.start < m.end; i++ {
		gap := m
		behind := i >= t.len()
		if !behind {
			gap.end = min(m.end, t.list[t.head+i].start)
		}
		if gap.end > gap.start {
			if t.len() >= maxMappings {
				return mapTooMany
			}
			t.list = append(t.list, mapping{})
			l := t.list[t.head:]
			copy(l[i+1:], l[i:])
			l[i] = gap
			verdict = mapNew
			i++
		}
		if behind || gap.end == m.end {
			break
		}
		next := t.list[t.head+i].end
		m.data += next - m.start
		m.start = next
	}
	return verdict
}

// addInfinite takes the infinite mapping: every byte from subflow offset start on goes on in the data stream at data, and what
// was mapped from there on before is void (RFC 8684, Section 3.7).
func (t *mappingTable) addInfinite(start, data int64) {
	for len(t.list) > t.head && t.list[len(t.list)-1].start >= start {
		t.list = t.list[:len(t.list)-1]
	}
	if n := len(t.list); n > t.head {
		if last := &t.list[n-1]; last.end > start {
			if last.checked {
				t.list = t.list[:n-1]
			} else {
				last.end = start
			}
		}
	}
	t.list = append(t.list, mapping{start: start, end: forever, data: data})
}
