package wire

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzParseTCP: whatever comes, parsing does not panic, and what was understood survives being appended and parsed
// again (unknown and repeated options, padding and reserved bits are lost the first time).
func FuzzParseTCP(f *testing.F) {
	data, ack := dataSegment(), ackSegment()
	data.Payload = []byte("payload")
	f.Add(AppendTCP(nil, &data))
	f.Add(AppendTCP(nil, &ack))
	f.Add(AppendTCP(nil, &Segment{Flags: SYN, Options: OptMSS | OptSACKPermitted | OptTimestamps | OptWindowScale | OptMPCapable,
		Capable: MPCapable{Version: 1, HMACSHA256: true}}))
	for subtype := range Subtype(10) {
		for _, length := range []int{3, 4, 8, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30} {
			f.Add(rawTCP(SYN, mptcpOption(subtype, 1, 0x0f, length), ""))
			f.Add(rawTCP(ACK, mptcpOption(subtype, 1, 0x07, length), "x"))
			f.Add(rawTCP(RST, mptcpOption(subtype, 0, 0x05, length), ""))
		}
	}
	f.Add(rawTCP(ACK, []byte{1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 99, 0, 5, 10}, ""))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var s Segment
		if err := ParseTCP(raw, &s); err != nil {
			return
		}
		_ = s.String()
		if s.OptionsLen() > MaxOptionsLen {
			// Unpadded options that just fit need more room in canonical form.
			return
		}
		again := AppendTCP(nil, &s)
		var u Segment
		if err := ParseTCP(again, &u); err != nil {
			t.Fatalf("appended %x: %v", again, err)
		}
		if d := cmp.Diff(s, u, cmpSegments); d != "" {
			t.Fatalf("parsed %x, appended %x:\n%s", raw, again, d)
		}
		if third := AppendTCP(nil, &u); !bytes.Equal(third, again) {
			t.Fatalf("appended %x, then %x", again, third)
		}
	})
}

// FuzzParseIP: parsing and printing do not panic, and what was understood survives being appended.
func FuzzParseIP(f *testing.F) {
	f.Add(quote(host4, peer4, ProtoTCP, 80))
	f.Add(quote(host6, peer6, ProtoTCP, 100))
	f.Add(quote(host4, peer4, ProtoUDP, 68))
	f.Add(header6(0, 60, 0, 1, 4, 0, 0, 0, 0, 44, 0, 1, 4, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 9, 1, 2))
	f.Add(header6(43, 6, 0, 0, 0, 0, 0, 0, 0))
	for _, p := range []*IP{icmp(3, 4, 1400, quote(host4, peer4, ProtoTCP, 28)), icmp(2, 0, 1280, quote(host6, peer6, ProtoTCP, 60))} {
		f.Add(append(AppendIPHeader(nil, p, len(p.Payload)), p.Payload...))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		_ = FormatPacket(raw)
		var p, q IP
		if err := ParseIP(raw, &p); err != nil {
			return
		}
		var m ICMPError
		_ = ParseICMP(&p, &m)
		p.DF = true // append sets it
		if p.TTL == 0 {
			p.TTL = 64 // the default of append
		}
		switch p.Proto {
		case 0, 43, 44, 60:
			return // cannot be: they are skipped or refused in IPv6, and no upper layers in IPv4
		}
		again := append(AppendIPHeader(nil, &p, len(p.Payload)), p.Payload...)
		if err := ParseIP(again, &q); err != nil {
			t.Fatalf("appended %x: %v", again, err)
		}
		if d := cmp.Diff(p, q, cmpSegments); d != "" {
			t.Fatalf("parsed %x, appended %x:\n%s", raw, again, d)
		}
	})
}

// FuzzShim: parsing does not panic, and what was understood survives being appended.
func FuzzShim(f *testing.F) {
	for _, s := range []Shim{
		{Version: 1, Tag: 1}, {Version: 1, HasSender: true, SenderTag: 2, Padding: 8},
		{Version: 1, Type: ShimChallenge, Challenge: 3}, {Version: 1, Type: ShimResponse}, {Type: ShimVersions, Versions: 2},
	} {
		f.Add(append(AppendShim(nil, &s), "rest"...))
	}
	f.Add([]byte{0x70, 0x80, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2})
	f.Fuzz(func(t *testing.T, raw []byte) {
		_ = FormatDatagram(raw)
		s, rest, err := ParseShim(raw)
		if err != nil {
			return
		}
		again := append(AppendShim(nil, &s), rest...)
		if len(again) != len(raw) {
			t.Fatalf("parsed %x, appended %x", raw, again)
		}
		u, rest2, err := ParseShim(again)
		if err != nil || u != s || !bytes.Equal(rest, rest2) {
			t.Fatalf("parsed %+v, appended %x, parsed %+v, %v", s, again, u, err)
		}
	})
}
