package device

import (
	"bytes"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"braid/wire"
)

// segment returns a TCP packet with payload.
func segment(six bool, seq uint32, payload []byte, change func(*wire.Segment)) []byte {
	from, to := own4, kernel4.Addr()
	if six {
		from, to = own6, kernel6.Addr()
	}
	s := wire.Segment{SrcPort: 1, DstPort: 2, Seq: 0, Ack: 9, Flags: wire.ACK, Window: 77, Options: wire.OptTimestamps, TSVal: 3, TSEcr: 4}
	s.Seq = s.Seq.Add(int64(seq))
	if change != nil {
		change(&s)
	}
	ip := wire.IP{Src: from, Dst: to, Proto: wire.ProtoTCP, ID: uint16(seq)}
	b := wire.AppendIPHeader(nil, &ip, wire.TCPHeaderLen+s.OptionsLen()+len(payload))
	head := len(b)
	b = wire.AppendTCPHeader(b, &s)
	wire.SetTCPChecksum(b[head:], len(payload), wire.PseudoSum(from, to, wire.ProtoTCP), wire.Sum(0).Add(payload))
	return append(b, payload...)
}

// gather puts the vector together as the kernel would.
func gather(t *merger, vectors int) (b []byte) {
	for _, v := range t.txIov[1:vectors] {
		b = append(b, unsafe.Slice(v.Base, v.Len)...)
	}
	return b
}

// TestMerge: a row of segments is what one larger segment would be, and the virtio header tells how to cut it.
func TestMerge(t *testing.T) {
	for _, six := range []bool{false, true} {
		data := bytes.Repeat([]byte("0123456789abcdef"), 64)
		psh := func(s *wire.Segment) { s.Flags |= wire.PSH }
		var train []byte
		train = append(train, segment(six, 0, data[:400], nil)...)
		size := len(train)
		train = append(train, segment(six, 400, data[400:800], nil)...)
		train = append(train, segment(six, 800, data[800:], psh)...)
		m := &merger{segments: true}
		packets, consumed, vectors := m.merge(train, size)
		if packets != 3 || consumed != len(train) {
			t.Fatalf("IPv6 %v: merged %d packets, %d of %d bytes", six, packets, consumed, len(train))
		}
		got := gather(m, vectors)
		h := m.txHead
		completeChecksum(got[h.checksumFrom:], int(h.checksumPos))
		want := segment(six, 0, data, psh)
		if !bytes.Equal(got, want) {
			t.Errorf("IPv6 %v: got\n%s, want\n%s", six, wire.FormatPacket(got), wire.FormatPacket(want))
		}
		kind := uint8(unix.VIRTIO_NET_HDR_GSO_TCPV4)
		if six {
			kind = unix.VIRTIO_NET_HDR_GSO_TCPV6
		}
		if h.gsoType != kind || h.gsoSize != 400 || int(h.headerLen) != size-400 || h.flags != unix.VIRTIO_NET_HDR_F_NEEDS_CSUM {
			t.Errorf("%+v", h)
		}
	}
}

// TestMergeStops: what is not the same connection's next bytes with the same header is another packet.
func TestMergeStops(t *testing.T) {
	data := make([]byte, 400)
	with := func(change func(*wire.Segment)) []byte { return segment(false, 400, data, change) }
	ecn := with(nil)
	ecn[1] = 3
	sum := wire.Sum(0).Add(ecn[:10]).Add(ecn[12:20]).Checksum()
	ecn[10], ecn[11] = byte(sum>>8), byte(sum)
	for _, tc := range []struct {
		name   string
		second []byte
		want   int
	}{
		{"next", with(nil), 2},
		{"shorter", segment(false, 400, data[:100], nil), 2},
		{"gap", segment(false, 401, data, nil), 1},
		{"repeated", segment(false, 0, data, nil), 1},
		{"another port", with(func(s *wire.Segment) { s.DstPort = 3 }), 1},
		{"another acknowledgement", with(func(s *wire.Segment) { s.Ack = 10 }), 1},
		{"another window", with(func(s *wire.Segment) { s.Window = 78 }), 1},
		{"another timestamp", with(func(s *wire.Segment) { s.TSVal = 4 }), 1},
		{"other options", with(func(s *wire.Segment) { s.Options = 0 }), 1},
		{"FIN", with(func(s *wire.Segment) { s.Flags |= wire.FIN }), 1},
		{"congestion experienced", ecn, 1},
		{"IPv6", segment(true, 400, data, nil), 1},
		{"no payload", segment(false, 400, nil, nil), 1},
		{"rubbish", []byte{4 << 4}, 1},
	} {
		first := segment(false, 0, data, nil)
		second := tc.second
		if len(second) > len(first) {
			second = second[:len(first)]
		}
		m := &merger{segments: true}
		packets, consumed, _ := m.merge(append(bytes.Clone(first), second...), len(first))
		want := len(first)
		if tc.want == 2 {
			want += len(second)
		}
		if packets != tc.want || consumed != want {
			t.Errorf("%s: merged %d packets, %d bytes", tc.name, packets, consumed)
		}
	}
	first := segment(false, 0, data, func(s *wire.Segment) { s.Flags |= wire.PSH })
	if packets, _, _ := (&merger{segments: true}).merge(append(bytes.Clone(first), with(nil)...), len(first)); packets != 1 {
		t.Error("merged behind a PSH")
	}
	if packets, _, _ := new(merger).merge(append(segment(false, 0, data, nil), with(nil)...), len(first)); packets != 1 {
		t.Error("merged without offload")
	}
}

// TestMergeBounds: no merged packet is longer than IP allows.
func TestMergeBounds(t *testing.T) {
	data := make([]byte, 1400)
	var train []byte
	size := 0
	for i := range 60 {
		train = append(train, segment(false, uint32(1400*i), data, nil)...)
		if i == 0 {
			size = len(train)
		}
	}
	m := &merger{segments: true}
	packets, _, vectors := m.merge(train, size)
	if got := gather(m, vectors); packets != 46 || len(got) != 52+46*1400 {
		t.Errorf("%d packets, %d bytes", packets, len(got))
	}
}

// FuzzMerge feeds rubbish: whatever it is, the packets are all there.
func FuzzMerge(f *testing.F) {
	row := append(segment(false, 0, []byte("abcd"), nil), segment(false, 4, []byte("ef"), nil)...)
	f.Add(row, 56)
	f.Add(append(segment(true, 0, []byte("abcd"), nil), segment(true, 4, []byte("ef"), nil)...), 76)
	f.Fuzz(func(t *testing.T, train []byte, size int) {
		if size < 1 || len(train) == 0 {
			return
		}
		m := &merger{segments: true}
		packets, consumed, vectors := m.merge(train, size)
		if consumed < 1 || consumed > len(train) || packets < 1 || packets == 1 && consumed != min(size, len(train)) {
			t.Fatalf("%d packets, %d of %d bytes", packets, consumed, len(train))
		}
		if packets > 1 {
			var ip wire.IP
			if err := wire.ParseIP(gather(m, vectors), &ip); err != nil {
				t.Fatal(err)
			}
		}
	})
}
