package tcp

import (
	"testing"
	"time"

	"braid/clock"
)

// RFC 5681, Section 3.2 and RFC 6675, Section 5: one loss, SACKed around: one reduction, one retransmission, and recovery ends
// when everything that was outstanding at its beginning is acknowledged.
func TestFastRecovery(t *testing.T) {
	b := newBench(t)
	b.send(10)
	b.advance(100 * ms)
	b.ack(0, [2]int{1, 2})
	b.ack(0, [2]int{1, 3})
	if b.s.state != stateDisorder {
		t.Fatalf("state %d after two SACKs, want disorder", b.s.state)
	}
	b.wantEvents("before the third")
	b.ack(0, [2]int{1, 4}) // RFC 8985, Section 6.2: the third makes waiting for reordering needless
	b.wantEvents("third SACK", "loss", "enter")
	if b.ctl.flight != 10*testMSS {
		t.Fatalf("FlightSize %d, want everything outstanding", b.ctl.flight)
	}
	b.wantSent("fast retransmit", 0)
	if c, ok := b.s.nextLost(); !ok || c.Start != 1 || c.ID != 1001 || c.Len != testMSS {
		t.Fatalf("lost %v %v", c, ok)
	}
	for n := 5; n <= 10; n++ {
		b.ack(0, [2]int{1, n})
	}
	b.wantEvents("once a window")
	b.advance(100 * ms)
	b.ack(10)
	b.wantEvents("all acknowledged", "exit")
	if st := b.s.stats; st.retransSegs != 1 || st.lostSegs != 1 || st.undone != 0 {
		t.Fatalf("stats %+v", st)
	}
}

// LOS-07: losses of one window reduce once; those found behind its end start a new recovery.
func TestSecondWindowReducesAgain(t *testing.T) {
	b := newBench(t)
	b.send(10)
	b.advance(100 * ms)
	b.ack(0, [2]int{1, 4})
	b.wantEvents("first loss", "loss", "enter")
	b.poll() // retransmits 0
	b.advance(50 * ms)
	b.ack(0, [2]int{1, 4}, [2]int{5, 9}) // 4 is missing too: the same window
	b.wantEvents("second loss in the same window")
	b.wantSent("second retransmit", 4)
	b.send(2) // 10 and 11 are new
	b.send(2)
	b.advance(50 * ms)
	b.ack(0, [2]int{1, 4}, [2]int{5, 10}, [2]int{11, 14}) // 10 is lost beyond the recovery point
	b.advance(50 * ms)
	b.ack(10, [2]int{11, 14})
	b.wantEvents("the end of the first and the beginning of the second", "exit", "loss", "enter")
}

// RFC 6582, Section 3.2: NewReno without SACK. Three duplicates, a partial acknowledgement that asks for the next hole, no second reduction.
func TestNewReno(t *testing.T) {
	b := newBench(t, withoutSACK)
	b.send(10) // 0 and 3 are lost
	b.advance(100 * ms)
	b.ack(0)
	b.ack(0)
	b.wantEvents("two duplicates")
	b.ack(0)
	b.wantEvents("third duplicate", "loss", "enter")
	b.wantSent("fast retransmit", 0)
	for range 5 {
		b.ack(0)
	}
	b.advance(100 * ms)
	b.ack(3) // partial
	b.wantSent("next hole", 3)
	b.wantEvents("partial acknowledgement")
	b.advance(100 * ms)
	b.ack(10)
	b.wantEvents("recovery point", "exit")
	if b.s.inFlight() != 0 {
		t.Fatalf("%d in flight", b.s.inFlight())
	}
}

// RFC 6582, Section 3.2, step 2: duplicates of what the last recovery sent do not start another.
func TestNewRenoIgnoresOldDuplicates(t *testing.T) {
	b := newBench(t, withoutSACK)
	b.send(10)
	b.advance(100 * ms)
	b.ack(0)
	b.ack(0)
	b.ack(0)
	b.poll()
	b.advance(100 * ms)
	b.ack(10)
	b.send(5)
	b.ctl.take()
	for range 4 {
		b.ack(10)
	}
	b.wantEvents("duplicates that do not go beyond the recovery point")
}

// RFC 3042: a new segment for each of the first two duplicate ACKs, though the window is full.
func TestLimitedTransmit(t *testing.T) {
	for _, sack := range []bool{true, false} {
		b := newBench(t)
		if !sack {
			b = newBench(t, withoutSACK)
		}
		b.ctl.window = 5 * testMSS
		b.s.refresh(b.now)
		b.send(5)
		if b.s.canSend(b.now) {
			t.Fatal("can send beyond the window")
		}
		b.advance(100 * ms)
		for i := range 2 {
			b.ack(0, [2]int{1, 2 + i})
			if !b.s.canSend(b.now) {
				t.Fatalf("duplicate %d lets nothing leave (sack %v)", i+1, sack)
			}
			b.send(1)
			if b.s.canSend(b.now) {
				t.Fatalf("duplicate %d lets more than one segment leave", i+1)
			}
		}
		b.wantEvents("limited transmit")
	}
}

// RFC 6298, Section 5.4 to 5.6, RFC 8985, Section 6.3: on expiry the earliest segment alone is sent again, whatever pacer
// and window say; the timer doubles.
func TestRetransmissionTimeout(t *testing.T) {
	b := newBench(t, withoutSACK)
	b.send(5)
	if rto := b.s.rto(); rto != 300*ms {
		t.Fatalf("RTO %v", rto)
	}
	b.advance(299 * ms)
	b.wantEvents("before expiry")
	b.advance(1 * ms)
	b.wantEvents("expiry", "timeout", "enter")
	b.wantSent("after expiry", 0)
	if b.s.backoffs() != 1 || b.s.rto() != 600*ms {
		t.Fatalf("back-off %d, RTO %v", b.s.backoffs(), b.s.rto())
	}
	b.advance(600 * ms)
	b.wantEvents("second expiry", "timeout")
	b.wantSent("after the second", 0)
	b.ackEcho(1, b.now)
	if b.s.backoffs() != 0 {
		t.Fatalf("back-off %d after an ACK", b.s.backoffs())
	}
	b.wantSent("slow start", 1, 2)
	b.ackEcho(5, b.now)
	b.wantEvents("everything acknowledged", "exit")
}

// RFC 8985, Section 6.3: what was sent within the RTT and the reordering window is not lost by an expiry.
func TestTimeoutSparesTheYoung(t *testing.T) {
	b := newBench(t)
	b.s.tlp.end = 1 // no probe shall come between
	b.send(1)
	b.advance(100 * ms)
	b.ack(1)
	b.s.tlp.end = 1
	b.send(3)
	b.s.tlp.stop()
	b.advance(250 * ms)
	b.s.tlp.end = 1
	b.send(2)
	b.advance(50 * ms)
	b.wantEvents("expiry", "timeout", "enter")
	if got := b.s.q.segs; got[recLost] != 3 || got[recFlying] != 2 {
		t.Fatalf("states %v, want three lost and two flying", got)
	}
	b.wantSent("after expiry", 1)
}

// RFC 3522, Section 3.2 (Eifel): the first ACK after the expiry echoes a timestamp from before the retransmission: the timeout was
// spurious, everything flies again and the controller takes its reduction back.
func TestSpuriousTimeoutByTimestamp(t *testing.T) {
	b := newBench(t)
	b.s.tlp.end = 1
	b.send(5)
	sentAt := b.now
	b.s.tlp.stop()
	b.advance(300 * ms)
	b.wantEvents("expiry", "timeout", "enter")
	b.wantSent("retransmission", 0)
	b.advance(50 * ms)
	b.ackEcho(1, sentAt)
	b.wantEvents("late ACK of the original", "exit", "undo")
	if b.s.q.segs[recLost] != 0 || b.s.stats.undone != 1 {
		t.Fatalf("states %v, stats %+v", b.s.q.segs, b.s.stats)
	}
	b.wantSent("nothing is sent again")
	b.ackEcho(5, sentAt)
}

// RFC 3708 with RFC 2883: all retransmissions reported as duplicates.
func TestSpuriousRecoveryByDSACK(t *testing.T) {
	b := newBench(t, withoutTimestamps)
	b.send(10)
	b.advance(100 * ms)
	b.ack(0, [2]int{1, 4})
	b.wantSent("fast retransmit", 0)
	b.wantEvents("entered", "loss", "enter")
	b.advance(5 * ms)
	b.ack(10) // it was only late
	b.wantEvents("acknowledged", "exit")
	b.advance(100 * ms)
	b.ack(10, [2]int{0, 1})
	b.wantEvents("D-SACK", "undo")
	b.ack(10, [2]int{0, 1})
	b.wantEvents("another D-SACK")
}

// A D-SACK for one of two retransmissions proves nothing yet.
func TestDSACKOfOneOfTwo(t *testing.T) {
	b := newBench(t, withoutTimestamps)
	b.send(10)
	b.advance(100 * ms)
	b.ack(0, [2]int{2, 8})
	b.poll()
	b.advance(100 * ms)
	b.ack(10, [2]int{0, 1})
	b.wantEvents("one of two", "loss", "enter", "exit")
	b.ack(10, [2]int{1, 2})
	b.wantEvents("both", "undo")
}

// What was thought lost arrives before anything was retransmitted.
func TestUndoBeforeRetransmission(t *testing.T) {
	b := newBench(t)
	b.send(10)
	b.advance(100 * ms)
	b.ack(0, [2]int{1, 4})
	b.wantEvents("entered", "loss", "enter")
	b.ack(4)
	b.wantEvents("late original", "exit", "undo")
	b.wantSent("nothing to repair")
}

// RFC 2018, Section 8 and RFC 6675, Section 5.1: the receiver forgets what it SACKed. A short timeout finds out, and everything
// is delivered and counted once.
func TestReneging(t *testing.T) {
	b := newBench(t)
	b.send(6)
	b.advance(100 * ms)
	b.ack(0, [2]int{1, 6})
	b.poll()
	b.advance(100 * ms)
	b.ackEcho(1, b.now) // and no further, though 1 was SACKed
	b.ctl.take()
	b.advance(50 * ms)
	b.wantEvents("reneging", "timeout") // within the recovery
	for n := 1; n < 6; n++ {
		b.poll()
		b.advance(100 * ms)
		b.ackEcho(6, b.now)
	}
	if b.s.una() != 1+6*testMSS || b.s.sampler.delivered != 6*testMSS {
		t.Fatalf("una %d, delivered %d", b.s.una(), b.s.sampler.delivered)
	}
}

// RFC 4821, Section 7.4: a lost probe is sent again in normal segments and is no congestion.
func TestLostMTUProbe(t *testing.T) {
	for _, sack := range []bool{true, false} {
		b := newBench(t)
		if !sack {
			b = newBench(t, withoutSACK)
		}
		b.s.push(1001, 1800)
		var tr transmission
		if !b.s.next(b.now, 1800, &tr) || tr.Len != 1800 {
			t.Fatalf("probe %+v", tr)
		}
		tr.mtuProbe = true
		b.s.sent(b.now, &tr)
		b.s.smallEnd = 0
		for range 5 {
			b.s.push(b.s.pushed()+1000, testMSS)
		}
		b.poll()
		b.advance(100 * ms)
		for i := range 5 {
			in := ackInput{Ack: 1, Edge: keepEdge}
			if sack {
				in.SACK = append(in.SACK, blockAt(1801, 1801+int64(i+1)*testMSS))
			}
			b.s.onAck(b.now, &in)
			b.check()
		}
		b.wantEvents("lost probe")
		ts := b.poll()
		if len(ts) != 2 || ts[0].Start != 1 || ts[0].Len != 1000 || ts[1].Start != 1001 || ts[1].Len != 800 || ts[1].Chunk.Len != 1800 {
			t.Fatalf("sack %v: sent again %+v", sack, ts)
		}
	}
}

// RFC 1191, Section 6.5: a report of a smaller MTU has what was too large sent again at once, without any reduction.
func TestResendLarge(t *testing.T) {
	b := newBench(t)
	b.send(4)
	b.s.setMSS(600)
	b.s.resendLarge(b.now)
	b.check()
	var lens []int
	var tr transmission
	for b.s.next(b.now, 600, &tr) {
		b.s.sent(b.now, &tr)
		b.check()
		lens = append(lens, tr.Len)
	}
	want(t, "lengths", lens, []int{600, 400, 600, 400, 600, 400, 600, 400}, func(a, b int) bool { return a == b })
	b.wantEvents("an MTU report")
	if _, ok := b.s.nextLost(); ok {
		t.Fatal("reported as lost")
	}
}

// The owner hears of losses in the order in which they are found, however long it does not ask.
func TestLostQueueIsBounded(t *testing.T) {
	var s sender
	s.init(clock.Time(time.Second), &Config{Controller: steadyController()}, testMSS, true, true)
	for i := range 1000 {
		s.queueLost(Chunk{ID: int64(i), Start: int64(i), Len: 1})
	}
	last, n := Chunk{ID: -1}, 0
	for c, ok := s.nextLost(); ok; c, ok = s.nextLost() {
		if c.ID <= last.ID {
			t.Fatalf("%v after %v", c, last)
		}
		last = c
		n++
	}
	if last.ID != 999 || n > 4*initialRecords || n == 0 {
		t.Fatalf("%d pieces up to %v", n, last)
	}
}

// An outage of the way back: the receiver has the segment, its ACK was lost, and what it echoes when the retransmission arrives is from
// before the outage (RFC 7323, Section 4.3, rule 2). That pause is no round trip: SRTT, and with it the RTO, must not take it whole.
func TestOutageIsNoRoundTrip(t *testing.T) {
	b := newBench(t)
	b.send(1)
	sentAt := b.now
	b.advance(20 * time.Second)
	b.poll()
	b.advance(100 * ms)
	b.ackEcho(1, sentAt)
	if srtt := b.s.rtt.srtt; srtt > 150*ms {
		t.Errorf("SRTT %v after an outage of 20 s on a path of 100 ms", srtt)
	}
}
