package schedule

import (
	"math"
	"slices"
)

// Constants of the roles.
const (
	fewInFlight = 4    // packets: three duplicate ACKs need a fourth packet in flight
	roleGain    = 1.05 // N changes only for a gain above this
)

// decide writes the roles. Whatever is chosen, at least one usable subflow carries new data.
func (a *arp) decide(q *Queue, views []View, roles []Assignment) {
	a.order = a.order[:0]
	for i := range views {
		v := &views[i]
		roles[i] = Assignment{}
		switch {
		case !usable(views, i):
			if v.TimedOut {
				roles[i] = Assignment{Redundant, ReasonTimedOut}
			}
		case v.Overdue && a.opt.Overdue:
			roles[i] = Assignment{Redundant, ReasonOverdue}
		default:
			a.order = append(a.order, i)
		}
	}
	if len(a.order) == 0 {
		rescue(views, roles)
		return
	}
	switch a.opt.Roles {
	case RolesUtility:
		a.utility(views, roles)
	case RolesFill:
		a.fill(q, views, roles)
	}
}

// rescue keeps new data flowing when all usable subflows are overdue: on the one with the smallest RTT.
func rescue(views []View, roles []Assignment) {
	best := -1
	for i := range views {
		if usable(views, i) && (best < 0 || faster(&views[i], &views[best])) {
			best = i
		}
	}
	if best >= 0 {
		roles[best].Role = NewData
	}
}

// utility is AR-Scheduling (Han et al., Algorithm 2), literally: by x/r descending, subflow j joins N if that raises
// U(N) = log sum x - log(sum x r / sum x). A subflow with fewer than four packets in flight could not
// trigger a fast retransmission and stays out, unless nobody would be left.
func (a *arp) utility(views []View, roles []Assignment) {
	slices.SortFunc(a.order, func(i, j int) int { return compareDescending(value(&views[i]), value(&views[j]), i, j) })
	n, x, y := 0, 0.0, 0.0 // |N|, sum of x, sum of x r
	for _, i := range a.order {
		v := &views[i]
		if a.opt.FewInFlight && v.InFlight < int64(fewInFlight*v.MSS) {
			roles[i] = Assignment{Redundant, ReasonFewInFlight}
			continue
		}
		xi, ri := v.Rate, v.SRTT.Seconds()
		if n > 0 && !joins(x, y, xi, ri) {
			roles[i] = Assignment{Redundant, ReasonUtility}
			continue
		}
		n++
		x += xi
		y += float64(xi * ri)
	}
	if n == 0 {
		roles[a.order[0]] = Assignment{NewData, ReasonDefault}
	}
}

// joins reports whether the utility grows when a subflow of rate xj and RTT rj joins members with sum of rates x and sum of
// rates times RTTs y: xj / x > (rj x - 2 y) / y.
func joins(x, y, xj, rj float64) bool {
	if xj <= 0 || y <= 0 {
		return false
	}
	return xj/x > (float64(rj*x)-2*y)/y
}

// value is x/r, the utility of a subflow alone.
func value(v *View) float64 {
	if v.SRTT <= 0 {
		return 0
	}
	return v.Rate / v.SRTT.Seconds()
}

func compareDescending(a, b float64, i, j int) int {
	switch {
	case a > b:
		return -1
	case a < b:
		return 1
	}
	return i - j
}

// fill chooses N to maximise G = min(sum x, R / T): the connection moves no faster than its members send, and no faster than the
// receive window R allows when the slowest member leaves holes open for T. N is a prefix of the subflows by T; ties go to
// the longer one; a change must gain 5 %. While the connection opens subflows in startup are kept: their rate says nothing yet. Later
// one that fills its queue in startup must not hold the window against the others: copies let it go on just as well.
func (a *arp) fill(q *Queue, views []View, roles []Assignment) {
	least := planInterval(views).Seconds()
	known := a.order[:0]
	current := true // every known subflow has a role from before
	for _, i := range a.order {
		if v := &views[i]; v.Startup && q.Opening || v.SRTT <= 0 || v.Rate <= 0 {
			roles[i] = Assignment{NewData, ReasonStartup}
			continue
		}
		known = append(known, i)
		current = current && a.flows.at(views[i].ID).planned
	}
	a.order = known
	slices.SortFunc(known, func(i, j int) int {
		return compareDescending(fillTime(&views[j], least), fillTime(&views[i], least), i, j)
	})
	prefix, gain := bestPrefix(q, views, known, least)
	if kept := a.keptGain(q, views, known, least); current && kept > 0 && gain <= float64(roleGain*kept) {
		for _, i := range known {
			roles[i] = a.flows.at(views[i].ID).role
			if roles[i].Role == Redundant {
				roles[i].Reason = ReasonUtility
			} else {
				roles[i].Reason = ReasonDefault
			}
		}
		return
	}
	for n, i := range known {
		if n >= prefix {
			roles[i] = Assignment{Redundant, ReasonUtility}
		}
	}
}

// bestPrefix returns how many of the known subflows, in the order of their fill times, N shall have, and G of them.
func bestPrefix(q *Queue, views []View, known []int, least float64) (prefix int, gain float64) {
	rate := 0.0
	for n, i := range known {
		rate += sendingRate(&views[i])
		if g := min(rate, float64(q.Window)/fillTime(&views[i], least)); n == 0 || g >= gain {
			prefix, gain = n+1, g
		}
	}
	return prefix, gain
}

// keptGain returns G of the known subflows that are in N now; 0 if none is.
func (a *arp) keptGain(q *Queue, views []View, known []int, least float64) float64 {
	rate, longest := 0.0, 0.0
	for _, i := range known {
		if f := a.flows.at(views[i].ID); f.planned && f.role.Role == NewData {
			rate += sendingRate(&views[i])
			longest = max(longest, fillTime(&views[i], least))
		}
	}
	if longest == 0 {
		return 0
	}
	return min(rate, float64(q.Window)/longest)
}

// fillTime returns T, in seconds: after how long a hole that the subflow leaves is filled. An RTT; and in so far as the subflow
// loses a packet in each of them, the mean of its own and the smallest RTT more for the repair. least is the smallest RTT.
func fillTime(v *View, least float64) float64 {
	r := v.SRTT.Seconds()
	lossy := min(1, v.Loss*sendingRate(v)*r/float64(max(v.MSS, 1)))
	return math.Max(r+float64(lossy*(r+least)/2), 1e-6)
}
