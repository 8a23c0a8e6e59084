//go:build linux

package interop

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"braid/internal/netns"
)

// TestEmulate runs the program itself: two braids over emulated paths, whose report and exit status tell what happened, and nothing is left behind.
func TestEmulate(t *testing.T) {
	netns.Require(t, netns.TUN)
	binary := filepath.Join(t.TempDir(), "braid")
	if out, err := exec.Command("go", "build", "-o", binary, "braid/cmd/braid").CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, out)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary, "emulate", "--json", "--path", "wifi:rate=40mbit,delay=5ms,loss=0.1%", "--path", "lte:rate=20mbit,delay=15ms,queue=64kB",
		"--at", "500ms:lte:loss=1%", "--server", binary+" bench --server --listen :9001", "--", "sh", "-c", binary+" bench 10.77.0.1:9001 -t 1 -i 0 --json && exit 7")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Fatalf("%v, want the command's exit status, 7: %s", err, &stderr)
	}
	var report struct {
		ExitCode int   `json:"exit_code"`
		Packets  int64 `json:"packets"`
		Links    []struct {
			Name      string `json:"name"`
			Delivered int64  `json:"delivered"`
		} `json:"links"`
	}
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
		t.Fatalf("%v: %s", err, &stdout)
	}
	if report.ExitCode != 7 || report.Packets == 0 || len(report.Links) != 4 || report.Links[2].Name != "lte/up" {
		t.Errorf("report: %+v", report)
	}
	for _, l := range report.Links {
		if l.Delivered < 50 {
			t.Errorf("%s carried %d packets", l.Name, l.Delivered)
		}
	}
	if !strings.Contains(stderr.String(), `"rate_mbps"`) {
		t.Errorf("the command's own output is not on stderr: %s", &stderr)
	}
	left, _ := filepath.Glob("/run/netns/braid-*")
	for _, f := range left {
		if _, err := os.Stat(f); err == nil && strings.Contains(f, "-"+pid(cmd)+"-") {
			t.Errorf("%s is left behind", f)
		}
	}
}

func pid(c *exec.Cmd) string { return strconv.Itoa(c.Process.Pid) }
