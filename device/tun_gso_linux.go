package device

import (
	"bytes"
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"

	"braid/wire"
)

const (
	maxHeaders  = wire.IPv6HeaderLen + 60 // of a packet that is merged: no extension headers, a TCP header of any length
	maxMerged   = 64                      // packets of one that the kernel cuts
	maxIPPacket = 0xffff
)

// vnetHeader is struct virtio_net_hdr, which stands in front of every packet on the descriptor of a TUN device (IFF_VNET_HDR) or a packet
// socket (PACKET_VNET_HDR). Its fields are in the machine's byte order.
type vnetHeader struct {
	flags, gsoType            uint8
	headerLen, gsoSize        uint16
	checksumFrom, checksumPos uint16 // NEEDS_CSUM: sum from here on, to be put there
}

const vnetHeaderLen = int(unsafe.Sizeof(vnetHeader{}))

// finishPacket takes the virtio header and the link's header of the given length off what was read, and computes the checksum that the kernel
// has left to the device. It returns nil if that makes no sense.
func finishPacket(b []byte, link int) []byte {
	if len(b) <= vnetHeaderLen+link {
		return nil
	}
	h := (*vnetHeader)(unsafe.Pointer(&b[0]))
	packet := b[vnetHeaderLen+link:]
	if h.flags&unix.VIRTIO_NET_HDR_F_NEEDS_CSUM != 0 {
		from := int(h.checksumFrom) - link
		pos := from + int(h.checksumPos)
		if from < 0 || pos+2 > len(packet) {
			return nil
		}
		completeChecksum(packet[from:], pos-from)
	}
	return packet
}

// completeChecksum computes the Internet checksum (RFC 1071) of b, in whose field at pos the sum of the pseudo-header stands, and
// puts it there.
func completeChecksum(b []byte, pos int) {
	binary.BigEndian.PutUint16(b[pos:], wire.Sum(0).Add(b).Checksum())
}

// merger makes of a row of segments one packet that the kernel cuts into them again, or leaves whole where it can.
type merger struct {
	segments bool                      // rows of segments leave as one packet
	txIov    [2 + maxMerged]unix.Iovec // the virtio header, headers, payloads
	txHead   vnetHeader
	txMerged [maxHeaders]byte // header of a merged packet
}

func (m *merger) init() {
	m.txIov[0].Base = (*byte)(unsafe.Pointer(&m.txHead))
	m.txIov[0].SetLen(vnetHeaderLen)
}

// release lets go of the packets that the vector points to.
func (m *merger) release(vectors int) {
	for i := 1; i < vectors; i++ {
		m.txIov[i].Base = nil
	}
}

// tcpShape is what merging needs to know of a packet.
type tcpShape struct {
	ipLen  int // bytes of the IP header
	header int // ... and the TCP header
	seq    uint32
	psh    bool
}

// shapeOf reads a packet; false if it is not a plain TCP segment with payload.
func shapeOf(b []byte) (s tcpShape, ok bool) {
	switch {
	case len(b) > wire.IPv4HeaderLen && b[0] == 4<<4|wire.IPv4HeaderLen/4 && b[9] == wire.ProtoTCP:
		s.ipLen = wire.IPv4HeaderLen
	case len(b) > wire.IPv6HeaderLen && b[0]>>4 == 6 && b[6] == wire.ProtoTCP:
		s.ipLen = wire.IPv6HeaderLen
	default:
		return s, false
	}
	if len(b) <= s.ipLen+wire.TCPHeaderLen {
		return s, false
	}
	t := b[s.ipLen:]
	s.header = s.ipLen + int(t[12]>>4)*4
	s.seq = binary.BigEndian.Uint32(t[4:])
	s.psh = wire.Flags(t[13])&wire.PSH != 0
	return s, wire.Flags(t[13])&^wire.PSH == wire.ACK && s.header < len(b)
}

// follows reports whether b continues a: payload next to payload, and headers that differ only in what the kernel computes anew for each
// segment.
func follows(a, b []byte, s tcpShape) bool {
	var ipSame bool
	if s.ipLen == wire.IPv4HeaderLen { // all but length, ID and checksum
		ipSame = bytes.Equal(a[:2], b[:2]) && bytes.Equal(a[6:10], b[6:10]) && bytes.Equal(a[12:20], b[12:20])
	} else { // all but the length
		ipSame = bytes.Equal(a[:4], b[:4]) && bytes.Equal(a[6:40], b[6:40])
	}
	x, y := a[s.ipLen:s.header], b[s.ipLen:s.header]
	return ipSame && bytes.Equal(x[:4], y[:4]) && bytes.Equal(x[8:13], y[8:13]) && bytes.Equal(x[14:16], y[14:16]) && bytes.Equal(x[18:], y[18:])
}

// merge counts how many packets at the head of the train can leave as one that the kernel cuts into them again, and prepares the vector for it: the
// header of the first, made that of the whole, and the payloads where they stand. It returns the bytes of the train that this is; with one
// packet there is nothing to merge.
func (m *merger) merge(data []byte, size int) (packets, consumed, vectors int) {
	first := data[:min(size, len(data))]
	s, ok := shapeOf(first)
	if !m.segments || !ok || s.psh || s.header > maxHeaders {
		return 1, len(first), 0
	}
	payload := len(first) - s.header
	total := len(first)
	m.txIov[2].Base, vectors = &first[s.header], 3
	m.txIov[2].SetLen(payload)
	packets, consumed = 1, len(first)
	psh := false
	for packets < maxMerged && consumed < len(data) && !psh {
		b := data[consumed : consumed+min(size, len(data)-consumed)]
		next, ok := shapeOf(b)
		if !ok || next.header != s.header || next.seq != s.seq+uint32(packets*payload) || !follows(first, b, s) {
			break
		}
		n := len(b) - s.header
		if n > payload || total+n > maxIPPacket {
			break
		}
		m.txIov[vectors].Base = &b[s.header]
		m.txIov[vectors].SetLen(n)
		vectors++
		packets, consumed, total, psh = packets+1, consumed+len(b), total+n, next.psh
		if n < payload {
			break
		}
	}
	if packets > 1 {
		m.mergedHeader(first, s, payload, total, psh)
	}
	return packets, consumed, vectors
}

// mergedHeader makes the header of a merged packet of total bytes, and the virtio header that says how it is cut and where the checksum goes.
func (m *merger) mergedHeader(first []byte, s tcpShape, payload, total int, psh bool) {
	h := m.txMerged[:s.header]
	copy(h, first)
	be := binary.BigEndian
	kind := uint8(unix.VIRTIO_NET_HDR_GSO_TCPV6)
	var pseudo wire.Sum
	if s.ipLen == wire.IPv4HeaderLen {
		kind = unix.VIRTIO_NET_HDR_GSO_TCPV4
		be.PutUint16(h[2:], uint16(total))
		h[10], h[11] = 0, 0
		be.PutUint16(h[10:], wire.Sum(0).Add(h[:s.ipLen]).Checksum())
		pseudo = wire.Sum(0).Add(h[12:20])
	} else {
		be.PutUint16(h[4:], uint16(total-s.ipLen))
		pseudo = wire.Sum(0).Add(h[8:40])
	}
	tcp := h[s.ipLen:]
	if psh { // the kernel leaves it to the last segment
		tcp[13] |= byte(wire.PSH)
	}
	pseudo = pseudo.Add16(wire.ProtoTCP).Add16(uint16(total - s.ipLen))
	be.PutUint16(tcp[16:], ^pseudo.Checksum())
	m.txHead = vnetHeader{
		flags: unix.VIRTIO_NET_HDR_F_NEEDS_CSUM, gsoType: kind,
		headerLen: uint16(s.header), gsoSize: uint16(payload),
		checksumFrom: uint16(s.ipLen), checksumPos: 16,
	}
	m.txIov[1].Base = (*byte)(unsafe.Pointer(&m.txMerged))
	m.txIov[1].SetLen(s.header)
}
