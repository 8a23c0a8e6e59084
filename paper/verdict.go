package paper

import (
	"fmt"
	"math"

	"braid/experiment"
)

// Verdict is what the checks of a claim come to.
type Verdict string

// The verdicts.
const (
	Holds  Verdict = "holds"
	Partly Verdict = "holds partly"
	Fails  Verdict = "fails"
	NoData Verdict = "no data"
)

// Check compares a measured number with a threshold.
type Check struct {
	What    string              `json:"what"`
	Value   experiment.Interval `json:"value"`
	Unit    string              `json:"unit,omitempty"`
	Min     *float64            `json:"min,omitempty"` // the value must be at least this
	Max     *float64            `json:"max,omitempty"` // ... at most
	Verdict Verdict             `json:"verdict"`       // Holds or Fails by the mean
	Clear   bool                `json:"clear"`         // the confidence interval lies on one side of every threshold
}

// newCheck compares.
func newCheck(what string, v experiment.Interval, unit string, low, high *float64) Check {
	c := Check{What: what, Value: v, Unit: unit, Min: low, Max: high, Verdict: Holds, Clear: true}
	if v.N == 0 || math.IsNaN(v.Mean) {
		c.Verdict, c.Clear = NoData, false
		return c
	}
	if low != nil {
		if v.Mean < *low {
			c.Verdict = Fails
		}
		c.Clear = c.Clear && !(v.Low < *low && *low < v.High)
	}
	if high != nil {
		if v.Mean > *high {
			c.Verdict = Fails
		}
		c.Clear = c.Clear && !(v.Low < *high && *high < v.High)
	}
	return c
}

// atLeast adds a check that a value is not below a threshold.
func (f *Findings) atLeast(what string, v experiment.Interval, unit string, low float64) {
	f.Checks = append(f.Checks, newCheck(what, v, unit, &low, nil))
}

// atMost adds a check that a value is not above a threshold.
func (f *Findings) atMost(what string, v experiment.Interval, unit string, high float64) {
	f.Checks = append(f.Checks, newCheck(what, v, unit, nil, &high))
}

// between adds a check that a value lies between two thresholds.
func (f *Findings) between(what string, v experiment.Interval, unit string, low, high float64) {
	f.Checks = append(f.Checks, newCheck(what, v, unit, &low, &high))
}

// Verdict returns Holds if every check holds, Fails if none does, Partly in between.
func (f *Findings) Verdict() Verdict {
	holds := 0
	for i := range f.Checks {
		switch f.Checks[i].Verdict {
		case Holds:
			holds++
		case NoData:
			return NoData
		}
	}
	switch {
	case len(f.Checks) == 0:
		return NoData
	case holds == len(f.Checks):
		return Holds
	case holds == 0:
		return Fails
	}
	return Partly
}

// Threshold writes what a check asks for.
func (c *Check) Threshold() string {
	switch {
	case c.Min != nil && c.Max != nil:
		return fmt.Sprintf("%v to %v %s", *c.Min, *c.Max, c.Unit)
	case c.Min != nil:
		return fmt.Sprintf("≥ %v %s", *c.Min, c.Unit)
	case c.Max != nil:
		return fmt.Sprintf("≤ %v %s", *c.Max, c.Unit)
	}
	return "none"
}

// Says is the check's verdict in words, with a warning if another set of seeds could turn it.
func (c *Check) Says() string {
	if c.Verdict == NoData || c.Clear {
		return string(c.Verdict)
	}
	return string(c.Verdict) + " (the interval includes the threshold)"
}
