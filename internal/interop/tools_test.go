//go:build linux

package interop

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"braid"
	"braid/device"
	"braid/internal/netns"
	"braid/mptcp"
)

// website is net/http with TLS on a braid.Listener behind TUN interfaces, as a user would run it.
type website struct {
	listener *watchedListener
	root     string // file with the certificate
	config   *tls.Config
}

// watchedListener remembers the connections that it accepted.
type watchedListener struct {
	*braid.Listener
	mu    sync.Mutex
	conns []*braid.Conn

	capable int64 // the kernel's counter when wantPeers looked last
}

func (l *watchedListener) Accept() (net.Conn, error) {
	c, err := l.AcceptConn()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.conns = append(l.conns, c)
	l.mu.Unlock()
	return c, nil
}

// newWebsite serves "/" with data and takes uploads to "/in", answering with their digest.
func newWebsite(w *world, data []byte) *website {
	w.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "braid"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{own4(1).AsSlice(), own6(1).AsSlice()}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		w.t.Fatal(err)
	}
	s := &website{root: filepath.Join(w.t.TempDir(), "root.pem")}
	if err := os.WriteFile(s.root, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644); err != nil {
		w.t.Fatal(err)
	}
	s.config = &tls.Config{RootCAs: x509.NewCertPool()}
	s.config.RootCAs.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))

	cfg := userConfig()
	var l *braid.Listener
	w.ns.Must(func() (err error) {
		l, err = cfg.Listen(w.ctx, fmt.Sprintf(":%d", servicePort))
		return err
	})
	s.listener = &watchedListener{Listener: l}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(rw http.ResponseWriter, _ *http.Request) { rw.Write(data) })
	mux.HandleFunc("PUT /in", func(rw http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		io.WriteString(rw, digest(b))
	})
	server := &http.Server{Handler: mux, TLSConfig: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}}
	done := make(chan error, 1)
	go func() { done <- server.ServeTLS(s.listener, "", "") }()
	w.t.Cleanup(func() {
		server.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			w.t.Errorf("net/http: %v", err)
		}
	})
	return s
}

// toolWorld is a world without an Engine of its own: the TUN interfaces are made as "braid tun up" makes them, and whoever listens or dials opens them.
func toolWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, ns: netns.New(t, netns.MPTCP, netns.TUN)}
	w.ns.Sysctl("mptcp/enabled", "1")
	w.ns.Sysctl("mptcp/blackhole_timeout", "0")
	w.ns.IP("mptcp", "limits", "set", "subflows", "8", "add_addr_accepted", "8")
	var cancel context.CancelFunc
	w.ctx, cancel = context.WithTimeout(context.Background(), 2*patience)
	t.Cleanup(cancel)
	for i := 1; i <= 2; i++ {
		w.ns.Must(func() error {
			_, err := device.CreateTUN(device.TUNConfig{
				Name: fmt.Sprintf("tun%d", i), Kernel: []netip.Prefix{netip.PrefixFrom(kernel4(i), 24), netip.PrefixFrom(kernel6(i), 64)}, Own: []netip.Addr{own4(i), own6(i)},
			}, -1)
			return err
		})
	}
	return w
}

// userConfig uses both TUN interfaces.
func userConfig() braid.Config {
	return braid.Config{TUN: []string{fmt.Sprintf("tun1=%v,%v", own4(1), own6(1)), fmt.Sprintf("tun2=%v,%v", own4(2), own6(2))}, Watch: -1}
}

// run runs a program in the namespace and returns what it prints.
func (w *world) run(name string, args ...string) []byte {
	w.t.Helper()
	var out, complaints bytes.Buffer
	w.ns.Must(func() error {
		cmd := exec.CommandContext(w.ctx, name, args...)
		cmd.Stdout, cmd.Stderr = &out, &complaints
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s %v: %w: %s", name, args, err, complaints.Bytes())
		}
		return nil
	})
	return out.Bytes()
}

// wantPeers checks what the connections that were accepted since the last call were, by the kernel's counters and by ours, and that there was one at least.
func (l *watchedListener) wantPeers(w *world, multipath bool) {
	w.t.Helper()
	l.mu.Lock()
	conns := l.conns
	l.conns = nil
	l.mu.Unlock()
	if len(conns) == 0 {
		w.t.Error("no connection came")
	}
	want := mptcp.NoFallback
	if !multipath {
		want = mptcp.FallbackNotOffered
	}
	for _, c := range conns {
		if got := c.Info().Fallback; got != want {
			w.t.Errorf("fallback %v, want %v", got, want)
		}
	}
	if n := w.count("MPCapableSYNACKRX"); multipath && n == l.capable || !multipath && n != l.capable {
		w.t.Errorf("the kernel counts %d SYN/ACKs with MP_CAPABLE, %d before", n, l.capable)
	}
	l.capable = w.count("MPCapableSYNACKRX")
}

// TestCurl: curl, with the kernel's MPTCP (mptcpize) and with TCP, gets from and puts to net/http with TLS on a braid.Listener.
func TestCurl(t *testing.T) {
	needTool(t, "curl")
	needTool(t, "mptcpize")
	data := stream(16*mib, 51)
	w := toolWorld(t)
	site := newWebsite(w, data)
	file := filepath.Join(t.TempDir(), "upload")
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, addr := range []netip.Addr{own4(1), own6(1)} {
		url := fmt.Sprintf("https://%v/", netip.AddrPortFrom(addr, servicePort))
		for _, multipath := range []bool{true, false} {
			curl := []string{"curl", "-sS", "--fail", "--cacert", site.root}
			if multipath {
				curl = append([]string{"mptcpize", "run"}, curl...)
			}
			if got := w.run(curl[0], append(curl[1:], url)...); digest(got) != digest(data) {
				t.Errorf("%v, multipath %v: curl got %d other bytes", addr, multipath, len(got))
			}
			site.listener.wantPeers(w, multipath)
			if got := w.run(curl[0], append(curl[1:], "-T", file, url+"in")...); string(got) != digest(data) {
				t.Errorf("%v, multipath %v: curl put %s, want %s", addr, multipath, got, digest(data))
			}
			site.listener.wantPeers(w, multipath)
		}
	}
	if w.count("MPJoinSynAckRx") == 0 {
		t.Error("no connection of curl's had a second subflow")
	}
	w.calm("MPRstTx", "MPRstRx", "MPFastcloseTx", "MPFastcloseRx", "NoDSSInWindow") // curl closes with the server's end of the stream under way
}

// TestGoClient: a Go program's own sockets, MPTCP and plain, against net/http on a braid.Listener, several requests on one connection.
func TestGoClient(t *testing.T) {
	data := stream(4*mib, 52)
	w := toolWorld(t)
	site := newWebsite(w, data)
	for _, multipath := range []bool{true, false} {
		dialer := net.Dialer{}
		dialer.SetMultipathTCP(multipath)
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: site.config, DialContext: func(ctx context.Context, network, address string) (c net.Conn, err error) {
			err = w.ns.Do(func() (err error) {
				c, err = dialer.DialContext(ctx, network, address)
				return err
			})
			return c, err
		}}}
		for range 3 {
			get(t, client, fmt.Sprintf("https://%v:%d/", own4(1), servicePort), data)
		}
		if n := len(site.listener.conns); n != 1 {
			t.Errorf("%d connections for three requests", n)
		}
		site.listener.wantPeers(w, multipath)
		client.CloseIdleConnections()
	}
}

// TestGoServer is the other way round: net/http's client on braid against net/http on a listener of the kernel's, MPTCP and plain.
func TestGoServer(t *testing.T) {
	data := stream(4*mib, 53)
	for _, multipath := range []bool{true, false} {
		w := toolWorld(t)
		var conn *braid.Conn
		cfg := userConfig()
		client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			err := w.ns.Do(func() (err error) {
				conn, err = cfg.Dial(ctx, address)
				return err
			})
			return conn, err
		}}}
		l := w.kernelListen(kernel4(1), multipath)
		server := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.Write(data) })}
		go server.Serve(l)
		t.Cleanup(func() { server.Close() })
		for range 2 {
			get(t, client, fmt.Sprintf("http://%v:%d/", kernel4(1), servicePort), data)
		}
		want := mptcp.NoFallback
		if !multipath {
			want = mptcp.FallbackNotAnswered
		}
		if got := conn.Info().Fallback; got != want {
			t.Errorf("fallback %v, want %v", got, want)
		}
		if n := w.count("MPCapableACKRX"); (n == 1) != multipath {
			t.Errorf("the kernel counts %d third packets with MP_CAPABLE", n)
		}
		client.CloseIdleConnections()
		conn.Abort()
	}
}

// get fetches a page and compares it.
func get(t testing.TB, client *http.Client, url string, want []byte) {
	t.Helper()
	r, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	got, err := io.ReadAll(r.Body)
	if err != nil || digest(got) != digest(want) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}

// TestIperf: iperf3's client, with the kernel's MPTCP, through a relay on a braid.Listener to iperf3's server: two connections at once, one of which is as fast as
// it goes.
func TestIperf(t *testing.T) {
	needTool(t, "iperf3")
	needTool(t, "mptcpize")
	w := toolWorld(t)
	cfg := userConfig()
	var inner *braid.Listener
	w.ns.Must(func() (err error) {
		inner, err = cfg.Listen(w.ctx, fmt.Sprintf(":%d", servicePort))
		return err
	})
	l := &watchedListener{Listener: inner}
	t.Cleanup(func() { l.Close() })
	var server *exec.Cmd
	w.ns.Must(func() error {
		server = exec.CommandContext(w.ctx, "iperf3", "-s", "-1", "-B", "127.0.0.1")
		return server.Start()
	})
	go relay(w, l)
	var report struct {
		End struct {
			Received struct {
				Bytes int64 `json:"bytes"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	w.until("iperf3 listens", func() bool {
		return w.ns.Do(func() error {
			text, err := os.ReadFile("/proc/thread-self/net/tcp")
			if err == nil && !bytes.Contains(text, []byte("0100007F:1451")) { // 127.0.0.1:5201
				err = os.ErrNotExist
			}
			return err
		}) == nil
	})
	// What iperf3 sent when it stopped counting may still be in the relay.
	out := w.run("mptcpize", "run", "iperf3", "-c", own4(1).String(), "-p", fmt.Sprint(servicePort), "-n", "16M", "-J")
	if err := json.Unmarshal(out, &report); err != nil || report.End.Received.Bytes < 1<<20 {
		t.Errorf("iperf3 received %d bytes, %v: %.500s", report.End.Received.Bytes, err, out)
	}
	if err := server.Wait(); err != nil {
		t.Errorf("iperf3's server: %v", err)
	}
	l.wantPeers(w, true)
}

// relay connects every connection to iperf3's server and carries bytes both ways.
func relay(w *world, l *watchedListener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		var out net.Conn
		if err := w.ns.Do(func() (err error) {
			out, err = net.Dial("tcp", "127.0.0.1:5201")
			return err
		}); err != nil {
			c.(*braid.Conn).Abort()
			return
		}
		go func() {
			io.Copy(out, c)
			out.(*net.TCPConn).CloseWrite()
		}()
		go func() {
			io.Copy(c, out)
			c.(*braid.Conn).CloseWrite()
		}()
	}
}
