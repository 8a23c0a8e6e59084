package tcp

import (
	"time"

	"braid/buffer"
	"braid/clock"
	"braid/seq"
	"braid/wire"
)

// The delayed ACK (RFC 9293, Section 3.8.6.3: under 0.5 s, at least every second full segment).
const (
	minDelay   = 40 * time.Millisecond
	maxDelay   = 200 * time.Millisecond
	quickAcks  = 16 // payload segments acknowledged at once at the start and after a pause of one RTO
	fullsToACK = 2  // full segments that make an ACK due
	smallToACK = 8  // segments of any size that make one due: the peer's segments may have shrunk
)

// Bounds of the out-of-order queue's memory, beside the window: a sender of one-byte segments with gaps must not make the
// host hold a chunk for each. What does not fit is dropped as if the network had lost it; it was not reported as received.
const (
	oooCostFactor = 2
	oooCostFloor  = 256 << 10
)

const finUnknown = int64(-1)

// receiver is the receiving half: RCV.NXT, the window, what came out of order, and when an ACK is due.
type receiver struct {
	nxt       int64 // RCV.NXT: every offset below it has been received
	delivered int64 // every offset below it has been handed to the owner; <= nxt
	lastAck   int64 // Last.ACK.sent; <= nxt
	limit     int64 // right edge that the owner allows (SetWindow)
	edge      int64 // highest right edge ever advertised: payload below it is taken whatever limit says
	fin       int64 // offset of the peer's FIN, finUnknown until it is seen

	ready *buffer.Chunk     // [delivered, nxt), if it came in order and nothing is queued
	queue buffer.Reassembly // everything else that has arrived and not been handed on
	sack  bool              // SACK was negotiated
	blocks
	ackPolicy

	bytes, segments int64 // payload bytes taken, segments seen
}

func (r *receiver) init(window int64, offered int) {
	r.fin = finUnknown
	r.nxt, r.delivered, r.lastAck = 1, 1, 1
	r.limit = r.nxt + window
	r.at = clock.Never
	r.delay = minDelay
	r.quick = quickAcks
	r.offered = offered
}

// acceptable is the test of RFC 9293, Section 3.10.7.4 for a segment that takes [start, end). It differs in two empty cases:
//   - A segment without text may start at the right edge: a peer whose window is full, and lost, sends its ACKs there.
//   - It may also start below RCV.NXT, not below what was acknowledged: reordered ACKs are believed (and their numbers
//     checked) without an ACK in return.
//
// A segment at RCV.NXT is acceptable to a zero window too: the ACK and RST in it count, its text is cut.
func (r *receiver) acceptable(start, end int64) bool {
	if start == r.nxt {
		return true
	}
	if start == end {
		return r.lastAck <= start && start <= r.edge
	}
	return start < r.edge && end > r.nxt
}

// arrival says what take made of a segment's text.
type arrival struct {
	inOrder   bool // it advanced RCV.NXT
	duplicate bool // nothing of it was new
	fin       bool // the peer's FIN has been reached
}

// take receives the text of an acceptable segment: payload at offset start, and a FIN behind it if fin is set.
func (r *receiver) take(now clock.Time, pool *buffer.Pool, start int64, payload []byte, fin bool, rto time.Duration) (a arrival) {
	end := start + int64(len(payload))
	if fin && r.fin == finUnknown && end >= max(r.nxt, r.queue.End()) && end <= max(r.edge, r.nxt) {
		r.fin = end // out of order it waits like payload does
	}
	// What lies beyond the right edge, or beyond the FIN, is not ours to take: the peer will repeat the former.
	bound := max(r.edge, r.nxt)
	if r.fin != finUnknown {
		bound = min(bound, r.fin)
	}
	if end > bound {
		cut := max(start, bound)
		payload, end = payload[:cut-start], cut
		r.ackNow()
	}
	before := r.nxt
	if len(payload) > 0 {
		a.duplicate = r.payload(now, pool, start, end, payload, rto)
	}
	if r.nxt == r.fin {
		r.nxt++
		a.fin = true
		r.ackNow()
	}
	a.inOrder = r.nxt != before
	return a
}

// payload files what is new of [start, end) and reports whether nothing is.
func (r *receiver) payload(now clock.Time, pool *buffer.Pool, start, end int64, payload []byte, rto time.Duration) (duplicate bool) {
	r.arrived(now, len(payload), rto)
	if start < r.nxt {
		r.duplicate(seq.Range{Start: start, End: min(end, r.nxt)})
		if end <= r.nxt {
			return true
		}
		payload = payload[r.nxt-start:]
		start = r.nxt
	}
	if start > r.nxt {
		return r.outOfOrder(pool, start, end, payload)
	}
	r.bytes += int64(len(payload))
	if r.ready == nil && r.queue.Empty() {
		r.ready = pool.Copy(start, payload)
		r.nxt = end
		r.inOrder()
		return false
	}
	r.queue.Insert(pool, pool.Copy(start, payload))
	r.nxt = r.queue.RangeAt(start).End
	if r.nxt != end || r.queue.End() > r.nxt {
		r.ackNow() // RFC 5681, Section 3.2: at once when a gap is filled, in whole or in part
	}
	r.inOrder()
	return false
}

// outOfOrder queues payload behind a gap (RFC 9293, Section 3.10.7.4) and asks for a duplicate ACK (RFC 5681, Section 3.2).
func (r *receiver) outOfOrder(pool *buffer.Pool, start, end int64, payload []byte) (duplicate bool) {
	r.ackNow()
	r.dupAcks = min(r.dupAcks+1, 255)
	if r.queue.Cost() > oooCostFactor*(r.edge-r.nxt)+oooCostFloor {
		return false
	}
	added := r.queue.Insert(pool, pool.Copy(start, payload))
	r.bytes += added
	if r.sack {
		r.newest(start, r.queue.RangeAt(start))
		if added == 0 {
			r.duplicate(seq.Range{Start: start, End: end})
		}
	}
	return added == 0
}

// duplicate notes that the bytes of d came again: the next ACK says so in a D-SACK block (RFC 2883, Section 4).
func (r *receiver) duplicate(d seq.Range) {
	r.ackNow()
	if !r.sack || d.Empty() {
		return
	}
	if r.dsack.Overlaps(d) || r.dsack.End == d.Start || r.dsack.Start == d.End { // one block for a row of them
		d = seq.Range{Start: min(r.dsack.Start, d.Start), End: max(r.dsack.End, d.End)}
	}
	r.dsack = d
}

// next returns the next chunk in order, nil if there is none.
func (r *receiver) next() *buffer.Chunk {
	c := r.ready
	if c != nil {
		r.ready = nil
	} else if r.delivered < r.nxt && !r.queue.Empty() {
		c = r.queue.Pop(r.delivered)
	}
	if c != nil {
		r.delivered = c.End()
	}
	return c
}

// drop gives back what can never become in order.
func (r *receiver) drop(pool *buffer.Pool) {
	if r.delivered == r.nxt || (r.fin != finUnknown && r.delivered == r.fin) || r.queue.First().Start > r.nxt {
		r.queue.Clear(pool)
	}
}

// setLimit says how many bytes beyond RCV.NXT the owner can take.
func (r *receiver) setLimit(n int64) { r.limit = r.nxt + max(0, n) }

// advertise returns the window field for a scale and remembers the edge it stands for.
//
// The window is what the owner allows, rounded down to units of the scale. So the right edge may move left by less than a
// unit although the owner's did not (RFC 7323, Section 2.4, knows of that); rounding up would promise more with every ACK. What
// lies below the highest edge is taken all the same.
func (r *receiver) advertise(scale uint8) uint16 {
	w := min(max(0, r.limit-r.nxt)>>scale, 65535)
	r.edge = max(r.edge, r.nxt+w<<scale)
	return uint16(w)
}

// advertised returns the room below the highest right edge.
func (r *receiver) advertised() int64 { return max(0, r.edge-r.nxt) }

// blocks remembers what the SACK option has to say (RFC 2018, Section 4).
type blocks struct {
	hints [4]int64  // an offset in each range reported lately, the newest first; 0: unused
	dsack seq.Range // duplicate to report, once
}

// newest makes the range around offset o the one to report first.
func (b *blocks) newest(o int64, around seq.Range) {
	last := len(b.hints) - 1
	for i, h := range b.hints {
		if h == 0 || around.Contains(h) {
			last = i
			break
		}
	}
	copy(b.hints[1:last+1], b.hints[:last])
	b.hints[0] = o
}

// fillSACK puts as many blocks as room (in bytes) allows into seg and returns the bytes that the option takes. The first
// is a D-SACK if one is due; then the range of the newest segment, then those reported before, the newest first
// (RFC 2018, Section 4; RFC 2883, Section 4).
func (r *receiver) fillSACK(seg *wire.Segment, irs seq.Number, room int) int {
	most := min((room-4)/8, len(seg.SACK))
	if most < 1 {
		return 0
	}
	n := 0
	if !r.dsack.Empty() {
		seg.SACK[0] = wire.SACKBlock{Start: irs.At(r.dsack.Start), End: irs.At(r.dsack.End)}
		n = 1
		r.dsack = seq.Range{}
	}
	first := n
	kept := 0
	for _, h := range r.hints {
		if h == 0 {
			break
		}
		g := seq.Range{}
		if h >= r.nxt {
			g = r.queue.RangeAt(h)
		}
		block := wire.SACKBlock{Start: irs.At(g.Start), End: irs.At(g.End)}
		if g.Empty() || listed(seg.SACK[first:n], block) {
			continue // it became in order, or joined a newer one
		}
		r.hints[kept] = h
		kept++
		if n < most {
			seg.SACK[n] = block
			n++
		}
	}
	clear(r.hints[kept:])
	if n == 0 {
		return 0
	}
	seg.Options |= wire.OptSACK
	seg.SACKBlocks = n
	return wire.SACKLen(n)
}

func listed(list []wire.SACKBlock, b wire.SACKBlock) bool {
	for _, l := range list {
		if l == b {
			return true
		}
	}
	return false
}

// sackNews reports whether an ACK without SACK blocks would keep something back.
func (r *receiver) sackNews() bool { return r.sack && (r.hints[0] != 0 || !r.dsack.Empty()) }

// ackPolicy decides when an ACK is due.
type ackPolicy struct {
	due      bool       // at once
	forced   bool       // by the owner, who wants a segment without payload
	at       clock.Time // when the delayed ACK is due; Never: none is
	delay    time.Duration
	lastData clock.Time
	peerMSS  int   // largest payload of one segment seen: what counts as a full one
	offered  int   // our MSS: payload beyond it is several segments that something has put together
	unacked  int64 // payload bytes since the last ACK
	segs     int   // payload segments since the last ACK
	quick    int   // payload segments that still get an ACK at once
	dupAcks  int   // out-of-order segments since the last ACK
}

func (p *ackPolicy) ackNow() { p.due = true }

// arrived notes a payload segment and adapts the delay to the spacing of the peer's segments.
func (p *ackPolicy) arrived(now clock.Time, n int, rto time.Duration) {
	gap := now.Sub(p.lastData)
	p.lastData = now
	switch {
	case p.peerMSS == 0 || gap > rto:
		p.quick = quickAcks
		p.delay = minDelay
	case gap < p.delay:
		p.delay = max(minDelay, p.delay/2+gap)
	}
	p.delay = min(p.delay, max(minDelay, rto), maxDelay)
	if n <= p.offered {
		p.peerMSS = max(p.peerMSS, n)
	}
	p.unacked += int64(n)
	p.segs++
}

// inOrder decides about the ACK for payload that advanced RCV.NXT: at once in quick mode and at every second full segment,
// else after a delay.
func (p *ackPolicy) inOrder() {
	if p.quick > 0 {
		p.quick--
		p.due = true
		return
	}
	if p.unacked >= fullsToACK*int64(p.peerMSS) || p.segs >= smallToACK {
		p.due = true
		return
	}
	if p.at == clock.Never {
		p.at = p.lastData.Add(p.delay)
	}
}

// acked notes that a segment with RCV.NXT left.
func (p *ackPolicy) acked() {
	p.due, p.at = false, clock.Never
	p.unacked, p.segs = 0, 0
}

// onReply notes that payload of ours leaves: when it answers payload within the delay, the two sides converse and ACKs
// can wait for the replies.
func (p *ackPolicy) onReply(now clock.Time) {
	if p.quick > 0 && p.peerMSS > 0 && now.Sub(p.lastData) < p.delay {
		p.quick = 0
	}
}
