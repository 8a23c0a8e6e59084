package experiment

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"braid/link"
	"braid/netsim"
)

// cells are two points that take a moment to run.
func cells() []Cell {
	flow := netsim.Flow{Name: "f", Congestion: "bbr"}
	one := netsim.Bottlenecks([]link.Spec{netsim.Bottleneck(5, 10, 0.01)}, flow, netsim.Background{}).During(2)
	two := netsim.Bottlenecks([]link.Spec{netsim.Bottleneck(5, 10, 0), netsim.Bottleneck(2, 20, 0.01)}, flow, netsim.Background{}).During(2)
	return []Cell{
		{Name: "one path", Scenario: one, Seeds: 3, Keep: Keep{Flows: []string{"f"}, Goodput: true}},
		{Name: "two paths", Scenario: two, Seeds: 2, Vary: func(s *netsim.Scenario, seed uint64) { s.Links[0].DelayMs += float64(seed) }},
	}
}

func jobs(t *testing.T) []Job {
	t.Helper()
	j, err := Jobs("test", cells())
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func runAll(t *testing.T, w Sweep) *Set {
	t.Helper()
	set, err := w.Run(context.Background(), jobs(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Missing(jobs(t)); err != nil {
		t.Fatal(err)
	}
	return set
}

// The same jobs give the same records, with however many workers, and whether they were run or read back.
func TestSweepIsReproducible(t *testing.T) {
	dir := t.TempDir()
	first := runAll(t, Sweep{Workers: 1})
	second := runAll(t, Sweep{Workers: 3, Store: OpenStore(dir)})
	third := runAll(t, Sweep{Store: OpenStore(dir), Stored: true})
	for _, cell := range []string{"one path", "two paths"} {
		for name, other := range map[string]*Set{"three workers": second, "read back": third} {
			if d := cmp.Diff(first.Records("test", cell), other.Records("test", cell), cmp.FilterPath(counters, cmp.Ignore())); d != "" {
				t.Errorf("%s, %s:\n%s", cell, name, d)
			}
		}
	}
	one := first.Results("test", "one path")
	if len(one[0].Flows[0].Series.GoodputMbps) == 0 || len(one[0].Flows[0].Subflows[0].Series.ThroughputMbps) != 0 {
		t.Error("not what Keep asks for")
	}
	if one[0].Flows[0].GoodputMbps == one[1].Flows[0].GoodputMbps {
		t.Error("two seeds gave the same goodput")
	}
}

// counters are of no concern: they are not written.
func counters(p cmp.Path) bool {
	f, ok := p.Last().(cmp.StructField)
	return ok && (f.Name() == "Sender" || f.Name() == "Receiver")
}

// An interrupted sweep goes on where it stopped: what is there is not run again, also behind a record that was cut off.
func TestSweepResumes(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	stop := func(p Progress) {
		if p.Done == 2 {
			cancel()
		}
	}
	if _, err := (Sweep{Workers: 1, Store: OpenStore(dir), Progress: stop}).Run(ctx, jobs(t)); err != context.Canceled {
		t.Fatalf("error %v, want canceled", err)
	}
	file := filepath.Join(dir, "test.jsonl.gz")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(whole, whole[:len(whole)/3]...), 0o644); err != nil { // the next one was cut off
		t.Fatal(err)
	}
	var found, ran int
	set := runAll(t, Sweep{Workers: 1, Store: OpenStore(dir), Progress: func(p Progress) {
		found = p.Found
		if p.Last != nil {
			ran++
		}
	}})
	if found != 2 || ran != 3 {
		t.Errorf("%d found and %d run, want 2 and 3", found, ran)
	}
	if d := cmp.Diff(runAll(t, Sweep{}).Records("test", "two paths"), set.Records("test", "two paths"), cmp.FilterPath(counters, cmp.Ignore())); d != "" {
		t.Error(d)
	}
}

// A result belongs to a scenario: another one is run again, and Compact forgets the old ones.
func TestKeyFollowsScenario(t *testing.T) {
	dir := t.TempDir()
	store := OpenStore(dir)
	runAll(t, Sweep{Store: store})
	changed := cells()
	changed[0].Scenario.Links[0].Loss = 0.02
	other, err := Jobs("test", changed)
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	count := func(p Progress) {
		if p.Last != nil {
			ran++
		}
	}
	if _, err := (Sweep{Store: store, Progress: count}).Run(context.Background(), other); err != nil {
		t.Fatal(err)
	}
	if ran != 3 {
		t.Errorf("%d jobs run, want the 3 whose scenario changed", ran)
	}
	before, _ := os.Stat(filepath.Join(dir, "test.jsonl.gz"))
	if err := store.Compact(other); err != nil {
		t.Fatal(err)
	}
	after, _ := os.Stat(filepath.Join(dir, "test.jsonl.gz"))
	if after.Size() >= before.Size() {
		t.Errorf("compacted from %d to %d bytes", before.Size(), after.Size())
	}
	again := OpenStore(dir)
	for i := range other {
		if r, err := again.Get(&other[i], false); r == nil || err != nil {
			t.Errorf("cell %q, seed %d: not found after compaction: %v", other[i].Cell.Name, other[i].Seed, err)
		}
	}
}

func TestJobsRefuseWrongCells(t *testing.T) {
	for name, c := range map[string][]Cell{
		"no name": {{Seeds: 1}}, "twice": {{Name: "a", Seeds: 1}, {Name: "a", Seeds: 1}}, "no seeds": {{Name: "a"}},
	} {
		if _, err := Jobs("x", c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestSweepReportsErrors(t *testing.T) {
	bad := []Cell{{Name: "bad", Seeds: 4}}
	j, _ := Jobs("x", bad)
	if _, err := (Sweep{}).Run(context.Background(), j); err == nil {
		t.Error("a scenario without a duration was accepted")
	}
}

func TestIntervals(t *testing.T) {
	near := func(got, want float64) bool { return math.Abs(got-want) < 0.005 }
	// Mean 3, standard deviation 1.581, t(4) = 2.776: half width 1.963.
	if i := Mean([]float64{1, 2, 3, 4, 5}); !near(i.Mean, 3) || !near(i.Low, 1.037) || !near(i.High, 4.963) || i.N != 5 {
		t.Errorf("mean %+v", i)
	}
	if i := Mean([]float64{7}); i != (Interval{7, 7, 7, 1}) {
		t.Errorf("mean of one %+v", i)
	}
	if i := Mean(nil); !math.IsNaN(i.Mean) || i.N != 0 {
		t.Errorf("mean of none %+v", i)
	}
	// Of ten values the interval from the second to the ninth covers the median with 97.9 %.
	if i := Median([]float64{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}); i != (Interval{5.5, 2, 9, 10}) {
		t.Errorf("median %+v", i)
	}
	// Wilson's interval of 8 in 10: 0.490 to 0.943.
	values := []float64{1, 1, 1, 1, 1, 1, 1, 1, 0, 0}
	if i := Share(values, func(v float64) bool { return v > 0 }); !near(i.Mean, 0.8) || !near(i.Low, 0.490) || !near(i.High, 0.943) {
		t.Errorf("share %+v", i)
	}
	if q := Quantile([]float64{4, 1, 3, 2}, 0.25); q != 1.75 {
		t.Errorf("quantile %v", q)
	}
}
