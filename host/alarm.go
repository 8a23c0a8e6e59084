package host

import (
	"time"

	"braid/clock"
)

// alarm is the Engine's one timer. A deadline moves later with nearly every packet; setting the timer anew each time would cost
// more than what it is for. So it stays where it is, fires too early, and is then set to what is due.
type alarm struct {
	timer *time.Timer
	at    clock.Time // when it fires; Never: it is off
}

// init makes the timer, off, that will call f on a goroutine of its own.
func (a *alarm) init(f func()) {
	a.timer = time.AfterFunc(time.Hour, f)
	a.timer.Stop()
	a.at = clock.Never
}

// set makes sure that the alarm fires at t or earlier.
func (a *alarm) set(now, t clock.Time) {
	if t >= a.at {
		return
	}
	a.at = t
	a.timer.Reset(max(t.Sub(now), 0))
}

// fired says that f runs: the timer is off.
func (a *alarm) fired() { a.at = clock.Never }

func (a *alarm) stop() { a.timer.Stop() }
