package tcp

import (
	"braid/clock"
	"braid/seq"
)

// recordState is where a record stands on the scoreboard.
type recordState uint8

// The states of a record. Every record is in exactly one; recordMoves says which changes are possible.
const (
	recUnsent recordState = iota // pushed, not yet transmitted
	recFlying                    // transmitted, nothing known yet: counted as in flight
	recLost                      // thought lost, waiting for its retransmission
	recSacked                    // selectively acknowledged
	recAcked                     // cumulatively acknowledged; waits for the owner to take the release
	recordStates
)

func (st recordState) String() string {
	return [...]string{"unsent", "flying", "lost", "sacked", "acknowledged"}[st]
}

// recordMoves is the transition table: recordMoves[from][to].
var recordMoves = [recordStates][recordStates]bool{
	recUnsent: {recFlying: true},
	recFlying: {recFlying: true, recLost: true, recSacked: true, recAcked: true}, // flying again: a tail loss probe
	recLost:   {recFlying: true, recSacked: true, recAcked: true},                // flying: retransmitted, or the loss was undone
	recSacked: {recLost: true, recAcked: true},                                   // lost: the receiver reneged (RFC 2018, Section 8)
}

// none is the index of no record.
const none = ^uint32(0)

// record is one piece of the outgoing stream that travels as one segment: at most one chunk, perhaps with the FIN behind it.
// It keeps what was noted when it was last transmitted.
type record struct {
	start      int64
	id         int64 // of the chunk
	chunkStart int64

	sentAt      clock.Time // last transmission
	firstSent   clock.Time // the sampler's stamps of that transmission
	deliveredAt clock.Time
	delivered   int64
	weighted    float64
	weight      float64 // what the controller weighed that transmission with

	size       int32 // payload bytes
	chunkLen   int32
	prev, next uint32 // in the list of its state (flying, lost)

	state         recordState
	fin           bool // a FIN follows the payload
	retransmitted bool // ever
	appLimited    bool // stamp: the application had nothing more
	mtuProbe      bool // larger than is known to pass: its loss says nothing about congestion (RFC 4821, Section 7.4)
	counted       bool // its bytes are in delivered already: the receiver reneged on them
}

// end returns the offset after the record, its FIN included.
func (r *record) end() int64 {
	if r.fin {
		return r.start + int64(r.size) + 1
	}
	return r.start + int64(r.size)
}

// space returns the sequence space that the record takes.
func (r *record) space() int64 { return r.end() - r.start }

func (r *record) chunk() Chunk { return Chunk{ID: r.id, Start: r.chunkStart, Len: int(r.chunkLen)} }

// piece returns the part of its chunk that the record stands for, with the ID advanced to it.
func (r *record) piece() Chunk {
	return Chunk{ID: r.id + r.start - r.chunkStart, Start: r.start, Len: int(r.size)}
}

// recordList is an intrusive list of records.
type recordList struct{ first, last uint32 }

// sentQueue is the outgoing stream from the oldest record that the owner has not taken back to the newest that it pushed,
// in sequence order, and the scoreboard of RFC 6675 over it.
//
// Records live in a slab and keep their index; a ring of indices holds their order. So a split moves only indices, and
// the lists (flying, in the order of transmission; lost, in sequence order) survive it. Everything is allocated
// when first needed, grows by doubling, and shrink gives it back.
type sentQueue struct {
	slab   []record
	free   []uint32
	order  []uint32 // ring; its length is a power of two
	oldest uint32   // positions in order, modulo 2^32: [oldest, head) acknowledged, [head, unsent) outstanding,
	head   uint32   // [unsent, tail) not yet sent
	unsent uint32
	tail   uint32
	hint   uint32 // position after the last SACKed record: where the next block probably starts

	flying recordList // by time of transmission (RACK's order)
	lost   recordList // by sequence
	sacked seq.Set    // ranges of the records in state sacked

	bytes [recordStates]int64 // sequence space in each state
	segs  [recordStates]int32
}

// initialRecords is the size of the first allocation: an initial window and its acknowledgements.
const initialRecords = 16

func (q *sentQueue) init() {
	*q = sentQueue{flying: recordList{none, none}, lost: recordList{none, none}}
}

// at returns the index of the record at a position.
func (q *sentQueue) at(pos uint32) uint32 { return q.order[pos&uint32(len(q.order)-1)] }

func (q *sentQueue) empty() bool       { return q.oldest == q.tail }
func (q *sentQueue) outstanding() bool { return q.head != q.unsent }
func (q *sentQueue) hasUnsent() bool   { return q.unsent != q.tail }

// push appends a record in state unsent and returns its index.
func (q *sentQueue) push(start, id int64, n int, fin bool) uint32 {
	i := q.alloc()
	r := &q.slab[i]
	*r = record{start: start, id: id, chunkStart: start, size: int32(n), chunkLen: int32(n), fin: fin, prev: none, next: none}
	q.order[q.tail&uint32(len(q.order)-1)] = i
	q.tail++
	q.bytes[recUnsent] += r.space()
	q.segs[recUnsent]++
	return i
}

// alloc takes a slab entry and makes sure that the ring has a place for it.
func (q *sentQueue) alloc() uint32 {
	if len(q.free) == 0 {
		q.grow()
	}
	i := q.free[len(q.free)-1]
	q.free = q.free[:len(q.free)-1]
	return i
}

// grow doubles slab and ring.
func (q *sentQueue) grow() {
	old := len(q.slab)
	size := max(initialRecords, 2*old)
	slab := make([]record, size)
	copy(slab, q.slab)
	order := make([]uint32, size)
	for p := q.oldest; p != q.tail; p++ {
		order[p&uint32(size-1)] = q.at(p)
	}
	q.free = make([]uint32, 0, size)
	for i := size - 1; i >= old; i-- {
		q.free = append(q.free, uint32(i))
	}
	q.slab, q.order = slab, order
}

// shrink gives the memory of an empty queue back.
func (q *sentQueue) shrink() {
	if q.empty() && len(q.slab) > initialRecords {
		q.slab, q.free, q.order = nil, nil, nil
		q.sacked.Reset()
	}
}

// split divides the record at a position after n payload bytes; the FIN stays with the second part, which becomes the record
// at the following position. Both repeat the stamps, so either is sampled as the whole would have been.
func (q *sentQueue) split(pos uint32, n int) {
	j := q.alloc()
	i := q.at(pos)
	a, b := &q.slab[i], &q.slab[j]
	*b = *a
	b.start += int64(n)
	b.size -= int32(n)
	a.size, a.fin = int32(n), false
	b.prev, b.next = none, none
	switch a.state {
	case recFlying:
		q.insertAfter(&q.flying, i, j)
	case recLost:
		q.insertAfter(&q.lost, i, j)
	}
	q.segs[a.state]++
	q.insert(pos, j)
}

// insert puts index j behind the record at a position, moving the shorter side of the ring.
func (q *sentQueue) insert(pos, j uint32) {
	mask := uint32(len(q.order) - 1)
	if pos-q.oldest < q.tail-pos {
		for p := q.oldest; p != pos+1; p++ {
			q.order[(p-1)&mask] = q.order[p&mask]
		}
		q.order[pos&mask] = j
		if q.unsent-q.oldest <= pos-q.oldest {
			q.unsent--
		}
		if q.head-q.oldest <= pos-q.oldest {
			q.head--
		}
		q.oldest--
		return
	}
	for p := q.tail; p != pos+1; p-- {
		q.order[p&mask] = q.order[(p-1)&mask]
	}
	q.order[(pos+1)&mask] = j
	if q.unsent-q.oldest > pos-q.oldest {
		q.unsent++
	}
	q.tail++
}

// find returns the position of the first outstanding record that ends after offset o, unsent if there is none.
func (q *sentQueue) find(o int64) uint32 {
	n := q.unsent - q.head
	if h := q.hint - q.head; h < n {
		if r := &q.slab[q.at(q.hint)]; r.start <= o && o < r.end() {
			return q.hint
		}
	}
	lo, hi := uint32(0), n
	for lo < hi {
		mid := (lo + hi) / 2
		if q.slab[q.at(q.head+mid)].end() > o {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return q.head + lo
}

// move changes the state of record i: lists and counters follow.
func (q *sentQueue) move(i uint32, to recordState) {
	r := &q.slab[i]
	from := r.state
	if !recordMoves[from][to] {
		panic("tcp: record moves from " + from.String() + " to " + to.String())
	}
	switch from {
	case recFlying:
		q.unlink(&q.flying, i)
	case recLost:
		q.unlink(&q.lost, i)
	}
	n := r.space()
	q.bytes[from] -= n
	q.segs[from]--
	q.bytes[to] += n
	q.segs[to]++
	r.state = to
	switch to {
	case recFlying:
		q.insertAfter(&q.flying, q.flying.last, i)
	case recLost:
		q.insertLost(i)
	}
}

// insertLost puts a record into the lost list at its place in sequence. Losses are mostly found in ascending order, and a
// retransmission lost again lies before what still waits: both ends are tried first.
func (q *sentQueue) insertLost(i uint32) {
	start := q.slab[i].start
	after := q.lost.last
	if after != none && start < q.slab[q.lost.first].start {
		after = none
	}
	for after != none && q.slab[after].start > start {
		after = q.slab[after].prev
	}
	q.insertAfter(&q.lost, after, i)
}

// refly returns lost records to flight because their loss was undone. They take their places by time of transmission.
func (q *sentQueue) refly() {
	after := none
	for i := q.lost.first; i != none; i = q.lost.first {
		sentAt := q.slab[i].sentAt
		q.move(i, recFlying)
		q.unlink(&q.flying, i)
		for after != none && q.slab[after].sentAt > sentAt {
			after = q.slab[after].prev
		}
		for n := q.following(&q.flying, after); n != none && q.slab[n].sentAt <= sentAt; n = q.following(&q.flying, after) {
			after = n
		}
		q.insertAfter(&q.flying, after, i)
		after = i
	}
}

// following returns the list's record behind i, its first if i is none.
func (q *sentQueue) following(l *recordList, i uint32) uint32 {
	if i == none {
		return l.first
	}
	return q.slab[i].next
}

// insertAfter puts i behind at, in front if at is none.
func (q *sentQueue) insertAfter(l *recordList, at, i uint32) {
	r := &q.slab[i]
	r.prev = at
	if at == none {
		r.next = l.first
		l.first = i
	} else {
		r.next = q.slab[at].next
		q.slab[at].next = i
	}
	if r.next == none {
		l.last = i
	} else {
		q.slab[r.next].prev = i
	}
}

func (q *sentQueue) unlink(l *recordList, i uint32) {
	r := &q.slab[i]
	if r.prev == none {
		l.first = r.next
	} else {
		q.slab[r.prev].next = r.next
	}
	if r.next == none {
		l.last = r.prev
	} else {
		q.slab[r.next].prev = r.prev
	}
	r.prev, r.next = none, none
}

// release takes the oldest acknowledged record out of the queue.
func (q *sentQueue) release() (Chunk, bool) {
	for q.oldest != q.head {
		i := q.at(q.oldest)
		r := &q.slab[i]
		q.oldest++
		q.bytes[recAcked] -= r.space()
		q.segs[recAcked]--
		q.free = append(q.free, i)
		if r.size > 0 {
			return r.piece(), true
		}
	}
	return Chunk{}, false
}
