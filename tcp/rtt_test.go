package tcp

import (
	"testing"
	"time"

	"braid/clock"
)

const ms = time.Millisecond

// RFC 6298, Section 2, with numbers worked out by hand.
func TestRTTEstimator(t *testing.T) {
	var e rttEstimator
	e.init(&Config{})
	if e.rto() != time.Second { // Section 2.1
		t.Fatalf("RTO %v before the first sample", e.rto())
	}
	steps := []struct {
		sample         time.Duration
		perRTT         int64
		srtt, variance time.Duration
		rto            time.Duration
	}{
		{100 * ms, 1, 100 * ms, 50 * ms, 300 * ms},                           // Section 2.2; the floor of 200 ms equals K*RTTVAR
		{180 * ms, 1, 110 * ms, 57500 * time.Microsecond, 340 * ms},          // 50+(80-50)/4, 100+80/8
		{110 * ms, 1, 110 * ms, 43125 * time.Microsecond, 310 * ms},          // 57.5-57.5/4 = 43.125: the floor holds
		{190 * ms, 10, 111 * ms, 44046875 * time.Nanosecond, 311 * ms},       // gains divided by 10 (RFC 7323, Appendix G)
		{0, 1, 111 * ms, 44046875 * time.Nanosecond, 311 * ms},               // no sample
		{-5 * ms, 1, 111 * ms, 44046875 * time.Nanosecond, 311 * ms},         // nor this
		{911 * ms, 1, 211 * ms, 233035156 * time.Nanosecond, 1143140624 * 1}, // 44.046875+(800-44.046875)/4 = 233.035156
	}
	for i, st := range steps {
		e.sample(st.sample, st.perRTT)
		if e.srtt != st.srtt || e.variation != st.variance || e.rto() != st.rto {
			t.Fatalf("step %d: srtt %v rttvar %v rto %v, want %v %v %v", i, e.srtt, e.variation, e.rto(), st.srtt, st.variance, st.rto)
		}
	}
}

// RFC 6298, Section 5.5 and 2.5: doubling, with a ceiling of 60 s.
// The recent RTT follows its samples however many a round trip brings: an eighth of the difference each.
func TestRecentRTT(t *testing.T) {
	var e rttEstimator
	e.init(&Config{})
	for i, st := range []struct{ sample, want time.Duration }{
		{100 * ms, 100 * ms}, {180 * ms, 110 * ms}, {190 * ms, 120 * ms}, {0, 120 * ms}, {40 * ms, 110 * ms},
	} {
		e.sample(st.sample, 50)
		if e.recent != st.want {
			t.Errorf("step %d: %v, want %v", i, e.recent, st.want)
		}
	}
}

func TestRTOBackOff(t *testing.T) {
	var e rttEstimator
	e.init(&Config{})
	for n, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		if got := e.backedOff(n); got != want*time.Second {
			t.Errorf("back-off %d: %v, want %v s", n, got, int(want))
		}
	}
	if got := e.backedOff(1000000); got != time.Minute {
		t.Errorf("back-off far beyond the ceiling: %v", got)
	}
	e.init(&Config{MinRTO: time.Second, MaxRTO: 100 * time.Second, InitialRTO: 3 * time.Second})
	if e.rto() != 3*time.Second {
		t.Errorf("configured initial timeout: %v", e.rto())
	}
	e.sample(10*ms, 1)
	if e.rto() != 1010*ms {
		t.Errorf("configured floor: %v", e.rto())
	}
}

// The minimum forgets after five minutes at the latest and remembers for half of that at least.
func TestMinRTT(t *testing.T) {
	var m minRTT
	at := func(sec int) clock.Time { return clock.Time(time.Duration(sec) * time.Second) }
	steps := []struct {
		sec          int
		sample, want time.Duration
	}{
		{0, 50 * ms, 50 * ms},
		{1, 40 * ms, 40 * ms},
		{2, 60 * ms, 40 * ms},
		{3, 0, 40 * ms},
		{140, 55 * ms, 40 * ms},
		{151, 55 * ms, 40 * ms}, // a new half begins
		{299, 52 * ms, 40 * ms},
		{302, 58 * ms, 52 * ms}, // the first half is forgotten
		{303, 45 * ms, 45 * ms},
		{453, 70 * ms, 45 * ms},
		{604, 80 * ms, 70 * ms},
	}
	for _, s := range steps {
		m.sample(at(s.sec), s.sample)
		if m.value != s.want {
			t.Fatalf("at %d s: %v, want %v", s.sec, m.value, s.want)
		}
	}
}
