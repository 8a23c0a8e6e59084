package host

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"braid/clock"
)

// A deadline that moves later leaves the timer alone: it fires early once, and is then set to what is due.
func TestAlarmIsLazy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		now := func() clock.Time { return clock.Time(time.Since(start)) }
		var (
			mu    sync.Mutex // as the Engine's: the alarm is used under it
			fired []time.Duration
			a     alarm
			due   clock.Time
		)
		a.init(func() {
			mu.Lock()
			defer mu.Unlock()
			fired = append(fired, time.Since(start))
			a.fired(now())
			if now() < due {
				a.set(now(), due)
			}
		})
		set := func(d time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			due = now().Add(d)
			a.set(now(), due)
		}
		want := func(times ...time.Duration) {
			t.Helper()
			time.Sleep(time.Second)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(fired, times) {
				t.Errorf("fired at %v, want %v", fired, times)
			}
		}
		set(100 * time.Millisecond)
		for range 10 { // ten ACKs, each of which moves the retransmission timer
			time.Sleep(5 * time.Millisecond)
			set(100 * time.Millisecond)
		}
		want(100*time.Millisecond, 150*time.Millisecond)
		set(time.Hour)
		set(time.Second) // earlier than before: now it must move
		want(100*time.Millisecond, 150*time.Millisecond, 2050*time.Millisecond)
		a.stop()
	})
}

// After the process has been stopped for a while, what waits in the sockets is read before timers expire.
func TestAlarmLetsReadersGoFirst(t *testing.T) {
	var a alarm
	a.init(func() {})
	defer a.stop()
	at := func(ms int) clock.Time { return clock.Time(time.Duration(ms) * time.Millisecond) }
	for _, tt := range []struct {
		set, fires int
		due        bool
	}{
		{100, 101, true},   // in time
		{200, 1500, false}, // late by more than a second: readers first
		{1501, 1502, true}, // then what is due
		{1600, 3000, false},
		{3001, 9000, true}, // late again: it is not put off for ever
	} {
		a.at = at(tt.set)
		if due := a.fired(at(tt.fires)); due != tt.due {
			t.Errorf("set for %d ms, fired at %d ms: due %v", tt.set, tt.fires, due)
		}
		if a.at == clock.Never == !tt.due {
			t.Errorf("set for %d ms, fired at %d ms: next at %v", tt.set, tt.fires, a.at)
		}
	}
}
