package schedule

import (
	"testing"
	"time"

	"braid/clock"
	"braid/seq"
)

const (
	testMSS = 1000
	ms      = time.Millisecond
)

// harness is a connection as a scheduler sees it: views and a queue that the test shapes, and a sender that obeys the answers as
// mptcp would.
type harness struct {
	t     testing.TB
	s     Scheduler
	now   clock.Time
	q     Queue
	views []View
	roles []Assignment
	sent  []sent // what was sent, in order
	holes seq.Set
}

type sent struct {
	id   int
	kind Kind
	r    seq.Range
}

// newHarness has the given subflows and a hundred packets to send in a window of two hundred.
func newHarness(t testing.TB, s Scheduler, views ...View) *harness {
	h := &harness{t: t, s: s, now: clock.Time(time.Second), views: views}
	for i := range h.views {
		v := &h.views[i]
		v.ID = i
		v.CanSend = true
		v.MSS = testMSS
		v.Oldest = clock.Never
		if v.Window == 0 {
			v.Window = 10 * testMSS
		}
	}
	h.q = Queue{Edge: 1 + 200*testMSS, Acked: 1, Window: 200 * testMSS, Holder: -1}
	h.write(100)
	h.plan()
	return h
}

// view is a regular subflow with the given RTT and rate in packets per second.
func view(rtt time.Duration, packets float64) View {
	return View{SRTT: rtt, MinRTT: rtt, Rate: packets * testMSS, Bandwidth: packets * testMSS}
}

// write lets the application add n packets.
func (h *harness) write(n int) {
	if h.q.Unsent.End == 0 {
		h.q.Unsent = seq.Range{Start: 1, End: 1}
	}
	h.holes.Add(seq.Range{Start: h.q.Unsent.End, End: h.q.Unsent.End + int64(n)*testMSS})
	h.q.Unsent.End += int64(n) * testMSS
	h.settle()
}

func (h *harness) settle() {
	h.q.Waiting = h.holes.Len()
	h.q.Unsent.Start = h.q.Unsent.End
	if h.holes.Count() > 0 {
		h.q.Unsent.Start = h.holes.At(0).Start
	}
}

func (h *harness) plan() clock.Time {
	h.roles = make([]Assignment, len(h.views))
	return h.s.Plan(h.now, &h.q, h.views, h.roles)
}

func (h *harness) advance(d time.Duration) {
	h.now = h.now.Add(d)
	h.plan()
}

// pick asks for subflow i.
func (h *harness) pick(i int) Decision { return h.s.Pick(h.now, &h.q, h.views, h.roles, i) }

// send asks for subflow i, obeys and returns what was sent; Wait if nothing.
func (h *harness) send(i int) sent {
	d := h.pick(i)
	x, ok := h.obey(i, d.Kind, d)
	if !ok && d.Kind != Wait && d.Else != Wait {
		x, ok = h.obey(i, d.Else, Decision{})
	}
	if !ok {
		return sent{id: i, kind: Wait}
	}
	h.sent = append(h.sent, x)
	h.s.OnSent(h.now, x.id, x.kind, x.r)
	return x
}

func (h *harness) obey(i int, k Kind, d Decision) (sent, bool) {
	switch k {
	case New:
		r, ok := h.unsent(d.From, int64(d.Skip)*testMSS)
		if ok {
			h.holes.Remove(r)
			h.settle()
		}
		return sent{i, New, r}, ok
	case Copy:
		if r := (seq.Range{Start: max(d.From, h.q.Acked), End: h.q.Unsent.Start}); !r.Empty() {
			r.End = min(r.End, r.Start+testMSS)
			return sent{i, Copy, r}, true
		}
	case Reinject:
		if h.q.Reinject {
			h.q.Reinject = false
			return sent{i, Reinject, seq.Range{Start: 1, End: 1 + testMSS}}, true
		}
	}
	return sent{}, false
}

// unsent returns the packet of unsent data at or after from that leaves skip bytes of it.
func (h *harness) unsent(from, skip int64) (seq.Range, bool) {
	for k := range h.holes.Count() {
		r := h.holes.At(k)
		r.Start = max(r.Start, from)
		if r.Empty() {
			continue
		}
		if n := min(skip, r.Len()); n > 0 {
			skip -= n
			r.Start += n
		}
		if skip == 0 && !r.Empty() && r.Start < h.q.Edge {
			r.End = min(r.End, r.Start+testMSS)
			return r, true
		}
	}
	return seq.Range{}, false
}

// want asks for each subflow and compares kinds with a string of one letter each: w(ait), n(ew), r(einject), c(opy).
func (h *harness) want(kinds, what string) {
	h.t.Helper()
	got := ""
	for i := range h.views {
		if !h.views[i].CanSend {
			got += "-"
			continue
		}
		got += string("wnrc"[h.pick(i).Kind])
	}
	if got != kinds {
		h.t.Fatalf("%s: %s, want %s", what, got, kinds)
	}
}

// wantRoles compares roles with a string: n(ew data), r(edundant).
func (h *harness) wantRoles(roles, what string) {
	h.t.Helper()
	got := ""
	for _, r := range h.roles {
		got += string("nr"[r.Role])
	}
	if got != roles {
		h.t.Fatalf("%s: %s, want %s", what, got, roles)
	}
}
