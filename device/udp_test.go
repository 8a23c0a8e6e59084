package device

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
)

// open opens a device and closes it with the test.
func open(t testing.TB, cfg Config) *UDP {
	t.Helper()
	u, err := Open(cfg)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { u.Close() })
	return u
}

func loopback(t testing.TB, addr string, cfg Config) *UDP {
	cfg.Local = netip.AddrPortFrom(netip.MustParseAddr(addr), 0)
	return open(t, cfg)
}

// readAll reads until n packets have arrived.
func readAll(t testing.TB, u *UDP, n int) (got []Packet) {
	t.Helper()
	var b Batch
	for len(got) < n {
		if err := u.Read(&b); err != nil {
			t.Fatalf("Read: %v", err)
		}
		for _, p := range b.Packets {
			got = append(got, Packet{bytes.Clone(p.Data), p.From})
		}
	}
	return got
}

// pattern returns n bytes that differ from datagram to datagram.
func pattern(n, size int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i/size*31 + i%size)
	}
	return b
}

func TestTrains(t *testing.T) {
	tests := []struct {
		name        string
		bytes, size int
	}{
		{"one packet", 100, 1452},
		{"equal packets", 10 * 1452, 1452},
		{"shorter last packet", 10*1452 + 1, 1452},
		{"as long as one call takes", 44 * 1452, 1452},
		{"longer than one call takes", 200 * 1452, 1452},
		{"more packets than the kernel cuts", 500 * 20, 20},
	}
	for _, ip := range []string{"127.0.0.1", "::1"} {
		for _, offload := range []bool{true, false} {
			for _, tt := range tests {
				t.Run(fmt.Sprintf("%s/offload=%v/%s", ip, offload, tt.name), func(t *testing.T) {
					a := loopback(t, ip, Config{NoOffload: !offload})
					b := loopback(t, ip, Config{NoOffload: !offload})
					data := pattern(tt.bytes, tt.size)
					train := Train{data, tt.size, b.LocalAddr()}
					if err := a.Write(train); err != nil {
						t.Fatal(err)
					}
					got := readAll(t, b, train.Len())
					if len(got) != train.Len() {
						t.Fatalf("%d packets, want %d", len(got), train.Len())
					}
					for i, p := range got {
						want := data[i*tt.size : min((i+1)*tt.size, len(data))]
						if !bytes.Equal(p.Data, want) {
							t.Fatalf("packet %d: %d bytes differ from the %d sent", i, len(p.Data), len(want))
						}
						if p.From != a.LocalAddr() {
							t.Fatalf("packet %d from %v, want %v", i, p.From, a.LocalAddr())
						}
					}
					c := a.Counters()
					if c.Sent != int64(train.Len()) || c.SentBytes != int64(tt.bytes) {
						t.Errorf("counters: %+v", c)
					}
					if !offload && c.SentCalls != c.Sent {
						t.Errorf("%d calls for %d packets without offload", c.SentCalls, c.Sent)
					}
				})
			}
		}
	}
}

// A socket bound to no address answers from the address that its peer sent to, not from the one that routing prefers.
func TestAnswersLeaveFromTheAddressAsked(t *testing.T) {
	server := open(t, Config{})
	for _, ip := range []string{"127.0.0.9", "::1", "127.0.0.8"} {
		asked := netip.AddrPortFrom(netip.MustParseAddr(ip), server.LocalAddr().Port())
		client := loopback(t, map[bool]string{true: "127.0.0.1", false: "::1"}[asked.Addr().Is4()], Config{})
		if err := client.Write(Train{[]byte("ask"), 3, asked}); err != nil {
			t.Fatal(err)
		}
		from := readAll(t, server, 1)[0].From
		if from != client.LocalAddr() {
			t.Fatalf("server sees %v, want %v", from, client.LocalAddr())
		}
		if err := server.Write(Train{[]byte("answer"), 6, from}); err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, client, 1)[0].From; got != asked {
			t.Errorf("answer from %v, want %v", got, asked)
		}
	}
}

func TestCloseEndsARead(t *testing.T) {
	u := loopback(t, "127.0.0.1", Config{})
	done := make(chan error)
	go func() { done <- u.Read(new(Batch)) }()
	u.Close()
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read: %v, want net.ErrClosed", err)
	}
	if err := u.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if err := u.Write(Train{[]byte("x"), 1, u.LocalAddr()}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Write after Close: %v, want net.ErrClosed", err)
	}
}

func TestTransientErrorsAreCounted(t *testing.T) {
	u := loopback(t, "127.0.0.1", Config{})
	// Nothing but this machine can be reached from a loopback address.
	err := u.Write(Train{[]byte("x"), 1, netip.MustParseAddrPort("192.0.2.77:9")})
	var gone *GoneError
	if err != nil && !errors.As(err, &gone) {
		t.Errorf("Write to an unreachable address: %v", err)
	}
	if err := u.Write(Train{[]byte("x"), 1, netip.MustParseAddrPort("[::1]:9")}); err != nil {
		t.Errorf("Write to the other family: %v", err)
	}
	if c := u.Counters(); c.Unreachable != 2 || c.Sent != 0 {
		t.Errorf("counters: %+v, want two unreachable", c)
	}
	// A port where no one listens sends an ICMP error back, which must not end anything.
	other := loopback(t, "127.0.0.1", Config{})
	nobody := other.LocalAddr()
	other.Close()
	for range 3 {
		if err := u.Write(Train{[]byte("x"), 1, nobody}); err != nil {
			t.Errorf("Write to a closed port: %v", err)
		}
	}
	if err := u.Write(Train{[]byte("me"), 2, u.LocalAddr()}); err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, u, 1); string(got[0].Data) != "me" {
		t.Errorf("got %q", got[0].Data)
	}
}

func TestTooLarge(t *testing.T) {
	u := loopback(t, "127.0.0.1", Config{})
	data := make([]byte, 65520) // more than a UDP datagram holds
	if err := u.Write(Train{data, len(data), u.LocalAddr()}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Write: %v, want ErrTooLarge", err)
	}
	if c := u.Counters(); c.TooLarge != 1 {
		t.Errorf("counters: %+v", c)
	}
}

func TestOpenErrorsNameTheCulprit(t *testing.T) {
	_, err := Open(Config{Interface: "nosuch0"})
	if err == nil || !strings.Contains(err.Error(), "nosuch0") {
		t.Errorf("missing interface: %v", err)
	}
	_, err = Open(Config{Local: netip.MustParseAddrPort("192.0.2.200:0")})
	if err == nil || !strings.Contains(err.Error(), "192.0.2.200") {
		t.Errorf("address of another machine: %v", err)
	}
	taken := loopback(t, "127.0.0.1", Config{})
	_, err = Open(Config{Local: taken.LocalAddr()})
	if err == nil || !strings.Contains(err.Error(), taken.LocalAddr().String()) {
		t.Errorf("taken port: %v", err)
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	for _, server := range []Config{{Local: netip.MustParseAddrPort("127.0.0.1:0")}, {}} {
		a, b := loopback(t, "127.0.0.1", Config{}), open(t, server)
		to := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), b.LocalAddr().Port())
		data := pattern(40*1452, 1452)
		var batch, back Batch
		run := func() {
			if err := a.Write(Train{data, 1452, to}); err != nil {
				t.Fatal(err)
			}
			for n := 0; n < 40; n += len(batch.Packets) {
				if err := b.Read(&batch); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.Write(Train{data[:52], 52, batch.Packets[0].From}); err != nil {
				t.Fatal(err)
			}
			if err := a.Read(&back); err != nil {
				t.Fatal(err)
			}
		}
		run()
		if n := testing.AllocsPerRun(100, run); n != 0 {
			t.Errorf("server at %v: %v allocations in a round trip, want none", b.LocalAddr(), n)
		}
	}
}

func BenchmarkLoopback(b *testing.B) {
	for _, offload := range []bool{true, false} {
		b.Run(fmt.Sprintf("offload=%v", offload), func(b *testing.B) {
			x := loopback(b, "127.0.0.1", Config{NoOffload: !offload})
			y := loopback(b, "127.0.0.1", Config{NoOffload: !offload})
			data := pattern(44*1472, 1472)
			b.SetBytes(int64(len(data)))
			var batch Batch
			for b.Loop() {
				if err := x.Write(Train{data, 1472, y.LocalAddr()}); err != nil {
					b.Fatal(err)
				}
				for n := 0; n < 44; n += len(batch.Packets) {
					if err := y.Read(&batch); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
