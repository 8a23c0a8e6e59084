package schedule

import (
	"testing"

	"braid/clock"
	"braid/seq"
)

// New data goes to the smallest RTT among those that can send, whoever is asked first.
func TestMinRTT(t *testing.T) {
	h := newHarness(t, NewMinRTT(), view(30*ms, 1), view(10*ms, 1), view(20*ms, 1))
	h.want("wnw", "all can send")
	h.views[1].CanSend = false
	h.want("w-n", "the fastest is full")
	h.views[2].CanSend = false
	h.want("n--", "only the slowest is left")
	h.views = h.views[:1]
	h.q.Waiting = 0
	h.want("w", "nothing to send")
}

func TestMinRTTTies(t *testing.T) {
	h := newHarness(t, NewMinRTT(), view(0, 1), view(20*ms, 1), view(20*ms, 1))
	h.want("wnw", "equal RTTs: the lower ID; no RTT yet: last")
	h.views[1].CanSend, h.views[2].CanSend = false, false
	h.want("n--", "a subflow without RTT sample is used when it alone can send")
}

// RFC 8684, Section 3.3.8 (REL-08): backups carry data only when no regular subflow is usable.
func TestMinRTTBackup(t *testing.T) {
	h := newHarness(t, NewMinRTT(), view(100*ms, 1), view(10*ms, 1))
	h.views[1].Backup = true
	h.plan()
	h.want("nw", "a regular subflow is there")
	if h.roles[1].Reason != ReasonBackup {
		t.Fatalf("reason %d, want ReasonBackup", h.roles[1].Reason)
	}
	h.views[0].CanSend = false
	h.want("-w", "the regular subflow's window is full: it is usable all the same")
	h.views[0].CanSend, h.views[0].TimedOut = true, true
	h.want("wn", "the regular subflow timed out")
	h.q.Reinject = true
	h.want("wr", "reinjection goes to the backup too")
	h.views[1].TimedOut = true
	h.q.Reinject = false
	h.want("nw", "all timed out: the regular one again")
}

func TestMinRTTReinjectsFirst(t *testing.T) {
	h := newHarness(t, NewMinRTT(), view(10*ms, 1), view(20*ms, 1))
	h.q.Reinject = true
	h.want("rr", "reinjection comes first on whoever may carry it")
	if d := h.pick(0); d.Else != New {
		t.Fatalf("the fastest does %+v, want new data if the reinjection is gone", d)
	}
	if d := h.pick(1); d.Else != Wait {
		t.Fatalf("the slower one does %+v, want to wait if the reinjection is gone", d)
	}
}

func TestMinRTTWindow(t *testing.T) {
	h := newHarness(t, NewMinRTT(), view(10*ms, 1), view(90*ms, 1))
	h.q.Edge = h.q.Unsent.Start
	h.q.Holder, h.q.Copyable = 1, true
	h.want("ww", "the peer's window is full; no options")
}

// NSDI 2012, Sections 4.1 and 4.2: a full window's oldest data is on the slow subflow: copy it, and halve that subflow's window
// once an RTT.
func TestMinRTTOpportunistic(t *testing.T) {
	h := newHarness(t, NewMinRTTWith(MinRTTOptions{Opportunistic: true, Penalise: true}), view(10*ms, 1), view(90*ms, 1))
	h.want("nw", "the window is open")
	h.q.Edge = h.q.Unsent.Start
	h.q.Holder, h.q.Copyable = 1, true
	if d := h.pick(0); d.Kind != Copy || !d.Penalise {
		t.Fatalf("%+v, want a copy and a penalty", d)
	}
	if d := h.pick(0); d.Kind != Copy || d.Penalise {
		t.Fatalf("%+v, want a copy and no second penalty within an RTT", d)
	}
	h.now = h.now.Add(10 * ms)
	if d := h.pick(0); !d.Penalise {
		t.Fatalf("%+v, want a penalty after an RTT", d)
	}
	h.views[1].SRTT = 35 * ms
	h.views[1].Window = 20 * testMSS
	h.want("ww", "RTTs within a factor of four, window not small: no copy")
	h.views[1].Window = 4 * testMSS
	h.want("cw", "a window of four packets")
	h.q.Holder = 0
	h.want("ww", "its own data")
	h.q.Holder = -1
	h.want("ww", "the holder is gone")
	h.s.OnGone(0)
	h.s.OnSent(h.now, 0, New, seq.Range{})
	if h.s.OnLost(h.now, 0, seq.Range{}) || h.plan() != clock.Never {
		t.Fatal("minRTT neither offers lost data nor plans")
	}
}
