//go:build linux

package interop

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"braid/device"
	"braid/emulator"
	"braid/emulator/testbed"
	"braid/host"
	"braid/internal/netns"
	"braid/link"
	"braid/middlebox"
	"braid/mptcp"
)

// side is an end of an emulated stretch.
type side int

const (
	client side = iota
	server
	neither
)

// stretchSetup says what a stretch is like.
type stretchSetup struct {
	paths     []stretchPath
	own       side // the end that is ours; neither: the kernel is at both
	stack     mptcp.Config
	sysctls   [][2]string // of the kernel, below net
	sender    string      // congestion control of a kernel that is the client; empty: its default
	seed      uint64      // of the losses
	unjoined  bool        // nobody opens further subflows
	checksums bool        // both ends ask for DSS checksums
}

// stretchPath is a path of a stretch: what data sent by the client crosses, and back.
type stretchPath struct {
	up, down link.Spec
	boxes    []middlebox.Box
}

// stretch is a client and a server, the kernel's stack or ours, with emulated paths between them.
type stretch struct {
	t      testing.TB
	tb     *testbed.Testbed
	bridge *emulator.Bridge
	engine *host.Engine // of the end that is ours
	own    side
	sender string
	ctx    context.Context
	lasts  time.Duration // how long connections may live
}

func newStretch(t testing.TB, s stretchSetup, lasts time.Duration) *stretch {
	t.Helper()
	netns.Require(t, netns.MPTCP, netns.TUN)
	var names []string
	for i := range s.paths {
		names = append(names, []string{"one", "two", "three"}[i])
	}
	tb, err := testbed.Open(testbed.Config{Paths: names, Unnamed: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tb.Close() })
	x := &stretch{t: t, tb: tb, own: s.own, sender: s.sender, lasts: lasts}
	var cancel context.CancelFunc
	x.ctx, cancel = context.WithTimeout(context.Background(), lasts)
	t.Cleanup(cancel)
	x.settings(s)
	x.ends(s)
	return x
}

// settings sets the kernel's.
func (x *stretch) settings(s stretchSetup) {
	x.t.Helper()
	all := append([][2]string{{"mptcp/blackhole_timeout", "0"}}, s.sysctls...)
	if s.checksums {
		all = append(all, [2]string{"mptcp/checksum_enabled", "1"})
	}
	for _, ns := range []*testbed.Namespace{x.tb.Client, x.tb.Server} {
		err := ns.Do(func() error {
			for _, v := range all {
				if err := os.WriteFile(filepath.Join("/proc/sys/net", v[0]), []byte(v[1]), 0o644); err != nil {
					return err
				}
			}
			if s.unjoined {
				return ipCommand("mptcp", "limits", "set", "subflows", "0", "add_addr_accepted", "0")
			}
			return nil
		})
		if err != nil {
			x.t.Fatal(err)
		}
	}
}

// ends builds the bridge, with our stack in the place of the kernel's at our end.
func (x *stretch) ends(s stretchSetup) {
	x.t.Helper()
	cfg := emulator.BridgeConfig{Seed: s.seed}
	s.stack.NoAnnounce = true
	s.stack.Checksums = s.checksums
	if s.unjoined {
		s.stack.MaxSubflows = 1
	}
	if s.own != neither {
		x.engine = host.NewEngine(host.Config{Stack: s.stack})
		x.t.Cleanup(func() { x.engine.Close() })
	}
	for i, p := range s.paths {
		cfg.Links = append(cfg.Links, emulator.NamedLink{Name: "up", Spec: p.up}, emulator.NamedLink{Name: "down", Spec: p.down})
		ends := [2]device.Device{x.tb.ClientEnd[i], x.tb.ServerEnd[i]}
		if s.own != neither {
			ends[s.own].Close() // the kernel's, in whose place ours comes
			inner, outer := newPipe()
			ends[s.own] = outer
			local := []netip.Addr{testbed.ClientAt(i + 1), testbed.ServerAddr}[s.own]
			name := []string{"one", "two", "three"}[i]
			if _, err := x.engine.AddPath(inner, mptcp.Path{Name: name, Local: netip.AddrPortFrom(local, 0), MTU: 1500}); err != nil {
				x.t.Fatal(err)
			}
		}
		cfg.Paths = append(cfg.Paths, emulator.BridgePath{
			Name: "path", Client: ends[client], Server: ends[server], Forward: []int{2 * i}, Reverse: []int{2*i + 1}, Boxes: p.boxes,
		})
	}
	var err error
	if x.bridge, err = emulator.OpenBridge(cfg); err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { x.bridge.Close() })
}

// connect opens a connection from the client to the server.
func (x *stretch) connect(multipath bool) (c, s duplex, err error) {
	to := netip.AddrPortFrom(testbed.ServerAddr, servicePort)
	accepted := make(chan duplex, 1)
	failed := make(chan error, 1)
	var l net.Listener
	if x.own == server {
		l, err = x.engine.Listen(servicePort, to.Addr())
	} else {
		err = x.tb.Server.Do(func() (err error) {
			lc := net.ListenConfig{}
			lc.SetMultipathTCP(multipath)
			l, err = lc.Listen(x.ctx, "tcp", to.String())
			return err
		})
	}
	if err != nil {
		return nil, nil, err
	}
	x.t.Cleanup(func() { l.Close() })
	context.AfterFunc(x.ctx, func() { l.Close() })
	go func() {
		c, err := l.Accept()
		if err != nil {
			failed <- err
			return
		}
		accepted <- c.(duplex)
	}()
	if x.own == client {
		own, err := x.engine.Dial(x.ctx, []netip.AddrPort{to}, nil)
		if err != nil {
			return nil, nil, err
		}
		x.t.Cleanup(own.Abort)
		c = own
	} else {
		err := x.tb.Client.Do(func() error {
			d := net.Dialer{Control: x.choose}
			d.SetMultipathTCP(multipath)
			k, err := d.DialContext(x.ctx, "tcp", to.String())
			if err == nil {
				c = k.(*net.TCPConn)
			}
			return err
		})
		if err != nil {
			return nil, nil, err
		}
	}
	select {
	case s = <-accepted:
	case err := <-failed:
		return nil, nil, err
	}
	for _, end := range []duplex{c, s} {
		end.SetDeadline(time.Now().Add(x.lasts))
		x.t.Cleanup(func() { end.Close() })
	}
	return c, s, nil
}

// choose sets the congestion control of the kernel's client.
func (x *stretch) choose(_, _ string, c syscall.RawConn) (err error) {
	if x.sender == "" {
		return nil
	}
	return errors.Join(c.Control(func(fd uintptr) {
		err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, x.sender)
	}), err)
}

// counters returns the counters of the kernel at one end.
func (x *stretch) counters(at side) (all map[string]int64) {
	x.t.Helper()
	err := []*testbed.Namespace{x.tb.Client, x.tb.Server}[at].Do(func() (err error) {
		all, err = netns.ReadCounters()
		return err
	})
	if err != nil {
		x.t.Fatal(err)
	}
	return all
}

// pipe is one end of an in-memory device that carries whole IP packets to the other end.
type pipe struct {
	mu      sync.Mutex
	arrived sync.Cond
	queue   [][]byte
	spare   [][]byte
	closed  bool
	count   device.Counters
	far     *pipe
}

func newPipe() (a, b *pipe) {
	a, b = &pipe{}, &pipe{}
	a.far, b.far = b, a
	a.arrived.L, b.arrived.L = &a.mu, &b.mu
	return a, b
}

const pipeRoom = 1 << 16 // packets that wait

func (p *pipe) Read(b *device.Batch) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.queue) == 0 {
		if p.closed {
			return net.ErrClosed
		}
		p.arrived.Wait()
	}
	b.Packets = b.Packets[:0]
	n := min(len(p.queue), 128)
	for i, data := range p.queue[:n] {
		room := b.Room(i, len(data))
		copy(room, data)
		b.Packets = append(b.Packets, device.Packet{Data: room})
	}
	p.spare = append(p.spare, p.queue[:n]...)
	p.queue = slices.Delete(p.queue, 0, n)
	p.count.Received += int64(n)
	return nil
}

func (p *pipe) Write(t device.Train) error {
	f := p.far
	f.mu.Lock()
	defer f.mu.Unlock()
	for rest := t.Data; len(rest) > 0; rest = rest[min(t.Size, len(rest)):] {
		if f.closed {
			return nil
		}
		if len(f.queue) >= pipeRoom {
			f.count.Overflowed++
			continue
		}
		var room []byte
		if n := len(f.spare); n > 0 {
			room, f.spare = f.spare[n-1], f.spare[:n-1]
		}
		f.queue = append(f.queue, append(room[:0], rest[:min(t.Size, len(rest))]...))
	}
	f.arrived.Signal()
	return nil
}

func (p *pipe) LocalAddr() netip.AddrPort { return netip.AddrPort{} }
func (p *pipe) MTU() int                  { return 1500 }

func (p *pipe) Counters() device.Counters {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

func (p *pipe) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.arrived.Broadcast()
	return nil
}

// ipCommand runs iproute2's ip in the namespace of the calling thread.
func ipCommand(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %v: %w: %s", args, err, bytes.TrimSpace(out))
	}
	return nil
}

// TestMain lets more tests run side by side than there are processors: those that may, wait for emulated links most of their time.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		f.Value.Set("6")
	}
	os.Exit(m.Run())
}
