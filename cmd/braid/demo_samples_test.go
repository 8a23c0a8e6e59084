package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"braid/mptcp"
	"braid/tcp"
)

// course returns samples every 50 ms of a transfer whose two paths carry 40 and 20 Mbit/s; the first is gone between cut and back, and for
// stall seconds after the cut nothing arrives in order.
func course(cut, back, end, stall float64) *samples {
	s := &samples{names: []string{"Wi-Fi", "LTE"}, cut: cut, back: back}
	var read float64
	var carried [2]float64
	const step = 0.05
	for t := 0.0; t <= end; t += step {
		rates := [2]float64{40, 20}
		if t >= cut && t < back {
			rates[0] = 0
		}
		for i, r := range rates {
			carried[i] += r * 1e6 / 8 * step
			if t < cut || t >= cut+stall {
				read += r * 1e6 / 8 * step
			}
		}
		s.take(t, int64(read), mptcp.Info{Subflows: []mptcp.SubflowInfo{
			{ID: 0, PathName: "Wi-Fi", TCP: tcp.Info{Delivered: int64(carried[0])}},
			{ID: 1, PathName: "LTE", TCP: tcp.Info{Delivered: int64(carried[1])}},
		}})
	}
	return s
}

func near(a, b, by float64) bool { return math.Abs(a-b) <= by }

func TestDemoJudgesWhatItMeasured(t *testing.T) {
	s := course(6, 11, 16, 0.7)
	r := demoResult{Alone_mbps: map[string]float64{"Wi-Fi": 40, "LTE": 20}, Sum_mbps: 60}
	s.judge(&r)
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"before", r.Before_mbps, 60}, {"during", r.During_mbps, 20}, {"after", r.After_mbps, 60},
		{"recovery", float64(r.Recovery_s), 0.7}, {"return", float64(r.Return_s), 0.1}, {"full", float64(r.Full_s), 0},
	} {
		if !near(c.got, c.want, 0.02*c.want+0.11) {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
}

// A transfer that never recovers says so, in words and in JSON.
func TestDemoThatDoesNotRecover(t *testing.T) {
	s := course(6, 11, 16, 5)
	r := demoResult{Alone_mbps: map[string]float64{"Wi-Fi": 40, "LTE": 20}}
	s.judge(&r)
	text, err := json.Marshal(r)
	if r.Recovery_s != never || r.Recovery_s.String() != "never" || err != nil || !strings.Contains(string(text), `"recovery_s":null`) {
		t.Errorf("recovery %v, JSON %s, %v", r.Recovery_s, text, err)
	}
}

// A subflow that was replaced keeps what it had delivered: its successor counts from zero again.
func TestSamplesAddUpSubflowsOfOnePath(t *testing.T) {
	s := &samples{names: []string{"Wi-Fi", "LTE"}}
	one := func(id int, delivered int64) mptcp.Info {
		return mptcp.Info{Subflows: []mptcp.SubflowInfo{{ID: id, PathName: "Wi-Fi", TCP: tcp.Info{Delivered: delivered}}}}
	}
	s.take(0, 0, one(0, 1000))
	s.take(1, 0, mptcp.Info{})
	s.take(2, 0, one(2, 500))
	if got := s.paths[2][0]; got != 1500 {
		t.Errorf("%d bytes over Wi-Fi, want 1500", got)
	}
}

func TestPlots(t *testing.T) {
	s := course(6, 11, 16, 0.2)
	for _, name := range []string{"demo.svg", "demo.png"} {
		file := filepath.Join(t.TempDir(), name)
		if err := s.plot(file, &demoResult{Alone_mbps: map[string]float64{"Wi-Fi": 40, "LTE": 20}}); err != nil {
			t.Fatal(err)
		}
		if st, err := os.Stat(file); err != nil || st.Size() < 2000 {
			t.Errorf("%s: %v, %v", name, st, err)
		}
	}
	if err := s.plot(filepath.Join(t.TempDir(), "demo.doc"), &demoResult{}); err == nil {
		t.Error("an unknown format was accepted")
	}
}

func TestRoundTicks(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      string
	}{{0, 16, "0 2 4 6 8 10 12 14 16"}, {0, 80, "0 10 20 30 40 50 60 70 80"}, {0, 0.5, "0 0.1 0.2 0.3 0.4 0.5"}} {
		var labels []string
		for _, tick := range roundTicks(c.low, c.high) {
			labels = append(labels, tick.Label)
		}
		if got := strings.Join(labels, " "); got != c.want {
			t.Errorf("%v to %v: %s, want %s", c.low, c.high, got, c.want)
		}
	}
}
