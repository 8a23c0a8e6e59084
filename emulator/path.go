package emulator

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"braid/device"
	"braid/link"
)

// Config says how a Path runs.
type Config struct {
	Name   string         // names the links' random streams, with Seed, and stands in errors
	Listen netip.AddrPort // where clients send to; the zero value: a free port on 127.0.0.1
	Server netip.AddrPort // where the path ends

	Up, Down link.Spec // from client to server, and back; times of changes count from Open
	Seed     uint64

	Grain time.Duration // the shortest pause between two deliveries: what falls due meanwhile leaves as one train; 0: 100 us
}

const maxClients = 1024 // clients that a path serves; packets of more are dropped and counted

// Direction names a link of a Path.
type Direction int

// The directions.
const (
	Up   Direction = iota // client to server
	Down                  // server to client
)

// Path is an emulated path between the clients of a UDP port and a server. Its methods may be called from any goroutine.
type Path struct {
	loop   // its lock guards what follows; its links are by Direction
	cfg    Config
	client *entrance // where clients send to

	others  []*entrance
	flows   map[endpoints]*flow
	byRoute []*flow // by the Route of a packet: its flow
	report  Report  // the counts that neither links nor devices keep

	out outbox // the loop's own
}

// entrance is where clients send what is for one server.
type entrance struct {
	dev    device.Device
	server netip.AddrPort
	dial   func() (device.Device, error) // opens the server side of a new client
}

// endpoints are what a flow runs between.
type endpoints struct{ client, server netip.AddrPort }

// flow is one client as one server sees it.
type flow struct {
	client netip.AddrPort
	via    *entrance
	route  int32
	dev    device.Device
}

// Open starts a Path over UDP sockets.
func Open(cfg Config) (*Path, error) {
	if !cfg.Server.IsValid() {
		return nil, fmt.Errorf("emulator: path %q has no server: set Config.Server", cfg.Name)
	}
	if !cfg.Listen.IsValid() {
		cfg.Listen = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0)
	}
	client, err := device.Open(device.Config{Local: cfg.Listen})
	if err != nil {
		return nil, fmt.Errorf("emulator: path %q: %w", cfg.Name, err)
	}
	p, err := start(cfg, client, dialUDP(cfg.Server), newWaiter())
	if err != nil {
		client.Close()
		return nil, err
	}
	return p, nil
}

// dialUDP returns a function that opens a socket that can reach server.
func dialUDP(server netip.AddrPort) func() (device.Device, error) {
	local := netip.IPv6Unspecified()
	switch addr := server.Addr(); {
	case addr.IsLoopback() && addr.Is4():
		local = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	case addr.IsLoopback():
		local = netip.IPv6Loopback()
	case addr.Is4():
		local = netip.IPv4Unspecified()
	}
	return func() (device.Device, error) {
		d, err := device.Open(device.Config{Local: netip.AddrPortFrom(local, 0)})
		if err != nil {
			return nil, err // not d: a nil *UDP in a Device is not nil
		}
		return d, nil
	}
}

// start starts a Path between given devices.
func start(cfg Config, client device.Device, dial func() (device.Device, error), wait waiter) (*Path, error) {
	p := &Path{
		loop: loop{grain: cfg.Grain, wait: wait, pool: link.NewPool(packetSize)},
		cfg:  cfg, client: &entrance{client, cfg.Server, dial}, flows: make(map[endpoints]*flow),
	}
	p.cargo = p
	for dir, spec := range []link.Spec{cfg.Up, cfg.Down} {
		l, err := link.New(cfg.Name+[]string{"/up", "/down"}[dir], spec, cfg.Seed, p.pool)
		if err != nil {
			wait.close()
			return nil, fmt.Errorf("emulator: %w", err)
		}
		p.links = append(p.links, l)
	}
	p.begin()
	p.running.Add(1)
	go p.readClients(p.client)
	return p, nil
}

// AddServer opens another entrance, on a free port of 127.0.0.1, and returns its address: what clients send there goes to another server
// over the same links.
func (p *Path) AddServer(server netip.AddrPort) (netip.AddrPort, error) {
	dev, err := device.Open(device.Config{Local: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0)})
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("emulator: path %q: %w", p.cfg.Name, err)
	}
	if err := p.addServer(&entrance{dev, server, dialUDP(server)}); err != nil {
		dev.Close()
		return netip.AddrPort{}, err
	}
	return dev.LocalAddr(), nil
}

func (p *Path) addServer(e *entrance) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return fmt.Errorf("emulator: path %q: %w", p.cfg.Name, net.ErrClosed)
	case !e.server.IsValid():
		return fmt.Errorf("emulator: path %q: no server to add", p.cfg.Name)
	}
	p.others = append(p.others, e)
	p.running.Add(1)
	go p.readClients(e)
	return nil
}

// Addr is where clients of Config.Server send to.
func (p *Path) Addr() netip.AddrPort { return p.client.dev.LocalAddr() }

// Name is Config.Name.
func (p *Path) Name() string { return p.cfg.Name }

// Apply changes a link from now on, as link.Link.Apply does.
func (p *Path) Apply(dir Direction, c link.Change) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.links[dir].Apply(p.now(), c)
	p.hurry()
	return err
}

// SetDown cuts the path silently in both directions, or restores it. What is on its way when it is cut still arrives.
func (p *Path) SetDown(down bool) error {
	return errors.Join(p.Apply(Up, link.Change{Down: &down}), p.Apply(Down, link.Change{Down: &down}))
}

// Rebind gives every client another port towards the server, as a NAT does that has lost its state.
func (p *Path) Rebind() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return fmt.Errorf("emulator: path %q: %w", p.cfg.Name, net.ErrClosed)
	}
	for _, f := range p.byRoute {
		dev, err := f.via.dial()
		if err != nil {
			return fmt.Errorf("emulator: path %q: %w", p.cfg.Name, err)
		}
		f.dev.Close()
		f.dev = dev
		p.running.Add(1)
		go p.readServer(f, dev)
	}
	return nil
}

// Close ends the path. What is on its way is lost.
func (p *Path) Close() error {
	var errs []error
	p.end(func() {
		errs = append(errs, p.client.dev.Close())
		for _, e := range p.others {
			errs = append(errs, e.dev.Close())
		}
		for _, f := range p.byRoute {
			errs = append(errs, f.dev.Close())
		}
	})
	return errors.Join(errs...)
}
