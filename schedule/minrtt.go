package schedule

import (
	"braid/clock"
	"braid/seq"
)

// MinRTTOptions are the parts of minRTT that can be switched on.
type MinRTTOptions struct {
	// Opportunistic lets a fast subflow retransmit the oldest data of a slow one when the shared receive window is full, and
	// Penalise halves the slow one's window then (Raiciu et al., "How Hard Can It Be?", NSDI 2012, Sections 4.1 and 4.2; the
	// Linux out-of-tree v0.9x). Penalise without Opportunistic does nothing.
	Opportunistic, Penalise bool
}

// minRTT is the usual scheduler, Linux's v0.9x default and upstream's in spirit: new data goes to the subflow with the
// smallest smoothed RTT among those that can send.
//
// The answer for a subflow does not depend on the order in which subflows are asked: it is New exactly for the
// fastest of those that can send now.
type minRTT struct {
	opt     MinRTTOptions
	penalty table[stamp] // when the subflow last had another one penalised
}

// NewMinRTT returns the minRTT scheduler without options.
func NewMinRTT() Scheduler { return NewMinRTTWith(MinRTTOptions{}) }

// NewMinRTTWith returns the minRTT scheduler.
func NewMinRTTWith(opt MinRTTOptions) Scheduler { return &minRTT{opt: opt} }

// Plan leaves every subflow in NewData.
func (m *minRTT) Plan(_ clock.Time, _ *Queue, views []View, roles []Assignment) clock.Time {
	explainBackups(views, roles)
	return clock.Never
}

// Pick answers for one subflow.
func (m *minRTT) Pick(now clock.Time, q *Queue, views []View, _ []Assignment, i int) Decision {
	if !usable(views, i) {
		return wait()
	}
	if q.Reinject {
		return Decision{Kind: Reinject, Else: m.fresh(q, views, i).Kind, Wake: clock.Never}
	}
	if q.blocked() && m.opt.Opportunistic {
		return m.unblock(now, q, views, i)
	}
	return m.fresh(q, views, i)
}

// fresh gives new data to the fastest subflow that can send.
func (m *minRTT) fresh(q *Queue, views []View, i int) Decision {
	if q.room() && fastest(views, i) {
		return send(New)
	}
	return wait()
}

// fastest reports whether no other usable subflow with a smaller RTT can send now.
func fastest(views []View, i int) bool {
	for j := range views {
		if j != i && views[j].CanSend && faster(&views[j], &views[i]) && usable(views, j) {
			return false
		}
	}
	return true
}

// Constants of v0.9x's receive-buffer optimisation.
const (
	opportunisticRatio = 4 // copy only from a subflow whose RTT is more than this many times as long ...
	opportunisticSmall = 4 // ... or whose window is at most this many packets
)

// unblock deals with a full receive window: the oldest data, without which the window cannot move, is on another subflow.
func (m *minRTT) unblock(now clock.Time, q *Queue, views []View, i int) Decision {
	v := &views[i]
	h := holder(q, views)
	if h == nil || h.ID == v.ID {
		return wait()
	}
	d := wait()
	if m.opt.Penalise && v.SRTT > 0 && v.SRTT < h.SRTT {
		if last := m.penalty.at(v.ID); !last.set || now.Sub(last.at) >= v.SRTT { // once an RTT
			*last = stamp{true, now}
			d.Penalise = true
		}
	}
	small := h.Window <= int64(opportunisticSmall*h.MSS)
	if q.Copyable && (small || v.SRTT > 0 && opportunisticRatio*v.SRTT < h.SRTT) {
		d.Kind = Copy
	}
	return d
}

// holder returns the view of the subflow that holds the oldest data.
func holder(q *Queue, views []View) *View {
	for j := range views {
		if views[j].ID == q.Holder {
			return &views[j]
		}
	}
	return nil
}

// OnSent keeps nothing.
func (m *minRTT) OnSent(clock.Time, int, Kind, seq.Range) {}

// OnLost leaves lost data to its own subflow.
func (m *minRTT) OnLost(clock.Time, int, seq.Range) bool { return false }

// OnGone forgets the subflow.
func (m *minRTT) OnGone(id int) { m.penalty.remove(id) }
