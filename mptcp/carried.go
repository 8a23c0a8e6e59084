package mptcp

import (
	"fmt"

	"braid/seq"
	"braid/tcp"
)

// carriedSet is what one subflow carries: the chunks that its tcp may still have to send again, in the order in which they were
// pushed, and the data offsets among them that the peer has not DATA_ACKed.
type carriedSet struct {
	ring []piece // chunks held: head, head+1, ...; its length is a power of two
	head uint32
	tail uint32

	data   seq.Set // data offsets in flight here and not DATA_ACKed
	firsts seq.Set // those of them, or released ones, that were sent here before anywhere else; empty while the subflow is alone
	held   int64   // bytes in ring
}

// piece is one chunk: data offsets [id, id+n). The first gone bytes are acknowledged, but stay in memory as long as the others:
// a retransmission of those carries the mapping of the whole chunk, whose checksum is over all of it.
type piece struct {
	id   int64
	n    int
	gone int
}

// push notes a chunk that tcp was given.
func (s *carriedSet) push(id int64, n int) {
	if s.tail-s.head == uint32(len(s.ring)) {
		ring := make([]piece, max(16, 2*len(s.ring)))
		for i := s.head; i != s.tail; i++ {
			ring[i&uint32(len(ring)-1)] = s.ring[i&uint32(len(s.ring)-1)]
		}
		s.ring = ring
	}
	s.ring[s.tail&uint32(len(s.ring)-1)] = piece{id: id, n: n}
	s.tail++
	s.held += int64(n)
	s.data.Add(seq.Range{Start: id, End: id + int64(n)})
}

// release notes that tcp let go of the oldest bytes it has: those of ch. When that was the rest of a chunk it returns the whole
// of it, whose memory is not needed any more, and true.
func (s *carriedSet) release(ch tcp.Chunk) (whole seq.Range, ok bool) {
	if s.head == s.tail {
		panic(fmt.Sprintf("mptcp: tcp releases [%d,+%d), but nothing is carried", ch.ID, ch.Len))
	}
	p := &s.ring[s.head&uint32(len(s.ring)-1)]
	if p.id+int64(p.gone) != ch.ID || p.n-p.gone < ch.Len {
		panic(fmt.Sprintf("mptcp: tcp releases [%d,+%d), the oldest chunk is [%d,+%d) without %d", ch.ID, ch.Len, p.id, p.n, p.gone))
	}
	p.gone += ch.Len
	s.held -= int64(ch.Len)
	s.data.Remove(seq.Range{Start: ch.ID, End: ch.ID + int64(ch.Len)})
	if p.gone < p.n {
		return seq.Range{}, false
	}
	s.head++
	return seq.Range{Start: p.id, End: p.id + int64(p.n)}, true
}

// oldest returns the data offset of the oldest byte that tcp holds, false if it holds none.
func (s *carriedSet) oldest() (int64, bool) {
	if s.head == s.tail {
		return 0, false
	}
	p := &s.ring[s.head&uint32(len(s.ring)-1)]
	return p.id + int64(p.gone), true
}

// heldBelow returns how many bytes below data offset o tcp holds.
func (s *carriedSet) heldBelow(o int64) (n int64) {
	for i := s.head; i != s.tail; i++ {
		p := s.ring[i&uint32(len(s.ring)-1)]
		n += seq.Range{Start: p.id, End: min(p.id+int64(p.n), o)}.Len()
	}
	return n
}

// acked notes that every data offset below o is DATA_ACKed.
func (s *carriedSet) acked(o int64) {
	s.data.RemoveBefore(o)
	s.firsts.RemoveBefore(o)
}

// drain empties the set and calls f for each chunk that was held.
func (s *carriedSet) drain(f func(id int64, n int)) {
	for ; s.head != s.tail; s.head++ {
		p := s.ring[s.head&uint32(len(s.ring)-1)]
		f(p.id, p.n)
	}
	*s = carriedSet{}
}

// notSACKed returns the first part of r, which t carries, that the peer has not acknowledged selectively; empty if there is
// none.
func (s *carriedSet) notSACKed(t *tcp.Conn, r seq.Range) seq.Range {
	found := seq.Range{}
	t.EachOutstanding(func(ch tcp.Chunk, sacked, _ bool) bool {
		part := seq.Range{Start: ch.ID, End: ch.ID + int64(ch.Len)}.Intersect(r)
		if part.Empty() || sacked {
			return found.Empty()
		}
		if found.Empty() {
			found = part
			return true
		}
		if part.Start != found.End {
			return false
		}
		found.End = part.End
		return true
	})
	return found
}
