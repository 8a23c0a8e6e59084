package device

import "errors"

// Ports is a row of TCP ports.
type Ports struct {
	First uint16
	Count int // at least 1; the last is at most 65535
}

// Contains reports whether port is one of them.
func (p Ports) Contains(port uint16) bool {
	return int(port) >= int(p.First) && int(port) < int(p.First)+p.Count
}

// ErrNoRaw is returned where packets of this machine's own addresses cannot be taken and sent.
var ErrNoRaw = errors.New("device: a machine's own addresses can be used without its kernel's TCP on Linux only; elsewhere packets travel inside UDP")
