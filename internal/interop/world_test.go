//go:build linux

package interop

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"braid/clock"
	"braid/device"
	"braid/host"
	"braid/internal/netns"
	"braid/mptcp"
	"braid/trace"
)

// patience is how long a test waits for anything before it fails.
const patience = 20 * time.Second

// world is a namespace with the kernel's stack and ours, joined by TUN devices. Link i has the kernel's addresses 10.i.0.1 and fd00:i::1,
// ours are 10.i.0.2 and fd00:i::2, i from 1.
type world struct {
	t       testing.TB
	ns      *netns.Namespace
	engine  *host.Engine
	ctx     context.Context
	capture *capture
	tuns    []*device.TUN
	wires   []*badWire       // between each device and our stack
	paths   [][]mptcp.PathID // of each link: IPv4, IPv6
}

// setup says what a world is like.
type setup struct {
	links     int // 0: one
	stack     mptcp.Config
	mtu       int
	noOffload bool
	backup    []int   // links whose paths are backup
	limits    bool    // raise the kernel's limits
	shared    bool    // link 1's addresses of ours can be reached over all links
	loss      float64 // share of the packets that gets lost, each way
	checksums bool    // the kernel asks for DSS checksums
	announce  bool    // we announce our other addresses when the kernel dials
	capture   string  // file for a capture of all packets, whole
	watch     *siege  // attackers that see what comes in
}

func newWorld(t testing.TB, s setup) *world {
	t.Helper()
	w := &world{t: t, ns: netns.New(t, netns.MPTCP, netns.TUN), capture: newCapture(t, s.capture)}
	w.ns.Sysctl("mptcp/enabled", "1")
	w.ns.Sysctl("mptcp/blackhole_timeout", "0") // else one lost SYN keeps the kernel from opening MPTCP connections for an hour
	var cancel context.CancelFunc
	w.ctx, cancel = context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	s.stack.NoAnnounce = !s.announce
	w.engine = host.NewEngine(host.Config{Stack: s.stack})
	t.Cleanup(func() { w.engine.Close() })
	if s.checksums {
		w.ns.Sysctl("mptcp/checksum_enabled", "1")
	}
	if s.limits {
		w.ns.IP("mptcp", "limits", "set", "subflows", "8", "add_addr_accepted", "8")
	}
	for i := 1; i <= max(1, s.links); i++ {
		w.addLink(i, s)
	}
	return w
}

// extend gives a world more time.
func (w *world) extend(d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	w.ctx = ctx
	w.t.Cleanup(cancel)
}

func (w *world) addLink(i int, s setup) {
	w.t.Helper()
	var tun *device.TUN
	name := fmt.Sprintf("tun%d", i)
	w.ns.Must(func() (err error) {
		tun, err = device.OpenTUN(device.TUNConfig{
			Name:   name,
			Kernel: []netip.Prefix{netip.PrefixFrom(kernel4(i), 24), netip.PrefixFrom(kernel6(i), 64)},
			Own:    []netip.Addr{own4(i), own6(i)},
			MTU:    s.mtu, NoOffload: s.noOffload,
		})
		return err
	})
	w.tuns = append(w.tuns, tun)
	w.usable(kernel6(i))
	at4, at6 := own4(i), own6(i)
	if s.shared && i > 1 {
		at4, at6 = own4(1), own6(1)
		w.ns.IP("route", "add", at4.String(), "dev", name, "metric", "2048")
		w.ns.IP("route", "add", at6.String(), "dev", name, "metric", "2048")
	}
	var dev device.Device = tun
	if s.watch != nil {
		dev = &watched{tun, s.watch, i - 1}
	}
	wire := newBadWire(dev, s.loss, uint64(i))
	w.wires = append(w.wires, wire)
	backup := slices.Contains(s.backup, i)
	ids, err := w.engine.AddPaths(w.capture.tap(name, wire),
		mptcp.Path{Name: name, Local: netip.AddrPortFrom(at4, 0), Burst: tun.Burst(), Backup: backup},
		mptcp.Path{Name: name + "v6", Local: netip.AddrPortFrom(at6, 0), Burst: tun.Burst(), Backup: backup})
	if err != nil {
		w.t.Fatal(err)
	}
	w.paths = append(w.paths, ids)
}

// usable waits until the kernel takes packets for one of its IPv6 addresses: it does so a moment after it has accepted the address.
func (w *world) usable(a netip.Addr) {
	w.t.Helper()
	route := fmt.Sprintf("%x 80 ", a.As16())
	w.until("the route to "+a.String(), func() (there bool) {
		w.ns.Must(func() error {
			all, err := os.ReadFile("/proc/thread-self/net/ipv6_route")
			there = bytes.Contains(all, []byte(route))
			return err
		})
		return there
	})
}

func kernel4(link int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(link), 0, 1}) }
func own4(link int) netip.Addr    { return netip.AddrFrom4([4]byte{10, byte(link), 0, 2}) }
func kernel6(link int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf("fd00:%d::1", link)) }
func own6(link int) netip.Addr    { return netip.MustParseAddr(fmt.Sprintf("fd00:%d::2", link)) }

// duplex is what both stacks' connections can do.
type duplex interface {
	net.Conn
	CloseWrite() error
}

// pair is a connection between the two stacks.
type pair struct {
	own    *host.Conn
	kernel *net.TCPConn
}

const servicePort = 5000

// kernelListen opens a listener of the kernel's stack, at all its addresses of addr's family: a join finds the listener by where it goes to, as any
// SYN does.
func (w *world) kernelListen(addr netip.Addr, multipath bool) *net.TCPListener {
	w.t.Helper()
	network, any := "tcp4", netip.IPv4Unspecified()
	if addr.Is6() {
		network, any = "tcp6", netip.IPv6Unspecified()
	}
	var l net.Listener
	w.ns.Must(func() (err error) {
		lc := net.ListenConfig{}
		lc.SetMultipathTCP(multipath)
		l, err = lc.Listen(w.ctx, network, netip.AddrPortFrom(any, servicePort).String())
		return err
	})
	w.t.Cleanup(func() { l.Close() })
	return l.(*net.TCPListener)
}

// dialKernel connects our stack to a listener of the kernel's.
func (w *world) dialKernel(addr netip.Addr, multipath bool) pair {
	w.t.Helper()
	l := w.kernelListen(addr, multipath)
	own, err := w.engine.Dial(w.ctx, []netip.AddrPort{netip.AddrPortFrom(addr, servicePort)}, nil)
	if err != nil {
		w.t.Fatalf("dial: %v", err)
	}
	w.t.Cleanup(own.Abort)
	l.SetDeadline(time.Now().Add(patience))
	k, err := l.Accept()
	if err != nil {
		w.t.Fatalf("the kernel's accept: %v", err)
	}
	return w.pair(own, k)
}

// dialOwn connects the kernel's stack to a listener of ours.
func (w *world) dialOwn(addr netip.Addr, multipath bool) pair {
	w.t.Helper()
	l, err := w.engine.Listen(servicePort, addr)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { l.Close() })
	var k net.Conn
	w.ns.Must(func() (err error) {
		d := net.Dialer{Timeout: patience}
		d.SetMultipathTCP(multipath)
		k, err = d.DialContext(w.ctx, "tcp", netip.AddrPortFrom(addr, servicePort).String())
		return err
	})
	l.SetDeadline(time.Now().Add(patience))
	own, err := l.AcceptConn()
	if err != nil {
		w.t.Fatalf("accept: %v", err)
	}
	w.t.Cleanup(own.Abort)
	return w.pair(own, k)
}

func (w *world) pair(own *host.Conn, k net.Conn) pair {
	w.t.Cleanup(func() { k.Close() })
	for _, c := range []net.Conn{own, k} {
		c.SetDeadline(time.Now().Add(patience))
	}
	return pair{own, k.(*net.TCPConn)}
}

// alarming are the kernel's counters that a test without a reason for them must leave at zero: the kernel saw something of ours that it did not
// understand, or gave something up.
var alarming = []string{
	"MPCapableFallbackACK", "MPCapableFallbackSYNACK", "MPCapableSYNTXDrop", "MPFallbackTokenInit", "MPCapableDataFallback", "DssFallback", "SimultConnectFallback",
	"FallbackFailed", "Blackhole", "MPJoinNoTokenFound", "MPJoinSynAckHMacFailure", "MPJoinAckHMacFailure", "MPJoinRejected", "DSSNotMatching",
	"DSSCorruptionFallback", "DSSCorruptionReset", "InfiniteMapTx", "InfiniteMapRx", "DSSNoMatchTCP", "DataCsumErr", "NoDSSInWindow", "MPFailTx", "MPFailRx",
	"MPFastcloseTx", "MPFastcloseRx", "MPRstTx", "MPRstRx", "EchoAddTxDrop", "RmAddrDrop",
}

// calm checks that the kernel has nothing to complain about, the named counters excepted.
func (w *world) calm(except ...string) {
	w.t.Helper()
	all := w.ns.Counters()
	for _, name := range alarming {
		v, known := all["MPTcpExt"+name]
		if known && v != 0 && !slices.Contains(except, name) {
			w.t.Errorf("the kernel counts %s %d", name, v)
		}
	}
}

// count returns one of the kernel's counters of MPTCP.
func (w *world) count(name string) int64 {
	w.t.Helper()
	v, known := w.ns.Counters()["MPTcpExt"+name]
	if !known {
		w.t.Fatalf("this kernel has no counter MPTcpExt%s", name)
	}
	return v
}

// wantCounts checks the kernel's counters of MPTCP.
func (w *world) wantCounts(want map[string]int64) {
	w.t.Helper()
	for name, n := range want {
		if got := w.count(name); got != n {
			w.t.Errorf("the kernel counts %s %d, want %d", name, got, n)
		}
	}
}

// wantMPTCP checks that a connection is MPTCP in the eyes of both ends.
func (w *world) wantMPTCP(p pair) {
	w.t.Helper()
	if info := p.own.Info(); info.Fallback != mptcp.NoFallback {
		w.t.Errorf("braid fell back: %v", info.Fallback)
	}
	if is, err := p.kernel.MultipathTCP(); err != nil || !is {
		w.t.Errorf("the kernel's end is MPTCP: %v, %v", is, err)
	}
}

// subflow returns what a connection's subflow on a path looks like, nil if there is none.
func subflow(info *mptcp.Info, path string) *mptcp.SubflowInfo {
	for i := range info.Subflows {
		if info.Subflows[i].PathName == path {
			return &info.Subflows[i]
		}
	}
	return nil
}

// until waits until a state is reached that no event announces to the test.
func (w *world) until(what string, reached func() bool) {
	w.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !reached() {
		select {
		case <-tick.C:
		case <-w.ctx.Done():
			w.t.Fatalf("never came: %s", what)
		}
	}
}

// capture keeps the heads of all packets until the test is over, and writes them to a file if it failed; or all of them, whole, to a file of the test's.
type capture struct {
	mu      sync.Mutex
	buf     bytes.Buffer
	pcap    *trace.PcapWriter
	began   time.Time
	packets int
	file    string
	whole   bool
	t       testing.TB
}

const (
	capturedHead    = 160     // bytes kept of a packet: all headers
	capturedPackets = 400_000 // kept of one test
)

// newCapture captures whole packets for a file, or if that is "" heads for a test that fails; it returns nil if nobody wants captures.
func newCapture(t testing.TB, file string) *capture {
	if file != "" {
		return captureTo(t, file)
	}
	dir := os.Getenv("BRAID_PCAP")
	if dir == "" {
		return nil
	}
	c := captureTo(t, filepath.Join(dir, strings.NewReplacer("/", "_", " ", "_").Replace(t.Name())+".pcapng"))
	c.whole = false
	t.Cleanup(func() {
		if t.Failed() {
			c.close()
			t.Logf("%d packets in %s", c.packets, c.file)
		}
	})
	return c
}

// captureTo keeps whole packets for a file; close writes it.
func captureTo(t testing.TB, file string) *capture {
	c := &capture{began: time.Now(), file: file, whole: true, t: t}
	c.pcap = trace.NewPcapWriter(&c.buf, c.began.UnixNano())
	return c
}

// close writes what was captured so far to the file.
func (c *capture) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pcap.Flush()
	if err := os.WriteFile(c.file, c.buf.Bytes(), 0o644); err != nil {
		c.t.Error(err)
	}
}

// tap returns dev with the capture listening.
func (c *capture) tap(name string, dev device.Device) device.Device {
	if c == nil {
		return dev
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return &tapped{dev, c, c.pcap.AddInterface(name)}
}

type tapped struct {
	device.Device
	capture *capture
	number  int
}

func (d *tapped) Read(b *device.Batch) error {
	err := d.Device.Read(b)
	if err == nil {
		for _, p := range b.Packets {
			d.capture.add(d.number, trace.Inbound, p.Data)
		}
	}
	return err
}

func (d *tapped) Write(t device.Train) error {
	for rest := t.Data; len(rest) > 0; rest = rest[min(t.Size, len(rest)):] {
		d.capture.add(d.number, trace.Outbound, rest[:min(t.Size, len(rest))])
	}
	return d.Device.Write(t)
}

func (c *capture) add(number int, dir trace.Direction, packet []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.packets++; c.packets > capturedPackets {
		return
	}
	head := packet
	if !c.whole {
		head = packet[:min(len(packet), capturedHead)]
	}
	c.pcap.WritePacket(&trace.Packet{Interface: number, Time: clock.Time(time.Since(c.began)), Direction: dir, Data: head, Length: len(packet)})
}
