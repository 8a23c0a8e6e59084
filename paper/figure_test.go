package paper

import (
	"math"
	"strings"
	"testing"
	"testing/fstest"

	"braid/experiment"
	"braid/link"
	"braid/netsim"
)

// Every figure says what it is, has cells that the simulator accepts, and judges nothing without data.
func TestEveryFigure(t *testing.T) {
	ids := map[string]bool{}
	for _, f := range All() {
		if f.Title == "" || f.Claim == "" || f.Setup == "" || ids[f.ID] {
			t.Errorf("%s: lacks a title, a claim or a set-up, or is there twice", f.ID)
		}
		ids[f.ID] = true
		for _, quick := range []bool{true, false} {
			jobs, err := experiment.Jobs(f.ID, f.Cells(Mode{Quick: quick}))
			if err != nil {
				t.Error(err)
			}
			for i := range jobs {
				if jobs[i].Seed > 1 || !quick && i%11 != 0 {
					continue
				}
				s := jobs[i].Scenario()
				if err := s.Check(); err != nil {
					t.Errorf("%s, cell %q: %v", f.ID, jobs[i].Cell.Name, err)
				}
				if s.Flows[0].Name != multipath && !strings.Contains(jobs[i].Cell.Name, "BBR") && !strings.Contains(jobs[i].Cell.Name, "NewReno") {
					t.Errorf("%s, cell %q: its first flow is %q", f.ID, jobs[i].Cell.Name, s.Flows[0].Name)
				}
			}
		}
		set, err := experiment.Sweep{Stored: true}.Run(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if e := Judge(&f, Mode{}, set); e.Verdict != string(NoData) {
			t.Errorf("%s: verdict %q without data", f.ID, e.Verdict)
		}
	}
}

func TestFind(t *testing.T) {
	for _, c := range []struct{ names, want string }{
		{"fig11", "fig11a fig11b"}, {"fig8b", "fig8b"}, {"fig17 table1", "table1 fig17a fig17b"}, {"fairness", "fairness"},
	} {
		figures, err := Find(strings.Fields(c.names)...)
		var got []string
		for _, f := range figures {
			got = append(got, f.ID)
		}
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, %v", c.names, got, err)
		}
	}
	if all, _ := Find("all"); len(all) != len(All()) {
		t.Errorf("all: %d figures", len(all))
	}
	for _, wrong := range []string{"fig1", "fig", "", "fig21"} {
		if _, err := Find(wrong); err == nil || !strings.Contains(err.Error(), "fig8a") {
			t.Errorf("%q: error %v does not list what there is", wrong, err)
		}
	}
}

// result makes a result with a goodput in bins of 100 ms.
func result(goodput ...float64) *netsim.Result {
	return &netsim.Result{BinS: 0.1, Flows: []netsim.FlowResult{{Name: multipath, Series: netsim.FlowSeries{GoodputMbps: goodput}}}}
}

// Recovery is the first 500 ms at 90 %, if the two seconds are too: one burst is none.
func TestRecovery(t *testing.T) {
	series := func(parts ...float64) []float64 { // value, seconds, value, seconds, ...
		var out []float64
		for i := 0; i < len(parts); i += 2 {
			for range int(parts[i+1]*10 + 0.5) {
				out = append(out, parts[i])
			}
		}
		return out
	}
	for _, c := range []struct {
		name string
		of   []float64
		want float64
	}{
		{"at once", series(40, 1, 20, 5), 0},
		{"after a pause", series(40, 1, 0, 0.7, 20, 5), 0.7},
		{"a burst first", series(40, 1, 0, 0.5, 40, 0.5, 0, 1, 20, 5), 2},
		{"never", series(40, 1, 10, 5), 5},
	} {
		if got := recovery(result(c.of...), 1, 20); math.Abs(got-c.want) > 0.11 {
			t.Errorf("%s: %v s, want %v", c.name, got, c.want)
		}
	}
}

// Generated paths have the mean that was asked for, vary as their model says, and depend on their seed only.
func TestGeneratedPaths(t *testing.T) {
	for _, a := range []*access{&lte, &wifi24, &wifi5, &starlink} {
		ms := a.generate(20, 600, link.Stream(1, a.name))
		if mean := float64(len(ms)) * 12 / float64(ms[len(ms)-1]); math.Abs(mean-20) > 0.1 {
			t.Errorf("%s: mean %v Mbit/s, want 20", a.name, mean)
		}
		perSecond := make([]float64, ms[len(ms)-1]/1000)
		for _, at := range ms {
			perSecond[min(int(at/1000), len(perSecond)-1)] += 0.012
		}
		if v := variation(perSecond); v < 0.5*a.slow || v > 2*a.slow+0.1 {
			t.Errorf("%s: coefficient of variation %v by second, the model's is %v", a.name, v, a.slow)
		}
		again := a.generate(20, 600, link.Stream(1, a.name))
		if len(again) != len(ms) || again[len(ms)/2] != ms[len(ms)/2] {
			t.Errorf("%s: the same seed gave another path", a.name)
		}
	}
}

func TestReadTraces(t *testing.T) {
	table := "0\t10\n1\t0\n2\t30\n"
	files := fstest.MapFS{
		recordedLTE:   {Data: []byte("1\n1\n2\n1000\n")},
		recordedWifi:  {Data: []byte(table)},
		recordedWifi5: {Data: []byte(table)},
	}
	traces, err := ReadTraces(files)
	if err != nil {
		t.Fatal(err)
	}
	if r := traces.rates(recordedLTE); len(r) != 1000 || r[0] != 24 || r[1] != 12 || r[2] != 0 || r[999] != 12 {
		t.Errorf("opportunities: %d ms, begins %v", len(r), r[:3])
	}
	if r := traces.rates(recordedWifi); len(r) != 3000 || r[0] != 10 || r[1500] != 0 || r[2999] != 30 {
		t.Errorf("table: %d ms", len(r))
	}
	files[recordedWifi] = &fstest.MapFile{Data: []byte("0\t10\n0\t11\n")}
	if _, err := ReadTraces(files); err == nil || !strings.Contains(err.Error(), recordedWifi) || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("time that stands still: error %v", err)
	}
	delete(files, recordedLTE)
	if _, err := ReadTraces(files); err == nil {
		t.Error("a missing recording was accepted")
	}
	// Recorded paths begin elsewhere for each seed and are scaled to the mean.
	paths := []wireless{{model: &lte, recorded: recordedWifi, meanMbps: 5, rttMs: 40}}
	s := wirelessPaths(paths, netsim.Flow{Name: multipath}, netsim.Background{})
	weather(Mode{Traces: traces}, paths)(&s, 3)
	ms := s.Links[0].TraceMs
	if mean := float64(len(ms)) * 12 / float64(ms[len(ms)-1]); math.Abs(mean-5) > 0.05 {
		t.Errorf("scaled to %v Mbit/s, want 5", mean)
	}
}

// The distribution of RTTs over two paths weighs each by what it carried.
func TestRTTDistributionIsWeighted(t *testing.T) {
	p := func(v float64) []float64 {
		out := make([]float64, 101)
		for i := range out {
			out[i] = v
		}
		return out
	}
	r := &netsim.Result{Flows: []netsim.FlowResult{{Name: multipath, Subflows: []netsim.SubflowResult{
		{Path: "path 1", ThroughputMbps: 30, RTTPercentilesMs: p(50)}, {Path: "path 2", ThroughputMbps: 10, RTTPercentilesMs: p(100)}}}}}
	s := rttCDF("x", []*netsim.Result{r}, 1, 2)
	below := 0.0
	for i := range s.X {
		if s.X[i] == 50 {
			below = s.Y[i]
		}
	}
	if math.Abs(below-0.75) > 0.01 {
		t.Errorf("share of 50 ms is %v, want 0.75", below)
	}
}
