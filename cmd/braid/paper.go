package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"braid/experiment"
	"braid/paper"
)

// paperCmd is braid paper.
type paperCmd struct {
	Names []string `arg:"" optional:"" name:"experiment" help:"Experiments: an ID (fig8a), a figure (fig11), or all. None: list them."`

	Out     string `placeholder:"DIR" default:"paper-results" help:"Where plots, series and the report go. Default: ${default}."`
	Results string `placeholder:"DIR" help:"Where raw results are kept, one gzipped file an experiment; what is there is not run again. Default: raw (raw-quick) in --out."`
	Quick   bool   `help:"Few seeds and short runs: everything in under 3 minutes on two cores."`
	Seeds   int    `placeholder:"N" help:"Seeds instead of each experiment's own number."`
	Traces  string `placeholder:"DIR" help:"Folder of recorded paths for Figs. 12-15. Default: generated ones."`
	Workers int    `short:"j" placeholder:"N" help:"Runs at a time. Default: one a core."`
	Fresh   bool   `help:"Run everything again, whatever --results has." xor:"source"`
	Stored  bool   `help:"Run nothing: judge and draw what --results has." xor:"source"`
	Real    bool   `help:"Run in real time too, over emulated paths and UDP sockets on this machine, and set that beside the simulator: fig12 to fig15, and truth." xor:"source"`
	Tries   int    `placeholder:"N" default:"3" help:"Real-time runs that were late (the machine was busy) are tried again, so many times in all. Default: ${default}."`
	JSON    bool   `name:"json" help:"Print the verdicts with their numbers as JSON."`
	Quiet   bool   `short:"q" help:"No progress."`
}

// Help is the long help.
func (*paperCmd) Help() string {
	return `Examples:
  braid paper                                  list the experiments
  braid paper fig11 --out results              Fig. 11: CSV, JSON, SVG, PNG and report.html in results
  braid paper all --quick                      everything, roughly
  braid paper all --out results                everything with all seeds: hours; go on after an interruption with the same command
  braid paper all --stored --results DIR       the report again from raw results, without running
  braid paper fairness                         who gets what beside BBR, cell by cell
  braid paper fig12 --real                     a selection of Fig. 12, simulated and in real time over sockets: 3 minutes
  braid paper truth                            is the simulator right? The same scenarios in both worlds: 5 minutes

A verdict is computed: a claim holds if every check of it does. Runs are reproducible: the same seeds give the same results.`
}

// Run runs the experiments.
func (c *paperCmd) Run(ctx context.Context) error {
	if len(c.Names) == 0 {
		return c.list(os.Stdout)
	}
	mode := paper.Mode{Quick: c.Quick, Seeds: c.Seeds}
	if c.Traces != "" {
		var err error
		if mode.Traces, err = paper.ReadTraces(os.DirFS(c.Traces)); err != nil {
			return fmt.Errorf("--traces: %w", err)
		}
	}
	if c.Real || slices.Contains(c.Names, "truth") {
		return c.runReal(ctx, mode)
	}
	figures, err := paper.Find(c.Names...)
	if err != nil {
		return err
	}
	results := c.Results
	if results == "" {
		results = filepath.Join(c.Out, "raw")
		if c.Quick {
			results += "-quick"
		}
	}
	store := experiment.OpenStore(results)
	set, err := c.sweep(ctx, figures, mode, store)
	if err != nil {
		return err
	}
	report := &paper.Report{Quick: c.Quick, Traces: mode.Traces != nil, Commit: version()}
	for i := range figures {
		report.Entries = append(report.Entries, paper.Judge(&figures[i], mode, set))
	}
	if err := report.Write(c.Out); err != nil {
		return err
	}
	return c.print(report)
}

// list says what there is.
func (c *paperCmd) list(w io.Writer) error {
	if c.JSON {
		type entry struct{ ID, Title, Claim, Setup string }
		var all []entry
		for _, f := range append(paper.All(), paper.Truth()) {
			all = append(all, entry{f.ID, f.Title, f.Claim, f.Setup})
		}
		return printJSON(all)
	}
	for _, f := range append(paper.All(), paper.Truth()) {
		fmt.Fprintf(w, "%-12s %s\n", f.ID, f.Title)
	}
	fmt.Fprintln(w, "\nbraid paper ID runs one, braid paper all everything but truth, which runs in real time; see braid paper --help.")
	return nil
}

func printJSON(v any) error {
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// sweep runs the figures' cells, as far as the store does not have them.
func (c *paperCmd) sweep(ctx context.Context, figures []paper.Figure, mode paper.Mode, store *experiment.Store) (*experiment.Set, error) {
	var all []experiment.Job
	var parts [][]experiment.Job
	for i := range figures {
		jobs, err := experiment.Jobs(figures[i].ID, figures[i].Cells(mode))
		if err != nil {
			return nil, err
		}
		all, parts = append(all, jobs...), append(parts, jobs)
	}
	w := experiment.Sweep{Workers: c.Workers, Store: store, Commit: version(), Stored: c.Stored, Fresh: c.Fresh}
	var shown sweepProgress
	if !c.Quiet {
		shown = newSweepProgress(os.Stderr)
		w.Progress = shown.show
	}
	set, err := w.Run(ctx, all)
	shown.end()
	if err != nil || c.Stored || c.Quick || c.Seeds > 0 { // Compact keeps these jobs only: not at the cost of a full run's
		return set, err
	}
	for _, jobs := range parts {
		if err := store.Compact(jobs); err != nil {
			return nil, err
		}
	}
	return set, nil
}

// print tells the verdicts.
func (c *paperCmd) print(r *paper.Report) error {
	if c.JSON {
		return printJSON(r.Summary())
	}
	for _, e := range r.Entries {
		fmt.Printf("%-12s %-22s %s\n", e.ID, e.Verdict, e.Title)
		for i := range e.Findings.Checks {
			k := &e.Findings.Checks[i]
			sign := "+"
			if k.Verdict != paper.Holds {
				sign = "-"
			}
			fmt.Printf("   %s %s: %s %s, asked for %s\n", sign, k.What, k.Value, k.Unit, k.Threshold())
		}
	}
	fmt.Printf("\nreport: %s\n", filepath.Join(c.Out, "report.html"))
	return nil
}

// sweepProgress shows how far a sweep has come: one line that is rewritten on a terminal, else a line every so often.
type sweepProgress struct {
	w    io.Writer
	tty  bool
	last time.Time
}

func newSweepProgress(f *os.File) sweepProgress { return sweepProgress{w: f, tty: isTerminal(f)} }

func (s *sweepProgress) show(p experiment.Progress) {
	every := 10 * time.Second
	if s.tty {
		every = 200 * time.Millisecond
	}
	if now := time.Now(); p.Done < p.Total && now.Sub(s.last) < every {
		return
	}
	s.last = time.Now()
	text := fmt.Sprintf("%d of %d runs", p.Done, p.Total)
	if p.Found > 0 {
		text += fmt.Sprintf(" (%d found)", p.Found)
	}
	if p.Last != nil {
		text += fmt.Sprintf(", %.0f %%, %s elapsed, about %s left: %s", 100*p.Share, p.Elapsed.Round(time.Second), p.Remaining.Round(time.Second), p.Last.Experiment)
	}
	if s.tty {
		fmt.Fprintf(s.w, "\r\x1b[K%s", text)
		return
	}
	fmt.Fprintln(s.w, text)
}

func (s *sweepProgress) end() {
	if s.tty {
		fmt.Fprintln(s.w)
	}
}
