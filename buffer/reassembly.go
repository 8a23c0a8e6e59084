package buffer

import "braid/seq"

// maxAbsorb is the size up to which a payload is copied into the spare room of the chunk before it: a sender of tiny
// segments must not make the receiver hold a whole chunk for each.
const maxAbsorb = 128

// maxFreeRuns bounds the runs kept for reuse.
const maxFreeRuns = 1024

// Reassembly is an out-of-order queue: it takes chunks in any order and gives them back in theirs, each offset once.
//
// Chunks that touch form a run. The runs are the nodes of a treap (a search tree by Start that is a heap by random
// priorities), threaded in order, so that work grows with the logarithm of the number of gaps and not with the number
// of chunks; where a chunk continues the run that the chunk before it went to, it is constant. Priorities come from a
// fixed stream: the same chunks give the same tree. The zero Reassembly is empty and ready.
type Reassembly struct {
	root        *run
	first, last *run
	recent      *run // the run that was changed last: the next chunk most likely belongs there

	bytes, cost int64
	chunks      int
	state       uint32 // of the priorities' stream
	free        *run
	freeRuns    int
}

// run is a maximal row of chunks without a gap: [start, end).
type run struct {
	start, end          int64
	head, tail          *Chunk
	left, right, parent *run
	prev, next          *run
	priority            uint32
}

// Empty reports whether nothing is queued.
func (r *Reassembly) Empty() bool { return r.first == nil }

// Bytes returns the payload bytes queued.
func (r *Reassembly) Bytes() int64 { return r.bytes }

// Cost returns the bytes of memory held by what is queued.
func (r *Reassembly) Cost() int64 { return r.cost }

// Len returns the number of chunks queued.
func (r *Reassembly) Len() int { return r.chunks }

// First returns the range before the first gap; empty if nothing is queued.
func (r *Reassembly) First() seq.Range {
	if r.first == nil {
		return seq.Range{}
	}
	return seq.Range{Start: r.first.start, End: r.first.end}
}

// End returns the offset after the last byte queued, 0 if nothing is.
func (r *Reassembly) End() int64 {
	if r.last == nil {
		return 0
	}
	return r.last.end
}

// RangeAt returns the longest range without a gap that contains offset o; empty, at o, if o is not queued.
func (r *Reassembly) RangeAt(o int64) seq.Range {
	if n := r.find(o); n != nil && o < n.end {
		return seq.Range{Start: n.start, End: n.end}
	}
	return seq.Range{Start: o, End: o}
}

// Insert takes c and returns how many offsets are new. Bytes that are queued already stay; those of c that are not are
// added. Chunks that are not needed go back to p.
func (r *Reassembly) Insert(p *Pool, c *Chunk) (added int64) {
	before := r.find(c.Start) // the last run that starts at or before c
	if before != nil && before.end > c.Start {
		if before.end >= c.End() {
			p.Release(c)
			return 0
		}
		c.TrimFront(before.end - c.Start)
	}
	for len(c.Data) > 0 {
		after := r.after(before)
		if after == nil || after.start >= c.End() {
			added += int64(len(c.Data))
			r.place(p, before, after, c)
			return added
		}
		// c reaches into a run: what lies before it fills the gap, what lies behind goes on.
		var rest *Chunk
		if over := c.End() - after.end; over > 0 {
			rest = p.Copy(after.end, c.Data[int64(len(c.Data))-over:])
		}
		c.TrimBack(c.End() - after.start)
		if len(c.Data) > 0 {
			added += int64(len(c.Data))
			end := after.end
			r.place(p, before, after, c)
			before = r.find(end - 1)
		} else {
			p.Release(c)
			before = after
		}
		if rest == nil {
			return added
		}
		c = rest
	}
	p.Release(c)
	return added
}

// Pop returns the chunk that starts at next, cut at its front if it starts below; nil if next is not queued. The chunk is
// the caller's. A chunk wholly below next is in the way and panics: ask in order, or DropBefore first.
func (r *Reassembly) Pop(next int64) *Chunk {
	n := r.first
	if n == nil || n.start > next || n.end <= next {
		return nil
	}
	c := n.head
	if c.End() <= next {
		panic("buffer: Pop beyond the first chunk")
	}
	n.head, c.next = c.next, nil
	n.start = c.End()
	r.chunks--
	r.cost -= int64(c.Cost())
	r.bytes -= int64(len(c.Data))
	if n.head == nil {
		r.remove(n)
	}
	if c.Start < next {
		c.TrimFront(next - c.Start)
	}
	return c
}

// DropBefore gives back to p what lies below offset o.
func (r *Reassembly) DropBefore(p *Pool, o int64) {
	for n := r.first; n != nil && n.start < o; n = r.first {
		c := r.Pop(n.start)
		if c.End() > o {
			c.TrimFront(o - c.Start)
			r.Insert(p, c)
			return
		}
		p.Release(c)
	}
}

// Clear gives everything back to p.
func (r *Reassembly) Clear(p *Pool) {
	for n := r.first; n != nil; n = n.next {
		for c := n.head; c != nil; {
			next := c.next
			c.next = nil
			p.Release(c)
			c = next
		}
	}
	*r = Reassembly{state: r.state}
}

// place puts c, which overlaps nothing, between two neighbouring runs; either may be nil.
func (r *Reassembly) place(p *Pool, before, after *run, c *Chunk) {
	r.bytes += int64(len(c.Data))
	joinsBefore := before != nil && before.end == c.Start
	joinsAfter := after != nil && after.start == c.End()
	switch {
	case joinsBefore:
		before.end = c.End()
		if len(c.Data) <= maxAbsorb && before.tail.absorb(c) {
			p.Release(c)
		} else {
			r.count(c)
			before.tail.next, before.tail = c, c
		}
		if joinsAfter {
			before.tail.next, before.tail, before.end = after.head, after.tail, after.end
			r.remove(after)
		}
		r.recent = before
	case joinsAfter:
		r.count(c)
		c.next, after.head, after.start = after.head, c, c.Start
		r.recent = after
	default:
		r.count(c)
		r.add(before, after, c)
	}
}

func (r *Reassembly) count(c *Chunk) {
	r.chunks++
	r.cost += int64(c.Cost())
}

// after returns the run behind n, the first for nil.
func (r *Reassembly) after(n *run) *run {
	if n == nil {
		return r.first
	}
	return n.next
}

// find returns the last run that starts at or before o, nil if there is none.
func (r *Reassembly) find(o int64) *run {
	if n := r.last; n == nil || n.start <= o {
		return n
	}
	if n := r.recent; n != nil && n.start <= o && (n.next == nil || o < n.next.start) {
		return n
	}
	var best *run
	for n := r.root; n != nil; {
		if n.start <= o {
			best, n = n, n.right
		} else {
			n = n.left
		}
	}
	return best
}

// add makes a run of c between two neighbours. One of them has a free link on the side that c belongs to.
func (r *Reassembly) add(before, after *run, c *Chunk) {
	n := r.newRun()
	*n = run{start: c.Start, end: c.End(), head: c, tail: c, prev: before, next: after, priority: r.draw()}
	if before == nil {
		r.first = n
	} else {
		before.next = n
	}
	if after == nil {
		r.last = n
	} else {
		after.prev = n
	}
	switch {
	case before != nil && before.right == nil:
		before.right, n.parent = n, before
	case after != nil:
		after.left, n.parent = n, after
	default:
		r.root = n
	}
	for n.parent != nil && n.parent.priority < n.priority {
		r.rotateUp(n)
	}
	r.recent = n
}

// remove takes a run out of tree and thread. Its chunks are gone or belong to another run by now.
func (r *Reassembly) remove(n *run) {
	for n.left != nil && n.right != nil {
		child := n.left
		if n.right.priority > child.priority {
			child = n.right
		}
		r.rotateUp(child)
	}
	child := n.left
	if child == nil {
		child = n.right
	}
	r.replace(n, child)
	if n.prev == nil {
		r.first = n.next
	} else {
		n.prev.next = n.next
	}
	if n.next == nil {
		r.last = n.prev
	} else {
		n.next.prev = n.prev
	}
	if r.recent == n {
		r.recent = nil
	}
	*n = run{}
	if r.freeRuns < maxFreeRuns {
		n.next, r.free = r.free, n
		r.freeRuns++
	}
}

// replace puts child, which may be nil, where n hangs.
func (r *Reassembly) replace(n, child *run) {
	switch p := n.parent; {
	case p == nil:
		r.root = child
	case p.left == n:
		p.left = child
	default:
		p.right = child
	}
	if child != nil {
		child.parent = n.parent
	}
}

// rotateUp exchanges n with its parent and keeps the order.
func (r *Reassembly) rotateUp(n *run) {
	p := n.parent
	r.replace(p, n)
	if p.left == n {
		if p.left = n.right; p.left != nil {
			p.left.parent = p
		}
		n.right = p
	} else {
		if p.right = n.left; p.right != nil {
			p.right.parent = p
		}
		n.left = p
	}
	p.parent = n
}

func (r *Reassembly) newRun() *run {
	n := r.free
	if n == nil {
		return new(run)
	}
	r.free = n.next
	r.freeRuns--
	return n
}

// draw returns the next priority: xorshift, the same for the same history.
func (r *Reassembly) draw() uint32 {
	x := r.state
	if x == 0 {
		x = 2463534242
	}
	x ^= x << 13
	x ^= x >> 17
	x ^= x << 5
	r.state = x
	return x
}
