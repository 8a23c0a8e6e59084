package paper

import (
	"slices"
	"strings"
	"testing"

	"braid/experiment"
	"braid/netsim"
)

// fairResult is a run with what each subflow of the connection carried (no connection: none) and what each single-path flow did.
func fairResult(ours []float64, rivals ...float64) *netsim.Result {
	r := &netsim.Result{BinS: 1}
	if ours != nil {
		f := netsim.FlowResult{Name: multipath}
		for i, v := range ours {
			f.GoodputMbps += v
			f.Subflows = append(f.Subflows, netsim.SubflowResult{Path: netsim.PathName(i + 1), ThroughputMbps: v, MeanRTTMs: 60})
		}
		r.Flows = append(r.Flows, f)
	}
	for i, v := range rivals {
		r.Flows = append(r.Flows, netsim.FlowResult{Name: "background", Subflows: []netsim.SubflowResult{{Path: netsim.PathName(i + 1), ThroughputMbps: v, MeanRTTMs: 60}}})
	}
	return r
}

// stored puts results in a set as a sweep would.
func stored(t *testing.T, id string, results map[string][]*netsim.Result, cells []experiment.Cell) *Data {
	t.Helper()
	store := experiment.OpenStore("")
	var jobs []experiment.Job
	for i := range cells {
		c := &cells[i]
		for k, r := range results[c.Name] {
			j := experiment.Job{Experiment: id, Cell: c, Seed: uint64(k + 1)}
			key, err := j.Key()
			if err != nil {
				t.Fatal(err)
			}
			if err := store.Put(&experiment.Record{Experiment: id, Cell: c.Name, Seed: j.Seed, Key: key, Result: r}); err != nil {
				t.Fatal(err)
			}
			jobs = append(jobs, j)
		}
	}
	set, err := experiment.Sweep{Store: store, Stored: true}.Run(t.Context(), jobs)
	if err != nil {
		t.Fatal(err)
	}
	return NewData(set, id)
}

// check returns the check whose name begins so.
func check(t *testing.T, f *Findings, what string) *Check {
	t.Helper()
	i := slices.IndexFunc(f.Checks, func(c Check) bool { return strings.HasPrefix(c.What, what) })
	if i < 0 {
		t.Fatalf("no check %q", what)
	}
	return &f.Checks[i]
}

// The table holds every rivalry, buffer and loss, and quick runs are a part of it.
func TestFairCells(t *testing.T) {
	full, quick := map[string]bool{}, 0
	for _, c := range fairCells() {
		full[c.name] = true
		if c.quick {
			quick++
		}
		for _, single := range []bool{true, false} {
			s := c.scenario(single, 1)
			s.Seed, s.DurationS = 1, 10
			if err := s.Check(); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			ours := 0
			for _, f := range s.Flows {
				if f.Name == multipath {
					ours++
				}
			}
			links := len(c.specs)
			if want := links * c.rivals; !single && (ours != 1 || len(s.Flows) != want+1) {
				t.Errorf("%s: %d flows, %d of them the connection, want 1 and %d rivals", c.name, len(s.Flows), ours, want)
			}
			if want := links * (c.rivals + 1); single && (ours != 0 || len(s.Flows) != want) {
				t.Errorf("%s: %d flows in its place, want %d", c.name, len(s.Flows), want)
			}
		}
	}
	for _, name := range []string{"2 paths, 1 rivals, 0.5 BDP, loss 1 %", "2 paths, 4 rivals, 4 BDP, loss 0.01 %", "3 paths, 2 rivals, 2 BDP", "100/20, 4 rivals", "20/20, RTT 50/150, 1 rivals", "shared bottleneck, 4 rivals", "alone, three paths"} {
		if !full[name] {
			t.Errorf("no cell %q", name)
		}
	}
	if quick == 0 || quick > len(full)/4 {
		t.Errorf("%d of %d cells are quick", quick, len(full))
	}
}

// Both subflows of the shared bottleneck cross one link.
func TestSharedBottleneck(t *testing.T) {
	for _, c := range fairCells() {
		if !c.shared {
			continue
		}
		s := c.scenario(false, 1)
		if len(s.Links) != 1 || len(s.Flows[0].Paths) != 2 || s.Paths[0].Forward[0] != s.Paths[1].Forward[0] {
			t.Errorf("%s: %d links, %d subflows", c.name, len(s.Links), len(s.Flows[0].Paths))
		}
	}
}

// The ratio is the connection's total over one BBR flow's on the best path; what lies outside is listed.
func TestJudgeFairness(t *testing.T) {
	const fair, greedy, alone = "2 paths, 1 rivals, 1 BDP, loss 0 %", "2 paths, 2 rivals, 1 BDP, loss 0 %", "alone, 100+100"
	m := Mode{Quick: true}
	results := map[string][]*netsim.Result{
		fair:             {fairResult([]float64{6, 5}), fairResult([]float64{5, 4})},
		fair + ", BBR":   {fairResult(nil, 10, 8)},
		greedy:           {fairResult([]float64{9, 1})},
		greedy + ", BBR": {fairResult(nil, 8, 7)},
		alone:            {fairResult([]float64{24, 20})},
	}
	f := judgeFairness(m, stored(t, "fairness", results, fairnessCells(m)))
	for _, c := range []struct {
		what    string
		value   float64
		verdict Verdict
	}{
		{fair + ": total", 1, Holds},
		{fair + ": smallest", (5.0/11 + 4.0/9) / 2, Holds},
		{greedy + ": total", 1.25, Fails},
		{greedy + ": smallest", 0.1, Fails},
		{alone, 44 / (2 * capacity(25, 0)), Fails},
	} {
		got := check(t, f, c.what)
		if got.Verdict != c.verdict || got.Value.Mean < c.value-1e-9 || got.Value.Mean > c.value+1e-9 {
			t.Errorf("%s: %v (%v), want %v (%v)", c.what, got.Value.Mean, got.Verdict, c.value, c.verdict)
		}
	}
	if len(f.Notes) != 1 || !strings.Contains(f.Notes[0], greedy) || strings.Contains(f.Notes[0], fair) || !strings.HasPrefix(f.Notes[0], "1 of 2 ") {
		t.Errorf("cells outside: %q", f.Notes)
	}
	if rows := f.Tables[0].Rows; len(rows) != 3 || rows[0][2] != "0.90 to 1.10" {
		t.Errorf("table: %q", rows)
	}
}

// A subflow that carries less than four packets a round trip in half of its seconds starves half of the time.
func TestStarving(t *testing.T) {
	r := fairResult([]float64{1, 1})
	r.Flows[0].Subflows[0].Series = netsim.SubflowSeries{ThroughputMbps: []float64{5, 5, 5, 5}, SRTTMs: []float64{100, 100, 100, 100}}
	r.Flows[0].Subflows[1].Series = netsim.SubflowSeries{ThroughputMbps: []float64{0.1, 5, 0.1, 5}, SRTTMs: []float64{100, 100, 100, 100}}
	if got := (starving{}).Watch(nil, nil)(r)["starving"]; got != 0.5 {
		t.Errorf("starving %v, want 0.5", got)
	}
}
