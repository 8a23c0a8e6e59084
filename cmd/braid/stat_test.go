package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"braid"
)

// A running bench is seen from another process: connections, subflows and counters; when it has ended, it is not, and neither is its socket.
func TestStatShowsRunningProcess(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	bench := braidCommand(t, "bench", "--loopback", "--paths", "2", "-t", "60", "-i", "0")
	var benchErrs bytes.Buffer
	bench.Stderr = &benchErrs
	if err := bench.Start(); err != nil {
		t.Fatal(err)
	}
	var all []braid.Status
	for deadline := time.Now().Add(20 * time.Second); ; {
		stdout, stderr, err := run(t, "stat", "--json")
		if err != nil {
			t.Fatalf("%v\n%s", err, stderr)
		}
		all = nil
		if err := json.Unmarshal([]byte(stdout), &all); err != nil {
			t.Fatal(err)
		}
		if len(all) == 1 && all[0].Counters["TcpCurrEstab"] == 4 && all[0].Counters["BraidDeliveredBytes"] > 1<<20 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s\n%s", stdout, benchErrs.String())
		}
	}
	st := all[0]
	if st.PID != bench.Process.Pid || !strings.Contains(st.Command, "bench --loopback") || len(st.Connections) != 2 || len(st.Connections[0].Subflows) != 2 {
		t.Errorf("%+v", st)
	}
	stdout, stderr, err := run(t, "stat", strconv.Itoa(st.PID), "--all")
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	for _, want := range []string{"subflow 0", "subflow 1", "srtt_ms", "pacing", "MPTCP", "MPTcpExtMPJoinSynTx                1\n", "MPTcpExtMPFailTx                   0\n"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	if err := bench.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	bench.Wait()
	if left, _ := filepath.Glob(filepath.Join(dir, "braid", "*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, stderr, err := run(t, "stat"); err == nil || !strings.Contains(stderr, "start a send, recv or bench") {
		t.Errorf("without a process: %v, %q", err, stderr)
	}
	if stdout, _, err := run(t, "stat", "--json"); err != nil || strings.TrimSpace(stdout) != "[]" {
		t.Errorf("without a process: %v, %q", err, stdout)
	}
}

// Where no socket can be made, the command says so and does its work.
func TestWorkWithoutMonitor(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "braid"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_RUNTIME_DIR", dir)
	stdout, stderr, err := run(t, "bench", "--loopback", "-t", "0.1", "--json")
	if err != nil || !strings.Contains(stderr, "braid stat will not see this process") || !json.Valid([]byte(stdout)) {
		t.Errorf("%v\n%s\n%s", err, stdout, stderr)
	}
}
