package wire

import (
	"bytes"
	"errors"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"pgregory.net/rapid"
)

// drawIP draws a packet as AppendIPHeader writes them.
func drawIP(t *rapid.T) IP {
	p := IP{
		Proto: ProtoTCP,
		TTL:   rapid.Uint8Range(1, 255).Draw(t, "ttl"),
		TOS:   rapid.Uint8().Draw(t, "tos"),
		DF:    true,
	}
	if rapid.Bool().Draw(t, "ipv6") {
		p.Src = netip.AddrFrom16([16]byte(drawBytes(t, 16, "src")))
		p.Dst = netip.AddrFrom16([16]byte(drawBytes(t, 16, "dst")))
		p.Flow = rapid.Uint32Range(0, 1<<20-1).Draw(t, "flow")
	} else {
		p.Src = netip.AddrFrom4([4]byte(drawBytes(t, 4, "src")))
		p.Dst = netip.AddrFrom4([4]byte(drawBytes(t, 4, "dst")))
		p.ID = rapid.Uint16().Draw(t, "id")
	}
	p.Payload = rapid.SliceOfN(rapid.Byte(), 0, 60).Draw(t, "payload")
	return p
}

func TestIPRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawIP(t)
		raw := append(AppendIPHeader(nil, &want, len(want.Payload)), want.Payload...)
		if len(raw) != want.HeaderLen()+len(want.Payload) {
			t.Fatalf("%d bytes", len(raw))
		}
		var got IP
		if err := ParseIP(append(raw, "link padding"...), &got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, cmpSegments); d != "" {
			t.Fatalf("parsed packet differs (-want +got):\n%s", d)
		}
	})
}

// Other people's code reads our headers the same way, checksums included.
func TestIPDecodesElsewhere(t *testing.T) {
	tests := []struct {
		src, dst string
		first    gopacket.LayerType
	}{
		{"192.0.2.1", "198.51.100.2", layers.LayerTypeIPv4},
		{"2001:db8::1", "2001:db8::2", layers.LayerTypeIPv6},
	}
	for _, tt := range tests {
		p := IP{Src: netip.MustParseAddr(tt.src), Dst: netip.MustParseAddr(tt.dst), Proto: ProtoTCP, TOS: uint8(ECT0), Flow: 7}
		pseudo := PseudoSum(p.Src, p.Dst, ProtoTCP)
		s := dataSegment()
		seg := AppendTCPHeader(nil, &s)
		SetTCPChecksum(seg, len(s.Payload), pseudo, Sum(0).Add(s.Payload))
		seg = append(seg, s.Payload...)
		raw := append(AppendIPHeader(nil, &p, len(seg)), seg...)

		packet := gopacket.NewPacket(raw, tt.first, gopacket.Default)
		if e := packet.ErrorLayer(); e != nil {
			t.Fatal(e.Error())
		}
		tcp := packet.Layer(layers.LayerTypeTCP).(*layers.TCP)
		if uint16(tcp.SrcPort) != s.SrcPort || tcp.Seq != uint32(s.Seq) || !tcp.ACK || !tcp.PSH || len(tcp.Payload) != 1400 {
			t.Errorf("%s: decoded %+v", tt.src, tcp)
		}
		if err := tcp.SetNetworkLayerForChecksum(packet.NetworkLayer()); err != nil {
			t.Fatal(err)
		}
		if err, bad := packet.VerifyChecksums(); err != nil || len(bad) != 0 {
			t.Errorf("%s: checksums %v, %v", tt.src, err, bad)
		}
		switch ip := packet.NetworkLayer().(type) {
		case *layers.IPv4:
			if ip.Flags != layers.IPv4DontFragment || ip.TTL != 64 || ip.TOS != uint8(ECT0) {
				t.Errorf("IPv4 header %+v", ip)
			}
		case *layers.IPv6:
			if ip.FlowLabel != 7 || ip.HopLimit != 64 || ip.TrafficClass != uint8(ECT0) {
				t.Errorf("IPv6 header %+v", ip)
			}
		}
	}
}

// header4 returns an IPv4 packet changed by f, with its checksum made right again.
func header4(f func(b []byte)) []byte {
	p := IP{Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), Proto: ProtoTCP}
	b := append(AppendIPHeader(nil, &p, 4), 'd', 'a', 't', 'a')
	f(b)
	b[10], b[11] = 0, 0
	n := min(int(b[0]&0xf)*4, len(b))
	be.PutUint16(b[10:], sum(b[:n]).Checksum())
	return b
}

// header6 returns an IPv6 packet with the given next header and payload.
func header6(next uint8, payload ...byte) []byte {
	p := IP{Src: netip.MustParseAddr("2001:db8::1"), Dst: netip.MustParseAddr("2001:db8::2"), Proto: next}
	return append(AppendIPHeader(nil, &p, len(payload)), payload...)
}

func TestParseIPRefuses(t *testing.T) {
	whole := header4(func([]byte) {})
	broken := header4(func([]byte) {})
	broken[8]--
	tests := []struct {
		name string
		b    []byte
		want error
	}{
		{"nothing", nil, ErrIPShort},
		{"version 5", []byte{0x55}, ErrIPVersion},
		{"IPv4", whole, nil},
		{"IPv4 cut in the header", whole[:19], ErrIPShort},
		{"IPv4 cut in the payload", whole[:22], ErrIPLength},
		{"IPv4 header length 4", header4(func(b []byte) { b[0] = 0x44 }), ErrIPLength},
		{"IPv4 header longer than the packet", header4(func(b []byte) { b[0] = 0x4f }), ErrIPLength},
		{"IPv4 total length below the header", header4(func(b []byte) { b[3] = 19 }), ErrIPLength},
		{"IPv4 checksum", broken, ErrIPChecksum},
		{"IPv4 more fragments", header4(func(b []byte) { b[6] |= 0x20 }), ErrIPFragment},
		{"IPv4 last fragment", header4(func(b []byte) { b[7] = 1 }), ErrIPFragment},
		{"IPv6", header6(ProtoTCP, 1, 2), nil},
		{"IPv6 cut in the header", header6(ProtoTCP)[:39], ErrIPShort},
		{"IPv6 cut in the payload", header6(ProtoTCP, 1, 2)[:41], ErrIPLength},
		{"IPv6 fragment", header6(44, 6, 0, 0, 8, 0, 0, 0, 1), ErrIPFragment},
		{"IPv6 first fragment", header6(44, 6, 0, 0, 1, 0, 0, 0, 1), ErrIPFragment},
		{"IPv6 fragment header cut", header6(44, 6, 0, 0), ErrIPExtension},
		{"IPv6 routing header", header6(43, 6, 0, 0, 0, 0, 0, 0, 0), ErrIPExtension},
		{"IPv6 options cut", header6(0, 6, 1, 0, 0, 0, 0, 0, 0), ErrIPExtension},
		{"IPv6 options without length", header6(60, 6), ErrIPExtension},
	}
	for _, tt := range tests {
		var p IP
		if err := ParseIP(tt.b, &p); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}

func TestParseIPSkips(t *testing.T) {
	options := []byte{0, 0, 1, 4, 0, 0, 0, 0} // behind the next header field
	chain := append([]byte{60}, options[1:]...)
	chain = append(chain, 44, 1, 1, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) // 16 bytes
	chain = append(chain, ProtoTCP, 0, 0, 0, 0, 0, 0, 9)                   // a whole fragment
	tests := []struct {
		name  string
		b     []byte
		proto uint8
	}{
		{"IPv4 options", func() []byte {
			b := header4(func(b []byte) { b[0], b[3] = 0x46, 28 })
			b = append(b, "data"...) // the old payload became options
			b[10], b[11] = 0, 0
			be.PutUint16(b[10:], sum(b[:24]).Checksum())
			return b
		}(), ProtoTCP},
		{"IPv6 extension headers", header6(0, append(chain, "data"...)...), ProtoTCP},
		{"IPv6 protocol of others", header6(50, []byte("data")...), 50},
	}
	for _, tt := range tests {
		var p IP
		if err := ParseIP(tt.b, &p); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		} else if p.Proto != tt.proto || string(p.Payload) != "data" {
			t.Errorf("%s: protocol %d, payload %q", tt.name, p.Proto, p.Payload)
		}
	}
}

func TestECN(t *testing.T) {
	for tos, want := range map[uint8]ECN{0xfc: NotECT, 0xfd: ECT1, 2: ECT0, 3: CE} {
		if got := (&IP{TOS: tos}).ECN(); got != want {
			t.Errorf("TOS %#x: ECN %d, want %d", tos, got, want)
		}
	}
}

func TestAppendIPHeaderPanics(t *testing.T) {
	v4, v6 := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("2001:db8::1")
	tests := []struct {
		name string
		p    IP
		n    int
	}{
		{"no addresses", IP{}, 0},
		{"two families", IP{Src: v4, Dst: v6}, 0},
		{"IPv4 too long", IP{Src: v4, Dst: v4}, 65516},
		{"IPv6 too long", IP{Src: v6, Dst: v6}, 65536},
	}
	for _, tt := range tests {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", tt.name)
				}
			}()
			AppendIPHeader(nil, &tt.p, tt.n)
		}()
	}
}

func TestUDP(t *testing.T) {
	src, dst := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	pseudo := PseudoSum(src, dst, ProtoUDP)
	rapid.Check(t, func(t *rapid.T) {
		payload := rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(t, "payload")
		sp, dp := rapid.Uint16().Draw(t, "src"), rapid.Uint16().Draw(t, "dst")
		h := AppendUDPHeader([]byte("x"), sp, dp, len(payload))[1:]
		SetUDPChecksum(h, pseudo, Sum(0).Add(payload))
		raw := append(append(h, payload...), "padding"...)
		var u UDP
		if err := ParseUDP(raw, &u); err != nil {
			t.Fatal(err)
		}
		if u.SrcPort != sp || u.DstPort != dp || !bytes.Equal(u.Payload, payload) || u.Checksum == 0 {
			t.Fatalf("parsed %+v", u)
		}
		if !UDPChecksumOK(raw, pseudo) {
			t.Fatal("right checksum not recognised")
		}
		raw[0] ^= 1
		if UDPChecksumOK(raw, pseudo) {
			t.Fatal("wrong checksum not noticed")
		}
		raw[0] ^= 1
		raw[6], raw[7] = 0, 0
		if UDPChecksumOK(raw, pseudo) {
			t.Fatal("missing checksum not noticed")
		}
	})
}

// RFC 768: a checksum of zero is sent as all ones.
func TestUDPChecksumNeverZero(t *testing.T) {
	h := AppendUDPHeader(nil, 0, 0, 2)
	payload := Sum(0xffff - 10 - 10) // header and pseudo-header hold the length once each
	SetUDPChecksum(h, 0, payload)
	if got := be.Uint16(h[6:]); got != 0xffff {
		t.Errorf("checksum %04x, want ffff", got)
	}
}

func TestParseUDPRefuses(t *testing.T) {
	h := AppendUDPHeader(nil, 1, 2, 2)
	short := AppendUDPHeader(nil, 1, 2, 0)
	short[5] = 7
	tests := []struct {
		name string
		b    []byte
		want error
	}{
		{"7 bytes", h[:7], ErrUDPShort},
		{"cut", append(h, 1), ErrUDPLength},
		{"length 7", short, ErrUDPLength},
	}
	for _, tt := range tests {
		var u UDP
		if err := ParseUDP(tt.b, &u); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}
