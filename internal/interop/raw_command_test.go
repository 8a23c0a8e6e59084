//go:build linux

package interop

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"braid"
	"braid/internal/netns"
)

// cables joins two machines by two cables.
func cables(t *testing.T, near, far *netns.Namespace) {
	t.Helper()
	for i := 1; i <= 2; i++ {
		near.Veth(far, fmt.Sprintf("veth%d", i), kernel4(i).String()+"/24", own4(i).String()+"/24")
	}
}

// TestRawFacade is what a server does with Config.Raw: it listens on all its addresses, and a client of the kernel's comes to the first, is told of
// the second and joins there. A client on the server's own machine comes too, over the loopback interface.
func TestRawFacade(t *testing.T) {
	near, far := netns.New(t, netns.MPTCP), netns.New(t, netns.MPTCP)
	for _, ns := range []*netns.Namespace{near, far} {
		ns.Sysctl("mptcp/enabled", "1")
		ns.Sysctl("mptcp/blackhole_timeout", "0")
		ns.IP("mptcp", "limits", "set", "subflows", "8", "add_addr_accepted", "8")
	}
	cables(t, near, far)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	w := &rawWorld{world: &world{t: t, ns: near, ctx: ctx}, own: far}
	var l *braid.Listener
	far.Must(func() (err error) {
		cfg := braid.Config{Raw: true, Watch: -1} // a later look would be from another namespace
		l, err = cfg.Listen(t.Context(), "0.0.0.0:5000")
		return err
	})
	defer l.Close()
	up, down := stream(16*mib, 40), stream(16*mib, 41)
	for _, from := range []struct {
		name string
		ns   *netns.Namespace
		to   netip.Addr
	}{{"from afar", near, own4(1)}, {"on the machine", far, own4(1)}, {"on the machine to localhost", far, netip.MustParseAddr("127.0.0.1")}} {
		var k net.Conn
		from.ns.Must(func() (err error) {
			d := net.Dialer{Timeout: patience}
			d.SetMultipathTCP(true)
			k, err = d.Dial("tcp", netip.AddrPortFrom(from.to, servicePort).String())
			return err
		})
		l.SetDeadline(time.Now().Add(patience))
		own, err := l.AcceptConn()
		if err != nil {
			t.Fatalf("%s: accept: %v", from.name, err)
		}
		p := w.pair(own, k)
		w.wantMPTCP(p)
		if from.ns == near {
			w.joined(p, "veth1", "veth2")
		}
		exchange(t, p, up, down)
	}
	w.silent()
}

// TestRawCommand sends a file with the program itself past both kernels, over two cables. The receiver is killed in the middle: nothing of it is left,
// its port is free, and the file goes on where it stopped.
func TestRawCommand(t *testing.T) {
	near, far := netns.New(t), netns.New(t)
	cables(t, near, far)
	dir := t.TempDir()
	binary := filepath.Join(dir, "braid")
	if out, err := exec.Command("go", "build", "-o", binary, "braid/cmd/braid").CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, out)
	}
	inbox, file := filepath.Join(dir, "inbox"), filepath.Join(dir, "file")
	if err := os.Mkdir(inbox, 0o755); err != nil {
		t.Fatal(err)
	}
	data := stream(64*mib, 42)
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
	receiver := func() *exec.Cmd {
		t.Helper()
		listening := &watchFor{text: "listening", seen: make(chan struct{})}
		cmd := exec.CommandContext(t.Context(), binary, "recv", "--listen", ":9000", "--dir", inbox, "--via", "raw")
		cmd.Stderr = listening
		far.Must(cmd.Start)
		select {
		case <-listening.seen:
		case <-time.After(patience):
			t.Fatal("braid recv does not listen")
		}
		return cmd
	}
	sender := func() (*exec.Cmd, *bytes.Buffer) {
		t.Helper()
		out := new(bytes.Buffer)
		cmd := exec.CommandContext(t.Context(), binary, "send", file, own4(1).String()+":9000", "--via", "raw", "--path", "veth1", "--path", "veth2", "--json")
		cmd.Stdout, cmd.Stderr = out, out
		near.Must(cmd.Start)
		return cmd, out
	}
	first := receiver()
	send, _ := sender()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	w := &rawWorld{world: &world{t: t, ns: near, ctx: ctx}, own: far}
	part := filepath.Join(inbox, "file.part")
	arrived := func() int64 {
		st, err := os.Stat(part)
		if err != nil {
			return 0
		}
		return st.Size()
	}
	w.until("the first bytes", func() bool { return arrived() > 0 })
	w.silent()
	first.Process.Kill()
	first.Wait()
	w.until("a RST: the machine's kernel has the port again", func() bool { return w.resets() > 0 })
	send.Process.Signal(os.Interrupt) // it would try to join again for a while
	if err := send.Wait(); err == nil {
		t.Error("the file was whole before the kill")
	}
	second := receiver()
	again, out := sender()
	if err := again.Wait(); err != nil {
		t.Fatalf("braid send: %v: %s", err, out)
	}
	got, err := os.ReadFile(filepath.Join(inbox, "file"))
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes arrived, %v", len(got), err)
	}
	second.Process.Signal(syscall.SIGTERM)
	if err := second.Wait(); err != nil {
		t.Errorf("braid recv after SIGTERM: %v", err)
	}
	far.Must(func() error { // nothing holds the port
		l, err := net.Listen("tcp", ":9000")
		if err == nil {
			l.Close()
		}
		return err
	})
}
