package middlebox

import (
	"net/netip"

	"braid/clock"
	"braid/link"
	"braid/wire"
)

// NAT is a Box that hides the senders of its forward direction behind an outside address, and ports of its own. It translates TCP in
// IP and datagrams. Rebind makes it forget: the same flows then get other outside ports, or another address, and what
// comes back to the old ones is dropped, as when a home router restarts or a phone changes cells.
//
// Whoever drives it must bring packets to the outside address back to it.
type NAT struct {
	Outside netip.Addr

	Unknown  int64 // packets from outside that no mapping explains
	nextPort uint16
	out      map[netip.AddrPort]netip.AddrPort // inside to outside
	in       map[netip.AddrPort]netip.AddrPort
	packet   tcpPacket
}

// NewNAT returns a NAT with the given outside address, whose ports it gives out from firstPort up.
func NewNAT(outside netip.Addr, firstPort uint16) *NAT {
	n := &NAT{nextPort: firstPort}
	n.Rebind(outside)
	return n
}

// Rebind forgets all mappings and uses an outside address, the same or another, from now on.
func (n *NAT) Rebind(outside netip.Addr) {
	n.Outside = outside
	n.out, n.in = map[netip.AddrPort]netip.AddrPort{}, map[netip.AddrPort]netip.AddrPort{}
}

// Process translates.
func (n *NAT) Process(_ clock.Time, dir Direction, p *link.Packet, out Outlet) {
	if p.To.IsValid() {
		n.datagram(dir, p, out)
		return
	}
	t := &n.packet
	if !t.parse(p) {
		out.Drop(p)
		return
	}
	if dir == Forward {
		to := n.outside(netip.AddrPortFrom(t.ip.Src, t.seg.SrcPort))
		t.ip.Src, t.seg.SrcPort = to.Addr(), to.Port()
	} else {
		to, ok := n.in[netip.AddrPortFrom(t.ip.Dst, t.seg.DstPort)]
		if !ok {
			n.Unknown++
			out.Drop(p)
			return
		}
		t.ip.Dst, t.seg.DstPort = to.Addr(), to.Port()
	}
	readdress(p, t)
	out.Pass(p)
}

// datagram translates the addresses around a datagram.
func (n *NAT) datagram(dir Direction, p *link.Packet, out Outlet) {
	if dir == Forward {
		p.From = n.outside(p.From)
	} else {
		to, ok := n.in[p.To]
		if !ok {
			n.Unknown++
			out.Drop(p)
			return
		}
		p.To = to
	}
	out.Pass(p)
}

// outside returns the mapping of an inside address and port, a new one if need be.
func (n *NAT) outside(inside netip.AddrPort) netip.AddrPort {
	o, ok := n.out[inside]
	if !ok {
		o = netip.AddrPortFrom(n.Outside, n.nextPort)
		n.nextPort++
		n.out[inside], n.in[o] = o, inside
	}
	return o
}

// readdress writes the addresses and ports of t into p and leaves every other bit as it is.
func readdress(p *link.Packet, t *tcpPacket) {
	ip := wire.AppendIPHeader(p.Data[:0:len(p.Data)], &t.ip, len(t.ip.Payload))
	tcp := p.Data[len(ip):]
	tcp[0], tcp[1] = byte(t.seg.SrcPort>>8), byte(t.seg.SrcPort)
	tcp[2], tcp[3] = byte(t.seg.DstPort>>8), byte(t.seg.DstPort)
	pseudo := wire.PseudoSum(t.ip.Src, t.ip.Dst, wire.ProtoTCP)
	wire.SetTCPChecksum(tcp[:len(tcp)-len(t.seg.Payload)], len(t.seg.Payload), pseudo, wire.Sum(0).Add(t.seg.Payload))
}

// SmallMTU is a Box in front of a link that takes packets of up to MTU bytes only. It drops larger ones and says so with ICMP (RFC 1191),
// unless Silent: then it is a black hole.
type SmallMTU struct {
	MTU    int
	Silent bool
	Drops  int64
}

// Process drops what is too large.
func (b *SmallMTU) Process(_ clock.Time, _ Direction, p *link.Packet, out Outlet) {
	if p.Size <= b.MTU {
		out.Pass(p)
		return
	}
	b.Drops++
	if !b.Silent && !p.To.IsValid() && p.Data[0]>>4 == 4 {
		out.Back(p, b.report(p, out))
	}
	out.Drop(p)
}

// report makes the ICMP message "fragmentation needed and DF set", which quotes the packet's IP header and 8 bytes more.
func (b *SmallMTU) report(p *link.Packet, out Outlet) *link.Packet {
	quote := p.Data[:int(p.Data[0]&15)*4+8]
	q := out.New(p)
	ip := wire.IP{Src: netip.AddrFrom4([4]byte(p.Data[16:20])), Dst: netip.AddrFrom4([4]byte(p.Data[12:16])), Proto: wire.ProtoICMPv4}
	q.Data = wire.AppendIPHeader(q.Data, &ip, 8+len(quote))
	at := len(q.Data)
	q.Header = at
	q.Data = append(q.Data, 3, 4, 0, 0, 0, 0, byte(b.MTU>>8), byte(b.MTU))
	q.Data = append(q.Data, quote...)
	sum := wire.Sum(0).Add(q.Data[at:]).Checksum()
	q.Data[at+2], q.Data[at+3] = byte(sum>>8), byte(sum)
	q.Size = len(q.Data)
	return q
}
