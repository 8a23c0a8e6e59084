package buffer

import (
	"fmt"
	"testing"

	"braid/seq"
	"pgregory.net/rapid"
)

// naive is what a Reassembly must behave like: a map from offset to byte.
type naive map[int64]byte

func (m naive) rangeAt(o int64) seq.Range {
	r := seq.Range{Start: o, End: o}
	for _, ok := m[r.End]; ok; _, ok = m[r.End] {
		r.End++
	}
	if r.End == o {
		return r
	}
	for _, ok := m[r.Start-1]; ok; _, ok = m[r.Start-1] {
		r.Start--
	}
	return r
}

func (m naive) bounds() (first, end int64) {
	first, end = -1, 0
	for o := range m {
		if first < 0 || o < first {
			first = o
		}
		end = max(end, o+1)
	}
	return
}

// check verifies everything that must hold of the structure itself.
func (r *Reassembly) check() error {
	var bytes, cost int64
	var chunks, runs int
	var prev *run
	for n := r.first; n != nil; n = n.next {
		runs++
		if n.prev != prev || (prev != nil && prev.end >= n.start) {
			return fmt.Errorf("thread broken, or runs touch, at %d", n.start)
		}
		o := n.start
		for c := n.head; c != nil; c = c.next {
			if c.Start != o || len(c.Data) == 0 {
				return fmt.Errorf("chunk at %d in run [%d,%d), want %d", c.Start, n.start, n.end, o)
			}
			o, bytes, cost = c.End(), bytes+int64(len(c.Data)), cost+int64(c.Cost())
			chunks++
			if c.next == nil && c != n.tail {
				return fmt.Errorf("tail of run at %d is wrong", n.start)
			}
		}
		if o != n.end {
			return fmt.Errorf("run ends at %d, chunks at %d", n.end, o)
		}
		prev = n
	}
	if prev != r.last || bytes != r.bytes || cost != r.cost || chunks != r.chunks {
		return fmt.Errorf("bytes %d %d cost %d %d chunks %d %d", bytes, r.bytes, cost, r.cost, chunks, r.chunks)
	}
	var walk func(n, parent *run, lo, hi int64) (int, error)
	walk = func(n, parent *run, lo, hi int64) (int, error) {
		if n == nil {
			return 0, nil
		}
		if n.parent != parent || n.start < lo || n.start >= hi || (parent != nil && parent.priority < n.priority) {
			return 0, fmt.Errorf("tree broken at %d", n.start)
		}
		a, err := walk(n.left, n, lo, n.start)
		if err != nil {
			return 0, err
		}
		b, err := walk(n.right, n, n.start+1, hi)
		return a + b + 1, err
	}
	if n, err := walk(r.root, nil, -1<<62, 1<<62); err != nil || n != runs {
		return fmt.Errorf("tree has %d of %d runs: %v", n, runs, err)
	}
	return nil
}

func TestReassemblyAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Pool
		var r Reassembly
		m := naive{}
		next, value := int64(0), byte(0)
		length := rapid.SampledFrom([]int{1, 8, 40, 200}).Draw(t, "longest")
		step := map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				start := next + rapid.Int64Range(0, 600).Draw(t, "start")
				value++
				c := p.Get(start, rapid.IntRange(0, length).Draw(t, "n"))
				want := int64(0)
				for i := range c.Data {
					c.Data[i] = value
					if _, ok := m[start+int64(i)]; !ok {
						m[start+int64(i)] = value
						want++
					}
				}
				if got := r.Insert(&p, c); got != want {
					t.Fatalf("added %d, want %d", got, want)
				}
			},
			"pop": func(t *rapid.T) {
				c := r.Pop(next)
				_, ok := m[next]
				if ok != (c != nil) {
					t.Fatalf("Pop(%d) = %v, want a chunk: %v", next, c, ok)
				}
				if c == nil {
					next += rapid.Int64Range(0, 3).Draw(t, "skip") // as if a retransmission had filled the gap
					r.DropBefore(&p, next)
					for o := range m {
						if o < next {
							delete(m, o)
						}
					}
					return
				}
				for i, b := range c.Data {
					if c.Start+int64(i) != next || m[next] != b {
						t.Fatalf("byte at %d is %d, want %d at %d", c.Start+int64(i), b, m[next], next)
					}
					delete(m, next)
					next++
				}
				p.Release(c)
			},
			"": func(t *rapid.T) {
				if err := r.check(); err != nil {
					t.Fatal(err)
				}
				first, end := m.bounds()
				if r.Bytes() != int64(len(m)) || r.End() != end || r.Empty() != (len(m) == 0) {
					t.Fatalf("bytes %d of %d, end %d of %d", r.Bytes(), len(m), r.End(), end)
				}
				if len(m) > 0 && r.First() != m.rangeAt(first) {
					t.Fatalf("first %v, want %v", r.First(), m.rangeAt(first))
				}
				o := next + rapid.Int64Range(0, 700).Draw(t, "o")
				if got, want := r.RangeAt(o), m.rangeAt(o); got != want {
					t.Fatalf("RangeAt(%d) = %v, want %v", o, got, want)
				}
			},
		}
		t.Repeat(step)
		r.Clear(&p)
		if p.InUse() != 0 || !r.Empty() || r.Cost() != 0 {
			t.Fatalf("%d bytes leaked", p.InUse())
		}
	})
}

func TestReassemblyKeepsExistingBytes(t *testing.T) {
	var p Pool
	var r Reassembly
	r.Insert(&p, p.Copy(3, []byte("XX")))
	r.Insert(&p, p.Copy(7, []byte("Y")))
	if added := r.Insert(&p, p.Copy(0, []byte("abcdefghij"))); added != 7 {
		t.Errorf("added %d, want 7", added)
	}
	var got []byte
	for next := int64(0); ; {
		c := r.Pop(next)
		if c == nil {
			break
		}
		got, next = append(got, c.Data...), c.End()
		p.Release(c)
	}
	if string(got) != "abcXXfgYij" {
		t.Errorf("got %q", got)
	}
}

func TestReassemblyMergesTinySegments(t *testing.T) {
	var p Pool
	var r Reassembly
	for i := range 10000 {
		r.Insert(&p, p.Copy(int64(i), []byte{byte(i)}))
	}
	if r.Bytes() != 10000 || r.Cost() > 2*10000 {
		t.Errorf("%d bytes cost %d", r.Bytes(), r.Cost())
	}
}

func TestReassemblyDoesNotAllocateInSteadyState(t *testing.T) {
	var p Pool
	var r Reassembly
	payload := make([]byte, 1448)
	next := int64(0)
	run := func() {
		for _, order := range [...]int64{5, 1, 3, 2, 7, 0, 6, 4} {
			r.Insert(&p, p.Copy(next+order*1448, payload))
		}
		for c := r.Pop(next); c != nil; c = r.Pop(next) {
			next = c.End()
			p.Release(c)
		}
	}
	run()
	if n := testing.AllocsPerRun(100, run); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Two subflows of different delay that take turns of ten packets: the fast one is far ahead.
func BenchmarkReassemblyTwoStreams(b *testing.B) {
	var p Pool
	var r Reassembly
	payload := make([]byte, 1448)
	const ahead = 1000
	fast := func(i int64) int64 { return (i/10*20 + i%10) * 1448 }
	for i := range int64(ahead) {
		r.Insert(&p, p.Copy(fast(i), payload))
	}
	next := int64(0)
	b.ReportAllocs()
	for i := int64(0); b.Loop(); i++ {
		r.Insert(&p, p.Copy(fast(i+ahead), payload))
		r.Insert(&p, p.Copy(fast(i)+10*1448, payload))
		for c := r.Pop(next); c != nil; c = r.Pop(next) {
			next = c.End()
			p.Release(c)
		}
	}
}

// A queue with many gaps that are filled from the front.
func BenchmarkReassemblyManyGaps(b *testing.B) {
	var p Pool
	var r Reassembly
	payload := make([]byte, 1448)
	const gaps = 10000
	for i := range int64(gaps) {
		r.Insert(&p, p.Copy((2*i+1)*1448, payload))
	}
	next := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		r.Insert(&p, p.Copy(next+2*gaps*1448+1448, payload))
		r.Insert(&p, p.Copy(next, payload))
		for range 2 {
			c := r.Pop(next)
			next = c.End()
			p.Release(c)
		}
	}
}
