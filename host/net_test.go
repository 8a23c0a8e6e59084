package host

import (
	"io"
	"net"
	"net/netip"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/net/nettest"

	"braid/device"
	"braid/mptcp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// udpWorld is two engines over real sockets on loopback, with as many paths as asked for.
func udpWorld(t testing.TB, paths int, cfg Config) (client, server *Engine, listener *Listener, remote netip.AddrPort) {
	t.Helper()
	client, server = NewEngine(cfg), NewEngine(cfg)
	t.Cleanup(func() {
		client.Close()
		server.Close()
	})
	add := func(e *Engine, local string) netip.AddrPort {
		dev, err := device.Open(device.Config{Local: netip.MustParseAddrPort(local)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.AddPath(dev, mptcp.Path{Name: local, Kind: mptcp.UDP, MTU: 1500}); err != nil {
			t.Fatal(err)
		}
		return dev.LocalAddr()
	}
	remote = add(server, "127.0.0.1:0")
	for i := range paths {
		add(client, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, byte(2 + i)}), 0).String())
	}
	listener, err := server.Listen(remote.Port(), netip.Addr{})
	if err != nil {
		t.Fatal(err)
	}
	return client, server, listener, remote
}

// What every net.Conn must do, as golang.org/x/net/nettest sees it, in memory.
func TestNettestInMemory(t *testing.T) {
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		w := newWorld(t, worldConfig{paths: 2})
		a, b := w.connect()
		return a, b, w.close, nil
	})
}

// The same over sockets.
func TestNettestUDP(t *testing.T) {
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		client, server, listener, remote := udpWorld(t, 2, Config{})
		accepted := make(chan net.Conn, 1)
		go func() {
			c, err := listener.Accept()
			if err != nil {
				t.Error(err)
			}
			accepted <- c
		}()
		c1, err = client.Dial(t.Context(), []netip.AddrPort{remote}, nil)
		if err != nil {
			return nil, nil, nil, err
		}
		return c1, <-accepted, func() { client.Close(); server.Close() }, nil
	})
}

// The whole way of a byte, from Write through two engines and two sockets to Read, and of its acknowledgement back, allocates nothing.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	client, server := dialUDP(t, 2, Config{})
	block, got := make([]byte, 128<<10), make([]byte, 128<<10)
	exchange := func() {
		if _, err := client.Write(block); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(server, got); err != nil {
			t.Fatal(err)
		}
	}
	for range 500 { // windows, buffers and tables grow to their size
		exchange()
	}
	// Less than one in a hundred exchanges of 90 packets: tables may still grow now and then.
	if n := testing.AllocsPerRun(200, func() {
		for range 10 {
			exchange()
		}
	}); n > 0.1 {
		t.Errorf("%v allocations for ten exchanges of %d bytes", n, len(block))
	}
}
