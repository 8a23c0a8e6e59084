package netns

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Namespace is a network namespace without a name: it vanishes with its last descriptor, whatever becomes of the test.
type Namespace struct {
	t  testing.TB
	fd int
}

// New makes a namespace whose loopback interface is up. It skips the test if the machine lacks something for it: root, iproute2 or one of the
// files that the test needs.
func New(t testing.TB, files ...string) *Namespace {
	t.Helper()
	Require(t, files...)
	n := &Namespace{t: t}
	made := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			n.fd, err = unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		}
		made <- err
	}()
	if err := <-made; err != nil {
		t.Fatalf("network namespace: %v", err)
	}
	t.Cleanup(func() { unix.Close(n.fd) })
	n.IP("link", "set", "lo", "up")
	return n
}

// Files that tests need.
const (
	MPTCP = "/proc/sys/net/mptcp/enabled" // a kernel that speaks MPTCP
	TUN   = "/dev/net/tun"
)

// Require skips the test if the machine lacks root, iproute2 or one of the files; with BRAID_INTEROP=require it fails instead.
func Require(t testing.TB, files ...string) {
	t.Helper()
	missing := ""
	if _, err := exec.LookPath("ip"); err != nil {
		missing = "iproute2"
	}
	if os.Geteuid() != 0 {
		missing = "root"
	}
	for _, f := range files {
		if _, err := os.Stat(f); err != nil {
			missing = f
		}
	}
	if missing == "" {
		return
	}
	if os.Getenv("BRAID_INTEROP") == "require" {
		t.Fatalf("needs %s", missing)
	}
	t.Skipf("needs %s", missing)
}

// Do runs f on a thread in the namespace. What f opens stays in it.
func (n *Namespace) Do(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if err := unix.Setns(n.fd, unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("enter the namespace: %w", err)
			return
		}
		done <- f()
	}()
	return <-done
}

// Must is Do for what a test cannot go on without.
func (n *Namespace) Must(f func() error) {
	n.t.Helper()
	if err := n.Do(f); err != nil {
		n.t.Fatal(err)
	}
}

// IP runs iproute2's ip.
func (n *Namespace) IP(args ...string) {
	n.t.Helper()
	n.Must(func() error {
		out, err := exec.Command("ip", args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
		}
		return nil
	})
}

// Sysctl sets net.<name>.
func (n *Namespace) Sysctl(name, value string) {
	n.t.Helper()
	n.Must(func() error { return os.WriteFile(filepath.Join("/proc/sys/net", name), []byte(value), 0o644) })
}

// Counters is ReadCounters in the namespace.
func (n *Namespace) Counters() (all map[string]int64) {
	n.t.Helper()
	n.Must(func() (err error) {
		all, err = ReadCounters()
		return err
	})
	return all
}

// ReadCounters returns the kernel's counters of TCP and MPTCP in the namespace of the calling thread: those of TcpExt under their names, those
// of MPTcpExt too, which say so in front.
func ReadCounters() (map[string]int64, error) {
	text, err := os.ReadFile("/proc/thread-self/net/netstat")
	if err != nil {
		return nil, err
	}
	all := map[string]int64{}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		names, values := strings.Fields(lines[i]), strings.Fields(lines[i+1])
		prefix := strings.TrimSuffix(names[0], ":")
		for j := 1; j < min(len(names), len(values)); j++ {
			v, err := strconv.ParseInt(values[j], 10, 64)
			if err != nil {
				return nil, err
			}
			if prefix == "MPTcpExt" {
				all["MPTcpExt"+names[j]] = v
			} else {
				all[names[j]] = v
			}
		}
	}
	return all, nil
}

// Veth joins two namespaces by a pair of virtual Ethernet interfaces of one name, each with an address.
func (n *Namespace) Veth(far *Namespace, name, address, farAddress string) {
	n.t.Helper()
	// The far end is made under a name of its own and moved by the descriptor of its namespace.
	n.IP("link", "add", name, "type", "veth", "peer", "name", name+"p")
	n.IP("link", "set", name+"p", "netns", fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), far.fd))
	far.IP("link", "set", name+"p", "name", name)
	n.IP("address", "add", address, "dev", name)
	far.IP("address", "add", farAddress, "dev", name)
	n.IP("link", "set", name, "up")
	far.IP("link", "set", name, "up")
}
