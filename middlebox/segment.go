package middlebox

import (
	"time"

	"braid/clock"
	"braid/link"
	"braid/seq"
	"braid/wire"
)

// Split is a Box that cuts segments into pieces of at most Size bytes of payload, as segmentation offload does: every piece carries
// all options, so mappings appear several times and cover more than their segment (RFC 8684, Section 3.3.1).
type Split struct {
	Size   int
	Splits int64 // segments that were cut
	packet tcpPacket
}

// Process cuts.
func (b *Split) Process(_ clock.Time, _ Direction, p *link.Packet, out Outlet) {
	t := &b.packet
	if !t.parse(p) || len(t.seg.Payload) <= b.Size || t.seg.Flags.Has(wire.SYN) || !t.fits() {
		out.Pass(p)
		return
	}
	b.Splits++
	whole, flags := t.seg.Payload, t.seg.Flags
	for at := 0; at < len(whole); at += b.Size {
		end := min(at+b.Size, len(whole))
		t.seg.Payload, t.seg.Flags = whole[at:end], flags
		if end < len(whole) {
			t.seg.Flags &^= wire.FIN | wire.PSH
		}
		q := out.New(p)
		t.write(q)
		t.seg.Seq += seq.Number(end - at)
		out.Pass(q)
	}
	out.Drop(p)
}

// Coalesce is a Box that joins consecutive segments of a flow up to Size bytes of payload, waiting at most Wait for the next one. The whole
// keeps the first segment's options only, so that mappings of the others are lost (RFC 8684, Section 3.3.5, wants the hosts to
// survive that). Attach it with both links, or the forward one alone: only the forward direction is coalesced.
type Coalesce struct {
	Size int
	Wait time.Duration

	Joined int64 // segments that were appended to others
	held   *link.Packet
	first  tcpPacket // what is in held
	packet tcpPacket
	since  clock.Time
}

// Process joins.
func (b *Coalesce) Process(now clock.Time, dir Direction, p *link.Packet, out Outlet) {
	if dir == Reverse {
		out.Pass(p)
		return
	}
	t := &b.packet
	if !t.parse(p) || len(t.seg.Payload) == 0 || t.seg.Flags&(wire.SYN|wire.FIN|wire.RST) != 0 || !t.fits() {
		b.release(out)
		out.Pass(p)
		return
	}
	if b.held != nil && b.fits() {
		b.join(p, out)
		return
	}
	b.release(out)
	b.held, b.since = p, now
	b.first = b.packet
}

// fits reports whether the parsed segment continues the one that is held.
func (b *Coalesce) fits() bool {
	return b.first.flow() == b.packet.flow() && b.first.seg.Seq+seq.Number(len(b.first.seg.Payload)) == b.packet.seg.Seq &&
		len(b.first.seg.Payload)+len(b.packet.seg.Payload) <= b.Size
}

func (b *Coalesce) join(p *link.Packet, out Outlet) {
	b.Joined++
	q := out.New(b.held)
	b.first.seg.Payload = append(append(make([]byte, 0, b.Size), b.first.seg.Payload...), b.packet.seg.Payload...)
	b.first.seg.Flags |= b.packet.seg.Flags
	b.first.write(q)
	out.Drop(b.held)
	out.Drop(p)
	b.held = q
	b.first.parse(q)
}

// release lets go what is held.
func (b *Coalesce) release(out Outlet) {
	if p := b.held; p != nil {
		b.held = nil
		out.Pass(p)
	}
}

// NextTimeout is when the held segment has waited long enough.
func (b *Coalesce) NextTimeout() clock.Time {
	if b.held == nil {
		return clock.Never
	}
	return b.since.Add(b.Wait)
}

// HandleTimeout lets it go.
func (b *Coalesce) HandleTimeout(_ clock.Time, out Outlet) { b.release(out) }
