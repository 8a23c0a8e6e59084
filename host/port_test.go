package host

import (
	"net/netip"
	"slices"
	"testing"

	"braid/device"
	"braid/mptcp"
	"braid/wire"
)

// recorder is a device that remembers the trains written to it.
type recorder struct {
	device.Device
	trains []string // sizes of the packets of each train, one letter for each 100 bytes
	err    error
}

func (r *recorder) Write(t device.Train) error {
	row := t.To.Addr().String() + ":"
	for n := len(t.Data); n > 0; n -= t.Size {
		row += string(rune('a' + min(n, t.Size)/100))
	}
	r.trains = append(r.trains, row)
	return r.err
}

func TestTrains(t *testing.T) {
	x, y := netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.2:1")
	type packet struct {
		size int
		to   netip.AddrPort
	}
	tests := []struct {
		name    string
		packets []packet
		want    []string
	}{
		{"nothing", nil, nil},
		{"equal packets are one train", []packet{{300, x}, {300, x}, {300, x}}, []string{"10.0.0.1:ddd"}},
		{"a shorter one ends it", []packet{{300, x}, {300, x}, {100, x}, {300, x}}, []string{"10.0.0.1:ddb", "10.0.0.1:d"}},
		{"so does a second short one", []packet{{300, x}, {100, x}, {100, x}}, []string{"10.0.0.1:db", "10.0.0.1:b"}},
		{"a longer one begins another", []packet{{100, x}, {100, x}, {300, x}, {300, x}}, []string{"10.0.0.1:bb", "10.0.0.1:dd"}},
		{"another destination too", []packet{{300, x}, {300, y}, {300, y}, {300, x}}, []string{"10.0.0.1:d", "10.0.0.2:dd", "10.0.0.1:d"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dev := &recorder{}
			p := newPort(dev, 1500)
			for _, pkt := range tt.packets {
				if len(p.space()) < 1500 {
					t.Fatalf("room for %d bytes only", len(p.space()))
				}
				p.put(pkt.size, pkt.to)
			}
			p.reset()
			if !slices.Equal(dev.trains, tt.want) {
				t.Errorf("trains %v, want %v", dev.trains, tt.want)
			}
		})
	}
}

// A train never grows beyond what one system call takes, and the buffer always has room for one more packet.
func TestTrainsAreBounded(t *testing.T) {
	dev := &recorder{}
	p := newPort(dev, 1500)
	to := netip.MustParseAddrPort("10.0.0.1:1")
	for range 200 {
		if len(p.space()) < 1500 {
			t.Fatalf("room for %d bytes only", len(p.space()))
		}
		p.put(1472, to)
	}
	p.reset()
	total := 0
	for _, row := range dev.trains {
		n := len(row) - len("10.0.0.1:")
		if n*1472 > device.MaxTrain {
			t.Errorf("a train of %d packets", n)
		}
		total += n
	}
	if total != 200 {
		t.Errorf("%d packets sent, want 200", total)
	}
}

func TestFailureOfADeviceIsKept(t *testing.T) {
	to := netip.MustParseAddrPort("10.0.0.1:1")
	dev := &recorder{err: device.ErrTooLarge}
	p := newPort(dev, 1500)
	p.put(100, to)
	p.reset()
	if p.err != nil {
		t.Errorf("a packet that was too large ended the device: %v", p.err)
	}
	dev.err = &device.GoneError{Name: "wlan0"}
	for range 2 {
		p.put(100, to)
		p.reset()
	}
	if p.err == nil || len(dev.trains) != 2 {
		t.Errorf("error %v after %d writes, want one write after which nothing is tried", p.err, len(dev.trains))
	}
}

// TestPathOf: over a device with several addresses, a packet belongs to the path whose address it was sent to.
func TestPathOf(t *testing.T) {
	p := newPort(&recorder{}, 1500)
	p.add(3, netip.MustParseAddr("10.0.0.2"))
	p.add(5, netip.MustParseAddr("10.0.0.3"))
	p.add(6, netip.MustParseAddr("fd00::2"))
	to := func(dst string) []byte {
		ip := wire.IP{Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr(dst), Proto: wire.ProtoTCP}
		if ip.Dst.Is6() {
			ip.Src = netip.MustParseAddr("fd00::1")
		}
		return wire.AppendIPHeader(nil, &ip, 0)
	}
	for _, tc := range []struct {
		packet []byte
		want   mptcp.PathID
	}{
		{to("10.0.0.2"), 3}, {to("10.0.0.3"), 5}, {to("fd00::2"), 6},
		{to("10.0.0.9"), 3}, {[]byte{4 << 4}, 3}, {[]byte{6 << 4}, 3}, {nil, 3}, // the Stack counts what is wrong with them
	} {
		if got := p.pathOf(tc.packet); got != tc.want {
			t.Errorf("%x: path %d, want %d", tc.packet, got, tc.want)
		}
	}
	p.remove(3)
	p.remove(4)
	if got := p.pathOf(to("10.0.0.2")); got != 5 {
		t.Errorf("without path 3: %d", got)
	}
	p.remove(6)
	if got := p.pathOf(to("fd00::2")); got != 5 {
		t.Errorf("the last path takes all: %d", got)
	}
}
