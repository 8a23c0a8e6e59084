package schedule

import (
	"testing"

	"braid/clock"
	"braid/seq"
)

// Every subflow carries every packet, each from its own position; what is DATA_ACKed is skipped.
func TestRedundant(t *testing.T) {
	h := newHarness(t, NewRedundant(), view(10*ms, 1), view(50*ms, 1))
	packet := func(i int64) seq.Range { return seq.Range{Start: 1 + i*testMSS, End: 1 + (i+1)*testMSS} }
	want := func(i int, kind Kind, r seq.Range) {
		t.Helper()
		if x := h.send(i); x.kind != kind || x.r != r {
			t.Fatalf("subflow %d sends %+v, want %d %v", i, x, kind, r)
		}
	}
	for i := range int64(3) {
		want(0, New, packet(i))
	}
	h.q.Copyable = true
	want(1, Copy, packet(0))
	want(1, Copy, packet(1))
	h.q.Copyable = false
	want(0, New, packet(3)) // subflow 0 carries all itself
	h.q.Acked = packet(3).Start
	h.q.Copyable = true
	want(1, Copy, packet(3)) // 2 was acknowledged meanwhile
	h.q.Copyable = false
	want(1, New, packet(4)) // at the front
	h.q.Copyable = true
	want(0, Copy, packet(4))
	want(0, New, packet(5))
}

func TestRedundantElse(t *testing.T) {
	h := newHarness(t, NewRedundant(), view(10*ms, 1), view(50*ms, 1))
	h.send(0)
	h.q.Copyable = true
	if d := h.pick(1); d.Kind != Copy || d.Else != New {
		t.Fatalf("%+v, want a copy, else new data", d)
	}
	h.q.Edge = h.q.Unsent.Start
	if d := h.pick(1); d.Kind != Copy || d.Else != Wait {
		t.Fatalf("%+v, want a copy, else nothing: no room", d)
	}
	h.views[1].Backup = true
	h.want("ww", "a backup carries no copies") // RFC 8684, Section 3.3.8
	h.views[1].Backup = false
	h.q.Reinject = true
	h.want("rr", "reinjection comes first")
	h.s.OnGone(1)
	if h.s.OnLost(h.now, 0, seq.Range{}) || h.plan() != clock.Never {
		t.Fatal("Redundant neither offers lost data nor plans")
	}
}
