package middlebox

import (
	"braid/clock"
	"braid/link"
	"braid/wire"
)

// Direction is which way a packet passes a middlebox. What Forward means is up to who puts the middlebox there.
type Direction uint8

// The directions.
const (
	Forward Direction = iota
	Reverse
)

// Box is a middlebox. It sees every packet before it enters a link, owns it, and passes on what it likes.
type Box interface {
	Process(now clock.Time, dir Direction, p *link.Packet, out Outlet)
}

// Timed is a Box that also acts at times of its own: its driver calls HandleTimeout, with the Outlet of the forward direction, when
// NextTimeout is reached, and asks again after every call of either method.
type Timed interface {
	Box
	NextTimeout() clock.Time
	HandleTimeout(now clock.Time, out Outlet)
}

// Outlet is where a Box puts packets: what its driver gives it.
type Outlet interface {
	Pass(p *link.Packet)             // sends a packet on: to the next box, then into the link
	Drop(p *link.Packet)             // gives up a packet
	New(p *link.Packet) *link.Packet // returns an empty packet that will take the same way as p
	Back(p, answer *link.Packet)     // sends answer, made with New(p), to the host that p came from, at once, if there is a way back
}

// tcpPacket is a TCP segment in an IP packet, taken apart.
type tcpPacket struct {
	ip  wire.IP
	seg wire.Segment
}

// parse takes p apart; false: it is no intact TCP segment in the clear (a UDP datagram, say), and middleboxes leave it alone.
func (t *tcpPacket) parse(p *link.Packet) bool {
	if p.To.IsValid() || p.Corrupted || wire.ParseIP(p.Data, &t.ip) != nil || t.ip.Proto != wire.ProtoTCP {
		return false
	}
	return wire.ParseTCP(t.ip.Payload, &t.seg) == nil
}

// fits reports whether write has room for the segment's options.
func (t *tcpPacket) fits() bool { return t.seg.OptionsLen() <= wire.MaxOptionsLen }

// write puts the packet together in q, with right checksums.
func (t *tcpPacket) write(q *link.Packet) {
	n := wire.TCPHeaderLen + t.seg.OptionsLen()
	q.Data = wire.AppendIPHeader(q.Data[:0], &t.ip, n+len(t.seg.Payload))
	q.Header = len(q.Data)
	q.Data = wire.AppendTCP(q.Data, &t.seg)
	header := q.Data[q.Header : q.Header+n]
	wire.SetTCPChecksum(header, len(t.seg.Payload), wire.PseudoSum(t.ip.Src, t.ip.Dst, wire.ProtoTCP), wire.Sum(0).Add(t.seg.Payload))
	q.Size = len(q.Data)
}

// flow is one direction of a TCP connection on the wire.
type flow struct {
	src, dst         [16]byte
	srcPort, dstPort uint16
}

func (t *tcpPacket) flow() flow {
	return flow{t.ip.Src.As16(), t.ip.Dst.As16(), t.seg.SrcPort, t.seg.DstPort}
}

// back is the other direction.
func (f flow) back() flow { return flow{f.dst, f.src, f.dstPort, f.srcPort} }
