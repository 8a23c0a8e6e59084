package middlebox

import (
	"bytes"
	"net/netip"
	"testing"

	"braid/link"
	"braid/wire"
)

// sink is an Outlet that keeps what passes.
type sink struct {
	passed  []*link.Packet
	dropped int
}

func (s *sink) Pass(p *link.Packet)             { s.passed = append(s.passed, p) }
func (s *sink) Drop(*link.Packet)               { s.dropped++ }
func (s *sink) New(p *link.Packet) *link.Packet { return &link.Packet{Header: p.Header} }
func (s *sink) Back(_, a *link.Packet)          { s.passed = append(s.passed, a) }

// packet is a TCP segment with the given options, byte by byte, in an IP packet.
func packet(options, payload []byte) *link.Packet {
	ip := wire.IP{Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), Proto: wire.ProtoTCP}
	n := wire.TCPHeaderLen + len(options)
	b := wire.AppendIPHeader(nil, &ip, n+len(payload))
	at := len(b)
	b = append(b, 0, 1, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, byte(n/4)<<4, byte(wire.ACK), 1, 0, 0, 0, 0, 0)
	b = append(append(b, options...), payload...)
	wire.SetTCPChecksum(b[at:at+n], len(payload), wire.PseudoSum(ip.Src, ip.Dst, wire.ProtoTCP), wire.Sum(0).Add(payload))
	return &link.Packet{Data: b, Size: len(b), Header: at}
}

// Options of other hosts may be packed more tightly than wire.AppendTCP packs them. A segment that would not fit any more passes as it came.
func TestTightOptionsPass(t *testing.T) {
	tight := []byte{8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 5, 10, 0, 0, 0, 9, 0, 0, 0, 11, 30, 18, 0x20, 0x05, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 4, 0, 0}
	for name, box := range map[string]Box{"editor": ClampWindow(1), "split": &Split{Size: 2}, "coalesce": &Coalesce{Size: 100, Wait: 1}} {
		var out sink
		p := packet(tight, []byte("data"))
		before := bytes.Clone(p.Data)
		box.Process(0, Forward, p, &out)
		if len(out.passed) != 1 || out.dropped != 0 || !bytes.Equal(out.passed[0].Data, before) {
			t.Errorf("%s: %d packets passed, %d dropped", name, len(out.passed), out.dropped)
		}
	}
}

// What is no intact TCP segment passes every box but a NAT, which cannot know whose it is.
func TestOthersPass(t *testing.T) {
	for name, box := range map[string]Box{"strip": StripOptions(wire.OptMPTCP, Anywhere, 0), "split": &Split{Size: 2}, "coalesce": &Coalesce{Size: 100, Wait: 1}, "replace": ReplacePayload(0, 1, []byte("x"))} {
		for _, p := range []*link.Packet{{Data: []byte("?"), Size: 1}, {Data: packet(nil, []byte("data")).Data, Corrupted: true}} {
			var out sink
			box.Process(0, Forward, p, &out)
			if len(out.passed) != 1 || out.passed[0] != p {
				t.Errorf("%s: %d packets passed", name, len(out.passed))
			}
		}
	}
}
