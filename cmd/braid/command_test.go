package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary be the command, so that tests run it as people do.
func TestMain(m *testing.M) {
	if os.Getenv("BRAID_TEST_RUN") == "1" {
		main()
		return
	}
	os.Exit(m.Run())
}

// braidCommand prepares a run of the command.
func braidCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], args...)
	c.Env = append(os.Environ(), "BRAID_TEST_RUN=1")
	return c
}

// run runs the command to its end.
func run(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	c := braidCommand(t, args...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err = c.Run()
	return out.String(), errs.String(), err
}

// A wrong word names the field and what it may be; nothing is opened before.
func TestBadFlagsNameTheField(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"send", file, "127.0.0.1:9", "--cc", "warp"}, []string{"--cc", "warp", "cubic"}},
		{[]string{"send", file, "127.0.0.1:9", "--scheduler", "warp"}, []string{"--scheduler", "warp", "minrtt"}},
		{[]string{"send", file + "-missing", "127.0.0.1:9"}, []string{"file-missing"}},
		{[]string{"send", file, "127.0.0.1:9", "--path", "nowhere0"}, []string{"nowhere0"}},
		{[]string{"bench"}, []string{"--server", "--loopback"}},
		{[]string{"bench", "--loopback", "--time", "0"}, []string{"--time"}},
		{[]string{"bench", "--loopback", "--paths", "9"}, []string{"--paths", "1 to 8"}},
		{[]string{"bench", "--loopback", "--mtu", "100"}, []string{"--mtu", "1280"}},
		{[]string{"sim", file}, []string{"file"}},
	} {
		_, stderr, err := run(t, c.args...)
		if err == nil {
			t.Errorf("%v was accepted", c.args)
		}
		for _, w := range c.want {
			if !strings.Contains(stderr, w) {
				t.Errorf("%v says %q, which lacks %q", c.args, stderr, w)
			}
		}
	}
}

func TestBenchLoopback(t *testing.T) {
	for _, args := range [][]string{{"--paths", "2"}, {"-R", "-P", "2"}} {
		stdout, stderr, err := run(t, append([]string{"bench", "--loopback", "-t", "0.3", "--json"}, args...)...)
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, stderr)
		}
		var r benchResult
		if err := json.Unmarshal([]byte(stdout), &r); err != nil {
			t.Fatalf("%v in %s", err, stdout)
		}
		if r.Bytes == 0 || r.Rate_mbps == 0 || !r.BothEnds || len(r.Conns) == 0 {
			t.Errorf("%v: %+v", args, r)
		}
	}
}

func TestSimOfTheExamples(t *testing.T) {
	files, err := filepath.Glob("../../examples/*.toml")
	if err != nil || len(files) == 0 {
		t.Fatal("no examples", err)
	}
	if testing.Short() {
		files = files[:1]
	}
	dir := t.TempDir()
	for _, f := range files {
		stdout, stderr, err := run(t, "sim", f, "--json", "--plot", filepath.Join(dir, "p.svg"))
		if err != nil {
			t.Errorf("%s: %v\n%s", f, err, stderr)
			continue
		}
		var r struct {
			Flows []struct {
				Goodput float64 `json:"goodput_mbps"`
			}
		}
		if err := json.Unmarshal([]byte(stdout), &r); err != nil || len(r.Flows) == 0 || r.Flows[0].Goodput <= 0 {
			t.Errorf("%s: %v, %+v", f, err, r)
		}
	}
}

// A file goes from one process to another over two paths.
func TestSendAndRecv(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "data.bin")
	content := bytes.Repeat([]byte("several networks at once\n"), 200_000)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	inbox := filepath.Join(dir, "inbox")
	if err := os.Mkdir(inbox, 0o700); err != nil {
		t.Fatal(err)
	}
	recv := braidCommand(t, "recv", "--listen", "127.0.0.1:0", "--dir", inbox, "--once", "--json")
	errs, err := recv.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := recv.Start(); err != nil {
		t.Fatal(err)
	}
	defer recv.Process.Kill()
	line := make([]byte, 256)
	n, err := errs.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(line[:n]), "listening on ")
	if !found {
		t.Fatalf("recv says %q", line[:n])
	}
	addr, _, _ := strings.Cut(rest, ",")
	stdout, stderr, err := run(t, "send", file, addr, "--path", "127.0.0.1", "--path", "127.0.0.2", "--json")
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	var r struct {
		Bytes  int64
		SHA256 string
	}
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || r.Bytes != int64(len(content)) || len(r.SHA256) != 64 {
		t.Errorf("send says %s, %v", stdout, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- recv.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("recv --once does not end")
	}
	if got, err := os.ReadFile(filepath.Join(inbox, "data.bin")); err != nil || !bytes.Equal(got, content) {
		t.Errorf("the file differs (%v)", err)
	}
}
