package netsim

import (
	"fmt"
	"net/netip"
	"testing"

	"braid/clock"
	"braid/link"
	"braid/mptcp"
	"braid/seq"
	"braid/wire"
)

// puppet is a Stack without a protocol: it sends the segments that a test gives it, and remembers those that arrive.
type puppet struct {
	host  *Host
	local []netip.Addr
	queue []order
	got   []received
	timer clock.Time
	fired []clock.Time
	react func(now clock.Time, path mptcp.PathID, s *wire.Segment) // called for each arrival
}

type order struct {
	path mptcp.PathID
	to   netip.Addr
	seg  wire.Segment
}

// received is a segment that arrived, as text, with the path and the time in milliseconds.
type received struct {
	path mptcp.PathID
	atMs float64
	text string
	seg  wire.Segment
	bad  bool // checksum
}

func (s *puppet) AddPath(_ clock.Time, p mptcp.Path) mptcp.PathID {
	s.local = append(s.local, p.Local.Addr())
	return mptcp.PathID(len(s.local) - 1)
}

func (s *puppet) RemovePath(clock.Time, mptcp.PathID) {}

func (s *puppet) HandlePacket(now clock.Time, path mptcp.PathID, _ netip.AddrPort, b []byte) {
	var ip wire.IP
	r := received{path: path, atMs: float64(now) / 1e6}
	if err := wire.ParseIP(b, &ip); err != nil {
		panic(err)
	}
	if ip.Proto != wire.ProtoTCP {
		r.text = wire.FormatPacket(b)
		s.got = append(s.got, r)
		return
	}
	r.bad = !wire.TCPChecksumOK(ip.Payload, wire.PseudoSum(ip.Src, ip.Dst, wire.ProtoTCP))
	if err := wire.ParseTCP(ip.Payload, &r.seg); err != nil && !r.bad {
		panic(err)
	}
	r.seg.Payload = append([]byte(nil), r.seg.Payload...)
	r.text = fmt.Sprintf("%v %v:%d>%v:%d", &r.seg, ip.Src, r.seg.SrcPort, ip.Dst, r.seg.DstPort)
	s.got = append(s.got, r)
	if s.react != nil {
		s.react(now, path, &r.seg)
	}
}

func (s *puppet) HandleTimeout(now clock.Time) {
	s.fired = append(s.fired, now)
	s.timer = clock.Never
}

func (s *puppet) NextTimeout() clock.Time { return s.timer }

func (s *puppet) PollEvent() (mptcp.Event, bool) { return mptcp.Event{}, false }

func (s *puppet) PollPacket(_ clock.Time, buf []byte) (mptcp.Packet, bool) {
	if len(s.queue) == 0 {
		return mptcp.Packet{}, false
	}
	o := s.queue[0]
	s.queue = s.queue[1:]
	n := wire.TCPHeaderLen + o.seg.OptionsLen()
	b := wire.AppendIPHeader(buf[:0], &wire.IP{Src: s.local[o.path], Dst: o.to, Proto: wire.ProtoTCP}, n+len(o.seg.Payload))
	at := len(b)
	b = wire.AppendTCP(b, &o.seg)
	wire.SetTCPChecksum(b[at:at+n], len(o.seg.Payload), wire.PseudoSum(s.local[o.path], o.to, wire.ProtoTCP), wire.Sum(0).Add(o.seg.Payload))
	return mptcp.Packet{Path: o.path, Len: len(b)}, true
}

// send queues a segment.
func (s *puppet) send(path mptcp.PathID, to netip.Addr, seg wire.Segment) {
	s.queue = append(s.queue, order{path, to, seg})
	s.host.Touch()
}

func mptcpPath(a netip.Addr) mptcp.Path { return mptcp.Path{Local: netip.AddrPortFrom(a, 0)} }

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func ms(v float64) clock.Time { return clock.Time(v * 1e6) }

// data is a segment of n bytes from stream position at (position 0 has sequence number 1001).
func data(at, n int) wire.Segment {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte('a' + (at+i)%26)
	}
	return wire.Segment{SrcPort: 1000, DstPort: 80, Seq: seq.Number(1001 + at), Flags: wire.ACK, Payload: p}
}

// bench is two puppets with a link each way.
type bench struct {
	net       *Network
	a, b      *puppet
	fwd, back *Link
}

var addrA, addrB, addrNAT = addr("10.0.0.1"), addr("10.0.0.2"), addr("192.0.2.1")

func newBench(t testing.TB, spec link.Spec) *bench {
	t.Helper()
	n := New(1)
	d := &bench{net: n, a: &puppet{timer: clock.Never}, b: &puppet{timer: clock.Never}}
	d.fwd, d.back = mustLink(t, n, "forward", spec), mustLink(t, n, "back", spec)
	d.a.host, d.b.host = n.AddHost("a", d.a, nil), n.AddHost("b", d.b, nil)
	pa := d.a.host.AddPath(mptcp.Path{Name: "a0", Local: netip.AddrPortFrom(addrA, 0)})
	pb := d.b.host.AddPath(mptcp.Path{Name: "b0", Local: netip.AddrPortFrom(addrB, 0)})
	n.Connect(d.a.host, pa, addrB, d.b.host, pb, d.fwd)
	n.Connect(d.b.host, pb, addrA, d.a.host, pa, d.back)
	n.Connect(d.b.host, pb, addrNAT, d.a.host, pa, d.back)
	return d
}

func mustLink(t testing.TB, n *Network, name string, spec link.Spec) *Link {
	t.Helper()
	l, err := n.AddLink(name, spec)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// exchange sends the segments from a and returns what b got.
func (d *bench) exchange(segs ...wire.Segment) []received {
	for _, s := range segs {
		d.a.send(0, addrB, s)
	}
	d.net.Run(clock.Never)
	got := d.b.got
	d.b.got = nil
	return got
}

// payload joins the payloads of segments.
func payload(got []received) (s string) {
	for _, r := range got {
		s += string(r.seg.Payload)
	}
	return s
}
