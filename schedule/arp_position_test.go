package schedule

import (
	"math"
	"testing"

	"braid/clock"
	"braid/seq"
)

// A = (Q + max(inflight, x RTprop)) / x - RTprop / 2. 1000 packets/s, RTprop 50 ms: 50 packets fill the path.
func TestArrival(t *testing.T) {
	for _, c := range []struct {
		what    string
		change  func(*View)
		seconds float64
	}{
		{"an empty path: half the RTT", func(*View) {}, 0.025},
		{"a full path: the same", func(v *View) { v.InFlight = 50 * testMSS }, 0.025},
		{"ten packets of queue", func(v *View) { v.InFlight = 60 * testMSS }, 0.035},
		{"ten retransmissions", func(v *View) { v.Retrans = 10 * testMSS }, 0.035},
		{"PROBE_RTT: four packets an RTT, 80 packets/s", func(v *View) { v.ProbeRTT, v.InFlight = true, 4*testMSS }, 0.025},
		{"PROBE_RTT with 50 packets in flight", func(v *View) { v.ProbeRTT, v.InFlight = true, 50*testMSS }, 0.6},
		{"the RTT grew to 54 ms: noise", func(v *View) { v.InFlight, v.SRTT = 50*testMSS, 54*ms }, 0.025},
		{"the RTT grew to 200 ms: the rate is out of date", func(v *View) { v.InFlight, v.SRTT = 50*testMSS, 200*ms }, 0.175},
		{"no rate", func(v *View) { v.Rate = 0 }, math.Inf(1)},
	} {
		v := view(50*ms, 1000)
		v.MSS = testMSS
		c.change(&v)
		if got := new(forecast).arrival(&v); got != c.seconds && math.Abs(got-c.seconds) > 1e-9 {
			t.Errorf("%s: %v s, want %v", c.what, got, c.seconds)
		}
	}
}

// 1000 packets/s at 20 ms beside 1000 packets/s at 60 ms: a packet on the slow one arrives 20 ms later; 20 packets overtake it.
func TestOvertake(t *testing.T) {
	s, _ := ByName("p")
	h := newHarness(t, s(), view(20*ms, 1000), view(60*ms, 1000))
	if d := h.pick(0); d.Kind != New || d.Skip != 0 {
		t.Fatalf("fast: %+v, want the next packet", d)
	}
	if d := h.pick(1); d.Kind != New || d.Skip != 20 {
		t.Fatalf("slow: %+v, want to leave 20 packets", d)
	}
	h.views[0].InFlight = 50 * testMSS // 30 packets of queue: now the fast one is 10 ms later
	if d := h.pick(0); d.Kind != New || d.Skip != 10 {
		t.Fatalf("fast with a queue: %+v, want to leave 10 packets", d)
	}
	h.views[0].InFlight = 0
	h.q.Edge = h.q.Unsent.Start + 20*testMSS
	h.want("nw", "beyond the window edge it waits")
	h.q.Edge += testMSS
	h.want("nn", "one packet more")
	h.q.Waiting = 20 * testMSS
	h.want("nw", "everything left will be sent by the fast one")
	h.roles[0].Role = Redundant
	if d := h.pick(1); d.Skip != 0 {
		t.Fatalf("%+v: redundant subflows overtake nobody", d)
	}
}

// What waits for reinjection on the fast subflow goes before the packets that overtake.
func TestOvertakeBehindRepairs(t *testing.T) {
	s, _ := ByName("p")
	h := newHarness(t, s(), view(20*ms, 1000), view(60*ms, 1000))
	for _, c := range []struct{ repairs, skip int }{{0, 20}, {5, 15}, {20, 0}, {50, 0}} {
		h.q.Repairs = int64(c.repairs * testMSS)
		if d := h.pick(1); d.Kind != New || d.Skip != c.skip {
			t.Errorf("%d packets to repair: %+v, want to leave %d", c.repairs, d, c.skip)
		}
	}
	h.q.Reinject = true
	if d := h.pick(1); d.Kind != Reinject {
		t.Fatalf("%+v: what this subflow may repair it does itself", d)
	}
}

func TestOvertakeInfinite(t *testing.T) {
	s, _ := ByName("p")
	h := newHarness(t, s(), view(20*ms, 1000), view(60*ms, 0))
	h.want("nw", "no rate: everything overtakes it")
	h.views[0].Rate = 0
	h.want("nn", "nobody has a rate")
}

// While all subflows are in startup, Round-Robin.
func TestOpening(t *testing.T) {
	for _, name := range []string{"arp", "arp-paper", "p", "p-paper"} {
		s, _ := ByName(name)
		h := newHarness(t, s(), mbit(20*ms, 1), mbit(40*ms, 1))
		h.q.Opening = true
		wantIDs(t, name, h.ids(4, 0, 1), 0, 1, 0, 1)
	}
}

// AR without P: the smallest RTT within N.
func TestNextInN(t *testing.T) {
	s, _ := ByName("ar-paper")
	h := newHarness(t, s(), mbit(10*ms, 1), mbit(12*ms, 1))
	h.wantRoles("nn", "near")
	h.want("nw", "the faster first")
	h.roles[0].Role = Redundant
	h.q.Copyable = true
	h.want("cn", "copies in R")
	h.q.Copyable = false
	h.q.Reinject = true
	h.want("rr", "reinjection first")
}

// Data found lost is offered if another live subflow would deliver it sooner.
func TestOfferLost(t *testing.T) {
	h := newHarness(t, NewARP(DefaultARP()), mbit(20*ms, 10), mbit(60*ms, 10))
	if h.s.OnLost(h.now, 0, h.q.Unsent) {
		t.Fatal("lost on the fast subflow: the slow one is no help")
	}
	if !h.s.OnLost(h.now, 1, h.q.Unsent) {
		t.Fatal("lost on the slow subflow: the fast one helps")
	}
	// 1250 packets/s: 20 ms of advantage are 25 packets.
	packet := seq.Range{Start: 1, End: 1 + testMSS}
	taken := 0
	h.pick(0)
	for h.s.OnLost(h.now, 1, packet) {
		taken++
	}
	if rate := h.views[0].Rate / testMSS; math.Abs(float64(taken)-0.02*rate) > 1 {
		t.Fatalf("%d packets offered, want as many as the fast one brings sooner: %.0f", taken, 0.02*rate)
	}
	h.q.Repairs = 0
	h.pick(0)
	if !h.s.OnLost(h.now, 1, packet) {
		t.Fatal("those have been sent")
	}
	h.s.OnGone(0)
	h.views = h.views[1:]
	h.plan()
	if h.s.OnLost(h.now, 1, h.q.Unsent) {
		t.Fatal("nobody else is left")
	}
	s, _ := ByName("arp-paper")
	h = newHarness(t, s(), mbit(20*ms, 10), mbit(60*ms, 10))
	if h.s.OnLost(h.now, 1, h.q.Unsent) {
		t.Fatal("the paper's scheduler offers nothing")
	}
}

// Han et al., Algorithm 3. 1000 packets/s each, RTT 10 and 20 ms: packet j on the fast one arrives at 5 + j ms, on the slow one at
// 10 + j ms: packets 0 to 4 to the fast one, then, ties to the lower ID, 5 to it too, and 6 to the slow one, in turn.
func TestAssigned(t *testing.T) {
	s, _ := ByName("p-paper")
	h := newHarness(t, s(), view(10*ms, 1000), view(20*ms, 1000))
	// W = 20 ms x 2000 packets/s = 40 packets.
	if d := h.pick(1); d.Kind != New || d.From != 1+6*testMSS {
		t.Fatalf("slow: %+v, want its first packet to be number 6", d)
	}
	a := h.s.(*arp)
	if a.plan.total != 40*testMSS {
		t.Fatalf("%d bytes assigned, want the scheduling window of 40 packets", a.plan.total)
	}
	for k := range int64(6) {
		if x := h.send(0); x.r.Start != 1+k*testMSS {
			t.Fatalf("fast: %+v, want packet %d", x, k)
		}
	}
	if x := h.send(1); x.r.Start != 1+6*testMSS {
		t.Fatalf("slow: %+v, want packet 6", x)
	}
	if x := h.send(0); x.r.Start != 1+7*testMSS {
		t.Fatalf("fast: %+v, want packet 7", x)
	}
	h.pick(0)
	if a.plan.total != 40*testMSS {
		t.Fatalf("%d bytes assigned after sending, want 40 packets again", a.plan.total)
	}
	h.s.OnGone(1)
	h.views = h.views[:1]
	h.plan()
	for k := int64(8); k < 30; k++ { // what was assigned to the other comes back, in order
		if x := h.send(0); x.r.Start != 1+k*testMSS {
			t.Fatalf("alone: %+v, want packet %d", x, k)
		}
	}
}

// At least two bursts of two packets a subflow, however small rate and RTT are.
func TestAssignedLeast(t *testing.T) {
	s, _ := ByName("p-paper")
	h := newHarness(t, s(), view(ms, 1), view(ms, 1))
	h.pick(0)
	if got := h.s.(*arp).plan.total; got != 8*testMSS {
		t.Fatalf("%d bytes assigned, want 8 packets", got)
	}
	h.q.Edge = 1
	h.want("ww", "assigned data beyond the window edge waits")
}

// Data assigned to a subflow that was sent by another, or is not unsent any more, is forgotten.
func TestAssignedHeals(t *testing.T) {
	s, _ := ByName("p-paper")
	h := newHarness(t, s(), view(10*ms, 1000), view(20*ms, 1000))
	d := h.pick(1)
	taken := seq.Range{Start: d.From, End: d.From + 3*testMSS}
	h.holes.Remove(taken)
	h.settle()
	h.s.OnSent(h.now, 0, New, taken)
	if d := h.pick(1); d.From < taken.End {
		t.Fatalf("%+v was sent by the other", d)
	}
	h.holes.Remove(seq.Range{Start: 1, End: 1 + 50*testMSS})
	h.settle()
	for i := range 2 {
		if d := h.pick(i); d.Kind == New && d.From < h.q.Unsent.Start {
			t.Fatalf("%+v, but the first unsent offset is %d", d, h.q.Unsent.Start)
		}
	}
}

// A subflow that leaves N gives back what was assigned to it at once.
func TestAssignedRelease(t *testing.T) {
	h := newHarness(t, NewARP(ARPOptions{Position: PositionAssigned, Overdue: true}), view(10*ms, 1000), view(20*ms, 1000))
	h.pick(0)
	h.views[0].Overdue = true
	h.plan()
	if d := h.pick(1); d.From != 1 {
		t.Fatalf("%+v, want what was given back first", d)
	}
	seen := map[int64]bool{}
	for range 40 {
		x := h.send(1)
		if x.kind != New || seen[x.r.Start] {
			t.Fatalf("%+v", x)
		}
		seen[x.r.Start] = true
	}
	for k := range int64(30) {
		if !seen[1+k*testMSS] {
			t.Fatalf("packet %d was assigned to the overdue subflow and never sent", k)
		}
	}
	if again := h.s.Plan(h.now, &h.q, h.views, h.roles); again == clock.Never {
		t.Fatal("overdue subflows need a timer")
	}
}
