package netsim

import (
	"braid/clock"
	"braid/link"
	"braid/wire"
)

// Direction is which way a packet passes a middlebox: Forward on the first link that it was attached to, Reverse on the second.
type Direction uint8

// The directions.
const (
	Forward Direction = iota
	Reverse
)

// Box is a middlebox. It sees every packet before it enters a link, owns it, and passes on what it likes.
type Box interface {
	Process(now clock.Time, dir Direction, p *link.Packet, out *Outlet)
}

// timedBox is a Box that also acts at times of its own.
type timedBox interface {
	Box
	NextTimeout() clock.Time
	HandleTimeout(now clock.Time, out *Outlet)
}

// Outlet is where a Box puts packets.
type Outlet struct {
	link  *Link
	index int // of the box among the link's
	now   clock.Time
}

// Pass sends a packet on: to the next box, then into the link.
func (o *Outlet) Pass(p *link.Packet) { o.link.throughBoxes(o.now, p, o.index+1) }

// Drop gives up a packet.
func (o *Outlet) Drop(p *link.Packet) { o.link.net.pool.Put(p) }

// New returns an empty packet that will take the same way as p.
func (o *Outlet) New(p *link.Packet) *link.Packet {
	q := o.link.net.pool.Get()
	q.From, q.To, q.Route, q.Hop, q.Header = p.From, p.To, p.Route, p.Hop, p.Header
	return q
}

// Back sends answer, made with New(p), to the host that p came from, at once; it drops it if there is no route back.
func (o *Outlet) Back(p, answer *link.Packet) {
	n := o.link.net
	there := &n.routes[p.Route]
	from := p.From.Addr()
	if !from.IsValid() {
		from = ipSource(p.Data)
	}
	r := there.host.paths[there.path].route(from)
	if r < 0 {
		n.pool.Put(answer)
		return
	}
	answer.Route = r
	n.routes[r].host.receive(o.now, n.routes[r].path, answer)
}

// boxAt is a Box in front of a link.
type boxAt struct {
	box    Box
	dir    Direction
	outlet Outlet
	timer  *Timer // of a timedBox
}

// Attach puts a middlebox in front of two links, that of one direction and that of the other; either may be nil. Boxes of a link work in the
// order in which they were attached.
func (n *Network) Attach(b Box, forward, reverse *Link) {
	for dir, l := range []*Link{forward, reverse} {
		if l == nil {
			continue
		}
		i := len(l.boxes)
		l.boxes = append(l.boxes, &boxAt{box: b, dir: Direction(dir), outlet: Outlet{link: l, index: i}})
		if t, ok := b.(timedBox); ok && dir == int(Forward) {
			at := l.boxes[i]
			at.timer = n.NewTimer(func(now clock.Time) {
				at.outlet.now = now
				t.HandleTimeout(now, &at.outlet)
				at.timer.Set(t.NextTimeout())
			})
		}
	}
}

// throughBoxes gives p to the box of the given index, or to the link behind the last one.
func (l *Link) throughBoxes(now clock.Time, p *link.Packet, index int) {
	if index == len(l.boxes) {
		l.offer(now, p)
		return
	}
	b := l.boxes[index]
	b.outlet.now = now
	b.box.Process(now, b.dir, p, &b.outlet)
	if b.timer != nil {
		b.timer.Set(b.box.(timedBox).NextTimeout())
	}
}

// tcpPacket is a TCP segment in an IP packet, taken apart.
type tcpPacket struct {
	ip  wire.IP
	seg wire.Segment
}

// parse takes p apart; false: it is no intact TCP segment in the clear (a UDP datagram, say), and middleboxes leave it alone.
func (t *tcpPacket) parse(p *link.Packet) bool {
	if p.To.IsValid() || p.Corrupted || wire.ParseIP(p.Data, &t.ip) != nil || t.ip.Proto != wire.ProtoTCP {
		return false
	}
	return wire.ParseTCP(t.ip.Payload, &t.seg) == nil
}

// write puts the packet together in q, with right checksums.
func (t *tcpPacket) write(q *link.Packet) {
	n := wire.TCPHeaderLen + t.seg.OptionsLen()
	q.Data = wire.AppendIPHeader(q.Data[:0], &t.ip, n+len(t.seg.Payload))
	q.Header = len(q.Data)
	q.Data = wire.AppendTCP(q.Data, &t.seg)
	header := q.Data[q.Header : q.Header+n]
	wire.SetTCPChecksum(header, len(t.seg.Payload), wire.PseudoSum(t.ip.Src, t.ip.Dst, wire.ProtoTCP), wire.Sum(0).Add(t.seg.Payload))
	q.Size = len(q.Data)
}

// flow is one direction of a TCP connection on the wire.
type flow struct {
	src, dst         [16]byte
	srcPort, dstPort uint16
}

func (t *tcpPacket) flow() flow {
	return flow{t.ip.Src.As16(), t.ip.Dst.As16(), t.seg.SrcPort, t.seg.DstPort}
}

// back is the other direction.
func (f flow) back() flow { return flow{f.dst, f.src, f.dstPort, f.srcPort} }
