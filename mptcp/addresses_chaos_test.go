package mptcp

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"braid/wire"
)

// Addresses of both hosts come and go, are announced, removed, refused and lied about, at random, with losses, while both ends transfer: the streams
// arrive whole, what is kept of addresses stays within its bounds, and nothing stays behind.
func TestAddressUpheaval(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 8
	}
	for seed := range seeds {
		if newAddressUpheaval(t, seed).run(); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// addressUpheaval is one run.
type addressUpheaval struct {
	*world
	rng  *rand.Rand
	g    terrain
	c, s *Conn
}

func newAddressUpheaval(t *testing.T, seed uint64) *addressUpheaval {
	u := &addressUpheaval{rng: rand.New(rand.NewPCG(seed, 5))}
	u.g = terrain{kind: PathKind(seed % 2), v6: seed%4 >= 2, clients: make([]Path, 1+u.rng.IntN(3)), servers: make([]Path, 1+u.rng.IntN(3))}
	config := func() Config {
		return Config{
			CloseTimeout: time.Hour, UserTimeout: time.Hour, // what a lie cost is given back in the end, see restore
			Checksums: u.rng.IntN(4) == 0, NoJoinInitial: u.rng.IntN(5) == 0, NoAnnounce: u.rng.IntN(5) == 0,
			Limits: Limits{Subflows: u.rng.IntN(6), AddAddrAccepted: u.rng.IntN(6)},
		}
	}
	u.world = newMesh(t, u.g, config(), config())
	for _, l := range u.links {
		l.delay = time.Duration(5+u.rng.IntN(60)) * time.Millisecond
		l.rate, l.limit, l.loss = 1e5*float64(1+u.rng.IntN(5)), 200*time.Millisecond, float64(u.rng.IntN(3))/100
	}
	return u
}

func (u *addressUpheaval) run() {
	t := u.t
	u.c, u.s = u.connectMesh(300 * time.Millisecond)
	up, down := u.stream(u.c, u.s, 1<<20+u.rng.IntN(1<<20)), u.stream(u.s, u.c, 1<<20+u.rng.IntN(1<<20))
	done := func() bool { return up.eof && down.eof }
	for range 60 {
		if u.until(time.Duration(20+u.rng.IntN(800))*time.Millisecond, done) {
			break
		}
		if u.c.hs.confirmed && u.s.hs.confirmed && (!up.fin || !down.fin) {
			u.upset()
		}
		u.checkBounds(u.c)
		u.checkBounds(u.s)
	}
	u.restore()
	if !u.until(3*time.Minute, done) {
		t.Errorf("up %d of %d, down %d of %d, %v, %v\n%s%s", up.read, up.total, down.read, down.total, u.c.Err(), u.s.Err(), dump(u.world, u.c), dump(u.world, u.s))
		return
	}
	u.c.Close(u.now)
	u.s.Close(u.now)
	u.world.run(3 * time.Hour)
	if u.c.Err() != nil || u.s.Err() != nil {
		t.Errorf("%v, %v", u.c.Err(), u.s.Err())
	}
	wantEmpty(t, "client", u.client)
	wantEmpty(t, "server", u.server)
}

// checkBounds: RFC 8684, Section 5 (ADD-14, SEC-07).
func (u *addressUpheaval) checkBounds(c *Conn) {
	pm, cfg := &c.pm, &c.stack.cfg
	paths := 0
	for _, p := range c.stack.paths {
		if !p.removed {
			paths++
		}
	}
	if len(pm.known) > cfg.Limits.accepted(c.client) || len(pm.echoes) > maxEchoes || len(pm.removing) > maxRemovals || len(pm.ours.list) > paths ||
		len(pm.ids.held) > paths || len(pm.entries) > paths*(1+maxAccepted) || len(c.subflows) > 2*cfg.MaxSubflows { // silent ones may be replaced before they are given up
		u.t.Errorf("client %t: %d known, %d echoes, %d removals, %d announced, %d IDs, %d entries, %d subflows, %d paths", c.client,
			len(pm.known), len(pm.echoes), len(pm.removing), len(pm.ours.list), len(pm.ids.held), len(pm.entries), len(c.subflows), paths)
	}
}

// upset does one thing to an address, a path or a subflow.
func (u *addressUpheaval) upset() {
	l := u.links[u.rng.IntN(len(u.links))]
	c := u.c
	if u.rng.IntN(2) == 0 {
		c = u.s
	}
	switch u.rng.IntN(8) {
	case 0:
		l.down = !l.down
	case 1:
		u.bounce(c, l)
	case 2:
		if n := len(c.subflows); n > 0 {
			c.stack.drop(u.now, c.subflows[u.rng.IntN(n)], wire.ResetPerformance, u.rng.IntN(2) == 0)
		}
	case 3:
		live := l.client
		if c == u.s {
			live = l.server
		}
		c.stack.SetPathFlags(u.now, live, EndpointFlags(u.rng.IntN(16)))
	default:
		u.tell(c)
	}
}

// bounce takes an address away and brings it back after a while.
func (u *addressUpheaval) bounce(c *Conn, l *testLink) {
	id, local := l.client, l.clientAddr
	if !c.client {
		id, local = l.server, l.serverAddr
	}
	c.stack.RemovePath(u.now, id)
	u.until(time.Duration(u.rng.IntN(3000))*time.Millisecond, func() bool { return false })
	fresh := c.stack.AddPath(u.now, Path{Kind: l.kind, Local: local, Flags: EndpointFlags(u.rng.IntN(16) & u.rng.IntN(16))})
	for _, other := range u.links {
		if c.client && other.client == id {
			other.client = fresh
		} else if !c.client && other.server == id {
			other.server = fresh
		}
	}
}

// tell says something about addresses that may or may not be true.
func (u *addressUpheaval) tell(c *Conn) {
	if len(c.subflows) == 0 {
		return
	}
	sf := c.subflows[u.rng.IntN(len(c.subflows))]
	if sf.state != active || u.g.kind == UDP || u.livePaths(sf) == nil {
		return // inject knows IP packets only
	}
	addr := u.g.serverAddress(u.rng.IntN(4)).Addr()
	if c.client {
		addr = u.g.clientAddress(u.rng.IntN(4)).Addr()
	}
	if u.rng.IntN(4) == 0 {
		addr = netip.AddrFrom4([4]byte{byte(u.rng.Uint32()), 1, 1, byte(u.rng.Uint32())})
	}
	switch id := uint8(u.rng.IntN(6)); u.rng.IntN(3) {
	case 0:
		u.say(sf, removeAddr(id, uint8(u.rng.IntN(6))))
	default:
		genuine := c.addAddr(id, addr.String(), uint16(u.rng.IntN(3)*443))
		u.say(sf, func(seg *wire.Segment) {
			genuine(seg)
			switch u.rng.IntN(4) {
			case 0:
				seg.AddAddr.MAC[0] ^= byte(u.rng.Uint32())
			case 1:
				seg.AddAddr.Echo, seg.AddAddr.MAC = true, [8]byte{}
			}
		})
	}
}

// livePaths returns the link of a subflow, nil if it goes to an address that nothing leads to.
func (u *addressUpheaval) livePaths(sf *Subflow) *testLink {
	for _, l := range u.links {
		if sf.conn.client && l.client == sf.path && l.serverAddr.Addr() == sf.remote.Addr() ||
			!sf.conn.client && l.server == sf.path && l.clientAddr.Addr() == sf.remote.Addr() {
			return l
		}
	}
	return nil
}

// restore lets every packet through again, lifts what the configurations forbid, and lets the client open subflows over all its paths.
func (u *addressUpheaval) restore() {
	for _, l := range u.links {
		l.down = false
	}
	if u.c.state != connOpen || u.s.state != connOpen {
		return
	}
	for _, c := range []*Conn{u.c, u.s} {
		c.stack.cfg.Limits.AddAddrAccepted = 10
		c.hs.peerNoJoin = false
		c.stack.cfg.NoJoinInitial = false
	}
	for _, p := range u.client.paths {
		if !p.removed {
			u.client.SetPathFlags(u.now, p.id, EndpointSubflow)
		}
	}
}
