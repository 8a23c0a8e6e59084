//go:build !linux

package device

// TUN is a Device of whole IP packets. There is none on this system.
type TUN struct{ Device }

// OpenTUN returns ErrNoTUN.
func OpenTUN(TUNConfig) (*TUN, error) { return nil, ErrNoTUN }

// Burst is 1.
func (t *TUN) Burst() int { return 1 }

// CreateTUN returns ErrNoTUN.
func CreateTUN(TUNConfig, int) (string, error) { return "", ErrNoTUN }

// RemoveTUN returns ErrNoTUN.
func RemoveTUN(string) error { return ErrNoTUN }
