package host

import (
	"errors"
	"net/netip"

	"braid/clock"
	"braid/device"
	"braid/mptcp"
)

// port is the sending side of a path: packets of one destination and one size gather behind each other in a buffer until they
// leave as one train.
type port struct {
	id   mptcp.PathID
	dev  device.Device
	room int // bytes that the largest packet takes

	buf   []byte
	start int // the train is buf[start:end]
	end   int
	size  int // bytes of its packets, the last one excepted
	to    netip.AddrPort
	done  bool  // a shorter packet has ended the train
	err   error // the device has failed
}

func newPort(id mptcp.PathID, dev device.Device, mtu int) *port {
	room := max(mtu, 1500)
	return &port{id: id, dev: dev, room: room, buf: make([]byte, device.MaxTrain+room)}
}

// space is where the next packet can be written, behind the train.
func (p *port) space() []byte {
	if len(p.buf)-p.end < p.room {
		p.flush()
		p.start, p.end = 0, 0
	}
	return p.buf[p.end:]
}

// add takes the packet of n bytes that stands in space.
func (p *port) add(n int, to netip.AddrPort) {
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
		err := p.dev.Write(device.Train{Data: p.buf[p.start:p.end], Size: p.size, To: p.to})
		// ErrTooLarge is counted by the device, and the loss is what lowers the subflow's packet size (RFC 8899, Section 4.3).
		if err != nil && !errors.Is(err, device.ErrTooLarge) {
			p.err = err
		}
	}
	p.start = p.end
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
		to.add(pkt.Len, pkt.To)
	}
	for _, p := range e.ports {
		if p == nil {
			continue
		}
		p.reset()
		if p.err != nil {
			e.lost(now, p, p.err) // drains again: the Stack moves the path's data to others
			return
		}
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
