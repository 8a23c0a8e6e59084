package paper

import (
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"braid/experiment"
)

// Report is the outcome of some experiments.
type Report struct {
	Quick   bool     `json:"quick"`
	Traces  bool     `json:"recorded_traces"` // Figs. 12-15 ran over recorded paths
	Commit  string   `json:"commit,omitempty"`
	Entries []*Entry `json:"experiments"`
}

// Entry is one experiment's outcome.
type Entry struct {
	ID       string    `json:"id"`
	Title    string    `json:"title"`
	Claim    string    `json:"claim"`
	Setup    string    `json:"setup"`
	Verdict  string    `json:"verdict"` // with "(quick)" in quick mode
	Rerun    string    `json:"rerun"`   // the command
	Runs     int       `json:"runs"`
	Findings *Findings `json:"findings"`
}

// Judge judges a figure by its results.
func Judge(f *Figure, m Mode, set *experiment.Set) *Entry {
	e := &Entry{ID: f.ID, Title: f.Title, Claim: f.Claim, Setup: f.Setup, Rerun: "braid paper " + f.ID, Findings: f.Judge(m, NewData(set, f.ID))}
	for _, c := range f.Cells(m) {
		e.Runs += len(set.Records(f.ID, c.Name))
	}
	e.Verdict = string(e.Findings.Verdict())
	if m.Quick {
		e.Verdict += " (quick)"
		e.Rerun += " --quick"
	}
	if m.Seeds > 0 {
		e.Rerun += fmt.Sprintf(" --seeds %d", m.Seeds)
	}
	if m.Traces != nil {
		e.Rerun += " --traces DIR"
	}
	return e
}

// WriteFiles writes an entry's charts (SVG, PNG, CSV, JSON) and its findings to a folder of its own in dir.
func (e *Entry) WriteFiles(dir string) error {
	dir = filepath.Join(dir, e.ID)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for i := range e.Findings.Charts {
		if err := e.Findings.Charts[i].writeFiles(dir); err != nil {
			return err
		}
	}
	return writeJSON(filepath.Join(dir, "findings.json"), e)
}

func (c *Chart) writeFiles(dir string) error {
	for _, format := range []string{"svg", "png"} {
		b, err := c.Draw(format)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, c.Name+"."+format), b, 0o644); err != nil {
			return err
		}
	}
	f, err := os.Create(filepath.Join(dir, c.Name+".csv"))
	if err != nil {
		return err
	}
	if err := errors.Join(c.WriteCSV(f), f.Close()); err != nil {
		return err
	}
	return writeJSON(filepath.Join(dir, c.Name+".json"), c)
}

func writeJSON(name string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return os.WriteFile(name, append(b, '\n'), 0o644)
}

//go:embed report.html
var reportText string

var reportTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"plot": func(c Chart) (template.URL, error) {
		b, err := c.Draw("svg")
		return template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(b)), err
	},
	"class": func(verdict string) string {
		switch {
		case strings.HasPrefix(verdict, string(Partly)):
			return "partly"
		case strings.HasPrefix(verdict, string(Holds)):
			return "holds"
		case strings.HasPrefix(verdict, string(Fails)):
			return "fails"
		}
		return "nodata"
	},
}).Parse(reportText))

// WriteHTML writes the report as one page that needs nothing else.
func (r *Report) WriteHTML(w io.Writer) error { return reportTemplate.Execute(w, r) }

// Write writes everything to a folder: each entry's files, report.html, verdicts.json and verdicts.md.
func (r *Report) Write(dir string) error {
	for _, e := range r.Entries {
		if err := e.WriteFiles(dir); err != nil {
			return err
		}
	}
	f, err := os.Create(filepath.Join(dir, "report.html"))
	if err != nil {
		return err
	}
	if err := errors.Join(r.WriteHTML(f), f.Close()); err != nil {
		return err
	}
	if err := writeJSON(filepath.Join(dir, "verdicts.json"), r.Summary()); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "verdicts.md"), []byte(r.Markdown()), 0o644)
}

// Summary is a Report without charts and tables: verdicts and the checks behind them.
func (r *Report) Summary() *Report {
	out := *r
	out.Entries = nil
	for _, e := range r.Entries {
		short := *e
		short.Findings = &Findings{Checks: e.Findings.Checks, Notes: e.Findings.Notes}
		out.Entries = append(out.Entries, &short)
	}
	return &out
}

// Markdown is the table of verdicts.
func (r *Report) Markdown() string {
	var b strings.Builder
	b.WriteString("| experiment | check | measured | asked for | verdict |\n| --- | --- | --- | --- | --- |\n")
	for _, e := range r.Entries {
		fmt.Fprintf(&b, "| **%s** %s | | %d runs | | **%s** |\n", e.ID, e.Title, e.Runs, e.Verdict)
		for i := range e.Findings.Checks {
			c := &e.Findings.Checks[i]
			fmt.Fprintf(&b, "| | %s | %s %s | %s | %s |\n", c.What, c.Value, c.Unit, c.Threshold(), c.Says())
		}
	}
	return b.String()
}

// MarshalJSON leaves out what JSON cannot say.
func (f Findings) MarshalJSON() ([]byte, error) {
	type plain Findings
	g := plain(f)
	g.Checks = append([]Check{}, f.Checks...)
	for i := range g.Checks {
		v := &g.Checks[i].Value
		for _, x := range []*float64{&v.Mean, &v.Low, &v.High} {
			if math.IsNaN(*x) || math.IsInf(*x, 0) {
				*x = 0
			}
		}
	}
	return json.Marshal(g)
}
