package mptcp

import (
	"time"

	"braid/buffer"
	"braid/clock"
	"braid/wire"
)

const (
	// maxUnmapped bounds, beside the receive window, the bytes of one subflow that may wait for a mapping.
	maxUnmapped = 4 << 20
	// maxUnmappedChunks bounds the pieces: looking through them has to stay cheap.
	maxUnmappedChunks = 4096
	// maxUnmappedWait is how long bytes may wait for their mapping. A sender whose options are stripped gets no DATA_ACKs and
	// soon sends nothing: waiting for a whole window of such bytes would wait forever.
	maxUnmappedWait = 5 * time.Second
)

// backlog holds the bytes of one subflow that cannot be delivered yet: those that no mapping explains, and those of a mapping
// whose checksum can only be verified when all of it is there (RFC 8684, Section 3.3.1). Chunks are in subflow order.
type backlog struct {
	chunks   []*buffer.Chunk
	bytes    int64
	unmapped int64      // of bytes, those that no mapping explained when explain last looked
	since    clock.Time // when the oldest chunk was put here
}

func (b *backlog) empty() bool { return len(b.chunks) == 0 }

func (b *backlog) push(now clock.Time, ch *buffer.Chunk) {
	if len(b.chunks) == 0 {
		b.since = now
	}
	b.chunks = append(b.chunks, ch)
	b.bytes += int64(len(ch.Data))
}

// cut divides chunk i so that it ends at offset o, which lies within it.
func (b *backlog) cut(p *buffer.Pool, i int, o int64) {
	ch := b.chunks[i]
	rest := p.Copy(o, ch.Data[o-ch.Start:])
	ch.TrimBack(ch.End() - o)
	b.chunks = append(b.chunks, nil)
	copy(b.chunks[i+2:], b.chunks[i+1:])
	b.chunks[i+1] = rest
}

// remove takes chunks i to j, exclusive, out of the backlog.
func (b *backlog) remove(i, j int) {
	for _, ch := range b.chunks[i:j] {
		b.bytes -= int64(len(ch.Data))
	}
	n := copy(b.chunks[i:], b.chunks[j:])
	clear(b.chunks[i+n:])
	b.chunks = b.chunks[:i+n]
}

func (b *backlog) clear(p *buffer.Pool) {
	for _, ch := range b.chunks {
		p.Release(ch)
	}
	*b = backlog{chunks: b.chunks[:0]}
	clear(b.chunks[:cap(b.chunks)])
}

// explain delivers what mappings explain by now. all looks at everything, because a mapping came; otherwise only the newest
// chunk is new.
func (c *Conn) explain(now clock.Time, sf *Subflow, all bool) {
	d := &sf.data
	b := &d.backlog
	i := 0
	if !all {
		i = len(b.chunks) - 1
		if m := d.maps.find(b.chunks[i].Start); m != nil && m.checked {
			for i > 0 && b.chunks[i-1].End() == b.chunks[i].Start && b.chunks[i].Start > m.start {
				i--
			}
		}
	}
	for i < len(b.chunks) {
		ch := b.chunks[i]
		m := d.maps.find(ch.Start)
		switch {
		case m == nil:
			if next := d.maps.next(ch.Start); next < ch.End() {
				b.cut(c.stack.pool, i, next)
			}
			i++
		case c.fb.discards(m):
			// After MP_FAIL nothing is believed until the infinite mapping comes (RFC 8684, Section 3.7).
			end := min(ch.End(), m.end)
			if end < ch.End() {
				b.cut(c.stack.pool, i, end)
			}
			b.remove(i, i+1)
			c.discard(ch)
		case m.checked:
			n, whole := b.cover(c.stack.pool, i, m)
			if !whole {
				i += n
				continue
			}
			if !c.verify(now, sf, i, n, m) {
				return
			}
		default:
			if m.end < ch.End() {
				b.cut(c.stack.pool, i, m.end)
			}
			b.remove(i, i+1)
			ch.Start += m.delta()
			c.deliver(now, sf, ch)
			if sf.state == gone || c.state == connOver {
				return
			}
		}
	}
	c.afterExplaining(now, sf)
}

// afterExplaining forgets mappings that are used up and looks whether too much has no mapping.
func (c *Conn) afterExplaining(now clock.Time, sf *Subflow) {
	d := &sf.data
	b := &d.backlog
	if len(b.chunks) == 0 {
		b.unmapped = 0
		d.maps.consume(d.taken)
		return
	}
	d.maps.consume(max(d.maps.done, b.chunks[0].Start))
	b.unmapped = 0
	for _, ch := range b.chunks {
		if d.maps.find(ch.Start) == nil {
			b.unmapped += int64(len(ch.Data))
		}
	}
	if b.unmapped == 0 {
		return
	}
	if c.fb.discard || c.fb.receiving {
		return
	}
	if b.unmapped > min(c.rcv.size(), maxUnmapped) || len(b.chunks) > maxUnmappedChunks {
		c.stack.counters.UnmappedResets++
		c.stack.drop(now, sf, wire.ResetMiddlebox, false)
		return
	}
	c.stack.rearm(c)
}

// cover returns how many chunks from i on lie in mapping m, and whether they are all of it. The last one is cut at its end.
func (b *backlog) cover(p *buffer.Pool, i int, m *mapping) (n int, whole bool) {
	at := b.chunks[i].Start
	whole = at == m.start
	for i+n < len(b.chunks) && at < m.end {
		ch := b.chunks[i+n]
		if ch.Start != at {
			return max(n, 1), false
		}
		if ch.End() > m.end {
			b.cut(p, i+n, m.end)
			ch = b.chunks[i+n]
		}
		at = ch.End()
		n++
	}
	return n, whole && at == m.end
}

// verify checks the checksum of mapping m, whose bytes are the n chunks from i on, and delivers them. It returns false if the
// checksum is wrong and the subflow is gone.
func (c *Conn) verify(now clock.Time, sf *Subflow, i, n int, m *mapping) bool {
	b := &sf.data.backlog
	var sum wire.Sum
	for _, ch := range b.chunks[i : i+n] {
		sum = sum.Plus(wire.Sum(0).Add(ch.Data).At(int(ch.Start - m.start)))
	}
	want := wire.DSSChecksum(c.hs.peerIDSN.At(m.data), uint32(m.start), m.length, sum)
	if want != m.checksum {
		return c.checksumFailed(now, sf, i, n, m)
	}
	delta := m.delta()
	for ; n > 0; n-- {
		ch := b.chunks[i]
		b.remove(i, i+1)
		ch.Start += delta
		c.deliver(now, sf, ch)
		if sf.state == gone || c.state == connOver {
			return false
		}
	}
	return true
}

// discard drops bytes that must not be delivered.
func (c *Conn) discard(ch *buffer.Chunk) {
	c.stats.discarded += int64(len(ch.Data))
	c.stack.pool.Release(ch)
}
