package paper

import (
	"fmt"
	"strings"

	"braid/experiment"
	"braid/netsim"
)

// Figure is one table or figure: what is run, what is claimed, and how the results are judged.
type Figure struct {
	ID    string // "fig8a"
	Title string
	Claim string // what the paper says, in our words
	Setup string // what is run, for the reader of the report
	Cells func(m Mode) []experiment.Cell
	Judge func(m Mode, d *Data) *Findings
	Real  func(cell string) bool // which cells are run in real time too (see RealCells); nil: none
}

// Mode says how thoroughly experiments are run, and over what.
type Mode struct {
	Quick  bool    // few seeds and short runs: verdicts are labelled quick
	Seeds  int     // 0: each experiment's own number
	Traces *Traces // recorded paths for Figs. 12-15; nil: generated ones
}

// seeds returns how many seeds to use.
func (m Mode) seeds(full, quick int) int {
	switch {
	case m.Seeds > 0:
		return m.Seeds
	case m.Quick:
		return quick
	}
	return full
}

// pick returns the value for the mode.
func pick[T any](m Mode, full, quick T) T {
	if m.Quick {
		return quick
	}
	return full
}

// Findings is what an experiment showed.
type Findings struct {
	Charts []Chart  `json:"charts"`
	Tables []Table  `json:"tables,omitempty"`
	Checks []Check  `json:"checks"`
	Notes  []string `json:"notes,omitempty"` // what a reader should know of the numbers, computed where it depends on them
}

// Table is numbers in rows.
type Table struct {
	Name   string     `json:"name"`
	Title  string     `json:"title"`
	Header []string   `json:"header"`
	Rows   [][]string `json:"rows"`
}

// note adds a formatted note.
func (f *Findings) note(format string, args ...any) {
	f.Notes = append(f.Notes, fmt.Sprintf(format, args...))
}

// Data gives a Figure's results by cell.
type Data struct {
	set *experiment.Set
	id  string
}

// NewData returns the results of a Figure among those of a sweep.
func NewData(set *experiment.Set, id string) *Data { return &Data{set, id} }

// results returns a cell's results, in order of seeds.
func (d *Data) results(cell string) []*netsim.Result { return d.set.Results(d.id, cell) }

// values applies f to every result of a cell.
func (d *Data) values(cell string, f func(*netsim.Result) float64) []float64 {
	var out []float64
	for _, r := range d.results(cell) {
		out = append(out, f(r))
	}
	return out
}

// mean is the mean of values.
func (d *Data) mean(cell string, f func(*netsim.Result) float64) experiment.Interval {
	return experiment.Mean(d.values(cell, f))
}

// measured returns a value that the cell's Measure took, by seed; runs without it are left out.
func (d *Data) measured(cell, name string) []float64 {
	var out []float64
	for _, r := range d.set.Records(d.id, cell) {
		if v, ok := r.Values[name]; ok {
			out = append(out, v)
		}
	}
	return out
}

// ratios divides values seed by seed.
func ratios(a, b []float64) []float64 {
	out := make([]float64, min(len(a), len(b)))
	for i := range out {
		out[i] = a[i] / b[i]
	}
	return out
}

// All returns every Figure, in the paper's order, then this project's own tables.
func All() []Figure {
	return []Figure{table1(), fig3(), fig8a(), fig8b(), fig9a(), fig9b(), fig10a(), fig10b(), fig11a(), fig11b(), fig12(), fig13(), fig14(), fig15(), fig17a(), fig17b(), fig18(), fig19(), fig20(), fairness(), neverworse()}
}

// Find returns the figures that names mean: an ID, the beginning of several ("fig11"), or "all".
func Find(names ...string) ([]Figure, error) {
	all := All()
	want := map[string]bool{}
	for _, n := range names {
		found := false
		for _, f := range all {
			if n == "all" || f.ID == n || isPart(f.ID, n) {
				want[f.ID], found = true, true
			}
		}
		if !found {
			var ids []string
			for _, f := range all {
				ids = append(ids, f.ID)
			}
			return nil, fmt.Errorf("experiment %q is unknown; there are all, %s", n, strings.Join(ids, ", "))
		}
	}
	var out []Figure
	for _, f := range all {
		if want[f.ID] {
			out = append(out, f)
		}
	}
	return out, nil
}

// isPart reports whether id is a part of a figure: fig11a of fig11, but not fig11 of fig1.
func isPart(id, figure string) bool {
	rest, ok := strings.CutPrefix(id, figure)
	return ok && len(rest) == 1 && rest[0] >= 'a' && rest[0] <= 'z'
}
