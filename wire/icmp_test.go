package wire

import (
	"errors"
	"net/netip"
	"testing"
)

var (
	host4, peer4, router4 = netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("10.9.9.9")
	host6, peer6, router6 = netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8:1::2"), netip.MustParseAddr("2001:db8::9")
)

// quote returns the first n bytes of a packet that this host sent.
func quote(src, dst netip.Addr, proto uint8, n int) []byte {
	var upper []byte
	if proto == ProtoTCP {
		upper = AppendTCP(nil, &Segment{SrcPort: 49152, DstPort: 443, Seq: 0x01020304, Flags: ACK, Payload: make([]byte, 40)})
	} else {
		upper = append(AppendUDPHeader(nil, 49152, 443, 40), make([]byte, 40)...)
	}
	b := AppendIPHeader(nil, &IP{Src: src, Dst: dst, Proto: proto}, len(upper))
	return append(b, upper...)[:n]
}

// icmp builds the packet of an ICMP message to this host, with the version and checksum that fit the quote.
func icmp(kind, code uint8, word uint32, quoted []byte) *IP {
	b := be.AppendUint32([]byte{kind, code, 0, 0}, word)
	b = append(b, quoted...)
	p := &IP{Src: router4, Dst: host4, Proto: ProtoICMPv4, Payload: b}
	s := sum(b)
	if len(quoted) > 0 && quoted[0]>>4 == 6 {
		p.Src, p.Dst, p.Proto = router6, host6, ProtoICMPv6
		s += PseudoSum(p.Src, p.Dst, ProtoICMPv6) + Sum(len(b))
	}
	be.PutUint16(b[2:], s.Checksum())
	return p
}

// RFC 9293, Section 3.9.2.2, sorts the errors; RFC 1191 and RFC 8201 have the MTU.
func TestParseICMPKinds(t *testing.T) {
	q4, q6 := quote(host4, peer4, ProtoTCP, 28), quote(host6, peer6, ProtoTCP, 100)
	tests := []struct {
		name       string
		kind, code uint8
		word       uint32
		quote      []byte
		want       ICMPKind
		mtu        int
	}{
		{"net unreachable", 3, 0, 0, q4, ICMPSoft, 0},
		{"host unreachable", 3, 1, 0, q4, ICMPSoft, 0},
		{"protocol unreachable", 3, 2, 0, q4, ICMPHard, 0},
		{"port unreachable", 3, 3, 0, q4, ICMPHard, 0},
		{"fragmentation needed", 3, 4, 1400, q4, ICMPPacketTooBig, 1400},
		{"fragmentation needed, old router", 3, 4, 0, q4, ICMPPacketTooBig, 0},
		{"source route failed", 3, 5, 0, q4, ICMPSoft, 0},
		{"filtered", 3, 13, 0, q4, ICMPHard, 0},
		{"time exceeded", 11, 0, 0, q4, ICMPSoft, 0},
		{"parameter problem", 12, 0, 0, q4, ICMPSoft, 0},
		{"v6 no route", 1, 0, 0, q6, ICMPSoft, 0},
		{"v6 prohibited", 1, 1, 0, q6, ICMPHard, 0},
		{"v6 port unreachable", 1, 4, 0, q6, ICMPHard, 0},
		{"v6 packet too big", 2, 0, 1280, q6, ICMPPacketTooBig, 1280},
		{"v6 packet too big for everybody", 2, 0, 0xffffffff, q6, ICMPPacketTooBig, 0xffff},
		{"v6 time exceeded", 3, 0, 0, q6, ICMPSoft, 0},
		{"v6 unknown next header", 4, 1, 0, q6, ICMPHard, 0},
		{"v6 parameter problem", 4, 0, 0, q6, ICMPSoft, 0},
	}
	for _, tt := range tests {
		var m ICMPError
		p := icmp(tt.kind, tt.code, tt.word, tt.quote)
		if err := ParseICMP(p, &m); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		src, dst := host4, peer4
		if p.Proto == ProtoICMPv6 {
			src, dst = host6, peer6
		}
		want := ICMPError{Kind: tt.want, Type: tt.kind, Code: tt.code, MTU: tt.mtu, Src: src, Dst: dst, Proto: ProtoTCP,
			SrcPort: 49152, DstPort: 443, Seq: 0x01020304}
		if m != want {
			t.Errorf("%s:\n got %+v\nwant %+v", tt.name, m, want)
		}
	}
}

func TestParseICMPAboutUDP(t *testing.T) {
	var m ICMPError
	if err := ParseICMP(icmp(3, 4, 1400, quote(host4, peer4, ProtoUDP, 28)), &m); err != nil {
		t.Fatal(err)
	}
	if m.Proto != ProtoUDP || m.SrcPort != 49152 || m.DstPort != 443 || m.Seq != 0 || m.MTU != 1400 {
		t.Errorf("parsed %+v", m)
	}
}

// RFC 5927, Section 4: what cannot be matched with data in flight is not believed.
func TestParseICMPRefuses(t *testing.T) {
	q4, q6 := quote(host4, peer4, ProtoTCP, 28), quote(host6, peer6, ProtoTCP, 48)
	changed := func(q []byte, i int, v byte) []byte {
		q = append([]byte{}, q...)
		q[i] = v
		return q
	}
	broken := icmp(3, 3, 0, q4)
	broken.Payload[7]++
	broken6 := icmp(1, 4, 0, q6)
	broken6.Dst = peer6 // the pseudo-header is covered
	short := icmp(3, 3, 0, nil)
	short.Payload = short.Payload[:7]
	other := icmp(3, 3, 0, q4)
	other.Proto = ProtoTCP
	tests := []struct {
		name string
		p    *IP
		want error
	}{
		{"7 bytes", short, ErrICMPShort},
		{"checksum", broken, ErrICMPChecksum},
		{"v6 checksum", broken6, ErrICMPChecksum},
		{"echo request", icmp(8, 0, 0, q4), ErrICMPOther},
		{"source quench", icmp(4, 0, 0, q4), ErrICMPOther}, // RFC 6633: ignored
		{"v6 echo request", icmp(128, 0, 0, q6), ErrICMPOther},
		{"no ICMP", other, ErrICMPOther},
		{"nothing quoted", icmp(3, 3, 0, nil), ErrICMPQuote},
		{"quote without sequence number", icmp(3, 3, 0, q4[:27]), ErrICMPQuote},
		{"quote cut in the IP header", icmp(3, 3, 0, q4[:19]), ErrICMPQuote},
		{"quote of a later fragment", icmp(3, 3, 0, changed(q4, 7, 9)), ErrICMPQuote},
		{"quote of another protocol", icmp(3, 3, 0, changed(q4, 9, 50)), ErrICMPQuote},
		{"quote with header length 4", icmp(3, 3, 0, changed(q4, 0, 0x44)), ErrICMPQuote},
		{"quote with header length 60", icmp(3, 3, 0, changed(q4, 0, 0x4f)), ErrICMPQuote},
		{"quote of version 5", icmp(3, 3, 0, changed(q4, 0, 0x55)), ErrICMPQuote},
		{"v6 quote without sequence number", icmp(1, 4, 0, q6[:47]), ErrICMPQuote},
		{"v6 quote cut in the IP header", icmp(1, 4, 0, q6[:39]), ErrICMPQuote},
		{"v6 quote of a routing header", icmp(1, 4, 0, changed(q6, 6, 43)), ErrICMPQuote},
	}
	for _, tt := range tests {
		var m ICMPError
		if err := ParseICMP(tt.p, &m); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}
