package mptcp

import (
	"net/netip"
	"testing"
	"time"

	"braid/wire"
)

// RFC 9293, Section 3.5.2 (TCP-05): what belongs to no connection is answered with a RST: with an ACK, its sequence number is the ACK;
// without, it acknowledges what came. A RST is never answered.
func TestResetForUnknown(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	l := w.link(10 * time.Millisecond)
	for _, tc := range []struct {
		name string
		in   wire.Segment
		want *wire.Segment
	}{
		{"ACK", wire.Segment{Seq: 10, Ack: 20, Flags: wire.ACK}, &wire.Segment{Seq: 20, Flags: wire.RST}},
		{"data", wire.Segment{Seq: 10, Ack: 20, Flags: wire.ACK | wire.PSH, Payload: []byte("hello")}, &wire.Segment{Seq: 20, Flags: wire.RST}},
		{"SYN to a closed port", wire.Segment{Seq: 10, Flags: wire.SYN}, &wire.Segment{Ack: 11, Flags: wire.RST | wire.ACK}},
		{"FIN without ACK, with data", wire.Segment{Seq: 10, Flags: wire.FIN, Payload: []byte("abc")}, &wire.Segment{Ack: 14, Flags: wire.RST | wire.ACK}},
		{"RST", wire.Segment{Seq: 10, Flags: wire.RST}, nil},
		{"RST with ACK", wire.Segment{Seq: 10, Ack: 20, Flags: wire.RST | wire.ACK}, nil},
	} {
		tc.in.SrcPort, tc.in.DstPort = 7, 8
		w.inject(l, true, tc.in)
		segs := w.collect(false)
		if tc.want == nil {
			if len(segs) != 0 {
				t.Errorf("%s: answer %v", tc.name, segs)
			}
			continue
		}
		if len(segs) != 1 {
			t.Errorf("%s: %d answers", tc.name, len(segs))
			continue
		}
		got := segs[0]
		if got.SrcPort != 8 || got.DstPort != 7 || got.Seq != tc.want.Seq || got.Ack != tc.want.Ack || got.Flags != tc.want.Flags || got.Options != 0 || got.Len() != 0 {
			t.Errorf("%s: answer %v", tc.name, got)
		}
	}
	if w.server.counters.ResetsSent != 4 {
		t.Errorf("%d resets counted", w.server.counters.ResetsSent)
	}
}

// SEC-06: the rate of such answers is bounded, and comes back.
func TestResetsAreLimited(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	l := w.link(10 * time.Millisecond)
	flood := func() int {
		n := 0
		for range 1000 {
			w.inject(l, true, wire.Segment{SrcPort: 7, DstPort: 8, Flags: wire.ACK})
			n += len(w.collect(false))
		}
		return n
	}
	if n := flood(); n != limiterBurst {
		t.Errorf("%d answers", n)
	}
	w.now = w.now.Add(100 * time.Millisecond)
	if n := flood(); n != limiterRate/10 {
		t.Errorf("%d answers after 100 ms", n)
	}
	if w.server.counters.ResetsLimited != 2000-limiterBurst-limiterRate/10 {
		t.Errorf("%d limited", w.server.counters.ResetsLimited)
	}
}

// What is not ours, not whole or not right is counted and dropped (TCP-01).
func TestDrops(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	l := w.link(10 * time.Millisecond)
	make := func(dst string, proto uint8, checksum bool) []byte {
		ip := wire.IP{Src: l.clientAddr.Addr(), Dst: netip.MustParseAddr(dst), Proto: proto}
		head := wire.AppendTCPHeader(nil, &wire.Segment{SrcPort: 7, DstPort: 8, Flags: wire.ACK})
		if checksum {
			wire.SetTCPChecksum(head, 0, wire.PseudoSum(ip.Src, ip.Dst, wire.ProtoTCP), 0)
		}
		return append(wire.AppendIPHeader(nil, &ip, len(head)), head...)
	}
	n := &w.server.counters
	for _, tc := range []struct {
		name    string
		path    PathID
		b       []byte
		counter *int64
	}{
		{"nothing", 0, nil, &n.DropMalformed},
		{"half a header", 0, make("192.0.2.1", wire.ProtoTCP, true)[:30], &n.DropMalformed},
		{"another address", 0, make("192.0.2.2", wire.ProtoTCP, true), &n.DropNotOurs},
		{"no such path", 5, make("192.0.2.1", wire.ProtoTCP, true), &n.DropNotOurs},
		{"another protocol", 0, make("192.0.2.1", wire.ProtoUDP, true), &n.DropNotTCP},
		{"wrong checksum", 0, make("192.0.2.1", wire.ProtoTCP, false), &n.DropChecksum},
	} {
		before := *tc.counter
		w.server.HandlePacket(w.now, tc.path, netip.AddrPort{}, tc.b)
		if segs := w.collect(false); len(segs) != 0 || *tc.counter != before+1 {
			t.Errorf("%s: %d answers, counted %d", tc.name, len(segs), *tc.counter-before)
		}
	}
}
