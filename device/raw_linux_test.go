package device

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"braid/internal/netns"
	"braid/wire"
)

// cable is two machines joined by an Ethernet: a device of ours at own4 and own6 on one, the kernel at kernel4 and kernel6 on the other.
type cable struct {
	own, kernel *netns.Namespace
	hold        *Hold
}

func newCable(t *testing.T) *cable {
	t.Helper()
	c := &cable{own: netns.New(t), kernel: netns.New(t)}
	c.own.Veth(c.kernel, "veth0", own4.String()+"/24", kernel4.String())
	c.own.IP("address", "add", own6.String()+"/64", "dev", "veth0", "nodad")
	c.kernel.IP("address", "add", kernel6.String(), "dev", "veth0", "nodad")
	c.hold = hold(t, c.own, netip.AddrPortFrom(netip.IPv6Unspecified(), 7000))
	return c
}

func (c *cable) open(t *testing.T, cfg RawConfig) *Raw {
	t.Helper()
	var r *Raw
	cfg.Ports = []Ports{c.hold.Ports}
	c.own.Must(func() (err error) {
		r, err = OpenRaw(cfg)
		return err
	})
	t.Cleanup(func() { r.Close() })
	return r
}

// answer reads until a segment has come.
func answer(t *testing.T, r *Raw) (ip wire.IP, seg wire.Segment) {
	t.Helper()
	var b Batch
	if err := r.Read(&b); err != nil {
		t.Fatal(err)
	}
	if err := wire.ParseIP(b.Packets[0].Data, &ip); err != nil {
		t.Fatal(err)
	}
	if err := wire.ParseTCP(ip.Payload, &seg); err != nil {
		t.Fatal(err)
	}
	if !wire.TCPChecksumOK(ip.Payload, wire.PseudoSum(ip.Src, ip.Dst, wire.ProtoTCP)) {
		t.Error("the segment's checksum is not complete")
	}
	return ip, seg
}

// TestRawReachesTheKernel sends a SYN to a closed port of another machine's and wants its kernel's reset, over both families, with the device on an
// interface and at an address. Our machine's kernel resolves the neighbour, and does not answer the reset's segment.
func TestRawReachesTheKernel(t *testing.T) {
	for _, on := range []string{"veth0", ""} {
		c := newCable(t)
		for _, pair := range [][2]netip.Addr{{own4, kernel4.Addr()}, {own6, kernel6.Addr()}} {
			r := c.open(t, RawConfig{Local: pair[0], Interface: on})
			packet := syn(pair[0], pair[1])
			if err := r.Write(Train{Data: packet, Size: len(packet)}); err != nil {
				t.Fatal(err)
			}
			ip, seg := answer(t, r)
			if ip.Src != pair[1] || seg.Flags != wire.RST|wire.ACK || seg.DstPort != 7000 {
				t.Errorf("%q, %s: answer from %s: %+v", on, pair[0], ip.Src, seg)
			}
			if r.LocalAddr().Addr() != pair[0] || r.MTU() != 1500 {
				t.Errorf("%s, MTU %d", r.LocalAddr(), r.MTU())
			}
			want := Counters{Sent: 1, SentBytes: int64(len(packet)), SentCalls: 1, Received: 1, ReceivedCalls: 1}
			got := r.Counters()
			got.ReceivedBytes = 0
			if got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		}
	}
}

// TestRawRow sends rows to another device, with and without offload: every byte arrives, whole. The first leaves packet by packet, since how the kernel
// sends is found out with it.
func TestRawRow(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 1000)
	for _, six := range []bool{false, true} {
		for _, noOffload := range []bool{false, true} {
			t.Run(fmt.Sprintf("six=%v/noOffload=%v", six, noOffload), func(t *testing.T) {
				c := newCable(t)
				from, to := own4, kernel4.Addr()
				if six {
					from, to = own6, kernel6.Addr()
				}
				r := c.open(t, RawConfig{Local: from, NoOffload: noOffload})
				far := &cable{own: c.kernel, hold: hold(t, c.kernel, netip.AddrPortFrom(netip.IPv6Unspecified(), 2))}
				peer := far.open(t, RawConfig{Local: to})
				knock(c.own, netip.AddrPortFrom(to, 1)) // rows leave as such only to a neighbour that the kernel knows
				for round := range 3 {
					var train []byte
					for at := 0; at < len(data); at += 1000 {
						train = append(train, segment(six, uint32(at), data[at:at+1000], nil)...)
					}
					if err := r.Write(Train{Data: train, Size: len(train) / 16}); err != nil {
						t.Fatal(err)
					}
					var got []byte
					var b Batch
					for len(got) < len(data) {
						if err := peer.Read(&b); err != nil {
							t.Fatal(err)
						}
						for _, p := range b.Packets {
							var ip wire.IP
							var seg wire.Segment
							if err := errors.Join(wire.ParseIP(p.Data, &ip), wire.ParseTCP(ip.Payload, &seg)); err != nil {
								t.Fatal(err)
							}
							if !wire.TCPChecksumOK(ip.Payload, wire.PseudoSum(ip.Src, ip.Dst, wire.ProtoTCP)) {
								t.Error("checksum")
							}
							got = append(got, seg.Payload...)
						}
					}
					if !bytes.Equal(got, data) {
						t.Fatalf("round %d: other bytes", round)
					}
				}
				n := r.Counters()
				if n.Sent != 48 || n.Unreachable+n.Dropped+n.TooLarge > 0 {
					t.Errorf("%+v", n)
				}
				if merged := peer.Counters().Received < 48; merged == noOffload {
					t.Errorf("the peer received %d packets, without offload: %v", peer.Counters().Received, noOffload)
				}
			})
		}
	}
}

// TestNextHop: the way that rows take is the kernel's, and where they must not be sent there is none.
func TestNextHop(t *testing.T) {
	c := newCable(t)
	c.own.IP("route", "add", "192.0.2.0/24", "via", kernel4.Addr().String())
	c.own.IP("route", "add", "2001:db8::/64", "via", kernel6.Addr().String())
	knock(c.own, netip.AddrPortFrom(kernel4.Addr(), 1)) // the kernels get to know each other
	knock(c.own, netip.AddrPortFrom(kernel6.Addr(), 1))
	var mac net.HardwareAddr
	c.kernel.Must(func() error {
		ifc, err := net.InterfaceByName("veth0")
		if err == nil {
			mac = ifc.HardwareAddr
		}
		return err
	})
	find := func(local, to string) *nextHop {
		t.Helper()
		hop := &nextHop{to: netip.MustParseAddr(to)}
		c.own.Must(func() error {
			var hops nextHops
			if err := hops.init(netip.MustParseAddr(local), 0); err != nil {
				return err
			}
			defer hops.close()
			return hops.find(hop)
		})
		return hop
	}
	for _, tc := range []struct {
		local, to string
		kind      string
	}{
		{own4.String(), kernel4.Addr().String(), "0800"},
		{own4.String(), "192.0.2.9", "0800"},
		{own6.String(), kernel6.Addr().String(), "86dd"},
		{own6.String(), "2001:db8::9", "86dd"},
		{own4.String(), "10.77.0.99", ""},  // nobody there
		{own4.String(), own4.String(), ""}, // ourselves
		{"127.0.0.1", "127.0.0.1", ""},     // loopback
		{own6.String(), "fe80::1", ""},     // the zone says
		{own4.String(), "10.77.0.255", ""}, // broadcast
		{own4.String(), "224.0.0.1", ""},   // multicast
	} {
		hop := find(tc.local, tc.to)
		if hop.known != (tc.kind != "") || hop.known && (!bytes.Equal(hop.header[:6], mac) || fmt.Sprintf("%x", hop.header[12:]) != tc.kind || hop.length != 14) {
			t.Errorf("%s to %s: %+v, want %s", tc.local, tc.to, hop, mac)
		}
	}
	// A policy of IPsec would be passed by.
	c.own.IP("xfrm", "policy", "add", "src", own4.String(), "dst", "192.0.2.0/24", "dir", "out", "tmpl", "proto", "esp", "mode", "transport")
	if hop := find(own4.String(), kernel4.Addr().String()); hop.known {
		t.Errorf("with IPsec: %+v", hop)
	}
}

// TestRawSteady: neither reading nor writing allocates when it has come to run.
func TestRawSteady(t *testing.T) {
	c := newCable(t)
	r := c.open(t, RawConfig{Local: own4})
	packet := syn(own4, kernel4.Addr())
	row := append(segment(false, 0, make([]byte, 1000), nil), segment(false, 1000, make([]byte, 1000), nil)...)
	var b Batch
	turn := func() {
		err := r.Write(Train{Data: packet, Size: len(packet)})
		if err == nil {
			err = r.Write(Train{Data: row, Size: len(row) / 2})
		}
		if err == nil {
			err = r.Read(&b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		turn()
	}
	if n := testing.AllocsPerRun(100, turn); n >= 1 {
		t.Errorf("%v allocations", n)
	}
}

// TestRawErrors: what is wrong is said when the device is opened.
func TestRawErrors(t *testing.T) {
	c := newCable(t)
	ports := []Ports{{First: 7000, Count: 1}}
	for _, tc := range []struct {
		cfg  RawConfig
		want string
	}{
		{RawConfig{Local: own4}, "needs an address of this machine and ports"},
		{RawConfig{Local: netip.IPv4Unspecified(), Ports: ports}, "needs an address of this machine and ports"},
		{RawConfig{Local: netip.MustParseAddr("192.0.2.1"), Ports: ports}, "no interface has the address 192.0.2.1"},
		{RawConfig{Local: own4, Interface: "eth99", Ports: ports}, "no interface eth99"},
		{RawConfig{Local: netip.MustParseAddr("192.0.2.1"), Interface: "veth0", Ports: ports}, "cannot assign requested address"},
	} {
		err := c.own.Do(func() error {
			_, err := OpenRaw(tc.cfg)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v", tc.cfg, err)
		}
	}
	err := c.own.Do(func() error { // on a thread that ends with this
		runtime.LockOSThread()
		head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		if err := unix.Capset(&head, &none[0]); err != nil {
			return err
		}
		_, err := OpenRaw(RawConfig{Local: own4, Ports: ports})
		return err
	})
	if !errors.Is(err, unix.EPERM) || !strings.Contains(err.Error(), "it takes root, or CAP_NET_RAW and CAP_NET_ADMIN") {
		t.Errorf("without privilege: %v", err)
	}
}

// TestRawTooLarge: a packet larger than the interface takes is refused, and the one behind it leaves.
func TestRawTooLarge(t *testing.T) {
	c := newCable(t)
	r := c.open(t, RawConfig{Local: own4, NoOffload: true})
	large := segment(false, 0, make([]byte, 1500), nil)
	train := append(large, syn(own4, kernel4.Addr())...)
	if err := r.Write(Train{Data: train, Size: len(large)}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("write: %v", err)
	}
	answer(t, r)
	if n := r.Counters(); n.Sent != 1 || n.TooLarge != 1 {
		t.Errorf("%+v", n)
	}
}

// TestRawEnds: Close ends a Read that waits, and so does an interface that goes down or away.
func TestRawEnds(t *testing.T) {
	for name, end := range map[string]func(c *cable, r *Raw){
		"close":  func(_ *cable, r *Raw) { r.Close() },
		"down":   func(c *cable, _ *Raw) { c.own.IP("link", "set", "veth0", "down") },
		"remove": func(c *cable, _ *Raw) { c.own.IP("link", "del", "veth0") },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCable(t)
			r := c.open(t, RawConfig{Local: own4, Interface: "veth0"})
			done := make(chan error, 1)
			go func() { done <- r.Read(new(Batch)) }()
			end(c, r)
			err := <-done
			var gone *GoneError
			if name == "close" {
				if !errors.Is(err, net.ErrClosed) {
					t.Errorf("%v", err)
				}
				packet := syn(own4, kernel4.Addr())
				if err := r.Write(Train{Data: packet, Size: len(packet)}); !errors.Is(err, net.ErrClosed) {
					t.Errorf("write: %v", err)
				}
			} else if !errors.As(err, &gone) || gone.Name != "veth0" {
				t.Errorf("%v", err)
			}
		})
	}
}
