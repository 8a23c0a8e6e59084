package mptcp

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"time"

	"braid/clock"
	"braid/congestion"
	"braid/schedule"
)

// pacedPair joins two Stacks by paths of a rate and a delay in virtual time, in memory that it keeps: what it costs is next to
// nothing beside what the Stacks do, and controllers and schedulers see round trips, queues and losses. A packet is written
// straight into the place where it waits for its time.
type pacedPair struct {
	now            clock.Time
	client, server *Stack
	c, s           *Conn
	paths          []*pacedPath
	ids            []PathID // of the client's paths
	serverPath     PathID
	scratch        []byte
	data           []byte
	read           int64
	packets        int64 // of the client
	rng            *rand.Rand
	loss           float64
}

// pacedPath is one path: packets wait in a ring each way.
type pacedPath struct {
	addr  netip.Addr
	rate  float64 // bytes/s
	delay time.Duration
	queue time.Duration // the longest that the sender's packets wait
	busy  clock.Time
	ring  [2]pacedRing // to the client, to the server
}

type pacedRing struct {
	slots      []pacedSlot
	head, tail uint32
}

type pacedSlot struct {
	at  clock.Time
	n   int
	buf []byte
}

func (r *pacedRing) slot() *pacedSlot { return &r.slots[r.tail&uint32(len(r.slots)-1)] }

// pacedTick is how often the hosts look: as on a host whose timers are that exact.
const pacedTick = 500 * time.Microsecond

// newPacedPair connects the Stacks over the given number of paths: 100, 75 and 50 Mbit/s with 10, 20 and 30 ms of RTT.
func newPacedPair(tb testing.TB, pair [2]string, paths int, loss float64) *pacedPair {
	group, err := congestion.ByName(pair[0])
	if err != nil {
		tb.Fatal(err)
	}
	scheduler, err := schedule.ByName(pair[1])
	if err != nil {
		tb.Fatal(err)
	}
	cfg := Config{Group: group, Scheduler: scheduler, ReceiveBuffer: 4 << 20, FixedReceiveWindow: true, SendBuffer: 4 << 20, PacingQuantum: time.Millisecond}
	w := newWorld(tb, cfg, cfg)
	for i := range paths {
		w.link(time.Duration(i+1) * 5 * time.Millisecond)
	}
	c, s := w.connect(w.listen())
	c.Write(w.now, []byte("x"))
	w.run(200 * time.Millisecond)
	if c.Subflows() != paths {
		tb.Fatalf("%d subflows", c.Subflows())
	}
	p := &pacedPair{now: w.now, client: w.client, server: w.server, c: c, s: s, serverPath: w.links[0].server,
		scratch: make([]byte, 1500), data: make([]byte, 64<<10), rng: rand.New(rand.NewPCG(1, 2)), loss: loss}
	for i, l := range w.links {
		path := &pacedPath{addr: l.clientAddr.Addr(), rate: float64(4-i) * 25e6 / 8, delay: l.delay, queue: l.delay}
		for dir := range path.ring {
			path.ring[dir].slots = make([]pacedSlot, 512)
			for k := range path.ring[dir].slots {
				path.ring[dir].slots[k].buf = make([]byte, 1500)
			}
		}
		p.paths, p.ids = append(p.paths, path), append(p.ids, l.client)
	}
	return p
}

// run lets virtual time pass.
func (p *pacedPair) run(d time.Duration) {
	for end := p.now.Add(d); p.now < end; {
		p.now = p.now.Add(pacedTick)
		for i, path := range p.paths {
			p.arrive(&path.ring[1], p.server, p.serverPath)
			p.arrive(&path.ring[0], p.client, p.ids[i])
		}
		p.read += p.consume()
		p.client.HandleTimeout(p.now)
		p.server.HandleTimeout(p.now)
		for {
			if _, err := p.c.Write(p.now, p.data); err != nil {
				break
			}
		}
		p.send(p.server, 0)
		p.packets += p.send(p.client, 1)
		for _, s := range []*Stack{p.client, p.server} {
			for _, ok := s.PollEvent(); ok; _, ok = s.PollEvent() {
			}
		}
	}
}

func (p *pacedPair) arrive(r *pacedRing, to *Stack, path PathID) {
	for r.head != r.tail {
		s := &r.slots[r.head&uint32(len(r.slots)-1)]
		if s.at > p.now {
			return
		}
		to.HandlePacket(p.now, path, netip.AddrPort{}, s.buf[:s.n])
		r.head++
	}
}

func (p *pacedPair) consume() (total int64) {
	for {
		n, err := p.s.Read(p.now, p.data)
		total += int64(n)
		if err != nil {
			return total
		}
	}
}

// send takes what a Stack has to send. The path is known only when the packet is written, so it is written to the scratch and changes
// places with the slot.
func (p *pacedPair) send(from *Stack, dir int) (packets int64) {
	for {
		pkt, ok := from.PollPacket(p.now, p.scratch)
		if !ok {
			return packets
		}
		packets++
		path := p.pathOf(pkt, dir)
		if dir == 1 && p.loss > 0 && p.rng.Float64() < p.loss {
			continue
		}
		leave := max(p.now, path.busy)
		r := &path.ring[dir]
		if dir == 1 {
			if leave.Sub(p.now) > path.queue || r.tail-r.head == uint32(len(r.slots)) {
				continue
			}
			leave = leave.Add(time.Duration(float64(pkt.Len) / path.rate * 1e9))
			path.busy = leave
		} else if r.tail-r.head == uint32(len(r.slots)) {
			continue
		} else {
			leave = p.now
		}
		s := r.slot()
		s.at, s.n = leave.Add(path.delay), pkt.Len
		s.buf, p.scratch = p.scratch, s.buf
		r.tail++
	}
}

func (p *pacedPair) pathOf(pkt Packet, dir int) *pacedPath {
	for i, path := range p.paths {
		if dir == 1 && p.ids[i] == pkt.Path || dir == 0 && path.addr == netip.AddrFrom4([4]byte(p.scratch[16:20])) {
			return path
		}
	}
	panic("a packet for no path")
}

// The pairs that are compared: the defaults, and what they are measured against.
var (
	defaultPair  = [2]string{"coupledbbr", "arp"}
	baselinePair = [2]string{"bbr", "minrtt"}
)

// BenchmarkDefaultPair measures what the default congestion control and scheduler cost beside plain BBR and minRTT: CPU time per
// packet sent, both Stacks together, over paths of different rates and round-trip times. The two run in turn for short times and the ratio is
// that of the medians, so that a busy machine disturbs both.
func BenchmarkDefaultPair(b *testing.B) {
	for _, loss := range []float64{0, 0.005} {
		for paths := 1; paths <= 3; paths++ {
			b.Run(fmt.Sprintf("paths=%d/loss=%v%%", paths, 100*loss), func(b *testing.B) {
				lanes := []*pacedPair{newPacedPair(b, baselinePair, paths, loss), newPacedPair(b, defaultPair, paths, loss)}
				for _, l := range lanes {
					l.run(6 * time.Second)
				}
				cost := make([][]float64, len(lanes))
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				b.ResetTimer()
				for range b.N {
					for i, l := range lanes {
						packets, start := l.packets, cpuTime()
						l.run(40 * time.Millisecond)
						cost[i] = append(cost[i], float64(cpuTime()-start)/float64(l.packets-packets))
					}
				}
				ns := func(i int) float64 { slices.Sort(cost[i]); return cost[i][len(cost[i])/2] }
				b.ReportMetric(ns(0), "bbr+minrtt-ns/packet")
				b.ReportMetric(ns(1), "default-ns/packet")
				b.ReportMetric(ns(1)/ns(0), "ratio")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// A steady transfer with the default pair allocates nothing, neither a decision nor what follows from it; with losses a set of ranges may still
// find a new longest length now and then.
func TestDefaultPairDoesNotAllocate(t *testing.T) {
	for loss, most := range map[float64]float64{0: 0, 0.005: 4} {
		p := newPacedPair(t, defaultPair, 3, loss)
		p.run(8 * time.Second)
		before := p.read
		if n := testing.AllocsPerRun(20, func() { p.run(50 * time.Millisecond) }); n > most {
			t.Errorf("loss %v: %v allocations in 50 ms", loss, n)
		}
		if p.read-before < 10<<20 {
			t.Errorf("loss %v: only %d bytes moved", loss, p.read-before)
		}
	}
}
