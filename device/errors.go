package device

import (
	"errors"
	"fmt"
)

// ErrTooLarge is returned by Write if a packet is larger than the interface or the known path takes.
var ErrTooLarge = errors.New("device: packet larger than the path's MTU")

// TooLargeError is ErrTooLarge where the system says what would pass.
type TooLargeError struct {
	MTU int // largest IP packet that leaves to the train's destination
}

// Error names the size.
func (e *TooLargeError) Error() string { return fmt.Sprintf("%v of %d bytes", ErrTooLarge, e.MTU) }

// Is makes it one kind of ErrTooLarge.
func (e *TooLargeError) Is(target error) bool { return target == ErrTooLarge }

// GoneError says that the interface or the address below a Device has vanished. The Device is of no more use; a
// new one can be opened when the interface is back.
type GoneError struct {
	Name string // the interface or, if the Device was bound to an address only, the address
	Err  error  // what the system said
}

// Error names what has vanished.
func (e *GoneError) Error() string {
	return fmt.Sprintf("device: %s has vanished (%v)", e.Name, e.Err)
}

// Unwrap returns what the system said.
func (e *GoneError) Unwrap() error { return e.Err }
