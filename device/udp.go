package device

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
)

// Config says how to open a UDP device.
type Config struct {
	// Local is the address to bind to. A zero port lets the system choose one. The zero AddrPort and an unspecified
	// address take packets on every local address.
	Local netip.AddrPort
	// Interface, if set, is the network interface that all packets leave from and arrive at, whatever the routing table
	// says. Where the system does not permit that, Local alone decides.
	Interface string

	ReceiveBuffer int  // bytes the kernel may hold for Read; 0: 8 MiB. Without privilege the kernel grants less.
	SendBuffer    int  // bytes the kernel may hold after Write; 0: 4 MiB
	NoOffload     bool // do not use segmentation and receive offload (UDP_SEGMENT, UDP_GRO)
}

const (
	defaultReceiveBuffer = 8 << 20
	defaultSendBuffer    = 4 << 20
	defaultMTU           = 1500
	maxStrange           = 100 // errors that say nothing about the network: so many while one Read waits and the socket is given up
)

// UDP is a Device over one UDP socket. Packets are UDP payloads.
type UDP struct {
	conn  *net.UDPConn
	name  string // for errors: interface or address
	local netip.AddrPort
	mtu   int
	count counters
	port  port // what differs between systems
}

var _ Device = (*UDP)(nil)

// Open opens a UDP socket as cfg says. The error names the address or the interface that could not be used.
func Open(cfg Config) (*UDP, error) {
	if cfg.ReceiveBuffer == 0 {
		cfg.ReceiveBuffer = defaultReceiveBuffer
	}
	if cfg.SendBuffer == 0 {
		cfg.SendBuffer = defaultSendBuffer
	}
	ifc, err := findInterface(cfg)
	if err != nil {
		return nil, err
	}
	network, address := "udp", ":0"
	switch addr := cfg.Local.Addr(); {
	case addr.Is4():
		network, address = "udp4", cfg.Local.String()
	case addr.Is6() && !addr.IsUnspecified():
		network, address = "udp6", cfg.Local.String()
	case cfg.Local.Port() != 0:
		address = fmt.Sprintf(":%d", cfg.Local.Port())
	}
	var bindErr error
	lc := net.ListenConfig{Control: func(network, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) {
			if cfg.Interface != "" {
				bindErr = bindInterface(int(fd), network, ifc)
			}
		})
	}}
	pc, err := lc.ListenPacket(context.Background(), network, address)
	if err != nil {
		return nil, fmt.Errorf("device: cannot open a UDP socket on %s: %w", describe(cfg), err)
	}
	if bindErr != nil {
		pc.Close()
		return nil, fmt.Errorf("device: cannot use interface %s: %w", cfg.Interface, bindErr)
	}
	u := &UDP{conn: pc.(*net.UDPConn), name: describe(cfg), mtu: defaultMTU}
	if ifc != nil {
		u.mtu = ifc.MTU
	}
	bound := u.conn.LocalAddr().(*net.UDPAddr).AddrPort()
	u.local = netip.AddrPortFrom(bound.Addr().Unmap(), bound.Port())
	if err := u.port.open(u, cfg); err != nil {
		pc.Close()
		return nil, fmt.Errorf("device: cannot set up the UDP socket on %s: %w", u.name, err)
	}
	return u, nil
}

// describe names what a Config binds to.
func describe(cfg Config) string {
	switch {
	case cfg.Interface != "" && cfg.Local.IsValid():
		return cfg.Interface + " (" + cfg.Local.String() + ")"
	case cfg.Interface != "":
		return cfg.Interface
	case cfg.Local.IsValid():
		return cfg.Local.String()
	}
	return "any address"
}

// findInterface returns the interface that cfg names or whose address it names, nil if the address is unspecified.
func findInterface(cfg Config) (*net.Interface, error) {
	if cfg.Interface != "" {
		ifc, err := net.InterfaceByName(cfg.Interface)
		if err != nil {
			return nil, fmt.Errorf("device: no interface %s: %w", cfg.Interface, err)
		}
		return ifc, nil
	}
	if !cfg.Local.IsValid() || cfg.Local.Addr().IsUnspecified() {
		return nil, nil
	}
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("device: cannot list the interfaces: %w", err)
	}
	for i := range all {
		addrs, err := all[i].Addrs()
		if err != nil {
			continue // the interface vanished between the two calls
		}
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			if err == nil && (p.Addr() == cfg.Local.Addr().WithZone("") || p.Addr().IsLoopback() && p.Contains(cfg.Local.Addr())) {
				return &all[i], nil
			}
		}
	}
	return nil, nil // bind decides: an address may be usable without standing on an interface
}

// LocalAddr is the socket's address.
func (u *UDP) LocalAddr() netip.AddrPort { return u.local }

// MTU is the MTU of the interface when the device was opened, 1500 if the socket is bound to none.
func (u *UDP) MTU() int { return u.mtu }

// Close closes the socket.
func (u *UDP) Close() error {
	if err := u.conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("device: close %s: %w", u.name, err)
	}
	return nil
}

// Counters returns what happened so far.
func (u *UDP) Counters() Counters { return u.count.load() }

// Offload reports whether trains leave in one system call now.
func (u *UDP) Offload() bool { return u.port.offload() }

func (u *UDP) gone(err error) error { return &GoneError{Name: u.name, Err: err} }

// counters is Counters, written by a reader and a writer and read by anyone.
type counters struct {
	sent, sentBytes, sentCalls                                                        atomic.Int64
	received, receivedBytes, receivedCalls                                            atomic.Int64
	dropped, tooLarge, unreachable, overflowed, truncated, receiveErrors, unsegmented atomic.Int64
}

func (c *counters) load() Counters {
	return Counters{
		Sent: c.sent.Load(), SentBytes: c.sentBytes.Load(), SentCalls: c.sentCalls.Load(),
		Received: c.received.Load(), ReceivedBytes: c.receivedBytes.Load(), ReceivedCalls: c.receivedCalls.Load(),
		Dropped: c.dropped.Load(), TooLarge: c.tooLarge.Load(), Unreachable: c.unreachable.Load(),
		Overflowed: c.overflowed.Load(), Truncated: c.truncated.Load(), ReceiveErrors: c.receiveErrors.Load(), Unsegmented: c.unsegmented.Load(),
	}
}
