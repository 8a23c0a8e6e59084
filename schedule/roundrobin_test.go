package schedule

import (
	"testing"

	"braid/clock"
	"braid/seq"
)

// ids sends n packets, asking the subflows again and again in the given order, and returns who sent.
func (h *harness) ids(n int, ask ...int) (got []int) {
	h.t.Helper()
	for tries := 0; len(got) < n; tries++ {
		if tries > 10*n {
			h.t.Fatalf("nobody sends after %v", got)
		}
		for _, i := range ask {
			if h.views[i].CanSend && len(got) < n {
				if x := h.send(i); x.kind == New {
					got = append(got, h.views[i].ID)
				}
			}
		}
	}
	return got
}

func wantIDs(t *testing.T, what string, got []int, want ...int) {
	t.Helper()
	for i := range want {
		if len(got) != len(want) || got[i] != want[i] {
			t.Fatalf("%s: %v, want %v", what, got, want)
		}
	}
}

// Each usable subflow takes one packet in turn, whatever the order of asking.
func TestRoundRobin(t *testing.T) {
	h := newHarness(t, NewRoundRobin(), view(30*ms, 1), view(10*ms, 1), view(20*ms, 1))
	wantIDs(t, "asked in order", h.ids(6, 0, 1, 2), 0, 1, 2, 0, 1, 2)
	wantIDs(t, "asked backwards", h.ids(6, 2, 1, 0), 0, 1, 2, 0, 1, 2)
	h.views[1].CanSend = false
	wantIDs(t, "one is full", h.ids(4, 0, 1, 2), 0, 2, 0, 2)
	h.views[1].CanSend = true
	wantIDs(t, "it is back", h.ids(3, 0, 1, 2), 0, 1, 2)
	h.views[0].Backup = true
	wantIDs(t, "a backup rests", h.ids(4, 0, 1, 2), 1, 2, 1, 2)
	h.s.OnGone(2)
	h.views = h.views[:2]
	h.views[0].Backup = false
	wantIDs(t, "the one whose turn it was is gone", h.ids(2, 0, 1), 0, 1)
}

func TestRoundRobinReinject(t *testing.T) {
	h := newHarness(t, NewRoundRobin(), view(30*ms, 1), view(10*ms, 1))
	h.q.Reinject = true
	h.want("rr", "reinjection comes first")
	if x := h.send(1); x.kind != Reinject {
		t.Fatalf("%+v, want a reinjection", x)
	}
	h.want("nw", "a reinjection takes no turn")
	h.q.Edge = h.q.Unsent.Start
	h.want("ww", "no room")
	if h.s.OnLost(h.now, 0, seq.Range{}) || h.plan() != clock.Never {
		t.Fatal("Round-Robin neither offers lost data nor plans")
	}
}
