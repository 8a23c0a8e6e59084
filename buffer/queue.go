package buffer

// Queue is a first-in, first-out list of chunks: what waits for the application, or for something else that comes in order.
// The zero Queue is empty and ready.
type Queue struct {
	head, tail *Chunk
	bytes      int64
	cost       int64
	chunks     int
}

// Empty reports whether nothing is queued.
func (q *Queue) Empty() bool { return q.head == nil }

// Bytes returns the payload bytes queued.
func (q *Queue) Bytes() int64 { return q.bytes }

// Cost returns the bytes of memory held by what is queued.
func (q *Queue) Cost() int64 { return q.cost }

// Len returns the number of chunks queued.
func (q *Queue) Len() int { return q.chunks }

// Push takes c to the end. A small chunk that continues the last one moves into its spare room and goes back to p, so that a
// sender of tiny segments cannot make the queue hold a whole chunk for each.
func (q *Queue) Push(p *Pool, c *Chunk) {
	q.bytes += int64(len(c.Data))
	if t := q.tail; t != nil && len(c.Data) <= maxAbsorb && t.End() == c.Start && t.absorb(c) {
		p.Release(c)
		return
	}
	q.cost += int64(c.Cost())
	q.chunks++
	c.next = nil
	if q.tail == nil {
		q.head = c
	} else {
		q.tail.next = c
	}
	q.tail = c
}

// Front returns the first chunk, which stays in the queue; nil if there is none.
func (q *Queue) Front() *Chunk { return q.head }

// Pop takes the first chunk out; nil if there is none.
func (q *Queue) Pop() *Chunk {
	c := q.head
	if c == nil {
		return nil
	}
	if q.head = c.next; q.head == nil {
		q.tail = nil
	}
	c.next = nil
	q.bytes -= int64(len(c.Data))
	q.cost -= int64(c.Cost())
	q.chunks--
	return c
}

// Read moves up to len(b) bytes into b and returns how many; emptied chunks go back to p. It is the second and last copy on
// the way in.
func (q *Queue) Read(p *Pool, b []byte) int {
	total := 0
	for q.head != nil && total < len(b) {
		c := q.head
		n := copy(b[total:], c.Data)
		total += n
		if n == len(c.Data) {
			p.Release(q.Pop())
			continue
		}
		c.TrimFront(int64(n))
		q.bytes -= int64(n)
	}
	return total
}

// Clear gives everything back to p.
func (q *Queue) Clear(p *Pool) {
	for c := q.Pop(); c != nil; c = q.Pop() {
		p.Release(c)
	}
}
