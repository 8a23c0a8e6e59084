package mptcp

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"
	"time"

	"braid/seq"
	"braid/wire"
)

// icmpError makes an ICMPv4 error about a segment that the client sent over l.
func icmpError(l *testLink, kind, code uint8, mtu uint16, srcPort uint16, n seq.Number) []byte {
	quoted := wire.AppendIPHeader(nil, &wire.IP{Src: l.clientAddr.Addr(), Dst: l.serverAddr.Addr(), Proto: wire.ProtoTCP}, 20)
	quoted = binary.BigEndian.AppendUint16(quoted, srcPort)
	quoted = binary.BigEndian.AppendUint16(quoted, serverPort)
	quoted = binary.BigEndian.AppendUint32(quoted, uint32(n))
	m := append([]byte{kind, code, 0, 0, 0, 0, byte(mtu >> 8), byte(mtu)}, quoted...)
	binary.BigEndian.PutUint16(m[2:], wire.Sum(0).Add(m).Checksum())
	router := netip.MustParseAddr("198.51.100.1")
	return append(wire.AppendIPHeader(nil, &wire.IP{Src: router, Dst: l.clientAddr.Addr(), Proto: wire.ProtoICMPv4}, len(m)), m...)
}

// RFC 9293, Section 3.9.2.2 (TCP-16): hard errors end an attempt to connect, not a connection; soft ones nothing; and only those that
// quote what is in flight are believed.
func TestICMPUnreachable(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	l := w.link(10 * time.Millisecond)
	l.down = true
	c := w.dial()
	w.drain()
	sf := c.subflows[0]
	give := func(b []byte) { w.client.HandlePacket(w.now, l.client, netip.AddrPort{}, b) }
	give(icmpError(l, 3, 3, 0, sf.srcPort, sf.iss+1))
	give(icmpError(l, 3, 3, 0, sf.srcPort+1, sf.iss))
	give(icmpError(l, 3, 1, 0, sf.srcPort, sf.iss))
	if c.Err() != nil || w.client.counters.DropICMP != 2 || w.client.counters.ICMPSoft != 1 {
		t.Fatalf("%v, counters %+v", c.Err(), w.client.counters)
	}
	give(icmpError(l, 3, 3, 0, sf.srcPort, sf.iss))
	if !errors.Is(c.Err(), ErrRefused) {
		t.Errorf("hard error: %v", c.Err())
	}
	l.down = false
	c, s := w.connect(w.listen())
	w.transfer(c, s, 1000, time.Second)
	c2, _ := w.connect(w.server.listeners[listenKey{port: serverPort}])
	c2.Write(w.now, make([]byte, 1000))
	w.drain()
	sf = c2.subflows[0]
	give(icmpError(l, 3, 3, 0, sf.srcPort, sf.iss+1))
	if c2.Err() != nil {
		t.Error("a hard error ended a connection")
	}
}

// RFC 1191, Section 3 (MTU-04): a believed report lowers the MTU of the subflow.
func TestICMPTooBig(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	l := w.link(10 * time.Millisecond)
	w.tap = func(f *flight) bool {
		if len(f.b) > 1300 {
			seg := f.segment(t)
			w.client.HandlePacket(w.now, l.client, netip.AddrPort{}, icmpError(l, 3, 4, 1300, seg.SrcPort, seg.Seq))
			return false
		}
		return true
	}
	c, s := w.connect(w.listen())
	w.transfer(c, s, 300000, 5*time.Second)
	if w.client.counters.ICMPTooBig == 0 {
		t.Error("not believed")
	}
	if i := c.Info(w.now).Subflows[0].TCP; i.MTU != 1300 || i.RTOs != 0 {
		t.Errorf("MTU %d, %d timeouts", i.MTU, i.RTOs)
	}
	if m := c.Info(w.now); m.Fallback != NoFallback {
		t.Errorf("fallback %v", m.Fallback)
	}
}

// The machine refuses packets beyond a size on one path: the subflow over it sends smaller ones at once, others stay as they are.
func TestHandleTooLarge(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	l := w.linkUDP(10 * time.Millisecond)
	w.linkUDP(10 * time.Millisecond)
	c, s := w.connect(w.listen())
	w.transfer(c, s, 100_000, time.Minute)
	w.client.HandleTooLarge(w.now, l.client, netip.MustParseAddrPort("203.0.113.1:9"), 1300) // nobody's destination
	for _, sf := range c.subflows {
		if sf.tcp.MTU() != 1500 {
			t.Errorf("subflow %d: %d", sf.id, sf.tcp.MTU())
		}
	}
	w.client.HandleTooLarge(w.now, l.client, l.serverAddr, 1300)
	if a, b := c.subflows[0].tcp.MTU(), c.subflows[1].tcp.MTU(); a != 1300 || b != 1500 {
		t.Errorf("sizes %d and %d", a, b)
	}
	w.client.HandleTooLarge(w.now, l.client, l.serverAddr, 40) // not below the floor (RFC 1191, Section 3)
	if got := c.subflows[0].tcp.MTU(); got < 576 {
		t.Errorf("size %d", got)
	}
	if n := w.client.counters.SendsTooLarge; n != 3 {
		t.Errorf("counted %d times", n)
	}
}
