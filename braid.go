// Package braid connects programs over several network paths at once: Multipath TCP (RFC 8684) in user space, over UDP.
//
// Dial and Listen are what package net's are, and give a net.Conn and a net.Listener; net/http, crypto/tls and gRPC run over
// them unchanged. A program names the server; the connection then uses every interface that can reach it, moves its data when one
// fails, and takes it in again when it is back.
//
//	conn, err := braid.Dial(ctx, "example.com:4443")
//	listener, err := braid.Listen(ctx, ":4443")
//
// A Config chooses interfaces, congestion control and scheduler. Segments travel inside UDP, so that both ends must run
// braid; over TUN interfaces (Config.TUN) or past the machine's own TCP (Config.Raw) they are IP packets, and the other end may be a kernel. The protocol is in package mptcp, what drives it in package host; neither is needed for ordinary use.
package braid

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"time"

	"braid/congestion"
	"braid/host"
	"braid/mptcp"
	"braid/schedule"
)

// Conn is a connection over several paths: a net.Conn with CloseWrite, Shutdown, Abort and Info beside.
type Conn = host.Conn

// Listener is a net.Listener whose connections are Conns.
type Listener = host.Listener

// Config says how to connect. The zero Config is ready to use; a Config may be used for any number of connections, at the same
// time too.
type Config struct {
	// Interfaces names what to use, by interface ("wlan0") or by local address ("192.0.2.7"), the best first. Those that are not
	// there yet are used as soon as they are. If empty, Dial uses every interface that is up and has an address beyond its link,
	// and Listen takes connections on all addresses.
	Interfaces []string

	// Backup names those of Interfaces that are used only while nothing else works.
	Backup []string

	// Via gives, for some of Interfaces, the address under which the server is reached over them, in place of the one that is
	// dialled: that of a relay, a tunnel's end or an emulated path (package emulator).
	Via map[string]netip.AddrPort

	// TUN, if set, takes the place of all of the above but Backup: segments then travel as IP packets through these TUN interfaces (Linux),
	// as the kernel's MPTCP and every TCP speak them. Each element is "NAME=ADDRESS" or "NAME=ADDRESS,ADDRESS": an interface and this
	// program's own addresses behind it, which are none of the machine's. "braid tun up" makes such interfaces; one that does not exist is
	// created bare. One that is removed is opened again when it is back.
	TUN []string

	// Raw, if set, sends segments as IP packets from this machine's own addresses on Interfaces, past its kernel's TCP, as the kernel's MPTCP and
	// every TCP speak them (Linux; it takes root, or CAP_NET_RAW and CAP_NET_ADMIN). The kernel keeps quiet about the ports that are in use, and has them back
	// when the program ends, however it does. See device.Raw and device.Hold.
	Raw bool

	// Congestion names the congestion control: see package congestion's Names. Empty: "coupledbbr".
	Congestion string

	// Scheduler names the packet scheduler: see package schedule's Names. Empty: "arp".
	Scheduler string

	// MTU is the largest IP packet to send. 0: that of the interface, 1500 at most.
	MTU int

	// Watch is how often to look whether interfaces have come or gone. 0: every second, or where the system tells (Linux) as soon as they do;
	// negative: never.
	Watch time.Duration

	// Log, if set, hears of paths that come and go.
	Log *slog.Logger

	// Monitor, if set, keeps count of what is opened, for "braid stat" and for the program itself.
	Monitor *Monitor

	// Stack holds the protocol's own settings: buffers, timeouts, keep-alive. Its Entropy may be nil; Congestion and Scheduler,
	// if set, take the place of its Group and Scheduler.
	Stack mptcp.Config

	system interfaces // nil: the operating system
}

// Dial connects to "host:port" with the zero Config.
func Dial(ctx context.Context, address string) (*Conn, error) { return new(Config).Dial(ctx, address) }

// Listen accepts connections at "host:port" with the zero Config; an empty host means all addresses, port 0 a free port.
func Listen(ctx context.Context, address string) (*Listener, error) {
	return new(Config).Listen(ctx, address)
}

const (
	network      = "mptcp"
	defaultWatch = time.Second
	ethernetMTU  = 1500
)

// DialContext is Dial in the shape that http.Transport wants. The network must be "tcp" or "mptcp", or these with 4 or 6 behind.
func (c *Config) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	family, err := familyOf(network)
	if err != nil {
		return nil, err
	}
	conn, err := c.dial(ctx, family, address)
	if err != nil {
		return nil, err // not conn: a nil *Conn in a net.Conn is not nil
	}
	return conn, nil
}

// familyOf says which addresses a network allows, as net.Resolver names them.
func familyOf(network string) (string, error) {
	switch network {
	case "tcp", "mptcp":
		return "ip", nil
	case "tcp4", "mptcp4":
		return "ip4", nil
	case "tcp6", "mptcp6":
		return "ip6", nil
	}
	return "", net.UnknownNetworkError(network)
}

// Dial connects to "host:port" and returns when the connection is established, or with ctx. The host may be a name; all of its
// addresses are tried. The connection has sockets and goroutines of its own, which end soon after it does.
func (c *Config) Dial(ctx context.Context, address string) (*Conn, error) {
	return c.dial(ctx, "ip", address)
}

func (c *Config) dial(ctx context.Context, family, address string) (*Conn, error) {
	fail := func(err error) (*Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: addressString(address), Err: err}
	}
	remote, err := resolve(ctx, family, address)
	if err != nil {
		return fail(err)
	}
	if remote[0].Addr().IsUnspecified() {
		return fail(errors.New("no host to dial: name one before the port"))
	}
	w, err := c.newWatcher(remote)
	if err != nil {
		return fail(err)
	}
	if err := w.openAll(); err != nil {
		w.engine.Close()
		return fail(err)
	}
	conn, err := w.engine.Dial(ctx, remote, w.order())
	if err != nil {
		w.engine.Close()
		return fail(c.explain(err))
	}
	w.settle(conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr())
	w.start()
	return conn, nil
}

// explain adds to an error of the protocol what to do about it.
func (c *Config) explain(err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, mptcp.ErrTimeout):
		if len(c.TUN) > 0 {
			return fmt.Errorf("%w: no answer; is the server running, and does the machine route between it and the TUN interface?", err)
		}
		if c.Raw {
			return fmt.Errorf("%w: no answer; is the server running, and does TCP to that port get through?", err)
		}
		return fmt.Errorf("%w: no answer; is the server running, and does UDP to that port get through?", err)
	case errors.Is(err, mptcp.ErrRefused) && len(c.TUN) == 0 && !c.Raw:
		return fmt.Errorf("%w (braid must listen there: a plain TCP server does not understand it)", err)
	}
	return err
}

// Listen accepts connections at "host:port". Its sockets stay open until the listener is closed and all its connections are over.
func (c *Config) Listen(ctx context.Context, address string) (*Listener, error) {
	fail := func(err error) (*Listener, error) {
		return nil, &net.OpError{Op: "listen", Net: network, Addr: addressString(address), Err: err}
	}
	local, err := resolve(ctx, "ip", address)
	if err != nil {
		return fail(err)
	}
	w, err := c.newWatcher(nil)
	if err != nil {
		return fail(err)
	}
	w.port = local[0].Port()
	if len(c.Interfaces) == 0 || !local[0].Addr().IsUnspecified() {
		for _, addr := range local {
			w.fixed = append(w.fixed, addr.Addr())
		}
	}
	if c.Raw {
		if local[0].Addr().IsUnspecified() {
			w.fixed, w.only4 = nil, local[0].Addr().Is4() // a device has one address
		}
		if err := w.holdPort(local); err != nil {
			w.engine.Close()
			return fail(err)
		}
	}
	if err := w.openAll(); err != nil {
		w.engine.Close()
		return fail(err)
	}
	var bound netip.Addr
	if len(w.fixed) == 1 {
		bound = w.fixed[0]
	}
	l, err := w.engine.Listen(w.port, bound)
	if err != nil {
		w.engine.Close()
		return fail(err)
	}
	w.start()
	return l, nil
}

// newWatcher makes an engine, still without paths, and what gives it paths.
func (c *Config) newWatcher(remote []netip.AddrPort) (*watcher, error) {
	w := &watcher{cfg: *c, system: c.system, remote: remote, paths: make(map[candidate]*path), failed: make(map[candidate]string), kick: make(chan struct{}, 1)}
	stack := c.Stack
	if c.Congestion != "" {
		group, err := congestion.ByName(c.Congestion)
		if err != nil {
			return nil, err
		}
		stack.Group = group
	}
	if c.Scheduler != "" {
		scheduler, err := schedule.ByName(c.Scheduler)
		if err != nil {
			return nil, err
		}
		stack.Scheduler = scheduler
	}
	if err := c.checkRaw(); err != nil {
		return nil, err
	}
	if c.Raw {
		if err := w.holdBlock(&stack); err != nil {
			return nil, err
		}
	}
	w.engine = host.NewEngine(host.Config{Stack: stack, AutoClose: true, PathGone: w.gone})
	if c.Monitor != nil {
		c.Monitor.watch(w.engine)
	}
	if c.Raw {
		go w.releaseAfter()
	}
	return w, nil
}

// resolve returns the addresses of "host:port", those of the preferred family first, as the resolver sorts them. No host
// is the unspecified address.
func resolve(ctx context.Context, family, address string) ([]netip.AddrPort, error) {
	hostname, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		named, lookupErr := net.DefaultResolver.LookupPort(ctx, "udp", service)
		if lookupErr != nil {
			return nil, lookupErr
		}
		port = uint64(named)
	}
	if hostname == "" || hostname == "::" { // one socket serves both families
		return []netip.AddrPort{netip.AddrPortFrom(netip.IPv6Unspecified(), uint16(port))}, nil
	}
	if literal, err := netip.ParseAddr(hostname); err == nil && family == "ip" { // the resolver would forget its zone
		return []netip.AddrPort{netip.AddrPortFrom(literal.Unmap(), uint16(port))}, nil
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, family, hostname)
	if err != nil {
		return nil, err
	}
	all := make([]netip.AddrPort, len(ips))
	for i, ip := range ips {
		all[i] = netip.AddrPortFrom(ip.Unmap(), uint16(port))
	}
	return all, nil
}

// addressString is a net.Addr that is only a text: the address as the caller wrote it.
type addressString string

func (addressString) Network() string  { return network }
func (a addressString) String() string { return string(a) }
