package host

import (
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
		var fired []time.Duration
		var a alarm
		due := clock.Time(100 * time.Millisecond)
		a.init(func() {
			fired = append(fired, time.Since(start))
			a.fired()
			if now() < due {
				a.set(now(), due)
			}
		})
		a.set(now(), due)
		for range 10 { // ten ACKs, each of which moves the retransmission timer
			time.Sleep(5 * time.Millisecond)
			due = now().Add(100 * time.Millisecond)
			a.set(now(), due)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		want := []time.Duration{100 * time.Millisecond, 150 * time.Millisecond}
		if len(fired) != 2 || fired[0] != want[0] || fired[1] != want[1] {
			t.Errorf("fired at %v, want %v", fired, want)
		}
		a.set(now(), now().Add(time.Hour))
		a.set(now(), now().Add(time.Second)) // earlier than set: now it must move
		time.Sleep(time.Second)
		synctest.Wait()
		if len(fired) != 3 {
			t.Errorf("an earlier deadline was missed: fired %v", fired)
		}
		a.stop()
	})
}
