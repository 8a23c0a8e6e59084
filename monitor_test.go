package braid

import (
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// openMonitor opens a Monitor in a folder of the test's own.
func openMonitor(t *testing.T) (m *Monitor, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "braid")
	m, err := OpenMonitor(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m, dir
}

// What another process reads is what happened: connections and subflows while they are there, counters for ever.
func TestMonitor(t *testing.T) {
	m, dir := openMonitor(t)
	server, client := &Config{Monitor: m}, twoPaths()
	client.Monitor = m
	l := listen(t, server, "127.0.0.1:0")
	c, s := connect(t, client, l)
	if _, err := c.Write(make([]byte, 100_000)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(s, make([]byte, 100_000)); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for c.Info().Subflows == nil || len(c.Info().Subflows) < 2 || c.Info().Acked < 100_000 {
		if time.Now().After(deadline) {
			t.Fatalf("%+v", c.Info())
		}
		runtime.Gosched()
	}
	all, err := ReadStatuses(t.Context(), dir)
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	st := all[0]
	if st.PID != os.Getpid() || !strings.Contains(st.Command, filepath.Base(os.Args[0])) || len(st.Connections) != 2 || len(st.Listeners) != 1 {
		t.Fatalf("%+v", st)
	}
	for _, conn := range st.Connections {
		if conn.State != "open" || conn.Plain != "" || len(conn.Subflows) != 2 {
			t.Errorf("%+v", conn)
		}
		if conn.Client && (conn.AckedBytes != 100_000 || conn.Subflows[0].SentBytes+conn.Subflows[1].SentBytes < 100_000 || conn.Subflows[0].SRTT_ms <= 0 ||
			conn.Subflows[0].WindowBytes == 0 || conn.Subflows[0].Role == "") {
			t.Errorf("client: %+v", conn)
		}
		if !conn.Client && (conn.ReceivedBytes != 100_000 || conn.Local.Port() == 0) {
			t.Errorf("server: %+v", conn)
		}
	}
	want := map[string]int64{"TcpActiveOpens": 2, "TcpPassiveOpens": 2, "TcpCurrEstab": 4, "MPTcpExtMPCurrEstab": 2, "MPTcpExtMPJoinSynTx": 1, "MPTcpExtMPJoinAckRx": 1}
	for name, n := range want {
		if st.Counters[name] != n {
			t.Errorf("%s is %d, want %d", name, st.Counters[name], n)
		}
	}
	c.Engine().Close()
	l.Engine().Close()
	for { // the engines are counted out by goroutines of their own
		st = m.Status()
		if st.Counters["TcpCurrEstab"] == 0 && len(st.Connections) == 0 {
			break
		}
		runtime.Gosched()
	}
	if st.Counters["TcpActiveOpens"] != 2 || st.Counters["BraidReceivedBytes"] < 100_000 {
		t.Errorf("of the past: %v", st.Counters)
	}
}

// Only the user can open the folder and the socket, and what others could open is refused, with what to do about it.
func TestMonitorIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("permissions are another matter there")
	}
	m, dir := openMonitor(t)
	for path, want := range map[string]os.FileMode{dir: 0o700, m.Path(): 0o600} {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, st.Mode(), err)
		}
	}
	if _, err := OpenMonitor(dir); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("a second one: %v", err)
	}
	open := t.TempDir()
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenMonitor(open); err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("an open folder: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenMonitor(file); err == nil {
		t.Error("a file was taken for a folder")
	}
	if _, err := OpenMonitor(filepath.Join(t.TempDir(), strings.Repeat("long", 40))); err == nil || !strings.Contains(err.Error(), "XDG_RUNTIME_DIR") {
		t.Errorf("a long name: %v", err)
	}
}

// Sockets of processes that were killed are removed, by readers and by the next process; what is no socket stays.
func TestStaleSockets(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "braid")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	leave := func() string {
		l, err := net.Listen("unix", filepath.Join(dir, "999999.sock"))
		if err != nil {
			t.Fatal(err)
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		l.Close()
		return l.Addr().String()
	}
	other := filepath.Join(dir, "1.sock")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	path := leave()
	if all, err := ReadStatuses(t.Context(), dir); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("a reader left the socket there")
	}
	path = leave()
	m, err := OpenMonitor(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("a Monitor left the socket there")
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(m.Path()); err == nil {
		t.Error("Close left its socket there")
	}
	if _, err := os.Lstat(other); err != nil {
		t.Error("a file was removed that is no socket")
	}
	if all, err := ReadStatuses(t.Context(), filepath.Join(dir, "nowhere")); err != nil || all != nil {
		t.Errorf("no folder: %v, %v", all, err)
	}
}

// A process that answers nonsense is told by name, the others are shown.
func TestStatusOfTheUnable(t *testing.T) {
	_, dir := openMonitor(t)
	l, err := net.Listen("unix", filepath.Join(dir, "999999.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			io.WriteString(c, "what?")
			c.Close()
		}
	}()
	all, err := ReadStatuses(t.Context(), dir)
	if len(all) != 1 || err == nil || !strings.Contains(err.Error(), "999999") {
		t.Errorf("%v, %v", all, err)
	}
}

// Close does not wait for a reader that reads nothing.
func TestMonitorCloseEndsReaders(t *testing.T) {
	m, _ := openMonitor(t)
	c, err := net.Dial("unix", m.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	begun := time.Now()
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if d := time.Since(begun); d > socketPatient/2 {
		t.Errorf("it took %v", d)
	}
}

// A Status passes JSON unharmed.
func TestStatusJSON(t *testing.T) {
	in := Status{PID: 7, Command: "x", Counters: map[string]int64{"TcpInSegs": 1}, Connections: []ConnStatus{{State: "open", Subflows: []SubflowStatus{{Role: "R"}}}}}
	b, err := json.Marshal(&in)
	if err != nil {
		t.Fatal(err)
	}
	var out Status
	if err := json.Unmarshal(b, &out); err != nil || out.Connections[0].Subflows[0].Role != "R" || out.Counters["TcpInSegs"] != 1 {
		t.Errorf("%+v, %v", out, err)
	}
}
