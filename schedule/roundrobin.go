package schedule

import (
	"braid/clock"
	"braid/seq"
)

// roundRobin gives each usable subflow one packet in turn (quantum 1), passing over those that cannot send now. The
// turn is by ID, from the subflow that last took new data on.
type roundRobin struct {
	last int // ID of the subflow that took the last packet of new data
}

// NewRoundRobin returns the Round-Robin scheduler.
func NewRoundRobin() Scheduler { return &roundRobin{last: -1} }

// Plan leaves every subflow in NewData.
func (r *roundRobin) Plan(_ clock.Time, _ *Queue, views []View, roles []Assignment) clock.Time {
	explainBackups(views, roles)
	return clock.Never
}

// Pick gives the next packet to the subflow whose turn it is; whoever else asks waits for it.
func (r *roundRobin) Pick(_ clock.Time, q *Queue, views []View, roles []Assignment, i int) Decision {
	if !usable(views, i) {
		return wait()
	}
	kind := Wait
	if q.room() && r.turn(views, i, nil) {
		kind = New
	}
	if q.Reinject {
		return Decision{Kind: Reinject, Else: kind, Wake: clock.Never}
	}
	return send(kind)
}

// turn reports whether views[i] is the first after the last one, going round by ID, of those that can send. roles, if not nil,
// leaves redundant subflows out.
func (r *roundRobin) turn(views []View, i int, roles []Assignment) bool {
	for j := range views {
		if j == i || !views[j].CanSend || !usable(views, j) || roles != nil && roles[j].Role == Redundant {
			continue
		}
		if r.before(views[j].ID, views[i].ID) {
			return false
		}
	}
	return true
}

// before reports whether a's turn comes before b's.
func (r *roundRobin) before(a, b int) bool {
	if (a > r.last) != (b > r.last) {
		return a > r.last
	}
	return a < b
}

// OnSent passes the turn on.
func (r *roundRobin) OnSent(_ clock.Time, id int, kind Kind, _ seq.Range) {
	if kind == New {
		r.last = id
	}
}

// OnLost leaves lost data to its own subflow.
func (r *roundRobin) OnLost(clock.Time, int, seq.Range) bool { return false }

// OnGone keeps the turn: it is a number, not a subflow.
func (r *roundRobin) OnGone(int) {}
