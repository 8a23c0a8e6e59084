//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package device

import (
	"errors"
	"syscall"
)

func isTooLarge(err error) bool { return errors.Is(err, syscall.EMSGSIZE) }

func isGone(err error) bool {
	return errors.Is(err, syscall.ENXIO) || errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.EADDRNOTAVAIL)
}

// isNotice tells the errors that a UDP socket reports about earlier packets or passing states, each once.
func isNotice(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EHOSTUNREACH) ||
		errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.ENETDOWN)
}
