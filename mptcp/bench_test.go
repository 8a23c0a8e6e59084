package mptcp

import (
	"net/netip"
	"testing"
	"time"

	"braid/clock"
	"braid/congestion"
	"braid/schedule"
)

// backToBack joins two Stacks without a network between: a round takes what one side sends to the other at once, then the
// answers. It is for measuring, so it keeps its buffers.
type backToBack struct {
	now            clock.Time
	client, server *Stack
	c, s           *Conn
	addrs          []netip.Addr
	bufs           [][]byte
	packets        []Packet
	data           []byte
	read           int64
	sentPackets    int64
}

func newBackToBack(tb testing.TB, paths int, cfg Config) *backToBack {
	group, err := congestion.ByName("cubic")
	if err != nil {
		tb.Fatal(err)
	}
	if cfg.Group == nil {
		cfg.Group = group
	}
	w := newWorld(tb, cfg, cfg)
	for i := range paths {
		w.link(time.Duration(i+1) * 100 * time.Microsecond)
	}
	c, s := w.connect(w.listen())
	c.Write(w.now, []byte("x"))
	w.run(100 * time.Millisecond)
	if c.Subflows() != paths {
		tb.Fatalf("%d subflows", c.Subflows())
	}
	p := &backToBack{now: w.now, client: w.client, server: w.server, c: c, s: s, data: make([]byte, 256<<10)}
	for _, l := range w.links {
		p.addrs = append(p.addrs, l.clientAddr.Addr())
	}
	for range 4096 {
		p.bufs = append(p.bufs, make([]byte, 1500))
	}
	p.packets = make([]Packet, 0, len(p.bufs))
	return p
}

// round lets the client write, moves its packets, lets the server read, and moves the answers.
func (p *backToBack) round() {
	p.now += clock.Time(200 * time.Microsecond)
	p.client.HandleTimeout(p.now)
	p.server.HandleTimeout(p.now)
	for {
		if _, err := p.c.Write(p.now, p.data); err != nil {
			break
		}
	}
	p.sentPackets += int64(p.move(p.client, p.server, true))
	for {
		n, err := p.s.Read(p.now, p.data)
		p.read += int64(n)
		if err != nil {
			break
		}
	}
	p.move(p.server, p.client, false)
	for _, s := range []*Stack{p.client, p.server} {
		for _, ok := s.PollEvent(); ok; _, ok = s.PollEvent() {
		}
	}
}

func (p *backToBack) move(from, to *Stack, toServer bool) int {
	p.packets = p.packets[:0]
	for len(p.packets) < len(p.bufs) {
		pkt, ok := from.PollPacket(p.now, p.bufs[len(p.packets)])
		if !ok {
			break
		}
		p.packets = append(p.packets, pkt)
	}
	for i, pkt := range p.packets {
		path := PathID(0)
		b := p.bufs[i][:pkt.Len]
		if !toServer {
			for j, a := range p.addrs {
				if d := netip.AddrFrom4([4]byte(b[16:20])); d == a {
					path = PathID(j)
				}
			}
		}
		to.HandlePacket(p.now, path, netip.AddrPort{}, b)
	}
	return len(p.packets)
}

// A steady transfer allocates nothing, on either side, over one path or several.
func TestSteadyTransferDoesNotAllocate(t *testing.T) {
	for _, paths := range []int{1, 2} {
		p := newBackToBack(t, paths, Config{ReceiveBuffer: 256 << 10})
		for range 500 {
			p.round()
		}
		before := p.read
		if n := testing.AllocsPerRun(300, p.round); n > 0 {
			t.Errorf("%d paths: %v allocations a round", paths, n)
		}
		if p.read-before < 1<<20 {
			t.Errorf("%d paths: only %d bytes moved", paths, p.read-before)
		}
	}
}

func benchmarkTransfer(b *testing.B, paths int, cfg Config) {
	p := newBackToBack(b, paths, cfg)
	for range 300 {
		p.round()
	}
	b.ResetTimer()
	start, bytes := p.sentPackets, p.read
	for range b.N {
		p.round()
	}
	n := p.sentPackets - start
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/packet")
	b.ReportMetric(float64(p.read-bytes)*8/b.Elapsed().Seconds()/1e9, "Gbit/s")
	b.ReportMetric(float64(n)/float64(b.N), "packets/round")
}

func BenchmarkTransferOnePath(b *testing.B)  { benchmarkTransfer(b, 1, Config{ReceiveBuffer: 1 << 20}) }
func BenchmarkTransferTwoPaths(b *testing.B) { benchmarkTransfer(b, 2, Config{ReceiveBuffer: 1 << 20}) }
func BenchmarkTransferThreePaths(b *testing.B) {
	for _, name := range []string{"arp", "redundant", "roundrobin"} {
		b.Run(name, func(b *testing.B) {
			sched, err := schedule.ByName(name)
			if err != nil {
				b.Fatal(err)
			}
			benchmarkTransfer(b, 3, Config{ReceiveBuffer: 1 << 20, Scheduler: sched})
		})
	}
}
func BenchmarkTransferPlainTCP(b *testing.B) {
	benchmarkTransfer(b, 1, Config{ReceiveBuffer: 1 << 20, NoMPTCP: true})
}
