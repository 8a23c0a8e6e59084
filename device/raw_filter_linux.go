package device

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"braid/wire"
)

// captureMost is what a filter's verdict lets through of a packet: all of it.
const captureMost = 1 << 18

// assembly is a filter being written. Jumps go forward to one of two ends, which are known when everything else stands.
type assembly struct {
	code   []bpf.Instruction
	take   []int // instructions that jump to the end that takes the packet
	refuse []int // ... and to the end that refuses it
}

func (a *assembly) add(in ...bpf.Instruction) { a.code = append(a.code, in...) }

// unless refuses the packet if the condition does not hold.
func (a *assembly) unless(cond bpf.JumpTest, val uint32) {
	a.add(bpf.JumpIf{Cond: cond, Val: val, SkipTrue: 1}, bpf.Jump{})
	a.refuse = append(a.refuse, len(a.code)-1)
}

// takeIf takes the packet if the condition holds.
func (a *assembly) takeIf(cond bpf.JumpTest, val uint32) {
	a.add(bpf.JumpIf{Cond: cond, Val: val, SkipFalse: 1}, bpf.Jump{})
	a.take = append(a.take, len(a.code)-1)
}

// done writes the ends.
func (a *assembly) done() []bpf.Instruction {
	refused := len(a.code)
	a.add(bpf.RetConstant{Val: 0}, bpf.RetConstant{Val: captureMost})
	for _, at := range a.refuse {
		a.code[at] = bpf.Jump{Skip: uint32(refused - at - 1)}
	}
	for _, at := range a.take {
		a.code[at] = bpf.Jump{Skip: uint32(refused + 1 - at - 1)}
	}
	return a.code
}

// ports takes the packet if the port in register A is one of the rows, and refuses it otherwise.
func (a *assembly) ports(rows []Ports) {
	for _, row := range rows {
		next := bpf.JumpIf{Cond: bpf.JumpLessThan, Val: uint32(row.First), SkipTrue: 2}
		a.add(next)
		a.takeIf(bpf.JumpLessOrEqual, uint32(int(row.First)+row.Count-1))
	}
	a.add(bpf.Jump{})
	a.refuse = append(a.refuse, len(a.code)-1)
}

// header puts the length of the link's header, which stands in front of the IP packet, into register X.
func (a *assembly) header() {
	a.add(
		bpf.LoadExtension{Num: bpf.ExtLinkLayerType},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ARPHRD_ETHER, SkipTrue: 3},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ARPHRD_LOOPBACK, SkipTrue: 2},
		bpf.LoadConstant{Dst: bpf.RegX, Val: 0},
		bpf.Jump{Skip: 1},
		bpf.LoadConstant{Dst: bpf.RegX, Val: ethernetHeader},
	)
}

// rawFilter lets through, of the IP packets for this host that are sent to local: TCP segments to one of the ports, and ICMP errors about
// segments from one of them. Fragments of IPv4 are refused: a path whose MTU is respected makes none (RFC 9293, Section 3.7.5).
func rawFilter(local netip.Addr, rows []Ports) []bpf.Instruction {
	a := new(assembly)
	a.add(bpf.LoadExtension{Num: bpf.ExtType})
	a.unless(bpf.JumpEqual, unix.PACKET_HOST)
	a.header()
	if local.Is4() {
		a.filter4(local, rows)
	} else {
		a.filter6(local, rows)
	}
	return a.done()
}

// skip4 moves X behind the IPv4 header that X points to, at+X being its first byte.
func (a *assembly) skip4(at uint32) {
	a.add(
		bpf.LoadIndirect{Off: at, Size: 1},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xf},
		bpf.ALUOpConstant{Op: bpf.ALUOpShiftLeft, Val: 2},
		bpf.ALUOpX{Op: bpf.ALUOpAdd},
		bpf.TAX{},
	)
}

func (a *assembly) filter4(local netip.Addr, rows []Ports) {
	b := local.As4()
	a.add(bpf.LoadIndirect{Off: 16, Size: 4})
	a.unless(bpf.JumpEqual, binary.BigEndian.Uint32(b[:]))
	a.add(bpf.LoadIndirect{Off: 6, Size: 2}, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0x3fff})
	a.unless(bpf.JumpEqual, 0) // neither MF nor an offset
	a.add(bpf.LoadIndirect{Off: 9, Size: 1}, bpf.StoreScratch{Src: bpf.RegA, N: 0})
	a.skip4(0)
	a.add(bpf.LoadScratch{Dst: bpf.RegA, N: 0})
	tcp := new(assembly)
	tcp.add(bpf.LoadIndirect{Off: 2, Size: 2})
	tcp.ports(rows)
	a.add(bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: wire.ProtoTCP, SkipTrue: uint8(len(tcp.code))})
	a.append(tcp)
	a.unless(bpf.JumpEqual, wire.ProtoICMPv4)
	a.add(bpf.LoadIndirect{Off: 8 + 9, Size: 1}) // of the packet quoted behind the 8 bytes of ICMP
	a.unless(bpf.JumpEqual, wire.ProtoTCP)
	a.skip4(8)
	a.add(bpf.LoadIndirect{Off: 8, Size: 2})
	a.ports(rows)
}

func (a *assembly) filter6(local netip.Addr, rows []Ports) {
	b := local.As16()
	for i := range uint32(4) {
		a.add(bpf.LoadIndirect{Off: 24 + 4*i, Size: 4})
		a.unless(bpf.JumpEqual, binary.BigEndian.Uint32(b[4*i:]))
	}
	a.add(bpf.LoadIndirect{Off: 6, Size: 1})
	tcp := new(assembly)
	tcp.add(bpf.LoadIndirect{Off: wire.IPv6HeaderLen + 2, Size: 2})
	tcp.ports(rows)
	a.add(bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: wire.ProtoTCP, SkipTrue: uint8(len(tcp.code))})
	a.append(tcp)
	a.unless(bpf.JumpEqual, wire.ProtoICMPv6)
	a.add(bpf.LoadIndirect{Off: wire.IPv6HeaderLen, Size: 1})
	a.unless(bpf.JumpLessOrEqual, 4) // the errors that TCP heeds: RFC 4443, Section 3
	a.add(bpf.LoadIndirect{Off: wire.IPv6HeaderLen + 8 + 6, Size: 1})
	a.unless(bpf.JumpEqual, wire.ProtoTCP)
	a.add(bpf.LoadIndirect{Off: wire.IPv6HeaderLen + 8 + wire.IPv6HeaderLen, Size: 2})
	a.ports(rows)
}

// append puts another assembly behind this one.
func (a *assembly) append(b *assembly) {
	for _, at := range b.take {
		a.take = append(a.take, at+len(a.code))
	}
	for _, at := range b.refuse {
		a.refuse = append(a.refuse, at+len(a.code))
	}
	a.code = append(a.code, b.code...)
}
