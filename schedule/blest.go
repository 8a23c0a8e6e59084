package schedule

import (
	"time"

	"braid/clock"
)

// Constants of BLEST, those of its implementation in Linux v0.95.
const (
	blestLambda      = 1.2 // first correction of the fast subflow's estimated bytes
	blestLambdaLeast = 1.0
	blestLambdaMost  = 1.3
	blestLambdaGood  = 0.01 // taken off for each slow RTT without blocking ...
	blestLambdaBad   = 0.04 // ... and added for one with it
	blestMostRounds  = 16   // bound of the doublings assumed in slow start
)

// blest is BLEST (Ferlin et al., "BLEST: Blocking Estimation-based MPTCP Scheduler for Heterogeneous Networks", IFIP Networking
// 2016): minRTT that does not use a slower subflow if its packet would hold so much of the receive window for so long that
// the fast one would be blocked.
type blest struct {
	minRTT
	rtts    table[blestRTT]
	lambda  float64
	blocked bool // the window blocked sending since lambda was last moved
	moved   stamp
}

// blestRTT is the range of a subflow's smoothed RTTs.
type blestRTT struct{ least, most time.Duration }

// NewBLEST returns the BLEST scheduler.
func NewBLEST() Scheduler { return &blest{lambda: blestLambda} }

// Pick answers as minRTT does unless the packet would block.
func (b *blest) Pick(now clock.Time, q *Queue, views []View, roles []Assignment, i int) Decision {
	b.blocked = b.blocked || q.blocked()
	for j := range views {
		b.note(&views[j])
	}
	d := b.minRTT.Pick(now, q, views, roles, i)
	if d.Kind != New && d.Else != New {
		return d
	}
	fast := fastestOfAll(views, i)
	if fast == i || !b.blocks(now, q, &views[i], &views[fast]) {
		return d
	}
	if d.Kind == New {
		return wait()
	}
	d.Else = Wait
	return d
}

// fastestOfAll returns the index of the usable subflow with the smallest RTT, whether or not it can send now; i is usable.
func fastestOfAll(views []View, i int) int {
	for j := range views {
		if faster(&views[j], &views[i]) && usable(views, j) {
			i = j
		}
	}
	return i
}

func (b *blest) note(v *View) {
	if v.SRTT <= 0 {
		return
	}
	r := b.rtts.at(v.ID)
	if r.least == 0 || v.SRTT < r.least {
		r.least = v.SRTT
	}
	r.most = max(r.most, v.SRTT)
}

// blocks estimates whether a packet on slow would keep fast from sending what it could until it is acknowledged.
func (b *blest) blocks(now clock.Time, q *Queue, slow, fast *View) bool {
	b.adapt(now, b.rtts.at(slow.ID).least)
	bytes := float64(b.lambda * fastBytes(fast, b.rtts.at(fast.ID), b.linger(slow)))
	held := slow.InFlight + slow.Retrans + int64(slow.MSS)
	return bytes > float64(max(0, q.Window-held))
}

// adapt moves lambda once in each of the slow subflow's RTTs.
func (b *blest) adapt(now clock.Time, rtt time.Duration) {
	if b.moved.set && now.Sub(b.moved.at) < rtt {
		return
	}
	b.moved = stamp{true, now}
	if b.blocked {
		b.lambda += blestLambdaBad
	} else {
		b.lambda -= blestLambdaGood
	}
	b.lambda = min(max(b.lambda, blestLambdaLeast), blestLambdaMost)
	b.blocked = false
}

// linger estimates when a packet sent on the slow subflow now will be acknowledged: the more of the window is in flight, the
// nearer to the longest RTT seen.
func (b *blest) linger(slow *View) time.Duration {
	r := b.rtts.at(slow.ID)
	inFlight := slow.InFlight + int64(slow.MSS)
	estimate := r.most
	if inFlight < slow.Window {
		estimate = r.least + time.Duration(float64(r.most-r.least)*float64(inFlight)/float64(slow.Window))
	}
	return max(estimate, slow.SRTT)
}

// fastBytes estimates what the fast subflow sends in the given time: windows that double in slow start, grow by a packet later.
func fastBytes(fast *View, r *blestRTT, d time.Duration) float64 {
	rounds := 1.0
	if mean := (r.least + r.most) / 2; mean > 0 {
		rounds = float64(d/mean) + 1
	}
	window := float64(fast.Window)
	if fast.Startup {
		rounds = min(rounds, blestMostRounds)
		return window * float64(uint64(1)<<uint(rounds)-1)
	}
	return (window + float64((rounds-1)/2*float64(fast.MSS))) * rounds
}

// OnGone forgets the subflow.
func (b *blest) OnGone(id int) {
	b.minRTT.OnGone(id)
	b.rtts.remove(id)
}
