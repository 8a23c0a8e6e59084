package tcp

import (
	"testing"
	"time"

	"braid/clock"
	"braid/seq"
)

// RFC 9293, Section 3.7.4, in Minshall's form: a small segment is held while another small one is unacknowledged.
func TestSenderNagle(t *testing.T) {
	small := func(b *bench) { b.s.push(b.s.pushed(), 100) }
	b := newBench(t)
	small(b)
	if n := len(b.poll()); n != 1 {
		t.Fatalf("the first small segment: %d left", n)
	}
	small(b)
	if n := len(b.poll()); n != 0 {
		t.Fatalf("the second small segment: %d left", n)
	}
	small(b)
	if n := len(b.poll()); n != 1 {
		t.Fatalf("one is not the last any more: %d left", n)
	}
	b.s.setMore(true)
	if n := len(b.poll()); n != 1 {
		t.Fatalf("more follows, so it is not the tail: %d left", n)
	}
	b.s.setMore(false)
	small(b)
	if n := len(b.poll()); n != 0 {
		t.Fatalf("%d left", n)
	}
	b.s.onAck(b.now, &ackInput{Ack: b.s.nxt(), Edge: keepEdge})
	if n := len(b.poll()); n != 1 {
		t.Fatalf("after the acknowledgement: %d left", n)
	}
	b = newBench(t, withoutDelay)
	for range 3 {
		small(b)
		if n := len(b.poll()); n != 1 {
			t.Fatalf("switched off: %d left", n)
		}
	}
	b = newBench(t)
	small(b)
	b.poll()
	small(b)
	b.s.pushFIN()
	if ts := b.poll(); len(ts) != 1 || !ts[0].FIN {
		t.Fatalf("with a FIN nothing can be added: %+v", ts)
	}
}

// The FIN rides on the last unsent segment or travels alone, and takes sequence space.
func TestFIN(t *testing.T) {
	b := newBench(t)
	b.s.push(1, testMSS)
	b.s.pushFIN()
	b.s.pushFIN() // once is enough
	if ts := b.poll(); len(ts) != 1 || !ts[0].FIN || ts[0].Len != testMSS {
		t.Fatalf("with data: %+v", ts)
	}
	b.advance(100 * ms)
	if out := b.ack(1); out.FINAcked || !out.NewData {
		t.Fatalf("data acknowledged: %+v", out)
	}
	if out := b.s.onAck(b.now, &ackInput{Ack: 2 + testMSS, Edge: keepEdge}); !out.FINAcked || out.Acked != 1 {
		t.Fatalf("FIN acknowledged: %+v", out)
	}
	b = newBench(t)
	b.send(1)
	b.s.pushFIN()
	if ts := b.poll(); len(ts) != 1 || !ts[0].FIN || ts[0].Len != 0 || ts[0].Start != 1+testMSS {
		t.Fatalf("alone: %+v", ts)
	}
	if b.s.canSend(b.now) || b.s.room(b.now) != 0 {
		t.Fatal("can send behind the FIN")
	}
	// A window that takes the data but not the FIN.
	b = newBench(t)
	b.windowUpdate(0, testMSS)
	b.s.push(1, testMSS)
	b.s.pushFIN()
	if ts := b.poll(); len(ts) != 1 || ts[0].FIN || ts[0].Len != testMSS {
		t.Fatalf("window without room for the FIN: %+v", ts)
	}
	b.advance(100 * ms)
	b.windowUpdate(1, testMSS)
	if ts := b.poll(); len(ts) != 1 || !ts[0].FIN || ts[0].Len != 0 {
		t.Fatalf("the FIN later: %+v", ts)
	}
}

// canSend and room agree with what next then lets leave.
func TestRoom(t *testing.T) {
	b := newBench(t)
	if r := b.s.room(b.now); r != 20*testMSS {
		t.Fatalf("room %d, want the window", r)
	}
	n := 0
	for b.s.canSend(b.now) { // a train: several chunks before the first poll
		b.s.push(int64(n), testMSS)
		n++
	}
	if n != 20 || b.s.room(b.now) != 0 {
		t.Fatalf("%d segments pushed, room %d", n, b.s.room(b.now))
	}
	if got := len(b.poll()); got != 20 {
		t.Fatalf("%d left", got)
	}
	b.advance(100 * ms)
	b.windowUpdate(20, 3500)
	if r := b.s.room(b.now); r != 3500 {
		t.Fatalf("room %d, want the peer's window", r)
	}
	for n = 0; b.s.canSend(b.now); n++ {
		b.s.push(int64(n), testMSS)
	}
	if n != 3 {
		t.Fatalf("%d segments into 3500 bytes", n)
	}
}

// While a retransmission waits no new data is wanted.
func TestRetransmissionsFirst(t *testing.T) {
	b := newBench(t)
	b.send(10)
	b.advance(100 * ms)
	b.ack(0, [2]int{1, 10})
	if b.s.canSend(b.now) || b.s.room(b.now) != 0 {
		t.Fatal("new data before the retransmission")
	}
	b.s.push(7, testMSS)
	b.wantSent("order", 0, 10)
}

// A refusal for the pacer's sake wakes up exactly when it ends; a caller that never asks is not woken.
func TestPacerWakes(t *testing.T) {
	b := newBench(t)
	b.ctl.rate = 1e5 // a segment takes 10 ms
	b.s.refresh(b.now)
	b.s.pacer.unpaced = 0
	b.send(2)
	at := b.s.nextTimeout()
	if b.s.canSend(b.now) {
		t.Fatal("can send at once")
	}
	if got := b.s.nextTimeout(); got != b.now.Add(10*ms) || got == at {
		t.Fatalf("wake-up at %v, now %v", got, b.now)
	}
	b.advance(10 * ms)
	if !b.s.canSend(b.now) {
		t.Fatal("not ready at the wake-up")
	}
	if b.s.nextTimeout() <= b.now {
		t.Fatal("the wake-up repeats itself")
	}
}

// MTU-08: a chunk larger than a segment leaves in pieces that repeat the chunk.
func TestLargeChunk(t *testing.T) {
	b := newBench(t)
	b.s.push(77, 2500)
	ts := b.poll()
	if len(ts) != 3 {
		t.Fatalf("%d segments", len(ts))
	}
	off := int64(1)
	for _, tr := range ts {
		if tr.Chunk != (Chunk{ID: 77, Start: 1, Len: 2500}) || tr.Start != off {
			t.Fatalf("segment %+v", tr)
		}
		off += int64(tr.Len)
	}
	b.advance(100 * ms)
	b.s.onAck(b.now, &ackInput{Ack: 1501, Edge: keepEdge}) // in the middle of a segment
	b.check()
	var got []Chunk
	for c, ok := b.s.nextReleased(); ok; c, ok = b.s.nextReleased() {
		got = append(got, c)
	}
	want(t, "released", got, []Chunk{{77, 1, 1000}, {1077, 1001, 500}}, func(a, b Chunk) bool { return a == b })
}

// LOS-01 and RTO-06: after a lost SYN one segment, and 3 s for it.
func TestSenderAfterLostSYN(t *testing.T) {
	b := newBench(t)
	b.s.init(b.now, &b.cfg, testMSS, true, true)
	b.s.synLost()
	b.s.established(b.now, testMSS, true, true, 1<<20, 0)
	b.s.setMore(true)
	b.send(1)
	if b.s.canSend(b.now) {
		t.Fatal("a second segment")
	}
	if b.s.rto() != 3*time.Second {
		t.Fatalf("RTO %v", b.s.rto())
	}
	b.advance(100 * ms)
	b.ack(1)
	b.send(2)
}

// What cannot be is refused: an ACK of what was never sent, and pushes that make no sense.
func TestImpossible(t *testing.T) {
	b := newBench(t)
	b.send(1)
	if out := b.s.onAck(b.now, &ackInput{Ack: 1 << 30, Edge: 1 << 40}); out.NewData || b.s.una() != 1 || b.s.edge >= 1<<40 {
		t.Fatalf("ACK of the future: %+v", out)
	}
	b.s.onAck(b.now, &ackInput{Ack: 1, Edge: keepEdge, SACK: []seq.Range{blockAt(500, 1<<40), blockAt(-5, 3), blockAt(9, 2)}})
	b.check()
	for name, f := range map[string]func(){
		"empty chunk": func() { b.s.push(1, 0) },
		"behind FIN":  func() { b.s.pushFIN(); b.s.push(1, 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

// A full sender gives nothing back; an idle one all of it.
func TestTrim(t *testing.T) {
	b := newBench(t)
	b.ctl.window = 1 << 20
	b.s.refresh(b.now)
	b.send(100)
	b.advance(100 * ms)
	b.ack(100)
	for ok := true; ok; {
		_, ok = b.s.nextReleased()
	}
	if b.s.q.slab == nil {
		t.Fatal("memory given back at once")
	}
	b.advance(trimDelay)
	if b.s.q.slab != nil || b.s.nextTimeout() != clock.Never {
		t.Fatal("an idle sender keeps memory or a timer")
	}
	b.send(1)
}
