package paper

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"braid/experiment"
	"braid/netsim"
)

// measured is a result of two paths.
func measured(first, second float64) *netsim.Result {
	return &netsim.Result{Flows: []netsim.FlowResult{{Name: multipath, GoodputMbps: first + second, OutOfOrderPackets: 3,
		Subflows: []netsim.SubflowResult{{Path: "path 1", ThroughputMbps: first}, {Path: "path 2", ThroughputMbps: second}}}}}
}

func TestJudgeReal(t *testing.T) {
	f := Truth()
	sims := []*netsim.Result{measured(5, 3), measured(5.5, 3)}
	for _, c := range []struct {
		name string
		real *netsim.Result
		late bool
		want Verdict
	}{
		{"within what simulations span", measured(5.2, 3), false, Holds},
		{"slower, the same shares", measured(2.6, 1.5), false, Partly},
		{"slower, on the wrong path", measured(0.1, 3), false, Fails},
		{"late: proves nothing", measured(0.1, 3), true, NoData},
	} {
		b := Both{Cell: c.name, Seed: 1, Simulated: sims, Real: c.real, Late: c.late, LatenessP99Ms: 0.4, Tries: 1}
		e := JudgeReal(&f, Mode{}, []Both{b})
		if e.Verdict != string(c.want) {
			t.Errorf("%s: %s, want %s", c.name, e.Verdict, c.want)
		}
		if late := strings.Contains(strings.Join(e.Findings.Tables[0].Rows[0], "|"), "|late"); late != c.late {
			t.Errorf("%s: marked as late: %v", c.name, late)
		}
		dir := t.TempDir()
		if err := e.WriteFiles(dir); err != nil {
			t.Fatal(err)
		}
		if err := WriteRuns(filepath.Join(dir, e.ID), []Both{b}); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{"goodput.csv", "goodput.svg", "queue.png", "findings.json", "runs.json"} {
			if _, err := os.Stat(filepath.Join(dir, e.ID, file)); err != nil {
				t.Error(err)
			}
		}
		if b, _ := os.ReadFile(filepath.Join(dir, e.ID, "runs.csv")); strings.Count(string(b), "\n") != 1+3*2 {
			t.Errorf("runs.csv:\n%s", b)
		}
	}
}

func TestRealSelections(t *testing.T) {
	figures, err := FindReal("all")
	if err != nil || len(figures) != 5 {
		t.Fatalf("%d figures, %v", len(figures), err)
	}
	for i := range figures {
		f := &figures[i]
		cells := f.RealCells(Mode{})
		if _, err := experiment.Jobs(f.ID, cells); err != nil || len(cells) < 4 {
			t.Errorf("%s: %d cells, %v", f.ID, len(cells), err)
		}
		for _, c := range cells {
			if c.Seeds != 1 || c.Scenario.DurationS > 30 || c.Scenario.Check() != nil {
				t.Errorf("%s, %s: %d seeds, %v s", f.ID, c.Name, c.Seeds, c.Scenario.DurationS)
			}
		}
	}
	if _, err := FindReal("fig3"); err == nil || !strings.Contains(err.Error(), "fig12") {
		t.Errorf("error %v does not say what there is", err)
	}
}
