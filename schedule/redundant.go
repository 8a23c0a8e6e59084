package schedule

import (
	"braid/clock"
	"braid/seq"
)

// redundant sends every packet on every subflow, each from its own position in the stream; what is DATA_ACKed is
// skipped. The connection is as fast as its best path and as live as any of them.
type redundant struct {
	position table[int64] // the data offset up to which the subflow has carried or skipped everything
}

// NewRedundant returns the Redundant scheduler.
func NewRedundant() Scheduler { return &redundant{} }

// Plan leaves every subflow in NewData: each carries new data when it is at the front.
func (r *redundant) Plan(_ clock.Time, _ *Queue, views []View, roles []Assignment) clock.Time {
	explainBackups(views, roles)
	return clock.Never
}

// Pick sends copies until the subflow has caught up with the front, then new data.
func (r *redundant) Pick(_ clock.Time, q *Queue, views []View, _ []Assignment, i int) Decision {
	if !usable(views, i) {
		return wait()
	}
	fresh := Wait
	if q.room() {
		fresh = New
	}
	if q.Reinject {
		return Decision{Kind: Reinject, Else: fresh, Wake: clock.Never}
	}
	p := r.position.at(views[i].ID)
	*p = max(*p, q.Acked)
	if q.Copyable && *p < q.Unsent.Start {
		return Decision{Kind: Copy, Else: fresh, From: *p, Wake: clock.Never}
	}
	return send(fresh)
}

// OnSent moves the subflow's position. Reinjected data lies behind it.
func (r *redundant) OnSent(_ clock.Time, id int, kind Kind, d seq.Range) {
	if kind == New || kind == Copy {
		p := r.position.at(id)
		*p = max(*p, d.End)
	}
}

// OnLost leaves lost data to its own subflow: the others carry it anyway.
func (r *redundant) OnLost(clock.Time, int, seq.Range) bool { return false }

// OnGone forgets the subflow.
func (r *redundant) OnGone(id int) { r.position.remove(id) }
