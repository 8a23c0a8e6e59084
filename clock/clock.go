// Package clock gives the trunk its notion of time: a count of nanoseconds that a driver supplies.
//
// It cannot read a clock. The simulator advances a virtual one and the host converts the machine's
// monotonic clock; everything between only receives a Time as an argument.
package clock

import (
	"math"
	"time"
)

// Time is a point in time: nanoseconds since an epoch that the driver chooses. It never goes back
// within one Stack. The zero Time is a valid time (the epoch); "no time" is Never.
type Time int64

// Never is later than every time at which something happens: the deadline of a timer that is off.
const Never Time = math.MaxInt64

// Add returns the time d after t, saturating at Never.
func (t Time) Add(d time.Duration) Time {
	if t == Never || (d > 0 && t > Never-Time(d)) {
		return Never
	}
	return t + Time(d)
}

// Sub returns the duration from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Before reports whether t is earlier than u.
func (t Time) Before(u Time) bool { return t < u }

// After reports whether t is later than u.
func (t Time) After(u Time) bool { return t > u }

// Seconds returns t as seconds since the epoch, for reports and plots.
func (t Time) Seconds() float64 { return float64(t) / 1e9 }

// String prints t as seconds since the epoch, or "never".
func (t Time) String() string {
	if t == Never {
		return "never"
	}
	return time.Duration(t).String()
}
