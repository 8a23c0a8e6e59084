package mptcp

import (
	"time"

	"braid/buffer"
	"braid/clock"
	"braid/tcp"
	"braid/trace"
	"braid/wire"
)

// Bounds of the out-of-order queue's memory beside the window: tiny segments with gaps must not make the host hold a whole
// chunk for each (SEC-07).
const (
	oooCostFactor = 2
	oooCostFloor  = 256 << 10
)

// handleSegment takes what an acceptable segment of sf brought, after tcp and the handshakes have looked at it. Segments that
// are not acceptable never get here: their options are not believed (RFC 8684, Section 5).
func (c *Conn) handleSegment(now clock.Time, sf *Subflow, seg *wire.Segment, res tcp.Result) {
	c.heard(now, sf)
	c.takeReleased(now, sf)
	if c.state == connOver {
		c.reackFIN(now, sf, seg)
		c.dropReceived(sf)
		return
	}
	c.takeLost(now, sf)
	if !c.fb.active {
		if seg.Options&wire.OptMPTCP != 0 {
			c.takeOptions(now, sf, seg, res)
		}
		if c.state == connOver || sf.state == gone {
			c.dropReceived(sf)
			return
		}
		if seg.Options&wire.OptDSS == 0 {
			c.missingDSS(now, sf, seg, res)
		}
	} else if seg.Options&wire.OptDSS != 0 && c.contradicts(sf, seg) {
		c.dropReceived(sf)
		c.abort(now, ErrProtocol)
		return
	}
	c.takeReceived(now, sf)
	if sf.state == gone || c.state == connOver {
		return
	}
	if res.PeerFIN {
		c.peerClosed(now, sf, seg)
	}
	if c.fin.queued || c.fin.peer >= 0 {
		c.advanceClose(now)
	}
	if c.snd.short {
		c.signalWritable()
	}
}

// takeOptions obeys the MPTCP options of an acceptable segment.
func (c *Conn) takeOptions(now clock.Time, sf *Subflow, seg *wire.Segment, res tcp.Result) {
	sf.data.optionSeen(now) // whatever it says, and even if it is refused: an ADD_ADDR may leave no room for the DSS
	if seg.Has(wire.OptDSS) {
		c.takeDSS(now, sf, seg)
	} else if seg.Has(wire.OptMPCapable) && seg.Capable.HasData && sf.initial && len(seg.Payload) > 0 {
		c.takeCapableData(now, sf, &seg.Capable)
	}
	if seg.Options&(wire.OptMPFastClose|wire.OptMPFail|wire.OptMPPrio|wire.OptAddAddr|wire.OptRemoveAddr) == 0 || sf.state == gone {
		return
	}
	if seg.Has(wire.OptMPFastClose) && c.takeFastClose(now, sf, seg) {
		return
	}
	if seg.Has(wire.OptMPPrio) {
		c.takePrio(now, sf, seg.Prio.Backup)
	}
	if seg.Has(wire.OptMPFail) && !res.Reset {
		c.takeFail(now, sf, seg.Fail.DataSeq)
	}
	if seg.Has(wire.OptAddAddr) {
		c.takeAddAddr(now, sf, &seg.AddAddr)
	}
	if seg.Has(wire.OptRemoveAddr) {
		c.takeRemoveAddr(now, &seg.RemoveAddr)
	}
}

// takeReceived moves the payload that is next in subflow order from tcp to where its mappings say.
func (c *Conn) takeReceived(now clock.Time, sf *Subflow) {
	d := &sf.data
	for ch := sf.tcp.NextReceived(); ch != nil; ch = sf.tcp.NextReceived() {
		start, end := ch.Start, ch.End()
		d.stats.receivedBytes += end - start
		d.taken = end
		switch m := d.maps.find(start); {
		case c.fb.receiving && m == nil:
			ch.Start += c.fb.delta
			c.deliver(now, sf, ch)
		case m != nil && !m.checked && end <= m.end && d.backlog.empty() && !c.fb.discards(m):
			ch.Start += m.delta()
			c.deliver(now, sf, ch)
			d.maps.consume(end)
		default:
			d.backlog.push(now, ch)
			c.explain(now, sf, false)
		}
		if sf.state == gone || c.state == connOver {
			c.dropReceived(sf)
			return
		}
	}
}

// dropReceived gives back what tcp still has for us and what waits for mappings.
func (c *Conn) dropReceived(sf *Subflow) {
	for ch := sf.tcp.NextReceived(); ch != nil; ch = sf.tcp.NextReceived() {
		c.stack.pool.Release(ch)
	}
	sf.data.backlog.clear(c.stack.pool)
	sf.data.maps.clear()
}

// deliver takes a chunk whose offsets are data offsets. Old and doubled bytes are dropped, those beyond the advertised window
// are not accepted (RFC 8684, Section 3.3.1), the others become readable as soon as all before them have come: each byte once
// and in order, whichever subflow brought it.
func (c *Conn) deliver(now clock.Time, sf *Subflow, ch *buffer.Chunk) {
	r := &c.rcv
	end := ch.End()
	if c.fb.receiving {
		r.edge = max(r.edge, end) // TCP's window let it in, and its acknowledgment is for good
	}
	if end > r.edge || c.fin.peer >= 0 && end > c.fin.peer {
		if ch = c.trimBeyond(ch); ch == nil {
			return
		}
		end = ch.End()
	}
	if ch.Start < r.next {
		old := min(end, r.next) - ch.Start
		c.stats.duplicateIn += old
		c.stack.counters.DuplicateBytes += old
		sf.data.stats.duplicateIn += old
		if end <= r.next {
			c.stack.pool.Release(ch)
			return
		}
		ch.TrimFront(old)
	}
	c.stats.arrivals++
	if ch.Start != r.next || !r.ooo.Empty() {
		c.deliverOutOfOrder(now, sf, ch)
		return
	}
	before := r.next
	c.append(now, ch)
	c.readableAdvanced(now, before, 0)
}

// append moves the chunk that is next in data order to the read queue.
func (c *Conn) append(now clock.Time, ch *buffer.Chunk) {
	n := int64(len(ch.Data))
	c.rcv.next += n
	c.stats.delivered += n
	if c.rcv.fixed == 0 {
		c.rcv.window.OnData(now, n)
	}
	c.rcv.queue.Push(c.stack.pool, ch)
}

// deliverOutOfOrder queues a chunk behind a gap, or closes one.
func (c *Conn) deliverOutOfOrder(now clock.Time, sf *Subflow, ch *buffer.Chunk) {
	r := &c.rcv
	n := int64(len(ch.Data))
	inOrder := ch.Start == r.next
	if !inOrder && (c.stack.Memory() > c.stack.cfg.StackMemory || r.ooo.Cost() > oooCostFactor*r.size()+oooCostFloor) {
		// Not DATA_ACKed, so the peer sends it again; what is next in order is always taken.
		c.stats.droppedMemory += n
		c.stack.counters.DroppedMemoryBytes += n
		c.stack.pool.Release(ch)
		return
	}
	if r.ooo.Empty() {
		r.gapAt = now
	}
	before := r.next
	added := r.ooo.Insert(c.stack.pool, ch)
	c.stats.duplicateIn += n - added
	c.stack.counters.DuplicateBytes += n - added
	sf.data.stats.duplicateIn += n - added
	if inOrder {
		for ch = r.ooo.Pop(r.next); ch != nil; ch = r.ooo.Pop(r.next) {
			c.append(now, ch)
		}
		waited := now.Sub(r.gapAt)
		r.gapAt = now
		c.readableAdvanced(now, before, waited)
	}
	c.stats.queued(&r.ooo)
	c.stack.counters.OutOfOrderChunks++
	if c.stack.cfg.Trace != nil {
		c.trace(now, -1, trace.OutOfOrder, r.ooo.Bytes(), int64(r.ooo.Len()), r.next, max(0, r.edge-r.next))
	}
}

// trimBeyond cuts off what lies beyond the advertised window or the peer's DATA_FIN; nil if nothing is left.
func (c *Conn) trimBeyond(ch *buffer.Chunk) *buffer.Chunk {
	limit := c.rcv.edge
	if c.fin.peer >= 0 {
		limit = min(limit, c.fin.peer)
	}
	over := min(ch.End()-limit, int64(len(ch.Data)))
	c.stats.beyondWindow += over
	c.stack.counters.BeyondWindowBytes += over
	ch.TrimBack(over)
	if len(ch.Data) == 0 {
		c.stack.pool.Release(ch)
		return nil
	}
	return ch
}

// readableAdvanced follows up when the read queue grew, from data offset before on; waited is how long the first of it may have
// waited for a gap to close.
func (c *Conn) readableAdvanced(now clock.Time, before int64, waited time.Duration) {
	if c.stack.cfg.Trace != nil {
		c.trace(now, -1, trace.Delivered, c.rcv.next, c.rcv.next-before, int64(waited))
	}
	if c.fin.peer >= 0 {
		c.reachPeerFIN(now)
	}
	if c.closed {
		// Nobody will read it: the peer has to know that it is lost (RFC 9293, Section 3.6.1).
		if !c.rcv.queue.Empty() {
			c.rcv.queue.Clear(c.stack.pool)
			c.abort(now, ErrAborted)
		}
		return
	}
	c.signalReadable()
}
