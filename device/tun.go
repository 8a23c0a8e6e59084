package device

import (
	"errors"
	"net/netip"
)

// ErrNoTUN is returned where there are no TUN devices.
var ErrNoTUN = errors.New("device: TUN devices exist on Linux only; elsewhere packets travel inside UDP")

// TUNConfig says how to open or create a TUN interface: a point-to-point link between this machine's kernel and the stack.
type TUNConfig struct {
	// Name is the interface. If there is none of that name it is created, which takes CAP_NET_ADMIN, and vanishes with Close. A %d in
	// it becomes a free number; empty: "braid%d".
	Name string

	// Kernel are addresses with their prefix lengths that the machine gets on the interface: the kernel's end of the link. They take
	// CAP_NET_ADMIN to set; an interface that was set up before needs none.
	Kernel []netip.Prefix

	// Own are the stack's addresses behind the interface. Where Kernel is set, the machine gets a route to each of them.
	Own []netip.Addr

	// MTU of the interface; 0: what it has, 1500 if it is new.
	MTU int

	// NoOffload asks for packets as they would be on a wire. Otherwise the kernel hands over up to 64 KB of one connection as one
	// packet, which is several times cheaper.
	NoOffload bool
}
