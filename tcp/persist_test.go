package tcp

import (
	"testing"
	"time"

	"braid/clock"
)

// windowUpdate takes an ACK of n segments with a window of w bytes.
func (b *bench) windowUpdate(n int, w int64) {
	b.t.Helper()
	ack := 1 + int64(n)*testMSS
	b.s.onAck(b.now, &ackInput{Ack: ack, Edge: ack + w})
	b.check()
}

// TCP-13 (RFC 9293, Section 3.8.6.1): the first probe after one RTO, then exponentially later, for as long as they are answered.
func TestZeroWindowProbes(t *testing.T) {
	b := newBench(t)
	b.send(2)
	b.advance(100 * ms)
	b.windowUpdate(2, 0)
	if b.s.canSend(b.now) {
		t.Fatal("can send into a closed window")
	}
	b.s.push(5000, testMSS)
	b.wantSent("closed window")
	for i, wait := range []time.Duration{300 * ms, 600 * ms, 1200 * ms, 2400 * ms} {
		b.advance(wait - 1)
		if b.s.wantsWindowProbe(b.now) {
			t.Fatalf("probe %d too early", i)
		}
		b.advance(1)
		if !b.s.wantsWindowProbe(b.now) {
			t.Fatalf("no probe %d after %v", i, wait)
		}
		b.s.windowProbeSent(b.now)
		if b.s.wantsWindowProbe(b.now) {
			t.Fatal("two probes at once")
		}
		b.windowUpdate(2, 0) // answered: still closed
	}
	b.windowUpdate(2, 5000)
	b.wantSent("opened", 2)
	if b.s.persist.at != clock.Never || b.s.persist.backoff != 0 {
		t.Fatalf("persist timer still runs: %+v", b.s.persist)
	}
	if n := b.s.persist.probes; n != 4 {
		t.Errorf("%d probes counted", n)
	}
}

// Answered probes keep the connection for ever, unanswered ones do not (R2, RFC 9293, Section 3.8.3).
func TestZeroWindowGiveUp(t *testing.T) {
	for _, answered := range []bool{true, false} {
		b := newBench(t)
		b.windowUpdate(0, 0)
		b.s.push(1, testMSS)
		b.poll()
		gaveUp := false
		for range 60 {
			at := b.s.nextTimeout()
			if at == clock.Never {
				t.Fatal("no timer runs")
			}
			b.now = at
			if gaveUp = b.s.timeout(b.now); gaveUp {
				break
			}
			if b.s.wantsWindowProbe(b.now) {
				b.s.windowProbeSent(b.now)
				if answered {
					b.windowUpdate(0, 0)
				}
			}
		}
		if gaveUp == answered {
			t.Fatalf("answered %v, gave up %v at %v", answered, gaveUp, b.now)
		}
		if gaveUp && b.now < clock.Time(giveUpAfter) {
			t.Fatalf("gave up after %v", b.now)
		}
	}
}

// RFC 9293, Section 3.8.6.2.1: a small window is not used at once, but after the override timeout.
func TestSillyWindowAvoidance(t *testing.T) {
	b := newBench(t)
	b.s.maxWindow = 4000
	b.windowUpdate(0, 300)
	b.s.push(1, testMSS)
	b.wantSent("a window of 300 bytes")
	b.advance(300 * ms)
	ts := b.poll()
	if len(ts) != 1 || ts[0].Len != 300 || ts[0].Chunk.Len != testMSS {
		t.Fatalf("after the override timeout: %+v", ts)
	}
	b = newBench(t)
	b.s.maxWindow = 1000
	b.windowUpdate(0, 500)
	b.s.push(1, testMSS)
	if ts := b.poll(); len(ts) != 1 || ts[0].Len != 500 {
		t.Fatalf("half of the largest window: %+v", ts)
	}
}

// WIN-08: the connection-level window forbids all the owner has: probes as if it were the subflow's.
func TestBlockedOwnerProbes(t *testing.T) {
	b := newBench(t)
	b.s.setBlocked(true)
	b.advance(300 * ms)
	if !b.s.wantsWindowProbe(b.now) {
		t.Fatal("no probe")
	}
	b.s.windowProbeSent(b.now)
	b.s.setBlocked(false)
	if at := b.s.nextTimeout(); at != clock.Never {
		t.Fatalf("a timer runs at %v", at)
	}
	b.s.setBlocked(true)
	b.send(1) // something outstanding will bring an ACK
	if b.s.persist.at != clock.Never {
		t.Fatal("the timer runs beside the retransmission timer")
	}
}

// RFC 9293, Section 3.8.6: a window that shrinks below what was sent stops new data only; retransmissions go on and the
// connection lives while the peer answers.
func TestWindowShrinks(t *testing.T) {
	b := newBench(t)
	b.send(5)
	b.advance(100 * ms)
	b.windowUpdate(1, 0)
	b.s.push(9000, testMSS)
	b.wantSent("closed")
	for range 30 {
		b.now = b.s.nextTimeout()
		if b.s.timeout(b.now) {
			t.Fatal("gave up although the peer answers")
		}
		if b.s.backoffs() > 0 {
			b.poll()
			b.windowUpdate(1, 0)
		}
	}
	b.windowUpdate(5, 10000)
	b.wantSent("open again", 5)
}

// TCP-14 (RFC 9293, Section 3.8.6.2.1): the last of the data leaves if all of it fits into a window of less than a segment, and does not wait for
// the persist timer.
func TestTailLeavesThroughASmallWindow(t *testing.T) {
	b := newBench(t)
	b.send(2)
	b.advance(100 * ms)
	b.windowUpdate(2, 0)
	b.s.setMore(true)
	for _, c := range []struct {
		tail, window int64
		want         bool
	}{{100, 99, false}, {100, 100, true}, {0, 100, false}, {testMSS + 1, 100, false}, {0, testMSS, true}} {
		b.s.tail = c.tail
		b.windowUpdate(2, c.window)
		if got := b.s.canSend(b.now); got != c.want {
			t.Errorf("%d bytes to send, window %d: can send %t", c.tail, c.window, got)
		}
		if closed := b.s.windowClosed(); closed == c.want {
			t.Errorf("%d bytes to send, window %d: closed %t", c.tail, c.window, closed)
		}
	}
}
