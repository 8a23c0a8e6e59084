package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"braid/device/devicetest"
	"braid/mptcp"
)

// world is a client with some paths and a server, in memory.
type world struct {
	t              testing.TB
	net            devicetest.Network
	client, server *Engine
	ports          []*devicetest.Port // the client's
	serverPort     *devicetest.Port
	ids            []mptcp.PathID
	listener       *Listener
}

var serverAddr = netip.MustParseAddrPort("10.9.0.1:443")

// clientAddr is the address of the client's path i.
func clientAddr(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i), 1}), 1000)
}

type worldConfig struct {
	paths          int
	delay          time.Duration // one way
	client, server Config
}

func newWorld(t testing.TB, cfg worldConfig) *world {
	t.Helper()
	w := &world{t: t, client: NewEngine(cfg.client), server: NewEngine(cfg.server)}
	for i := range max(cfg.paths, 1) {
		w.addPath(clientAddr(i), cfg.delay)
	}
	w.serverPort = w.net.Open(serverAddr, devicetest.Options{Delay: cfg.delay})
	if _, err := w.server.AddPath(w.serverPort, mptcp.Path{Name: "server", Kind: mptcp.UDP}); err != nil {
		t.Fatal(err)
	}
	l, err := w.server.Listen(serverAddr.Port(), netip.Addr{})
	if err != nil {
		t.Fatal(err)
	}
	w.listener = l
	return w
}

func (w *world) addPath(local netip.AddrPort, delay time.Duration) {
	w.t.Helper()
	port := w.net.Open(local, devicetest.Options{Delay: delay})
	id, err := w.client.AddPath(port, mptcp.Path{Name: fmt.Sprint("path", len(w.ports)), Kind: mptcp.UDP})
	if err != nil {
		w.t.Fatal(err)
	}
	w.ports = append(w.ports, port)
	w.ids = append(w.ids, id)
}

// close ends both engines at once.
func (w *world) close() {
	w.client.Close()
	w.server.Close()
}

// connect returns both ends of a new connection.
func (w *world) connect() (client, server *Conn) {
	w.t.Helper()
	accepted := make(chan *Conn, 1)
	go func() {
		c, err := w.listener.AcceptConn()
		if err != nil {
			w.t.Errorf("Accept: %v", err)
		}
		accepted <- c
	}()
	client, err := w.client.Dial(context.Background(), []netip.AddrPort{serverAddr}, nil)
	if err != nil {
		w.t.Fatalf("Dial: %v", err)
	}
	if server = <-accepted; server == nil {
		w.t.FailNow()
	}
	return client, server
}

// pattern returns n bytes in which a piece out of place shows.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i) ^ byte(i>>8)*31 ^ byte(i>>16)*17
	}
	return b
}

// transfer sends data from one end to the other, ends the stream, and compares what arrives.
func transfer(t testing.TB, from, to *Conn, data []byte) {
	t.Helper()
	sent := make(chan error, 1)
	go func() {
		_, err := from.Write(data)
		sent <- errors.Join(err, from.CloseWrite())
	}()
	got, err := io.ReadAll(to)
	if err != nil {
		t.Fatalf("after %d bytes: %v", len(got), err)
	}
	if err := <-sent; err != nil {
		t.Fatalf("Write: %v", err)
	}
	if !bytes.Equal(got, data) {
		t.Fatalf("got %d bytes that are not the %d sent", len(got), len(data))
	}
}

// isTimeout reports whether err is what a passed deadline gives.
func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}
