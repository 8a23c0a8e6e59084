//go:build !linux

package mptcp

import "time"

var processStart = time.Now()

// cpuTime is the wall clock where no CPU clock is at hand.
func cpuTime() time.Duration { return time.Since(processStart) }
