package tcp

import (
	"testing"
	"time"
	"unsafe"

	"braid/clock"
	"braid/congestion"
	"braid/wire"
)

// openController never limits: the cost of tcp is to be seen, not that of a controller.
type openController struct{}

func (openController) OnSend(congestion.Send) float64                     { return 1 }
func (openController) OnAck(*congestion.Sample)                           {}
func (openController) OnCongestion(clock.Time, congestion.Cause, int64)   {}
func (openController) OnRecoveryEnter(clock.Time, int64)                  {}
func (openController) OnRecoveryExit(clock.Time, int64)                   {}
func (openController) OnRestart(clock.Time, time.Duration, time.Duration) {}
func (openController) OnUndo(clock.Time)                                  {}
func (openController) OnMSS(int)                                          {}
func (openController) Window() int64                                      { return 128 << 10 }
func (openController) PacingRate() float64                                { return 1e12 }
func (openController) OwnsRecovery() bool                                 { return true }
func (openController) State() congestion.State                            { return congestion.State{} }

// direct moves segments between two Conns without a path between them.
type direct struct {
	now     clock.Time
	a, b    *Conn
	payload []byte
	seg     wire.Segment
	out     Out
	id      int64
	data    int // segments with payload
	acks    int
	bytes   int64
	each    int // segments that b handles before it is polled
}

func newDirect(tb testing.TB) *direct {
	ca, cb := testConfig(1, 2), testConfig(2, 1)
	ca.Controller, cb.Controller = openController{}, openController{}
	d := &direct{now: clock.Time(time.Hour), payload: make([]byte, 1500), id: 1, each: 2}
	d.a = Dial(d.now, ca)
	d.a.PollSegment(d.now, &d.seg, &d.out, 0, 0)
	d.b = Accept(d.now, cb, &d.seg)
	d.now += clock.Time(100 * time.Microsecond)
	d.b.PollSegment(d.now, &d.seg, &d.out, 0, 0)
	d.a.HandleSegment(d.now, &d.seg)
	d.a.PollSegment(d.now, &d.seg, &d.out, 0, 0)
	d.b.HandleSegment(d.now, &d.seg)
	if d.a.State() != Established || d.b.State() != Established {
		tb.Fatal("handshake failed")
	}
	return d
}

// round sends n segments of payload from a to b and the ACKs back.
func (d *direct) round(n int) {
	const reserve = 20
	for sent := 0; sent < n; {
		d.now += clock.Time(time.Microsecond)
		for range d.each {
			d.a.SetMore(true)
			if d.a.CanSend(d.now) {
				size := d.a.PayloadRoom(reserve)
				d.a.Push(d.id, size)
				d.id += int64(size)
			}
			if !d.a.PollSegment(d.now, &d.seg, &d.out, reserve, 12) {
				break
			}
			d.data++
			sent++
			d.seg.Payload = d.payload[:d.out.Len]
			d.b.HandleSegment(d.now, &d.seg)
		}
		for c := d.b.NextReceived(); c != nil; c = d.b.NextReceived() {
			d.bytes += int64(len(c.Data))
			d.b.cfg.Pool.Release(c)
		}
		d.b.SetWindow(1 << 20)
		for d.b.PollSegment(d.now, &d.seg, &d.out, reserve, 12) {
			d.acks++
			d.a.HandleSegment(d.now, &d.seg)
		}
		for _, ok := d.a.NextReleased(); ok; _, ok = d.a.NextReleased() {
		}
		for _, c := range [...]*Conn{d.a, d.b} {
			if c.NextTimeout() <= d.now {
				c.HandleTimeout(d.now)
			}
		}
	}
}

// The cost of one payload segment on both sides, with an ACK for every second.
func BenchmarkBulk(b *testing.B) {
	d := newDirect(b)
	d.round(1000)
	b.ReportAllocs()
	b.ResetTimer()
	d.round(b.N)
	b.ReportMetric(float64(d.acks)/float64(d.data), "acks/segment")
}

func TestBulkDoesNotAllocate(t *testing.T) {
	d := newDirect(t)
	d.round(2000)
	if n := testing.AllocsPerRun(20, func() { d.round(500) }); n != 0 {
		t.Errorf("%v allocations for 500 segments", n)
	}
	if d.bytes < 1<<20 || d.acks < d.data/3 || d.acks > d.data {
		t.Errorf("%d bytes, %d segments, %d ACKs", d.bytes, d.data, d.acks)
	}
}

// Out-of-order arrival and SACK do not allocate either.
func TestReorderingDoesNotAllocate(t *testing.T) {
	s := establishedScript(t, nil)
	pool := s.c.cfg.Pool
	payload := make([]byte, 1000)
	next := int64(1)
	var seg wire.Segment
	run := func() {
		for _, i := range [...]int64{3, 1, 4, 0, 2, 7, 6, 5} {
			seg = wire.Segment{Seq: scriptIRS.At(next + 1000*i), Ack: scriptISS.At(1), Flags: wire.ACK, Window: 10000, Payload: payload}
			s.c.HandleSegment(s.now, &seg)
			for s.c.PollSegment(s.now, &s.seg, &s.out, 0, 0) {
			}
			for c := s.c.NextReceived(); c != nil; c = s.c.NextReceived() {
				pool.Release(c)
			}
			s.c.SetWindow(10000)
		}
		next += 8000
	}
	run()
	if n := testing.AllocsPerRun(50, run); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if s.c.ReceivedOffset() != next {
		t.Errorf("received up to %d of %d", s.c.ReceivedOffset(), next)
	}
}

// A Conn that has nothing in flight is small (the controller is the owner's).
func TestIdleMemory(t *testing.T) {
	if n := unsafe.Sizeof(Conn{}); n > 2560 {
		t.Errorf("Conn takes %d bytes", n)
	}
	d := newDirect(t)
	d.round(1000)
	for range 100 {
		d.now = d.now.Add(time.Second)
		d.a.HandleTimeout(d.now)
		d.b.HandleTimeout(d.now)
		for d.b.PollSegment(d.now, &d.seg, &d.out, 0, 0) {
			d.a.HandleSegment(d.now, &d.seg)
		}
		for _, ok := d.a.NextReleased(); ok; _, ok = d.a.NextReleased() {
		}
	}
	if d.a.rcv.queue.Len() != 0 || d.b.cfg.Pool.InUse() != 0 || cap(d.a.snd.q.slab) > initialRecords {
		t.Errorf("an idle Conn holds %d records, %d bytes", cap(d.a.snd.q.slab), d.b.cfg.Pool.InUse())
	}
}
