package tcp

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"braid/clock"
	"braid/congestion"
	"braid/seq"
)

// testController is a controller with a fixed window that halves on loss and writes down what it is told.
type testController struct {
	window   int64
	rate     float64
	own      bool
	fixed    bool // the window never changes
	mss      int
	weight   float64
	events   []string
	samples  []congestion.Sample
	flight   int64 // of the last OnCongestion
	before   int64
	quiet    bool // keep no samples
	restarts []time.Duration
}

func (c *testController) note(e string) { c.events = append(c.events, e) }
func (c *testController) OnSend(congestion.Send) float64 {
	if c.weight == 0 {
		return 1
	}
	return c.weight
}
func (c *testController) OnAck(s *congestion.Sample) {
	if !c.quiet {
		c.samples = append(c.samples, *s)
	}
	if s.InRecovery && c.window < c.before/2 {
		c.window += s.Acked
	}
}
func (c *testController) OnCongestion(_ clock.Time, cause congestion.Cause, inFlight int64) {
	c.note([...]string{"loss", "ecn", "timeout", "penalty"}[cause])
	c.flight = inFlight
	if cause != congestion.Timeout || c.window > int64(c.mss) {
		c.before = c.window
	}
	if c.fixed {
		return
	}
	c.window = max(c.window/2, int64(2*c.mss))
	if cause == congestion.Timeout {
		c.window = int64(c.mss)
	}
}
func (c *testController) OnRecoveryEnter(clock.Time, int64) { c.note("enter") }
func (c *testController) OnRecoveryExit(clock.Time, int64) {
	c.note("exit")
	c.window = max(c.window, c.before/2)
}
func (c *testController) OnRestart(_ clock.Time, idle, _ time.Duration) {
	c.restarts = append(c.restarts, idle)
}
func (c *testController) OnUndo(clock.Time)       { c.note("undo"); c.window = max(c.window, c.before) }
func (c *testController) OnMSS(mss int)           { c.mss = mss }
func (c *testController) Window() int64           { return c.window }
func (c *testController) PacingRate() float64     { return c.rate }
func (c *testController) OwnsRecovery() bool      { return c.own }
func (c *testController) State() congestion.State { return congestion.State{Threshold: 1} }

// take returns the events so far and forgets them.
func (c *testController) take() []string {
	e := c.events
	c.events = nil
	return e
}

const testMSS = 1000

// bench is the mini-harness: a sender on a table, driven step by step.
type bench struct {
	t   *testing.T
	s   sender
	ctl *testController
	now clock.Time
	cfg Config
}

type benchOption func(*bench)

func withoutSACK(b *bench)       { b.cfg.NoSACK = true }
func withoutTimestamps(b *bench) { b.cfg.NoTimestamps = true }
func withoutDelay(b *bench)      { b.cfg.NoDelay = true }

// newBench returns a sender just established with a window of 20 segments, an RTT of 100 ms, no pacing to speak of.
func newBench(t *testing.T, options ...benchOption) *bench {
	b := &bench{t: t, ctl: &testController{window: 20 * testMSS, mss: testMSS, rate: 1e12}, now: clock.Time(time.Second)}
	b.cfg.Controller = b.ctl
	for _, o := range options {
		o(b)
	}
	b.s.init(b.now, &b.cfg, testMSS, !b.cfg.NoSACK, !b.cfg.NoTimestamps)
	b.now = b.now.Add(100 * time.Millisecond)
	b.s.established(b.now, testMSS, !b.cfg.NoSACK, !b.cfg.NoTimestamps, 1+1<<20, 100*time.Millisecond)
	return b
}

func (b *bench) check() {
	b.t.Helper()
	checkSender(b.t, &b.s)
}

// send pushes n full segments and lets them leave; it fails unless exactly that many leave.
func (b *bench) send(n int) {
	b.t.Helper()
	for range n {
		b.s.push(b.s.pushed()+1000, testMSS)
	}
	if got := len(b.poll()); got != n {
		b.t.Fatalf("%d segments left, want %d", got, n)
	}
}

// poll lets leave what can.
func (b *bench) poll() []transmission {
	b.t.Helper()
	var out []transmission
	var t transmission
	for b.s.next(b.now, testMSS, &t) {
		b.s.sent(b.now, &t)
		out = append(out, t)
		b.check()
		if len(out) > 10000 {
			b.t.Fatal("the sender does not stop")
		}
	}
	return out
}

// ack takes an ACK up to segment n (the first is 0: ack(3) acknowledges 0, 1, 2) with SACK blocks in segments.
func (b *bench) ack(n int, blocks ...[2]int) ackOutput {
	b.t.Helper()
	return b.ackEcho(n, b.now.Add(-100*time.Millisecond), blocks...)
}

// ackEcho is ack with an echo of the timestamp of a given time.
func (b *bench) ackEcho(n int, echo clock.Time, blocks ...[2]int) ackOutput {
	b.t.Helper()
	in := ackInput{Ack: 1 + int64(n)*testMSS, Edge: keepEdge, RTT: b.now.Sub(echo), TSEcr: b.s.tsval(echo), HasTS: !b.cfg.NoTimestamps}
	for _, r := range blocks {
		in.SACK = append(in.SACK, seq.Range{Start: 1 + int64(r[0])*testMSS, End: 1 + int64(r[1])*testMSS})
	}
	out := b.s.onAck(b.now, &in)
	b.check()
	return out
}

// advance moves the clock, firing timers on the way.
func (b *bench) advance(d time.Duration) {
	b.t.Helper()
	end := b.now.Add(d)
	for i := 0; ; i++ {
		at := b.s.nextTimeout()
		if at > end {
			break
		}
		b.now = max(b.now, at)
		if b.s.timeout(b.now) {
			b.t.Fatal("the sender gave up")
		}
		b.check()
		if i > 1000 {
			b.t.Fatal("timers fire for ever")
		}
	}
	b.now = end
}

// blockAt is a SACK block.
func blockAt(start, end int64) seq.Range { return seq.Range{Start: start, End: end} }

// starts returns the segment numbers of transmissions.
func starts(ts []transmission) []int {
	var n []int
	for _, t := range ts {
		n = append(n, int((t.Start-1)/testMSS))
	}
	return n
}

func want[T any](t *testing.T, what string, got, want []T, equal func(a, b T) bool) {
	t.Helper()
	if !slices.EqualFunc(got, want, equal) {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func (b *bench) wantSent(what string, segments ...int) {
	b.t.Helper()
	want(b.t, what, starts(b.poll()), segments, func(x, y int) bool { return x == y })
}

func (b *bench) wantEvents(what string, events ...string) {
	b.t.Helper()
	want(b.t, what, b.ctl.take(), events, func(x, y string) bool { return x == y })
}

// fataler is what testing.T and rapid.T have in common.
type fataler interface {
	Fatalf(format string, args ...any)
	Helper()
}

// checkSender recounts everything that the sender keeps incrementally.
func checkSender(t fataler, s *sender) {
	t.Helper()
	q := &s.q
	var bytes [recordStates]int64
	var segs [recordStates]int32
	var sacked seq.Set
	next := int64(-1)
	for p := q.oldest; p != q.tail; p++ {
		r := &q.slab[q.at(p)]
		bytes[r.state] += r.space()
		segs[r.state]++
		if next >= 0 && r.start != next {
			t.Fatalf("record at %d follows one that ends at %d", r.start, next)
		}
		next = r.end()
		if p == q.head && r.start != s.ackedEnd || p == q.unsent && r.start != s.sentEnd {
			t.Fatalf("record at %d: una %d, nxt %d", r.start, s.ackedEnd, s.sentEnd)
		}
		if r.state == recSacked {
			sacked.Add(seq.Range{Start: r.start, End: r.end()})
		}
		if in := p - q.oldest; (in < q.head-q.oldest) != (r.state == recAcked) || (in >= q.unsent-q.oldest) != (r.state == recUnsent) {
			t.Fatalf("record at %d is %v at position %d", r.start, r.state, in)
		}
	}
	if bytes != q.bytes || segs != q.segs {
		t.Fatalf("counted %v in %v records, the queue says %v in %v", bytes, segs, q.bytes, q.segs)
	}
	if next >= 0 && next != s.pushedEnd {
		t.Fatalf("records end at %d, pushed %d", next, s.pushedEnd)
	}
	if sacked.Count() != q.sacked.Count() || sacked.Len() != q.sacked.Len() {
		t.Fatalf("SACKed set differs: %d ranges of %d bytes, kept %d of %d", sacked.Count(), sacked.Len(), q.sacked.Count(), q.sacked.Len())
	}
	checkList(t, q, &q.flying, recFlying, func(a, b *record) bool { return a.sentAt <= b.sentAt })
	checkList(t, q, &q.lost, recLost, func(a, b *record) bool { return a.start < b.start })
	if len(q.free)+int(q.tail-q.oldest) != len(q.slab) {
		t.Fatalf("%d free and %d used of %d records", len(q.free), q.tail-q.oldest, len(q.slab))
	}
	if f := s.inFlight(); f < 0 || s.sack && f != bytes[recFlying] {
		t.Fatalf("in flight %d, counted %d", f, bytes[recFlying])
	}
	if q.outstanding() && s.rtoAt == clock.Never {
		t.Fatalf("data is outstanding and no retransmission timer runs")
	}
	if s.renoSacked < 0 || s.renoSacked > q.bytes[recFlying] {
		t.Fatalf("duplicate ACKs stand for %d of %d bytes", s.renoSacked, q.bytes[recFlying])
	}
}

func checkList(t fataler, q *sentQueue, l *recordList, state recordState, ordered func(a, b *record) bool) {
	t.Helper()
	n, prev := int32(0), none
	for i := l.first; i != none; i = q.slab[i].next {
		r := &q.slab[i]
		if r.state != state || r.prev != prev {
			t.Fatalf("record at %d is %v in the list of %v", r.start, r.state, state)
		}
		if prev != none && !ordered(&q.slab[prev], r) {
			t.Fatalf("list of %v is out of order at %d", state, r.start)
		}
		prev = i
		n++
	}
	if n != q.segs[state] || l.last != prev {
		t.Fatalf("list of %v has %d records, counted %d", state, n, q.segs[state])
	}
}

// airborne is a segment or an ACK on its way.
type airborne struct {
	at    clock.Time
	order int
	data  *transmission
	tsval uint32
	ack   *ackInput
}

type passage []airborne

func (h passage) Len() int { return len(h) }
func (h passage) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].order < h[j].order
}
func (h passage) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *passage) Push(x any)   { *h = append(*h, x.(airborne)) }
func (h *passage) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// channel connects a sender with a tiny model of a receiver through a path that loses, reorders and duplicates.
type channel struct {
	rand                              *rand.Rand
	delay, jitter                     time.Duration
	loss, ackLoss, reorder, duplicate float64
	renege                            float64       // how often the receiver forgets everything out of order
	gap                               time.Duration // serialisation time of a segment; 0: none
	queue                             time.Duration // longest wait for the link; 0: no limit
	free                              clock.Time    // when the link is free again

	inAir passage
	order int
	now   clock.Time

	received seq.Set
	rcvNext  int64
	tsRecent uint32
	recent   []seq.Range // SACK blocks, the most recently changed first
	fin      int64       // offset of the FIN; 0: not seen
	window   int64
	sack, ts bool
	arrived  int // segments
}

func newChannel(r *rand.Rand) *channel {
	return &channel{rand: r, delay: 20 * time.Millisecond, rcvNext: 1, window: 1 << 24, sack: true, ts: true}
}

func (c *channel) put(f airborne, extra time.Duration) {
	f.at = c.now.Add(c.delay + extra)
	f.order = c.order
	c.order++
	heap.Push(&c.inAir, f)
}

func (c *channel) extra() time.Duration {
	var d time.Duration
	if c.jitter > 0 && c.rand.Float64() < c.reorder {
		d = time.Duration(c.rand.Int64N(int64(c.jitter)))
	}
	return d
}

// transmit puts a segment on the path.
func (c *channel) transmit(t transmission, tsval uint32) {
	wait := time.Duration(0)
	if c.gap > 0 {
		if c.queue > 0 && c.free.Sub(c.now) > c.queue {
			return
		}
		c.free = max(c.free, c.now).Add(c.gap)
		wait = c.free.Sub(c.now)
	}
	copies := 1
	if c.rand.Float64() < c.duplicate {
		copies = 2
	}
	for range copies {
		if c.rand.Float64() >= c.loss {
			c.put(airborne{data: &t, tsval: tsval}, wait+c.extra())
		}
	}
}

// receive is the receiver: it acknowledges each segment at once.
func (c *channel) receive(t *transmission, tsval uint32) {
	c.arrived++
	r := seq.Range{Start: t.Start, End: t.Start + int64(t.Len)}
	if t.FIN {
		r.End++
		c.fin = r.End
	}
	if c.renege > 0 && c.rand.Float64() < c.renege {
		c.received.Clear()
		c.recent = nil
	}
	in := &ackInput{HasTS: c.ts}
	dup := c.received.FirstIn(r)
	if r.End <= c.rcvNext {
		dup = r
	} else if r.Start < c.rcvNext {
		dup = seq.Range{Start: r.Start, End: c.rcvNext}
	}
	if r.Start <= c.rcvNext {
		c.tsRecent = tsval
	}
	c.received.Add(r)
	c.received.RemoveBefore(c.rcvNext)
	if g := c.received; !g.Empty() && g.At(0).Start <= c.rcvNext {
		c.rcvNext = max(c.rcvNext, g.At(0).End)
		c.received.RemoveBefore(c.rcvNext)
	}
	in.Ack, in.Edge, in.TSEcr = c.rcvNext, c.rcvNext+c.window, c.tsRecent
	if c.sack {
		in.SACK = c.blocks(dup, r)
	}
	if c.rand.Float64() >= c.ackLoss {
		c.put(airborne{ack: in}, c.extra())
	}
}

// blocks makes the SACK blocks of an ACK (RFC 2018, Section 4; RFC 2883, Section 4).
func (c *channel) blocks(dup, r seq.Range) []seq.Range {
	var out []seq.Range
	if !dup.Empty() {
		out = append(out, dup)
	}
	fresh := c.recent[:0:0]
	add := func(o int64) {
		for i := range c.received.Count() {
			if b := c.received.At(i); b.Contains(o) && !slices.Contains(fresh, b) {
				fresh = append(fresh, b)
			}
		}
	}
	add(r.Start)
	for _, b := range c.recent {
		add(b.Start)
	}
	c.recent = fresh[:min(len(fresh), 3)]
	return append(out, c.recent...)
}

// step takes the next arrival, if it is due by the given time.
func (c *channel) step(until clock.Time, s *sender) bool {
	if len(c.inAir) == 0 || c.inAir[0].at > until {
		return false
	}
	f := heap.Pop(&c.inAir).(airborne)
	c.now = f.at
	if f.data != nil {
		c.receive(f.data, f.tsval)
		return true
	}
	if f.ack.HasTS {
		f.ack.RTT = max(time.Duration(s.tsval(c.now)-f.ack.TSEcr)*tick, tick/2)
	}
	s.onAck(c.now, f.ack)
	return true
}
