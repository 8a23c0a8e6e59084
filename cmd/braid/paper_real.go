package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"braid/experiment"
	"braid/experiment/real"
	"braid/netsim"
	"braid/paper"
)

// simulations is how many simulations a run in real time is compared with.
const simulations = 5

// beside runs a scenario in both worlds: real.Beside.
type beside func(ctx context.Context, s netsim.Scenario, simulations, tries int) (*real.Pair, error)

// runReal is braid paper --real.
func (c *paperCmd) runReal(ctx context.Context, mode paper.Mode) error {
	figures, err := paper.FindReal(c.Names...)
	if err != nil {
		return fmt.Errorf("--real: %w", err)
	}
	report := &paper.Report{Quick: c.Quick, Traces: mode.Traces != nil, Commit: version()}
	for i := range figures {
		e, err := c.judgeReal(ctx, &figures[i], mode, real.Beside)
		if err != nil {
			return err
		}
		report.Entries = append(report.Entries, e)
	}
	if err := report.Write(c.Out); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(report)
	}
	for _, e := range report.Entries {
		printTable(os.Stdout, &e.Findings.Tables[0])
		fmt.Println()
	}
	return c.print(report)
}

// judgeReal runs a figure's selection in both worlds, one run after the other, keeps what was measured beside the plots, and judges it.
func (c *paperCmd) judgeReal(ctx context.Context, f *paper.Figure, mode paper.Mode, run beside) (*paper.Entry, error) {
	jobs, err := experiment.Jobs(f.ID, f.RealCells(mode))
	if err != nil {
		return nil, err
	}
	var runs []paper.Both
	for i := range jobs {
		s := jobs[i].Scenario()
		if !c.Quiet {
			fmt.Fprintf(os.Stderr, "%s, %d of %d: %s, %g s\n", f.ID, i+1, len(jobs), jobs[i].Cell.Name, s.DurationS)
		}
		p, err := run(ctx, s, simulations, max(c.Tries, 1))
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", f.ID, jobs[i].Cell.Name, err)
		}
		t := p.Real.Timing
		runs = append(runs, paper.Both{Cell: jobs[i].Cell.Name, Seed: jobs[i].Seed, Simulated: p.Simulated, Real: &p.Real.Result,
			LatenessP50Ms: t.LatenessP50Ms, LatenessP99Ms: t.LatenessP99Ms, Late: t.Late, LostPackets: t.LostPackets, Tries: p.Tries})
	}
	e := paper.JudgeReal(f, mode, runs)
	return e, paper.WriteRuns(filepath.Join(c.Out, e.ID), runs)
}

// printTable writes a table for a person, columns below each other.
func printTable(w io.Writer, t *paper.Table) {
	fmt.Fprintln(w, t.Title)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, strings.Join(t.Header, "\t"))
	for _, r := range t.Rows {
		fmt.Fprintln(tw, strings.Join(r, "\t"))
	}
	tw.Flush()
}
