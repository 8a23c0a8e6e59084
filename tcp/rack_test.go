package tcp

import (
	"testing"
	"time"

	"braid/clock"
)

// RFC 8985, Section 6.2, step 4: RACK_update_reo_wnd.
func TestReorderingWindow(t *testing.T) {
	tests := []struct {
		name       string
		reordering bool
		recovering bool
		sacked     int32
		multiplier int
		want       time.Duration
	}{
		{"nothing seen, little SACKed", false, false, 2, 1, 10 * ms},
		{"three SACKed", false, false, 3, 1, 0},
		{"in recovery", false, true, 1, 1, 0},
		{"reordering seen, three SACKed", true, false, 3, 1, 10 * ms},
		{"reordering seen, in recovery", true, true, 5, 2, 20 * ms},
		{"at most SRTT", true, false, 0, 9, 50 * ms},
	}
	for _, tt := range tests {
		var k rack
		k.init()
		k.reordering, k.multiplier = tt.reordering, tt.multiplier
		k.update(tt.recovering, tt.sacked, 40*ms, 50*ms)
		if k.window != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, k.window, tt.want)
		}
	}
}

// RACK-04: the multiplier grows once per round trip with D-SACKs and falls back after 16 recoveries.
func TestReorderingWindowAdapts(t *testing.T) {
	var k rack
	k.init()
	k.onDSACK(1000)
	k.onDSACK(1500)
	if k.multiplier != 2 {
		t.Fatalf("multiplier %d after two D-SACKs in one round", k.multiplier)
	}
	k.advance(999)
	k.onDSACK(1600)
	if k.multiplier != 2 {
		t.Fatalf("multiplier %d: the round has not ended", k.multiplier)
	}
	k.advance(1000)
	k.onDSACK(2000)
	if k.multiplier != 3 {
		t.Fatalf("multiplier %d in the second round", k.multiplier)
	}
	for i := range rackPersist {
		if k.multiplier != 3 {
			t.Fatalf("multiplier %d after %d recoveries", k.multiplier, i)
		}
		k.onRecoveryExit()
	}
	if k.multiplier != 1 {
		t.Fatalf("multiplier %d after 16 recoveries", k.multiplier)
	}
}

// RACK-05: a segment sent before the newest delivered one is lost when RTT and window have passed; the timer finds it if no
// further ACK comes.
func TestRACKTimer(t *testing.T) {
	b := newBench(t)
	b.send(2)
	b.advance(100 * ms)
	b.ack(0, [2]int{1, 2})
	b.wantEvents("within the window") // minimum RTT 100 ms: the window is 25 ms
	if b.s.rack.deadline == clock.Never {
		t.Fatal("no timer")
	}
	b.advance(24 * ms)
	b.wantEvents("still within")
	b.advance(8 * ms)
	b.wantEvents("timer", "loss", "enter")
	b.wantSent("fast retransmit", 0)
}

// Reordering within the window is no loss, and it is remembered.
func TestRACKToleratesReordering(t *testing.T) {
	b := newBench(t)
	b.send(2)
	b.advance(100 * ms)
	b.ack(0, [2]int{1, 2})
	b.advance(20 * ms)
	b.ack(2)
	b.advance(50 * ms)
	b.wantEvents("reordering")
	if !b.s.rack.reordering {
		t.Fatal("reordering was not noticed")
	}
	b.send(6)
	b.advance(100 * ms)
	b.ack(2, [2]int{3, 8}) // five SACKed: no longer enough
	b.wantEvents("more reordering than DupThresh")
	b.advance(20 * ms)
	b.ack(8)
	b.wantEvents("and it arrives")
}

// A retransmission is lost when something sent after it arrives and its own time is over.
func TestRACKFindsLostRetransmission(t *testing.T) {
	b := newBench(t)
	b.send(10)
	b.advance(100 * ms)
	b.ack(0, [2]int{1, 5})
	b.wantSent("fast retransmit", 0)
	b.advance(1 * ms)
	b.ack(0, [2]int{1, 10})
	b.send(1) // sent after the retransmission
	b.advance(100 * ms)
	b.ack(0, [2]int{1, 11})
	b.advance(10 * ms)
	b.wantSent("again", 0)
	b.wantEvents("one reduction", "loss", "enter")
}

// RACK-02: an ACK that may be for the first transmission tells nothing about the second.
func TestRACKSkipsAmbiguous(t *testing.T) {
	b := newBench(t)
	b.send(10)
	b.advance(100 * ms)
	b.ack(0, [2]int{1, 4})
	b.wantSent("fast retransmit", 0)
	before := b.s.rack
	b.advance(10 * ms)
	b.ackEcho(1, b.now, [2]int{1, 4}) // sooner than any round trip
	if b.s.rack.sentAt != before.sentAt || b.s.rack.rtt != before.rtt {
		t.Fatalf("took a sample of 10 ms: %+v", b.s.rack)
	}
}

// Transmissions are ordered by time, those of an instant by sequence.
func TestSentAfter(t *testing.T) {
	tests := []struct {
		t1   clock.Time
		end1 int64
		t2   clock.Time
		end2 int64
		want bool
	}{{2, 1, 1, 5, true}, {1, 5, 2, 1, false}, {1, 5, 1, 4, true}, {1, 4, 1, 5, false}, {1, 4, 1, 4, false}}
	for _, tt := range tests {
		if got := sentAfter(tt.t1, tt.end1, tt.t2, tt.end2); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}
