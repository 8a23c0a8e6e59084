package mptcp

import (
	"time"

	"braid/clock"
	"braid/schedule"
	"braid/seq"
	"braid/trace"
)

// defaultPlanEvery is how often roles are planned while no round-trip time is known.
const defaultPlanEvery = 100 * time.Millisecond

// viewCache is what the scheduler sees: one view for each active subflow, refreshed when something happened to it.
type viewCache struct {
	list  []schedule.View
	roles []schedule.Assignment
	next  []schedule.Assignment // scratch of plan
	sfs   []*Subflow
	queue schedule.Queue

	rebuild bool       // the set of active subflows changed
	planAt  clock.Time // when roles are planned again
	wakeAt  clock.Time // when the scheduler wants to be asked again
}

func (v *viewCache) init() { v.planAt, v.wakeAt = 0, clock.Never }

// changed says that subflows came, went, or fell silent or came back.
func (v *viewCache) changed() { v.rebuild, v.planAt = true, 0 }

// replan asks for new roles at the next occasion.
func (v *viewCache) replan() { v.planAt = 0 }

// touch says that something happened to sf that its view does not show.
func (v *viewCache) touch(sf *Subflow) { sf.data.stats.viewStale = true }

// several reports whether more than one subflow may carry data: only then is there anything to schedule.
func (c *Conn) several() bool {
	if c.views.rebuild {
		c.rebuildViews()
	}
	return len(c.views.list) > 1
}

func (c *Conn) rebuildViews() {
	v := &c.views
	v.rebuild = false
	v.list, v.sfs, v.roles = v.list[:0], v.sfs[:0], v.roles[:0]
	for _, sf := range c.subflows {
		if sf.state != active {
			continue
		}
		v.list = append(v.list, schedule.View{})
		v.sfs = append(v.sfs, sf)
		v.roles = append(v.roles, sf.data.stats.role)
		sf.data.stats.viewStale = true
	}
}

// refreshViews brings the views up to date and returns the index of sf's.
func (c *Conn) refreshViews(now clock.Time, sf *Subflow) int {
	at := -1
	for i, other := range c.views.sfs {
		w := &c.views.list[i]
		if other.data.stats.viewStale {
			c.fillView(now, other, w)
		} else {
			w.CanSend = other.tcp.CanSend(now)
			w.InFlight = other.tcp.FlightSize()
			w.PacerAt = other.tcp.PacerAt(now)
			w.Retrans = other.tcp.Retrans()
			w.Oldest = other.tcp.Oldest()
		}
		w.Overdue = now > overdueAt(w.LastAck, w.Oldest, w.SRTT, w.RTTVar)
		if w.Overdue != other.data.stale.overdue {
			c.setOverdue(now, other, w.Overdue)
		}
		if other == sf {
			at = i
		}
	}
	return at
}

// fillView writes the view of sf.
func (c *Conn) fillView(now clock.Time, sf *Subflow, w *schedule.View) {
	sf.data.stats.viewStale = false
	i := sf.tcp.Info(now)
	rate := i.Controller.SendingRate
	if rate == 0 && i.SRTT > 0 {
		rate = float64(i.Window) / i.SRTT.Seconds()
	}
	lastAck := max(i.LastAck, sf.data.stale.startedAt)
	*w = schedule.View{
		ID: sf.id, SRTT: i.RecentRTT, MinRTT: i.MinRTT, RTTVar: i.RTTVar, Rate: rate, Bandwidth: i.Controller.Bandwidth,
		Window: i.Window, InFlight: i.InFlight, CanSend: sf.tcp.CanSend(now), PacerAt: i.PacerAt, Retrans: i.Retrans, Loss: i.Loss,
		LastAck: lastAck, Oldest: i.Oldest, MSS: sf.tcp.PayloadRoom(dataReserve), Backup: sf.backupLocal || sf.backupPeer,
		Startup: i.Controller.Startup, ProbeRTT: i.Controller.ProbeRTT, TimedOut: sf.data.stale.timedOut,
	}
}

// fillQueue writes what the scheduler sees of the connection when sf is asked about.
func (c *Conn) fillQueue(sf *Subflow) *schedule.Queue {
	s, q := &c.snd, &c.views.queue
	acked := s.acked()
	*q = schedule.Queue{
		Unsent: seq.Range{Start: s.firstUnsent(), End: s.end()}, Waiting: s.waiting(), Edge: s.edge, Acked: acked,
		Window: max(0, s.edge-acked), Holder: -1, Opening: true,
	}
	if sf != nil {
		q.Repairs = s.reinject.Len()
		q.Reinject = !s.reinject.Empty() && !c.reinjectable(sf, 1).Empty()
		q.Copyable = c.othersCarry(sf)
	}
	for i, other := range c.views.sfs {
		if !c.views.list[i].Startup {
			q.Opening = false
		}
		if other.data.carried.firsts.Contains(acked) || q.Holder < 0 && other.data.carried.data.Contains(acked) {
			q.Holder = other.id
		}
	}
	return q
}

// plan asks the scheduler for the subflows' roles.
func (c *Conn) plan(now clock.Time) {
	v := &c.views
	c.refreshViews(now, nil)
	v.next = append(v.next[:0], v.roles...)
	clear(v.next)
	again := c.sched.Plan(now, c.fillQueue(nil), v.list, v.next)
	every := time.Duration(0)
	for i, sf := range v.sfs {
		if srtt := v.list[i].SRTT; srtt > 0 && (every == 0 || srtt < every) {
			every = srtt
		}
		if v.next[i] != v.roles[i] {
			c.trace(now, int16(sf.id), trace.Role, int64(v.next[i].Role), int64(v.next[i].Reason), int64(v.roles[i].Role))
			if v.next[i].Role != v.roles[i].Role {
				sf.data.stats.roleChanges++
			}
			sf.data.stats.role = v.next[i]
		}
	}
	copy(v.roles, v.next)
	if every == 0 {
		every = defaultPlanEvery
	}
	v.planAt = min(max(again, now+1), now.Add(max(every, time.Millisecond)))
}

// reinjectable returns the oldest data that waits for another carrier and that sf does not carry, at most n bytes; empty if
// there is none.
func (c *Conn) reinjectable(sf *Subflow, n int) seq.Range {
	if c.soleAndYoung() {
		return seq.Range{}
	}
	if c.swallows(sf) {
		return seq.Range{}
	}
	for i := range c.snd.reinject.Count() {
		if r := sf.data.carried.data.FirstGap(c.snd.reinject.At(i)); !r.Empty() {
			r.End = min(r.End, r.Start+int64(n))
			return r
		}
	}
	return seq.Range{}
}

// copyable returns the oldest data at or after data offset from that other subflows have in flight, that sf does not carry, and
// that is neither DATA_ACKed nor known to have arrived; at most n bytes, empty if there is none.
func (c *Conn) copyable(sf *Subflow, from int64, n int) seq.Range {
	best := seq.Range{}
	for _, other := range c.views.sfs {
		if other == sf {
			continue
		}
		r := c.copyableFrom(sf, other, max(from, c.snd.acked()))
		if !r.Empty() && (best.Empty() || r.Start < best.Start) {
			best = r
		}
	}
	best.End = min(best.End, best.Start+int64(n))
	return best
}

// othersCarry reports whether another subflow carries data, not DATA_ACKed, that sf does not: all that the sets tell without a look at
// every segment. It may all have arrived.
func (c *Conn) othersCarry(sf *Subflow) bool {
	ours := &sf.data.carried.data
	all := seq.Range{Start: c.snd.acked(), End: c.snd.next}
	for _, other := range c.views.sfs {
		if other == sf {
			continue
		}
		theirs := &other.data.carried.data
		for r := theirs.FirstIn(all); !r.Empty(); r = theirs.FirstIn(seq.Range{Start: r.End, End: all.End}) {
			if !ours.FirstGap(r).Empty() {
				return true
			}
		}
	}
	return false
}

// copyableFrom is copyable for what one other subflow carries.
func (c *Conn) copyableFrom(sf, other *Subflow, from int64) seq.Range {
	theirSet := &other.data.carried
	theirs, ours := &theirSet.data, &sf.data.carried.data
	for {
		r := theirs.FirstIn(seq.Range{Start: from, End: c.snd.next})
		if r.Empty() {
			return seq.Range{}
		}
		gap := ours.FirstGap(r)
		if gap.Empty() {
			from = r.End
			continue
		}
		if other.tcp.SACKed() == 0 {
			return gap
		}
		if gap = theirSet.notSACKed(other.tcp, gap); !gap.Empty() {
			return gap
		}
		from = r.End
	}
}
