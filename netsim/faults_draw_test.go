package netsim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"braid/congestion"
	"braid/link"
	"braid/schedule"
)

// trouble is everything that a seed of TestFaults draws.
type trouble struct {
	seed       uint64
	udp, v6    bool
	star       bool // the server has one address that all paths lead to; otherwise one at the end of each
	paths      []troublePath
	announced  bool // the client knows one of several addresses and is told the others (ADD_ADDR); each is reached over one path only
	survivor   int  // the path that is alive in the end, whatever becomes of the others
	boxes      []troubleBox
	hosts      [2]troubleHost // client, server
	conns      []troubleConn
	removePath int // path that vanishes from a host; -1: none
	removeHost int
	removeAtS  float64
}

// troublePath is a path and what the links of its two directions do.
type troublePath struct {
	links [2]link.Spec // to the server, to the client
	mtu   int          // that the hosts know
	back  bool         // it is a backup path
	dead  bool         // it dies for good
}

// troubleHost is how a host is configured.
type troubleHost struct {
	congestion, scheduler      string
	checksums, plain, noDelay  bool
	noJoin                     bool // flag C: no joins to the address that was dialled
	backlog, subflows          int  // limits; 0: the default
	send, receive, stackMemory int64
	fixedWindow                bool
}

// troubleConn is a connection and what the applications at its ends do with it.
type troubleConn struct {
	startS float64
	ends   [2]troubleEnd // client, server
}

// troubleEnd is what an application does with its end.
type troubleEnd struct {
	send     int64         // bytes
	after    int64         // every piece of `piece` bytes is sent when `after` more bytes have come; 0: it waits for nothing
	piece    int64         //
	afterEOF bool          // it sends when the peer's stream has ended
	write    int           // bytes a Write
	pause    time.Duration // between two Writes
	readRate float64       // bytes a second; 0: as fast as they come
	read     int           // room of a Read
	hasty    bool          // Close as soon as everything is written, if nothing is to come
	abortAtS float64       // after the connection is there; <0: never
	closeAt  int64         // Close when so much was read, whatever else is to come; <0: never
	stopRead int64         // read so much and no more, and Close a little later: with data unread; <0: never
}

// drawTrouble draws a seed's trouble. Each aspect has a stream of its own: a change of one does not change the others.
func drawTrouble(seed uint64) *trouble {
	t := &trouble{seed: seed, removePath: -1}
	r := link.Stream(seed, "faults: topology")
	t.udp, t.v6, t.star = chance(r, 0.4), chance(r, 0.3), chance(r, 0.4)
	n := 1 + r.IntN(4)
	t.survivor = r.IntN(n)
	for i := range n {
		t.paths = append(t.paths, drawPath(link.Stream(seed, fmt.Sprintf("faults: path %d", i)), i == t.survivor, t.v6))
	}
	t.drawHosts(link.Stream(seed, "faults: hosts"))
	t.drawBoxes(link.Stream(seed, "faults: boxes"))
	t.drawConns(link.Stream(seed, "faults: connections"))
	t.keepLengths()
	t.star = t.star || !t.udp && len(t.conns) > 1 // the port names the connection, and Path.Remote would name one port
	r = link.Stream(seed, "faults: addresses")
	t.announced = !t.star && n > 1 && len(t.conns) == 1 && chance(r, 0.3)
	r = link.Stream(seed, "faults: interfaces")
	if n > 1 && chance(r, 0.08) {
		t.removePath, t.removeHost, t.removeAtS = (t.survivor+1+r.IntN(n-1))%n, r.IntN(2), within(r, 0.1, 10)
		if t.star {
			t.removeHost = 0
		}
	}
	return t
}

// chance is true with probability p.
func chance(r *rand.Rand, p float64) bool { return r.Float64() < p }

// within draws between two bounds, every order of magnitude as often.
func within(r *rand.Rand, low, high float64) float64 {
	return low * math.Exp(r.Float64()*math.Log(high/low))
}

// drawPath draws a path. survivor: it must not die for good.
func drawPath(r *rand.Rand, survivor, v6 bool) troublePath {
	p := troublePath{mtu: 1500}
	rate, delay := within(r, 0.1, 500), within(r, 0.1, 400)
	for dir := range p.links {
		l := &p.links[dir]
		l.RateMbps, l.DelayMs = rate, delay
		if chance(r, 0.2) {
			l.RateMbps, l.DelayMs = within(r, 0.1, 500), within(r, 0.1, 400)
		}
		drawDamage(r, l)
		switch {
		case chance(r, 0.2):
			l.QueuePackets = 2 + r.IntN(20)
		case chance(r, 0.2):
			l.QueueBDP = within(r, 0.5, 8)
		}
	}
	least := 700
	if v6 {
		least = 1280
	}
	switch r.IntN(12) {
	case 0: // a black hole
		p.links[r.IntN(2)].MTU = least + r.IntN(1500-least)
	case 1:
		p.mtu = least + r.IntN(1500-least)
	case 2:
		p.mtu = 9000
	}
	p.back = chance(r, 0.1)
	p.drawSchedule(r, survivor)
	return p
}

// drawDamage draws what a link does to packets.
func drawDamage(r *rand.Rand, l *link.Spec) {
	switch {
	case chance(r, 0.4):
		l.Loss = r.Float64() * 0.05
	case chance(r, 0.2):
		l.Loss = r.Float64() * 0.2
	case chance(r, 0.1):
		l.GilbertElliott = &link.GilbertElliott{PGoodBad: within(r, 0.001, 0.03), PBadGood: within(r, 0.1, 0.5), LossBad: 0.3 + 0.6*r.Float64()}
	}
	if chance(r, 0.2) {
		l.JitterMs, l.InOrder = min(2*l.DelayMs*r.Float64(), 100), chance(r, 0.5)
	}
	if chance(r, 0.2) {
		l.Reorder = &link.Reorder{Probability: r.Float64() * 0.2, DelayMs: min(4*l.DelayMs*r.Float64(), 300)}
	}
	if chance(r, 0.15) {
		l.Duplicate = r.Float64() * 0.2
	}
	if chance(r, 0.15) {
		l.Corrupt = r.Float64() * 0.05
	}
}

// drawSchedule draws what changes with time: outages, of one direction or both, and other rates and delays.
func (p *troublePath) drawSchedule(r *rand.Rand, survivor bool) {
	at := 0.0
	if chance(r, 0.3) {
		dirs := []int{1, 2, 3, 3, 3}[r.IntN(5)]
		for range 1 + r.IntN(3) {
			at += within(r, 0.02, 10)
			length := within(r, 0.05, 20)
			for dir := range p.links {
				if dirs&(1<<dir) != 0 {
					p.links[dir].Changes = append(p.links[dir].Changes, link.Change{AtS: at, Down: ptr(true)}, link.Change{AtS: at + length, Down: ptr(false)})
				}
			}
			at += length
		}
	}
	if !survivor && chance(r, 0.15) {
		p.dead = true
		at += within(r, 0.02, 10)
		for dir := range p.links {
			p.links[dir].Changes = append(p.links[dir].Changes, link.Change{AtS: at, Down: ptr(true)})
		}
		return
	}
	for dir := range p.links {
		l := &p.links[dir]
		if chance(r, 0.15) {
			at += within(r, 0.1, 5)
			c := link.Change{AtS: at, OverS: r.Float64() * 3, RateMbps: ptr(max(0.1, l.RateMbps*within(r, 0.2, 3)))}
			if chance(r, 0.5) {
				c.DelayMs = ptr(min(400, l.DelayMs*within(r, 0.2, 5)))
			}
			l.Changes = append(l.Changes, c)
		}
	}
}

func ptr[T any](v T) *T { return &v }

// drawHosts draws the hosts' configurations.
func (t *trouble) drawHosts(r *rand.Rand) {
	plain := r.IntN(20)
	for i := range t.hosts {
		h := &t.hosts[i]
		h.congestion = congestion.Names()[r.IntN(len(congestion.Names()))]
		h.scheduler = schedule.Names()[r.IntN(len(schedule.Names()))]
		h.checksums, h.noDelay = chance(r, 0.3), chance(r, 0.3)
		h.plain = plain == i || plain == 2
		h.send = []int64{0, 0, 0, 1 << 20, 64 << 10, 10_000, 2_000}[r.IntN(7)]
		h.receive = []int64{0, 0, 0, 0, 1 << 20, 256 << 10, 64 << 10, 16 << 10, 4_000, 1_000}[r.IntN(10)]
		h.fixedWindow = h.receive > 0 && chance(r, 0.5)
		h.stackMemory = []int64{0, 0, 0, 0, 4 << 20, 1 << 20}[r.IntN(6)]
		h.noJoin = chance(r, 0.05)
		if chance(r, 0.1) {
			h.backlog = 1 + r.IntN(3)
		}
		if chance(r, 0.1) {
			h.subflows = 4
		}
	}
}

// budget is how many bytes a direction may carry so that a seed stays small: a few seconds of the surviving path, and so many windows.
func (t *trouble) budget(r *rand.Rand, from, conns int) int64 {
	l := &t.paths[t.survivor].links[from]
	most := min(1.5e6/float64(conns), within(r, 0.05, 10)*l.RateMbps*1e6/8)
	if w := t.hosts[1-from].receive; w > 0 {
		most = min(most, 60*float64(w))
	}
	if w := t.hosts[from].send; w > 0 {
		most = min(most, 60*float64(w))
	}
	for _, b := range t.boxes {
		if b.kind == "clamp" {
			most = min(most, 60*float64(b.size))
		}
	}
	return 1 + int64(within(r, 0.2, 1)*most)
}

// drawConns draws connections and what is done with them.
func (t *trouble) drawConns(r *rand.Rand) {
	n := []int{1, 1, 1, 2, 3}[r.IntN(5)]
	many := chance(r, 0.1)
	if many {
		n = 4 + r.IntN(7)
	}
	for range n {
		c := troubleConn{startS: r.Float64() * 2}
		for i := range c.ends {
			c.ends[i] = troubleEnd{
				write: int(within(r, 1, 64<<10)), read: int(within(r, 100, 64<<10)), abortAtS: -1, closeAt: -1, stopRead: -1,
				piece: math.MaxInt64,
			}
		}
		up, down := t.budget(r, 0, n), t.budget(r, 1, n)
		if many {
			up, down = min(up, 4096), min(down, 4096)
		}
		c.drawUse(r, up, down)
		c.drawManners(r)
		t.conns = append(t.conns, c)
	}
}

// keepLengths makes middleboxes that write into streams leave their lengths as they are if somebody waits for a number of bytes.
func (t *trouble) keepLengths() {
	for _, c := range t.conns {
		if c.ends[0].after == 0 {
			continue
		}
		for i := range t.boxes {
			if t.boxes[i].kind == "replace" {
				t.boxes[i].share = float64(t.boxes[i].size)
			}
		}
	}
}

// drawUse draws who sends how much, and when.
func (c *troubleConn) drawUse(r *rand.Rand, up, down int64) {
	client, server := &c.ends[0], &c.ends[1]
	switch r.IntN(12) {
	case 0, 1, 2:
		client.send = up
		server.hasty, client.hasty = chance(r, 0.3), chance(r, 0.3)
	case 3, 4:
		server.send = down
		server.hasty, client.hasty = chance(r, 0.3), chance(r, 0.3)
	case 5, 6:
		client.send, server.send = up, down
	case 7, 8: // requests and responses
		rounds := int64(1 + r.IntN(20))
		client.piece, server.piece = up/rounds/8+1, down/rounds+1
		client.send, server.send = client.piece*rounds, server.piece*rounds
		client.after, server.after = server.piece, client.piece
	case 9, 10: // half closed, one way or the other
		client.send, server.send = up, down
		c.ends[r.IntN(2)].afterEOF = true
	case 11: // nothing at all
	}
}

// drawManners draws slowness and bad manners.
func (c *troubleConn) drawManners(r *rand.Rand) {
	for i := range c.ends {
		e, peer := &c.ends[i], &c.ends[1-i]
		e.write = max(e.write, int(e.send/500)+1)
		if chance(r, 0.15) {
			e.pause = time.Duration(within(r, 1e6, 3e9))
			e.write = max(e.write, int(e.send/(1+int64(20e9)/int64(e.pause)))+1)
		}
		if chance(r, 0.15) && peer.send > 0 {
			e.readRate = float64(peer.send) / within(r, 0.1, 20)
		}
		switch r.IntN(16) {
		case 0:
			e.abortAtS = within(r, 0.001, 5)
		case 1:
			if peer.send > 1 {
				e.closeAt = 1 + r.Int64N(peer.send)
			}
		case 2:
			if peer.send > 1 {
				e.stopRead = r.Int64N(peer.send)
			}
		}
	}
}

// rude reports whether an application ends the connection other than in order.
func (e *troubleEnd) rude() bool { return e.abortAtS >= 0 || e.closeAt >= 0 || e.stopRead >= 0 }

// String lists what was drawn.
func (t *trouble) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "udp %v, IPv6 %v, one server address %v, others announced %v, path %d survives\n", t.udp, t.v6, t.star, t.announced, t.survivor)
	for i, p := range t.paths {
		fmt.Fprintf(&b, "path %d: MTU %d, dies %v, backup %v\n", i, p.mtu, p.dead, p.back)
		for dir, l := range p.links {
			fmt.Fprintf(&b, "  %s: %s\n", []string{"there", "back"}[dir], describeLink(l))
		}
	}
	for _, x := range t.boxes {
		fmt.Fprintf(&b, "%v\n", x)
	}
	for i, h := range t.hosts {
		fmt.Fprintf(&b, "%s: %+v\n", []string{"client", "server"}[i], h)
	}
	for i, c := range t.conns {
		fmt.Fprintf(&b, "connection %d at %.3f s\n  client %+v\n  server %+v\n", i, c.startS, c.ends[0], c.ends[1])
	}
	if t.removePath >= 0 {
		fmt.Fprintf(&b, "path %d vanishes from host %d at %.3f s\n", t.removePath, t.removeHost, t.removeAtS)
	}
	return b.String()
}

func describeLink(l link.Spec) string {
	s := fmt.Sprintf("%.3g Mbit/s %.3g ms, loss %.2g, jitter %.3g ms (in order %v), duplicate %.2g, corrupt %.2g, MTU %d, queue %d packets %.2g BDP",
		l.RateMbps, l.DelayMs, l.Loss, l.JitterMs, l.InOrder, l.Duplicate, l.Corrupt, l.MTU, l.QueuePackets, l.QueueBDP)
	if l.GilbertElliott != nil {
		s += fmt.Sprintf(", bursts of loss %+v", *l.GilbertElliott)
	}
	if l.Reorder != nil {
		s += fmt.Sprintf(", reorder %+v", *l.Reorder)
	}
	for _, c := range l.Changes {
		switch {
		case c.Down != nil:
			s += fmt.Sprintf("; at %.3f s down %v", c.AtS, *c.Down)
		case c.DelayMs != nil:
			s += fmt.Sprintf("; at %.3f s over %.3g s to %.3g Mbit/s %.3g ms", c.AtS, c.OverS, *c.RateMbps, *c.DelayMs)
		default:
			s += fmt.Sprintf("; at %.3f s over %.3g s to %.3g Mbit/s", c.AtS, c.OverS, *c.RateMbps)
		}
	}
	return s
}
