package braid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The protocol of the socket: whoever connects gets one Status as JSON, and the connection is closed. Nothing is read.
const (
	socketSuffix  = ".sock"
	socketPatient = 5 * time.Second // how long a reader may take
	statusLimit   = 64 << 20        // bytes of a Status that are read
	longestSocket = 100             // bytes of a name that every system takes
)

// MonitorDir is where the sockets of this user's processes are: "braid" in $XDG_RUNTIME_DIR, or else in the folder for temporary files under a name
// with the user's number.
func MonitorDir() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "braid")
	}
	return filepath.Join(os.TempDir(), "braid-"+userName())
}

// OpenMonitor makes a Monitor that answers on a socket PID.sock in dir, MonitorDir() if dir is empty. The folder is made if it is missing; it
// must belong to this user and be closed to others. Sockets that processes have left behind are removed.
func OpenMonitor(dir string) (*Monitor, error) {
	if dir == "" {
		dir = MonitorDir()
	}
	if err := privateDir(dir); err != nil {
		return nil, fmt.Errorf("monitor: %w", err)
	}
	removeStale(dir)
	path := filepath.Join(dir, strconv.Itoa(os.Getpid())+socketSuffix)
	l, err := net.Listen("unix", path)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("monitor: this process has one at %s already: use that one, or close it first", path)
	case err != nil && len(path) > longestSocket:
		return nil, fmt.Errorf("monitor: %s is too long a name for a socket: set XDG_RUNTIME_DIR to a shorter one (%w)", path, err)
	case err != nil:
		return nil, fmt.Errorf("monitor: cannot listen at %s: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil { // the folder keeps others out meanwhile
		l.Close()
		return nil, fmt.Errorf("monitor: %w", err)
	}
	m := &Monitor{started: time.Now(), socket: l, path: path, past: make(map[string]int64), clients: make(map[net.Conn]struct{})}
	m.serving.Go(m.serve)
	return m, nil
}

// Path is where the socket stands.
func (m *Monitor) Path() string { return m.path }

// Close ends answering and removes the socket. Counting goes on.
func (m *Monitor) Close() error {
	m.mu.Lock()
	m.closed = true
	for c := range m.clients {
		c.Close()
	}
	m.mu.Unlock()
	err := m.socket.Close()
	m.serving.Wait()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	return err
}

// serve answers until the socket is closed.
func (m *Monitor) serve() {
	for {
		c, err := m.socket.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of descriptors, for one
			time.Sleep(100 * time.Millisecond)
			continue
		}
		if !m.enter(c) {
			c.Close()
			return
		}
		m.serving.Go(func() {
			defer m.leave(c)
			c.SetDeadline(time.Now().Add(socketPatient))
			json.NewEncoder(c).Encode(m.Status()) // a reader that went away misses it
		})
	}
}

// enter lets Close find a reader.
func (m *Monitor) enter(c net.Conn) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.clients[c] = struct{}{}
	return true
}

func (m *Monitor) leave(c net.Conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.clients, c)
	c.Close()
}

// privateDir makes sure that dir exists and that nobody else can put or open anything in it.
func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the folder for sockets: %w", err)
	}
	st, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !st.IsDir():
		return fmt.Errorf("%s is no folder: remove it, or set XDG_RUNTIME_DIR", dir)
	}
	return onlyOurs(dir, st)
}

// sockets lists the sockets in dir with the processes that they are named after. A folder that is not there has none.
func sockets(dir string) (map[int]string, error) {
	all, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := make(map[int]string)
	for _, f := range all {
		name, ok := strings.CutSuffix(f.Name(), socketSuffix)
		if pid, err := strconv.Atoi(name); ok && err == nil && f.Type()&os.ModeSocket != 0 {
			found[pid] = filepath.Join(dir, f.Name())
		}
	}
	return found, nil
}

// stale reports whether nobody listens at a socket any more.
func stale(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// removeStale removes the sockets that processes have left behind.
func removeStale(dir string) {
	all, err := sockets(dir)
	if err != nil {
		return // listening will tell
	}
	for _, path := range all {
		c, err := net.DialTimeout("unix", path, socketPatient)
		if err == nil {
			c.Close()
		} else if stale(err) {
			os.Remove(path)
		}
	}
}

// ReadStatuses asks all processes that have a Monitor in dir, MonitorDir() if it is empty, in the order of their numbers. Processes that do not answer
// are left out and told by the error; sockets of those that are gone are removed.
func ReadStatuses(ctx context.Context, dir string) ([]Status, error) {
	if dir == "" {
		dir = MonitorDir()
		if st, err := os.Lstat(dir); err == nil {
			if err := onlyOurs(dir, st); err != nil {
				return nil, err
			}
		}
	}
	paths, err := sockets(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot look for processes in %s: %w", dir, err)
	}
	var all []Status
	var errs []error
	for pid, path := range paths {
		st, err := readStatus(ctx, path)
		switch {
		case err == nil:
			all = append(all, st)
		case stale(err):
			os.Remove(path)
		case !errors.Is(err, os.ErrNotExist): // it ended meanwhile
			errs = append(errs, fmt.Errorf("process %d does not answer at %s: %w", pid, path, err))
		}
	}
	slices.SortFunc(all, func(a, b Status) int { return a.PID - b.PID })
	return all, errors.Join(errs...)
}

// readStatus asks one process.
func readStatus(ctx context.Context, path string) (st Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, socketPatient)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return st, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	err = json.NewDecoder(io.LimitReader(c, statusLimit)).Decode(&st)
	return st, err
}
