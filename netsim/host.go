package netsim

import (
	"fmt"
	"net/netip"

	"braid/clock"
	"braid/link"
	"braid/mptcp"
	"braid/wire"
)

// Stack is what runs on a Host; *mptcp.Stack is one (see the contract in its package).
type Stack interface {
	AddPath(now clock.Time, p mptcp.Path) mptcp.PathID
	RemovePath(now clock.Time, id mptcp.PathID)
	HandlePacket(now clock.Time, path mptcp.PathID, from netip.AddrPort, b []byte)
	HandleTimeout(now clock.Time)
	PollPacket(now clock.Time, buf []byte) (mptcp.Packet, bool)
	NextTimeout() clock.Time
	PollEvent() (mptcp.Event, bool)
}

// App is the application on a Host: it gets the Stack's events and calls the connections in return.
type App interface {
	HandleEvent(now clock.Time, e mptcp.Event)
}

// Host is a Stack in a Network, with the application that uses it.
type Host struct {
	net   *Network
	name  string
	id    int32
	stack Stack
	app   App
	paths []hostPath
	spare *link.Packet // for the next PollPacket
	dirty bool

	arrival func(now clock.Time, path mptcp.PathID, payload int) // called behind HandlePacket; nil: not
}

// hostPath is what a Host keeps of a path of its Stack.
type hostPath struct {
	kind      mptcp.PathKind
	local     netip.AddrPort
	routes    []destination
	last      destination // the route used last
	delivered PathCount
}

// destination says which route leads to an address.
type destination struct {
	to    netip.Addr
	route int32
}

// PathCount is what a host path received from the network.
type PathCount struct {
	Packets int64 `json:"packets"`
	Bytes   int64 `json:"bytes"`   // on the medium
	Payload int64 `json:"payload"` // TCP payload, copies included
}

// AddHost adds a host. app may be nil.
func (n *Network) AddHost(name string, s Stack, app App) *Host {
	h := &Host{net: n, name: name, stack: s, app: app}
	h.id = n.agenda.add(h)
	n.hosts = append(n.hosts, h)
	return h
}

// Name is the host's name.
func (h *Host) Name() string { return h.name }

// Stack is what runs on the host.
func (h *Host) Stack() Stack { return h.stack }

// AddPath adds a path to the host's Stack. Packets for addresses that no Connect names are counted and dropped.
func (h *Host) AddPath(p mptcp.Path) mptcp.PathID {
	id := h.stack.AddPath(h.net.now, p)
	if int(id) != len(h.paths) {
		panic(fmt.Sprintf("netsim: path %q of host %q has number %d, want %d", p.Name, h.name, id, len(h.paths)))
	}
	h.paths = append(h.paths, hostPath{kind: p.Kind, local: p.Local, last: destination{route: -1}})
	h.net.pool.Grow(p.MTU)
	h.net.touch(h)
	return id
}

// RemovePath takes a path away, as if its interface had vanished.
func (h *Host) RemovePath(id mptcp.PathID) {
	h.stack.RemovePath(h.net.now, id)
	h.Touch()
}

// Delivered is what arrived over a path so far.
func (h *Host) Delivered(id mptcp.PathID) PathCount { return h.paths[id].delivered }

// Touch lets the Stack send what an application call outside HandleEvent made it want to send. Call it after such calls.
func (h *Host) Touch() { h.net.touch(h) }

func (h *Host) act(now clock.Time) {
	h.stack.HandleTimeout(now)
	h.net.touch(h)
}

// receive gives a packet that came over the network to the Stack.
func (h *Host) receive(now clock.Time, path mptcp.PathID, p *link.Packet) {
	hp := &h.paths[path]
	if p.Corrupted && hp.kind == mptcp.UDP { // the checksum around the datagram catches it (see link.Spec.Corrupt)
		h.net.counts.BadUDP++
		h.net.pool.Put(p)
		return
	}
	hp.delivered.Packets++
	hp.delivered.Bytes += int64(p.Size)
	n := payloadLen(hp.kind, p.Data)
	hp.delivered.Payload += int64(n)
	h.stack.HandlePacket(now, path, p.From, p.Data)
	if h.arrival != nil {
		h.arrival(now, path, n)
	}
	h.net.pool.Put(p)
	h.net.touch(h)
}

// pump drains the Stack: events to the application, packets to the network.
func (h *Host) pump(now clock.Time) {
	for again := true; again; {
		again = false
		for {
			e, ok := h.stack.PollEvent()
			if !ok {
				break
			}
			if h.app != nil {
				h.app.HandleEvent(now, e)
			}
		}
		for h.poll(now) {
			again = true // packets leaving may have ended connections
		}
	}
	h.net.agenda.plan(h.id, max(now, h.stack.NextTimeout()))
}

// poll sends one packet; false: there is none.
func (h *Host) poll(now clock.Time) bool {
	p := h.spare
	if p == nil {
		p = h.net.pool.Get()
	}
	out, ok := h.stack.PollPacket(now, p.Data[:cap(p.Data)])
	if !ok {
		h.spare = p
		return false
	}
	h.spare = nil
	p.Data = p.Data[:out.Len]
	h.send(now, out, p)
	return true
}

// send starts a packet on its way.
func (h *Host) send(now clock.Time, out mptcp.Packet, p *link.Packet) {
	h.net.counts.Packets++
	hp := &h.paths[out.Path]
	var to netip.Addr
	if hp.kind == mptcp.UDP {
		to = out.To.Addr()
		p.From, p.To = hp.local, out.To
		p.Size = len(p.Data) + datagramOverhead(to)
	} else {
		to = ipDestination(p.Data)
		p.Size, p.Header = len(p.Data), ipHeaderLen(p.Data)
	}
	r := hp.route(to)
	if r < 0 {
		h.net.counts.Unroutable++
		h.net.pool.Put(p)
		return
	}
	p.Route = r
	h.net.onward(now, p)
}

// route finds the route to an address; -1: there is none.
func (hp *hostPath) route(to netip.Addr) int32 {
	if hp.last.route >= 0 && hp.last.to == to {
		return hp.last.route
	}
	for _, d := range hp.routes {
		if d.to == to {
			hp.last = d
			return d.route
		}
	}
	return -1
}

// datagramOverhead is the size of the IP and UDP headers around a datagram.
func datagramOverhead(to netip.Addr) int {
	if to.Is4() {
		return 28
	}
	return 48
}

// ipDestination reads the destination of an IP packet that a Stack made.
func ipDestination(b []byte) netip.Addr {
	if b[0]>>4 == 4 {
		return netip.AddrFrom4([4]byte(b[16:20]))
	}
	return netip.AddrFrom16([16]byte(b[24:40]))
}

func ipHeaderLen(b []byte) int {
	if b[0]>>4 == 4 {
		return int(b[0]&15) * 4
	}
	return 40
}

// payloadLen is how much TCP payload a packet carries; 0 if it is none that can be read.
func payloadLen(kind mptcp.PathKind, b []byte) int {
	n := 0
	if kind == mptcp.UDP {
		s, rest, err := wire.ParseShim(b)
		if err != nil || s.Type != wire.ShimSegment {
			return 0
		}
		b = rest
	} else {
		if proto := b[9]; b[0]>>4 == 4 && proto != wire.ProtoTCP || b[0]>>4 == 6 && b[6] != wire.ProtoTCP {
			return 0
		}
		n = ipHeaderLen(b)
	}
	if len(b) < n+20 {
		return 0
	}
	return max(0, len(b)-n-int(b[n+12]>>4)*4)
}

// ipSource reads the source of an IP packet that a Stack made.
func ipSource(b []byte) netip.Addr {
	if b[0]>>4 == 4 {
		return netip.AddrFrom4([4]byte(b[12:16]))
	}
	return netip.AddrFrom16([16]byte(b[8:24]))
}
