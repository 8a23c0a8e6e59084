package schedule

import (
	"math"
	"time"

	"braid/clock"
	"braid/seq"
)

// sendingRate returns x: the rate without the probing gain. While BBR probes the RTT it sends four packets an RTT.
func sendingRate(v *View) float64 {
	x := v.Rate
	if v.ProbeRTT && v.SRTT > 0 {
		x = min(x, float64(probeRTTWindow*v.MSS)/v.SRTT.Seconds())
	}
	return x
}

// staleRate is how many times ahead/x the RTT must be for x to be out of date. BBR's probing makes a quarter for a round in eight; to wait for
// that quarter costs more where the capacity varies: the receive window is full before a late packet comes.
const staleRate = 1.1

// forecast holds what the predicted arrival on a subflow takes from its view and changes with an ACK at most, worked out once: the
// arrival itself is asked for with every packet.
type forecast struct {
	rate         float64 // the view's: what the rest was worked out from
	srtt, minRTT time.Duration
	mss          int
	probeRTT     bool

	x     float64 // see sendingRate
	round float64 // smoothed RTT, seconds
	prop  float64 // RTprop, seconds
	holds float64 // bytes: what the path itself holds at rate x
}

// update looks whether the view is still the one that was worked out.
func (f *forecast) update(v *View) {
	if v.Rate == f.rate && v.SRTT == f.srtt && v.MinRTT == f.minRTT && v.ProbeRTT == f.probeRTT && v.MSS == f.mss {
		return
	}
	x, prop := sendingRate(v), v.MinRTT.Seconds()
	*f = forecast{
		rate: v.Rate, srtt: v.SRTT, minRTT: v.MinRTT, mss: v.MSS, probeRTT: v.ProbeRTT,
		x: x, round: v.SRTT.Seconds(), prop: prop, holds: float64(x * prop),
	}
}

// arrival predicts when a packet that the subflow sends next will arrive, in seconds from now. What is in flight and waiting, at
// least what the path itself holds, goes ahead of it at rate x; of the time that takes, half the propagation time is the
// way back of the last ACK. Unlike r/2 it counts the queue that the flow itself holds, and only that. On a path that gets worse
// BBR's x is that of ten round trips ago; then the RTT itself says how long it takes.
func (f *forecast) arrival(v *View) float64 {
	f.update(v)
	if f.x <= 0 {
		return math.Inf(1)
	}
	through := (float64(v.Retrans) + max(float64(v.InFlight), f.holds)) / f.x
	if f.round > float64(staleRate*through) {
		through = f.round
	}
	return through - f.prop/2
}

// packetNoise keeps the rounding of a whole number of packets from counting as one more.
const packetNoise = 1e-6

// overtake lets subflow i take the data behind what the others will send and deliver before its packet arrives.
func (a *arp) overtake(q *Queue, views []View, roles []Assignment, i int) Decision {
	a.foresee(len(views))
	packet := int64(max(views[i].MSS, 1))
	limit := min(q.Waiting, q.Edge-q.Unsent.Start)
	own, lowest := a.forecasts[i].arrival(&views[i]), lowestRank(views)
	n := int64(0)
	for k := range views {
		w, f := &views[k], &a.forecasts[k]
		if k == i || roles[k].Role == Redundant || rank(w) != lowest {
			continue
		}
		ahead := own - f.arrival(w)
		if f.x > 0 && !q.Reinject { // what is lost here goes before new data there
			ahead -= float64(q.Repairs) / f.x
		}
		if f.x <= 0 || !(ahead > 0) {
			continue
		}
		bytes := ahead * f.x
		if !(bytes < float64(limit)) { // also when it is infinite
			return wait()
		}
		n += int64(math.Ceil(bytes/float64(packet) - packetNoise))
	}
	if n*packet >= limit {
		return wait()
	}
	return Decision{Kind: New, Skip: int(n), Wake: clock.Never}
}

// foresee makes room for the forecasts of n views. Which view a forecast is for does not matter: it is worked out again when it
// does not fit.
func (a *arp) foresee(n int) {
	for len(a.forecasts) < n {
		a.forecasts = append(a.forecasts, forecast{})
	}
}

// assignment is P-Scheduling (Han et al., Algorithm 3), literally: packets are assigned to subflows in data order, each to the one on
// which it would arrive first, A_i = bytes assigned and unsent / x_i + r_i / 2, before they are sent; the scheduling window
// max r * sum BW bounds how far ahead.
//
// Invariant: the unsent data below cursor is in free or in exactly one subflow's set.
type assignment struct {
	flows  table[assigned]
	free   seq.Set // given back when N changed
	cursor int64   // the first data offset that was never assigned
	total  int64   // bytes in all subflows' sets
}

type assigned struct {
	set   seq.Set
	bytes int64
}

// burstsAhead is how many packets the scheduling window holds for each subflow at least: two bursts of two.
const burstsAhead = 4

// pick assigns what the scheduling window has room for and lets subflow i send the first of what it holds.
func (p *assignment) pick(q *Queue, views []View, roles []Assignment, i int) Decision {
	p.extend(q, views, roles)
	f := p.flows.at(views[i].ID)
	if f.set.Empty() || f.set.At(0).Start >= q.Edge {
		return wait()
	}
	return Decision{Kind: New, From: f.set.At(0).Start, Wake: clock.Never}
}

// extend assigns packets until the scheduling window is full.
func (p *assignment) extend(q *Queue, views []View, roles []Assignment) {
	p.cursor = max(p.cursor, q.Unsent.Start)
	if p.total == 0 && p.free.Empty() && p.cursor >= q.Unsent.End { // what waits was taken for sent: start over
		p.cursor = q.Unsent.Start
	}
	for k := range p.flows.values {
		p.drop(&p.flows.values[k], seq.Range{Start: 0, End: q.Unsent.Start})
	}
	bound := p.bound(views, roles)
	for p.total < bound {
		i := p.soonest(views, roles)
		if i < 0 {
			return
		}
		r := p.take(q, int64(max(views[i].MSS, 1)))
		if r.Empty() {
			return
		}
		f := p.flows.at(views[i].ID)
		f.set.Add(r)
		f.bytes += r.Len()
		p.total += r.Len()
	}
}

// bound returns the scheduling window: max r times sum BW over N, at least two bursts a subflow.
func (p *assignment) bound(views []View, roles []Assignment) int64 {
	longest, bandwidth, least := 0.0, 0.0, int64(0)
	for i := range views {
		v := &views[i]
		if roles[i].Role == Redundant || !usable(views, i) {
			continue
		}
		longest = max(longest, v.SRTT.Seconds())
		if v.Bandwidth > 0 {
			bandwidth += v.Bandwidth
		} else {
			bandwidth += v.Rate
		}
		least += int64(burstsAhead * v.MSS)
	}
	return max(least, int64(min(longest*bandwidth, 1<<40)))
}

// soonest returns the index of the subflow on which the next packet would arrive first; ties go to the lower ID.
func (p *assignment) soonest(views []View, roles []Assignment) int {
	best, when := -1, 0.0
	for i := range views {
		v := &views[i]
		if roles[i].Role == Redundant || !usable(views, i) {
			continue
		}
		at := math.Inf(1)
		if v.Rate > 0 {
			at = float64(p.flows.at(v.ID).bytes)/v.Rate + v.SRTT.Seconds()/2
		}
		if best < 0 || at < when {
			best, when = i, at
		}
	}
	return best
}

// take returns the next packet to assign, of at most n bytes: what was given back first, then what was never assigned.
func (p *assignment) take(q *Queue, n int64) seq.Range {
	p.free.RemoveBefore(q.Unsent.Start)
	if !p.free.Empty() {
		r := p.free.At(0)
		r.End = min(r.End, r.Start+n)
		p.free.Remove(r)
		return r
	}
	r := seq.Range{Start: p.cursor, End: min(p.cursor+n, q.Unsent.End)}
	p.cursor = max(p.cursor, r.End)
	return r
}

// sent takes what was sent out of every set. What its own subflow skipped to get there is not unsent any more.
func (p *assignment) sent(id int, r seq.Range) {
	for k, other := range p.flows.ids {
		f := &p.flows.values[k]
		if other == id {
			p.drop(f, seq.Range{Start: 0, End: r.Start})
		}
		p.drop(f, r)
	}
	p.free.Remove(r)
	if r.Start <= p.cursor {
		p.cursor = max(p.cursor, r.End)
	}
}

// drop removes r from a subflow's set.
func (p *assignment) drop(f *assigned, r seq.Range) {
	for {
		x := f.set.FirstIn(r)
		if x.Empty() {
			return
		}
		f.set.Remove(x)
		f.bytes -= x.Len()
		p.total -= x.Len()
	}
}

// release takes all assignments back when a subflow that carries no new data now holds some: what it held is the oldest, and has
// to go before what the others hold.
func (p *assignment) release(views []View, roles []Assignment) {
	for i := range views {
		if (roles[i].Role == Redundant || !usable(views, i)) && p.flows.at(views[i].ID).bytes > 0 {
			p.giveBack()
			return
		}
	}
}

func (p *assignment) giveBack() {
	for k := range p.flows.values {
		f := &p.flows.values[k]
		for f.set.Count() > 0 {
			r := f.set.At(0)
			p.free.Add(r)
			p.drop(f, r)
		}
	}
}

// gone forgets a subflow.
func (p *assignment) gone(id int) {
	p.giveBack()
	p.flows.remove(id)
}
