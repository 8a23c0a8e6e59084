package real

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"braid/device"
	"braid/host"
	"braid/mptcp"
	"braid/netsim"
)

// flow is a Flow while it runs: two ends, their applications, and the meters.
type flow struct {
	spec           netsim.Flow
	client, server *host.Engine
	paths          []mptcp.PathID // the client's, in the order of spec.Paths
	listener       *host.Listener
	seed           uint64
	warmup         time.Duration
	begin          time.Time

	apps sync.WaitGroup

	mu     sync.Mutex // guards what follows: applications write it, the run's watch reads it
	conns  [2]*host.Conn
	out    outcome
	failed error

	meter meter // the watch's own
}

// The ends of a flow, as indices.
const (
	clientEnd = iota
	serverEnd
)

// serverPort is what every server listens to, inside UDP.
const serverPort = 5001

// loopback is a free port of 127.0.0.1.
var loopback = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0)

// newFlow opens the sockets of a flow's ends, joined by the run's paths. What it returns is to be closed, be there an error or not.
func newFlow(r *run, spec *netsim.Flow, ways *ways) (*flow, error) {
	cfg, err := spec.StackConfig()
	if err != nil {
		return nil, err
	}
	f := &flow{spec: *spec, seed: r.s.Seed, warmup: duration(r.s.WarmupS)}
	f.client, f.server = host.NewEngine(host.Config{Stack: cfg}), host.NewEngine(host.Config{Stack: cfg})
	f.out.init(r)
	f.meter.init(r, spec)
	for _, name := range spec.Paths {
		if err := f.addPath(name, r.paths[ways.of[name]], r.s.Seed); err != nil {
			return f, fmt.Errorf("flow %q: %w", spec.Name, err)
		}
	}
	f.listener, err = f.server.Listen(serverPort, netip.Addr{})
	return f, err
}

// addPath gives both ends a socket for a path.
func (f *flow) addPath(name string, p *path, seed uint64) error {
	there, err := device.Open(device.Config{Local: loopback})
	if err != nil {
		return err
	}
	if _, err := f.server.AddPath(there, mptcp.Path{Name: name, Kind: mptcp.UDP, MTU: f.mtu()}); err != nil {
		return err
	}
	entry, err := p.to(there.LocalAddr(), seed)
	if err != nil {
		return err
	}
	here, err := device.Open(device.Config{Local: loopback})
	if err != nil {
		return err
	}
	id, err := f.client.AddPath(here, mptcp.Path{Name: name, Kind: mptcp.UDP, MTU: f.mtu(), Remote: entry, Backup: slices.Contains(f.spec.BackupPaths, name)})
	f.paths = append(f.paths, id)
	return err
}

func (f *flow) mtu() int {
	if f.spec.MTU == 0 {
		return 1500
	}
	return f.spec.MTU
}

// sender is the end whose data is measured.
func (f *flow) sender() int {
	if f.downloads() {
		return serverEnd
	}
	return clientEnd
}

// downloads reports whether what is measured comes from the server.
func (f *flow) downloads() bool { return f.spec.Download || f.spec.Workload.Kind == netsim.Request }

// start lets the flow's applications do what the Scenario says, until ctx is over.
func (f *flow) start(ctx context.Context, begin time.Time) {
	f.begin = begin
	f.apps.Go(func() { f.fail(f.serve(ctx)) })
	f.apps.Go(func() { f.fail(f.dial(ctx)) })
	for _, r := range f.spec.RemovePaths {
		id := f.paths[slices.Index(f.spec.Paths, r.Path)]
		f.apps.Go(func() {
			if until(ctx, begin.Add(duration(r.AtS))) {
				f.client.RemovePath(id)
			}
		})
	}
}

// dial is the client.
func (f *flow) dial(ctx context.Context) error {
	if !until(ctx, f.begin.Add(duration(f.spec.StartS))) {
		return nil
	}
	paths := f.paths
	if f.spec.PlainTCP {
		paths = paths[:1]
	}
	c, err := f.client.Dial(ctx, []netip.AddrPort{netip.AddrPortFrom(loopback.Addr(), serverPort)}, paths)
	if err != nil {
		return err
	}
	return f.use(ctx, clientEnd, c)
}

// serve is the server.
func (f *flow) serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { f.listener.Close() })
	defer stop()
	c, err := f.listener.AcceptConn()
	if err != nil {
		return err
	}
	return f.use(ctx, serverEnd, c)
}

// use runs the workload's part of one end over its connection.
func (f *flow) use(ctx context.Context, end int, c *host.Conn) error {
	f.mu.Lock()
	f.conns[end] = c
	f.mu.Unlock()
	deadline, _ := ctx.Deadline()
	if err := c.SetReadDeadline(deadline); err != nil {
		return err
	}
	return f.work(ctx, end, c, deadline)
}

// fail keeps the first error that is none of the run's end.
func (f *flow) fail(err error) {
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, net.ErrClosed) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed == nil {
		f.failed = err
	}
}

// close ends the flow and waits for its applications.
func (f *flow) close() {
	f.client.Close()
	f.server.Close()
	f.apps.Wait()
}

// lost is how many packets found a socket's buffer full.
func (f *flow) lost() int64 {
	var n int64
	for _, e := range []*host.Engine{f.client, f.server} {
		for _, p := range e.Paths() {
			n += p.Device.Dropped + p.Device.Overflowed
		}
	}
	return n
}
