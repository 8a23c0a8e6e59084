package netsim

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"braid/clock"
	"braid/link"
	"braid/mptcp"
)

// Network is hosts and links in one virtual time. It is not safe for concurrent use.
type Network struct {
	seed   uint64
	now    clock.Time
	agenda agenda
	pool   *link.Pool
	links  []*Link
	hosts  []*Host
	routes []route
	dirty  []*Host // hosts that got something and are to be pumped
	busy   int     // acts since time last moved

	capture *capture // nil: off
	counts  Counts
}

// Counts is what happened in a Network outside its links.
type Counts struct {
	Packets    int64 `json:"packets"`    // packets that hosts sent
	Events     int64 `json:"events"`     // how often something acted
	Unroutable int64 `json:"unroutable"` // packets for addresses that nobody has, or that no chain of links leads to
	BadUDP     int64 `json:"bad_udp"`    // corrupted datagrams that the receiver's UDP checksum found
}

// packetRoom is the room for a packet's bytes; paths with a larger MTU make it grow.
const packetRoom = 1536

// livelock is how many acts without time moving are a mistake of ours.
const livelock = 200_000

// New returns an empty Network whose random streams come from seed.
func New(seed uint64) *Network { return &Network{seed: seed, pool: link.NewPool(packetRoom)} }

// Now is the present virtual time.
func (n *Network) Now() clock.Time { return n.now }

// Counts returns what happened so far.
func (n *Network) Counts() Counts { return n.counts }

// Stream returns the random stream of a name (link.Stream under the Network's seed).
func (n *Network) Stream(name string) *rand.Rand { return link.Stream(n.seed, name) }

// Outstanding is how many packets are on their way.
func (n *Network) Outstanding() int {
	held := 0
	for _, h := range n.hosts {
		if h.spare != nil {
			held++
		}
	}
	return n.pool.Outstanding() - held
}

// Run lets everything happen up to and including the given time.
func (n *Network) Run(until clock.Time) {
	for _, h := range n.hosts { // what applications did since the last Run
		n.touch(h)
	}
	n.pump()
	for {
		next := n.agenda.next()
		if next > until || next == clock.Never {
			break
		}
		n.step(next)
	}
	if until != clock.Never {
		n.now = max(n.now, until)
	}
}

// step lets the next actor act.
func (n *Network) step(at clock.Time) {
	if at > n.now {
		n.now, n.busy = at, 0
	}
	if n.busy++; n.busy > livelock {
		panic(fmt.Sprintf("netsim: %d events at %v: something does not let time move", livelock, n.now))
	}
	n.counts.Events++
	n.agenda.take().act(n.now)
	n.pump()
}

// pump lets the hosts that got something react.
func (n *Network) pump() {
	for i := 0; i < len(n.dirty); i++ {
		h := n.dirty[i]
		h.dirty = false
		h.pump(n.now)
	}
	n.dirty = n.dirty[:0]
}

// touch has h pumped before anything else acts.
func (n *Network) touch(h *Host) {
	if !h.dirty {
		h.dirty = true
		n.dirty = append(n.dirty, h)
	}
}

// Timer calls a function at a time.
type Timer struct {
	net *Network
	id  int32
	f   func(now clock.Time)
}

// NewTimer returns a Timer that is off. f may set it again.
func (n *Network) NewTimer(f func(now clock.Time)) *Timer {
	t := &Timer{net: n, f: f}
	t.id = n.agenda.add(t)
	return t
}

// Set makes the Timer go off at a time, not before now, instead of when it was to; clock.Never turns it off.
func (t *Timer) Set(at clock.Time) { t.net.agenda.plan(t.id, max(at, t.net.now)) }

// Stop ends the Timer's use.
func (t *Timer) Stop() { t.net.agenda.remove(t.id) }

func (t *Timer) act(now clock.Time) { t.f(now) }

// At calls f once, at a time.
func (n *Network) At(at clock.Time, f func(now clock.Time)) {
	var t *Timer
	t = n.NewTimer(func(now clock.Time) {
		t.Stop()
		f(now)
	})
	t.Set(at)
}

// Every calls f at first and then every period.
func (n *Network) Every(first clock.Time, period time.Duration, f func(now clock.Time)) {
	var t *Timer
	t = n.NewTimer(func(now clock.Time) {
		t.Set(now.Add(period))
		f(now)
	})
	t.Set(first)
}

// Link is a link.Link in a Network, with the middleboxes in front of it.
type Link struct {
	*link.Link
	net   *Network
	id    int32
	boxes []*boxAt
}

// AddLink adds a link. Names must differ: random streams are named from them.
func (n *Network) AddLink(name string, spec link.Spec) (*Link, error) {
	for _, l := range n.links {
		if l.Name() == name {
			return nil, fmt.Errorf("two links have the name %q", name)
		}
	}
	inner, err := link.New(name, spec, n.seed, n.pool)
	if err != nil {
		return nil, err
	}
	l := &Link{Link: inner, net: n}
	l.id = n.agenda.add(l)
	n.links = append(n.links, l)
	return l, nil
}

// Apply changes the link from now on (link.Link.Apply).
func (l *Link) Apply(c link.Change) error {
	err := l.Link.Apply(l.net.now, c)
	l.net.agenda.plan(l.id, l.NextEvent())
	return err
}

// act delivers what has arrived at the link's far end.
func (l *Link) act(now clock.Time) {
	for {
		p, _, ok := l.Dequeue(now)
		if !ok {
			break
		}
		if l.net.capture != nil {
			l.net.capture.delivered(now, l, p)
		}
		l.net.onward(now, p)
	}
	l.net.agenda.plan(l.id, l.NextEvent())
}

// enter brings a packet to the link's near end, where middleboxes see it first.
func (l *Link) enter(now clock.Time, p *link.Packet) {
	if len(l.boxes) > 0 {
		l.throughBoxes(now, p, 0)
		return
	}
	l.offer(now, p)
}

// offer puts a packet into the link's queue.
func (l *Link) offer(now clock.Time, p *link.Packet) {
	if l.net.capture != nil {
		l.net.capture.offered(now, l, p)
	}
	l.Enqueue(now, p)
	l.net.agenda.plan(l.id, l.NextEvent())
}

// route is how packets get from one host's path to an address.
type route struct {
	links []*Link
	host  *Host
	path  mptcp.PathID
}

// onward moves a packet to the next link of its route, or to its host.
func (n *Network) onward(now clock.Time, p *link.Packet) {
	r := &n.routes[p.Route]
	if int(p.Hop) < len(r.links) {
		l := r.links[p.Hop]
		p.Hop++
		l.enter(now, p)
		return
	}
	r.host.receive(now, r.path, p)
}

// Connect makes packets that leave by a path for an address run through links, in order, to another host's path. to must be an address that
// the far path has, or that a middlebox on the way turns into one.
func (n *Network) Connect(from *Host, path mptcp.PathID, to netip.Addr, far *Host, farPath mptcp.PathID, links ...*Link) {
	n.routes = append(n.routes, route{links, far, farPath})
	from.paths[path].routes = append(from.paths[path].routes, destination{to, int32(len(n.routes) - 1)})
}
