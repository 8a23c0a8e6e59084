//go:build !linux

package testbed

import (
	"os/exec"

	"braid/device"
)

// Testbed does not exist here: see ErrUnsupported.
type Testbed struct {
	Client, Server *Namespace
	ClientEnd      []device.Device
	ServerEnd      []device.Device
}

// Open returns ErrUnsupported.
func Open(cfg Config) (*Testbed, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	return nil, ErrUnsupported
}

// Close does nothing.
func (*Testbed) Close() error { return nil }

// Lost is 0.
func (*Testbed) Lost() int64 { return 0 }

// Namespace does not exist here.
type Namespace struct{}

// Name is empty.
func (*Namespace) Name() string { return "" }

// Do returns ErrUnsupported.
func (*Namespace) Do(func() error) error { return ErrUnsupported }

// Start returns ErrUnsupported.
func (*Namespace) Start(*exec.Cmd) error { return ErrUnsupported }

// Listens is false.
func (*Namespace) Listens() bool { return false }
