package schedule

import (
	"time"

	"braid/clock"
	"braid/seq"
)

// Roles says how the set N of subflows that carry new data is chosen.
type Roles uint8

// The ways to choose.
const (
	RolesAll     Roles = iota // N is everyone
	RolesUtility              // the paper's AR-Scheduling: greedy by log(rate) - log(average RTT)
	RolesFill                 // by the rate that the receive window allows, given how long the slowest member leaves holes open
)

// Position says which of the unsent data a subflow of N takes.
type Position uint8

// The positions.
const (
	PositionNext     Position = iota // the next in order, for the subflow with the smallest RTT that can send
	PositionAssigned                 // the paper's P-Scheduling: packets are assigned ahead by predicted arrival
	PositionOvertake                 // what will not be overtaken: chosen when the subflow may send
)

// ARPOptions selects the pieces of AR&P.
type ARPOptions struct {
	Roles       Roles
	Position    Position
	FewInFlight bool // with fewer than four packets in flight a subflow is redundant (the paper's rule)
	Overdue     bool // a subflow whose ACKs are overdue is redundant at once
	OfferLost   bool // data found lost is offered once to a subflow that would deliver it sooner
}

// PaperARP returns the options of the scheduler as published: Han et al., "Leveraging Coupled BBR and Adaptive Packet Scheduling to
// Boost MPTCP", Algorithms 2 and 3.
func PaperARP() ARPOptions {
	return ARPOptions{Roles: RolesUtility, Position: PositionAssigned, FewInFlight: true}
}

// DefaultARP returns the options of this project's AR&P: the same two ideas, with three pieces exchanged, because the paper's
// utility demotes long paths however much they carry, its arrival time ignores what is in flight, and its
// assignments outlive what they were based on.
func DefaultARP() ARPOptions {
	return ARPOptions{Roles: RolesFill, Position: PositionOvertake, Overdue: true, OfferLost: true}
}

// Constants of this implementation.
const (
	shortestPlan   = time.Millisecond      // roles are never decided more often than this
	unknownPlan    = 10 * time.Millisecond // how often while no RTT is known
	probeRTTWindow = 4                     // packets: what BBR sends each RTT in PROBE_RTT
)

// arp is AR&P: adaptively redundant (which subflows carry new data) and predictive (which data each takes). Subflows outside N
// carry copies of the oldest data in flight elsewhere: that keeps them measured, and repairs what they may.
//
// arp_roles.go holds AR, arp_position.go holds P.
type arp struct {
	opt       ARPOptions
	flows     table[arpFlow]
	rr        roundRobin // while every subflow is in startup
	next      clock.Time // when roles are decided again
	plan      assignment // PositionAssigned
	order     []int      // scratch: indices of views
	forecasts []forecast // by position among the views
	offered   float64    // bytes that wait for reinjection
	stale     bool       // a subflow is gone: decide again
}

// arpFlow is what is remembered of a subflow between calls.
type arpFlow struct {
	planned bool // role is that of the last decision
	role    Assignment
	flags   uint8
	arrival float64 // predicted arrival of a packet sent now, seconds from now; at the last Plan
	rate    float64 // at which it sends, bytes/s
	live    bool    // neither overdue nor timed out, at the last Plan
}

// NewARP returns an AR&P scheduler with the given pieces.
func NewARP(opt ARPOptions) Scheduler { return &arp{opt: opt, rr: roundRobin{last: -1}} }

// Plan decides the roles every min RTT, and at once when a subflow came, went, or changed its usability.
func (a *arp) Plan(now clock.Time, q *Queue, views []View, roles []Assignment) clock.Time {
	changed := a.look(views)
	if changed || a.stale || !now.Before(a.next) {
		a.stale = false
		a.decide(q, views, roles)
		for i := range views {
			f := a.flows.at(views[i].ID)
			f.role, f.planned = roles[i], true
		}
		a.next = now.Add(planInterval(views))
		a.plan.release(views, roles)
	} else {
		for i := range views {
			roles[i] = a.flows.at(views[i].ID).role
		}
	}
	explainBackups(views, roles)
	if a.opt.Roles == RolesAll && !a.opt.Overdue {
		return clock.Never
	}
	return a.next
}

// look refreshes what is remembered of the subflows and reports whether any changed its usability.
func (a *arp) look(views []View) bool {
	a.foresee(len(views))
	changed, lowest := false, lowestRank(views)
	for i := range views {
		v := &views[i]
		f := a.flows.at(v.ID)
		flags, fit := uint8(1), rank(v) == lowest
		if fit {
			flags |= 2
		}
		if v.Overdue && a.opt.Overdue {
			flags |= 4
		}
		if v.Startup {
			flags |= 8
		}
		changed = changed || flags != f.flags || !f.planned
		f.flags = flags
		f.live = !v.Overdue && !v.TimedOut && fit
		f.arrival, f.rate = a.forecasts[i].arrival(v), a.forecasts[i].x
	}
	return changed
}

// planInterval returns min RTT over the subflows.
func planInterval(views []View) time.Duration {
	least := time.Duration(0)
	for i := range views {
		if r := views[i].SRTT; r > 0 && (least == 0 || r < least) {
			least = r
		}
	}
	if least == 0 {
		return unknownPlan
	}
	return max(least, shortestPlan)
}

// Pick answers for one subflow: reinjections it would deliver sooner, then new data (in N) or copies (in R).
func (a *arp) Pick(now clock.Time, q *Queue, views []View, roles []Assignment, i int) Decision {
	a.offered = float64(q.Repairs)
	v := &views[i]
	if !usable(views, i) {
		return wait()
	}
	if roles[i].Role == Redundant {
		return a.pickRedundant(q, v)
	}
	d := a.pickNew(now, q, views, roles, i)
	if q.Reinject {
		if d.Kind != New || d.Skip > 0 || d.From > 0 {
			return Decision{Kind: Reinject, Else: Wait, Wake: clock.Never}
		}
		return Decision{Kind: Reinject, Else: New, Wake: clock.Never}
	}
	return d
}

// pickRedundant sends copies. An overdue subflow gets no reinjections: they would wait there.
func (a *arp) pickRedundant(q *Queue, v *View) Decision {
	copied := wait()
	if q.Copyable {
		copied.Kind = Copy
	}
	if q.Reinject && !v.Overdue {
		return Decision{Kind: Reinject, Wake: clock.Never}
	}
	return copied
}

// pickNew says which new data a subflow of N takes.
func (a *arp) pickNew(_ clock.Time, q *Queue, views []View, roles []Assignment, i int) Decision {
	if !q.room() {
		return wait()
	}
	if a.opt.Position != PositionNext && q.Opening {
		if a.rr.turn(views, i, roles) {
			return send(New)
		}
		return wait()
	}
	switch a.opt.Position {
	case PositionAssigned:
		return a.plan.pick(q, views, roles, i)
	case PositionOvertake:
		return a.overtake(q, views, roles, i)
	}
	for j := range views {
		if j != i && views[j].CanSend && roles[j].Role == NewData && faster(&views[j], &views[i]) && usable(views, j) {
			return wait()
		}
	}
	return send(New)
}

// OnSent keeps turn and assignments up to date.
func (a *arp) OnSent(now clock.Time, id int, kind Kind, r seq.Range) {
	if kind != New {
		return
	}
	a.rr.OnSent(now, id, kind, r)
	a.plan.sent(id, r)
}

// OnLost offers lost data once to the others if one of them would deliver it sooner than its own subflow, behind what waits for
// reinjection already, and always if that is not live: what it has outstanding stalls there.
func (a *arp) OnLost(_ clock.Time, id int, r seq.Range) bool {
	own := *a.flows.at(id)
	if !own.live && a.opt.Overdue {
		return true
	}
	if !a.opt.OfferLost {
		return false
	}
	for k, other := range a.flows.ids {
		if f := &a.flows.values[k]; other != id && f.live && f.rate > 0 && f.arrival+a.offered/f.rate < own.arrival {
			a.offered += float64(r.Len())
			return true
		}
	}
	return false
}

// OnGone forgets the subflow; what was assigned to it is free again.
func (a *arp) OnGone(id int) {
	a.flows.remove(id)
	a.plan.gone(id)
	a.stale = true
}
