package wire

import (
	"net/netip"
	"testing"

	"braid/seq"
)

// dataSegment is what nearly every packet of a transfer is: timestamps, DATA_ACK, mapping, full payload.
func dataSegment() Segment {
	return Segment{
		SrcPort: 49152, DstPort: 443, Seq: 1000, Ack: 2000, Flags: ACK | PSH, Window: 1024,
		Options: OptTimestamps | OptDSS, TSVal: 1, TSEcr: 2,
		DSS: DSS{HasAck: true, Ack64: true, DataAck: 77, HasMap: true, Map64: true, DataSeq: seq.Data(1) << 40,
			Subflow: 1, Length: 1400},
		Payload: make([]byte, 1400),
	}
}

// ackSegment is what answers it.
func ackSegment() Segment {
	return Segment{
		SrcPort: 443, DstPort: 49152, Seq: 2000, Ack: 2400, Flags: ACK, Window: 1024,
		Options: OptTimestamps | OptDSS | OptSACK, TSVal: 2, TSEcr: 1,
		SACK: [4]SACKBlock{{3000, 4400}}, SACKBlocks: 1,
		DSS: DSS{HasAck: true, Ack64: true, DataAck: 1477},
	}
}

// Packets allocate nothing on their way through the codec.
func TestCodecAllocatesNothing(t *testing.T) {
	data, ack := dataSegment(), ackSegment()
	rawData, rawAck := AppendTCP(nil, &data), AppendTCP(nil, &ack)
	src, dst := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	src6, dst6 := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
	ip4, ip6 := &IP{Src: src, Dst: dst, Proto: ProtoTCP}, &IP{Src: src6, Dst: dst6, Proto: ProtoTCP}
	rawIP4 := append(AppendIPHeader(nil, ip4, len(rawAck)), rawAck...)
	rawIP6 := append(AppendIPHeader(nil, ip6, len(rawAck)), rawAck...)
	shim := Shim{Version: ShimVersion, Tag: 7}
	rawShim := append(AppendShim(nil, &shim), rawAck...)
	buf := make([]byte, 0, 2048)
	var s Segment
	var p IP
	tests := []struct {
		name string
		f    func()
	}{
		{"parse data", func() { _ = ParseTCP(rawData, &s) }},
		{"parse ack", func() { _ = ParseTCP(rawAck, &s) }},
		{"parse nothing", func() { _ = ParseTCP(rawAck[:3], &s) }},
		{"append data", func() { buf = AppendTCP(buf[:0], &data) }},
		{"append ack", func() { buf = AppendTCP(buf[:0], &ack) }},
		{"parse IPv4", func() { _ = ParseIP(rawIP4, &p) }},
		{"parse IPv6", func() { _ = ParseIP(rawIP6, &p) }},
		{"append IPv4", func() { buf = AppendIPHeader(buf[:0], ip4, 1000) }},
		{"append IPv6", func() { buf = AppendIPHeader(buf[:0], ip6, 1000) }},
		{"parse shim", func() { _, _, _ = ParseShim(rawShim) }},
		{"append shim", func() { buf = AppendShim(buf[:0], &shim) }},
		{"checksum", func() { SetTCPChecksum(buf[:TCPHeaderLen], 0, PseudoSum(src6, dst6, ProtoTCP), 0) }},
	}
	for _, tt := range tests {
		if n := testing.AllocsPerRun(100, tt.f); n != 0 {
			t.Errorf("%s: %v allocations", tt.name, n)
		}
	}
}

func BenchmarkParseTCPData(b *testing.B) {
	s := dataSegment()
	raw := AppendTCP(nil, &s)
	b.ReportAllocs()
	for b.Loop() {
		if err := ParseTCP(raw, &s); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseTCPAck(b *testing.B) {
	s := ackSegment()
	raw := AppendTCP(nil, &s)
	b.ReportAllocs()
	for b.Loop() {
		if err := ParseTCP(raw, &s); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendTCPHeaderData(b *testing.B) {
	s := dataSegment()
	buf := make([]byte, 0, 2048)
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendTCPHeader(buf[:0], &s)
	}
}

func BenchmarkAppendTCPHeaderAck(b *testing.B) {
	s := ackSegment()
	buf := make([]byte, 0, 2048)
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendTCPHeader(buf[:0], &s)
	}
}

func BenchmarkParseIPv4(b *testing.B) {
	raw := AppendIPHeader(nil, &IP{Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), Proto: ProtoTCP}, 0)
	var p IP
	b.ReportAllocs()
	for b.Loop() {
		if err := ParseIP(raw, &p); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkChecksum1460(b *testing.B) {
	buf := make([]byte, 1460)
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	var s Sum
	for b.Loop() {
		s = s.Add(buf)
	}
}

func BenchmarkCopyAndSum1460(b *testing.B) {
	src, dst := make([]byte, 1460), make([]byte, 1460)
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		CopyAndSum(dst, src)
	}
}

// The copy alone, to compare with.
func BenchmarkCopy1460(b *testing.B) {
	src, dst := make([]byte, 1460), make([]byte, 1460)
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		copy(dst, src)
	}
}
