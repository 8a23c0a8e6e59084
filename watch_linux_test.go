package braid

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"braid/internal/netns"
	"braid/mptcp"
)

func init() { testChild = echoChild }

// echoChild connects to $BRAID_TEST_CHILD, over the TUN interfaces in $BRAID_TEST_TUN if there are any, and sends back what it gets. It is never to look by
// itself whether interfaces have come or gone: the kernel has to tell.
func echoChild() {
	cfg := &Config{Watch: time.Hour, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	if tun := os.Getenv("BRAID_TEST_TUN"); tun != "" {
		cfg.TUN = strings.Fields(tun)
	}
	c, err := cfg.Dial(context.Background(), os.Getenv("BRAID_TEST_CHILD"))
	if err == nil {
		_, err = io.Copy(c, c)
		c.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// echo is a server in this process, and a client that sends back what it gets in another one.
type echo struct {
	t      *testing.T
	server *Conn
	engine interface{ Counters() mptcp.Counters }
	child  *exec.Cmd
	log    bytes.Buffer
}

// newEcho starts both, each in its namespace.
func newEcho(t *testing.T, near, far *netns.Namespace, server *Config, listenAt, dial, tun string) *echo {
	t.Helper()
	e := &echo{t: t}
	var l *Listener
	far.Must(func() (err error) {
		l, err = server.Listen(t.Context(), listenAt)
		return err
	})
	t.Cleanup(func() { l.Engine().Close() })
	e.engine = l.Engine()
	e.child = exec.CommandContext(t.Context(), os.Args[0])
	e.child.Env = append(os.Environ(), "BRAID_TEST_CHILD="+dial, "BRAID_TEST_TUN="+tun)
	e.child.Stderr = &e.log
	near.Must(e.child.Start)
	t.Cleanup(func() {
		e.child.Process.Kill()
		e.child.Wait()
		if t.Failed() {
			t.Logf("the client says:\n%s", e.log.String())
		}
	})
	l.SetDeadline(time.Now().Add(20 * time.Second))
	c, err := l.AcceptConn()
	if err != nil {
		t.Fatal(err)
	}
	e.server = c
	return e
}

// works sends something to the client and waits for it to come back.
func (e *echo) works(what string) {
	e.t.Helper()
	e.server.SetDeadline(time.Now().Add(20 * time.Second))
	out, in := []byte(what), make([]byte, len(what))
	if _, err := e.server.Write(out); err != nil {
		e.t.Fatalf("%s: %v", what, err)
	}
	if _, err := io.ReadFull(e.server, in); err != nil || !bytes.Equal(in, out) {
		e.t.Fatalf("%s: %q comes back, %v", what, in, err)
	}
}

// within waits for something that the other process does.
func (e *echo) within(d time.Duration, what string, done func() bool) {
	e.t.Helper()
	begun := time.Now()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		if time.Since(begun) > d {
			e.t.Fatalf("%s: not after %v: %+v", what, d, e.server.Info().Subflows)
		}
		<-tick.C
	}
	e.t.Logf("%s: after %v", what, time.Since(begun).Round(time.Millisecond))
}

// subflowsFrom counts the subflows that come from an address.
func (e *echo) subflowsFrom(address string) int {
	n := 0
	for _, sf := range e.server.Info().Subflows {
		if sf.Remote.Addr().Unmap().String() == address && sf.State == "active" {
			n++
		}
	}
	return n
}

// The kernel tells that an interface appears, that its address goes and that it is back: a subflow joins over it, REMOVE_ADDR takes it away (RFC 8684, Section 3.4.2),
// and it joins again, without anybody looking.
func TestKernelTellsOfInterfaces(t *testing.T) {
	near, far := netns.New(t), netns.New(t)
	far.IP("address", "add", "10.9.0.1/32", "dev", "lo")
	far.Sysctl("ipv4/conf/all/rp_filter", "0")
	far.Sysctl("ipv4/conf/default/rp_filter", "0")
	near.Veth(far, "v0", "10.1.0.1/24", "10.1.0.2/24")
	near.IP("route", "add", "10.9.0.1", "via", "10.1.0.2", "dev", "v0")
	e := newEcho(t, near, far, &Config{}, "0.0.0.0:4443", "10.9.0.1:4443", "")
	e.works("over one interface")

	near.Veth(far, "v1", "10.2.0.1/24", "10.2.0.2/24")
	near.IP("route", "add", "10.9.0.1", "via", "10.2.0.2", "dev", "v1", "metric", "5")
	e.within(10*time.Second, "the interface appears", func() bool { return e.subflowsFrom("10.2.0.1") == 1 })
	e.works("over two interfaces")

	removed := e.engine.Counters().RemoveAddrsReceived
	near.IP("address", "del", "10.2.0.1/24", "dev", "v1")
	e.within(10*time.Second, "the address goes", func() bool {
		return e.subflowsFrom("10.2.0.1") == 0 && e.engine.Counters().RemoveAddrsReceived > removed
	})
	e.works("over the other one")

	near.IP("address", "add", "10.2.0.1/24", "dev", "v1")
	near.IP("route", "add", "10.9.0.1", "via", "10.2.0.2", "dev", "v1", "metric", "5")
	e.within(10*time.Second, "the address is back", func() bool { return e.subflowsFrom("10.2.0.1") == 1 })

	// The connection lives on over what came later.
	near.IP("link", "del", "v0")
	e.within(10*time.Second, "the first interface goes", func() bool { return e.subflowsFrom("10.1.0.1") == 0 })
	e.works("over the second interface")
}

// A TUN interface that is removed and made anew is opened again, and the connection goes on over it.
func TestTUNComesBack(t *testing.T) {
	near := netns.New(t, netns.TUN)
	near.Sysctl("ipv4/ip_forward", "1")
	remake := func() {
		t.Helper()
		near.IP("tuntap", "add", "dev", "braid9", "mode", "tun", "vnet_hdr")
		near.IP("address", "add", "10.77.0.1/24", "dev", "braid9")
		near.IP("link", "set", "braid9", "up")
	}
	server := &Config{TUN: []string{"braid8=10.78.0.2"}}
	near.IP("tuntap", "add", "dev", "braid8", "mode", "tun", "vnet_hdr")
	near.IP("address", "add", "10.78.0.1/24", "dev", "braid8")
	near.IP("link", "set", "braid8", "up")
	remake()
	e := newEcho(t, near, near, server, "10.78.0.2:4443", "10.78.0.2:4443", "braid9=10.77.0.2")
	e.works("before")
	var joins int64
	for range 2 {
		near.IP("link", "del", "braid9")
		remake()
		joins++
		e.within(10*time.Second, "a subflow over the new one", func() bool { return e.engine.Counters().JoinsReceivedUp == joins })
		e.works("after it was removed and made anew")
	}
}
