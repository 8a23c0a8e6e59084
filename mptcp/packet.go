package mptcp

import (
	"net/netip"

	"braid/clock"
	"braid/tcp"
	"braid/wire"
)

// route is how the packets of one TCP connection travel: path, addresses, ports, envelope.
type route struct {
	path             PathID
	kind             PathKind
	srcPort, dstPort uint16         // inner TCP ports, ours and the peer's
	local, remote    netip.AddrPort // IP: of the packets. UDP: the path's address and the peer's outer address at the start
	pseudo           wire.Sum       // IP: of the pseudo-header, the same in both directions
	env              envelope
}

// tuple names a TCP connection: IP addresses (IPv4 ones in the first four bytes) and ports. It is small and plain, so that hashing and
// comparing it is cheap. On UDP paths it names a half-open connection by its outer address, its tag and the inner ports.
type tuple struct {
	src, dst [16]byte // the peer's and ours
	ports    uint32   // the peer's, ours
	extra    uint64   // IP: 0 for IPv4, 1 for IPv6. UDP: the peer's tag and outer port, and a mark
}

// tupleOf returns the tuple of a packet that src sent to dst.
func tupleOf(src, dst netip.Addr, srcPort, dstPort uint16) tuple {
	t := tuple{ports: uint32(srcPort)<<16 | uint32(dstPort)}
	if src.Is4() {
		a, b := src.As4(), dst.As4()
		copy(t.src[:], a[:])
		copy(t.dst[:], b[:])
		return t
	}
	t.src, t.dst, t.extra = src.As16(), dst.As16(), 1
	return t
}

// tupleOfDatagram names a half-open connection over a UDP path.
func tupleOfDatagram(from netip.AddrPort, peerTag uint32, srcPort, dstPort uint16) tuple {
	return tuple{
		src:   from.Addr().As16(),
		ports: uint32(srcPort)<<16 | uint32(dstPort),
		extra: 1<<63 | uint64(from.Port())<<32 | uint64(peerTag),
	}
}

// tuple returns the name under which packets of the peer arrive; for IP paths only.
func (r *route) tuple() tuple {
	return tupleOf(r.remote.Addr(), r.local.Addr(), r.dstPort, r.srcPort)
}

// overhead returns the bytes of a packet in front of the TCP header of a data segment, outer headers included.
func (r *route) overhead() int {
	n := wire.IPv4HeaderLen
	if r.remote.Addr().Is6() && !r.remote.Addr().Is4In6() {
		n = wire.IPv6HeaderLen
	}
	if r.kind == UDP {
		n += wire.UDPHeaderLen + wire.ShimLen
	}
	return n
}

// appendHead writes what stands in front of the TCP header of seg, whose options take olen bytes.
func (r *route) appendHead(b []byte, seg *wire.Segment, olen, payload int) []byte {
	if r.kind == UDP {
		shim := wire.Shim{Version: wire.ShimVersion, Tag: r.env.remoteTag}
		if seg.Flags&wire.SYN != 0 || r.env.tell {
			shim.HasSender, shim.SenderTag = true, r.env.localTag
		}
		if seg.Flags&(wire.SYN|wire.ACK) == wire.SYN {
			shim.Padding = synPadding(olen)
		}
		return wire.AppendShim(b, &shim)
	}
	ip := wire.IP{Src: r.local.Addr(), Dst: r.remote.Addr(), Proto: wire.ProtoTCP}
	return wire.AppendIPHeader(b, &ip, wire.TCPHeaderLen+olen+payload)
}

// packet returns where a packet of n bytes goes.
func (r *route) packet(n int) Packet {
	p := Packet{Path: r.path, Len: n}
	if r.kind == UDP {
		p.To = r.env.to
	}
	return p
}

// build writes the packet of segment seg of subflow sf to buf. The payload is out's: c.copyPayload delivers it, and with the
// checksum that it forms on the way the packet is complete after one pass over the bytes.
func (s *Stack) build(now clock.Time, sf *Subflow, seg *wire.Segment, out *tcp.Out, buf []byte) Packet {
	n, olen := out.Len, seg.OptionsLen()
	if sf.kind == UDP {
		sf.env.tell = (n == 0 || sf.watch.silent) && sf.unheard(now, sf.overhead()+wire.TCPHeaderLen+olen+n)
	}
	b := sf.appendHead(buf[:0], seg, olen, n)
	head := len(b)
	b = wire.AppendTCPHeader(b, seg)
	var sum wire.Sum
	if n > 0 {
		end := len(b)
		b = b[:end+n]
		sum = sf.conn.copyPayload(b[end:], out.Chunk.ID+out.Start-out.Chunk.Start, n)
	}
	if sf.kind == IP {
		wire.SetTCPChecksum(b[head:len(b)-n], n, sf.pseudo, sum)
	}
	return sf.packet(len(b))
}

// buildBare writes a segment without payload that belongs to no subflow of a connection.
func (r *route) buildBare(seg *wire.Segment, buf []byte) Packet {
	b := r.appendHead(buf[:0], seg, seg.OptionsLen(), 0)
	head := len(b)
	b = wire.AppendTCPHeader(b, seg)
	if r.kind == IP {
		wire.SetTCPChecksum(b[head:], 0, r.pseudo, 0)
	}
	return r.packet(len(b))
}

// HandlePacket takes one packet that arrived on a path: a whole IP packet, or the payload of a UDP datagram that from sent. b is not
// kept. What it brought shows in events; what it makes the Stack send, in PollPacket.
func (s *Stack) HandlePacket(now clock.Time, id PathID, from netip.AddrPort, b []byte) {
	s.counters.PacketsIn++
	s.counters.BytesIn += int64(len(b))
	p := s.livePath(id)
	switch {
	case p == nil:
		s.counters.DropNotOurs++
	case p.Kind == UDP:
		s.handleDatagram(now, p, from, b)
	default:
		s.handleIP(now, p, b)
	}
}

// handleIP takes an IP packet.
func (s *Stack) handleIP(now clock.Time, p *path, b []byte) {
	ip := &s.ip
	if err := wire.ParseIP(b, ip); err != nil {
		s.counters.DropMalformed++
		return
	}
	if p.local.IsValid() && ip.Dst != p.local {
		s.counters.DropNotOurs++
		return
	}
	switch ip.Proto {
	case wire.ProtoTCP:
	case wire.ProtoICMPv4, wire.ProtoICMPv6:
		s.handleICMP(now, ip)
		return
	default:
		s.counters.DropNotTCP++
		return
	}
	seg := &s.in
	if err := wire.ParseTCP(ip.Payload, seg); err != nil {
		s.counters.DropMalformed++
		return
	}
	key := tupleOf(ip.Src, ip.Dst, seg.SrcPort, seg.DstPort)
	sf := s.lastSubflow
	if sf == nil || key != s.lastTuple {
		if sf = s.tuples[key]; sf != nil {
			s.lastTuple, s.lastSubflow = key, sf
		}
	}
	var pseudo wire.Sum
	if sf != nil {
		pseudo = sf.pseudo
	} else {
		pseudo = wire.PseudoSum(ip.Src, ip.Dst, wire.ProtoTCP)
	}
	if !wire.TCPChecksumOK(ip.Payload, pseudo) {
		s.counters.DropChecksum++
		return
	}
	if sf != nil {
		s.deliver(now, sf, seg)
		return
	}
	s.handleUnknown(now, key, &route{
		path: p.id, srcPort: seg.DstPort, dstPort: seg.SrcPort, pseudo: pseudo,
		local: netip.AddrPortFrom(ip.Dst, seg.DstPort), remote: netip.AddrPortFrom(ip.Src, seg.SrcPort),
	}, len(b))
}

// handleUnknown takes a segment (s.in) that belongs to no subflow. size is the packet's, as far as the peer had to send it.
func (s *Stack) handleUnknown(now clock.Time, key tuple, r *route, size int) {
	seg := &s.in
	if rem := s.remnants.tuples[key]; rem != nil && !rem.handle(now, seg) {
		return
	}
	if h := s.halves[key]; h != nil {
		h.handle(now, seg, size)
		return
	}
	switch {
	case seg.Flags&(wire.SYN|wire.ACK|wire.RST) == wire.SYN:
		s.handleSYN(now, key, r, size)
	default:
		if h := s.fromCookie(now, key, r); h != nil {
			h.complete(now, seg)
			return
		}
		s.refuseCookieless(now, key, r)
	}
}
