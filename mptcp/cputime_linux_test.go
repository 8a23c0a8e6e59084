package mptcp

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is what the calling thread has used: on a busy machine it tells more than the wall clock. The goroutine has to be
// locked to its thread.
func cpuTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
