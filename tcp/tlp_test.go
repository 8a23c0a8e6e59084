package tcp

import (
	"testing"
	"time"

	"braid/clock"
)

// RFC 8985, Section 7.2: the probe timeout.
func TestTailProbeTimeout(t *testing.T) {
	b := newBench(t)
	b.send(2)
	if d := b.s.tlp.deadline.Sub(b.now); d != 200*ms+tlpTimerSlack {
		t.Fatalf("two segments: %v", d)
	}
	b.advance(100 * ms)
	b.ack(2)
	if b.s.tlp.deadline != clock.Never {
		t.Fatal("a timer with nothing outstanding")
	}
	b.send(1) // a delayed ACK must be waited for, but never beyond the RTO
	if b.s.tlp.deadline != b.s.rtoAt {
		t.Fatalf("one segment: %v, RTO at %v", b.s.tlp.deadline, b.s.rtoAt)
	}
	b.s.rtt = rttEstimator{initial: 3 * time.Second, ceiling: time.Minute}
	if d := b.s.tlpTimeout(); d != time.Second {
		t.Fatalf("without a sample: %v", d)
	}
}

// Section 7.3: with new data at hand the probe is new data, else the last segment again; one probe at a time, and the
// retransmission timer starts afresh.
func TestTailProbe(t *testing.T) {
	b := newBench(t)
	b.send(3)
	b.advance(202 * ms)
	if !b.s.canSend(b.now) {
		t.Fatal("the probe does not want new data")
	}
	b.wantSent("nothing new: the last segment", 2)
	if b.s.rtoAt != b.now.Add(300*ms) {
		t.Fatalf("RTO at %v, now %v", b.s.rtoAt, b.now)
	}
	b.advance(290 * ms)
	b.wantSent("no second probe")
	b.wantEvents("a probe")

	b = newBench(t)
	b.ctl.window = 3 * testMSS
	b.s.refresh(b.now)
	b.send(3)
	b.s.push(9999, testMSS)
	b.wantSent("window full")
	b.advance(202 * ms)
	b.wantSent("new data in spite of the window", 3)
}

// Section 7.4.2: what an ACK of the probe means.
func TestTailProbeOutcome(t *testing.T) {
	tests := []struct {
		name string
		ack  func(b *bench)
		want []string
	}{
		{"the tail was lost, the probe repaired it", func(b *bench) {
			b.ack(3)
			b.send(1)
			b.advance(100 * ms)
			b.ack(4)
		}, []string{"loss"}},
		{"both arrived: D-SACK", func(b *bench) {
			b.ack(3, [2]int{2, 3})
			b.send(1)
			b.advance(100 * ms)
			b.ack(4)
		}, nil},
		{"both arrived: a duplicate ACK without SACK", func(b *bench) {
			b.ack(3)
			b.send(1)
			b.ack(3)
			b.advance(100 * ms)
			b.ack(4)
		}, nil},
		{"earlier segments were lost too: the probe's SACK starts recovery", func(b *bench) {
			b.ack(0, [2]int{2, 3})
			b.advance(30 * ms)
		}, []string{"loss", "enter"}},
	}
	for _, tt := range tests {
		b := newBench(t)
		b.send(3)
		b.advance(202 * ms)
		b.wantSent(tt.name, 2)
		b.advance(100 * ms)
		tt.ack(b)
		b.wantEvents(tt.name, tt.want...)
	}
}

// Section 7.2: no probe in recovery, with SACKed data, or without SACK.
func TestNoTailProbe(t *testing.T) {
	b := newBench(t)
	b.send(10)
	b.advance(100 * ms)
	b.ack(0, [2]int{1, 2})
	if b.s.tlp.deadline != clock.Never {
		t.Fatal("a timer in disorder")
	}
	b.ack(0, [2]int{1, 5})
	b.poll()
	b.send(1)
	if b.s.tlp.deadline != clock.Never {
		t.Fatal("a timer in recovery")
	}
	b = newBench(t, withoutSACK)
	b.send(10)
	if b.s.tlp.deadline != clock.Never {
		t.Fatal("a timer without SACK")
	}
}
