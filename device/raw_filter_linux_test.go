package device

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"braid/wire"
)

// verdict runs a filter on a packet behind a link's header of the kind. The machine that interprets it here does not know the kernel's words
// about a packet: they are put in as constants.
func verdict(t *testing.T, program []bpf.Instruction, kind, sort uint32, packet []byte) bool {
	t.Helper()
	program = slices.Clone(program)
	for i, in := range program {
		if ext, ok := in.(bpf.LoadExtension); ok {
			val := kind
			if ext.Num == bpf.ExtType {
				val = sort
			}
			program[i] = bpf.LoadConstant{Dst: bpf.RegA, Val: val}
		}
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	n, err := vm.Run(append(make([]byte, linkHeader(uint16(kind))), packet...))
	if err != nil {
		t.Fatal(err)
	}
	return n > 0
}

// quote returns an ICMP error of a type from elsewhere to us about a packet of ours.
func quote(kind byte, packet []byte) []byte {
	from, to, proto := kernel4.Addr(), own4, uint8(wire.ProtoICMPv4)
	if packet[0]>>4 == 6 {
		from, to, proto = kernel6.Addr(), own6, wire.ProtoICMPv6
	}
	b := wire.AppendIPHeader(nil, &wire.IP{Src: from, Dst: to, Proto: proto}, 8+len(packet))
	return append(append(b, kind, 0, 0, 0, 0, 0, 0, 0), packet...)
}

func TestRawFilter(t *testing.T) {
	rows := []Ports{{First: 80, Count: 1}, {First: 40000, Count: 32}}
	to := func(six bool, port uint16) []byte { // from the kernel's address to ours
		from, local := kernel4.Addr(), own4
		if six {
			from, local = kernel6.Addr(), own6
		}
		s := wire.Segment{SrcPort: 7, DstPort: port, Flags: wire.ACK}
		b := wire.AppendIPHeader(nil, &wire.IP{Src: from, Dst: local, Proto: wire.ProtoTCP}, wire.TCPHeaderLen)
		return wire.AppendTCPHeader(b, &s)
	}
	sent := func(six bool, port uint16) []byte {
		return segment(six, 1, []byte("x"), func(s *wire.Segment) { s.SrcPort = port })
	}
	changed := func(b []byte, at int, to ...byte) []byte {
		copy(b[at:], to)
		return b
	}
	options := func(b []byte) []byte { // an IPv4 header with 8 bytes of options
		b = slices.Insert(b, 20, 1, 1, 1, 1, 1, 1, 1, 1)
		b[0]++
		b[0]++
		binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
		return b
	}
	for _, tc := range []struct {
		name   string
		packet []byte
		want   bool
	}{
		{"port", to(false, 80), true},
		{"below", to(false, 79), false},
		{"above", to(false, 81), false},
		{"below the block", to(false, 39999), false},
		{"first of the block", to(false, 40000), true},
		{"last of the block", to(false, 40031), true},
		{"above the block", to(false, 40032), false},
		{"another address", changed(to(false, 80), 19, 99), false},
		{"another address, first byte", changed(to(false, 80), 16, 99), false},
		{"UDP", changed(to(false, 80), 9, wire.ProtoUDP), false},
		{"DF", changed(to(false, 80), 6, 0x40), true},
		{"first fragment", changed(to(false, 80), 6, 0x20), false},
		{"last fragment", changed(to(false, 80), 7, 9), false},
		{"options", options(to(false, 80)), true},
		{"options, another port", options(to(false, 81)), false},
		{"ICMP about our segment", quote(3, sent(false, 40031)), true},
		{"ICMP about our segment with options", quote(3, options(sent(false, 40031))), true},
		{"ICMP about another's segment", quote(3, sent(false, 22)), false},
		{"ICMP about UDP", quote(3, changed(sent(false, 80), 9, wire.ProtoUDP)), false},
		{"cut", to(false, 80)[:22], false},
		{"nothing", nil, false},
		{"IPv6: port", to(true, 80), true},
		{"IPv6: another port", to(true, 81), false},
		{"IPv6: last of the block", to(true, 40031), true},
		{"IPv6: another address", changed(to(true, 80), 39, 99), false},
		{"IPv6: another net", changed(to(true, 80), 24, 0x20), false},
		{"IPv6: UDP", changed(to(true, 80), 6, wire.ProtoUDP), false},
		{"IPv6: ICMP about our segment", quote(2, sent(true, 80)), true},
		{"IPv6: ICMP about another's segment", quote(2, sent(true, 81)), false},
		{"IPv6: ICMP that is no error", quote(128, sent(true, 80)), false},
		{"IPv6: ICMP about UDP", quote(1, changed(sent(true, 80), 6, wire.ProtoUDP)), false},
	} {
		local := own4
		if bytes.HasPrefix([]byte(tc.name), []byte("IPv6")) {
			local = own6
		}
		program := rawFilter(local, rows)
		for _, kind := range []uint32{unix.ARPHRD_ETHER, unix.ARPHRD_LOOPBACK, unix.ARPHRD_NONE} {
			if got := verdict(t, program, kind, unix.PACKET_HOST, tc.packet); got != tc.want {
				t.Errorf("%s, interface of kind %d: taken %v", tc.name, kind, got)
			}
			if verdict(t, program, kind, unix.PACKET_OTHERHOST, tc.packet) {
				t.Errorf("%s, interface of kind %d: taken though it is for another host", tc.name, kind)
			}
		}
	}
}

// TestRawFilterFits: as many rows as there may be make a program that the kernel takes.
func TestRawFilterFits(t *testing.T) {
	for _, local := range []netip.Addr{own4, own6} {
		program := rawFilter(local, []Ports{{First: 65535, Count: 1}, {First: 1, Count: 1024}, {First: 5000, Count: 1}, {First: 6000, Count: 1}})
		if _, err := bpf.Assemble(program); err != nil || len(program) > 256 {
			t.Errorf("%d instructions, %v", len(program), err)
		}
	}
}
