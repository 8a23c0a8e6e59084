package tcp

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"braid/clock"
	"braid/congestion"
	"braid/seq"
)

// loop is a sender in a steady flow: every call of cycle sends one segment and takes half an ACK, as a receiver that acknowledges
// every second segment makes it.
type loop struct {
	s       sender
	now     clock.Time
	pushed  int64
	acked   int64
	in      ackInput
	refused int
}

func newLoop(ctl congestion.Controller, window int) *loop {
	l := &loop{now: clock.Time(time.Second), pushed: 1, acked: 1}
	cfg := Config{Controller: ctl}
	l.s.init(l.now, &cfg, testMSS, true, true)
	l.s.established(l.now, testMSS, true, true, 1<<50, time.Millisecond)
	l.s.setMore(true)
	for range window {
		l.sendOne()
	}
	return l
}

func (l *loop) sendOne() {
	l.now += 1000
	if !l.s.canSend(l.now) {
		l.refused++
		return
	}
	l.s.push(l.pushed, testMSS)
	l.pushed += testMSS
	var t transmission
	if l.s.next(l.now, testMSS, &t) {
		l.s.sent(l.now, &t)
	}
}

// ackTwo acknowledges two segments.
func (l *loop) ackTwo() {
	l.now += 500
	l.acked += 2 * testMSS
	l.in = ackInput{Ack: l.acked, Edge: 1 << 50, HasTS: true, TSEcr: l.s.tsval(l.now - 1_000_000), RTT: time.Millisecond}
	l.s.onAck(l.now, &l.in)
	for {
		if _, ok := l.s.nextReleased(); !ok {
			return
		}
	}
}

func (l *loop) cycle() {
	l.sendOne()
	l.sendOne()
	l.ackTwo()
}

func steadyController() *testController {
	return &testController{window: 1 << 40, mss: testMSS, rate: 1e12, quiet: true, fixed: true}
}

// The hot paths allocate nothing once the queue has grown to the window.
func TestSenderAllocatesNothing(t *testing.T) {
	for name, ctl := range map[string]congestion.Controller{
		"fixed":   steadyController(),
		"newreno": congestion.NewNewReno(congestion.Config{MSS: testMSS, InitialWindow: 1000}),
	} {
		l := newLoop(ctl, 500)
		for range 2000 {
			l.cycle()
		}
		if n := testing.AllocsPerRun(1000, l.cycle); n != 0 {
			t.Errorf("%s: %v allocations for two segments and an ACK", name, n)
		}
	}
}

// lossy is a flow over a pipe of a fixed number of segments that loses some at random; every arrival brings an ACK with up to
// three SACK blocks.
type lossy struct {
	s        sender
	rand     *rand.Rand
	loss     float64
	now      clock.Time
	pushed   int64
	pipe     []transmission // ring
	first, n int
	received seq.Set
	next     int64
	recent   [3]int64
	blocks   [4]seq.Range
	in       ackInput
}

func newLossy(loss float64, window int) *lossy {
	ctl := steadyController()
	ctl.own = true
	ctl.window = int64(window) * testMSS
	l := &lossy{rand: rand.New(rand.NewPCG(1, 2)), loss: loss, now: clock.Time(time.Second), pushed: 1, next: 1}
	l.pipe = make([]transmission, window)
	l.s.init(l.now, &Config{Controller: ctl}, testMSS, true, true)
	l.s.established(l.now, testMSS, true, true, 1<<50, time.Duration(window)*time.Microsecond)
	l.s.setMore(true)
	return l
}

// step is one microsecond: a segment may leave, one may arrive and be acknowledged.
func (l *lossy) step() {
	l.now += 1000
	if l.s.nextTimeout() <= l.now {
		l.s.timeout(l.now)
	}
	if l.s.canSend(l.now) {
		l.s.push(l.pushed, testMSS)
		l.pushed += testMSS
	}
	at := (l.first + l.n) % len(l.pipe)
	l.pipe[at] = transmission{}
	if l.n < len(l.pipe) {
		if t := &l.pipe[at]; l.s.next(l.now, testMSS, t) {
			l.s.sent(l.now, t)
			if l.rand.Float64() < l.loss {
				t.Len = 0
			}
		}
		l.n++
	}
	if l.n == len(l.pipe) {
		l.arrive(&l.pipe[l.first])
		l.first = (l.first + 1) % len(l.pipe)
		l.n--
	}
}

func (l *lossy) arrive(t *transmission) {
	if t.Len == 0 {
		return
	}
	r := seq.Range{Start: t.Start, End: t.Start + int64(t.Len)}
	l.received.Add(r)
	if g := l.received.At(0); g.Start <= l.next {
		l.next = g.End
		l.received.RemoveBefore(l.next)
	}
	if r.Start > l.next && r.Start != l.recent[0] {
		l.recent[2], l.recent[1], l.recent[0] = l.recent[1], l.recent[0], r.Start
	}
	k := 0
	for i, o := range l.recent {
		b := seq.Range{Start: o, End: o + 1}
		if o < l.next || i > 0 && l.blocks[0].Contains(o) {
			continue
		}
		if g := l.received.FirstGap(seq.Range{Start: o, End: 1 << 50}); g.Start > o {
			b.End = g.Start
			l.blocks[k] = b
			k++
		}
	}
	l.in = ackInput{Ack: l.next, Edge: 1 << 50, SACK: l.blocks[:k], HasTS: true, TSEcr: l.s.tsval(l.now - clock.Time(len(l.pipe)*1000)), RTT: time.Duration(len(l.pipe)) * time.Microsecond}
	l.s.onAck(l.now, &l.in)
	for ok := true; ok; {
		_, ok = l.s.nextReleased()
	}
	for ok := true; ok; {
		_, ok = l.s.nextLost()
	}
}

// BenchmarkSenderLossy measures a flow that is always in recovery, the model of the receiver included. The cost of a packet must
// not grow with the window.
func BenchmarkSenderLossy(b *testing.B) {
	for _, loss := range []float64{0.001, 0.01, 0.1} {
		for _, window := range []int{100, 1000, 10000} {
			b.Run(fmt.Sprintf("%v/%d", loss, window), func(b *testing.B) {
				l := newLossy(loss, window)
				for range 3 * window {
					l.step()
				}
				before := l.s.stats
				b.ReportAllocs()
				b.ResetTimer()
				for range b.N {
					l.step()
				}
				b.ReportMetric(float64(l.s.stats.segs-before.segs)/float64(b.N), "segs/op")
				b.ReportMetric(float64(l.s.stats.rtos), "rtos")
				b.ReportMetric(float64(l.s.stats.retransSegs-l.s.stats.lostSegs), "excess")
			})
		}
	}
}

// A flow that repairs losses all the time allocates nothing either.
func TestSenderRecoveryAllocatesNothing(t *testing.T) {
	l := newLossy(0.01, 200)
	for range 20000 {
		l.step()
	}
	if n := testing.AllocsPerRun(5000, l.step); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
	if st := l.s.stats; st.retransSegs == 0 || st.segs < 20000 {
		t.Errorf("stats %+v", st)
	}
}

// BenchmarkSenderSteady measures push, next, sent and the share of an ACK for one packet.
func BenchmarkSenderSteady(b *testing.B) {
	for _, window := range []int{100, 1000, 10000} {
		for name, ctl := range map[string]congestion.Controller{
			"fixed":   steadyController(),
			"newreno": congestion.NewNewReno(congestion.Config{MSS: testMSS, InitialWindow: 2 * window}),
		} {
			b.Run(fmt.Sprintf("%s/%d", name, window), func(b *testing.B) {
				l := newLoop(ctl, window)
				b.ReportAllocs()
				b.ResetTimer()
				for i := 0; i < b.N; i += 2 {
					l.cycle()
				}
				if l.refused > 0 {
					b.Fatal(l.refused, "refused")
				}
			})
		}
	}
}
