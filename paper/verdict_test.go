package paper

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"braid/experiment"
)

func interval(mean, low, high float64) experiment.Interval {
	return experiment.Interval{Mean: mean, Low: low, High: high, N: 5}
}

// A check holds by its mean; it is clear if its whole interval is on one side of the threshold.
func TestChecks(t *testing.T) {
	for _, c := range []struct {
		name    string
		add     func(f *Findings)
		verdict Verdict
		clear   bool
		says    string
		asked   string
	}{
		{"at least, clear", func(f *Findings) { f.atLeast("x", interval(2, 1.5, 2.5), "s", 1) }, Holds, true, "holds", "≥ 1 s"},
		{"at least, not clear", func(f *Findings) { f.atLeast("x", interval(2, 0.5, 3.5), "", 1) }, Holds, false, "holds (the interval includes the threshold)", "≥ 1 "},
		{"at least, missed", func(f *Findings) { f.atLeast("x", interval(0.5, 0.4, 0.6), "", 1) }, Fails, true, "fails", "≥ 1 "},
		{"at most, equal", func(f *Findings) { f.atMost("x", interval(1, 1, 1), "", 1) }, Holds, true, "holds", "≤ 1 "},
		{"at most, missed within noise", func(f *Findings) { f.atMost("x", interval(1.1, 0.9, 1.3), "", 1) }, Fails, false, "fails (the interval includes the threshold)", "≤ 1 "},
		{"between", func(f *Findings) { f.between("x", interval(1, 0.9, 1.1), "", 0.85, 1.15) }, Holds, true, "holds", "0.85 to 1.15 "},
		{"between, above", func(f *Findings) { f.between("x", interval(1.3, 1.2, 1.4), "", 0.85, 1.15) }, Fails, true, "fails", "0.85 to 1.15 "},
		{"no data", func(f *Findings) { f.atLeast("x", experiment.Mean(nil), "", 1) }, NoData, false, "no data", "≥ 1 "},
		{"not a number", func(f *Findings) { f.atMost("x", interval(math.NaN(), 0, 0), "", 1) }, NoData, false, "no data", "≤ 1 "},
	} {
		f := &Findings{}
		c.add(f)
		k := &f.Checks[0]
		if k.Verdict != c.verdict || k.Clear != c.clear || k.Says() != c.says || k.Threshold() != c.asked {
			t.Errorf("%s: %s, clear %v, %q, asked for %q", c.name, k.Verdict, k.Clear, k.Says(), k.Threshold())
		}
	}
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		values string // of checks: h holds, f fails, n no data
		want   Verdict
	}{{"", NoData}, {"h", Holds}, {"hhh", Holds}, {"hfh", Partly}, {"f", Fails}, {"ff", Fails}, {"hn", NoData}} {
		f := &Findings{}
		for _, v := range c.values {
			switch v {
			case 'h':
				f.atLeast("x", interval(2, 2, 2), "", 1)
			case 'f':
				f.atLeast("x", interval(0, 0, 0), "", 1)
			case 'n':
				f.atLeast("x", experiment.Mean(nil), "", 1)
			}
		}
		if got := f.Verdict(); got != c.want {
			t.Errorf("checks %q: %s, want %s", c.values, got, c.want)
		}
	}
}

// JSON has no NaN: a check without data must not make the report impossible.
func TestFindingsWithoutDataCanBeWritten(t *testing.T) {
	f := &Findings{}
	f.atLeast("x", experiment.Mean(nil), "", 1)
	b, err := json.Marshal(f)
	if err != nil || !strings.Contains(string(b), `"no data"`) {
		t.Errorf("%s, %v", b, err)
	}
	if !math.IsNaN(f.Checks[0].Value.Mean) {
		t.Error("marshalling changed the findings")
	}
}
