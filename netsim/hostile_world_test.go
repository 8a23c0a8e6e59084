package netsim

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"braid/clock"
	"braid/internal/hostile"
	"braid/link"
	"braid/mptcp"
	"braid/wire"
)

// hostilePlan is what a seed of TestHostile draws.
type hostilePlan struct {
	seed          uint64
	udp, v6       bool
	links         []link.Spec // of each path, both ways
	checksums     bool
	backlog       int
	bytes         int64 // of the connection that lives through all of it, each way
	sacrifices    int   // connections that may be lost
	rate          int   // forged packets a millisecond
	altered       float64
	weights       [int(hostile.Altered)]float64 // of the kinds that must be survived
	late          []float64                     // when further clients connect, seconds
	receiveBuffer int64
}

const lateBytes = 50_000 // that a late client exchanges

// drawHostile draws a seed's plan.
func drawHostile(seed uint64) *hostilePlan {
	r := link.Stream(seed, "hostile")
	p := &hostilePlan{seed: seed, udp: chance(r, 0.4), v6: chance(r, 0.3), checksums: chance(r, 0.3), sacrifices: 1 + r.IntN(3)}
	p.backlog = []int{16, 64, 128}[r.IntN(3)]
	p.receiveBuffer = []int64{64 << 10, 128 << 10, 256 << 10}[r.IntN(3)]
	total := 0.0
	for range 1 + r.IntN(3) {
		s := link.Spec{RateMbps: within(r, 4, 40), DelayMs: within(r, 0.5, 30)}
		if chance(r, 0.3) {
			s.Loss = 0.01 * r.Float64()
		}
		total += s.RateMbps
		p.links = append(p.links, s)
	}
	p.bytes = int64(within(r, 0.3, 1) * min(total, 30) * 1e6 / 8)
	p.rate = int(within(r, 5, 40))
	p.altered = 0.2 + 0.3*r.Float64()
	for k := range p.weights {
		p.weights[k] = r.Float64()
		if chance(r, 0.1) {
			p.weights[k] *= 5
		}
	}
	if p.udp { // no cookies: a flood of more than a backlog in a round trip locks others out (docs/encapsulation.md), so there is room for this one
		p.backlog = 4096
	}
	for range 2 {
		p.late = append(p.late, r.Float64()*float64(hostilePerSeed)/float64(p.rate)/1000)
	}
	return p
}

func (p *hostilePlan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "udp %v, IPv6 %v, checksums %v, backlog %d, receive buffer %d, %d bytes each way, %d sacrifices, %d forged packets a ms, %.2f of them altered, late %.3f\n",
		p.udp, p.v6, p.checksums, p.backlog, p.receiveBuffer, p.bytes, p.sacrifices, p.rate, p.altered, p.late)
	for _, l := range p.links {
		fmt.Fprintf(&b, "  %s\n", describeLink(l))
	}
	return b.String()
}

// The ports of the server: of the connection that lives through all of it and, behind it, of late clients; and of connections that may be lost.
const (
	steadyPort    = 5001
	sacrificePort = 6001
)

// hostileWorld is a client, a server and attackers.
type hostileWorld struct {
	plan    *hostilePlan
	net     *Network
	hosts   [2]*Host
	stacks  [2]*mptcp.Stack
	pairs   []*hostilePair
	seen    [2]*hostile.Attacker // of steady connections, of sacrifices; nil: no attack
	rng     *rand.Rand
	left    int // packets to forge
	byKind  map[hostile.Kind]int64
	lost    int
	live    int // sacrifices
	retired bool
	most    hostileLoad
	wrong   error
	sum     float64
	log     func(format string, args ...any) // prints every packet; nil: nobody wants to know
}

// hostilePair is a connection that must survive.
type hostilePair struct {
	port  uint16
	begun clock.Time
	ended clock.Time // when both ends had everything; Never: not yet
	size  int64
	ends  [2]*hostileEnd
}

// hostileEnd is an application at one end of a connection: it writes the pattern and checks what comes.
type hostileEnd struct {
	w    *hostileWorld
	side int
	pair *hostilePair // nil: a sacrifice's
	conn *mptcp.Conn
	out  source
	in   sink
	over bool
}

// tappedStack lets attackers see what a host gets.
type tappedStack struct {
	*mptcp.Stack
	w    *hostileWorld
	side int
}

// HandlePacket lets the attackers see and handles.
func (s *tappedStack) HandlePacket(now clock.Time, path mptcp.PathID, from netip.AddrPort, b []byte) {
	if s.w.seen[0] != nil {
		a := s.w.seen[0]
		if s.w.sacrificed(b) {
			a = s.w.seen[1]
		}
		a.See(hostile.Packet{To: s.side<<8 | int(path), From: from, Data: b})
	}
	s.w.print(now, s.side, "<", b)
	s.Stack.HandlePacket(now, path, from, b)
}

// PollPacket prints if that is asked for.
func (s *tappedStack) PollPacket(now clock.Time, buf []byte) (mptcp.Packet, bool) {
	p, ok := s.Stack.PollPacket(now, buf)
	if ok {
		s.w.print(now, s.side, ">", buf[:p.Len])
	}
	return p, ok
}

// print tells of a packet that a host gets (<), that is forged for it (*) or that it sends (>).
func (w *hostileWorld) print(now clock.Time, side int, what string, b []byte) {
	if w.log == nil {
		return
	}
	format := wire.FormatPacket
	if w.plan.udp {
		format = wire.FormatDatagram
	}
	w.log("%.6f %s %s %s", float64(now)/1e9, []string{"client", "server"}[side], what, format(b))
}

// sacrificed reports whether a packet is of a connection that may be lost.
func (w *hostileWorld) sacrificed(b []byte) bool {
	t := 40
	switch {
	case w.plan.udp:
		if t = 8 + int(b[2]); b[1]&0x80 != 0 {
			t += 4
		}
	case b[0]>>4 == 4:
		t = 20
	}
	if len(b) < t+4 {
		return false
	}
	for _, at := range []int{t, t + 2} {
		if port := uint16(b[at])<<8 | uint16(b[at+1]); port == sacrificePort {
			return true
		}
	}
	return false
}

func newHostileWorld(p *hostilePlan, attack bool) *hostileWorld {
	w := &hostileWorld{plan: p, net: New(p.seed), byKind: map[hostile.Kind]int64{}}
	w.rng = w.net.Stream("attack")
	for side := range w.hosts {
		name := []string{"client", "server"}[side]
		w.stacks[side] = mptcp.NewStack(mptcp.Config{
			Entropy: w.net.Stream("entropy of " + name).Uint64, ReceiveBuffer: p.receiveBuffer, InitialReceive: 64 << 10, SendBuffer: 256 << 10,
			Checksums: p.checksums, Backlog: p.backlog,
		})
		w.hosts[side] = w.net.AddHost(name, &tappedStack{w.stacks[side], w, side}, hostileApp{w, side})
	}
	for i, spec := range p.links {
		w.addPath(i, spec)
	}
	ports := []uint16{steadyPort, sacrificePort}
	w.join(steadyPort, 0, p.bytes)
	for i, at := range p.late {
		ports = append(ports, steadyPort+1+uint16(i))
		w.join(steadyPort+1+uint16(i), seconds(at), lateBytes)
	}
	w.listen(sacrificePort)
	for range p.sacrifices {
		w.net.At(0, w.sacrifice)
	}
	if attack {
		w.left = hostilePerSeed
		for i := range w.seen {
			w.seen[i] = hostile.New(w.rng, p.udp)
			w.seen[i].Ports = ports
			w.seen[i].Dials = func(to int) bool { return to>>8 == 0 }
			for k := range p.weights {
				w.sum += p.weights[k] / 2
			}
		}
		w.net.At(0, w.attack)
	}
	return w
}

func (w *hostileWorld) address(path, side int) netip.Addr {
	if w.plan.v6 {
		return netip.MustParseAddr(fmt.Sprintf("2001:db8:%x::%x", path, side+1))
	}
	return netip.AddrFrom4([4]byte{10, 0, byte(path), byte(side + 1)})
}

// addPath joins the client's path i and the server's only one.
func (w *hostileWorld) addPath(i int, spec link.Spec) {
	kind, port := mptcp.IP, uint16(0)
	if w.plan.udp {
		kind, port = mptcp.UDP, steadyPort
	}
	server := w.address(0, 1)
	if i == 0 {
		w.hosts[1].AddPath(mptcp.Path{Name: "server", Kind: kind, Local: netip.AddrPortFrom(server, port)})
	}
	p := mptcp.Path{Name: fmt.Sprintf("path %d", i), Kind: kind, Local: netip.AddrPortFrom(w.address(i, 0), port)}
	if w.plan.udp {
		p.Remote = netip.AddrPortFrom(server, port)
	}
	w.hosts[0].AddPath(p)
	var both [2]*Link
	for dir, name := range []string{"there", "back"} {
		l, err := w.net.AddLink(fmt.Sprintf("path %d %s", i, name), spec)
		if err != nil {
			panic(err)
		}
		both[dir] = l
	}
	w.net.Connect(w.hosts[0], mptcp.PathID(i), server, w.hosts[1], 0, both[0])
	w.net.Connect(w.hosts[1], 0, w.address(i, 0), w.hosts[0], mptcp.PathID(i), both[1])
}

func (w *hostileWorld) listen(port uint16) {
	if _, err := w.stacks[1].Listen(0, port, netip.Addr{}); err != nil {
		panic(err)
	}
}

// join has a client connect that must come to its end.
func (w *hostileWorld) join(port uint16, at clock.Time, size int64) {
	w.listen(port)
	p := &hostilePair{port: port, begun: at, ended: clock.Never, size: size}
	w.pairs = append(w.pairs, p)
	w.net.At(at, func(now clock.Time) { p.ends[0] = w.dial(now, port, p) })
}

// dial opens a connection of the client's.
func (w *hostileWorld) dial(now clock.Time, port uint16, p *hostilePair) *hostileEnd {
	c, err := w.stacks[0].Dial(now, mptcp.Target{Remote: []netip.AddrPort{netip.AddrPortFrom(w.address(0, 1), port)}})
	if err != nil {
		w.fail("dial: %v", err)
		return nil
	}
	w.hosts[0].Touch()
	return w.newEnd(0, c, p)
}

// sacrifice opens a connection that may be lost.
func (w *hostileWorld) sacrifice(now clock.Time) {
	if !w.retired {
		w.dial(now, sacrificePort, nil)
	}
}

func (w *hostileWorld) newEnd(side int, c *mptcp.Conn, p *hostilePair) *hostileEnd {
	e := &hostileEnd{w: w, side: side, conn: c, pair: p}
	e.out, e.in = source{conn: c, limit: 300_000, finish: true}, sink{conn: c, buf: make([]byte, 32<<10)}
	if p != nil {
		e.out.limit = p.size
	} else {
		w.live++
	}
	c.User = e
	return e
}

func (w *hostileWorld) fail(format string, args ...any) {
	if w.wrong == nil {
		w.wrong = fmt.Errorf("%v: "+format, append([]any{w.net.Now()}, args...)...)
	}
}

// hostileApp hands a host's events to the ends.
type hostileApp struct {
	w    *hostileWorld
	side int
}

// HandleEvent implements App.
func (a hostileApp) HandleEvent(now clock.Time, ev mptcp.Event) {
	if ev.Kind == mptcp.EventAccept {
		for c, ok := ev.Listener.Accept(); ok; c, ok = ev.Listener.Accept() {
			a.w.accepted(now, ev.Listener.Addr().Port(), c)
		}
		return
	}
	if e, _ := ev.Conn.User.(*hostileEnd); e != nil {
		e.handle(now, ev)
	}
}

// accepted takes a connection of the server's.
func (w *hostileWorld) accepted(now clock.Time, port uint16, c *mptcp.Conn) {
	for _, p := range w.pairs {
		if p.port != port {
			continue
		}
		if p.ends[1] != nil {
			if w.stacks[1].Counters().CookiesReturned == 0 { // a cookie is good for a minute, for him too who saw the whole handshake
				w.fail("a second connection to port %d from %v", port, c.RemoteAddr())
			}
			c.Abort(now)
			return
		}
		p.ends[1] = w.newEnd(1, c, p)
		p.ends[1].progress(now)
		return
	}
	w.newEnd(1, c, nil).progress(now)
}

func (e *hostileEnd) handle(now clock.Time, ev mptcp.Event) {
	switch ev.Kind {
	case mptcp.EventConnected, mptcp.EventReadable, mptcp.EventWritable:
		e.progress(now)
	case mptcp.EventClosed:
		e.progress(now)
		e.over = true
		e.conn.Close(now)
		if e.pair != nil {
			if ev.Err != nil {
				e.w.fail("connection to port %d: %v ended with %v", e.pair.port, []string{"client", "server"}[e.side], ev.Err)
			}
			return
		}
		e.w.live--
		if ev.Err != nil {
			e.w.lost++
		}
		if e.side == 0 && !e.w.retired {
			e.w.net.At(now.Add(20*time.Millisecond), e.w.sacrifice)
		}
	}
}

// progress writes, reads, and closes at the end.
func (e *hostileEnd) progress(now clock.Time) {
	if e.over {
		return
	}
	e.out.push(now)
	e.in.pull(now)
	p := e.pair
	if p != nil && e.in.wrong != 0 {
		e.w.fail("connection to port %d: byte %d is wrong", p.port, e.in.wrong-1)
	}
	if !e.in.eof {
		return
	}
	if p != nil {
		if e.in.got != p.size {
			e.w.fail("connection to port %d: %d bytes, want %d", p.port, e.in.got, p.size)
		}
		if other := p.ends[1-e.side]; other != nil && other.in.eof && p.ended == clock.Never {
			p.ended = now
		}
	}
	if e.out.ended {
		e.conn.Close(now)
	}
}

// attack forges a millisecond's packets.
func (w *hostileWorld) attack(now clock.Time) {
	for range min(w.plan.rate, w.left) {
		a, k := w.seen[w.rng.IntN(2)], w.draw()
		if chance(w.rng, w.plan.altered) {
			a, k = w.seen[1], hostile.Altered
		}
		a.Window = uint32(w.plan.receiveBuffer)
		p, ok := a.Forge(k)
		if !ok {
			continue
		}
		w.left--
		w.byKind[k]++
		side := p.To >> 8
		w.print(now, side, "* "+k.String(), p.Data)
		w.stacks[side].HandlePacket(now, mptcp.PathID(p.To&0xff), p.From, p.Data)
		w.hosts[side].Touch()
		if chance(w.rng, 0.3) {
			w.net.pump()
		}
	}
	w.check()
	if w.left > 0 {
		w.net.At(now.Add(time.Millisecond), w.attack)
	}
}

// draw draws a kind that must be survived.
func (w *hostileWorld) draw() hostile.Kind {
	x := w.rng.Float64() * w.sum
	for k, weight := range w.plan.weights {
		if x -= weight; x < 0 {
			return hostile.Kind(k)
		}
	}
	return hostile.Replay
}

// check looks whether what the hosts keep is bounded.
func (w *hostileWorld) check() {
	for side, s := range w.stacks {
		t, m := s.Tables(), s.Memory()
		name := w.hosts[side].Name()
		w.most.halfOpen, w.most.conns = max(w.most.halfOpen, t.HalfOpen), max(w.most.conns, t.Conns)
		w.most.remnants, w.most.memory = max(w.most.remnants, t.Remnants), max(w.most.memory, m)
		// Half-open connections by listener, joins by connection; on UDP paths each stands in two tables.
		lists := len(w.pairs) + 1 + t.Conns
		if limit := 2 * w.plan.backlog * lists; t.HalfOpen > limit {
			w.fail("%s: %d half-open, limit %d", name, t.HalfOpen, limit)
		}
		if limit := len(w.pairs) + w.plan.sacrifices + w.live + w.plan.backlog; t.Conns > limit {
			w.fail("%s: %d connections, limit %d", name, t.Conns, limit)
		}
		if limit := int64(t.Conns+1) * (w.plan.receiveBuffer + 2*256<<10); m > limit {
			w.fail("%s: %d bytes of memory in %d connections, limit %d", name, m, t.Conns, limit)
		}
	}
}

const (
	hostileLimit = 10 * time.Minute // of virtual time within which everything must be over
	hostileRest  = 10 * time.Minute // and then gone
)

// run lets it happen and judges.
func (w *hostileWorld) run() error {
	over := func() bool {
		for _, p := range w.pairs {
			if p.ended == clock.Never {
				return false
			}
		}
		return w.left == 0
	}
	if !w.runUntil(over, clock.Time(hostileLimit)) && w.wrong == nil {
		w.fail("hangs")
	}
	w.retired = true
	for _, s := range w.stacks {
		var all []*mptcp.Conn
		s.Conns(func(c *mptcp.Conn) bool { all = append(all, c); return true })
		for _, c := range all {
			if e, _ := c.User.(*hostileEnd); e != nil && e.pair == nil {
				c.Abort(w.net.Now())
			}
		}
	}
	for side := range w.hosts {
		w.hosts[side].Touch()
	}
	gone := func() bool {
		for _, s := range w.stacks {
			if s.Tables() != (mptcp.Tables{}) || s.Memory() != 0 {
				return false
			}
		}
		return w.net.Outstanding() == 0
	}
	if !w.runUntil(gone, w.net.Now().Add(hostileRest)) && w.wrong == nil {
		w.fail("left behind: %+v %+v", w.stacks[0].Tables(), w.stacks[1].Tables())
	}
	return w.wrong
}

func (w *hostileWorld) runUntil(done func() bool, limit clock.Time) bool {
	for !done() {
		if w.wrong != nil || w.net.Now() >= limit {
			return false
		}
		w.net.Run(w.net.Now().Add(50 * time.Millisecond))
	}
	return true
}

func (w *hostileWorld) result() *hostileResult {
	r := &hostileResult{byKind: w.byKind, lost: w.lost, most: w.most}
	for _, p := range w.pairs {
		r.took = append(r.took, p.ended.Sub(p.begun))
	}
	for _, n := range w.byKind {
		r.forged += n
	}
	return r
}

// describe tells how it ended.
func (w *hostileWorld) describe() string {
	var b strings.Builder
	for _, p := range w.pairs {
		fmt.Fprintf(&b, "port %d, %d bytes: begun %v ended %v\n", p.port, p.size, p.begun, p.ended)
		for side, e := range p.ends {
			if e == nil {
				fmt.Fprintf(&b, "  %d: none\n", side)
				continue
			}
			i := e.conn.Info(w.net.Now())
			for _, s := range i.Subflows {
				fmt.Fprintf(&b, "    %+v\n", s)
			}
			i.Subflows = nil
			fmt.Fprintf(&b, "  %d: sent %d got %d eof %v over %v: %+v\n", side, e.out.sent, e.in.got, e.in.eof, e.over, i)
		}
	}
	for side, s := range w.stacks {
		fmt.Fprintf(&b, "%s: %+v\n", w.hosts[side].Name(), *s.Counters())
	}
	fmt.Fprintf(&b, "%v %+v\n", w.byKind, w.net.Counts())
	return zeros.ReplaceAllString(b.String(), "")
}

// replayHostile runs one seed and tells.
func replayHostile(t *testing.T, seed uint64) {
	plan := drawHostile(seed)
	t.Log(plan)
	calm := newHostileWorld(plan, false)
	if err := calm.run(); err != nil {
		t.Error("without attack: ", err)
	}
	w := newHostileWorld(plan, true)
	if *hostilePackets {
		w.log = t.Logf
	}
	if *hostilePcap != "" {
		f, err := os.Create(*hostilePcap)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		w.net.Capture(f)
	}
	err := w.run()
	if err2 := w.net.StopCapture(); err2 != nil {
		t.Error(err2)
	}
	r := w.result()
	if err == nil {
		err = r.compare(calm.result())
	}
	if err != nil {
		t.Error(err)
	}
	t.Logf("took %v, without attack %v\n%s", r.took, calm.result().took, w.describe())
}
