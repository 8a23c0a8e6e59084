package emulator

import (
	"encoding/binary"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// niceness is the priority of delivering loops: above ordinary programs, below those of the system that are in a hurry.
const niceness = -10

// pollWaiter waits in ppoll(2) on a thread of its own, whose timer slack is set to the least: the kernel's high-resolution timers wake
// it within some ten microseconds, where the runtime's own poller counts in milliseconds.
type pollWaiter struct {
	fd  int // an eventfd: wake writes to it
	set [1]unix.PollFd
}

func newWaiter() waiter {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return newTimerWaiter() // no descriptor to be had: less exact, as Report will show
	}
	w := &pollWaiter{fd: fd}
	w.set[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	return w
}

func (w *pollWaiter) enter() func() {
	runtime.LockOSThread()
	// Without it the kernel may add 50 us. The thread stays locked and ends with its goroutine, so that nothing inherits the setting.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	// A busy machine should not be late for what takes microseconds. Refused without privilege.
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), niceness)
	return func() {}
}

func (w *pollWaiter) wait(d time.Duration) {
	var limit *unix.Timespec
	if d >= 0 {
		ts := unix.NsecToTimespec(int64(d))
		limit = &ts
	}
	n, err := unix.Ppoll(w.set[:], limit, nil)
	if err == nil && n > 0 {
		var b [8]byte
		_, _ = unix.Read(w.fd, b[:]) // takes the wake-ups; the descriptor is readable and does not block
	}
}

func (w *pollWaiter) wake() {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], 1)
	_, _ = unix.Write(w.fd, b[:]) // fails only if 2^64-2 wake-ups wait already
}

func (w *pollWaiter) close() { unix.Close(w.fd) }
