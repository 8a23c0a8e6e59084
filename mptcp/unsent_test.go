package mptcp

import (
	"testing"

	"pgregory.net/rapid"

	"braid/buffer"
	"braid/seq"
)

// Each byte is given out once, whatever is skipped; skipping counts unsent bytes only; nothing beyond the edge is given out.
func TestSendStreamModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var pool buffer.Blocks
		var s sendStream
		s.init(&pool, 1<<20)
		sent := map[int64]bool{}
		edge := int64(1)
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) { s.buf.Append(make([]byte, rapid.IntRange(0, 100).Draw(t, "n"))) },
			"window": func(t *rapid.T) {
				edge += rapid.Int64Range(0, 100).Draw(t, "n")
				s.edge = edge
			},
			"take": func(t *rapid.T) {
				skip := rapid.Int64Range(0, 120).Draw(t, "skip")
				r := s.unsentAfter(0, skip)
				want, left := int64(-1), skip
				for o := s.acked(); o < s.end(); o++ {
					if !sent[o] {
						if left == 0 {
							want = o
							break
						}
						left--
					}
				}
				if want >= 0 && want >= edge {
					want = -1
				}
				if r.Empty() {
					if want >= 0 {
						t.Fatalf("nothing behind %d unsent bytes, want offset %d", skip, want)
					}
					return
				}
				if r.Start != want || r.End > edge {
					t.Fatalf("%v behind %d unsent bytes, want offset %d, edge %d", r, skip, want, edge)
				}
				r.End = min(r.End, r.Start+rapid.Int64Range(1, 40).Draw(t, "n"))
				for o := r.Start; o < r.End; o++ {
					if sent[o] || o >= s.end() {
						t.Fatalf("offset %d twice, or never written", o)
					}
					sent[o] = true
				}
				s.take(r)
			},
			"ack": func(t *rapid.T) {
				o := rapid.Int64Range(s.acked(), s.firstUnsent()).Draw(t, "o")
				s.ack(o)
			},
			"": func(t *rapid.T) {
				var waiting int64
				first := s.end()
				for o := s.end() - 1; o >= s.acked(); o-- {
					if !sent[o] {
						waiting++
						first = o
					}
				}
				if s.waiting() != waiting || s.firstUnsent() != first {
					t.Fatalf("waiting %d first %d, want %d %d", s.waiting(), s.firstUnsent(), waiting, first)
				}
			},
		})
	})
}

func TestRewindMakesEverythingUnsent(t *testing.T) {
	var pool buffer.Blocks
	var s sendStream
	s.init(&pool, 1<<20)
	s.buf.Append(make([]byte, 100))
	s.edge = 1000
	s.take(seq.Range{Start: 11, End: 31})
	s.take(seq.Range{Start: 1, End: 6})
	s.ack(3)
	s.reinject.Add(seq.Range{Start: 4, End: 6})
	s.rewind()
	if s.waiting() != 98 || s.firstUnsent() != 3 || !s.reinject.Empty() || s.inFlight() {
		t.Errorf("waiting %d, first %d", s.waiting(), s.firstUnsent())
	}
}
