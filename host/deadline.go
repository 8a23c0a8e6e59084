package host

import (
	"sync"
	"time"
)

// deadline is when blocked calls of one kind give up.
type deadline struct {
	at    time.Time // zero: never
	timer *time.Timer
	mu    *sync.Mutex
	wake  *sync.Cond
}

// init names the monitor and the condition that the blocked calls wait on.
func (d *deadline) init(mu *sync.Mutex, wake *sync.Cond) { d.mu, d.wake = mu, wake }

// set moves the deadline, for calls that wait already too. The monitor is held.
func (d *deadline) set(t time.Time) {
	d.at = t
	if t.IsZero() {
		if d.timer != nil {
			d.timer.Stop()
		}
		return
	}
	wait := time.Until(t)
	switch {
	case wait <= 0:
		d.wake.Broadcast()
	case d.timer == nil:
		d.timer = time.AfterFunc(wait, func() {
			d.mu.Lock()
			d.wake.Broadcast()
			d.mu.Unlock()
		})
	default:
		d.timer.Reset(wait)
	}
}

// passed reports whether the deadline is over.
func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

// stop ends the timer.
func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
	}
}
