package buffer

// Sizes of the memory that chunks are cut from: a bare request, a small message, a packet of an Ethernet path, two that
// were merged, a jumbo frame, and the largest segment there is.
var classes = [...]int{128, 512, 1536, 4096, 16384, 65536}

const (
	oversize = -1 // class of a chunk larger than every class: not kept

	maxFree     = 16 << 20 // bytes that may wait for reuse in each class
	trimPeriod  = 1 << 14  // takes from a class between two looks at how much of its free list is idle
	trimMinimum = 64       // chunks that a free list keeps in any case
)

// Pool hands out chunks and takes them back. What is taken back is kept for reuse, up to a bound, and given up bit by bit
// when it turns out not to be needed. The zero Pool is ready.
type Pool struct {
	inUse int64
	free  [len(classes)]freeList
}

// freeList keeps the free chunks of one class.
type freeList struct {
	head  *Chunk
	count int
	low   int // smallest count since the last look: that many chunks were not needed
	takes int // until the next look
}

// Copy returns a chunk with a copy of payload. It is the one copy on the way in.
func (p *Pool) Copy(start int64, payload []byte) *Chunk {
	c := p.Get(start, len(payload))
	copy(c.Data, payload)
	return c
}

// Get returns a chunk of n bytes, n >= 0, whose content is undefined: the caller fills it.
func (p *Pool) Get(start int64, n int) *Chunk {
	for class, size := range classes {
		if n <= size {
			c := p.free[class].take()
			if c == nil {
				c = &Chunk{mem: make([]byte, size), class: int8(class)}
			}
			p.inUse += int64(size)
			c.Start, c.Data = start, c.mem[:n]
			return c
		}
	}
	p.inUse += int64(n)
	mem := make([]byte, n)
	return &Chunk{Start: start, Data: mem, mem: mem, class: oversize}
}

// Release takes a chunk back. Releasing one twice is a mistake of the caller's and panics if it can be seen.
func (p *Pool) Release(c *Chunk) {
	if c.Data == nil {
		panic("buffer: chunk released twice")
	}
	p.inUse -= int64(len(c.mem))
	c.Data = nil
	if c.class != oversize {
		p.free[c.class].give(c, maxFree/classes[c.class])
	}
}

// InUse returns the bytes of memory of all chunks that are out.
func (p *Pool) InUse() int64 { return p.inUse }

// Free returns the bytes of memory waiting for reuse.
func (p *Pool) Free() int64 {
	var n int64
	for class := range p.free {
		n += int64(p.free[class].count) * int64(classes[class])
	}
	return n
}

// Trim gives up all memory waiting for reuse.
func (p *Pool) Trim() { p.free = [len(classes)]freeList{} }

func (f *freeList) take() *Chunk {
	c := f.head
	if c != nil {
		f.head, c.next = c.next, nil
		f.count--
		f.low = min(f.low, f.count)
	}
	if f.takes++; f.takes >= trimPeriod {
		f.trim()
	}
	return c
}

func (f *freeList) give(c *Chunk, limit int) {
	if f.count >= limit {
		return
	}
	c.next, f.head = f.head, c
	f.count++
}

// trim gives up half of what lay idle through the whole period.
func (f *freeList) trim() {
	for idle := min(f.low, f.count-trimMinimum) / 2; idle > 0; idle-- {
		f.head = f.head.next
		f.count--
	}
	f.low, f.takes = f.count, 0
}
