package schedule

import (
	"math"

	"braid/clock"
)

// rank orders subflows by how far they may be used; only those of the lowest rank present are.
//
// RFC 8684, Section 3.3.8: a backup subflow carries data only when no regular one is usable (REL-08). Usable is what is
// established and not timed out; where nothing is, a regular subflow that timed out is still better than silence.
func rank(v *View) int {
	r := 0
	if v.Backup {
		r++
	}
	if v.TimedOut {
		r += 2
	}
	return r
}

// lowestRank returns the lowest rank present: that of the subflows that may carry data.
func lowestRank(views []View) int {
	lowest := math.MaxInt
	for i := range views {
		lowest = min(lowest, rank(&views[i]))
	}
	return lowest
}

// usable reports whether subflow views[i] may carry data at all, given the others.
func usable(views []View, i int) bool {
	own := rank(&views[i])
	if own == 0 {
		return true
	}
	for j := range views {
		if rank(&views[j]) < own {
			return false
		}
	}
	return true
}

// room reports whether new data waits that the peer has room for.
func (q *Queue) room() bool { return q.Waiting > 0 && q.Unsent.Start < q.Edge }

// blocked reports whether new data waits that the peer has no room for.
func (q *Queue) blocked() bool { return q.Waiting > 0 && q.Unsent.Start >= q.Edge }

// faster reports whether a has the smaller smoothed RTT; no sample counts as slower than any, ties go to the lower ID.
func faster(a, b *View) bool {
	if (a.SRTT > 0) != (b.SRTT > 0) {
		return a.SRTT > 0
	}
	if a.SRTT != b.SRTT {
		return a.SRTT < b.SRTT
	}
	return a.ID < b.ID
}

// wait is the decision to send nothing until something happens.
func wait() Decision { return Decision{Kind: Wait, Wake: clock.Never} }

// send is the decision to send the given kind.
func send(k Kind) Decision { return Decision{Kind: k, Wake: clock.Never} }

// table is a small map from subflow IDs to values, in the order in which they came; iterating it is deterministic.
type table[T any] struct {
	ids    []int
	values []T
}

// at returns the value of a subflow, the zero value if it is new. The pointer is good until the next call.
func (t *table[T]) at(id int) *T {
	for i, x := range t.ids {
		if x == id {
			return &t.values[i]
		}
	}
	var zero T
	t.ids = append(t.ids, id)
	t.values = append(t.values, zero)
	return &t.values[len(t.values)-1]
}

// remove forgets a subflow.
func (t *table[T]) remove(id int) {
	for i, x := range t.ids {
		if x == id {
			t.ids = append(t.ids[:i], t.ids[i+1:]...)
			t.values = append(t.values[:i], t.values[i+1:]...)
			return
		}
	}
}

// stamp is a time that may not have come yet.
type stamp struct {
	set bool
	at  clock.Time
}

// explainBackups says of resting backup subflows why they rest.
func explainBackups(views []View, roles []Assignment) {
	for i := range views {
		if views[i].Backup && !usable(views, i) {
			roles[i].Reason = ReasonBackup
		}
	}
}
