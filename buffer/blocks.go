package buffer

// BlockSize is the payload that one block of a Send holds. A block is the unit in which memory is kept and returned; it is
// small enough that ten thousand connections with a little outstanding each are affordable, and large enough that most packets
// lie in one.
const (
	blockShift = 14
	BlockSize  = 1 << blockShift
)

// maxFreeBlocks bounds the blocks that wait for reuse: 8 MiB.
const maxFreeBlocks = 512

// Blocks hands out the blocks of all Sends of one Stack and counts them. The zero Blocks is ready.
type Blocks struct {
	free      *block
	freeCount int
	inUse     int64
}

// block is one piece of an outgoing stream: the bytes [index<<blockShift, (index+1)<<blockShift).
type block struct {
	data  [BlockSize]byte
	index int64
	refs  int64 // bytes that pushed chunks hold, each as often as it is held
	next  *block
}

func (p *Blocks) get(index int64) *block {
	b := p.free
	if b == nil {
		b = new(block)
	} else {
		p.free = b.next
		p.freeCount--
	}
	b.index, b.refs, b.next = index, 0, nil
	p.inUse += BlockSize
	return b
}

func (p *Blocks) put(b *block) {
	p.inUse -= BlockSize
	if p.freeCount < maxFreeBlocks {
		b.next, p.free = p.free, b
		p.freeCount++
	}
}

// InUse returns the bytes of memory of all blocks that are out.
func (p *Blocks) InUse() int64 { return p.inUse }

// Free returns the bytes of memory waiting for reuse.
func (p *Blocks) Free() int64 { return int64(p.freeCount) * BlockSize }

// Trim gives up all memory waiting for reuse.
func (p *Blocks) Trim() { p.free, p.freeCount = nil, 0 }
