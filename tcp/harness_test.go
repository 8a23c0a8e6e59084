package tcp

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"braid/buffer"
	"braid/clock"
	"braid/congestion"
	"braid/seq"
	"braid/wire"
)

// pair is two Conns over an in-memory path with virtual time. Segments cross it as bytes. A test may look at every segment
// and decide its fate.
type pair struct {
	t      tester
	now    clock.Time
	delay  time.Duration // one way
	a, b   *side
	queue  []crossing
	count  int
	fate   func(from *side, seg *wire.Segment, out *Out) verdict // nil: everything arrives
	log    []string
	logged bool
}

// verdict is what happens to a segment.
type verdict struct {
	lose   bool
	extra  time.Duration // later than the path's delay
	copies int           // more than one
}

type crossing struct {
	at    clock.Time
	order int
	to    *side
	data  []byte
}

// side is one end: a Conn and the application above it. What it writes is a pattern, so that every byte received can be
// checked by its offset alone.
type side struct {
	*pair
	name string
	c    *Conn
	peer *side
	salt byte

	pending    int64 // bytes the application wants to send beyond what was pushed
	pushed     int64
	chunk      int // largest chunk to push; 0: a full segment
	closeAfter bool
	closed     bool

	got        int64 // bytes received in order
	released   int64
	gotFIN     bool
	rb         ReceiveBuffer
	unread     int64
	stalled    bool // the application does not read
	reserve    int
	reserveAck int
	sent       int // segments
	out        Out
	seg        wire.Segment
	room       []byte
}

func pattern(salt byte, offset int64) byte {
	return salt + byte(offset) + byte(offset>>8)*31 + byte(offset>>16)*17
}

func testConfig(local, remote uint16) Config {
	mss := 1460
	return Config{
		LocalPort: local, RemotePort: remote, ISS: seq.Number(0xffff_f000) + seq.Number(local), TimestampOffset: uint32(local) << 20,
		Rand: rand.New(rand.NewPCG(1, uint64(local))), Pool: new(buffer.Pool),
		MTU: 1500, Overhead: 20, WindowScale: 7, InitialWindow: 1 << 20,
		Controller: congestion.NewNewReno(congestion.Config{MSS: mss}),
	}
}

// newPair returns an unconnected pair; edit changes the configurations.
func newPair(t tester, edit func(a, b *Config)) *pair {
	p := &pair{t: t, delay: 10 * time.Millisecond, now: clock.Time(time.Hour)}
	ca, cb := testConfig(1000, 80), testConfig(80, 1000)
	if edit != nil {
		edit(&ca, &cb)
	}
	p.a = &side{pair: p, name: "a", salt: 1}
	p.b = &side{pair: p, name: "b", salt: 99}
	p.a.peer, p.b.peer = p.b, p.a
	for s, cfg := range map[*side]Config{p.a: ca, p.b: cb} {
		s.rb = NewReceiveBuffer(cfg.InitialWindow, 0)
		s.room = make([]byte, 0, 70000)
	}
	p.a.c = Dial(p.now, ca)
	p.b.c = &Conn{cfg: cb} // until the SYN arrives
	return p
}

// connected returns a pair whose handshake is complete.
func connected(t testing.TB, edit func(a, b *Config)) *pair {
	p := newPair(t, edit)
	p.advance(3 * p.delay)
	if p.a.c.State() != Established || p.b.c.State() != Established {
		t.Fatalf("handshake: %v, %v", p.a.c.State(), p.b.c.State())
	}
	return p
}

// write lets the application send n more bytes.
func (s *side) write(n int64) { s.pending += n; s.pump() }

// close ends the application's stream once everything is pushed.
func (s *side) close() { s.closeAfter = true; s.pump() }

// pump pushes, polls and drains until the Conn has nothing more to do at this time.
func (s *side) pump() {
	if s.c.state == Closed && s.c.err == nil && s.sent == 0 && s.c.iss == 0 {
		return // the passive side before the SYN
	}
	for {
		s.drain()
		if !s.stalled && s.unread > 0 {
			s.rb.OnRead(s.now, s.unread, max(s.c.SRTT(), s.c.ReceiverRTT()))
			s.unread = 0
		}
		if s.c.State() != Closed && s.rb.WantsUpdate(s.unread) {
			s.c.RequestAck(s.now)
		}
		s.c.SetWindow(s.rb.Window(s.unread))
		s.push()
		if !s.c.PollSegment(s.now, &s.seg, &s.out, s.reserve, s.reserveAck) {
			return
		}
		s.rb.Announced()
		s.transmit()
	}
}

func (s *side) push() {
	s.c.SetMore(s.pending > 0)
	for s.pending > 0 && s.c.CanSend(s.now) {
		n := int64(s.c.PayloadRoom(s.reserve))
		if s.chunk > 0 {
			n = int64(s.chunk)
		}
		n = min(n, s.pending)
		s.pending -= n
		s.c.SetMore(s.pending > 0)
		s.c.Push(s.pushed+1, int(n)) // the ID is the stream offset, as mptcp's is the data offset
		s.pushed += n
	}
	s.c.SetBlocked(s.pending > 0)
	if s.closeAfter && !s.closed && s.pending == 0 {
		s.closed = true
		s.c.CloseWrite(s.now)
	}
}

// drain takes what was received and released.
func (s *side) drain() {
	for c := s.c.NextReceived(); c != nil; c = s.c.NextReceived() {
		if c.Start != s.got+1 {
			s.t.Fatalf("%s: chunk at %d, want %d", s.name, c.Start, s.got+1)
		}
		for i, b := range c.Data {
			if b != pattern(s.peer.salt, c.Start+int64(i)) {
				s.t.Fatalf("%s: wrong byte at %d", s.name, c.Start+int64(i))
			}
		}
		s.got += int64(len(c.Data))
		s.unread += int64(len(c.Data))
		s.rb.OnData(s.now, int64(len(c.Data)))
		s.c.cfg.Pool.Release(c)
	}
	for c, ok := s.c.NextReleased(); ok; c, ok = s.c.NextReleased() {
		if c.Start != s.released+1 || c.ID != c.Start {
			s.t.Fatalf("%s: released %+v, want %d", s.name, c, s.released+1)
		}
		s.released += int64(c.Len)
	}
	for _, ok := s.c.NextLost(); ok; _, ok = s.c.NextLost() {
	}
}

// transmit puts the polled segment on the path.
func (s *side) transmit() {
	seg, out := &s.seg, &s.out
	if out.Len > 0 {
		if out.Start < out.Chunk.Start || out.Start+int64(out.Len) > out.Chunk.Start+int64(out.Chunk.Len) {
			s.t.Fatalf("%s: payload outside of its chunk: %+v", s.name, *out)
		}
		s.room = s.room[:out.Len]
		for i := range s.room {
			s.room[i] = pattern(s.salt, out.Start+int64(i))
		}
		seg.Payload = s.room
	}
	used := seg.OptionsLen()
	if out.OptionRoom < 0 || used+out.OptionRoom > 40 || out.OptionRoom%4 != 0 {
		s.t.Fatalf("%s: %d option bytes used, room said to be %d", s.name, used, out.OptionRoom)
	}
	if size := s.c.cfg.Overhead + 20 + used + out.Len + min(s.reserve, out.OptionRoom); out.Len > 0 && size > s.c.mtu.current && !out.Probe {
		s.t.Fatalf("%s: packet of %d bytes, MTU %d", s.name, size, s.c.mtu.current)
	}
	s.sent++
	s.pair.send(s, seg, out)
}

func (p *pair) send(s *side, seg *wire.Segment, out *Out) {
	v := verdict{copies: 1}
	if p.fate != nil {
		v = p.fate(s, seg, out)
		v.copies = max(v.copies, 1)
	}
	if p.logged {
		mark := ""
		if v.lose {
			mark = " LOST"
		}
		p.log = append(p.log, fmt.Sprintf("%v %s %s%s", p.now.Sub(clock.Time(time.Hour)), s.name, describe(s.c.iss, s.peer.c.cfg.ISS, seg), mark))
	}
	if v.lose {
		return
	}
	for range v.copies {
		p.count++
		p.queue = append(p.queue, crossing{p.now.Add(p.delay + v.extra), p.count, s.peer, wire.AppendTCP(nil, seg)})
	}
}

// next returns when something happens, clock.Never if nothing will.
func (p *pair) next() clock.Time {
	t := min(p.a.timeout(), p.b.timeout())
	for i := range p.queue {
		t = min(t, p.queue[i].at)
	}
	return t
}

func (s *side) timeout() clock.Time {
	if s.c.iss == 0 {
		return clock.Never
	}
	return s.c.NextTimeout()
}

// step lets the next thing happen; false: nothing is left before limit.
func (p *pair) step(limit clock.Time) bool {
	t := p.next()
	if t > limit || t == clock.Never {
		p.now = max(p.now, min(limit, t))
		return false
	}
	p.now = max(p.now, t)
	for _, s := range [...]*side{p.a, p.b} {
		if s.timeout() <= p.now {
			s.c.HandleTimeout(p.now)
			s.pump()
		}
	}
	for {
		best := -1
		for i, f := range p.queue {
			if f.at <= p.now && (best < 0 || f.at < p.queue[best].at || f.at == p.queue[best].at && f.order < p.queue[best].order) {
				best = i
			}
		}
		if best < 0 {
			return true
		}
		f := p.queue[best]
		p.queue = append(p.queue[:best], p.queue[best+1:]...)
		f.to.receive(f.data)
	}
}

// receive gives a segment to the Conn, as a Stack would: a listener takes SYNs, a closed port answers with RST.
func (s *side) receive(data []byte) {
	var seg wire.Segment
	if err := wire.ParseTCP(data, &seg); err != nil {
		s.t.Fatalf("%s: %v", s.name, err)
	}
	if s.c.iss == 0 && s.c.state == Closed {
		if seg.Flags&(wire.SYN|wire.ACK|wire.RST) == wire.SYN {
			s.c = Accept(s.now, s.c.cfg, &seg)
			s.pump()
		}
		return
	}
	if s.c.State() == Closed {
		if MakeReset(&seg, &s.seg) {
			s.pair.send(s, &s.seg, &Out{})
		}
		return
	}
	r := s.c.HandleSegment(s.now, &seg)
	if r.PeerFIN {
		s.gotFIN = true
	}
	s.pump()
}

// advance lets d pass.
func (p *pair) advance(d time.Duration) {
	limit := p.now.Add(d)
	p.a.pump()
	p.b.pump()
	for p.step(limit) {
	}
	p.now = limit
}

// run goes on until done reports true or nothing happens within limit.
func (p *pair) run(limit time.Duration, done func() bool) bool {
	end := p.now.Add(limit)
	p.a.pump()
	p.b.pump()
	for !done() {
		if !p.step(end) {
			return done()
		}
	}
	return true
}

func (p *pair) wantStates(a, b State) {
	p.t.Helper()
	if p.a.c.State() != a || p.b.c.State() != b {
		p.t.Fatalf("states %v, %v; want %v, %v\n%s", p.a.c.State(), p.b.c.State(), a, b, strings.Join(p.log, "\n"))
	}
}

// describe writes a segment in relative numbers: flags, start:end, ack, win, options. Scripts use the same notation.
func describe(iss, irs seq.Number, seg *wire.Segment) string {
	var b strings.Builder
	for _, f := range []struct {
		flag wire.Flags
		name string
	}{{wire.SYN, "S"}, {wire.FIN, "F"}, {wire.RST, "R"}, {wire.PSH, "P"}, {wire.ACK, "."}} {
		if seg.Flags.Has(f.flag) {
			b.WriteString(f.name)
		}
	}
	start := iss.Offset(seg.Seq, 0)
	fmt.Fprintf(&b, " %d", start)
	if n := len(seg.Payload); n > 0 {
		fmt.Fprintf(&b, ":%d", start+int64(n))
	}
	if seg.Flags.Has(wire.ACK) {
		fmt.Fprintf(&b, " ack %d", irs.Offset(seg.Ack, 0))
	}
	fmt.Fprintf(&b, " win %d", seg.Window)
	if seg.Has(wire.OptMSS) {
		fmt.Fprintf(&b, " mss %d", seg.MSS)
	}
	if seg.Has(wire.OptWindowScale) {
		fmt.Fprintf(&b, " ws %d", seg.WindowScale)
	}
	if seg.Has(wire.OptSACKPermitted) {
		b.WriteString(" sackok")
	}
	if seg.Has(wire.OptTimestamps) {
		fmt.Fprintf(&b, " ts %d/%d", seg.TSVal, seg.TSEcr)
	}
	if seg.Has(wire.OptSACK) {
		b.WriteString(" sack")
		for _, s := range seg.SACK[:seg.SACKBlocks] {
			fmt.Fprintf(&b, " %d-%d", irs.Offset(s.Start, 0), irs.Offset(s.End, 0))
		}
	}
	return b.String()
}

// tester is what a harness needs of a test; rapid's has it too.
type tester interface {
	Fatalf(format string, args ...any)
	Helper()
}
