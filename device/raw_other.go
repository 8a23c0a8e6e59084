//go:build !linux

package device

import "net/netip"

// Raw is a Device of the machine's own addresses. There is none on this system.
type Raw struct{ Device }

// OpenRaw returns ErrNoRaw.
func OpenRaw(RawConfig) (*Raw, error) { return nil, ErrNoRaw }

// Burst is 1.
func (r *Raw) Burst() int { return 1 }

// Hold keeps ports from the machine's kernel. There is none on this system.
type Hold struct{ Ports Ports }

// HoldPort returns ErrNoRaw.
func HoldPort(netip.AddrPort) (*Hold, error) { return nil, ErrNoRaw }

// HoldBlock returns ErrNoRaw.
func HoldBlock(int) (*Hold, error) { return nil, ErrNoRaw }

// Close does nothing.
func (h *Hold) Close() {}
