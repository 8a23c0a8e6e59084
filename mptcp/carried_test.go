package mptcp

import (
	"testing"

	"braid/seq"
	"braid/tcp"
)

// A chunk's memory is kept until all of it is acknowledged: a retransmission of the rest carries the mapping, and the checksum, of the
// whole (RFC 8684, Section 3.3.1).
func TestCarriedKeepsWholeChunks(t *testing.T) {
	var s carriedSet
	s.push(100, 10)
	s.push(200, 5)
	for _, c := range []struct {
		id    int64
		n     int
		whole seq.Range
		ok    bool
		held  int64
		first int64
	}{
		{100, 4, seq.Range{}, false, 11, 104},
		{104, 5, seq.Range{}, false, 6, 109},
		{109, 1, seq.Range{Start: 100, End: 110}, true, 5, 200},
		{200, 5, seq.Range{Start: 200, End: 205}, true, 0, -1},
	} {
		whole, ok := s.release(tcp.Chunk{ID: c.id, Len: c.n})
		first, any := s.oldest()
		if !any {
			first = -1
		}
		if whole != c.whole || ok != c.ok || s.held != c.held || first != c.first || s.data.Contains(c.id) {
			t.Errorf("after [%d,+%d): chunk %v %v, held %d, oldest %d; want %v %v, %d, %d", c.id, c.n, whole, ok, s.held, first, c.whole, c.ok, c.held, c.first)
		}
	}
}
