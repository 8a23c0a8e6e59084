package device

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"testing"
	"time"

	"braid/internal/netns"
	"braid/wire"
)

var (
	kernel4 = netip.MustParsePrefix("10.77.0.1/24")
	own4    = netip.MustParseAddr("10.77.0.2")
	kernel6 = netip.MustParsePrefix("fd77::1/64")
	own6    = netip.MustParseAddr("fd77::2")
)

func tunConfig() TUNConfig {
	return TUNConfig{Name: "tun%d", Kernel: []netip.Prefix{kernel4, kernel6}, Own: []netip.Addr{own4, own6}, MTU: 1400}
}

func openTUN(t *testing.T, ns *netns.Namespace, cfg TUNConfig) *TUN {
	t.Helper()
	var tun *TUN
	ns.Must(func() (err error) {
		tun, err = OpenTUN(cfg)
		return err
	})
	t.Cleanup(func() { tun.Close() })
	return tun
}

// syn returns a TCP packet that asks a closed port of the kernel's.
func syn(from, to netip.Addr) []byte {
	seg := wire.Segment{SrcPort: 7000, DstPort: 7001, Seq: 1, Flags: wire.SYN}
	ip := wire.IP{Src: from, Dst: to, Proto: wire.ProtoTCP}
	b := wire.AppendIPHeader(nil, &ip, wire.TCPHeaderLen+seg.OptionsLen())
	head := len(b)
	b = wire.AppendTCPHeader(b, &seg)
	wire.SetTCPChecksum(b[head:], 0, wire.PseudoSum(from, to, wire.ProtoTCP), 0)
	return b
}

// answers reads until n TCP segments have come, and returns the last.
func answers(t *testing.T, tun *TUN, n int) (ip wire.IP, seg wire.Segment) {
	t.Helper()
	var b Batch
	for {
		if err := tun.Read(&b); err != nil {
			t.Fatal(err)
		}
		for _, p := range b.Packets {
			if wire.ParseIP(p.Data, &ip) != nil || ip.Proto != wire.ProtoTCP || wire.ParseTCP(ip.Payload, &seg) != nil {
				continue // the kernel looks for routers and neighbours
			}
			if !wire.TCPChecksumOK(ip.Payload, wire.PseudoSum(ip.Src, ip.Dst, wire.ProtoTCP)) {
				t.Error("the segment's checksum is not complete")
			}
			if n--; n == 0 {
				return ip, seg
			}
		}
	}
}

// TestTUNReachesTheKernel sends a SYN to a closed port and wants the kernel's reset, over both families: addresses, routes and both directions work.
func TestTUNReachesTheKernel(t *testing.T) {
	for _, noOffload := range []bool{false, true} {
		ns := netns.New(t, netns.TUN)
		cfg := tunConfig()
		cfg.NoOffload = noOffload
		tun := openTUN(t, ns, cfg)
		if tun.Name() != "tun0" || tun.MTU() != 1400 || tun.LocalAddr().Addr() != own4 {
			t.Errorf("%s, MTU %d, local %v", tun.Name(), tun.MTU(), tun.LocalAddr())
		}
		for _, a := range [][2]netip.Addr{{own4, kernel4.Addr()}, {own6, kernel6.Addr()}} {
			packet := syn(a[0], a[1])
			done, stopped := make(chan struct{}), make(chan struct{})
			go func() { // IPv6 addresses take a moment to be usable
				defer close(stopped)
				for {
					select {
					case <-done:
						return
					case <-time.After(10 * time.Millisecond):
						tun.Write(Train{Data: packet, Size: len(packet)})
					}
				}
			}()
			ip, seg := answers(t, tun, 1)
			close(done)
			<-stopped
			if ip.Src != a[1] || ip.Dst != a[0] || seg.Flags != wire.RST|wire.ACK || seg.SrcPort != 7001 || seg.Ack != 2 {
				t.Errorf("the kernel answers %v > %v %v", ip.Src, ip.Dst, &seg)
			}
		}
		c := tun.Counters()
		if c.Sent < 2 || c.Received < 2 || c.Unreachable != 0 {
			t.Errorf("%+v", c)
		}
	}
}

// TestTUNTrain checks that a train is cut into its packets, the short one at its end included.
func TestTUNTrain(t *testing.T) {
	ns := netns.New(t, netns.TUN)
	tun := openTUN(t, ns, tunConfig())
	packet := syn(own4, kernel4.Addr())
	long := append(bytes.Clone(packet), 0, 0, 0, 0) // what follows an IP packet is no part of it
	train := append(append(bytes.Clone(long), long...), packet...)
	if err := tun.Write(Train{Data: train, Size: len(long)}); err != nil {
		t.Fatal(err)
	}
	answers(t, tun, 3)
	if c := tun.Counters(); c.Sent != 3 || c.SentBytes != int64(len(train)) {
		t.Errorf("%+v", c)
	}
}

// TestTUNDown: while the interface is down packets are lost and counted, and when it is up again they go.
func TestTUNDown(t *testing.T) {
	ns := netns.New(t, netns.TUN)
	tun := openTUN(t, ns, tunConfig())
	packet := syn(own4, kernel4.Addr())
	ns.IP("link", "set", tun.Name(), "down")
	if err := tun.Write(Train{Data: append(bytes.Clone(packet), packet...), Size: len(packet)}); err != nil {
		t.Fatalf("down: %v", err)
	}
	if c := tun.Counters(); c.Unreachable != 2 || c.Sent != 0 {
		t.Errorf("down: %+v", c)
	}
	ns.IP("link", "set", tun.Name(), "up")
	if err := tun.Write(Train{Data: packet, Size: len(packet)}); err != nil {
		t.Fatalf("up: %v", err)
	}
	answers(t, tun, 1)
}

// TestTUNGone: reading and writing tell when the interface has been removed.
func TestTUNGone(t *testing.T) {
	ns := netns.New(t, netns.TUN)
	tun := openTUN(t, ns, tunConfig())
	read := make(chan error, 1)
	go func() {
		var b Batch
		for {
			if err := tun.Read(&b); err != nil {
				read <- err
				return
			}
		}
	}()
	ns.IP("link", "delete", tun.Name())
	var gone *GoneError
	if err := <-read; !errors.As(err, &gone) {
		t.Errorf("read: %v", err)
	}
	packet := syn(own4, kernel4.Addr())
	if err := tun.Write(Train{Data: packet, Size: len(packet)}); !errors.As(err, &gone) {
		t.Errorf("write: %v", err)
	}
}

// TestTUNClose: Close ends a Read that waits.
func TestTUNClose(t *testing.T) {
	ns := netns.New(t, netns.TUN)
	tun := openTUN(t, ns, tunConfig())
	read := make(chan error, 1)
	go func() {
		var b Batch
		for {
			if err := tun.Read(&b); err != nil {
				read <- err
				return
			}
		}
	}()
	tun.Close()
	if err := <-read; err != net.ErrClosed {
		t.Errorf("read: %v", err)
	}
	packet := syn(own4, kernel4.Addr())
	if err := tun.Write(Train{Data: packet, Size: len(packet)}); err != net.ErrClosed {
		t.Errorf("write: %v", err)
	}
	if err := tun.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}

// TestCreateTUN makes an interface that stays, opens it without configuring anything, and removes it.
func TestCreateTUN(t *testing.T) {
	ns := netns.New(t, netns.TUN)
	cfg := tunConfig()
	cfg.Name = "braid7"
	for range 2 { // the second time it is there
		ns.Must(func() error {
			name, err := CreateTUN(cfg, os.Getuid())
			if err == nil && name != "braid7" {
				t.Errorf("made %q", name)
			}
			return err
		})
	}
	ns.Must(func() error {
		routes, err := exec.Command("ip", "route", "get", own4.String()).CombinedOutput()
		if !bytes.Contains(routes, []byte("dev braid7 src 10.77.0.1")) {
			t.Errorf("route: %s", routes)
		}
		return err
	})
	tun := openTUN(t, ns, TUNConfig{Name: "braid7", Own: []netip.Addr{own4}})
	if tun.MTU() != 1400 {
		t.Errorf("MTU %d", tun.MTU())
	}
	packet := syn(own4, kernel4.Addr())
	if err := tun.Write(Train{Data: packet, Size: len(packet)}); err != nil {
		t.Fatal(err)
	}
	answers(t, tun, 1)
	if err := ns.Do(func() error { _, err := OpenTUN(TUNConfig{Name: "braid7"}); return err }); err == nil {
		t.Error("opened twice")
	}
	ns.Must(func() error { return RemoveTUN("braid7") }) // while it is open
	var b Batch
	var gone *GoneError
	err := error(nil)
	for err == nil {
		err = tun.Read(&b)
	}
	if !errors.As(err, &gone) {
		t.Errorf("read: %v", err)
	}
	ns.Must(func() error { _, err := CreateTUN(cfg, -1); return err })
	ns.Must(func() error { return RemoveTUN("braid7") })
	if err := ns.Do(func() error { return RemoveTUN("braid7") }); err == nil {
		t.Error("removed twice")
	}
	if err := ns.Do(func() error { return RemoveTUN("lo") }); err == nil {
		t.Error("removed what is no TUN interface")
	}
}

// TestTUNAllocatesNothing: neither direction allocates.
func TestTUNAllocatesNothing(t *testing.T) {
	ns := netns.New(t, netns.TUN)
	tun := openTUN(t, ns, tunConfig())
	packet := syn(own4, kernel4.Addr())
	var b Batch
	round := func() {
		if err := tun.Write(Train{Data: packet, Size: len(packet)}); err != nil {
			t.Fatal(err)
		}
		if err := tun.Read(&b); err != nil {
			t.Fatal(err)
		}
	}
	round()
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
}

func TestCompleteChecksum(t *testing.T) {
	packet := syn(own4, kernel4.Addr())
	want := bytes.Clone(packet)
	segment := packet[wire.IPv4HeaderLen:]
	sum := wire.PseudoSum(own4, kernel4.Addr(), wire.ProtoTCP).Add16(uint16(len(segment)))
	partial := ^sum.Checksum()
	segment[16], segment[17] = byte(partial>>8), byte(partial)
	completeChecksum(segment, 16)
	if !bytes.Equal(packet, want) {
		t.Errorf("got\n%x, want\n%x", packet, want)
	}
}
