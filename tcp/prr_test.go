package tcp

import (
	"testing"

	"pgregory.net/rapid"
)

// RFC 6937, Section 3 and the example of its Section 5 (RFC 9937, Section 6.2): 20 segments in flight, the first lost,
// ssthresh 10: a segment leaves for every second ACK, the fast retransmit at once.
func TestPRRProportional(t *testing.T) {
	var p prr
	const s = testMSS
	p.start(10*s, 20*s)
	inFlight := int64(16 * s) // one lost, three SACKed
	sent := 0
	for ack := 1; ack <= 16; ack++ {
		if ack > 1 {
			inFlight -= s
		}
		p.onAck(s, inFlight, s, false)
		for inFlight+s <= p.window {
			inFlight += s
			p.sent(s)
			sent++
		}
		want := max(1, ack/2) // counted in bytes: a segment leaves when two halves are there
		if inFlight <= 10*s { // at the target it conserves packets
			continue
		}
		if sent != want {
			t.Fatalf("after %d ACKs %d segments were sent, want %d", ack, sent, want)
		}
	}
	if inFlight != 10*s {
		t.Fatalf("in flight %d at the end of the round, want the target", inFlight)
	}
}

// RFC 9937, Section 6.2: below the target conservation only if more is being lost, one segment more per ACK if not.
func TestPRRReductionBounds(t *testing.T) {
	const s = testMSS
	tests := []struct {
		name     string
		safe     bool
		inFlight int64
		acked    int64
		want     int64 // what may leave
	}{
		{"conservative", false, 4 * s, s, s},
		{"slow start", true, 4 * s, s, 2 * s},
		{"up to the target", true, 9 * s, 5 * s, s},
		{"at the target", true, 10 * s, s, 0},
	}
	for _, tt := range tests {
		var p prr
		p.start(10*s, 20*s)
		p.onAck(s, 4*s, s, false)
		p.sent(s)
		p.onAck(tt.acked, tt.inFlight, s, tt.safe)
		if got := p.window - tt.inFlight; got != tt.want {
			t.Errorf("%s: %d may leave, want %d", tt.name, got, tt.want)
		}
	}
}

// The fast retransmit leaves whatever the proportion says.
func TestPRRFirstRetransmit(t *testing.T) {
	var p prr
	p.start(testMSS, 1000*testMSS)
	p.onAck(testMSS, 900*testMSS, testMSS, false)
	if p.window != 901*testMSS {
		t.Fatalf("window %d, want one segment more than is in flight", p.window)
	}
}

// A recovery never sends more than was delivered in it plus a segment per ACK, nor lets more fly than the target once below it.
func TestPRRBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const s = testMSS
		base := rapid.Int64Range(1, 1000).Draw(t, "base") * s
		target := rapid.Int64Range(2, 1000).Draw(t, "target") * s
		var p prr
		p.start(target, base)
		inFlight, delivered, sent, acks := base, int64(0), int64(0), int64(0)
		for range rapid.IntRange(1, 300).Draw(t, "acks") {
			acked := min(rapid.Int64Range(0, 4).Draw(t, "acked")*s, inFlight)
			lost := min(rapid.Int64Range(0, 2).Draw(t, "lost")*s, inFlight-acked)
			inFlight -= acked + lost
			delivered += acked
			acks++
			p.onAck(acked, inFlight, s, lost == 0)
			if p.window < inFlight {
				t.Fatalf("window %d is less than the %d in flight", p.window, inFlight)
			}
			if first := sent == 0; inFlight <= target && p.window > target && !(first && p.window <= inFlight+s) {
				t.Fatalf("window %d lets more fly than the target %d", p.window, target)
			}
			for inFlight+s <= p.window && rapid.Bool().Draw(t, "send") {
				inFlight += s
				sent += s
				p.sent(s)
			}
			if sent > delivered+acks*s {
				t.Fatalf("%d sent, %d delivered in %d ACKs", sent, delivered, acks)
			}
		}
	})
}

func TestCeilMulDiv(t *testing.T) {
	for _, tt := range [][4]int64{{0, 5, 3, 0}, {1, 1, 2, 1}, {7, 3, 7, 3}, {1 << 40, 1 << 40, 1 << 40, 1 << 40}, {10, 10, 3, 34}} {
		if got := ceilMulDiv(tt[0], tt[1], tt[2]); got != tt[3] {
			t.Errorf("ceil(%d*%d/%d) = %d, want %d", tt[0], tt[1], tt[2], got, tt[3])
		}
	}
	if got := ceilMulDiv(1<<62, 1<<62, 1); got <= 1<<40 {
		t.Errorf("overflow gives %d", got)
	}
}
