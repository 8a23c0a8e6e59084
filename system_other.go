//go:build !linux

package braid

// isVirtual reports whether an interface is no piece of hardware. These systems do not tell: all count as hardware.
func isVirtual(string) bool { return false }
