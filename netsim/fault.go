package netsim

import (
	"braid/clock"
	"braid/link"
	"braid/middlebox"
)

// outlet is where a middlebox in front of a link puts packets.
type outlet struct {
	link  *Link
	index int // of the box among the link's
	now   clock.Time
}

// Pass sends a packet on: to the next box, then into the link.
func (o *outlet) Pass(p *link.Packet) { o.link.throughBoxes(o.now, p, o.index+1) }

// Drop gives up a packet.
func (o *outlet) Drop(p *link.Packet) { o.link.net.pool.Put(p) }

// New returns an empty packet that will take the same way as p.
func (o *outlet) New(p *link.Packet) *link.Packet {
	q := o.link.net.pool.Get()
	q.From, q.To, q.Route, q.Hop, q.Header = p.From, p.To, p.Route, p.Hop, p.Header
	return q
}

// Back sends answer, made with New(p), to the host that p came from, at once; it drops it if there is no route back.
func (o *outlet) Back(p, answer *link.Packet) {
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
	box    middlebox.Box
	dir    middlebox.Direction
	outlet outlet
	timer  *Timer // of a middlebox.Timed
}

// Attach puts a middlebox in front of two links, that of one direction and that of the other; either may be nil. Boxes of a link work in the
// order in which they were attached.
func (n *Network) Attach(b middlebox.Box, forward, reverse *Link) {
	for dir, l := range []*Link{forward, reverse} {
		if l == nil {
			continue
		}
		i := len(l.boxes)
		l.boxes = append(l.boxes, &boxAt{box: b, dir: middlebox.Direction(dir), outlet: outlet{link: l, index: i}})
		if t, ok := b.(middlebox.Timed); ok && dir == int(middlebox.Forward) {
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
		b.timer.Set(b.box.(middlebox.Timed).NextTimeout())
	}
}
