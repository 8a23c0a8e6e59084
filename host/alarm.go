package host

import (
	"time"

	"braid/clock"
)

// alarm is the Engine's one timer. A deadline moves later with nearly every packet; setting the timer anew each time would cost
// more than what it is for. So it stays where it is, fires too early, and is then set to what is due.
type alarm struct {
	timer  *time.Timer
	at     clock.Time // when it fires; Never: it is off
	spared bool       // it was late, and the readers have been let go first
}

const (
	starved = 50 * time.Millisecond // later than any timer of a process that gets to run
	respite = time.Millisecond      // for the readers
)

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

// fired says that f runs: the timer is off. It reports whether what is due may be done now. It may not if the alarm is so late that the
// process cannot have run meanwhile: then packets wait in the sockets that were in time, and their readers go first, lest a
// retransmission timer expires for want of an ACK that has long arrived. The alarm is set anew for that, once.
func (a *alarm) fired(now clock.Time) bool {
	late := a.at != clock.Never && now.Sub(a.at) > starved
	a.at = clock.Never
	if late && !a.spared {
		a.spared = true
		a.set(now, now.Add(respite))
		return false
	}
	a.spared = false
	return true
}

func (a *alarm) stop() { a.timer.Stop() }
