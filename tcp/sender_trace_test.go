package tcp

import (
	"testing"

	"braid/trace"
)

// Each happening is told once, with the numbers of the moment.
func TestSenderTrace(t *testing.T) {
	var rec trace.Recorder
	b := newBench(t, func(b *bench) { b.cfg.Trace, b.cfg.ConnID, b.cfg.Subflow = &rec, 7, 2 })
	b.send(10)
	b.advance(100 * ms)
	b.ack(0, [2]int{1, 4})
	b.poll()
	b.advance(100 * ms)
	b.ackEcho(10, b.now)
	b.send(2)
	b.advance(202 * ms) // the probe
	b.poll()
	b.advance(310 * ms) // the timeout
	counts := map[trace.Kind]int{}
	for _, e := range rec.Events {
		counts[e.Kind]++
		if e.Conn != 7 || e.Subflow != 2 {
			t.Fatalf("event %+v", e)
		}
	}
	for k, want := range map[trace.Kind]int{trace.AckSample: 2, trace.RecoveryEnter: 2, trace.RecoveryExit: 1, trace.TLP: 1, trace.RTO: 1} {
		if counts[k] != want {
			t.Errorf("%v: %d events, want %d", k, counts[k], want)
		}
	}
	if counts[trace.Congestion] == 0 {
		t.Error("the controller's state was not told")
	}
	e := rec.Of(trace.RecoveryExit)[0]
	if took, _ := e.Get("took_ns"); took != int64(100*ms) {
		t.Errorf("recovery took %v", took)
	}
	e = rec.Of(trace.AckSample)[0]
	if acked, _ := e.Get("acked_bytes"); acked != 3000 {
		t.Errorf("acknowledged %d", acked)
	}
	e = rec.Of(trace.RTO)[0]
	if oldest, _ := e.Get("oldest_seq"); oldest != 1+10*testMSS {
		t.Errorf("oldest %d", oldest)
	}
}

type countSink int

func (c *countSink) Trace(*trace.Event) { *c++ }

// Tracing allocates nothing.
func TestTraceAllocatesNothing(t *testing.T) {
	var sink countSink
	l := newLoop(steadyController(), 100)
	l.s.trace.sink = &sink
	for range 1000 {
		l.cycle()
	}
	if n := testing.AllocsPerRun(1000, l.cycle); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if sink == 0 {
		t.Error("nothing was traced")
	}
}
