package testbed

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Namespace is a network namespace.
type Namespace struct {
	fd   int
	name string // of its file in netnsDir, if it has one
	made bool   // the file is ours
}

const (
	netnsDir    = "/run/netns" // where iproute2 keeps its namespaces
	ownNetns    = "/proc/thread-self/ns/net"
	namePattern = "braid-%d-%s" // process number, side
)

// newNamespace makes a namespace, with a file in netnsDir if name is not empty.
func newNamespace(name string) (*Namespace, error) {
	n := &Namespace{name: name}
	made := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		err := os.NewSyscallError("unshare", unix.Unshare(unix.CLONE_NEWNET))
		if err == nil {
			n.fd, err = unix.Open(ownNetns, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		}
		if err == nil && name != "" {
			err = n.publish()
		}
		made <- err
	}()
	if err := <-made; err != nil {
		if errors.Is(err, unix.EPERM) {
			err = fmt.Errorf("%w: it takes root", err)
		}
		return nil, fmt.Errorf("testbed: network namespace: %w", err)
	}
	return n, nil
}

// publish gives the namespace of the calling thread its name.
func (n *Namespace) publish() error {
	if err := os.MkdirAll(netnsDir, 0o755); err != nil {
		return err
	}
	file := filepath.Join(netnsDir, n.name)
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	f.Close()
	n.made = true
	if err := unix.Mount(ownNetns, file, "none", unix.MS_BIND, ""); err != nil {
		os.Remove(file)
		return fmt.Errorf("mount on %s: %w", file, err)
	}
	return nil
}

// openNamespace opens an existing namespace, by iproute2's name for it or by its file.
func openNamespace(name string) (*Namespace, error) {
	file := name
	if !strings.Contains(name, "/") {
		file = filepath.Join(netnsDir, name)
	}
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("testbed: namespace %q: %w", name, err)
	}
	return &Namespace{fd: fd, name: name}, nil
}

// Name is what "ip netns exec" knows the namespace by; empty if it has no name.
func (n *Namespace) Name() string { return n.name }

func (n *Namespace) close() error {
	err := unix.Close(n.fd)
	if n.made {
		err = errors.Join(err, unpublish(n.name))
	}
	return err
}

// unpublish removes a namespace's file.
func unpublish(name string) error {
	file := filepath.Join(netnsDir, name)
	err := unix.Unmount(file, unix.MNT_DETACH)
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) { // EINVAL: nothing is mounted there
		return fmt.Errorf("testbed: unmount %s: %w", file, err)
	}
	if err := os.Remove(file); !errors.Is(err, os.ErrNotExist) { // another process may have been faster
		return err
	}
	return nil
}

// removeStale removes the names of namespaces whose process is no more.
func removeStale() error {
	files, err := os.ReadDir(netnsDir)
	if err != nil {
		return nil // there are none
	}
	var errs []error
	for _, f := range files {
		var pid int
		var side string
		if n, _ := fmt.Sscanf(f.Name(), namePattern, &pid, &side); n != 2 || alive(pid) {
			continue
		}
		errs = append(errs, unpublish(f.Name()))
	}
	return errors.Join(errs...)
}

// alive reports whether there is a process of that number.
func alive(pid int) bool {
	_, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid)))
	return err == nil
}

// Do runs f on a thread in the namespace. What f opens stays in it.
func (n *Namespace) Do(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if err := unix.Setns(n.fd, unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("testbed: enter the namespace: %w", err)
			return
		}
		done <- f()
	}()
	return <-done
}

// Start starts a command in the namespace.
func (n *Namespace) Start(c *exec.Cmd) error { return n.Do(c.Start) }

// ip runs iproute2's ip with commands; those that begin with -6 after the others, of which a batch has only one family.
func (n *Namespace) ip(commands []string, options ...string) error {
	var batches [2]string
	for _, c := range commands {
		if six, ok := strings.CutPrefix(c, "-6 "); ok {
			batches[1] += six + "\n"
		} else {
			batches[0] += c + "\n"
		}
	}
	return n.Do(func() error {
		for i, family := range []string{"-4", "-6"} {
			if batches[i] == "" {
				continue
			}
			c := exec.Command("ip", append([]string{family, "-batch", "-"}, options...)...)
			c.Stdin = strings.NewReader(batches[i])
			out, err := c.CombinedOutput()
			if errors.Is(err, exec.ErrNotFound) {
				return fmt.Errorf("testbed: %w: install iproute2", err)
			}
			if err != nil && !slices.Contains(options, "-force") {
				return fmt.Errorf("testbed: ip: %w: %s", err, bytes.TrimSpace(out))
			}
		}
		return nil
	})
}

// sysctl sets net.<name> in the namespace.
func (n *Namespace) sysctl(name, value string) error {
	return n.Do(func() error { return os.WriteFile(filepath.Join("/proc/sys/net", name), []byte(value), 0o644) })
}

// Listens reports whether some program of the namespace waits for TCP connections or has a UDP socket bound.
func (n *Namespace) Listens() (found bool) {
	_ = n.Do(func() error {
		for _, table := range []struct{ file, state string }{{"tcp", "0A"}, {"tcp6", "0A"}, {"udp", "07"}, {"udp6", "07"}} {
			text, err := os.ReadFile("/proc/thread-self/net/" + table.file)
			if err != nil {
				continue // no IPv6
			}
			for _, line := range strings.Split(string(text), "\n")[1:] {
				if f := strings.Fields(line); len(f) > 3 && f[3] == table.state {
					found = true
				}
			}
		}
		return nil
	})
	return found
}

// dropped counts the packets that an interface of the namespace dropped on their way to us.
func (n *Namespace) dropped(names []string) (count int64) {
	_ = n.Do(func() error {
		text, err := os.ReadFile("/proc/thread-self/net/dev")
		for _, line := range strings.Split(string(text), "\n") {
			name, values, _ := strings.Cut(strings.TrimSpace(line), ":")
			for _, own := range names {
				if f := strings.Fields(values); name == own && len(f) > 11 {
					v, _ := strconv.ParseInt(f[11], 10, 64) // transmit: bytes, packets, errors, drop
					count += v
				}
			}
		}
		return err
	})
	return count
}
