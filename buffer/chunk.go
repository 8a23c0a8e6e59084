package buffer

// Chunk is one received payload: Data[0] is the byte at offset Start. A chunk has one owner at a time, who gives it on or
// returns it with Pool.Release; after that it may not be touched.
type Chunk struct {
	Start int64  // offset of the first byte, in whatever stream the owner counts
	Data  []byte // the payload; the owner may shorten it with TrimFront and TrimBack

	mem   []byte // all of the memory
	class int8   // size class of mem, oversize if it belongs to none
	next  *Chunk // in a Reassembly: the chunk behind it in its run; in a Pool: the next free one
}

// End returns the offset after the last byte.
func (c *Chunk) End() int64 { return c.Start + int64(len(c.Data)) }

// Cost returns the bytes of memory that the chunk holds on to, which may be far more than its payload.
func (c *Chunk) Cost() int { return len(c.mem) }

// TrimFront drops the first n bytes, 0 <= n <= len(Data).
func (c *Chunk) TrimFront(n int64) {
	c.Data = c.Data[n:]
	c.Start += n
}

// TrimBack drops the last n bytes, 0 <= n <= len(Data).
func (c *Chunk) TrimBack(n int64) { c.Data = c.Data[:int64(len(c.Data))-n] }

// absorb appends the bytes of d, which begin where c ends, if c's memory has room for them.
func (c *Chunk) absorb(d *Chunk) bool {
	if cap(c.Data)-len(c.Data) < len(d.Data) {
		return false
	}
	c.Data = append(c.Data, d.Data...)
	return true
}
