package mptcp

import (
	"math"

	"braid/buffer"
	"braid/clock"
	"braid/seq"
)

// sendStream is the outgoing half of a connection in data offsets: the first byte is 1, a DATA_FIN takes the one after the
// last.
//
//	acked <= start of the holes <= next <= end
//
// Bytes below next were given to a subflow, but for the holes, which a scheduler left to others.
type sendStream struct {
	buf      buffer.Send
	next     int64 // everything from here on is unsent
	holes    seq.Set
	holesLen int64
	reinject seq.Set // sent, not DATA_ACKed, and in need of another carrier

	edge      int64 // first data offset that the peer has no room for: the highest edge seen (RFC 8684, Section 3.3.5)
	maxWindow int64 // the largest window seen, for silly window avoidance (RFC 9293, Section 3.8.6.2.1)

	limit      int64 // how much the application may have written and not DATA_ACKed, as tuned so far
	tuneAt     int64 // the limit is looked at again when so much is DATA_ACKed
	short      bool  // the last Write took less than it was given: EventWritable follows
	blocked    bool  // what SetBlocked was last told
	smallEnd   int64 // end of the last segment that was sent although it was small (Nagle in Minshall's form)
	reinjected bool  // something was ever queued for reinjection: falling back in place is impossible (RFC 8684, Section 3.7)

	rtoAt     clock.Time // when the data-level timer looks again; Never: nothing is outstanding
	movedAt   clock.Time // when data was last DATA_ACKed, or the first byte after an idle time was sent
	backoff   int        // data-level timeouts in a row
	recoverTo int64      // until acked reaches it, what turns out to be missing next is sent again at once
	sink      PathID     // the path whose subflow last had an ACK for the oldest data, which was not DATA_ACKed then; -1: none
	stuckAt   clock.Time // since when data waits without progress: for UserTimeout; Never if none waits
}

func (s *sendStream) init(pool *buffer.Blocks, limit int64) {
	s.buf.Init(pool, 1)
	s.next, s.edge, s.limit = 1, 1, limit
	s.rtoAt, s.stuckAt = clock.Never, clock.Never
	s.sink = -1
}

func (s *sendStream) acked() int64 { return s.buf.Acked() }
func (s *sendStream) end() int64   { return s.buf.End() }

// waiting returns how many bytes no subflow was given yet.
func (s *sendStream) waiting() int64 { return s.holesLen + s.end() - s.next }

// firstUnsent returns the offset of the first byte that no subflow was given; end if there is none.
func (s *sendStream) firstUnsent() int64 {
	if s.holesLen > 0 {
		return s.holes.At(0).Start
	}
	return s.next
}

// inFlight reports whether bytes were given to subflows and are not DATA_ACKed.
func (s *sendStream) inFlight() bool { return s.acked() < s.firstUnsent() || s.holesLen > 0 }

// unsentAfter returns the unsent range that begins skip unsent bytes behind the first one at or after offset from, up to where
// the peer has room and where something sent begins; empty if there is none.
func (s *sendStream) unsentAfter(from, skip int64) seq.Range {
	if s.holesLen > 0 {
		for i := range s.holes.Count() {
			h := s.holes.At(i)
			h.Start = max(h.Start, from)
			if skip < h.Len() {
				return seq.Range{Start: h.Start + skip, End: min(h.End, s.edge)}
			}
			skip -= h.Len()
		}
	}
	from = max(from, s.next)
	skip = min(skip, math.MaxInt64-from)
	return seq.Range{Start: from + skip, End: min(s.end(), s.edge)}
}

// take notes that the unsent range r was given to a subflow.
func (s *sendStream) take(r seq.Range) {
	if r.Start < s.next {
		s.holes.Remove(r)
		s.holesLen -= r.Len()
		return
	}
	if r.Start > s.next {
		s.holes.Add(seq.Range{Start: s.next, End: r.Start})
		s.holesLen += r.Start - s.next
	}
	s.next = r.End
}

// ack notes that the peer has everything below o.
func (s *sendStream) ack(o int64) {
	s.buf.Ack(o)
	s.reinject.RemoveBefore(o)
}

// rewind makes everything unsent that is not DATA_ACKed.
func (s *sendStream) rewind() {
	s.next = s.acked()
	s.smallEnd = s.next // nothing is on its way that a small segment would have to wait for
	s.holes.Clear()
	s.holesLen = 0
	s.reinject.Clear()
}
