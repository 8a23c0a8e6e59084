package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"braid/experiment/real"
	"braid/netsim"
	"braid/paper"
)

// What is not run in real time is refused by name, before anything runs.
func TestRealNamesWhatThereIs(t *testing.T) {
	fast := filepath.Join(t.TempDir(), "fast.toml")
	text := "seed = 1\nduration_s = 1\n[[links]]\nname = \"trunk\"\nrate_mbps = 5000\n[[paths]]\nname = \"p\"\nforward = [\"trunk\"]\n[[flows]]\nname = \"f\"\npaths = [\"p\"]\n"
	if err := os.WriteFile(fast, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"paper", "fig3", "--real"}, []string{"fig3", "fig12", "truth"}},
		{[]string{"sim", fast, "--real"}, []string{"--real", "trunk", "rate_mbps"}},
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

// Every cell of the selection is run, and what came out stands in the entry, late runs marked.
func TestJudgeRealRunsTheSelection(t *testing.T) {
	c := paperCmd{Out: t.TempDir(), Quiet: true, Tries: 2}
	f := paper.Truth()
	n := 0
	e, err := c.judgeReal(t.Context(), &f, paper.Mode{Quick: true}, func(_ context.Context, s netsim.Scenario, simulations, tries int) (*real.Pair, error) {
		if n++; tries != 2 || simulations != 5 {
			t.Errorf("%d simulations, %d tries", simulations, tries)
		}
		r := &netsim.Result{Flows: []netsim.FlowResult{{Name: "mptcp", GoodputMbps: 8, Subflows: []netsim.SubflowResult{{Path: "path 1", ThroughputMbps: 5}, {Path: "path 2", ThroughputMbps: 3}}}}}
		return &real.Pair{Simulated: []*netsim.Result{r}, Real: &real.Result{Result: *r, Timing: real.Timing{LatenessP99Ms: 3, Late: n == 1}}, Tries: 1}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	rows := e.Findings.Tables[0].Rows
	if n != 3 || len(rows) != 3 || !strings.HasPrefix(e.Verdict, string(paper.Holds)) || rows[0][len(rows[0])-1] != "late" || len(e.Findings.Checks) != 4 {
		t.Errorf("%d runs, %s: %v", n, e.Verdict, rows)
	}
	if _, err := os.Stat(filepath.Join(c.Out, "truth", "runs.csv")); err != nil {
		t.Error(err)
	}
}
