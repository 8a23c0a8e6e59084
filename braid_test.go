package braid

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/nettest"

	"braid/host"
	"braid/mptcp"
)

// testChild is what the test binary does in a process of its own, in another network namespace: watch_linux_test.go.
var testChild func()

// An engine closes itself a little after its last connection, so that looking for leaks once may be too early.
func TestMain(m *testing.M) {
	if testChild != nil && os.Getenv("BRAID_TEST_CHILD") != "" {
		testChild()
		return
	}
	code := m.Run()
	if code == 0 {
		err := goleak.Find()
		for start := time.Now(); err != nil && time.Since(start) < 10*time.Second; {
			err = goleak.Find()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// listen starts a listener that is closed, with its engine, at the end of the test.
func listen(t testing.TB, c *Config, address string) *Listener {
	t.Helper()
	l, err := c.Listen(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Engine().Close() })
	return l
}

// twoPaths is a client with two ways to a server on loopback.
func twoPaths() *Config { return &Config{Interfaces: []string{"127.0.0.2", "127.0.0.3"}} }

// connect returns both ends of a connection to l.
func connect(t testing.TB, c *Config, l *Listener) (client, server *Conn) {
	t.Helper()
	accepted := make(chan *Conn, 1)
	go func() {
		s, err := l.AcceptConn()
		if err != nil {
			t.Error(err)
		}
		accepted <- s
	}()
	client, err := c.Dial(t.Context(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Engine().Close() })
	return client, <-accepted
}

func TestNettest(t *testing.T) {
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		l := listen(t, new(Config), "127.0.0.1:0")
		client, server := connect(t, twoPaths(), l)
		return client, server, func() { client.Engine().Close(); l.Engine().Close() }, nil
	})
}

// certificate makes a self-signed certificate for a name, and a pool that trusts it.
func certificate(t *testing.T, name string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// net/http with TLS over braid: 100 MB over two paths, unchanged programs on both sides.
func TestHTTPS(t *testing.T) {
	cert, pool := certificate(t, "braid.test")
	blob := bytes.Repeat([]byte("multipath "), 10_000_000)
	l := listen(t, new(Config), "127.0.0.1:0")
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "blob", time.Time{}, bytes.NewReader(blob))
		}),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}},
	}
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(l, "", "") }()

	var conn *Conn
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			c, err := twoPaths().DialContext(ctx, network, l.Addr().String())
			if err == nil {
				conn = c.(*Conn)
			}
			return c, err
		},
		TLSClientConfig: &tls.Config{RootCAs: pool},
	}
	resp, err := (&http.Client{Transport: transport}).Get("https://braid.test/blob")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	n, err := io.Copy(sum, resp.Body)
	resp.Body.Close()
	if err != nil || n != int64(len(blob)) {
		t.Fatalf("%d bytes of %d, %v", n, len(blob), err)
	}
	if want := sha256.Sum256(blob); !bytes.Equal(sum.Sum(nil), want[:]) {
		t.Error("what arrived is not what was sent")
	}
	for _, p := range conn.Engine().Paths() {
		if p.Device.ReceivedBytes < 50_000 { // how much is up to the scheduler
			t.Errorf("path %s carried only %d of %d bytes", p.Path.Name, p.Device.ReceivedBytes, n)
		}
	}
	transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		t.Errorf("server: %v", err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("Serve: %v", err)
	}
}

func TestDialErrorsSayWhatToDo(t *testing.T) {
	fast := mptcp.Config{DialTimeout: 300 * time.Millisecond}
	l := listen(t, new(Config), "127.0.0.1:0")
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	tests := []struct {
		name    string
		cfg     Config
		address string
		want    []string
	}{
		{"no port", Config{}, "127.0.0.1", []string{"missing port"}},
		{"unknown interface", Config{Interfaces: []string{"nosuch0"}}, "127.0.0.1:1", []string{"nosuch0", "ip address"}},
		{"unknown congestion control", Config{Congestion: "warp"}, "127.0.0.1:1", []string{"warp", "bbr", "cubic"}},
		{"unknown scheduler", Config{Scheduler: "dice"}, "127.0.0.1:1", []string{"dice", "minrtt"}},
		{"no answer", Config{Stack: fast}, silent.LocalAddr().String(), []string{"is the server running", "UDP"}},
		{"no interface of the family", Config{Interfaces: []string{"127.0.0.1"}}, "[::1]:1", []string{"127.0.0.1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.cfg.Dial(t.Context(), tt.address)
			if err == nil {
				t.Fatal("Dial succeeded")
			}
			for _, want := range append(tt.want, tt.address, "dial") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
	if _, err := new(Config).Listen(t.Context(), l.Addr().String()); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("Listen on a taken port: %v", err)
	}
	if _, err := new(Config).DialContext(t.Context(), "udp", "127.0.0.1:1"); err == nil {
		t.Error("DialContext took the network udp")
	}
}

// A server bound to no address is reached at each of its addresses, by name too.
func TestWildcardListener(t *testing.T) {
	l := listen(t, new(Config), ":0")
	port := netip.MustParseAddrPort(l.Addr().String()).Port()
	for _, hostname := range []string{"127.0.0.1", "127.0.0.9", "::1", "localhost"} {
		address := net.JoinHostPort(hostname, netip.AddrPortFrom(netip.IPv4Unspecified(), port).String()[len("0.0.0.0:"):])
		c, err := Dial(t.Context(), address)
		if err != nil {
			t.Fatalf("%s: %v", address, err)
		}
		s, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte("x")); err != nil {
			t.Error(err)
		}
		if _, err := io.ReadFull(s, make([]byte, 1)); err != nil {
			t.Error(err)
		}
		s.Close()
		if err := c.Shutdown(t.Context()); err != nil {
			t.Errorf("%s: Shutdown: %v", address, err)
		}
		c.Engine().Close()
	}
}

// flaky is a machine whose interfaces the test switches.
type flaky struct {
	mu   sync.Mutex
	have []iface
}

func (f *flaky) list() ([]iface, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.have, nil
}

func (f *flaky) set(addresses ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.have = nil
	for _, a := range addresses {
		f.have = append(f.have, iface{name: "if" + a, addrs: addrs(a)})
	}
}

// waitFor looks until the engine's paths are as wanted.
func waitFor(t *testing.T, e *host.Engine, want string) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		var names []string
		for _, p := range e.Paths() {
			names = append(names, p.Path.Name)
		}
		if strings.Join(names, " ") == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("paths %v, want %s", names, want)
		}
		<-tick.C
	}
}

// An interface that vanishes is given up and one that comes back is taken in again, while the connection goes on. Loopback addresses
// play the interfaces, which is why the names are bound to none.
func TestInterfacesComeAndGo(t *testing.T) {
	var log bytes.Buffer
	var logging sync.Mutex
	l := listen(t, new(Config), "127.0.0.1:0")
	cfg := &Config{
		Interfaces: []string{"127.0.0.2", "127.0.0.3"},
		Watch:      10 * time.Millisecond,
		Log:        slog.New(slog.NewTextHandler(lockedWriter{&logging, &log}, nil)),
	}
	machine := &flaky{}
	machine.set("127.0.0.2", "127.0.0.3")
	cfg.system = machine
	client, server := connect(t, cfg, l)
	e := client.Engine()
	waitFor(t, e, "127.0.0.2 127.0.0.3")
	echo := func() {
		t.Helper()
		if _, err := client.Write([]byte("still here")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(server, make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
	}
	echo()
	machine.set("127.0.0.3")
	waitFor(t, e, "127.0.0.3")
	echo()
	machine.set("127.0.0.2", "127.0.0.3")
	waitFor(t, e, "127.0.0.3 127.0.0.2")
	machine.set("127.0.0.2")
	waitFor(t, e, "127.0.0.2")
	echo()
	machine.set()
	waitFor(t, e, "")
	machine.set("127.0.0.3")
	waitFor(t, e, "127.0.0.3")
	echo()
	logging.Lock()
	defer logging.Unlock()
	if up, down := strings.Count(log.String(), "path up"), strings.Count(log.String(), "path down"); up != 4 || down != 3 {
		t.Errorf("log tells of %d paths up and %d down, want 4 and 3:\n%s", up, down, log.String())
	}
}

type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// A context that ends cancels a Dial, and nothing of it stays behind (TestMain looks).
func TestDialIsCancelled(t *testing.T) {
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := Dial(ctx, silent.LocalAddr().String()); !errors.Is(err, context.Canceled) {
		t.Errorf("Dial: %v, want context.Canceled", err)
	}
}
