package congestion

import "braid/clock"

// liaGroup is the Linked Increases Algorithm (RFC 6356): the increase is coupled so that all subflows together take what one TCP
// would on the best path, and moves traffic off congested paths; slow start, decrease and recovery stay each subflow's own
// (RFC 6356, Section 3).
type liaGroup struct{ roster[*lia] }

// NewLIA returns the Group of RFC 6356.
func NewLIA() Group { return &liaGroup{} }

// lia is one of its subflows.
type lia struct {
	window
	member
	group *liaGroup
}

// Join adds a subflow.
func (g *liaGroup) Join(id int, cfg Config) Controller {
	return g.add(&lia{window: newWindow(cfg, byteLimitRFC), member: member{id: id}, group: g})
}

// OnAck opens the window: RFC 6356 changes congestion avoidance only.
func (l *lia) OnAck(s *Sample) {
	l.observe(s)
	if !l.mayGrow(s) {
		return
	}
	if rest := l.slowStart(s.Acked); rest > 0 {
		l.grow(l.group.increase(l, float64(rest)))
	}
}

// OnCongestion halves, as standard TCP does.
func (l *lia) OnCongestion(_ clock.Time, cause Cause, inFlight int64) {
	l.reduce(cause, l.flight(inFlight)/2)
}

// increase returns what acked bytes on l add to its window: min(alpha acked mss / cwnd_total, acked mss / cwnd_i) (RFC 6356,
// Section 3, equation 1).
func (g *liaGroup) increase(l *lia, acked float64) float64 {
	alone := acked * float64(l.mss) / float64(l.size)
	alpha, total := g.alpha()
	if l.silent || alpha == 0 {
		return alone
	}
	return min(alpha*acked*float64(l.mss)/total, alone)
}

// alpha returns the aggressiveness, cwnd_total max(cwnd_i / rtt_i^2) / (sum cwnd_i / rtt_i)^2, and cwnd_total in bytes
// (RFC 6356, Section 3, equation 2). It is computed anew for each ACK, which is at least as often as a window changes. 0: no
// member has an RTT yet.
func (g *liaGroup) alpha() (alpha, total float64) {
	var best, rate float64
	for _, m := range g.list {
		if m.silent || m.srtt <= 0 {
			continue
		}
		size, rtt := float64(m.size), m.srtt.Seconds()
		total += size
		best = max(best, size/(rtt*rtt))
		rate += size / rtt
	}
	if rate == 0 {
		return 0, 0
	}
	return total * best / (rate * rate), total
}
