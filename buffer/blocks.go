package buffer

// BlockSize is the payload that one block of a Send holds. A block is the unit in which memory is kept and returned; it is
// small enough that ten thousand connections with a little outstanding each are affordable, and large enough that most packets
// lie in one.
const (
	blockShift = 14
	BlockSize  = 1 << blockShift
)

// maxFreeBlocks bounds the blocks that wait for reuse: 16 MiB. Half of those that lay idle while blockPeriod blocks were taken
// are given up.
const (
	maxFreeBlocks = 1024
	minFreeBlocks = 16
	blockPeriod   = 1 << 12
)

// Blocks hands out the blocks of all Sends of one Stack and counts them. The zero Blocks is ready.
type Blocks struct {
	free      *block
	freeCount int
	low       int // smallest freeCount since the last look
	takes     int // since the last look
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
		p.low = min(p.low, p.freeCount)
	}
	if p.takes++; p.takes >= blockPeriod {
		p.trim()
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

// trim gives up half of what lay idle through the whole period.
func (p *Blocks) trim() {
	for idle := min(p.low, p.freeCount-minFreeBlocks) / 2; idle > 0; idle-- {
		p.free = p.free.next
		p.freeCount--
	}
	p.low, p.takes = p.freeCount, 0
}

// Trim gives up all memory waiting for reuse.
func (p *Blocks) Trim() { p.free, p.freeCount, p.low = nil, 0, 0 }
