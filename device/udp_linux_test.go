package device

import (
	"errors"
	"net/netip"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestInterfaceBinding(t *testing.T) {
	a := open(t, Config{Local: netip.MustParseAddrPort("127.0.0.1:0"), Interface: "lo"})
	b := open(t, Config{Local: netip.MustParseAddrPort("127.0.0.1:0"), Interface: "lo"})
	if a.MTU() != 65536 {
		t.Errorf("MTU %d, want lo's 65536", a.MTU())
	}
	if err := a.Write(Train{[]byte("hello"), 5, b.LocalAddr()}); err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, b, 1); string(got[0].Data) != "hello" {
		t.Errorf("got %q", got[0].Data)
	}
}

// A kernel or an interface that refuses to segment is found out once; its packets go singly and nothing is lost.
func TestSegmentationRefused(t *testing.T) {
	a, b := loopback(t, "127.0.0.1", Config{}), loopback(t, "127.0.0.1", Config{})
	if !a.Offload() {
		t.Skip("this kernel has no UDP_SEGMENT: the fallback is all there is, and TestTrains covers it")
	}
	// UDP_SEGMENT needs the checksum offload that SO_NO_CHECK switches off: the kernel answers EINVAL or EIO.
	err := a.port.raw.Control(func(fd uintptr) {
		if err := unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_NO_CHECK, 1); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		train := Train{pattern(10*100, 100), 100, b.LocalAddr()}
		if err := a.Write(train); err != nil {
			t.Fatal(err)
		}
		readAll(t, b, 10)
	}
	if c := a.Counters(); a.Offload() || c.Unsegmented != 1 || c.Sent != 20 {
		t.Errorf("offload %v, counters %+v; want it off after one refusal and 20 packets sent", a.Offload(), c)
	}
}

func TestControlMessages(t *testing.T) {
	var slot sendSlot
	b := slot.controlBytes()
	n := 0
	*(*int32)(putControl(b, &n, unix.IPPROTO_UDP, unix.UDP_GRO, 4)) = 1452
	*(*unix.Inet4Pktinfo)(putControl(b, &n, unix.IPPROTO_IP, unix.IP_PKTINFO, unix.SizeofInet4Pktinfo)) =
		unix.Inet4Pktinfo{Spec_dst: [4]byte{10, 0, 0, 1}}
	*(*uint32)(putControl(b, &n, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 4)) = 7
	want := received{1452, netip.MustParseAddr("10.0.0.1"), 7}
	if got := parseControl(b[:n]); got != want {
		t.Errorf("parsed %+v, want %+v", got, want)
	}
	for i := range n { // a cut or damaged row must not be read beyond its end
		parseControl(b[:i])
	}
	(*unix.Cmsghdr)(unsafe.Pointer(&b[0])).Len = 3
	if got := parseControl(b[:n]); got != (received{}) {
		t.Errorf("a control message shorter than its header gave %+v", got)
	}
}

func TestClassify(t *testing.T) {
	u := loopback(t, "127.0.0.1", Config{})
	var gone *GoneError
	tests := []struct {
		errno   unix.Errno
		gone    bool
		tooBig  bool
		counter func(Counters) int64
	}{
		{unix.EAGAIN, false, false, func(c Counters) int64 { return c.Dropped }},
		{unix.EMSGSIZE, false, true, func(c Counters) int64 { return c.TooLarge }},
		{unix.ENODEV, true, false, func(c Counters) int64 { return c.Unreachable }},
		{unix.EINVAL, true, false, func(c Counters) int64 { return c.Unreachable }},
		{unix.ENETUNREACH, false, false, func(c Counters) int64 { return c.Unreachable }},
		{unix.EPERM, false, false, func(c Counters) int64 { return c.Unreachable }},
		{unix.ENOBUFS, false, false, func(c Counters) int64 { return c.Unreachable }},
		{unix.ECONNREFUSED, false, false, func(c Counters) int64 { return c.Unreachable }},
	}
	for _, tt := range tests {
		before := tt.counter(u.Counters())
		err := u.port.classify(tt.errno, 7)
		if errors.As(err, &gone) != tt.gone || errors.Is(err, ErrTooLarge) != tt.tooBig {
			t.Errorf("%v: %v", tt.errno, err)
		}
		if got := tt.counter(u.Counters()) - before; got != 7 {
			t.Errorf("%v counted %d packets, want 7", tt.errno, got)
		}
	}
}

func TestOverflowIsCounted(t *testing.T) {
	a := loopback(t, "127.0.0.1", Config{})
	b := loopback(t, "127.0.0.1", Config{ReceiveBuffer: 1 << 14})
	for range 100 {
		if err := a.Write(Train{pattern(10*1000, 1000), 1000, b.LocalAddr()}); err != nil {
			t.Fatal(err)
		}
	}
	var batch Batch
	for b.Counters().Overflowed == 0 { // what is told comes with the first packet after the loss
		if err := b.Read(&batch); err != nil {
			t.Fatal(err)
		}
		if err := a.Write(Train{[]byte("x"), 1, b.LocalAddr()}); err != nil {
			t.Fatal(err)
		}
	}
}
