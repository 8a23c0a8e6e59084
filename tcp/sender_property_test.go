package tcp

import (
	"math/rand/v2"
	"testing"
	"time"

	"braid/clock"
	"braid/congestion"

	"pgregory.net/rapid"
)

// transfer is one run of a sender over a channel.
type transfer struct {
	s        sender
	c        *channel
	total    int64 // bytes to send
	chunk    func() int
	pushed   int64
	released int64 // the next offset that must be released
	maxLen   int
	every    int // recount once in so many steps
	onSent   func(now clock.Time, t *transmission)
}

// run drives the transfer until everything is released and returns the time that took; it fails after limit.
func (x *transfer) run(t fataler, limit time.Duration) clock.Time {
	t.Helper()
	s, c := &x.s, x.c
	x.released = 1
	end := c.now.Add(limit)
	for step := 0; s.una() != 1+x.total+1; step++ {
		x.feed(t)
		at := s.nextTimeout()
		if len(c.inAir) > 0 && c.inAir[0].at <= at {
			c.step(at, s)
		} else if at == clock.Never {
			t.Fatalf("nothing moves and no timer runs: una %d nxt %d pushed %d state %d", s.una(), s.nxt(), s.pushed(), s.state)
		} else {
			c.now = max(c.now, at)
			if s.timeout(c.now) {
				t.Fatalf("the sender gave up")
			}
		}
		x.drain(t)
		if step%x.every == 0 {
			checkSender(t, s)
		}
		if c.now > end {
			t.Fatalf("not done after %v: una %d of %d", limit, s.una(), x.total)
		}
	}
	if c.rcvNext != x.total+2 || x.released != x.total+1 {
		t.Fatalf("received up to %d, released up to %d of %d", c.rcvNext, x.released, x.total+1)
	}
	return c.now
}

// feed pushes while the sender can, and lets segments leave.
func (x *transfer) feed(t fataler) {
	s, c := &x.s, x.c
	for {
		for x.pushed < x.total && s.canSend(c.now) {
			n := min(int64(x.chunk()), x.total-x.pushed)
			s.push(x.pushed, int(n))
			x.pushed += n
			s.setMore(x.pushed < x.total)
		}
		if x.pushed == x.total {
			s.pushFIN()
		}
		var tr transmission
		if !s.next(c.now, x.maxLen, &tr) {
			if s.wantsWindowProbe(c.now) {
				s.windowProbeSent(c.now)
				c.put(airborne{ack: &ackInput{Ack: c.rcvNext, Edge: c.rcvNext + c.window, HasTS: c.ts, TSEcr: c.tsRecent}}, c.delay)
			}
			return
		}
		if tr.Len > x.maxLen || tr.Start < tr.Chunk.Start || tr.Start+int64(tr.Len) > tr.Chunk.Start+int64(tr.Chunk.Len) {
			t.Fatalf("segment %d+%d does not fit chunk %v and room %d", tr.Start, tr.Len, tr.Chunk, x.maxLen)
		}
		if tr.Chunk.ID != tr.Chunk.Start-1 {
			t.Fatalf("chunk %v was pushed with ID %d", tr.Chunk, tr.Chunk.Start-1)
		}
		if x.onSent != nil {
			x.onSent(c.now, &tr)
		}
		s.sent(c.now, &tr)
		c.transmit(tr, s.tsval(c.now))
	}
}

// drain takes what is released: exactly once, in order.
func (x *transfer) drain(t fataler) {
	for {
		ch, ok := x.s.nextReleased()
		if !ok {
			break
		}
		if ch.Start != x.released || ch.ID != ch.Start-1 || ch.Len <= 0 {
			t.Fatalf("released %v, expected offset %d", ch, x.released)
		}
		x.released += int64(ch.Len)
		if x.released > x.s.una() {
			t.Fatalf("released up to %d before it was acknowledged: %d", x.released, x.s.una())
		}
	}
	for {
		ch, ok := x.s.nextLost()
		if !ok {
			return
		}
		if ch.ID != ch.Start-1 || ch.Len <= 0 {
			t.Fatalf("lost %v", ch)
		}
	}
}

func newTransfer(c *channel, cfg Config, total int64) *transfer {
	x := &transfer{c: c, total: total, chunk: func() int { return testMSS }, maxLen: testMSS, every: 1}
	c.now = clock.Time(time.Second)
	x.s.init(c.now, &cfg, testMSS, c.sack, c.ts)
	x.s.established(c.now, testMSS, c.sack, c.ts, 1+c.window, 2*c.delay)
	x.s.setMore(true)
	return x
}

// RFC 9293, Section 1: whatever the path does short of never letting anything through, everything arrives, and the accounts
// stay right at every step.
func TestSenderDelivers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		r := rand.New(rand.NewPCG(seed, 1))
		c := newChannel(r)
		c.delay = time.Duration(rapid.Int64Range(50_000, 100_000_000).Draw(t, "delay"))
		c.jitter = time.Duration(rapid.Int64Range(1, int64(2*c.delay)).Draw(t, "jitter"))
		c.loss = rapid.Float64Range(0, 0.3).Draw(t, "loss")
		c.ackLoss = rapid.Float64Range(0, 0.3).Draw(t, "ackLoss")
		c.reorder = rapid.Float64Range(0, 0.5).Draw(t, "reorder")
		c.duplicate = rapid.Float64Range(0, 0.2).Draw(t, "duplicate")
		c.renege = rapid.SampledFrom([]float64{0, 0, 0, 0.01, 0.2}).Draw(t, "renege")
		c.gap = time.Duration(rapid.Int64Range(0, 2_000_000).Draw(t, "gap"))
		c.sack = rapid.Bool().Draw(t, "sack")
		c.ts = rapid.Bool().Draw(t, "ts")
		c.window = rapid.Int64Range(300, 200_000).Draw(t, "window")
		cfg := Config{NoDelay: rapid.Bool().Draw(t, "noDelay"), UserTimeout: -1}
		if rapid.Bool().Draw(t, "newreno") {
			cfg.Controller = congestion.NewNewReno(congestion.Config{MSS: testMSS})
		} else {
			cfg.Controller = &testController{window: 30 * testMSS, mss: testMSS, quiet: true,
				own: rapid.Bool().Draw(t, "own"), rate: rapid.SampledFrom([]float64{0, 1e4, 1e5, 1e6, 1e7}).Draw(t, "rate")}
		}
		big := rapid.IntRange(1, 3000).Draw(t, "chunk")
		x := newTransfer(c, cfg, 1+rapid.Int64Range(0, 150).Draw(t, "chunks")*int64(big)/2)
		x.chunk = func() int { return 1 + r.IntN(big) }
		x.maxLen = rapid.IntRange(200, testMSS).Draw(t, "maxLen")
		shrinkAt := rapid.Int64Range(0, 300_000).Draw(t, "shrinkAt")
		x.onSent = func(_ clock.Time, tr *transmission) {
			if shrinkAt > 0 && tr.Start > shrinkAt { // the path MTU falls
				shrinkAt = 0
				x.maxLen = max(x.maxLen/2, 100)
			}
		}
		x.run(t, 3*time.Hour)
	})
}

// A flow without losses never retransmits, whatever the jitter below the reordering that it can know of.
func TestSenderRetransmitsNothingInVain(t *testing.T) {
	c := newChannel(rand.New(rand.NewPCG(1, 2)))
	c.gap = 100 * time.Microsecond
	x := newTransfer(c, Config{Controller: &testController{window: 500 * testMSS, mss: testMSS, quiet: true}}, 2_000_000)
	x.every = 100
	took := x.run(t, time.Minute)
	if st := x.s.stats; st.retransSegs != 0 || st.rtos != 0 || st.tlps != 0 || st.lostSegs != 0 {
		t.Fatalf("stats %+v", st)
	}
	// 2000 segments of 0.1 ms and a few round trips
	if d := took.Sub(clock.Time(time.Second)); d > 420*time.Millisecond+200*time.Millisecond {
		t.Fatalf("took %v", d)
	}
}

// With random loss, SACK and RACK the sender needs timeouts only rarely, and repairs without sending much more than was lost.
func TestSenderRepairsEfficiently(t *testing.T) {
	c := newChannel(rand.New(rand.NewPCG(3, 4)))
	c.gap = 100 * time.Microsecond
	c.loss = 0.02
	x := newTransfer(c, Config{Controller: &testController{window: 500 * testMSS, mss: testMSS, quiet: true, fixed: true, own: true}}, 5_000_000)
	x.every = 100
	x.run(t, time.Minute)
	st := x.s.stats
	if st.rtos > 2 || st.retransSegs > st.lostSegs+st.tlps+st.rtos || st.retransSegs > 150 {
		t.Fatalf("stats %+v", st)
	}
}

// Each kind of controller fills a bottleneck with a drop-tail queue of one bandwidth-delay product, and the sender repairs what it
// overflows without timeouts and without sending again what was not lost.
func TestSenderFillsBottleneck(t *testing.T) {
	tests := []struct {
		name  string
		sack  bool
		loss  float64
		least float64
		make  func(congestion.Config) congestion.Controller
	}{
		{"newreno", true, 0, 0.92, func(c congestion.Config) congestion.Controller { return congestion.NewNewReno(c) }},
		{"newreno without SACK", false, 0, 0.4, // a hole a round trip after slow start overshot (RFC 6582, Section 5)
			func(c congestion.Config) congestion.Controller { return congestion.NewNewReno(c) }},
		{"cubic", true, 0, 0.92, func(c congestion.Config) congestion.Controller { return congestion.NewCubic(c) }},
		{"bbr", true, 0, 0.92, func(c congestion.Config) congestion.Controller { return congestion.NewBBR(c) }},
		{"bbr with loss", true, 0.01, 0.85, // the very last retransmission is lost, too: no probe in recovery, so a timeout
			func(c congestion.Config) congestion.Controller { return congestion.NewBBR(c) }},
	}
	for _, tt := range tests {
		c := newChannel(rand.New(rand.NewPCG(5, 6)))
		c.gap, c.queue = 400*time.Microsecond, 40*time.Millisecond // 20 Mbit/s
		c.sack, c.loss = tt.sack, tt.loss
		ctl := tt.make(congestion.Config{MSS: testMSS, Rand: rand.New(rand.NewPCG(7, 8))})
		x := newTransfer(c, Config{Controller: ctl}, 10_000_000)
		x.every = 100
		took := x.run(t, time.Minute).Sub(clock.Time(time.Second))
		if rate := 10_000_000 / took.Seconds(); rate < tt.least*2.5e6 {
			t.Errorf("%s: %.0f bytes/s of 2500000, stats %+v", tt.name, rate, x.s.stats)
		}
		if st := x.s.stats; tt.sack && (st.rtos > 0 && tt.loss == 0 || st.rtos > 1 || st.retransSegs > st.lostSegs+st.tlps || st.undone > 0) {
			t.Errorf("%s: stats %+v", tt.name, st)
		}
	}
}
