//go:build linux

package interop

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"braid/internal/netns"
)

// TestCommand sends a file with the program itself: two braids behind two TUN interfaces each, the kernel routing between them.
func TestCommand(t *testing.T) {
	ns := netns.New(t, netns.TUN)
	dir := t.TempDir()
	binary := filepath.Join(dir, "braid")
	if out, err := exec.Command("go", "build", "-o", binary, "braid/cmd/braid").CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, out)
	}
	run := func(args ...string) {
		t.Helper()
		ns.Must(func() error {
			if out, err := exec.CommandContext(t.Context(), binary, args...).CombinedOutput(); err != nil {
				return fmt.Errorf("braid %s: %w: %s", strings.Join(args, " "), err, out)
			}
			return nil
		})
	}
	for i := 1; i <= 4; i++ {
		run("tun", "up", fmt.Sprintf("braid%d", i), "--addr", kernel4(i).String()+"/24", "--peer", own4(i).String())
	}
	ns.Sysctl("ipv4/ip_forward", "1")

	inbox := filepath.Join(dir, "inbox")
	if err := os.Mkdir(inbox, 0o755); err != nil {
		t.Fatal(err)
	}
	data := stream(16*mib, 20)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
	var server *exec.Cmd
	listening := &watchFor{text: "listening", seen: make(chan struct{})}
	ns.Must(func() error {
		server = exec.CommandContext(t.Context(), binary, "recv", "--listen", "10.1.0.2:9000", "--dir", inbox, "--once",
			"--via", "tun", "--tun", "braid1=10.1.0.2", "--tun", "braid2=10.2.0.2")
		server.Stderr = listening
		return server.Start()
	})
	select {
	case <-listening.seen:
	case <-time.After(patience):
		t.Fatal("braid recv does not listen")
	}
	run("send", file, "10.1.0.2:9000", "--via", "tun", "--tun", "braid3=10.3.0.2", "--tun", "braid4=10.4.0.2", "--json")
	if err := server.Wait(); err != nil {
		t.Fatalf("braid recv: %v", err)
	}
	got, err := os.ReadFile(filepath.Join(inbox, "file"))
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes arrived, %v", len(got), err)
	}
	for i := 1; i <= 4; i++ {
		run("tun", "down", fmt.Sprintf("braid%d", i))
	}
}

// watchFor closes seen when text has been written to it.
type watchFor struct {
	text string
	all  bytes.Buffer
	seen chan struct{}
}

func (w *watchFor) Write(b []byte) (int, error) {
	before := strings.Contains(w.all.String(), w.text)
	w.all.Write(b)
	if !before && strings.Contains(w.all.String(), w.text) {
		close(w.seen)
	}
	return len(b), nil
}
