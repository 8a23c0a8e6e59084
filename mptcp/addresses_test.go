package mptcp

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"braid/clock"
	"braid/wire"
)

// terrain describes hosts with several addresses each, every one of which reaches every one of the other host.
type terrain struct {
	kind    PathKind
	v6      bool
	clients []Path // Local is filled in
	servers []Path
	ports   []uint16 // UDP: of the servers' sockets; nil: all 443
}

// clientAddress and serverAddress are the addresses of a terrain.
func (g *terrain) clientAddress(i int) netip.AddrPort {
	port := uint16(0)
	if g.kind == UDP {
		port = 5000
	}
	if g.v6 {
		return netip.AddrPortFrom(netip.MustParseAddr(fmt.Sprintf("2001:db8:c%d::1", i)), port)
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i), 1}), port)
}

func (g *terrain) serverAddress(i int) netip.AddrPort {
	port := uint16(serverPort)
	if g.ports != nil {
		port = g.ports[i]
	}
	if g.v6 {
		return netip.AddrPortFrom(netip.MustParseAddr(fmt.Sprintf("2001:db8:5%d::1", i)), port)
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, byte(2 + i), 1}), port)
}

// newMesh makes two Stacks with the paths of a terrain. The link of client path i and server path j is w.links[i*servers+j].
func newMesh(t testing.TB, g terrain, client, server Config) *world {
	w := newWorld(t, client, server)
	w.mesh = true
	for j, p := range g.servers {
		p.Kind, p.Local = g.kind, g.serverAddress(j)
		w.server.AddPath(w.now, p)
	}
	for i, p := range g.clients {
		p.Kind, p.Local = g.kind, g.clientAddress(i)
		id := w.client.AddPath(w.now, p)
		for j := range g.servers {
			w.links = append(w.links, &testLink{
				kind: g.kind, delay: 10 * time.Millisecond, rng: rand.New(rand.NewPCG(uint64(len(w.links)), 9)),
				client: id, server: PathID(j), clientAddr: p.Local, serverAddr: g.serverAddress(j),
			})
		}
	}
	return w
}

// meshRoute finds the link of a packet by path and destination.
func (w *world) meshRoute(p Packet, toServer bool) *testLink {
	to := p.To.Addr()
	if !to.IsValid() {
		var ip wire.IP
		if err := wire.ParseIP(w.buf[:p.Len], &ip); err != nil {
			w.t.Fatalf("a packet that cannot be: %v", err)
		}
		to = ip.Dst
	}
	for _, l := range w.links {
		if toServer && l.client == p.Path && l.serverAddr.Addr() == to || !toServer && l.server == p.Path && l.clientAddr.Addr() == to {
			return l
		}
	}
	return nil
}

// dialMesh dials the first of the server's addresses.
func (w *world) dialMesh() *Conn {
	c, err := w.client.Dial(w.now, Target{Remote: []netip.AddrPort{w.links[0].serverAddr}})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// connectMesh connects to the first of the server's addresses over the first of the client's paths, lets the client say a word, and lets some
// time pass.
func (w *world) connectMesh(d time.Duration) (c, s *Conn) {
	w.t.Helper()
	l := w.listen()
	c = w.dialMesh()
	if !w.until(5*time.Second, func() bool { s, _ = l.Accept(); return s != nil && c.Established() }) {
		w.t.Fatalf("not connected: %v", c.Err())
	}
	c.Write(w.now, []byte("x"))
	w.run(d)
	s.Read(w.now, w.read[:])
	return c, s
}

// say gives the peer of sf a bare segment as if sf had sent it, in order, with what change makes of it.
func (w *world) say(sf *Subflow, change func(*wire.Segment)) {
	w.t.Helper()
	seg := wire.Segment{
		SrcPort: sf.srcPort, DstPort: sf.dstPort, Flags: wire.ACK, Window: 1000,
		Seq: sf.tcp.Number(sf.tcp.SentOffset()), Ack: sf.tcp.PeerNumber(sf.tcp.ReceivedOffset()),
	}
	change(&seg)
	for _, l := range w.links {
		if toServer := sf.conn.client; toServer && l.client == sf.path && l.serverAddr.Addr() == sf.remote.Addr() ||
			!toServer && l.server == sf.path && l.clientAddr.Addr() == sf.remote.Addr() {
			w.inject(l, toServer, seg)
			return
		}
	}
	w.t.Fatal("no such link")
}

// addAddr is a genuine ADD_ADDR of c's.
func (c *Conn) addAddr(id uint8, addr string, port uint16) func(*wire.Segment) {
	a := wire.AddAddr{ID: id, Addr: netip.MustParseAddr(addr), Port: port}
	a.MAC = wire.AddAddrMAC(c.hs.localKey, c.hs.peerKey, id, a.Addr, port)
	return func(seg *wire.Segment) {
		seg.Options |= wire.OptAddAddr
		seg.AddAddr = a
	}
}

// removeAddr is a REMOVE_ADDR.
func removeAddr(ids ...uint8) func(*wire.Segment) {
	return func(seg *wire.Segment) {
		seg.Options |= wire.OptRemoveAddr
		seg.RemoveAddr.Count = copy(seg.RemoveAddr.IDs[:], ids)
	}
}

// seenSegment is a segment that crossed a link.
type seenSegment struct {
	at       clock.Time
	toServer bool
	link     *testLink
	wire.Segment
}

// watchFor collects the segments with one of the given options, and those that keep refuses do not arrive.
func (w *world) watchFor(opts wire.Option, keep func(n int, f *flight, seg *wire.Segment) bool) *[]seenSegment {
	seen := &[]seenSegment{}
	w.tap = func(f *flight) bool {
		if f.link.kind == UDP && f.tcp(w.t) == nil {
			return true
		}
		seg := f.segment(w.t)
		if seg.Options&opts == 0 {
			return true
		}
		*seen = append(*seen, seenSegment{w.now, f.toServer, f.link, seg})
		return keep == nil || keep(len(*seen), f, &seg)
	}
	return seen
}

// pairs lists which client path and server address have a subflow that may carry data, as "0-0 1-0".
func (w *world) pairs(c *Conn) string {
	var all []string
	for _, sf := range c.subflows {
		if sf.state != active {
			continue
		}
		for i, l := range w.links {
			servers := len(w.server.paths)
			if c.client && l.client == sf.path && l.serverAddr.Addr() == sf.remote.Addr() ||
				!c.client && l.server == sf.path && l.clientAddr.Addr() == sf.remote.Addr() {
				all = append(all, fmt.Sprintf("%d-%d", i/servers, i%servers))
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// Two paths of the server have one address: it is announced once. When the path that was announced is removed, the other one stands in for it, under its own ID
// (RFC 8684, Section 3.4).
func TestSharedAddressIsAnnouncedOnce(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(10 * time.Millisecond)
	shared := netip.MustParseAddrPort("192.0.2.2:0")
	first := w.server.AddPath(w.now, Path{Name: "s1", Local: shared})
	w.server.AddPath(w.now, Path{Name: "s2", Local: shared})
	var told []string
	w.tap = func(f *flight) bool {
		switch seg := f.segment(t); {
		case !f.toServer && seg.Has(wire.OptAddAddr):
			told = append(told, fmt.Sprintf("+%d %v", seg.AddAddr.ID, seg.AddAddr.Addr))
		case !f.toServer && seg.Has(wire.OptRemoveAddr):
			told = append(told, fmt.Sprintf("-%d", seg.RemoveAddr.IDs[0]))
		}
		return true
	}
	c, _ := w.connect(w.listen())
	c.Write(w.now, []byte("hello"))
	w.run(5 * time.Second)
	if want := []string{"+1 192.0.2.2"}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
	told = nil
	w.server.RemovePath(w.now, first)
	w.run(5 * time.Second)
	if want := []string{"-1", "+2 192.0.2.2"}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}
