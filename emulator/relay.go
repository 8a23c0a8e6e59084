package emulator

import (
	"net/netip"

	"braid/clock"
	"braid/device"
	"braid/link"
)

// readClients takes what clients send to an entrance and offers it to the uplink.
func (p *Path) readClients(e *entrance) {
	defer p.running.Done()
	var b device.Batch
	for e.dev.Read(&b) == nil {
		p.mu.Lock()
		now := p.now()
		for _, pkt := range b.Packets {
			if f := p.flowOf(e, pkt.From); f != nil {
				p.enqueue(now, Up, f, pkt.Data)
			}
		}
		p.hurry()
		p.mu.Unlock()
	}
}

// flowOf returns the flow of a client, a new one if it has none; nil if there are too many or no socket is to be had. The lock
// is held.
func (p *Path) flowOf(e *entrance, client netip.AddrPort) *flow {
	ends := endpoints{client, e.server}
	if f := p.flows[ends]; f != nil {
		return f
	}
	if len(p.flows) >= maxClients || p.closed {
		p.report.NoFlow++
		return nil
	}
	dev, err := e.dial()
	if err != nil {
		p.report.NoFlow++
		return nil
	}
	f := &flow{client: client, via: e, route: int32(len(p.byRoute)), dev: dev}
	p.flows[ends] = f
	p.byRoute = append(p.byRoute, f)
	p.running.Add(1)
	go p.readServer(f, dev)
	return f
}

// readServer takes what the server sends to one client and offers it to the downlink.
func (p *Path) readServer(f *flow, dev device.Device) {
	defer p.running.Done()
	var b device.Batch
	for dev.Read(&b) == nil {
		p.mu.Lock()
		now := p.now()
		for _, pkt := range b.Packets {
			if pkt.From != f.via.server {
				p.report.Strangers++
				continue
			}
			p.enqueue(now, Down, f, pkt.Data)
		}
		p.hurry()
		p.mu.Unlock()
	}
}

// Bytes of the headers in front of a UDP payload.
const (
	headers4 = 20 + 8
	headers6 = 40 + 8
)

func (p *Path) enqueue(now clock.Time, dir Direction, f *flow, data []byte) {
	pkt := p.pool.Get()
	pkt.Data = append(pkt.Data, data...)
	pkt.Size = len(data) + headers4
	if f.via.server.Addr().Is6() {
		pkt.Size = len(data) + headers6
	}
	pkt.Route = f.route
	p.links[dir].Enqueue(now, pkt)
}

func (p *Path) due() clock.Time { return p.nextOfLinks() }

func (p *Path) send() { p.out.send() }

// take moves what is due into the outbox. The lock is held.
func (p *Path) take(now clock.Time) {
	for dir, l := range p.links {
		for {
			pkt, due, ok := l.Dequeue(now)
			if !ok {
				break
			}
			p.late.Add(now.Sub(due))
			f := p.byRoute[pkt.Route]
			switch {
			case pkt.Corrupted:
				p.report.Corrupted++ // the UDP checksum would not let it through to anyone (RFC 768)
			case Direction(dir) == Up:
				p.out.add(f.dev, f.via.server, pkt)
			default:
				p.out.add(f.via.dev, f.client, pkt)
			}
			p.pool.Put(pkt)
		}
	}
}

// outbox gathers packets that leave together into trains.
type outbox struct {
	buf    []byte
	trains []train
}

type train struct {
	dev        device.Device
	to         netip.AddrPort
	start, end int // of buf
	size       int
	done       bool // a shorter packet has ended it
}

func (o *outbox) add(dev device.Device, to netip.AddrPort, pkt *link.Packet) {
	n := len(pkt.Data)
	if n == 0 {
		return // an empty datagram carries nothing that anyone waits for
	}
	start := len(o.buf)
	o.buf = append(o.buf, pkt.Data...)
	if len(o.trains) > 0 {
		t := &o.trains[len(o.trains)-1]
		if t.dev == dev && t.to == to && !t.done && n <= t.size && t.end+n-t.start <= device.MaxTrain {
			t.end, t.done = t.end+n, n < t.size
			return
		}
	}
	o.trains = append(o.trains, train{dev: dev, to: to, start: start, end: start + n, size: n})
}

// send sends everything. Errors are counted by the devices; a device that is closed belongs to a client that has been rebound, or
// to a Path that ends.
func (o *outbox) send() {
	for _, t := range o.trains {
		_ = t.dev.Write(device.Train{Data: o.buf[t.start:t.end], Size: t.size, To: t.to})
	}
	clear(o.trains)
	o.buf, o.trains = o.buf[:0], o.trains[:0]
}
