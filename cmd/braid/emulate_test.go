package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"braid/link"
)

func TestReadPath(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "trace")
	if err := os.WriteFile(trace, []byte("1\n2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text     string
		up, down link.Spec
		boxes    int
	}{
		{"p", link.Spec{}, link.Spec{}, 0},
		{"p:rate=20mbit,delay=10ms,loss=0.1%,queue=100", link.Spec{RateMbps: 20, DelayMs: 10, RTTMs: 20, Loss: 0.001, QueuePackets: 100},
			link.Spec{RateMbps: 20, DelayMs: 10, RTTMs: 20, Loss: 0.001, QueuePackets: 100}, 0},
		{"p:up.rate=500kbit,down.rate=1gbit,down.delay=1s,queue=64kB", link.Spec{RateMbps: 0.5, RTTMs: 1000, QueueBytes: 64000}, link.Spec{RateMbps: 1000, DelayMs: 1000, RTTMs: 1000, QueueBytes: 64000}, 0},
		{"p:up.jitter=500us,up.inorder,up.queue=1.5bdp,up.rate=1mbit", link.Spec{RateMbps: 1, JitterMs: 0.5, InOrder: true, QueueBDP: 1.5}, link.Spec{}, 0},
		{"p:up.reorder=1%/5ms,up.burst=0.05%/10%/30%,up.duplicate=0.5,up.corrupt=1%,up.mtu=1400,up.down=no",
			link.Spec{Reorder: &link.Reorder{Probability: 0.01, DelayMs: 5}, GilbertElliott: &link.GilbertElliott{PGoodBad: 0.0005, PBadGood: 0.1, LossBad: 0.3}, Duplicate: 0.5, Corrupt: 0.01, MTU: 1400}, link.Spec{}, 0},
		{"p:up.trace=" + trace, link.Spec{TraceMs: []int64{1, 2}}, link.Spec{}, 0},
		{"p:strip=syn+ack,split=500,coalesce=4000,shift=7,clamp=100", link.Spec{}, link.Spec{}, 5},
	} {
		p, err := readPath(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if p.name != "p" || !reflect.DeepEqual(round(p.up), round(c.up)) || !reflect.DeepEqual(round(p.down), round(c.down)) || len(p.boxes) != c.boxes {
			t.Errorf("%s:\n got %+v\nand %+v, %d boxes", c.text, p.up, p.down, len(p.boxes))
		}
	}
}

// round takes the noise of percentages away.
func round(s link.Spec) link.Spec {
	for _, v := range []*float64{&s.Loss, &s.Corrupt} {
		*v = float64(int(*v*1e6+0.5)) / 1e6
	}
	if g := s.GilbertElliott; g != nil {
		s.GilbertElliott = &link.GilbertElliott{PGoodBad: float64(int(g.PGoodBad*1e6+0.5)) / 1e6, PBadGood: g.PBadGood, LossBad: g.LossBad}
	}
	return s
}

// What is wrong is said by its name, with what would be right.
func TestReadPathRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"p:rat=1mbit":        "known are rate",
		"p:rate=20":          "rate=20",
		"p:delay=10":         "delay=10",
		"p:loss=200%":        "loss",
		"p:over=5s":          "unknown",
		"p:reorder=1%":       "SHARE/DELAY",
		"p:burst=1%":         "START/END/LOSS",
		"p:strip=nothing":    "none of syn",
		"p:split=0":          "at least 1",
		"p:down=maybe":       "neither yes nor no",
		"p:trace=/not/there": "trace",
	} {
		if _, err := readPath(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want something with %q", text, err, want)
		}
	}
}

func TestReadChange(t *testing.T) {
	p, err := readPath("p:rate=20mbit,delay=10ms")
	if err != nil {
		t.Fatal(err)
	}
	paths := []*emulatedPath{p}
	for _, text := range []string{"1500ms:p:down.rate=5mbit,down.over=2s", "2s:p:down=yes", "3s:p:down=no,loss=1%,queue=50"} {
		if err := readChange(text, paths); err != nil {
			t.Fatal(err)
		}
	}
	if len(p.up.Changes) != 2 || len(p.down.Changes) != 3 {
		t.Fatalf("%d changes up, %d down", len(p.up.Changes), len(p.down.Changes))
	}
	if c := p.down.Changes[0]; c.AtS != 1.5 || c.OverS != 2 || *c.RateMbps != 5 {
		t.Errorf("first change %+v", c)
	}
	if c := p.up.Changes[1]; c.AtS != 3 || *c.Down || *c.Loss != 0.01 || *c.QueuePackets != 50 {
		t.Errorf("last change %+v", c)
	}
	for text, want := range map[string]string{
		"5s:q:down=yes":     "no --path q",
		"5s:p":              "TIME:PATH",
		"5:p:down=yes":      "5",
		"5s:p:strip=syn":    "cannot change",
		"1s:p:down=yes":     "before",
		"5s:p:queue=1.5bdp": "not to a multiple",
	} {
		fresh := *p
		if err := readChange(text, []*emulatedPath{&fresh}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want something with %q", text, err, want)
		}
	}
}

// Every example of a scenario is a network that can be emulated, links shared or not.
func TestEmulateTakesScenarios(t *testing.T) {
	files, err := filepath.Glob("../../examples/*.toml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		c := emulateCmd{Scenario: f}
		cfg, err := c.bridge()
		if err != nil || len(cfg.Paths) == 0 {
			t.Errorf("%s: %d paths, %v", f, len(cfg.Paths), err)
		}
		for _, p := range cfg.Paths {
			if len(p.Forward) == 0 || len(p.Reverse) == 0 {
				t.Errorf("%s: path %+v", f, p)
			}
		}
	}
	for _, c := range []emulateCmd{{}, {Scenario: files[0], Path: []string{"p"}}, {Scenario: files[0], At: []string{"1s:p:down=yes"}}, {Path: []string{"p"}, Time: -1}} {
		if _, err := c.bridge(); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
}
