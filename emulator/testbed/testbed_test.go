//go:build linux

package testbed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"braid/emulator"
	"braid/internal/netns"
	"braid/link"
)

const patience = 20 * time.Second

// open makes a Testbed with a Bridge of one link each way a path: 20 ms there, 30 ms back.
func open(t *testing.T, cfg Config) (*Testbed, *emulator.Bridge) {
	t.Helper()
	netns.Require(t, netns.TUN)
	tb, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tb.Close(); err != nil {
			t.Error(err)
		}
	})
	bc := emulator.BridgeConfig{Seed: 1}
	for i, name := range cfg.Paths {
		bc.Links = append(bc.Links, emulator.NamedLink{Name: name + "/up", Spec: link.Spec{RateMbps: 100, DelayMs: 20, RTTMs: 50}},
			emulator.NamedLink{Name: name + "/down", Spec: link.Spec{RateMbps: 100, DelayMs: 30, RTTMs: 50}})
		bc.Paths = append(bc.Paths, emulator.BridgePath{Name: name, Client: tb.ClientEnd[i], Server: tb.ServerEnd[i], Forward: []int{2 * i}, Reverse: []int{2*i + 1}})
	}
	b, err := emulator.OpenBridge(bc)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return tb, b
}

// connect dials from the client to the server with the kernel's stack.
func connect(t *testing.T, tb *Testbed, from, to netip.Addr) (client, server *net.TCPConn) {
	t.Helper()
	var l net.Listener
	err := tb.Server.Do(func() (err error) {
		l, err = net.Listen("tcp", netip.AddrPortFrom(to, 0).String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() }) // open until then: a join finds its connection by the listener
	err = tb.Client.Do(func() error {
		d := net.Dialer{Timeout: patience, LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
		d.SetMultipathTCP(true)
		c, err := d.Dial("tcp", l.Addr().String())
		if err == nil {
			client = c.(*net.TCPConn)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	server = c.(*net.TCPConn)
	t.Cleanup(func() { server.Close() })
	client.SetDeadline(time.Now().Add(patience))
	server.SetDeadline(time.Now().Add(patience))
	return client, server
}

// Every path has its delay in both families, by the address that a program binds to, whichever of the server's addresses it goes to.
func TestPaths(t *testing.T) {
	tb, b := open(t, Config{Paths: []string{"wifi", "lte"}, Unnamed: true})
	for _, c := range [][2]netip.Addr{
		{ClientAt(1), ServerAddr}, {ClientAt(2), ServerAddr}, {ClientAt(2), ServerAt(2)}, {ClientAt6(1), ServerAddr6}, {ClientAt6(2), ServerAddr6},
	} {
		before := b.Report()
		began := time.Now()
		connect(t, tb, c[0], c[1])
		if took := time.Since(began); took < 50*time.Millisecond {
			t.Errorf("from %v to %v: connected in %v; the path's round trip is 50ms", c[0], c[1], took)
		}
		path := 1
		if c[0] == ClientAt(2) || c[0] == ClientAt6(2) {
			path = 2
		}
		after := b.Report()
		if n := after.Links[2*path-2].Delivered - before.Links[2*path-2].Delivered; n < 2 {
			t.Errorf("from %v to %v: path %d delivered %d packets", c[0], c[1], path, n)
		}
	}
	r := b.Report()
	if r.Dropped != 0 || r.Gone != nil || tb.Lost() != 0 {
		t.Errorf("the machine dropped %d and %d packets; %v", r.Dropped, tb.Lost(), r.Gone)
	}
	t.Logf("lateness: p50 %v, p99 %v, most %v", r.Lateness.Quantile(0.5), r.Lateness.Quantile(0.99), r.Lateness.Max())
}

// A large transfer crosses in packets of the MTU, and the kernel's MPTCP uses both paths.
func TestTransfer(t *testing.T) {
	netns.Require(t, netns.MPTCP)
	tb, b := open(t, Config{Paths: []string{"one", "two"}, Unnamed: true})
	client, server := connect(t, tb, ClientAt(1), ServerAddr)
	data := bytes.Repeat([]byte("0123456789abcdef"), 12<<20/16)
	sent := make(chan error, 1)
	go func() {
		_, err := client.Write(data)
		sent <- errors.Join(err, client.CloseWrite())
	}()
	got, err := io.ReadAll(server)
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d of %d bytes arrived: %v", len(got), len(data), err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	r := b.Report()
	for i, l := range []int{0, 2} {
		c := r.Links[l]
		if c.DeliveredBytes < int64(len(data)/10) || c.DeliveredBytes/c.Delivered > 1500 || c.DropsMTU > 0 {
			t.Errorf("path %d carried %d bytes in %d packets", i+1, c.DeliveredBytes, c.Delivered)
		}
	}
}

// Namespaces with names can be entered by name, and vanish with Close; those of a dead process with the next Open.
func TestNames(t *testing.T) {
	netns.Require(t, netns.TUN)
	stale, err := newNamespace(fmt.Sprintf(namePattern, 1<<30, "client")) // no process has that number
	if err != nil {
		t.Fatal(err)
	}
	tb, err := Open(Config{Paths: []string{"p"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(netnsDir, stale.Name())); !os.IsNotExist(err) {
		t.Errorf("what a dead process left behind is still there: %v", err)
	}
	name := tb.Client.Name()
	if out, err := exec.CommandContext(context.Background(), "ip", "netns", "exec", name, "ip", "address", "show", "dev", "p").CombinedOutput(); err != nil || !bytes.Contains(out, []byte(ClientAt(1).String())) {
		t.Errorf("ip netns exec %s: %v: %s", name, err, out)
	}
	tb.closeEnds()
	if err := tb.Close(); err != nil {
		t.Error(err)
	}
	for _, side := range []string{"client", "server"} {
		if _, err := os.Stat(filepath.Join(netnsDir, fmt.Sprintf(namePattern, os.Getpid(), side))); !os.IsNotExist(err) {
			t.Errorf("%s: still there: %v", side, err)
		}
	}
}

// Existing namespaces are left as they were.
func TestExisting(t *testing.T) {
	netns.Require(t, netns.TUN)
	rules := func(n *Namespace) (out []byte) {
		n.Do(func() (err error) {
			out, err = exec.Command("ip", "rule").CombinedOutput()
			return err
		})
		return out
	}
	var names []string
	var before [][]byte
	for _, side := range []string{"a", "b"} {
		n, err := newNamespace(fmt.Sprintf("braidtest-%d-%s", os.Getpid(), side))
		if err != nil {
			t.Fatal(err)
		}
		defer n.close()
		names, before = append(names, n.Name()), append(before, rules(n))
	}
	for range 2 {
		tb, err := Open(Config{Paths: []string{"p", "q"}, Client: names[0], Server: filepath.Join(netnsDir, names[1])})
		if err != nil {
			t.Fatal(err)
		}
		tb.closeEnds()
		if err := tb.Close(); err != nil {
			t.Error(err)
		}
	}
	for i, name := range names {
		n, err := openNamespace(name)
		if err != nil {
			t.Fatal(err)
		}
		if after := rules(n); !bytes.Equal(after, before[i]) {
			t.Errorf("rules before:\n%s\nafter:\n%s", before[i], after)
		}
		n.close()
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []Config{
		{}, {Paths: []string{"a", "a"}}, {Paths: []string{"lo"}}, {Paths: []string{"a path"}}, {Paths: []string{"0123456789abcdef"}},
		{Paths: make([]string, 9)}, {Paths: []string{"a"}, MTU: 100},
	} {
		if c.Check() == nil {
			t.Errorf("%+v was taken", c)
		}
	}
}
