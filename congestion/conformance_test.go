package congestion

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"braid/clock"
)

// events makes arbitrary sequences of events that a TCP could report.
type events struct {
	now       clock.Time
	delivered int64
	inFlight  int64
	weight    float64
	srtt      time.Duration
	recovery  bool
}

func newEvents(*rapid.T, Controller) *events { return &events{weight: 1} }

// step draws an event and gives it to each controller.
func (e *events) step(t *rapid.T, cs ...Controller) {
	e.now = e.now.Add(time.Duration(rapid.Int64Range(0, int64(3*time.Second)).Draw(t, "advance")))
	kind := rapid.SampledFrom([]string{"send", "ack", "ack", "ack", "loss", "ecn", "timeout", "penalty", "enter", "exit", "restart", "undo", "mss"}).Draw(t, "event")
	each := func(f func(Controller)) {
		for _, c := range cs {
			f(c)
		}
	}
	switch kind {
	case "send":
		n := rapid.Int64Range(1, 100).Draw(t, "packets")
		for range n {
			s := Send{Now: e.now, Bytes: testMSS, InFlight: e.inFlight, SRTT: e.srtt}
			each(func(c Controller) { e.weight = c.OnSend(s) })
			if !(e.weight > 0) || math.IsInf(e.weight, 0) {
				t.Fatalf("weight %v", e.weight)
			}
			e.inFlight += testMSS
		}
	case "ack":
		s := e.ack(t)
		each(func(c Controller) { x := s; c.OnAck(&x) })
	case "loss", "ecn", "timeout", "penalty":
		cause := map[string]Cause{"loss": Loss, "ecn": ECN, "timeout": Timeout, "penalty": Penalty}[kind]
		each(func(c Controller) { c.OnCongestion(e.now, cause, e.inFlight) })
	case "enter":
		e.recovery = true
		each(func(c Controller) { c.OnRecoveryEnter(e.now, e.inFlight) })
	case "exit":
		e.recovery = false
		each(func(c Controller) { c.OnRecoveryExit(e.now, e.inFlight) })
	case "restart":
		idle := time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "idle"))
		e.now = e.now.Add(idle)
		each(func(c Controller) { c.OnRestart(e.now, idle, time.Second) })
	case "undo":
		each(func(c Controller) { c.OnUndo(e.now) })
	case "mss":
		mss := rapid.IntRange(1, 9000).Draw(t, "mss")
		each(func(c Controller) { c.OnMSS(mss) })
	}
}

func (e *events) ack(t *rapid.T) Sample {
	bytes := rapid.Int64Range(0, 1<<21)
	s := Sample{
		Now: e.now, PriorInFlight: e.inFlight, Acked: min(bytes.Draw(t, "acked"), e.inFlight),
		Interval: time.Duration(rapid.Int64Range(-1, int64(time.Second)).Draw(t, "interval")),
		RTT:      time.Duration(rapid.Int64Range(-1, int64(time.Second)).Draw(t, "rtt")),
	}
	s.Lost = min(bytes.Draw(t, "lost"), e.inFlight-s.Acked)
	e.inFlight -= s.Acked + s.Lost
	prior := min(bytes.Draw(t, "prior"), e.delivered)
	s.PriorDelivered = e.delivered - prior
	e.delivered += s.Acked
	s.Delivered, s.InFlight = e.delivered, e.inFlight
	s.Weighted = float64(s.Delivered - s.PriorDelivered)
	if s.RTT > 0 {
		e.srtt = s.RTT
	}
	s.SRTT, s.MinRTT = e.srtt, e.srtt/2
	s.AppLimited = rapid.Bool().Draw(t, "app limited")
	s.RoundStart = rapid.Bool().Draw(t, "round")
	s.WindowLimited = rapid.Bool().Draw(t, "window limited")
	s.InRecovery = e.recovery
	return s
}

// Whatever happens in whatever order, the window is at least a packet and finite, the rate finite, not negative, and positive where the
// controller paces; every state has a name.
func TestConformance(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			newGroup, err := ByName(name)
			if err != nil {
				t.Fatal(err)
			}
			rapid.Check(t, func(t *rapid.T) {
				g := newGroup()
				n := rapid.IntRange(1, 3).Draw(t, "subflows")
				cs := make([]Controller, n)
				es := make([]*events, n)
				for i := range cs {
					cs[i] = g.Join(i, testConfig())
					es[i] = newEvents(t, cs[i])
				}
				for range rapid.IntRange(1, 60).Draw(t, "events") {
					i := rapid.IntRange(0, n-1).Draw(t, "subflow")
					es[i].step(t, cs[i])
					checkAnswers(t, cs[i])
					if rapid.IntRange(0, 9).Draw(t, "group event") == 0 {
						g.Silence(i, rapid.Bool().Draw(t, "silent"))
					}
				}
				g.Leave(0)
				for i := 1; i < n; i++ {
					es[i].step(t, cs[i])
					checkAnswers(t, cs[i])
				}
			})
		})
	}
}

func checkAnswers(t *rapid.T, c Controller) {
	w, rate, st := c.Window(), c.PacingRate(), c.State()
	if w < 1 || w > maximumWindow {
		t.Fatalf("window %d", w)
	}
	if b, ok := c.(interface{ packet() int64 }); ok && w < b.packet() {
		t.Fatalf("window %d below a packet of %d", w, b.packet())
	}
	if math.IsNaN(rate) || math.IsInf(rate, 0) || rate < 0 || c.OwnsRecovery() && rate == 0 {
		t.Fatalf("pacing rate %v", rate)
	}
	for _, x := range []float64{st.Bandwidth, st.SendingRate, st.PacingGain, st.WindowGain} {
		if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
			t.Fatalf("state %+v", st)
		}
	}
	if st.Phase == "" || st.Threshold < 0 {
		t.Fatalf("state %+v", st)
	}
}

func (w *window) packet() int64 { return w.mss }
func (b *BBR) packet() int64    { return b.mss }

func TestByName(t *testing.T) {
	if !slices.IsSorted(Names()) {
		t.Errorf("names %v are not sorted", Names())
	}
	_, err := ByName("vegas")
	if err == nil {
		t.Fatal("an unknown name is known")
	}
	for _, name := range Names() {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%q does not list %s", err, name)
		}
	}
}

func TestJoinTwice(t *testing.T) {
	for _, name := range []string{"lia", "olia", "balia", "coupledbbr", "coupledbbr-cycle"} {
		newGroup, _ := ByName(name)
		g := newGroup()
		g.Join(1, testConfig())
		g.Leave(7) // nobody
		g.Silence(7, true)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: a second member of the same id is accepted", name)
				}
			}()
			g.Join(1, testConfig())
		}()
	}
}

// An idle connection's controllers are small.
func TestMemory(t *testing.T) {
	for name, size := range map[string]uintptr{
		"bbr": unsafe.Sizeof(BBR{}), "coupledbbr": unsafe.Sizeof(CoupledBBR{}), "cubic": unsafe.Sizeof(Cubic{}), "newreno": unsafe.Sizeof(NewReno{}),
	} {
		t.Logf("%-10s %d bytes", name, size)
		if size > 640 {
			t.Errorf("%s holds %d bytes", name, size)
		}
	}
}

// bench runs a controller as a busy subflow does: a packet sent, a packet acknowledged.
func bench(name string) (step func()) {
	newGroup, _ := ByName(name)
	g := newGroup()
	c := g.Join(0, testConfig())
	g.Join(1, testConfig())
	now := clock.Time(0)
	s := Sample{
		Interval: 50 * time.Millisecond, PriorInFlight: 100 * testMSS, InFlight: 99 * testMSS, Acked: testMSS,
		RTT: 50 * time.Millisecond, SRTT: 50 * time.Millisecond, MinRTT: 50 * time.Millisecond, WindowLimited: true, Weighted: 100 * testMSS,
	}
	return func() {
		now += clock.Time(500 * time.Microsecond)
		c.OnSend(Send{Now: now, Bytes: testMSS, InFlight: 99 * testMSS, SRTT: s.SRTT})
		s.Now = now
		s.Delivered += testMSS
		s.PriorDelivered = s.Delivered - 100*testMSS
		c.OnAck(&s)
		_ = c.Window() + int64(c.PacingRate())
	}
}

func TestAllocations(t *testing.T) {
	for _, name := range Names() {
		if n := testing.AllocsPerRun(5000, bench(name)); n != 0 {
			t.Errorf("%s allocates %v times a packet", name, n)
		}
	}
}

func BenchmarkOnAck(b *testing.B) {
	for _, name := range Names() {
		b.Run(name, func(b *testing.B) {
			step := bench(name)
			b.ReportAllocs()
			for b.Loop() {
				step()
			}
		})
	}
}
