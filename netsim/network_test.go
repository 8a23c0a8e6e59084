package netsim

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"braid/clock"
	"braid/link"
	"braid/mptcp"
	"braid/wire"

	"github.com/gopacket/gopacket/pcapgo"
)

func TestPacketsTakeTheirRoute(t *testing.T) {
	n := New(1)
	shared := mustLink(t, n, "shared", link.Spec{RateMbps: 12, DelayMs: 10})
	tail := mustLink(t, n, "tail", link.Spec{DelayMs: 5})
	src := &puppet{timer: clock.Never}
	src.host = n.AddHost("source", src, nil)
	p := src.host.AddPath(mptcp.Path{Local: netip.AddrPortFrom(addr("10.0.0.1"), 0)})
	var sinks []*puppet
	for i, to := range []netip.Addr{addr("10.0.1.1"), addr("10.0.1.2")} {
		s := &puppet{timer: clock.Never}
		s.host = n.AddHost(to.String(), s, nil)
		s.host.AddPath(mptcp.Path{Local: netip.AddrPortFrom(addr("10.9.9.9"), 0)}) // another path, never used
		path := s.host.AddPath(mptcp.Path{Local: netip.AddrPortFrom(to, 0)})
		links := []*Link{shared, tail}[:1+i]
		n.Connect(src.host, p, to, s.host, path, links...)
		sinks = append(sinks, s)
		src.send(p, to, data(0, 1460))
	}
	src.send(p, addr("10.0.1.3"), data(0, 1)) // nobody
	n.Run(clock.Never)
	for i, want := range []float64{11, 12 + 5} {
		if got := sinks[i].got; len(got) != 1 || got[0].atMs != want || got[0].path != 1 {
			t.Errorf("host %d got %+v, want one segment on path 1 at %v ms", i, got, want)
		}
		if c := sinks[i].host.Delivered(1); c != (PathCount{1, 1500, 1460}) {
			t.Errorf("host %d counted %+v", i, c)
		}
	}
	if c := n.Counts(); c.Unroutable != 1 || c.Packets != 3 {
		t.Errorf("counts %+v, want 3 packets, 1 of them unroutable", c)
	}
	if n.Outstanding() != 0 {
		t.Errorf("%d packets leaked", n.Outstanding())
	}
}

func TestNoLinksMeansNoDelay(t *testing.T) {
	n := New(1)
	a, b := &puppet{timer: clock.Never}, &puppet{timer: clock.Never}
	a.host, b.host = n.AddHost("a", a, nil), n.AddHost("b", b, nil)
	a.host.AddPath(mptcp.Path{Local: netip.AddrPortFrom(addrA, 0)})
	b.host.AddPath(mptcp.Path{Local: netip.AddrPortFrom(addrB, 0)})
	n.Connect(a.host, 0, addrB, b.host, 0)
	n.Run(ms(3))
	a.send(0, addrB, data(0, 5))
	n.Run(ms(3))
	if len(b.got) != 1 || b.got[0].atMs != 3 {
		t.Errorf("got %+v", b.got)
	}
}

func TestHostTimer(t *testing.T) {
	d := newBench(t, link.Spec{})
	d.a.timer = ms(7)
	d.net.Run(ms(5))
	if len(d.a.fired) != 0 || d.net.Now() != ms(5) {
		t.Fatalf("at %v: timer went off at %v", d.net.Now(), d.a.fired)
	}
	d.net.Run(ms(20))
	if len(d.a.fired) != 1 || d.a.fired[0] != ms(7) {
		t.Errorf("timer went off at %v, want once at 7ms", d.a.fired)
	}
}

func TestTimers(t *testing.T) {
	n := New(1)
	var log []string
	note := func(s string) func(clock.Time) {
		return func(now clock.Time) { log = append(log, s+now.String()) }
	}
	n.Every(ms(1), 2*time.Millisecond, note("every "))
	n.At(ms(3), note("once "))
	late := n.NewTimer(note("late "))
	late.Set(ms(2))
	late.Set(ms(4))
	off := n.NewTimer(note("off "))
	off.Set(ms(2))
	off.Set(clock.Never)
	n.Run(ms(5))
	want := []string{"every 1ms", "once 3ms", "every 3ms", "late 4ms", "every 5ms"}
	if len(log) != len(want) {
		t.Fatalf("got %v, want %v", log, want)
	}
	for i := range want {
		if log[i] != want[i] {
			t.Fatalf("got %v, want %v", log, want)
		}
	}
}

func TestLinkNamesDiffer(t *testing.T) {
	n := New(1)
	mustLink(t, n, "x", link.Spec{})
	if _, err := n.AddLink("x", link.Spec{}); err == nil {
		t.Error("two links of one name share their random streams; they were accepted")
	}
}

func TestApplyMovesWhatIsPlanned(t *testing.T) {
	d := newBench(t, link.Spec{RateMbps: 1, DelayMs: 1})
	d.a.send(0, addrB, data(0, 1460)) // 12 ms
	d.net.Run(ms(6))
	rate := 1000.0
	if err := d.fwd.Apply(link.Change{RateMbps: &rate}); err != nil {
		t.Fatal(err)
	}
	d.net.Run(clock.Never)
	if at := d.b.got[0].atMs; at < 7 || at > 7.1 {
		t.Errorf("arrived at %v ms, want just after 7", at)
	}
}

// A datagram's headers count, though they do not stand in its bytes; what corruption does to it is found by its checksum.
func TestDatagrams(t *testing.T) {
	n := New(1)
	l := mustLink(t, n, "l", link.Spec{RateMbps: 8})
	bad := mustLink(t, n, "bad", link.Spec{Corrupt: 1})
	a, b := &datagrams{}, &datagrams{}
	ha, hb := n.AddHost("a", a, nil), n.AddHost("b", b, nil)
	from, to := netip.MustParseAddrPort("10.0.0.1:5"), netip.MustParseAddrPort("10.0.0.2:6")
	ha.AddPath(mptcp.Path{Kind: mptcp.UDP, Local: from})
	hb.AddPath(mptcp.Path{Kind: mptcp.UDP, Local: to})
	n.Connect(ha, 0, to.Addr(), hb, 0, l)
	n.Connect(hb, 0, from.Addr(), ha, 0, bad)
	a.send, a.to = 1, to
	b.send, b.to = 1, from
	n.Run(clock.Never)
	if len(b.got) != 1 || b.got[0] != from || n.Now() != ms(0.128) {
		t.Errorf("got datagrams from %v, the last at %v; want one from %v at 128µs: 100 + 28 bytes at 1 a µs", b.got, n.Now(), from)
	}
	if len(a.got) != 0 || n.Counts().BadUDP != 1 {
		t.Errorf("%d corrupted datagrams arrived, %d counted", len(a.got), n.Counts().BadUDP)
	}
}

// datagrams is a Stack that sends datagrams of 100 bytes.
type datagrams struct {
	puppet
	send int
	to   netip.AddrPort
	got  []netip.AddrPort
}

func (s *datagrams) NextTimeout() clock.Time { return clock.Never }

func (s *datagrams) HandlePacket(_ clock.Time, _ mptcp.PathID, from netip.AddrPort, _ []byte) {
	s.got = append(s.got, from)
}

func (s *datagrams) PollPacket(_ clock.Time, buf []byte) (mptcp.Packet, bool) {
	if s.send == 0 {
		return mptcp.Packet{}, false
	}
	s.send--
	return mptcp.Packet{To: s.to, Len: 100}, true
}

func TestCapture(t *testing.T) {
	d := newBench(t, link.Spec{RateMbps: 12, DelayMs: 10})
	var file bytes.Buffer
	d.net.Capture(&file, d.fwd)
	d.exchange(data(0, 100), data(100, 1460))
	if err := d.net.StopCapture(); err != nil {
		t.Fatal(err)
	}
	r, err := pcapgo.NewNgReader(&file, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	var got [][2]int
	for {
		b, info, err := r.ReadPacketData()
		if err != nil {
			break
		}
		got = append(got, [2]int{len(b), info.InterfaceIndex})
	}
	want := [][2]int{{140, 0}, {1500, 0}, {140, 1}, {1500, 1}}
	if len(got) != len(want) {
		t.Fatalf("captured %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("packet %d: length and interface %v, want %v", i, got[i], want[i])
		}
	}
}

// Two puppets that answer each other at once over a perfect network never let time move.
func TestLivelockPanics(t *testing.T) {
	d := newBench(t, link.Spec{})
	for _, s := range []*puppet{d.a, d.b} {
		to := addrB
		if s == d.b {
			to = addrA
		}
		s.react = func(clock.Time, mptcp.PathID, *wire.Segment) {
			s.got = nil
			s.send(0, to, data(0, 1))
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	d.exchange(data(0, 1))
}

func TestForwardingDoesNotAllocate(t *testing.T) {
	n := New(1)
	l := mustLink(t, n, "l", link.Spec{RateMbps: 100, DelayMs: 1})
	a, b := &datagrams{}, &datagrams{}
	ha, hb := n.AddHost("a", a, nil), n.AddHost("b", b, nil)
	a.to = netip.MustParseAddrPort("10.0.0.2:6")
	ha.AddPath(mptcp.Path{Kind: mptcp.UDP, Local: netip.MustParseAddrPort("10.0.0.1:5")})
	hb.AddPath(mptcp.Path{Kind: mptcp.UDP, Local: a.to})
	n.Connect(ha, 0, a.to.Addr(), hb, 0, l)
	run := func() {
		a.send = 10
		ha.Touch()
		n.Run(n.Now().Add(time.Millisecond))
		b.got = b.got[:0]
	}
	for range 10 {
		run()
	}
	if allocs := testing.AllocsPerRun(100, run); allocs != 0 {
		t.Errorf("%v allocations for 10 packets", allocs)
	}
}

func BenchmarkForwarding(b *testing.B) {
	n := New(1)
	l := mustLink(b, n, "l", link.Spec{RateMbps: 1000, DelayMs: 5})
	src, dst := &datagrams{}, &datagrams{}
	ha, hb := n.AddHost("a", src, nil), n.AddHost("b", dst, nil)
	src.to = netip.MustParseAddrPort("10.0.0.2:6")
	ha.AddPath(mptcp.Path{Kind: mptcp.UDP, Local: netip.MustParseAddrPort("10.0.0.1:5")})
	hb.AddPath(mptcp.Path{Kind: mptcp.UDP, Local: src.to})
	n.Connect(ha, 0, src.to.Addr(), hb, 0, l)
	b.ReportAllocs()
	for b.Loop() {
		src.send = 1
		ha.Touch()
		n.Run(n.Now().Add(time.Microsecond))
		dst.got = dst.got[:0]
	}
}
