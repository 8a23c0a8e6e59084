package emulator

import "time"

// waiter is how the delivering loop sleeps.
type waiter interface {
	enter() (leave func()) // called by the loop's goroutine before its first wait
	wait(d time.Duration)  // until d has passed or wake is called, also if that was before; d < 0: until wake
	wake()                 // from any goroutine
	close()                // after the loop has left
}

// timerWaiter waits with the runtime's timers, which are a millisecond coarse on an idle machine and exact in a synctest bubble.
type timerWaiter struct {
	timer *time.Timer
	woken chan struct{}
}

func newTimerWaiter() *timerWaiter {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &timerWaiter{t, make(chan struct{}, 1)}
}

func (w *timerWaiter) enter() func() { return func() { w.timer.Stop() } }
func (w *timerWaiter) close()        {}

func (w *timerWaiter) wait(d time.Duration) {
	if d < 0 {
		<-w.woken
		return
	}
	w.timer.Reset(d)
	select {
	case <-w.woken:
		w.timer.Stop()
	case <-w.timer.C:
	}
}

func (w *timerWaiter) wake() {
	select {
	case w.woken <- struct{}{}:
	default: // it will not wait anyway
	}
}
