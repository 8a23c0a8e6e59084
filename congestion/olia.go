package congestion

import "braid/clock"

// oliaGroup is the Opportunistic Linked Increases Algorithm (draft-khalili-mptcp-congestion-control-05; Khalili et al., "MPTCP is
// not Pareto-optimal", CoNEXT 2012): LIA's place taken by an optimal balance plus a term alpha that shifts
// window from the paths that have the most of it to the best paths that have not. Slow start and decrease are each
// subflow's own.
type oliaGroup struct{ roster[*olia] }

// NewOLIA returns the Group of OLIA.
func NewOLIA() Group { return &oliaGroup{} }

// olia is one of its subflows.
type olia struct {
	window
	member
	group   *oliaGroup
	since   int64 // bytes acknowledged since the last loss
	between int64 // bytes acknowledged between the last two losses
}

// Join adds a subflow.
func (g *oliaGroup) Join(id int, cfg Config) Controller {
	return g.add(&olia{window: newWindow(cfg, byteLimitRFC), member: member{id: id}, group: g})
}

// OnAck opens the window, or closes it a little where alpha is negative.
func (o *olia) OnAck(s *Sample) {
	o.observe(s)
	o.since += s.Acked
	if !o.mayGrow(s) {
		return
	}
	if rest := o.slowStart(s.Acked); rest > 0 {
		o.grow(o.group.increase(o, float64(rest)))
	}
}

// OnCongestion halves, and ends a loss interval.
func (o *olia) OnCongestion(_ clock.Time, cause Cause, inFlight int64) {
	if o.reduce(cause, o.flight(inFlight)/2) {
		o.between, o.since = o.since, 0
	}
}

// usable reports whether the subflow counts: it is heard from and has an RTT.
func (o *olia) usable() bool { return !o.silent && o.srtt > 0 }

// quality ranks paths: l^2 / rtt, l the longer of the last two loss intervals, estimates how much the path bears.
func (o *olia) quality() float64 {
	l := float64(max(o.since, o.between))
	return l * l / o.srtt.Seconds()
}

// increase returns what acked bytes on o add to its window: acked mss ((cwnd_i / rtt_i^2) / (sum cwnd / rtt)^2 + alpha_i / cwnd_i).
func (g *oliaGroup) increase(o *olia, acked float64) float64 {
	size := float64(o.size)
	if !o.usable() {
		return acked * float64(o.mss) / size
	}
	var rate float64
	for _, m := range g.list {
		if m.usable() {
			rate += float64(m.size) / m.srtt.Seconds()
		}
	}
	rtt := o.srtt.Seconds()
	balance := size / (rtt * rtt) / (rate * rate)
	return acked * float64(o.mss) * (balance + g.alpha(o)/size)
}

// alpha returns the shift of member o. B are the best paths, M those with the largest window: paths in B but not in M share +1/|S|,
// paths in M share -1/|S|; if B lies within M everyone's is 0.
func (g *oliaGroup) alpha(o *olia) float64 {
	var quality float64
	var size int64
	for _, m := range g.list {
		if m.usable() {
			quality = max(quality, m.quality())
			size = max(size, m.size)
		}
	}
	var all, largest, deprived int
	for _, m := range g.list {
		if !m.usable() {
			continue
		}
		all++
		if m.size == size {
			largest++
		} else if m.quality() == quality {
			deprived++
		}
	}
	switch {
	case deprived == 0:
		return 0
	case o.size == size:
		return -1 / float64(all*largest)
	case o.quality() == quality:
		return 1 / float64(all*deprived)
	}
	return 0
}
