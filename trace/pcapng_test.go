package trace

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"braid/clock"
)

// readCapture reads a capture back with an independent reader.
func readCapture(t *testing.T, raw []byte) (*pcapgo.NgReader, []gopacket.CaptureInfo, [][]byte) {
	t.Helper()
	r, err := pcapgo.NewNgReader(bytes.NewReader(raw), pcapgo.NgReaderOptions{WantMixedLinkType: true})
	if err != nil {
		t.Fatal(err)
	}
	var infos []gopacket.CaptureInfo
	var packets [][]byte
	for {
		data, info, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return r, infos, packets
		}
		if err != nil {
			t.Fatal(err)
		}
		infos, packets = append(infos, info), append(packets, data)
	}
}

func TestPcapReadsBack(t *testing.T) {
	const epoch = 1_700_000_000_000_000_000
	var out bytes.Buffer
	w := NewPcapWriter(&out, epoch)
	wifi := w.AddInterface("wifi")
	src, dst := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	ip := appendDatagram(nil, netip.AddrPortFrom(src, 1000), netip.AddrPortFrom(dst, 2000), []byte("odd"))
	w.WritePacket(&Packet{Interface: wifi, Time: 1, Data: ip, Direction: Outbound, Comment: "dropped: queue full"})
	lte := w.AddInterface("lte") // between packets
	w.WritePacket(&Packet{Interface: lte, Time: clock.Time(5e9 + 7), Data: ip[:24], Length: len(ip)})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	r, infos, packets := readCapture(t, out.Bytes())
	if len(packets) != 2 || r.NInterfaces() != 2 {
		t.Fatalf("%d packets, %d interfaces", len(packets), r.NInterfaces())
	}
	for i, name := range []string{"wifi", "lte"} {
		in, err := r.Interface(i)
		if err != nil || in.Name != name || in.LinkType != layers.LinkType(linkTypeRaw) {
			t.Errorf("interface %d: %+v, %v", i, in, err)
		}
	}
	tests := []struct {
		data   []byte
		length int
		at     int64
		iface  int
	}{
		{ip, len(ip), epoch + 1, wifi},
		{ip[:24], len(ip), epoch + 5e9 + 7, lte},
	}
	for i, tt := range tests {
		got := infos[i]
		if !bytes.Equal(packets[i], tt.data) || got.CaptureLength != len(tt.data) || got.Length != tt.length {
			t.Errorf("packet %d: %x, %+v", i, packets[i], got)
		}
		if got.Timestamp.UnixNano() != tt.at || got.InterfaceIndex != tt.iface {
			t.Errorf("packet %d: time %d on interface %d, want %d on %d", i, got.Timestamp.UnixNano(), got.InterfaceIndex, tt.at, tt.iface)
		}
	}
}

func TestDatagramDecodes(t *testing.T) {
	tests := []struct {
		src, dst string
		payload  string
		first    gopacket.Decoder
	}{
		{"192.0.2.1:49152", "198.51.100.7:443", "hello", layers.LayerTypeIPv4},
		{"192.0.2.1:49152", "198.51.100.7:443", "", layers.LayerTypeIPv4},
		{"[2001:db8::1]:49152", "[2001:db8::2]:443", "hello!", layers.LayerTypeIPv6},
		{"[::ffff:192.0.2.1]:49152", "198.51.100.7:443", "mapped", layers.LayerTypeIPv4},
	}
	for _, tt := range tests {
		var out bytes.Buffer
		w := NewPcapWriter(&out, 0)
		w.AddInterface("udp")
		src, dst := netip.MustParseAddrPort(tt.src), netip.MustParseAddrPort(tt.dst)
		w.WriteDatagram(&Packet{Data: []byte(tt.payload)}, src, dst)
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		_, _, packets := readCapture(t, out.Bytes())
		p := gopacket.NewPacket(packets[0], tt.first, gopacket.Default)
		if p.ErrorLayer() != nil {
			t.Errorf("%s: %v", tt.src, p.ErrorLayer().Error())
			continue
		}
		udp := p.Layer(layers.LayerTypeUDP).(*layers.UDP)
		if uint16(udp.SrcPort) != src.Port() || uint16(udp.DstPort) != dst.Port() || string(udp.Payload) != tt.payload {
			t.Errorf("%s: decoded %v", tt.src, udp)
		}
		flow := p.NetworkLayer().NetworkFlow()
		if flow.Src().String() != src.Addr().Unmap().String() || flow.Dst().String() != dst.Addr().Unmap().String() {
			t.Errorf("%s: decoded flow %v", tt.src, flow)
		}
		if err := udp.SetNetworkLayerForChecksum(p.NetworkLayer()); err != nil {
			t.Fatal(err)
		}
		if bad, fine := p.VerifyChecksums(); bad != nil || len(fine) != 0 {
			t.Errorf("%s: checksums: %v, %v", tt.src, bad, fine)
		}
	}
}

// A checksum that comes out as zero is sent as ffff: zero would say that there is none (RFC 768).
func TestDatagramChecksumNeverZero(t *testing.T) {
	src, dst := netip.MustParseAddrPort("0.0.0.0:0"), netip.MustParseAddrPort("0.0.0.0:0")
	// Pseudo-header 17 + 10, header length 10: 37 is missing to ffff.
	const rest = 0xffff - 37
	raw := appendDatagram(nil, src, dst, []byte{rest >> 8, rest & 0xff})
	if got := raw[26:28]; !bytes.Equal(got, []byte{0xff, 0xff}) {
		t.Errorf("checksum %x, want ffff", got)
	}
}

func TestPcapPanicsOnUnknownInterface(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	NewPcapWriter(io.Discard, 0).WritePacket(&Packet{})
}

func TestPcapAllocatesNothing(t *testing.T) {
	w := NewPcapWriter(io.Discard, 0)
	w.AddInterface("wifi")
	p := &Packet{Data: make([]byte, 1400), Direction: Inbound}
	src, dst := netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.2:2")
	w.WriteDatagram(p, src, dst)
	if n := testing.AllocsPerRun(100, func() { w.WritePacket(p); w.WriteDatagram(p, src, dst) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
