package buffer

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// What is pushed is read back, whatever the sizes of chunks and reads.
func TestQueueReadsWhatWasPushed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Pool
		var q Queue
		var end, next int64
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				n := rapid.SampledFrom([]int{1, 7, 100, 128, 129, 1448}).Draw(t, "n")
				q.Push(&p, p.Copy(end, pattern(end, n)))
				end += int64(n)
			},
			"read": func(t *rapid.T) {
				b := make([]byte, rapid.IntRange(0, 4000).Draw(t, "n"))
				n := q.Read(&p, b)
				if int64(n) != min(int64(len(b)), end-next) || !bytes.Equal(b[:n], pattern(next, n)) {
					t.Fatalf("read %d bytes at %d", n, next)
				}
				next += int64(n)
			},
			"pop": func(t *rapid.T) {
				c := q.Pop()
				if (c == nil) != (next == end) {
					t.Fatal("Pop and content disagree")
				}
				if c != nil {
					if c.Start != next || !bytes.Equal(c.Data, pattern(next, len(c.Data))) {
						t.Fatalf("popped [%d,%d), want %d", c.Start, c.End(), next)
					}
					next = c.End()
					p.Release(c)
				}
			},
			"": func(t *rapid.T) {
				if q.Bytes() != end-next || q.Empty() != (end == next) || q.Cost() != p.InUse() {
					t.Fatalf("bytes %d of %d, cost %d of %d", q.Bytes(), end-next, q.Cost(), p.InUse())
				}
			},
		})
		q.Clear(&p)
		if p.InUse() != 0 || q.Len() != 0 || q.Bytes() != 0 {
			t.Fatal("Clear left something")
		}
	})
}

// A sender of one-byte segments cannot make the queue hold a chunk for each.
func TestQueueMergesTinyChunks(t *testing.T) {
	var p Pool
	var q Queue
	for o := range int64(12800) {
		q.Push(&p, p.Copy(o, []byte{1}))
	}
	if q.Len() > 110 {
		t.Errorf("%d chunks for 12800 bytes", q.Len())
	}
}
