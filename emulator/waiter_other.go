//go:build !linux

package emulator

func newWaiter() waiter { return newTimerWaiter() }
