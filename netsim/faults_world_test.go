package netsim

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"time"

	"braid/clock"
	"braid/congestion"
	"braid/mptcp"
	"braid/schedule"
	"braid/trace"
)

// faultWorld is a trouble while it runs: a client and a server, paths between them, and pairs of ends.
type faultWorld struct {
	trouble *trouble
	net     *Network
	hosts   [2]*Host // client, server
	stacks  [2]*mptcp.Stack
	pairs   [][2]*faultEnd // by connection: client's end, server's; nil: not there (yet)
	cuts    []cut
	wrong   error // the first thing that went wrong while it ran
	looks   int
	log     func(format string, args ...any)
}

// cut is a moment at which the subflows of a path were lost: no packet of theirs gets through any more.
type cut struct {
	at      clock.Time
	path    int
	unready []int // connections that could not open other subflows at that moment
}

// faultPort is where the server listens for connection i.
func faultPort(i int) uint16 { return uint16(5001 + i) }

// The timeouts of both hosts. Outages are shorter than any of them.
const (
	faultKeepAlive    = 30 * time.Second
	faultUserTimeout  = 5 * time.Minute
	faultCloseTimeout = time.Minute
)

// newFaultWorld builds the network of a trouble.
func newFaultWorld(t *trouble, record *faultRecord) (*faultWorld, error) {
	w := &faultWorld{trouble: t, net: New(t.seed), pairs: make([][2]*faultEnd, len(t.conns))}
	var sink trace.Sink
	if record != nil {
		w.log = record.log
		if record.trace != nil {
			sink = record.trace
		}
	}
	for side := range w.hosts {
		if err := w.addHost(side, sink); err != nil {
			return w, err
		}
	}
	for i := range t.paths {
		if err := w.addPath(i); err != nil {
			return w, err
		}
	}
	if record != nil && record.pcap != nil {
		w.net.Capture(record.pcap)
	}
	for i := range t.conns {
		if _, err := w.stacks[1].Listen(0, faultPort(i), netip.Addr{}); err != nil {
			return w, err
		}
		w.net.At(seconds(t.conns[i].startS), func(now clock.Time) { w.dial(now, i) })
	}
	if t.removePath >= 0 {
		w.net.At(seconds(t.removeAtS), func(now clock.Time) {
			w.cut(t.removePath, true)
			w.hosts[t.removeHost].RemovePath(mptcp.PathID(t.removePath))
		})
	}
	return w, nil
}

// addHost makes the client (0) or the server (1).
func (w *faultWorld) addHost(side int, sink trace.Sink) error {
	h := &w.trouble.hosts[side]
	name := []string{"client", "server"}[side]
	group, err := congestion.ByName(h.congestion)
	if err != nil {
		return err
	}
	sched, err := schedule.ByName(h.scheduler)
	if err != nil {
		return err
	}
	w.stacks[side] = mptcp.NewStack(mptcp.Config{
		Entropy: w.net.Stream("entropy of " + name).Uint64, Group: group, Scheduler: sched,
		SendBuffer: h.send, ReceiveBuffer: h.receive, FixedReceiveWindow: h.fixedWindow, StackMemory: h.stackMemory,
		Checksums: h.checksums, NoMPTCP: h.plain, NoDelay: h.noDelay, NoJoinInitial: h.noJoin, Backlog: h.backlog, MaxSubflows: h.subflows,
		TCPKeepAlive: faultKeepAlive, UserTimeout: faultUserTimeout, CloseTimeout: faultCloseTimeout, Trace: sink,
	})
	var stack Stack = w.stacks[side]
	if w.log != nil && *faultPrint {
		l := &loggedStack{w.stacks[side], name, mptcp.IP, w.log}
		if w.trouble.udp {
			l.kind = mptcp.UDP
		}
		stack = l
	}
	w.hosts[side] = w.net.AddHost(name, stack, faultApp{w, side})
	w.hosts[side].arrival = func(now clock.Time, _ mptcp.PathID, _ int) { w.look(now, side) }
	return nil
}

// addPath makes the links of a path and tells both hosts of it.
func (w *faultWorld) addPath(i int) error {
	t := w.trouble
	p := &t.paths[i]
	var links [2]*Link
	for dir := range links {
		l, err := w.net.AddLink(fmt.Sprintf("path %d %s", i, []string{"there", "back"}[dir]), p.links[dir])
		if err != nil {
			return err
		}
		links[dir] = l
	}
	w.addEnds(i)
	w.attachBoxes(i, links[0], links[1])
	near, far := mptcp.PathID(i), mptcp.PathID(i)
	if t.star {
		far = 0
	}
	w.net.Connect(w.hosts[0], near, w.server(i), w.hosts[1], far, links[0])
	for _, side := range []int{0, 2, 3} {
		w.net.Connect(w.hosts[1], far, w.address(i, side), w.hosts[0], near, links[1])
	}
	if p.dead {
		last := p.links[0].Changes[len(p.links[0].Changes)-1]
		w.net.At(seconds(last.AtS), func(clock.Time) { w.cut(i, true) })
	}
	return nil
}

// addEnds gives the hosts path i. A server with one address (star) has only the first.
func (w *faultWorld) addEnds(i int) {
	t := w.trouble
	p := mptcp.Path{Name: fmt.Sprintf("path %d", i), MTU: t.paths[i].mtu}
	port := uint16(0)
	if t.udp {
		p.Kind, port = mptcp.UDP, faultPort(0)
	}
	if i == 0 || !t.star {
		q := p
		q.Local = netip.AddrPortFrom(w.server(i), port)
		if t.star {
			q.MTU = 1500
		}
		w.hosts[1].AddPath(q)
	}
	p.Local, p.Backup = netip.AddrPortFrom(w.address(i, 0), port), t.paths[i].back
	if (t.udp || !t.star) && !t.announced { // where paths lead to different addresses, each reaches only one
		p.Remote = netip.AddrPortFrom(w.server(i), faultPort(0))
	}
	w.hosts[0].AddPath(p)
}

// server is the server's address on a path.
func (w *faultWorld) server(path int) netip.Addr {
	if w.trouble.star {
		path = 0
	}
	return w.address(path, 1)
}

// dial opens connection i.
func (w *faultWorld) dial(now clock.Time, i int) {
	known := 0
	if w.trouble.announced {
		known = w.trouble.survivor
	}
	c, err := w.stacks[0].Dial(now, mptcp.Target{Remote: []netip.AddrPort{netip.AddrPortFrom(w.server(known), faultPort(i))}})
	w.hosts[0].Touch()
	if err != nil {
		if !errors.Is(err, mptcp.ErrLimit) || w.trouble.hosts[0].stackMemory == 0 {
			w.fail("connection %d: Dial: %v", i, err)
		}
		return
	}
	w.pairs[i][0] = newFaultEnd(w, i, 0, c)
}

// fail notes the first thing that is wrong.
func (w *faultWorld) fail(format string, args ...any) {
	if w.wrong == nil {
		w.wrong = fmt.Errorf("%v: "+format, append([]any{w.net.Now()}, args...)...)
	}
	if w.log != nil {
		w.log("WRONG at %v: "+format, append([]any{w.net.Now()}, args...)...)
	}
}

// cut notes that the subflows of a path are lost from now on. Connections that cannot open another one, because they have no data-level proof
// of MPTCP or are plain TCP, may fail.
func (w *faultWorld) cut(path int, loses bool) {
	if !loses {
		return
	}
	c := cut{at: w.net.Now(), path: path}
	for i, p := range w.pairs {
		if p[0] == nil || p[0].closed {
			continue
		}
		client := p[0].conn.Info(c.at)
		ready := !w.trouble.hosts[1].noJoin && client.Fallback == mptcp.NoFallback && client.Established && (client.Acked > 0 || client.Received > 0)
		if !ready || p[1] == nil || !p[1].closed && p[1].conn.Info(c.at).Fallback != mptcp.NoFallback {
			c.unready = append(c.unready, i)
		}
	}
	w.cuts = append(w.cuts, c)
}

// faultApp hands a host's events to the ends.
type faultApp struct {
	w    *faultWorld
	side int
}

// HandleEvent implements App.
func (a faultApp) HandleEvent(now clock.Time, ev mptcp.Event) {
	if a.w.log != nil && ev.Kind != mptcp.EventReadable && ev.Kind != mptcp.EventWritable {
		a.w.log("%.6f %s: %v subflow %d error %v", float64(now)/1e9, []string{"client", "server"}[a.side], ev.Kind, ev.Subflow, ev.Err)
	}
	if ev.Kind == mptcp.EventAccept {
		for c, ok := ev.Listener.Accept(); ok; c, ok = ev.Listener.Accept() {
			i := int(ev.Listener.Addr().Port() - faultPort(0))
			if a.w.pairs[i][1] != nil {
				a.w.pairs[i][1].accepted(now, c)
				continue
			}
			a.w.pairs[i][1] = newFaultEnd(a.w, i, 1, c)
			a.w.pairs[i][1].begin(now)
		}
		return
	}
	if e, _ := ev.Conn.User.(*faultEnd); e != nil && e.conn == ev.Conn {
		e.handle(now, ev)
	}
}

// over reports whether all connections have come and gone.
func (w *faultWorld) over() bool {
	for i, p := range w.pairs {
		if w.net.Now() <= seconds(w.trouble.conns[i].startS) || p[0] != nil && !p[0].closed || p[1] != nil && !p[1].closed {
			return false
		}
	}
	return true
}

const (
	faultPatience = 10 * time.Minute // virtual time after which applications give up connections that may fail
	faultLimit    = 2 * time.Hour    // ... and within which everything must be over
	faultRest     = 10 * time.Minute // and within which then nothing may be left: 2 MSL, CloseTimeout and half-open connections take less
	faultPackets  = 300_000
	faultEvents   = 10_000_000 // schedulers may ask to be asked again every millisecond
)

// run lets it happen and judges.
func (w *faultWorld) run() error {
	if !w.runUntil(w.over, faultPatience) && w.wrong == nil {
		w.loseHope()
	}
	if !w.runUntil(w.over, faultLimit) && w.wrong == nil {
		w.fail("hangs: connections are not over")
	}
	if err := w.judge(); err != nil {
		return err
	}
	start := w.net.Now()
	if !w.runUntil(func() bool { return w.left() == "" }, time.Duration(start)+faultRest) {
		w.fail("left behind %v after everything was closed: %s", w.net.Now().Sub(start), w.left())
	}
	return w.judge()
}

// loseHope lets the applications abort what middleboxes have the right to hold up: connections that may fail.
func (w *faultWorld) loseHope() {
	for i, p := range w.pairs {
		if w.excuse(i) == "" {
			continue
		}
		for side, e := range p {
			if e != nil && !e.closed {
				e.rude = true
				e.conn.Abort(w.net.Now())
				w.hosts[side].Touch()
			}
		}
	}
}

// runUntil runs in steps until a condition holds, nothing happens any more, or something is wrong.
func (w *faultWorld) runUntil(done func() bool, limit time.Duration) bool {
	step := 100 * time.Millisecond
	for !done() {
		now := w.net.Now()
		if now >= clock.Time(limit) || w.wrong != nil {
			return false
		}
		if n := w.net.Counts(); n.Events > faultEvents || n.Packets > faultPackets {
			w.fail("does not come to an end: %+v", n)
			return false
		}
		w.net.Run(now.Add(step))
		step = min(step*5/4, time.Minute)
	}
	return true
}

// left says what is left of connections.
func (w *faultWorld) left() string {
	var b strings.Builder
	for side, s := range w.stacks {
		if at := s.NextTimeout(); at != clock.Never {
			fmt.Fprintf(&b, "%s: a timer at %v; ", w.hosts[side].Name(), at)
		}
		if m := s.Memory(); m != 0 {
			fmt.Fprintf(&b, "%s: %d bytes of memory; ", w.hosts[side].Name(), m)
		}
		if t := s.Tables(); t != (mptcp.Tables{}) {
			fmt.Fprintf(&b, "%s: %+v; ", w.hosts[side].Name(), t)
		}
	}
	if n := w.net.Outstanding(); n != 0 {
		fmt.Fprintf(&b, "%d packets under way; ", n)
	}
	return b.String()
}

// zeros are fields that say nothing.
var zeros = regexp.MustCompile(`\b\w+:(0|0s|false|\[[0 ]*\]) ?`)

// describe tells how it ended.
func (w *faultWorld) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v, %+v\n", w.net.Now(), w.net.Counts())
	for i, p := range w.pairs {
		for side, e := range p {
			if e == nil {
				fmt.Fprintf(&b, "connection %d, %s: none\n", i, w.hosts[side].Name())
				continue
			}
			fmt.Fprintf(&b, "connection %d, %s: wrote %d finished %v, read %d eof %v, closed %v at %v err %v, excused: %s\n", i, w.hosts[side].Name(),
				e.written, e.finished, e.got, e.eof, e.closed, e.closedAt, e.err, w.excuse(i))
			if !e.closed {
				info := e.conn.Info(w.net.Now())
				for _, s := range info.Subflows {
					fmt.Fprintf(&b, "    %+v\n", s)
				}
				info.Subflows = nil
				fmt.Fprintf(&b, "  %+v\n", info)
			}
		}
	}
	for side, s := range w.stacks {
		fmt.Fprintf(&b, "%s: %+v\n", w.hosts[side].Name(), *s.Counters())
	}
	for _, l := range w.net.links {
		fmt.Fprintf(&b, "%s: %+v\n", l.Name(), *l.Counters())
	}
	return zeros.ReplaceAllString(b.String(), "")
}
