package device

import "net/netip"

// RawConfig says how to use an address of this machine past its kernel's TCP.
type RawConfig struct {
	// Local is the address that packets leave from and arrive at: one of this machine's.
	Local netip.Addr

	// Interface, if set, is the network interface that all packets leave from and arrive at, whatever the routing table says. Otherwise
	// packets are taken wherever they arrive, and leave as the routing table says.
	Interface string

	// Ports are the TCP ports whose segments are taken, at least one row. They must be held (see Hold): else the kernel answers too.
	Ports []Ports

	ReceiveBuffer int  // bytes the kernel may hold for Read, its own overhead included; 0: 32 MiB
	SendBuffer    int  // bytes the kernel may hold after Write; 0: 4 MiB
	NoOffload     bool // take and send packets one by one as they are on the wire, as far as the kernel has not merged them itself
}

const defaultRawReceiveBuffer = 32 << 20
