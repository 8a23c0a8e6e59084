package tcp

import (
	"testing"
	"time"

	"braid/clock"
	"braid/seq"
)

// The owner sees what is outstanding piece by piece, with its fate (for reinjection).
func TestEachOutstanding(t *testing.T) {
	b := newBench(t)
	b.send(6)
	b.s.push(99, 10) // not sent: not outstanding
	b.advance(100 * ms)
	b.ack(1, [2]int{2, 5})
	type piece struct {
		segment      int
		sacked, lost bool
	}
	var got []piece
	b.s.eachOutstanding(func(c Chunk, sacked, lost bool) bool {
		got = append(got, piece{int((c.Start - 1) / testMSS), sacked, lost})
		return true
	})
	want(t, "outstanding", got, []piece{{1, false, true}, {2, true, false}, {3, true, false}, {4, true, false}, {5, false, false}},
		func(a, b piece) bool { return a == b })
	n := 0
	b.s.eachOutstanding(func(Chunk, bool, bool) bool { n++; return n < 2 })
	if n != 2 {
		t.Fatalf("went on %d times after it was told to stop", n)
	}
}

// The snapshot tells the truth at each moment.
func TestSenderInfo(t *testing.T) {
	b := newBench(t)
	var i Info
	b.s.info(b.now, &i)
	if i.Oldest != clock.Never || i.SRTT != 100*ms || i.RTO != 300*ms || i.Window != 20*testMSS || i.PeerWindow != 1<<20 {
		t.Fatalf("fresh: %+v", i)
	}
	first := b.now
	b.send(10)
	b.advance(100 * ms)
	b.ack(0, [2]int{1, 4})
	b.s.info(b.now, &i)
	if i.Retrans != testMSS || !i.InRecovery || i.InFlight != 6*testMSS || i.Oldest != first || i.LostSegs != 1 || i.LastAck != b.now {
		t.Fatalf("in recovery: %+v", i)
	}
	if i.Loss != 0.25 || i.Delivered != 3*testMSS || i.SentSegs != 10 {
		t.Fatalf("in recovery: %+v", i)
	}
	b.poll()
	b.advance(100 * ms)
	b.ackEcho(10, b.now)
	b.s.info(b.now, &i)
	if i.InRecovery || i.RetransSegs != 1 || i.RetransBytes != testMSS || i.SentBytes != 11*testMSS || i.Oldest != clock.Never {
		t.Fatalf("afterwards: %+v", i)
	}
}

// A scheduler's penalty halves the window and is no recovery.
func TestSenderPenalty(t *testing.T) {
	b := newBench(t)
	b.send(4)
	b.s.penalise(b.now)
	b.wantEvents("penalty", "penalty")
	if b.s.window() != 10*testMSS || b.s.state != stateOpen {
		t.Fatalf("window %d, state %d", b.s.window(), b.s.state)
	}
}

// Old ACKs still carry news: their SACK blocks count, their acknowledgement does not.
func TestOldACK(t *testing.T) {
	b := newBench(t)
	b.send(10)
	b.advance(100 * ms)
	b.ack(4)
	out := b.ack(2, [2]int{6, 8})
	if out.NewData || b.s.una() != 1+4*testMSS || b.s.q.segs[recSacked] != 2 {
		t.Fatalf("%+v, una %d, SACKed %d", out, b.s.una(), b.s.q.segs[recSacked])
	}
}

// Blocks that cover records in part, overlap or repeat each other are harmless, and each record counts once.
func TestOddSACKBlocks(t *testing.T) {
	b := newBench(t)
	b.send(10)
	b.advance(100 * ms)
	in := ackInput{Ack: 1, Edge: keepEdge, SACK: []seq.Range{
		blockAt(1500, 3500), // only segment 2 wholly
		blockAt(2001, 4001), blockAt(2001, 4001), blockAt(3001, 3500), blockAt(6002, 6003)}}
	b.s.onAck(b.now, &in)
	b.check()
	if n := b.s.q.segs[recSacked]; n != 2 {
		t.Fatalf("%d segments SACKed, want 2 and 3", n)
	}
	if b.s.sampler.delivered != 2000 {
		t.Fatalf("delivered %d", b.s.sampler.delivered)
	}
}

// Two recoveries close to each other: the ACK of a retransmission of the first does not undo the second.
func TestNoUndoAcrossRecoveries(t *testing.T) {
	b := newBench(t)
	b.ctl.fixed, b.ctl.own = true, true
	b.send(10)
	b.advance(100 * ms)
	b.ack(0, [2]int{1, 8}) // 0 is lost
	b.poll()
	b.send(4) // 10 to 13
	b.advance(50 * ms)
	b.ack(0, [2]int{1, 10}, [2]int{11, 14}) // 10, too, beyond the recovery point
	b.poll()
	retransmitted := b.now
	b.advance(60 * ms)
	b.ackEcho(10, b.now.Add(-110*ms), [2]int{11, 14})
	b.wantEvents("second recovery", "loss", "enter", "exit", "loss", "enter")
	b.send(4) // 14 to 17
	b.advance(40 * ms)
	b.ackEcho(10, b.now.Add(-110*ms), [2]int{11, 16}, [2]int{17, 18}) // 16 is lost
	b.poll()
	b.advance(10 * time.Millisecond)
	b.ackEcho(16, retransmitted, [2]int{17, 18}) // of 10, which was sent again before the second recovery began
	if b.s.stats.undone != 0 {
		t.Fatal("undone")
	}
}
