package hostile

import (
	"encoding/binary"
	"net/netip"

	"braid/wire"
)

var be = binary.BigEndian

const (
	flagFIN = 1 << iota
	flagSYN
	flagRST
	flagPSH
	flagACK
)

// Forge makes a packet of a kind; false if that needs something that was not seen yet. Its Data is good until the next call.
func (a *Attacker) Forge(k Kind) (Packet, bool) {
	switch k {
	case Replay, Astray:
		return a.repeat(k == Astray)
	case Truncated:
		return a.truncate()
	case Flipped:
		return a.flip()
	case Garbage:
		return a.garbage()
	case Noise, Blind, BlindICMP:
		return a.blind(k)
	case WindowReset, WindowSYN, BadAck:
		return a.inWindow(k)
	case SYNFlood, ThirdPacket, JoinFlood:
		return a.stranger(k)
	case JoinReplay:
		return a.replayJoin()
	case Altered:
		return a.alter()
	}
	panic("hostile: " + k.String())
}

// repeat returns what was seen, as it was or sent somewhere else.
func (a *Attacker) repeat(astray bool) (Packet, bool) {
	s, ok := a.seen()
	if !ok {
		return Packet{}, false
	}
	p := Packet{s.To, s.From, append(a.buf[:0], s.Data...)}
	if astray {
		if a.udp && a.rng.IntN(2) == 0 {
			p.From = a.anywhere(p.From.Addr())
		} else if other, ok := a.seen(); ok {
			p.To = other.To
		}
	}
	return p, true
}

// truncate cuts a packet. Over UDP the datagram's own checksum guards its length; what is left there is too short for a segment.
func (a *Attacker) truncate() (Packet, bool) {
	p, ok := a.repeat(false)
	if !ok {
		return p, false
	}
	n := len(p.Data)
	if a.udp {
		n = min(n, shimMin+tcpMin)
	}
	p.Data = p.Data[:a.rng.IntN(n)]
	if a.rng.IntN(2) == 0 && !a.udp && len(p.Data) > 40 { // by somebody who mends the length in front at least
		mendIP(p.Data)
	}
	if _, ok := a.tcp(p.Data); ok && !a.udp && a.checks(p.Data) {
		return p, false // what was cut was zero
	}
	return p, true
}

// flip changes bits so that a checksum tells. Over UDP that is the datagram's, which no Stack ever sees: there it is the tag that changes.
func (a *Attacker) flip() (Packet, bool) {
	p, ok := a.repeat(false)
	if !ok || len(p.Data) < shimMin {
		return p, false
	}
	if a.udp {
		p.Data[4+a.rng.IntN(4)] ^= 1 << a.rng.IntN(8)
		return p, p.Data[1]&0x80 == 0 // with the other's tag beside it, it would not be damage but knowledge
	}
	for n := 1 + a.rng.IntN(3); n > 0; n-- {
		p.Data[a.rng.IntN(len(p.Data))] ^= 1 << a.rng.IntN(8)
	}
	for t, ok := a.tcp(p.Data); ok && a.checks(p.Data); t, ok = a.tcp(p.Data) {
		p.Data[t+a.rng.IntN(len(p.Data)-t)] ^= 1 << a.rng.IntN(8)
	}
	return p, true
}

// checks reports whether a TCP packet's checksums are right.
func (a *Attacker) checks(b []byte) bool {
	var ip wire.IP
	return wire.ParseIP(b, &ip) == nil && wire.TCPChecksumOK(ip.Payload, wire.PseudoSum(ip.Src, ip.Dst, wire.ProtoTCP))
}

// garbage is random all over.
func (a *Attacker) garbage() (Packet, bool) {
	s, ok := a.seen()
	if !ok {
		return Packet{}, false
	}
	b := a.buf[:a.rng.IntN(200)]
	a.fill(b)
	if len(b) > 0 && a.rng.IntN(2) == 0 {
		b[0] = []byte{0x45, 0x60, 0x10, 0x11, 0x12, 0x00}[a.rng.IntN(6)]
	}
	return Packet{s.To, s.From, b}, true
}

// blind is what somebody sends who knows a connection's addresses and ports, and over UDP perhaps its tag.
func (a *Attacker) blind(k Kind) (Packet, bool) {
	f, ok := a.flow()
	if !ok {
		return Packet{}, false
	}
	p := Packet{To: f.head.To, From: f.head.From}
	b := append(a.buf[:0], f.head.Data...)
	t, _ := a.tcp(b)
	if a.udp && a.rng.IntN(2) == 0 {
		a.fill(b[4:8])
	}
	switch k {
	case Noise:
		b = b[:t+4+tcpMin+a.rng.IntN(100)]
		a.fill(b[t+4:])
	default:
		b = a.segment(b[:t+4], t, a.rng.Uint32(), a.rng.Uint32(), byte(a.rng.IntN(64)))
	}
	a.spare(b, t, p.To)
	a.mend(b, t)
	if k == BlindICMP {
		if a.udp {
			return p, false // ICMP stays with the socket
		}
		b = a.icmp(b, t)
	}
	p.Data = b
	return p, true
}

// spare leaves out what would be no guess: a SYN without ACK for somebody who may be opening the connection, and over UDP the tag of who opens it, which its
// listener knows it by.
func (a *Attacker) spare(b []byte, t, to int) {
	if b[t+13]&flagSYN != 0 && a.Dials != nil && a.Dials(to) {
		b[t+13] |= flagACK
	}
	if a.udp && b[1]&0x80 != 0 {
		a.fill(b[8:11])
		b[11] |= 1
	}
}

// segment appends sequence numbers, flags, random options and some payload to a packet that ends behind the ports.
func (a *Attacker) segment(b []byte, t int, seq, ack uint32, flags byte) []byte {
	b = be.AppendUint32(b, seq)
	b = be.AppendUint32(b, ack)
	b = append(b, 0, flags, byte(a.rng.IntN(256)), byte(a.rng.IntN(256)), 0, 0, 0, 0)
	b = a.options(b)
	b[t+12] = byte((len(b)-t)/4) << 4
	n := 0
	if a.rng.IntN(2) == 0 {
		n = a.rng.IntN(600)
	}
	end := len(b)
	b = b[:end+n]
	a.fill(b[end:])
	return b
}

// inWindow is a segment that lies in the window of the connection, well behind what is expected next. (What would be next by the time it
// arrives cannot lie that far.)
func (a *Attacker) inWindow(k Kind) (Packet, bool) {
	f, ok := a.flow()
	if !ok {
		return Packet{}, false
	}
	b := append(a.buf[:0], f.head.Data...)
	t, _ := a.tcp(b)
	off := len(b) - t
	be.PutUint32(b[t+4:], f.end+a.Window/2+a.rng.Uint32N(a.Window/2))
	a.fill(b[t+8 : t+12]) // whoever knew what to acknowledge would know all
	switch k {
	case WindowReset:
		b[t+13] = flagRST | byte(a.rng.IntN(2))*flagACK
	case WindowSYN:
		b[t+13] = flagSYN | byte(a.rng.IntN(2))*flagACK
	case BadAck:
		b[t+13] = flagACK | byte(a.rng.IntN(2))*flagFIN
		be.PutUint32(b[t+8:], be.Uint32(f.head.Data[t+8:])+jump/2+a.rng.Uint32N(2*jump))
		n := a.rng.IntN(1000)
		b = b[:t+off+n]
		a.fill(b[t+off:])
	}
	a.spare(b, t, f.head.To)
	a.mend(b, t)
	return Packet{f.head.To, f.head.From, b}, true
}

// stranger is a handshake packet from an address that nobody has.
func (a *Attacker) stranger(k Kind) (Packet, bool) {
	f, ok := a.flow()
	if !ok || len(a.Ports) == 0 {
		return Packet{}, false
	}
	b := append(a.buf[:0], f.head.Data...)
	t, _ := a.tcp(b)
	p := Packet{To: f.head.To, From: f.head.From}
	b = a.disguise(b, &p, t)
	t = len(b) - 4
	be.PutUint16(b[t:], uint16(1024+a.rng.IntN(64512)))
	be.PutUint16(b[t+2:], a.Ports[a.rng.IntN(len(a.Ports))])
	flags := byte(flagSYN)
	if k == ThirdPacket {
		flags = flagACK
	}
	b = be.AppendUint32(b, a.rng.Uint32())
	b = be.AppendUint32(b, a.rng.Uint32())
	b = append(b, 0, flags, 0xff, 0xff, 0, 0, 0, 0)
	b = append(b, 2, 4, 5, 0xb4, 4, 2, 8, 10)
	b = be.AppendUint32(b, a.rng.Uint32())
	b = append(b, 0, 0, 0, 0, 1, 3, 3, byte(a.rng.IntN(16)))
	switch {
	case k == JoinFlood:
		b = append(b, 30, 12, 0x10, byte(a.rng.IntN(256)))
		b = be.AppendUint64(b, a.rng.Uint64())
	case k == ThirdPacket:
		b = b[:t+tcpMin] // the keys need the room
		b = append(b, 30, 20, 0x01, 0x01)
		b = be.AppendUint64(b, a.rng.Uint64())
		b = be.AppendUint64(b, a.rng.Uint64())
	case a.rng.IntN(3) > 0:
		b = append(b, 30, 4, 0x01, 0x01)
	}
	b[t+12] = byte((len(b)-t)/4) << 4
	a.mend(b, t)
	p.Data = b
	return p, true
}

// disguise leaves of a packet what stands in front of its sequence number and gives it another sender.
func (a *Attacker) disguise(b []byte, p *Packet, t int) []byte {
	switch {
	case a.udp:
		p.From = a.anywhere(p.From.Addr())
		ports := [4]byte(b[t : t+4])
		b = append(b[:0], 1<<4, 0x80, 40, 0, 0, 0, 0, 0) // a first SYN's: no tag yet, room for the answer
		b = be.AppendUint32(b, a.rng.Uint32()|1)
		b = append(b, make([]byte, 40)...)
		return append(b, ports[:]...)
	case t == 20:
		a.fill(b[13:16])
	default:
		a.fill(b[16:24])
	}
	return b[:t+4]
}

// replayJoin repeats the SYN of a join that was seen with other nonces, from another port and mostly another address.
func (a *Attacker) replayJoin() (Packet, bool) {
	if len(a.joins) == 0 {
		return Packet{}, false
	}
	j := &a.joins[a.rng.IntN(len(a.joins))]
	b := append(a.buf[:0], j.data...)
	t, _ := a.tcp(b)
	p := Packet{To: j.to, From: j.from}
	rest := append([]byte(nil), b[t+4:]...)
	if a.rng.IntN(4) > 0 || a.udp {
		b = a.disguise(b, &p, t)
		t = len(b) - 4
	}
	copy(b[t+2:t+4], j.data[len(j.data)-len(rest)-2:])
	b = append(b[:t+4], rest...)
	be.PutUint16(b[t:], uint16(1024+a.rng.IntN(64512)))
	a.fill(b[t+4 : t+8])
	a.mend(b, t)
	p.Data = b
	return p, true
}

// joinToken reads the token of an MP_JOIN SYN.
func joinToken(tcp []byte) (token [4]byte, ok bool) {
	if tcp[13]&(flagSYN|flagACK) != flagSYN {
		return token, false
	}
	for o := tcp[tcpMin : int(tcp[12]>>4)*4]; len(o) > 1; {
		switch n := int(o[1]); {
		case o[0] == 1:
			o = o[1:]
		case o[0] == 0 || n < 2 || n > len(o):
			return token, false
		case o[0] == 30 && n == 12 && o[2]>>4 == 1:
			return [4]byte(o[4:8]), true
		default:
			o = o[n:]
		}
	}
	return token, false
}

// anywhere is an outer address of the same family that nobody has.
func (a *Attacker) anywhere(like netip.Addr) netip.AddrPort {
	b := like.As16()
	a.fill(b[13:])
	addr := netip.AddrFrom16(b)
	if like.Is4() {
		addr = addr.Unmap()
	}
	return netip.AddrPortFrom(addr, uint16(1024+a.rng.IntN(64512)))
}

// icmp makes an ICMP error for the receiver of a packet, about one that it may have sent: the packet's head with the ends swapped.
func (a *Attacker) icmp(b []byte, t int) []byte {
	var ip wire.IP
	if wire.ParseIP(b, &ip) != nil {
		return b
	}
	quote := swapEnds(append([]byte(nil), b[:t+8]...), t)
	kind, code := byte(3), byte(a.rng.IntN(16))
	ip.Proto = wire.ProtoICMPv4
	if t == 40 {
		kind, code, ip.Proto = byte(1+a.rng.IntN(4)), byte(a.rng.IntN(8)), wire.ProtoICMPv6
	}
	out := wire.AppendIPHeader(a.buf[:0], &wire.IP{Src: ip.Src, Dst: ip.Dst, Proto: ip.Proto}, 8+len(quote))
	at := len(out)
	out = append(out, kind, code, 0, 0)
	out = be.AppendUint32(out, a.rng.Uint32N(1500))
	out = append(out, quote...)
	sum := wire.Sum(0)
	if t == 40 {
		sum = wire.PseudoSum(ip.Src, ip.Dst, ip.Proto).Add32(uint32(len(out) - at))
	}
	be.PutUint16(out[at+2:], sum.Add(out[at:]).Checksum())
	return out
}

// swapEnds turns a packet's head into that of one in the other direction.
func swapEnds(b []byte, t int) []byte {
	at, n := 12, 4
	if t == 40 {
		at, n = 8, 16
	}
	for i := range n {
		b[at+i], b[at+n+i] = b[at+n+i], b[at+i]
	}
	b[t], b[t+1], b[t+2], b[t+3] = b[t+2], b[t+3], b[t], b[t+1]
	return b
}

// fill makes bytes random.
func (a *Attacker) fill(b []byte) {
	for len(b) >= 8 {
		be.PutUint64(b, a.rng.Uint64())
		b = b[8:]
	}
	for i, v := 0, a.rng.Uint64(); i < len(b); i++ {
		b[i] = byte(v >> (8 * i))
	}
}

// mend makes lengths and checksums of a packet with a TCP header at t right.
func (a *Attacker) mend(b []byte, t int) {
	if a.udp {
		return
	}
	mendIP(b)
	mendTCP(b, t)
}

// mendIP makes the length, and of IPv4 the checksum, of an IP header right.
func mendIP(b []byte) {
	if b[0]>>4 == 6 {
		be.PutUint16(b[4:], uint16(len(b)-40))
		return
	}
	be.PutUint16(b[2:], uint16(len(b)))
	b[10], b[11] = 0, 0
	be.PutUint16(b[10:], wire.Sum(0).Add(b[:20]).Checksum())
}

// mendTCP makes the TCP checksum right.
func mendTCP(b []byte, t int) {
	sum := wire.Sum(0).Add16(wire.ProtoTCP).Add16(uint16(len(b) - t))
	if t == 20 {
		sum = sum.Add(b[12:20])
	} else {
		sum = sum.Add(b[8:40])
	}
	b[t+16], b[t+17] = 0, 0
	be.PutUint16(b[t+16:], sum.Add(b[t:]).Checksum())
}
