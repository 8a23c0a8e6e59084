package netsim

import (
	"fmt"
	"net/netip"
	"time"

	"braid/clock"
	"braid/congestion"
	"braid/mptcp"
	"braid/schedule"
	"braid/trace"
)

// flowRun is a Flow while it runs: two hosts, their applications, and the meters.
type flowRun struct {
	spec   Flow
	net    *Network
	index  int
	client *Host
	server *Host
	buf    []byte // of all readers

	meters       []*pathMeter // by position in spec.Paths, which is the PathID at both ends
	subflowPaths []int        // sender's subflow number -> path; -1: not known
	goodput      bins
	warmup       clock.Time
	received     int64 // bytes in order after the warm-up
	total        int64 // ... and before
	disorder     disorder
	latencies    distribution // ms, of requests
	requests     int64
	churn        churnCounts
	ends         []*end
	failure      error
	finished     clock.Time // when the receiver had everything; Never: it has not
	stop         func(now clock.Time)
}

// disorder averages the out-of-order queue over arrivals and over time.
type disorder struct {
	samples    int64
	bytes      float64
	packets    float64
	maxBytes   int64
	maxPackets int
	series     means // packets
}

// serverPort is what every server listens to.
const serverPort = 5001

// address is the address of one end of a path of a flow: 10, flow (two bytes), path and side.
func address(flow, path, side int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(flow >> 8), byte(flow), byte(2*path + side)})
}

// newFlowRun makes the hosts of a flow and connects them. routes are the links of the flow's paths, forward and back.
func newFlowRun(n *Network, index int, f Flow, s *Scenario, routes [][2][]*Link, sink func(host string) trace.Sink) (*flowRun, error) {
	f.Workload = f.Workload.withDefaults()
	f.Download = f.Download || f.Workload.Kind == Request // what is measured is the responses
	width := binWidth(s)
	run := &flowRun{spec: f, net: n, index: index, buf: make([]byte, chunkRoom), goodput: bins{width: width}, finished: clock.Never,
		warmup: seconds(s.WarmupS)}
	run.disorder.series = newMeans(width)
	for _, name := range f.Paths {
		run.meters = append(run.meters, newPathMeter(name, width, run.warmup))
	}
	for side, host := range []**Host{&run.client, &run.server} {
		name := f.Name + []string{" client", " server"}[side]
		cfg, err := run.config(name, (side == 1) == f.Download)
		if err != nil {
			return nil, err
		}
		if sink != nil {
			cfg.Trace = sink(name)
		}
		*host = n.AddHost(name, mptcp.NewStack(cfg), nil)
		run.addPaths(*host, side)
	}
	for i, r := range routes {
		n.Connect(run.client, mptcp.PathID(i), address(index, i, 1), run.server, mptcp.PathID(i), r[0]...)
		n.Connect(run.server, mptcp.PathID(i), address(index, i, 0), run.client, mptcp.PathID(i), r[1]...)
	}
	receiver := run.server
	if f.Download {
		receiver = run.client
	}
	receiver.arrival = run.arrival
	return run, run.start()
}

// config is the configuration of one of the hosts.
func (f *flowRun) config(host string, sender bool) (mptcp.Config, error) {
	cfg, err := f.spec.StackConfig()
	if err != nil {
		return cfg, err
	}
	cfg.Entropy = f.net.Stream("entropy of " + host).Uint64
	if group := cfg.Group; sender && f.spec.Workload.Kind != Churn {
		cfg.Group = func() congestion.Group { return meteredGroup{group(), f} }
	}
	return cfg, nil
}

// StackConfig is what both hosts of the flow are made from, but for their Entropy.
func (f *Flow) StackConfig() (mptcp.Config, error) {
	cfg := mptcp.Config{
		SendBuffer: f.SendBufferBytes, ReceiveBuffer: f.ReceiveBufferBytes, FixedReceiveWindow: f.FixedReceiveWindow,
		Checksums: f.DSSChecksums, NoMPTCP: f.PlainTCP,
		NoAnnounce: true, // every path leads to an address of its own, which the client knows
	}
	if cfg.SendBuffer == 0 {
		cfg.SendBuffer = 16 << 20
	}
	name := f.Congestion
	if name == "" {
		name = "coupledbbr" // the stack's default; a name is needed to meter it
	}
	var err error
	if cfg.Group, err = congestion.ByName(name); err != nil {
		return cfg, err
	}
	if f.Scheduler != "" {
		cfg.Scheduler, err = schedule.ByName(f.Scheduler)
	}
	return cfg, err
}

// addPaths gives a host (side 0: the client) its paths.
func (f *flowRun) addPaths(h *Host, side int) {
	for i, name := range f.spec.Paths {
		p := mptcp.Path{Name: name, MTU: f.spec.MTU}
		port := uint16(0)
		if f.spec.Encapsulation == "udp" {
			p.Kind, port = mptcp.UDP, serverPort
		}
		p.Local = netip.AddrPortFrom(address(f.index, i, side), port)
		if side == 0 {
			p.Remote = f.remote(i)
			for _, b := range f.spec.BackupPaths {
				p.Backup = p.Backup || b == name
			}
		}
		h.AddPath(p)
	}
}

func (f *flowRun) remote(path int) netip.AddrPort {
	return netip.AddrPortFrom(address(f.index, path, 1), serverPort)
}

// start makes the server listen and plans what the scenario has at times.
func (f *flowRun) start() error {
	if _, err := f.server.stack.(*mptcp.Stack).Listen(f.net.now, serverPort, netip.Addr{}); err != nil {
		return fmt.Errorf("flow %q: %w", f.spec.Name, err)
	}
	f.workload()
	for _, r := range f.spec.RemovePaths {
		for i, name := range f.spec.Paths {
			if name == r.Path {
				f.net.At(seconds(r.AtS), func(clock.Time) { f.client.RemovePath(mptcp.PathID(i)) })
			}
		}
	}
	if f.spec.StopS > 0 {
		f.net.At(seconds(f.spec.StopS), func(now clock.Time) {
			if f.stop != nil {
				f.stop(now)
			}
		})
	}
	return nil
}

// dial opens a connection from the client.
func (f *flowRun) dial(now clock.Time) (*mptcp.Conn, error) {
	var t mptcp.Target
	for i := range f.spec.Paths {
		t.Remote = append(t.Remote, f.remote(i))
		t.Paths = append(t.Paths, mptcp.PathID(i))
	}
	if f.spec.PlainTCP {
		t.Remote, t.Paths = t.Remote[:1], t.Paths[:1]
	}
	c, err := f.client.stack.(*mptcp.Stack).Dial(now, t)
	f.client.Touch()
	return c, err
}

// took counts bytes that the receiving application got.
func (f *flowRun) took(now clock.Time, n int) {
	f.goodput.add(now, float64(n))
	f.total += int64(n)
	if now >= f.warmup {
		f.received += int64(n)
	}
}

// arrival measures a packet that the receiver's Stack has just handled.
func (f *flowRun) arrival(now clock.Time, path mptcp.PathID, payload int) {
	if payload == 0 {
		return
	}
	f.meters[path].arrived(now, payload)
	if len(f.ends) == 0 || f.spec.Workload.Kind == Churn {
		return
	}
	var level int64
	var packets int
	for _, e := range f.ends {
		if e.receives {
			level, packets = e.conn.OutOfOrder()
		}
	}
	d := &f.disorder
	d.series.add(now, float64(packets))
	if now >= f.warmup {
		d.samples++
		d.bytes += float64(level)
		d.packets += float64(packets)
		d.maxBytes = max(d.maxBytes, level)
		d.maxPackets = max(d.maxPackets, packets)
	}
}

// end is one end of a connection: a source and a sink.
type end struct {
	flow     *flowRun
	host     *Host
	conn     *mptcp.Conn
	out      source
	in       sink
	receives bool // it is the end that the flow's goodput is measured at
	closed   bool
	err      error

	progress func(now clock.Time) // called after reading
	onClosed func(now clock.Time)
}

// newEnd makes the end of a connection on a host.
func (f *flowRun) newEnd(h *Host, c *mptcp.Conn) *end {
	e := &end{flow: f, host: h, conn: c, receives: (h == f.server) != f.spec.Download}
	e.out.conn, e.in.conn, e.in.buf, e.in.begun = c, c, f.buf, f.net.now
	if e.receives {
		e.in.took = f.took
		if r := f.spec.Workload.ReadRateMbps; r > 0 {
			e.in.rate = r * 1e6 / 8
			e.in.timer = f.net.NewTimer(e.readable)
		}
	}
	c.User = e
	f.ends = append(f.ends, e)
	return e
}

// readable reads, and ends what the peer has ended.
func (e *end) readable(now clock.Time) {
	e.in.pull(now)
	if e.progress != nil {
		e.progress(now)
	}
	e.host.Touch()
}

// seconds is the time of s seconds.
func seconds(s float64) clock.Time { return clock.Time(s*1e9 + 0.5) }

func binWidth(s *Scenario) time.Duration {
	if s.BinMs == 0 {
		return 100 * time.Millisecond
	}
	return time.Duration(s.BinMs * 1e6)
}
