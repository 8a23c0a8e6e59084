package tcp

import (
	"testing"
	"time"

	"braid/clock"
	"braid/congestion"
)

// last returns the newest sample that the controller got.
func (b *bench) last() *congestion.Sample {
	b.t.Helper()
	if len(b.ctl.samples) == 0 {
		b.t.Fatal("no sample")
	}
	return &b.ctl.samples[len(b.ctl.samples)-1]
}

// draft-cheng-iccrg-delivery-rate-estimation-02, Section 3.1: the longer of send and ACK interval.
func TestDeliveryRate(t *testing.T) {
	b := newBench(t)
	for range 10 { // a segment every 10 ms
		b.send(1)
		b.advance(10 * ms)
	}
	b.ack(1) // 100 ms after its sending; nothing was delivered before it
	s := b.last()
	if s.Interval != 100*ms || s.Delivered != 1000 || s.PriorDelivered != 0 || !s.RoundStart {
		t.Fatalf("first sample %+v", s)
	}
	for n := 2; n <= 10; n++ {
		b.advance(10 * ms)
		b.ack(n)
	}
	s = b.last() // of segment 9, sent at 90 ms: the ten segments took 100 ms from the first ACK's sending time
	if s.PriorDelivered != 0 || s.Delivered != 10000 {
		t.Fatalf("tenth sample %+v", s)
	}
	// Sent 90 ms after the first; delivered in the 190 ms since sending began.
	if s.Interval != 190*ms {
		t.Fatalf("interval %v, want 190ms", s.Interval)
	}
	// A steady flow: one out for one acknowledged.
	for range 10 {
		b.send(1)
		b.advance(10 * ms)
	}
	for n := 11; n <= 40; n++ {
		b.ack(n)
		b.send(1)
		b.advance(10 * ms)
	}
	if s = b.last(); s.Rate() < 90e3 || s.Rate() > 110e3 {
		t.Fatalf("rate %v, want about 100 kB/s: %+v", s.Rate(), s)
	}
}

// ACK compression: many ACKs in an instant do not make a high rate, because the send interval is longer.
func TestDeliveryRateOfCompressedACKs(t *testing.T) {
	b := newBench(t)
	for range 10 {
		b.send(1)
		b.advance(10 * ms)
	}
	b.advance(100 * ms)
	for n := 1; n <= 10; n++ {
		b.ack(n)
		if r := b.last().Rate(); r > 101e3 {
			t.Fatalf("ACK %d: rate %v from a flow of 100 kB/s", n, r)
		}
	}
}

// An interval shorter than the minimum RTT cannot be true: the sample is dropped (as Linux does).
func TestShortIntervalIsDiscarded(t *testing.T) {
	var m sampler
	m.begin(0)
	var r record
	r.size = 1000
	m.stamp(&r, 0, 1)
	m.start()
	m.deliver(&r)
	var out congestion.Sample
	m.finish(clock.Time(50*ms), 1000, 100*ms, &out)
	if out.Interval != 0 || out.Rate() != 0 {
		t.Fatalf("interval %v", out.Interval)
	}
}

// Of several records delivered by one ACK the sample is the one sent last, not the one with the highest sequence number.
func TestSampleOfTheNewestTransmission(t *testing.T) {
	b := newBench(t)
	b.send(10)
	b.advance(100 * ms)
	b.ack(0, [2]int{1, 4})
	b.wantSent("fast retransmit", 0)
	b.advance(100 * ms)
	b.ack(10)
	if s := b.last(); !s.Retransmission || s.PriorDelivered != 3000 {
		t.Fatalf("sample %+v, want the retransmission's", s)
	}
}

// Section 3.2: samples of packets sent while the application had nothing more are marked, and no others.
func TestApplicationLimited(t *testing.T) {
	b := newBench(t)
	b.s.setMore(true)
	b.send(2) // more follows: not limited
	b.s.setMore(false)
	b.poll()
	b.send(2) // sent after the sender ran dry
	b.advance(100 * ms)
	b.ack(2)
	if b.last().AppLimited {
		t.Fatal("sent while there was more, yet marked")
	}
	b.ack(4)
	if !b.last().AppLimited {
		t.Fatal("not marked")
	}
	b.s.setMore(true)
	b.send(1)
	b.advance(100 * ms)
	b.ack(5)
	b.send(20) // the bubble has been delivered: not limited any more
	b.advance(100 * ms)
	b.s.setMore(false)
	b.poll() // nothing to send, but the window is full
	b.ack(25)
	if b.last().AppLimited {
		t.Fatal("still marked")
	}
	b.s.setMore(true)
	b.send(1)
	b.advance(100 * ms)
	b.ack(26)
	if b.last().AppLimited {
		t.Fatal("marked although the window was full when the application had nothing more")
	}
}

// A round ends when a packet sent after its beginning is acknowledged.
func TestRounds(t *testing.T) {
	b := newBench(t)
	rounds := 0
	for n := range 5 {
		b.send(4)
		b.advance(100 * ms)
		for k := 1; k <= 4; k++ {
			b.ack(4*n + k)
			if b.last().RoundStart {
				rounds++
			}
		}
	}
	if rounds != 5 {
		t.Fatalf("%d rounds, want 5", rounds)
	}
}

// Weighted bytes: what was delivered since the sampled packet left, each byte with the weight of its transmission.
func TestWeightedDelivery(t *testing.T) {
	b := newBench(t)
	b.ctl.weight = 2
	b.send(1)
	b.ctl.weight = 1.5
	b.send(1)
	b.advance(100 * ms)
	b.ack(1)
	if s := b.last(); s.Weighted != 2000 {
		t.Fatalf("weighted %v, want 2000", s.Weighted)
	}
	b.ctl.weight = 4
	b.send(1)
	b.ack(2)
	if s := b.last(); s.Weighted != 3500 {
		t.Fatalf("weighted %v, want 3500", s.Weighted)
	}
	b.advance(100 * ms)
	b.ack(3)
	if s := b.last(); s.Weighted != 5500 {
		t.Fatalf("weighted %v, want what came after 1000 bytes: 1500 + 4000", s.Weighted)
	}
}

// The sample's counts agree with the sender's.
func TestSampleCounts(t *testing.T) {
	b := newBench(t)
	b.send(10)
	b.advance(100 * ms)
	b.ack(2)
	s := b.last()
	if s.Acked != 2000 || s.Lost != 0 || s.PriorInFlight != 10000 || s.InFlight != 8000 || s.RTT != 100*ms || s.InRecovery {
		t.Fatalf("cumulative: %+v", s)
	}
	b.ack(2, [2]int{3, 6})
	s = b.last()
	if s.Acked != 3000 || s.Lost != 1000 || s.PriorInFlight != 8000 || s.InFlight != 4000 || !s.InRecovery {
		t.Fatalf("SACK and loss: %+v", s)
	}
	n := len(b.ctl.samples)
	b.ack(2, [2]int{3, 6})
	if len(b.ctl.samples) != n {
		t.Fatal("an ACK that tells nothing was reported")
	}
}

// RTO-03 (Karn, RFC 6298, Section 3): no sample from retransmitted data without timestamps; with them the echo is one.
func TestKarn(t *testing.T) {
	for _, ts := range []bool{false, true} {
		b := newBench(t, withoutTimestamps)
		if ts {
			b = newBench(t)
		}
		b.s.tlp.end = 1
		b.send(1)
		b.s.tlp.stop()
		b.advance(300 * ms)
		b.wantSent("timeout", 0)
		sent := b.now
		b.advance(100 * ms)
		before := b.s.rtt
		b.ackEcho(1, sent)
		if got := b.s.rtt != before; got != ts {
			t.Fatalf("timestamps %v: sample taken %v", ts, got)
		}
		if b.last().RTT > 0 {
			t.Fatalf("the controller got an RTT of %v", b.last().RTT)
		}
	}
}

// The window limited sending in the last round, or more than half of it was used.
func TestWindowLimited(t *testing.T) {
	b := newBench(t)
	b.send(5)
	b.advance(100 * ms)
	b.ack(5)
	if b.last().WindowLimited {
		t.Fatal("5 of 20 segments, yet limited")
	}
	b.send(20)
	b.advance(100 * ms)
	b.ack(25)
	if !b.last().WindowLimited {
		t.Fatal("the window was full, yet not limited")
	}
	b.send(3)
	b.advance(100 * ms)
	b.ack(28)
	if b.last().WindowLimited {
		t.Fatal("still limited a round later")
	}
}

// The time since the last transmission is reported before the first one after idleness, and only then.
func TestRestart(t *testing.T) {
	b := newBench(t)
	b.send(2)
	b.advance(100 * ms)
	b.ack(1)
	b.send(1)
	b.advance(100 * ms)
	b.ack(3)
	b.advance(2 * time.Second)
	b.send(2)
	want(t, "idle times", b.ctl.restarts, []time.Duration{2100 * ms}, func(a, b time.Duration) bool { return a == b })
}
