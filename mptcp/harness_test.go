package mptcp

import (
	"bytes"
	"container/heap"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"braid/clock"
	"braid/seq"
	"braid/wire"
)

// world is two Stacks, a client and a server, joined by links in virtual time: packets go in at PollPacket, wait, and come out at
// HandlePacket. Nothing else happens, so that a test reads as what the network did and what came of it.
type world struct {
	t              testing.TB
	now            clock.Time
	client, server *Stack
	links          []*testLink
	queue          flights
	sent           uint64
	buf            [1 << 16]byte
	read           [16 << 10]byte
	events         map[*Conn][]Event
	streams        []*stream
	mesh           bool // several server addresses: a link is one of the client's paths to one of them

	// tap sees every packet before its link does and may keep it (return false) or change it.
	tap func(p *flight) bool
}

// testLink joins a client's path to a server's.
type testLink struct {
	client, server PathID
	clientAddr     netip.AddrPort // UDP: as the server sees the client (a NAT may change it)
	serverAddr     netip.AddrPort
	kind           PathKind

	delay time.Duration
	rate  float64 // bytes/s; 0: any
	limit time.Duration
	loss  float64
	rng   *rand.Rand
	down  bool          // swallows everything
	busy  [2]clock.Time // per direction: when the last packet has left
	count [2]int        // packets that entered, per direction
}

// flight is a packet on its way.
type flight struct {
	at       clock.Time
	n        uint64
	toServer bool
	link     *testLink
	from     netip.AddrPort
	b        []byte
}

type flights []*flight

func (q flights) Len() int { return len(q) }
func (q flights) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].n < q[j].n
}
func (q flights) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *flights) Push(x any)   { *q = append(*q, x.(*flight)) }
func (q *flights) Pop() any {
	old := *q
	x := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return x
}

// entropy is a stream of bits for a Stack, the same in every run.
func entropy(seed uint64) func() uint64 {
	return rand.New(rand.NewPCG(seed, 0x6272616964)).Uint64
}

// newWorld makes two Stacks; the configurations need no Entropy.
func newWorld(t testing.TB, client, server Config) *world {
	if client.Entropy == nil {
		client.Entropy = entropy(1)
	}
	if server.Entropy == nil {
		server.Entropy = entropy(2)
	}
	w := &world{t: t, now: clock.Time(time.Hour), client: NewStack(client), server: NewStack(server), events: map[*Conn][]Event{}}
	return w
}

const serverPort = 443

// link adds an IP path to the client that leads to the server's one address.
func (w *world) link(delay time.Duration) *testLink {
	i := len(w.links)
	l := &testLink{
		kind: IP, delay: delay, rng: rand.New(rand.NewPCG(uint64(i), 7)),
		clientAddr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i), 1}), 0),
		serverAddr: netip.MustParseAddrPort("192.0.2.1:443"),
	}
	l.client = w.client.AddPath(w.now, Path{Name: fmt.Sprintf("c%d", i), Local: l.clientAddr})
	if i == 0 {
		l.server = w.server.AddPath(w.now, Path{Name: "s", Local: l.serverAddr})
	} else {
		l.server = w.links[0].server
	}
	w.links = append(w.links, l)
	return l
}

// linkUDP adds a UDP path to the client that leads to the server's one socket.
func (w *world) linkUDP(delay time.Duration) *testLink {
	i := len(w.links)
	l := &testLink{
		kind: UDP, delay: delay, rng: rand.New(rand.NewPCG(uint64(i), 8)),
		clientAddr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i), 1}), 5000),
		serverAddr: netip.MustParseAddrPort("192.0.2.1:443"),
	}
	l.client = w.client.AddPath(w.now, Path{Name: fmt.Sprintf("c%d", i), Kind: UDP, Local: l.clientAddr})
	if i == 0 {
		l.server = w.server.AddPath(w.now, Path{Name: "s", Kind: UDP, Local: l.serverAddr})
	} else {
		l.server = w.links[0].server
	}
	w.links = append(w.links, l)
	return l
}

// listen makes the server listen.
func (w *world) listen() *Listener {
	l, err := w.server.Listen(w.now, serverPort, netip.Addr{})
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

// dial opens a connection over all paths.
func (w *world) dial() *Conn {
	c, err := w.client.Dial(w.now, Target{Remote: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:443")}})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// connect dials and accepts.
func (w *world) connect(l *Listener) (c, s *Conn) {
	w.t.Helper()
	c = w.dial()
	if !w.until(5*time.Second, func() bool { s, _ = l.Accept(); return s != nil && c.Established() }) {
		w.t.Fatalf("not connected: %v", c.Err())
	}
	return c, s
}

// drain takes all packets that both Stacks want to send, and their events.
func (w *world) drain() {
	for {
		if !w.drainStack(w.client, true) && !w.drainStack(w.server, false) {
			break
		}
	}
	for _, s := range []*Stack{w.client, w.server} {
		for e, ok := s.PollEvent(); ok; e, ok = s.PollEvent() {
			w.events[e.Conn] = append(w.events[e.Conn], e)
		}
	}
}

func (w *world) drainStack(s *Stack, toServer bool) (any bool) {
	for {
		p, ok := s.PollPacket(w.now, w.buf[:])
		if !ok {
			return any
		}
		any = true
		l := w.route(p, toServer)
		if l == nil {
			continue
		}
		f := &flight{toServer: toServer, link: l, b: bytes.Clone(w.buf[:p.Len])}
		f.from = l.serverAddr
		if toServer {
			f.from = l.clientAddr
		}
		if w.tap == nil || w.tap(f) {
			w.send(f)
		}
	}
}

// route finds the link of a packet: by the client's path, or by the client's address.
func (w *world) route(p Packet, toServer bool) *testLink {
	var to netip.Addr
	if w.mesh {
		return w.meshRoute(p, toServer)
	}
	for _, l := range w.links {
		switch {
		case toServer && l.client == p.Path:
			return l
		case toServer:
			continue
		case l.kind == UDP && p.To == l.clientAddr:
			return l
		case l.kind == IP:
			if !to.IsValid() {
				var ip wire.IP
				if err := wire.ParseIP(w.buf[:p.Len], &ip); err != nil {
					w.t.Fatalf("a packet that cannot be: %v", err)
				}
				to = ip.Dst
			}
			if l.clientAddr.Addr() == to {
				return l
			}
		}
	}
	return nil
}

// send puts a packet on its link.
func (w *world) send(f *flight) {
	l, dir := f.link, 0
	if f.toServer {
		dir = 1
	}
	l.count[dir]++
	if l.down || l.loss > 0 && l.rng.Float64() < l.loss {
		return
	}
	leave := w.now
	if l.rate > 0 {
		leave = max(leave, l.busy[dir])
		if l.limit > 0 && leave.Sub(w.now) > l.limit {
			return
		}
		leave = leave.Add(time.Duration(float64(len(f.b)) / l.rate * 1e9))
		l.busy[dir] = leave
	}
	f.at = leave.Add(l.delay)
	w.sent++
	f.n = w.sent
	heap.Push(&w.queue, f)
}

// step goes to the next thing that happens, but not beyond end, and reports whether there was one.
func (w *world) step(end clock.Time) bool {
	w.pump()
	w.drain()
	next := min(w.client.NextTimeout(), w.server.NextTimeout())
	if len(w.queue) > 0 {
		next = min(next, w.queue[0].at)
	}
	if next > end {
		w.now = end
		return false
	}
	w.now = max(w.now, next)
	for len(w.queue) > 0 && w.queue[0].at <= w.now {
		f := heap.Pop(&w.queue).(*flight)
		if f.toServer {
			w.server.HandlePacket(w.now, f.link.server, f.from, f.b)
		} else {
			w.client.HandlePacket(w.now, f.link.client, f.from, f.b)
		}
	}
	w.client.HandleTimeout(w.now)
	w.server.HandleTimeout(w.now)
	return true
}

// run lets time pass.
func (w *world) run(d time.Duration) {
	end := w.now.Add(d)
	for w.step(end) {
	}
	w.pump()
	w.drain()
}

// until runs until cond holds, at most for d.
func (w *world) until(d time.Duration, cond func() bool) bool {
	end := w.now.Add(d)
	for !cond() {
		if !w.step(end) {
			w.drain()
			return cond()
		}
	}
	return true
}

// stream is a transfer: what one end writes and the other reads and checks.
type stream struct {
	from, to *Conn
	total    int // bytes to write; then the writing side closes its direction
	written  int
	read     int
	eof      bool
	fin      bool
	noClose  bool
	err      error
}

// patternPeriod is a prime, so that no shift by a block or a packet goes unnoticed.
const patternPeriod = 65521

// patternTable holds more than one period of what every stream consists of.
var patternTable = func() []byte {
	b := make([]byte, patternPeriod, patternPeriod+16<<10)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return append(b, b[:16<<10]...)
}()

// pattern is the byte at a place of every stream.
func pattern(i int) byte { return patternTable[i%patternPeriod] }

// stream starts a transfer of n bytes.
func (w *world) stream(from, to *Conn, n int) *stream {
	s := &stream{from: from, to: to, total: n}
	w.streams = append(w.streams, s)
	return s
}

// transfer runs a transfer to its end.
func (w *world) transfer(from, to *Conn, n int, limit time.Duration) *stream {
	w.t.Helper()
	s := w.stream(from, to, n)
	if !w.until(limit, func() bool { return s.eof }) {
		w.t.Fatalf("%d of %d bytes written, %d read after %v (%v, %v)", s.written, n, s.read, limit, from.Err(), to.Err())
	}
	return s
}

// pump lets applications write and read what they can.
func (w *world) pump() {
	for _, s := range w.streams {
		s.pump(w)
	}
}

func (s *stream) pump(w *world) {
	for s.written < s.total && s.from.Writable() {
		n := min(16<<10, s.total-s.written)
		n, err := s.from.Write(w.now, patternTable[s.written%patternPeriod:][:n])
		s.written += n
		if err != nil {
			if !errors.Is(err, ErrWouldBlock) {
				s.err = err
			}
			break
		}
	}
	if s.written == s.total && !s.fin && !s.noClose {
		s.fin = true
		s.from.CloseWrite(w.now)
	}
	for s.to != nil && !s.eof && s.to.Readable() {
		n, err := s.to.Read(w.now, w.read[:])
		if want := patternTable[s.read%patternPeriod:][:n]; !bytes.Equal(w.read[:n], want) {
			for i := range want {
				if w.read[i] != want[i] {
					w.t.Fatalf("byte %d of the stream is %#x, not %#x", s.read+i, w.read[i], want[i])
				}
			}
		}
		s.read += n
		if err != nil {
			if err == io.EOF {
				s.eof = true
				if s.read < s.total {
					w.t.Errorf("the stream ends after %d of %d bytes", s.read, s.total)
				}
			} else if !errors.Is(err, ErrWouldBlock) {
				s.err = err
			}
			break
		}
	}
}

// segment parses the TCP segment of a packet on its way.
func (f *flight) segment(t testing.TB) wire.Segment {
	t.Helper()
	var seg wire.Segment
	if err := wire.ParseTCP(f.tcp(t), &seg); err != nil {
		t.Fatal(err)
	}
	return seg
}

// tcp returns the bytes of the TCP segment; nil for a datagram without one.
func (f *flight) tcp(t testing.TB) []byte {
	t.Helper()
	if f.link.kind == UDP {
		shim, rest, err := wire.ParseShim(f.b)
		if err != nil {
			t.Fatal(err)
		}
		if shim.Type != wire.ShimSegment {
			return nil
		}
		return rest
	}
	var ip wire.IP
	if err := wire.ParseIP(f.b, &ip); err != nil {
		t.Fatal(err)
	}
	return ip.Payload
}

// rewrite changes the segment of an IP packet on its way, as a middlebox does.
func (f *flight) rewrite(t testing.TB, change func(*wire.Segment)) {
	t.Helper()
	var ip wire.IP
	if err := wire.ParseIP(f.b, &ip); err != nil {
		t.Fatal(err)
	}
	seg := f.segment(t)
	payload := bytes.Clone(seg.Payload)
	seg.Payload = nil
	change(&seg)
	head := wire.AppendTCPHeader(nil, &seg)
	wire.SetTCPChecksum(head, len(payload), wire.PseudoSum(ip.Src, ip.Dst, wire.ProtoTCP), wire.Sum(0).Add(payload))
	b := wire.AppendIPHeader(nil, &ip, len(head)+len(payload))
	f.b = append(append(b, head...), payload...)
}

// inject gives a Stack a segment as if it had come over link l. Ports and addresses are the link's unless the segment says otherwise.
func (w *world) inject(l *testLink, toServer bool, seg wire.Segment) {
	src, dst := l.clientAddr.Addr(), l.serverAddr.Addr()
	if !toServer {
		src, dst = dst, src
	}
	payload := seg.Payload
	ip := wire.IP{Src: src, Dst: dst, Proto: wire.ProtoTCP}
	head := wire.AppendTCPHeader(nil, &seg)
	wire.SetTCPChecksum(head, len(payload), wire.PseudoSum(src, dst, wire.ProtoTCP), wire.Sum(0).Add(payload))
	b := append(append(wire.AppendIPHeader(nil, &ip, len(head)+len(payload)), head...), payload...)
	if toServer {
		w.server.HandlePacket(w.now, l.server, netip.AddrPort{}, b)
	} else {
		w.client.HandlePacket(w.now, l.client, netip.AddrPort{}, b)
	}
}

// collect takes the segments that a Stack sends now instead of letting them go.
func (w *world) collect(fromClient bool) []wire.Segment {
	w.t.Helper()
	s := w.server
	if fromClient {
		s = w.client
	}
	var list []wire.Segment
	for {
		p, ok := s.PollPacket(w.now, w.buf[:])
		if !ok {
			return list
		}
		f := flight{b: bytes.Clone(w.buf[:p.Len]), link: w.links[0]}
		list = append(list, f.segment(w.t))
	}
}

// wantEmpty checks that a Stack keeps nothing.
func wantEmpty(t testing.TB, name string, s *Stack) {
	t.Helper()
	if n := len(s.conns) + len(s.tokens) + len(s.tuples) + len(s.tags) + len(s.halves) + len(s.halfTags) + s.remnants.n + s.tasks + s.joining; n != 0 {
		t.Errorf("%s keeps %d conns, %d tokens, %d tuples, %d tags, %d+%d half-open, %d remnants, %d tasks, %d joining", name, len(s.conns), len(s.tokens),
			len(s.tuples), len(s.tags), len(s.halves), len(s.halfTags), s.remnants.n, s.tasks, s.joining)
	}
	if m := s.Memory(); m != 0 {
		t.Errorf("%s keeps %d bytes of payload memory (received %d)", name, m, s.pool.InUse())
	}
	if at := s.NextTimeout(); at != clock.Never {
		t.Errorf("%s has a timer", name)
	}
}

// next returns the sequence number behind a segment.
func next(seg *wire.Segment) seq.Number { return seg.Seq.Add(int64(seg.Len())) }
