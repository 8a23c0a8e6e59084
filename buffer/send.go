package buffer

import (
	"fmt"
	"sort"
)

// Send is one connection's outgoing stream: what the application wrote, from the first byte that the peer has not DATA_ACKed to
// the last, and older bytes as long as a subflow may have to send them again (RFC 8684, Section 3.3.2: data is freed only when
// it is acknowledged at connection level and on every subflow on which it was sent).
//
// Bytes are addressed by data offset and lie in blocks; the block of an offset is found by shifting. Each chunk that is given
// to a subflow holds its bytes (Hold) until the subflow has let go of them (Release); a block returns to the pool when all of
// it is acknowledged and nothing holds it. An idle stream has no block.
type Send struct {
	pool       *Blocks
	ring       []*block // blocks base, base+1, ... at (head+i)&(len-1); nil where one is not needed
	head       int
	base       int64 // index of the first block in the ring: that of acked
	count      int   // blocks in the ring, nil ones included
	old        []*block
	acked, end int64
}

// Init makes s an empty stream whose first byte will have the given offset. All memory comes from pool.
func (s *Send) Init(pool *Blocks, start int64) {
	*s = Send{pool: pool, base: start >> blockShift, acked: start, end: start}
}

// Acked returns the offset of the first byte that is not acknowledged.
func (s *Send) Acked() int64 { return s.acked }

// End returns the offset behind the last byte appended.
func (s *Send) End() int64 { return s.end }

// Len returns the bytes appended and not acknowledged.
func (s *Send) Len() int64 { return s.end - s.acked }

// Held returns the bytes of memory in blocks that are wholly acknowledged and that only subflows hold.
func (s *Send) Held() int64 { return int64(len(s.old)) * BlockSize }

// Append copies all of p to the end of the stream. It is the first of the two copies on the way out.
func (s *Send) Append(p []byte) {
	for len(p) > 0 {
		b := s.grow(s.end >> blockShift)
		n := copy(b.data[s.end&(BlockSize-1):], p)
		s.end += int64(n)
		p = p[n:]
	}
}

// At returns the bytes from offset o on that lie together in memory, at least one and at most n. o must be held or not
// acknowledged, and o+n at most End. The slice is valid until the next call of another method.
func (s *Send) At(o int64, n int) []byte {
	b := s.block(o >> blockShift)
	from := int(o & (BlockSize - 1))
	return b.data[from:min(from+n, BlockSize)]
}

// Hold keeps the n bytes from o on until Release, once more than they are held already.
func (s *Send) Hold(o int64, n int) { s.adjust(o, n, 1) }

// Release undoes Hold for the n bytes from o on; the pieces need not be those of Hold.
func (s *Send) Release(o int64, n int) { s.adjust(o, n, -1) }

func (s *Send) adjust(o int64, n int, sign int64) {
	for n > 0 {
		i := o >> blockShift
		m := min(n, BlockSize-int(o&(BlockSize-1)))
		b := s.block(i)
		b.refs += sign * int64(m)
		if b.refs <= 0 {
			if b.refs < 0 {
				panic(fmt.Sprintf("buffer: block %d released more than held", i))
			}
			s.drop(b)
		}
		o += int64(m)
		n -= m
	}
}

// Ack acknowledges every byte below o, at most End: they no longer count as the application's.
func (s *Send) Ack(o int64) {
	if o > s.end {
		panic(fmt.Sprintf("buffer: acknowledging %d beyond the end %d", o, s.end))
	}
	if o <= s.acked {
		return
	}
	s.acked = o
	for s.count > 0 && s.base < o>>blockShift {
		b := s.pop()
		switch {
		case b == nil:
		case b.refs > 0:
			s.old = append(s.old, b)
		default:
			s.pool.put(b)
		}
	}
	if s.count > 0 {
		if b := s.ring[s.head]; b != nil && b.refs == 0 {
			s.drop(b)
		}
		return
	}
	s.base = o >> blockShift
}

// Clear returns all memory. The stream ends where it ended; what was not acknowledged is lost.
func (s *Send) Clear() {
	for s.count > 0 {
		if b := s.pop(); b != nil {
			s.pool.put(b)
		}
	}
	for _, b := range s.old {
		s.pool.put(b)
	}
	*s = Send{pool: s.pool, base: s.end >> blockShift, acked: s.end, end: s.end}
}

// drop returns b, which nothing holds any more, if all that was written to it is acknowledged.
func (s *Send) drop(b *block) {
	if b.index < s.base {
		i := s.findOld(b.index)
		s.old = append(s.old[:i], s.old[i+1:]...)
		s.pool.put(b)
		return
	}
	// The last block is acknowledged when everything is: what is appended later starts a new one at the same place.
	if s.acked < min(s.end, (b.index+1)<<blockShift) {
		return
	}
	s.ring[(s.head+int(b.index-s.base))&(len(s.ring)-1)] = nil
	s.pool.put(b)
	for s.count > 0 && s.ring[(s.head+s.count-1)&(len(s.ring)-1)] == nil {
		s.count--
	}
	if s.count == 0 {
		s.base = s.acked >> blockShift
	}
}

// block returns the block with the given index, which must exist.
func (s *Send) block(index int64) *block {
	if i := index - s.base; i >= 0 && i < int64(s.count) {
		if b := s.ring[(s.head+int(i))&(len(s.ring)-1)]; b != nil {
			return b
		}
	} else if i < 0 {
		if j := s.findOld(index); j < len(s.old) && s.old[j].index == index {
			return s.old[j]
		}
	}
	panic(fmt.Sprintf("buffer: block %d is not there: acknowledged %d, end %d", index, s.acked, s.end))
}

func (s *Send) findOld(index int64) int {
	return sort.Search(len(s.old), func(i int) bool { return s.old[i].index >= index })
}

// grow returns the block with the given index, which is the last or one that has to be made.
func (s *Send) grow(index int64) *block {
	i := int(index - s.base)
	for i >= s.count {
		if s.count == len(s.ring) {
			s.enlarge()
		}
		s.ring[(s.head+s.count)&(len(s.ring)-1)] = nil
		s.count++
	}
	at := &s.ring[(s.head+i)&(len(s.ring)-1)]
	if *at == nil {
		*at = s.pool.get(index)
	}
	return *at
}

func (s *Send) enlarge() {
	ring := make([]*block, max(4, 2*len(s.ring)))
	for i := range s.count {
		ring[i] = s.ring[(s.head+i)&(len(s.ring)-1)]
	}
	s.ring, s.head = ring, 0
}

// pop takes the first block, possibly nil, out of the ring.
func (s *Send) pop() *block {
	b := s.ring[s.head]
	s.ring[s.head] = nil
	s.head = (s.head + 1) & (len(s.ring) - 1)
	s.base++
	s.count--
	return b
}
