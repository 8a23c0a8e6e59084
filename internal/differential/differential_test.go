package differential

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"braid/clock"
	"braid/device/devicetest"
	"braid/host"
	"braid/link"
	"braid/mptcp"
	"braid/netsim"
)

// The world of every script: a client with two paths to a server.
var (
	serverAddr  = netip.MustParseAddrPort("10.9.0.1:443")
	clientAddrs = []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:1000"), netip.MustParseAddrPort("10.0.1.1:1000")}
	delays      = []time.Duration{10_300 * time.Microsecond, 24_700 * time.Microsecond} // one way, of each path
)

const port = 443

// op is one line of a script: what an application does at a time.
type op struct {
	at     time.Duration
	server bool
	act    string // "dial", "accept", "write", "read", "close write"
	n      int    // bytes
}

// script is what both worlds perform.
type script struct {
	name  string
	stack mptcp.Config
	drop  map[int]bool // packets of the client's first path that get lost, counted from 0
	ops   []op
}

// sent is a packet that left: on which way, when, and what.
type sent struct {
	at   time.Duration
	data []byte
}

// ways are the packets of each direction of each path: "0>" from the client over path 0, "0<" back.
type ways map[string][]sent

func (w ways) add(way string, at time.Duration, data []byte) {
	w[way] = append(w[way], sent{at, bytes.Clone(data)})
}

// config returns the Config of one end, with an entropy of its own that is the same in both worlds.
func (s script) config(end uint64) mptcp.Config {
	cfg := s.stack
	cfg.PacingQuantum = time.Millisecond
	cfg.Entropy = rand.New(rand.NewPCG(7, end)).Uint64
	return cfg
}

func payload(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7)
	}
	return b
}

var scripts = []script{
	{
		name: "question and answer, then both close",
		ops: []op{
			{at: 0, act: "dial"}, {at: 100 * time.Millisecond, server: true, act: "accept"},
			{at: 110 * time.Millisecond, act: "write", n: 900}, {at: 200 * time.Millisecond, server: true, act: "read", n: 900},
			{at: 210 * time.Millisecond, server: true, act: "write", n: 5000}, {at: 300 * time.Millisecond, act: "read", n: 5000},
			{at: 310 * time.Millisecond, act: "close write"}, {at: 400 * time.Millisecond, server: true, act: "close write"},
		},
	},
	{
		name: "bulk over two paths",
		ops: []op{
			{at: 0, act: "dial"}, {at: 100 * time.Millisecond, server: true, act: "accept"},
			{at: 110 * time.Millisecond, act: "write", n: 1000}, {at: 300 * time.Millisecond, act: "write", n: 200_000},
			{at: 2 * time.Second, server: true, act: "read", n: 201_000}, {at: 3 * time.Second, act: "write", n: 200_000},
			{at: 5 * time.Second, server: true, act: "read", n: 200_000}, {at: 5 * time.Second, act: "close write"},
		},
	},
	{
		name: "bulk with losses, a lost tail among them",
		drop: map[int]bool{9: true, 10: true, 17: true, 40: true},
		ops: []op{
			{at: 0, act: "dial"}, {at: 100 * time.Millisecond, server: true, act: "accept"},
			{at: 110 * time.Millisecond, act: "write", n: 1000}, {at: 300 * time.Millisecond, act: "write", n: 100_000},
			{at: 4 * time.Second, server: true, act: "read", n: 101_000}, {at: 5 * time.Second, act: "write", n: 3000},
			{at: 9 * time.Second, server: true, act: "read", n: 3000}, {at: 9 * time.Second, server: true, act: "close write"},
		},
	},
	{
		name:  "with checksums, and idle until keep-alives come",
		stack: mptcp.Config{Checksums: true},
		ops: []op{
			{at: 0, act: "dial"}, {at: 100 * time.Millisecond, server: true, act: "accept"},
			{at: 110 * time.Millisecond, act: "write", n: 10_000}, {at: 500 * time.Millisecond, server: true, act: "read", n: 10_000},
			{at: 50 * time.Second, act: "write", n: 100}, {at: 51 * time.Second, server: true, act: "read", n: 100},
		},
	},
}

func (s script) end() time.Duration { return s.ops[len(s.ops)-1].at + 5*time.Second }

// drift lets the delay of a way grow a little with each train. With constant delays, ACKs come back at the very instants at which the
// pacer ticks, since that is what they once set it by; which of the two is handled first is then chance on a real host.
type drift struct {
	last  time.Duration
	count time.Duration
}

// extra returns what is added to the delay of a packet that leaves at the given time: the same for all of one train.
func (d *drift) extra(at time.Duration) time.Duration {
	if at != d.last {
		d.last = at
		d.count++
	}
	return d.count * 1013 * time.Nanosecond
}

// recorder is a Stack in the simulator whose packets are written down, and held back on their arrival for as long as the drift says.
type recorder struct {
	*mptcp.Stack
	net    *netsim.Network
	host   *netsim.Host
	peer   *recorder
	way    func(p mptcp.Packet) string
	from   func(path mptcp.PathID, from netip.AddrPort) string // the way that a packet came
	got    ways
	drifts map[string]*drift
	coming map[string][]time.Duration // extra delays of packets that are on their way here
	held   map[clock.Time][]arrival
	lose   func(way string) bool
}

type arrival struct {
	path mptcp.PathID
	from netip.AddrPort
	data []byte
}

func (r *recorder) PollPacket(now clock.Time, buf []byte) (mptcp.Packet, bool) {
	p, ok := r.Stack.PollPacket(now, buf)
	if ok {
		way, at := r.way(p), time.Duration(now)
		r.got.add(way, at, buf[:p.Len])
		if r.drifts[way] == nil {
			r.drifts[way] = new(drift)
		}
		r.peer.coming[way] = append(r.peer.coming[way], r.drifts[way].extra(at))
	}
	return p, ok
}

func (r *recorder) HandlePacket(now clock.Time, path mptcp.PathID, from netip.AddrPort, b []byte) {
	way := r.from(path, from)
	due := now.Add(r.coming[way][0])
	r.coming[way] = r.coming[way][1:]
	if r.lose != nil && r.lose(way) {
		return
	}
	if r.held[due] == nil {
		r.net.At(due, func(now clock.Time) {
			for _, a := range r.held[due] {
				r.Stack.HandlePacket(now, a.path, a.from, a.data)
			}
			delete(r.held, due)
			r.host.Touch()
		})
	}
	r.held[due] = append(r.held[due], arrival{path, from, bytes.Clone(b)})
}

// simulate performs a script in the simulator.
func simulate(t *testing.T, s script) ways {
	got := make(ways)
	n := netsim.New(1)
	arrived := 0
	cs, ss := mptcp.NewStack(s.config(1)), mptcp.NewStack(s.config(2))
	rec := func(stack *mptcp.Stack) *recorder {
		return &recorder{Stack: stack, net: n, got: got, drifts: make(map[string]*drift),
			coming: make(map[string][]time.Duration), held: make(map[clock.Time][]arrival)}
	}
	cr, sr := rec(cs), rec(ss)
	cr.peer, sr.peer = sr, cr
	cr.way = func(p mptcp.Packet) string { return fmt.Sprint(p.Path, ">") }
	cr.from = func(path mptcp.PathID, _ netip.AddrPort) string { return fmt.Sprint(path, "<") }
	sr.way = func(p mptcp.Packet) string { return fmt.Sprint(pathTo(p.To), "<") }
	sr.from = func(_ mptcp.PathID, from netip.AddrPort) string { return fmt.Sprint(pathTo(from), ">") }
	sr.lose = func(way string) bool {
		if way != "0>" {
			return false
		}
		arrived++
		return s.drop[arrived-1]
	}
	client, server := n.AddHost("client", cr, nil), n.AddHost("server", sr, nil)
	cr.host, sr.host = client, server
	far := server.AddPath(mptcp.Path{Name: "server", Kind: mptcp.UDP, Local: serverAddr})
	for i, local := range clientAddrs {
		id := client.AddPath(mptcp.Path{Name: fmt.Sprint("path", i), Kind: mptcp.UDP, Local: local})
		spec := link.Spec{DelayMs: float64(delays[i]) / 1e6}
		up, err := n.AddLink(fmt.Sprint(i, "up"), spec)
		if err != nil {
			t.Fatal(err)
		}
		down, err := n.AddLink(fmt.Sprint(i, "down"), spec)
		if err != nil {
			t.Fatal(err)
		}
		n.Connect(client, id, serverAddr.Addr(), server, far, up)
		n.Connect(server, far, local.Addr(), client, id, down)
	}
	l, err := ss.Listen(0, port, netip.Addr{})
	if err != nil {
		t.Fatal(err)
	}
	var conns [2]*mptcp.Conn
	for _, o := range s.ops {
		n.Run(clock.Time(o.at))
		now, h, c := n.Now(), client, conns[0]
		if o.server {
			h, c = server, conns[1]
		}
		count, err := o.n, error(nil)
		switch o.act {
		case "dial":
			conns[0], err = cs.Dial(now, mptcp.Target{Remote: []netip.AddrPort{serverAddr}})
		case "accept":
			conns[1], _ = l.Accept()
		case "write":
			count, err = c.Write(now, payload(o.n))
		case "read":
			count, err = c.Read(now, make([]byte, o.n))
		case "close write":
			err = c.CloseWrite(now)
		}
		if err != nil || count != o.n {
			t.Fatalf("simulator: %+v: %d, %v", o, count, err)
		}
		h.Touch()
	}
	n.Run(clock.Time(s.end()))
	return got
}

// pathTo returns which of the client's paths an address belongs to.
func pathTo(to netip.AddrPort) int {
	for i, a := range clientAddrs {
		if a == to {
			return i
		}
	}
	return -1
}

// drive performs a script on two engines over devices in memory. It runs in a bubble.
func drive(t *testing.T, s script) ways {
	got := make(ways)
	start := time.Now()
	var n devicetest.Network
	client, server := host.NewEngine(host.Config{Stack: s.config(1)}), host.NewEngine(host.Config{Stack: s.config(2)})
	defer server.Close()
	defer client.Close()
	var mu sync.Mutex // of got and these: both engines' packets come by
	drifts, extra := make(map[string]*drift), make(map[string]time.Duration)
	add := func(e *host.Engine, name string, local netip.AddrPort, way func(to netip.AddrPort) string, delay func(to netip.AddrPort) time.Duration) *devicetest.Port {
		dev := n.Open(local, devicetest.Options{DelayTo: func(to netip.AddrPort) time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return delay(to) + extra[way(to)]
		}})
		dev.Tap(func(_, to netip.AddrPort, data []byte) { // sees those that get lost too
			mu.Lock()
			defer mu.Unlock()
			w, at := way(to), time.Since(start)
			got.add(w, at, data)
			if drifts[w] == nil {
				drifts[w] = new(drift)
			}
			extra[w] = drifts[w].extra(at)
		})
		if _, err := e.AddPath(dev, mptcp.Path{Name: name, Kind: mptcp.UDP}); err != nil {
			t.Fatal(err)
		}
		return dev
	}
	add(server, "server", serverAddr, func(to netip.AddrPort) string { return fmt.Sprint(pathTo(to), "<") },
		func(to netip.AddrPort) time.Duration { return delays[pathTo(to)] })
	for i, local := range clientAddrs {
		dev := add(client, fmt.Sprint("path", i), local, func(netip.AddrPort) string { return fmt.Sprint(i, ">") },
			func(netip.AddrPort) time.Duration { return delays[i] })
		if i == 0 {
			left := 0
			dev.Drop(func(netip.AddrPort, []byte) bool { left++; return s.drop[left-1] })
		}
	}
	l, err := server.Listen(port, netip.Addr{})
	if err != nil {
		t.Fatal(err)
	}
	var conns [2]*host.Conn
	dialled := make(chan *host.Conn, 1)
	for _, o := range s.ops {
		time.Sleep(o.at - time.Since(start))
		synctest.Wait()
		c := conns[0]
		if o.server {
			c = conns[1]
		}
		count, err := o.n, error(nil)
		switch o.act {
		case "dial":
			go func() {
				c, err := client.Dial(t.Context(), []netip.AddrPort{serverAddr}, nil)
				if err != nil {
					t.Error(err)
				}
				dialled <- c
			}()
		case "accept":
			conns[1], err = l.AcceptConn()
			conns[0] = <-dialled
		case "write":
			count, err = c.Write(payload(o.n))
		case "read":
			count, err = io.ReadFull(c, make([]byte, o.n))
		case "close write":
			err = c.CloseWrite()
		}
		if err != nil || count != o.n {
			t.Fatalf("host: %+v: %d, %v", o, count, err)
		}
	}
	time.Sleep(s.end() - time.Since(start))
	synctest.Wait()
	mu.Lock()
	defer mu.Unlock()
	all := make(ways)
	for way, packets := range got { // what Close sends is not part of the script
		all[way] = packets
	}
	return all
}

func TestSamePackets(t *testing.T) {
	for _, s := range scripts {
		t.Run(s.name, func(t *testing.T) {
			want := simulate(t, s)
			var got ways
			synctest.Test(t, func(t *testing.T) { got = drive(t, s) })
			if len(want["0>"]) < 5 || len(want["1>"]) < 3 {
				t.Fatalf("the simulator sent %d and %d packets: the script does not exercise both paths", len(want["0>"]), len(want["1>"]))
			}
			for _, way := range []string{"0>", "0<", "1>", "1<"} {
				compare(t, way, want[way], got[way])
			}
		})
	}
}

// compare reports the first difference between what the simulator and the host sent on one way.
func compare(t *testing.T, way string, sim, real []sent) {
	t.Helper()
	for i := range min(len(sim), len(real)) {
		if sim[i].at != real[i].at || !bytes.Equal(sim[i].data, real[i].data) {
			t.Errorf("way %s, packet %d of %d:\nsimulator at %v: %d bytes %.60x\nhost      at %v: %d bytes %.60x", way, i, len(sim),
				sim[i].at, len(sim[i].data), sim[i].data, real[i].at, len(real[i].data), real[i].data)
			return
		}
	}
	if len(sim) != len(real) {
		t.Errorf("way %s: the simulator sent %d packets, the host %d", way, len(sim), len(real))
	}
}
