package congestion

import (
	"testing"
	"time"

	"braid/clock"
)

// bbrAt returns a BBR in PROBE_BW, in the given phase of the cycle, on a path of 1000 packets/s and 100 ms, 100 packets in flight.
func bbrAt(t *testing.T, cycle uint8) (*harness, *BBR) {
	t.Helper()
	b := NewBBR(testConfig())
	h := newHarness(t, b)
	b.full, b.mode, b.cycle = true, bbrProbeBW, cycle
	b.bandwidth.add(0, 1000*testMSS)
	b.window = 208 * testMSS
	h.send(100)
	h.advance(h.rtt)
	b.rtprop, b.rtpropStamp, b.srtt, b.seenRTT = h.rtt, h.now, h.rtt, true
	b.phaseStart = h.now
	return h, b
}

// serve acknowledges packets at the path's rate for the given time and keeps the flight at n packets.
func (h *harness) serve(d time.Duration, n int) {
	h.t.Helper()
	for end := h.now.Add(d); h.now.Before(end); {
		h.advance(time.Millisecond)
		if len(h.flight) > 0 {
			h.ack(1)
		}
		for len(h.flight) < n {
			h.send(1)
		}
	}
}

// Before the first RTT the initial window is paced over a nominal millisecond, then over the RTT: 0.99 2/ln 2 10 packets.
func TestBBRInitialPacing(t *testing.T) {
	b := NewBBR(testConfig())
	wantClose(t, "nominal", b.PacingRate(), 0.99*bbrHighGain*10*testMSS/0.001)
	b.OnSend(Send{Bytes: testMSS})
	b.OnSend(Send{Bytes: testMSS, SRTT: 100 * time.Millisecond})
	wantClose(t, "over the RTT", b.PacingRate(), 0.99*2.885390082*10*testMSS/0.1)
	wantClose(t, "rate for schedulers", b.State().SendingRate, 0.99*10*testMSS/0.1)
	if b.Window() != 10*testMSS || !b.OwnsRecovery() || !b.State().Startup {
		t.Fatalf("%+v", b.State())
	}
}

// STARTUP doubles; three rounds of under 25 % growth fill the pipe; DRAIN paces at ln 2 / 2 until a BDP is in flight, then
// PROBE_BW.
func TestBBRStartupAndDrain(t *testing.T) {
	n := &network{}
	f := n.connect("bbr", 1, 0, newBottleneck(100, 50*time.Millisecond, 4, 0, 1))[0]
	b := f.c.(*BBR)
	var phases []string
	for n.now < clock.Time(3*time.Second) {
		n.run(time.Duration(n.now) + time.Millisecond)
		st := b.State()
		if len(phases) == 0 || phases[len(phases)-1] != st.Phase {
			phases = append(phases, st.Phase)
			if st.Phase == "drain" {
				wantClose(t, "drain pacing gain", st.PacingGain, 0.34657359)
				wantClose(t, "drain window gain", st.WindowGain, 2.88539008)
				wantAbout(t, "bandwidth found", st.Bandwidth*8/1e6, 96.53, 0.2)
			}
			if st.Phase == "probe bandwidth" && f.inFlight > 424*pathPayload {
				t.Fatalf("%d packets in flight after drain, want a BDP of 418 and a budget of 6", f.inFlight/pathPayload)
			}
		}
	}
	if len(phases) != 3 || phases[0] != "startup" || phases[1] != "drain" || phases[2] != "probe bandwidth" {
		t.Fatalf("phases %v", phases)
	}
}

func TestBBRFullPipe(t *testing.T) {
	b := NewBBR(testConfig())
	round := func(rate float64, limited, full bool) {
		t.Helper()
		b.bandwidth.best, b.roundStart = rate, true
		b.updateFull(&Sample{AppLimited: limited})
		if b.full != full {
			t.Fatalf("full %v at %v, want %v", b.full, rate, full)
		}
	}
	round(100, false, false)
	round(125, false, false) // 25 % more: grows
	round(150, false, false)
	round(155, false, false)
	round(156.25, false, false) // 25 % above 125: the count starts again
	round(190, true, false)     // application-limited rounds say nothing
	round(190, false, false)
	round(195, false, false)
	round(195, false, true)
}

// Window 2 BDP plus three quanta, an even number; pacing 1 % below gain times bandwidth; the probe gets two packets more.
func TestBBRAnswers(t *testing.T) {
	for _, c := range []struct {
		cycle   uint8
		pacing  float64 // packets/s
		packets float64
	}{{0, 0.99 * 1250, 208}, {1, 0.99 * 750, 206}, {2, 990, 206}, {7, 990, 206}} {
		h, b := bbrAt(t, c.cycle)
		h.send(10) // more than a BDP and its budget in flight: draining goes on
		h.ack(1)
		wantClose(t, "pacing", b.PacingRate()/testMSS, c.pacing)
		h.wantWindow(c.packets, "window")
		wantClose(t, "rate for schedulers", b.State().SendingRate/testMSS, 990)
	}
}

func TestBBRMinimumWindow(t *testing.T) {
	h, b := bbrAt(t, 2)
	b.share = 0.1
	b.bandwidth = maxFilter{best: 5 * testMSS}
	b.pacing = 5 * testMSS
	if b.target() != 500 {
		t.Fatalf("target %d, want a tenth of a packet, and four for the budget and rounding", b.target())
	}
	b.approach(testMSS)
	h.wantWindow(4, "four packets at least")
}

// The cycle: probe until 1.25 BDP is in flight or a loss came, and an RTprop passed; drain until a BDP is in flight; six cruises.
func TestBBRCycle(t *testing.T) {
	h, b := bbrAt(t, 0)
	at := func(cycle uint8, what string) {
		t.Helper()
		if b.cycle != cycle {
			t.Fatalf("%s: phase %d, want %d", what, b.cycle, cycle)
		}
	}
	h.serve(150*time.Millisecond, 110)
	at(0, "110 packets are not 1.25 BDP")
	h.serve(5*time.Millisecond, 134)
	at(1, "the probe is in flight")
	h.serve(50*time.Millisecond, 120)
	at(1, "more than a BDP in flight")
	h.serve(60*time.Millisecond, 120)
	at(2, "an RTprop is the most")
	for i := range uint8(5) {
		h.serve(101*time.Millisecond, 100)
		at(3+i, "cruise")
	}
	h.serve(101*time.Millisecond, 100)
	at(0, "around")
	h.serve(101*time.Millisecond, 100)
	at(0, "probing goes on")
	h.lose(1, 1)
	at(1, "the buffer does not hold the probe")
	h.serve(3*time.Millisecond, 100)
	at(2, "drained at once")
}

// The start of the cycle is random, but never draining.
func TestBBRRandomPhase(t *testing.T) {
	b := NewBBR(testConfig())
	seen := [bbrCycleLength]int{}
	for range 700 {
		b.enterProbeBW(0)
		seen[b.cycle]++
	}
	for cycle, n := range seen {
		if (cycle == 1) != (n == 0) || n > 150 {
			t.Fatalf("starts by phase: %v", seen)
		}
	}
}

// The bandwidth is the maximum of ten rounds; application-limited samples count only if they top it.
func TestBBRBandwidthFilter(t *testing.T) {
	b := NewBBR(testConfig())
	delivered := int64(0)
	round := func(rate float64, limited bool, want float64) {
		t.Helper()
		b.updateBandwidth(&Sample{PriorDelivered: delivered, Delivered: delivered + 1, Interval: 1, AppLimited: limited}, rate)
		delivered++
		wantClose(t, "bandwidth", b.bandwidth.best, want)
	}
	round(100, false, 100)
	for range 9 {
		round(60, false, 100)
	}
	round(60, false, 60)
	for range 30 {
		round(10, true, 60)
	}
	round(70, true, 70)
	b.updateBandwidth(&Sample{PriorDelivered: delivered, Delivered: delivered + 1}, 1000) // no interval: no sample
	wantClose(t, "bandwidth", b.bandwidth.best, 70)
}

// Ten seconds without a smaller RTT: four packets until they are all that is in flight, then 200 ms and a round; then back to the
// window before. What is sent meanwhile does not lower the bandwidth.
func TestBBRProbeRTT(t *testing.T) {
	h, b := bbrAt(t, 2)
	b.rtpropStamp = h.now - clock.Time(10*time.Second)
	h.ack(1)
	if h.c.State().Phase != "probe bandwidth" {
		t.Fatal("ten seconds have not passed")
	}
	before := h.c.Window()
	h.rtt = 120 * time.Millisecond
	h.advance(time.Millisecond)
	h.ack(1)
	h.wantPhase("probe rtt", "the RTT is old")
	h.wantWindow(4, "PROBE_RTT")
	if b.rtprop != h.rtt {
		t.Fatalf("RTprop %v, want the sample that came after the old one expired", b.rtprop)
	}
	for len(h.flight) > 4 {
		h.advance(time.Millisecond)
		h.ack(1)
	}
	drained := h.now
	for h.c.State().ProbeRTT {
		if h.advance(50 * time.Millisecond); len(h.flight) == 0 {
			t.Fatal("empty")
		}
		h.ack(1)
		h.send(1)
	}
	if d := h.now.Sub(drained); d != 250*time.Millisecond { // the first 50 ms step after more than 200 ms
		t.Fatalf("PROBE_RTT lasted %v", d)
	}
	h.wantPhase("probe bandwidth", "after PROBE_RTT")
	if h.c.Window() < before {
		t.Fatalf("window %d, want the %d of before", h.c.Window(), before)
	}
	if b.bandwidth.best != 1000*testMSS {
		t.Fatalf("bandwidth %v after PROBE_RTT", b.bandwidth.best)
	}
}

// Restarting from idle PROBE_RTT waits for data, and the pace is the bandwidth.
func TestBBRRestart(t *testing.T) {
	h, b := bbrAt(t, 0)
	h.ack(100)
	h.advance(30 * time.Second)
	h.c.OnRestart(h.now, 30*time.Second, time.Second)
	wantClose(t, "pacing", b.PacingRate(), 990*testMSS)
	h.send(1)
	h.advance(h.rtt)
	h.ack(1)
	h.wantPhase("probe bandwidth", "the first ACK after idle")
}

// A loss cuts to what is in flight for a round; the window before comes back with the recovery's end.
func TestBBRRecovery(t *testing.T) {
	h, b := bbrAt(t, 2)
	h.ack(1)
	h.send(1)
	h.lose(5, 10)
	h.wantWindow(95, "85 in flight and the 10 acknowledged")
	h.ackLosing(10, 2)
	h.wantWindow(93, "a loss more: still conserving")
	h.advance(h.rtt)
	for len(h.flight) > 0 {
		h.ack(1)
	}
	h.fill()
	h.advance(h.rtt)
	h.ack(1)
	if b.conserve != 0 {
		t.Fatal("packets are conserved beyond the first round")
	}
	window := h.c.Window()
	h.ack(1)
	if h.c.Window() != window+testMSS {
		t.Fatalf("window %d, want slow start from %d", h.c.Window(), window)
	}
	h.recover()
	h.wantWindow(206, "restored")
}

func TestBBRTimeout(t *testing.T) {
	h, b := bbrAt(t, 2)
	h.timeout()
	h.wantWindow(1, "after the timeout")
	h.send(1)
	h.advance(h.rtt)
	h.ack(1)
	h.wantWindow(4, "the floor from the first ACK on")
	if b.bandwidth.best < 1000*testMSS {
		t.Fatal("a timeout forgets no bandwidth")
	}
	h.recover()
	h.wantWindow(208, "restored")
	h.c.OnCongestion(h.now, Penalty, 0)
	h.wantWindow(104, "a penalty halves")
}

func TestBBRUndo(t *testing.T) {
	h, b := bbrAt(t, 2)
	b.full, b.fullRate, b.fullCount = false, 5, 2
	h.lose(5, 10)
	h.c.OnUndo(h.now)
	h.wantWindow(208, "restored")
	if b.fullRate != 0 || b.fullCount != 0 || b.conserve != 0 {
		t.Fatal("STARTUP does not look for the plateau again")
	}
}

// An ACK for the only packet in flight may be a delayed one: it does not replace an expired RTprop.
func TestBBRDelayedAck(t *testing.T) {
	h, b := bbrAt(t, 2)
	h.flight = h.flight[:1]
	b.rtpropStamp -= clock.Time(11 * time.Second)
	h.rtt = 140 * time.Millisecond
	h.ack(1)
	if b.rtprop != 100*time.Millisecond {
		t.Fatalf("RTprop %v", b.rtprop)
	}
}

// Aggregated ACKs: 20 packets at once each 20 ms on 1000 packets/s: 20 beyond what the first instant explains; the window gets them.
func TestBBRAggregation(t *testing.T) {
	h, b := bbrAt(t, 2)
	b.opt.Aggregation = true
	b.aggregation.restart(h.now)
	h.send(100)
	for range 5 {
		h.advance(20 * time.Millisecond)
		h.ack(20)
		h.send(20)
	}
	h.wantWindow(226, "2 BDP, the budget and twenty")
	for range 11 * 200 { // 200 packets are in flight
		h.advance(1100 * time.Microsecond) // below the bandwidth, or the burst would never count as over
		h.ack(1)
		h.send(1)
	}
	if got := b.aggregation.max(); got > 2*testMSS {
		t.Fatalf("%v bytes of aggregation after eleven smooth rounds", got)
	}
}

func TestBBRSmallRateQuantum(t *testing.T) {
	b := NewBBR(testConfig())
	b.pacing = 149_999
	if b.quantum() != 1 {
		t.Fatal("below 1.2 Mbit/s one packet at a time")
	}
	b.pacing = 150_000
	if b.quantum() != 2 {
		t.Fatal("from 1.2 Mbit/s on two packets")
	}
}
