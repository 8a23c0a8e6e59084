package host

import (
	"errors"
	"net/netip"
	"slices"

	"braid/clock"
	"braid/device"
	"braid/mptcp"
	"braid/wire"
)

// port is the sending side of a device: packets of one destination and one size gather behind each other in a buffer until they
// leave as one train.
type port struct {
	ids    []mptcp.PathID // of the paths over it
	locals []netip.Addr   // their addresses, in the order of ids

	dev  device.Device
	room int // bytes that the largest packet takes

	buf   []byte
	start int // the train is buf[start:end]
	end   int
	size  int // bytes of its packets, the last one excepted
	to    netip.AddrPort
	done  bool // a shorter packet has ended the train

	large    int            // MTU that the device named when it refused a packet for its size; 0: none that the Stack does not know
	largeFor netip.AddrPort // where that packet went
	err      error          // the device has failed
}

func newPort(dev device.Device, mtu int) *port {
	room := max(mtu, 1500)
	return &port{dev: dev, room: room, buf: make([]byte, device.MaxTrain+room)}
}

// add makes a path one of the device's.
func (p *port) add(id mptcp.PathID, local netip.Addr) {
	p.ids, p.locals = append(p.ids, id), append(p.locals, local.Unmap().WithZone(""))
}

// remove takes a path away.
func (p *port) remove(id mptcp.PathID) {
	if i := slices.Index(p.ids, id); i >= 0 {
		p.ids, p.locals = slices.Delete(p.ids, i, i+1), slices.Delete(p.locals, i, i+1)
	}
}

// pathOf returns the path on which a packet has arrived: over a device of several, the one whose address it was sent to.
func (p *port) pathOf(packet []byte) mptcp.PathID {
	if len(p.ids) == 1 || len(packet) == 0 {
		return p.ids[0]
	}
	var to netip.Addr
	switch {
	case packet[0]>>4 == 4 && len(packet) >= wire.IPv4HeaderLen:
		to = netip.AddrFrom4([4]byte(packet[16:]))
	case packet[0]>>4 == 6 && len(packet) >= wire.IPv6HeaderLen:
		to = netip.AddrFrom16([16]byte(packet[24:]))
	}
	return p.ids[max(0, slices.Index(p.locals, to))]
}

// space is where the next packet can be written, behind the train.
func (p *port) space() []byte {
	if len(p.buf)-p.end < p.room {
		p.flush()
		p.start, p.end = 0, 0
	}
	return p.buf[p.end:]
}

// put takes the packet of n bytes that stands in space.
func (p *port) put(n int, to netip.AddrPort) {
	if p.end > p.start && (p.done || n > p.size || p.end+n-p.start > device.MaxTrain || to != p.to) {
		p.flush()
	}
	if p.end == p.start {
		p.size, p.to, p.done = n, to, false
	}
	p.end += n
	p.done = n < p.size
}

// flush sends the train.
func (p *port) flush() {
	if p.end > p.start && p.err == nil {
		if err := p.dev.Write(device.Train{Data: p.buf[p.start:p.end], Size: p.size, To: p.to}); err != nil {
			p.failed(err)
		}
	}
	p.start = p.end
}

// failed keeps what a device says about a train.
func (p *port) failed(err error) {
	var large *device.TooLargeError
	switch {
	case errors.As(err, &large):
		p.large, p.largeFor = large.MTU, p.to
	case !errors.Is(err, device.ErrTooLarge): // without a size, the loss lowers the subflow's (RFC 8899, Section 4.3)
		p.err = err
	}
}

// reset sends the train and starts again at the front of the buffer, which is still in the cache.
func (p *port) reset() {
	p.flush()
	p.start, p.end = 0, 0
}

// drain sends all that the Stack has to send. A packet is written behind the train of the path that the one before it
// took; if the Stack names another path, it is copied there.
func (e *Engine) drain(now clock.Time) {
	for {
		at := e.guess
		if at == nil {
			if at = e.anyPort(); at == nil {
				return // no path: nothing to send
			}
		}
		buf := at.space()
		pkt, ok := e.stack.PollPacket(now, buf)
		if !ok {
			break
		}
		to := e.ports[pkt.Path]
		if to != at {
			copy(to.space(), buf[:pkt.Len])
			e.guess = to
		}
		to.put(pkt.Len, pkt.To)
	}
	refused := false
	for _, p := range e.ports {
		if p == nil {
			continue
		}
		p.reset()
		if p.large > 0 {
			refused = true
			for _, id := range p.ids {
				e.stack.HandleTooLarge(now, id, p.largeFor, p.large)
			}
			p.large = 0
		}
		if p.err != nil {
			e.lost(now, p, p.err) // drains again: the Stack moves the path's data to others
			return
		}
	}
	if refused {
		e.drain(now) // what was too large goes again in smaller packets
	}
}

func (e *Engine) anyPort() *port {
	for _, p := range e.ports {
		if p != nil {
			e.guess = p
			return p
		}
	}
	return nil
}
