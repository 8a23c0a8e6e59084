package trace

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"

	"braid/clock"
)

// Direction says which way a captured packet went, seen from its interface.
type Direction uint8

// The directions.
const (
	Unknown Direction = iota
	Inbound
	Outbound
)

// Packet is one packet for a capture.
type Packet struct {
	Interface int // what AddInterface returned
	Time      clock.Time
	Data      []byte // from the IP header on
	Length    int    // of the packet on the wire if Data was cut short; 0: len(Data)
	Direction Direction
	Comment   string // shown by Wireshark; "" for none
}

// PcapWriter writes a pcapng capture (draft-ietf-opsawg-pcapng): raw IP packets with nanosecond times on named
// interfaces. It buffers; after a failed write it writes nothing more, and Flush and Close say what
// failed.
type PcapWriter struct {
	buf        *bufio.Writer
	out        io.Writer
	epoch      int64
	interfaces int
	block      []byte // the block under construction, used again
	datagram   []byte // the packet around a UDP datagram, used again
}

// Block types and option codes of pcapng.
const (
	blockSection   = 0x0a0d0d0a
	blockInterface = 1
	blockPacket    = 6

	byteOrderMagic = 0x1a2b3c4d
	linkTypeRaw    = 101 // packets start with an IPv4 or IPv6 header

	optEnd        = 0
	optComment    = 1
	optUserAppl   = 4 // of a section
	optIfName     = 2 // of an interface
	optIfTSResol  = 9
	optPacketFlag = 2 // of a packet
)

// NewPcapWriter returns a PcapWriter to w. epoch is when clock.Time 0 was, in nanoseconds since 1970 (UTC);
// simulations take 0.
func NewPcapWriter(w io.Writer, epoch int64) *PcapWriter {
	p := &PcapWriter{buf: bufio.NewWriterSize(w, 1<<16), out: w, epoch: epoch}
	le := binary.LittleEndian
	p.begin(blockSection)
	p.block = le.AppendUint32(p.block, byteOrderMagic)
	p.block = le.AppendUint16(p.block, 1) // version 1.0
	p.block = le.AppendUint16(p.block, 0)
	p.block = le.AppendUint64(p.block, ^uint64(0)) // section length: not known
	p.option(optUserAppl, "braid")
	p.option(optEnd, "")
	p.end()
	return p
}

// AddInterface adds an interface, one per link say, and returns its number for Packet.Interface. It may be called
// between packets.
func (p *PcapWriter) AddInterface(name string) int {
	le := binary.LittleEndian
	p.begin(blockInterface)
	p.block = le.AppendUint16(p.block, linkTypeRaw)
	p.block = le.AppendUint16(p.block, 0)
	p.block = le.AppendUint32(p.block, 0) // snapshot length: no limit
	p.option(optIfName, name)
	p.option(optIfTSResol, "\x09") // 10^-9 s
	p.option(optEnd, "")
	p.end()
	p.interfaces++
	return p.interfaces - 1
}

// WritePacket adds a packet. Errors of the writer show at Flush and Close; it panics if the interface was
// not added.
func (p *PcapWriter) WritePacket(k *Packet) {
	if k.Interface < 0 || k.Interface >= p.interfaces {
		panic(fmt.Sprintf("trace: packet on interface %d of %d", k.Interface, p.interfaces))
	}
	le := binary.LittleEndian
	at := uint64(int64(k.Time) + p.epoch)
	p.begin(blockPacket)
	p.block = le.AppendUint32(p.block, uint32(k.Interface))
	p.block = le.AppendUint32(p.block, uint32(at>>32))
	p.block = le.AppendUint32(p.block, uint32(at))
	p.block = le.AppendUint32(p.block, uint32(len(k.Data)))
	p.block = le.AppendUint32(p.block, uint32(max(k.Length, len(k.Data))))
	p.block = append(p.block, k.Data...)
	p.pad()
	if k.Direction != Unknown {
		p.option(optPacketFlag, string([]byte{uint8(k.Direction), 0, 0, 0}))
	}
	if k.Comment != "" {
		p.option(optComment, k.Comment)
	}
	if k.Direction != Unknown || k.Comment != "" {
		p.option(optEnd, "")
	}
	p.end()
}

// WriteDatagram adds a UDP datagram of which only the payload was seen (k.Data): IP and UDP headers from and to
// the given addresses, of one family, are put in front, with checksums. k.Length counts them if not 0.
func (p *PcapWriter) WriteDatagram(k *Packet, src, dst netip.AddrPort) {
	p.datagram = appendDatagram(p.datagram[:0], src, dst, k.Data)
	whole := *k
	whole.Data = p.datagram
	p.WritePacket(&whole)
}

// Flush writes out what is buffered. It returns the first error of any write since the start.
func (p *PcapWriter) Flush() error { return p.buf.Flush() }

// Close flushes and, if the writer beneath is an io.Closer, closes it.
func (p *PcapWriter) Close() error { return closeAfter(p.buf.Flush(), p.out) }

// begin starts a block; its length is filled in by end.
func (p *PcapWriter) begin(blockType uint32) {
	p.block = binary.LittleEndian.AppendUint32(p.block[:0], blockType)
	p.block = append(p.block, 0, 0, 0, 0)
}

// option appends an option to the block; optEnd, without a value, ends them.
func (p *PcapWriter) option(code uint16, value string) {
	value = value[:min(len(value), 0xffff)]
	p.block = binary.LittleEndian.AppendUint16(p.block, code)
	p.block = binary.LittleEndian.AppendUint16(p.block, uint16(len(value)))
	p.block = append(p.block, value...)
	p.pad()
}

// pad fills the block up to a multiple of 4.
func (p *PcapWriter) pad() {
	for len(p.block)%4 != 0 {
		p.block = append(p.block, 0)
	}
}

// end completes the block with its length, which stands on both ends, and writes it.
func (p *PcapWriter) end() {
	n := uint32(len(p.block) + 4)
	p.block = binary.LittleEndian.AppendUint32(p.block, n)
	binary.LittleEndian.PutUint32(p.block[4:], n)
	p.buf.Write(p.block) // keeps its first error and returns it from then on
}

// appendDatagram appends an IP packet with a UDP datagram.
func appendDatagram(b []byte, src, dst netip.AddrPort, payload []byte) []byte {
	const udp = 17
	be := binary.BigEndian
	from, to := src.Addr().Unmap(), dst.Addr().Unmap()
	n := 8 + len(payload)
	if from.Is4() != to.Is4() || !from.IsValid() || !to.IsValid() || n+20 > 0xffff {
		panic(fmt.Sprintf("trace: datagram of %d bytes from %v to %v", len(payload), src, dst))
	}
	ip := len(b)
	if from.Is4() {
		b = append(b, 4<<4|5, 0)
		b = be.AppendUint16(b, uint16(20+n))
		b = append(b, 0, 0, 0x40, 0, 64, udp, 0, 0)
	} else {
		b = append(b, 6<<4, 0, 0, 0)
		b = be.AppendUint16(b, uint16(n))
		b = append(b, udp, 64)
	}
	addrs := len(b)
	b = append(append(b, from.AsSlice()...), to.AsSlice()...)
	pseudo := onesSum(uint32(udp+n), b[addrs:])
	if from.Is4() {
		be.PutUint16(b[ip+10:], ^uint16(onesSum(0, b[ip:])))
	}
	u := len(b)
	b = be.AppendUint16(b, src.Port())
	b = be.AppendUint16(b, dst.Port())
	b = be.AppendUint16(b, uint16(n))
	b = append(b, 0, 0)
	b = append(b, payload...)
	check := ^uint16(onesSum(pseudo, b[u:]))
	if check == 0 {
		check = 0xffff // 0 would say that there is none (RFC 768)
	}
	be.PutUint16(b[u+6:], check)
	return b
}

// onesSum adds the 16-bit words of b to a one's complement sum (RFC 1071).
func onesSum(s uint32, b []byte) uint32 {
	for ; len(b) >= 2; b = b[2:] {
		s += uint32(b[0])<<8 | uint32(b[1])
		s = s>>16 + s&0xffff
	}
	if len(b) == 1 {
		s += uint32(b[0]) << 8
	}
	s = s>>16 + s&0xffff
	return s>>16 + s&0xffff
}
