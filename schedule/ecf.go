package schedule

import (
	"time"

	"braid/clock"
)

// ecfBeta is ECF's hysteresis: a decision to wait for the fast subflow is kept until it is worse by this part.
const ecfBeta = 0.25

// ecf is Earliest Completion First (Lim et al., "ECF: An MPTCP Path Scheduler to Manage Heterogeneous Paths", CoNEXT 2017): minRTT
// that waits for the fast subflow instead of using a slower one if the data at hand would be complete sooner.
type ecf struct {
	minRTT
	waiting bool
}

// NewECF returns the ECF scheduler.
func NewECF() Scheduler { return &ecf{} }

// Pick answers as minRTT does unless waiting completes earlier.
func (e *ecf) Pick(now clock.Time, q *Queue, views []View, roles []Assignment, i int) Decision {
	d := e.minRTT.Pick(now, q, views, roles, i)
	if d.Kind != New && d.Else != New {
		return d
	}
	fast := fastestOfAll(views, i)
	if fast == i || !e.wait(float64(q.Waiting), &views[i], &views[fast]) {
		return d
	}
	if d.Kind == New {
		return wait()
	}
	d.Else = Wait
	return d
}

// wait compares, with k bytes to send (ECF, Algorithm 1): on the fast subflow alone they take (1 + k / cwnd_f) rtt_f; a packet on
// the slow one takes rtt_s. Waiting wins if the first is shorter and the slow subflow would need more than two fast RTTs for k.
func (e *ecf) wait(k float64, slow, fast *View) bool {
	windowF, windowS := float64(max(fast.Window, 1)), float64(max(slow.Window, 1))
	margin := max(fast.RTTVar, slow.RTTVar)
	hysteresis := 1.0
	if e.waiting {
		hysteresis += ecfBeta
	}
	alone := (1 + max(k, windowF)/windowF) * seconds(fast.SRTT)
	if alone >= float64(hysteresis*seconds(slow.SRTT+margin)) {
		e.waiting = false
		return false
	}
	if max(k, windowS)/windowS*seconds(slow.SRTT) < seconds(2*fast.SRTT+margin) {
		return false
	}
	e.waiting = true
	return true
}

func seconds(d time.Duration) float64 { return d.Seconds() }
