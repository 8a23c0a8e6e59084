package paper

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"braid/experiment"
	"braid/netsim"
)

// Both is one run of a cell in the simulator, several times with the same paths, and in real time.
type Both struct {
	Cell      string           `json:"cell"`
	Seed      uint64           `json:"seed"`
	Simulated []*netsim.Result `json:"simulated"` // at least one
	Real      *netsim.Result   `json:"real"`

	LatenessP50Ms float64 `json:"lateness_p50_ms"` // of the emulated links in real time
	LatenessP99Ms float64 `json:"lateness_p99_ms"`
	Late          bool    `json:"late"` // too late for the run to count
	LostPackets   int64   `json:"lost_packets"`
	Tries         int     `json:"tries"`
}

// FindReal returns the figures that names mean and that are run in real time.
func FindReal(names ...string) ([]Figure, error) {
	var out []Figure
	var ids []string
	for _, f := range append(All(), Truth()) {
		if f.Real == nil {
			continue
		}
		ids = append(ids, f.ID)
		if slices.Contains(names, f.ID) || slices.Contains(names, "all") {
			out = append(out, f)
		}
	}
	for _, n := range names {
		if n != "all" && !slices.Contains(ids, n) {
			return nil, fmt.Errorf("experiment %q is not run in real time; those that are: all, %s", n, strings.Join(ids, ", "))
		}
	}
	return out, nil
}

// RealCells are the cells of a figure that are run in real time: once, and for at most 30 seconds (12 in quick mode).
func (f *Figure) RealCells(m Mode) []experiment.Cell {
	longest := pick(m, 30.0, 12)
	var out []experiment.Cell
	for _, c := range f.Cells(m) {
		if !f.Real(c.Name) {
			continue
		}
		if c.Scenario.DurationS > longest {
			c.Scenario = c.Scenario.During(longest)
		}
		c.Seeds = max(m.Seeds, 1)
		out = append(out, c)
	}
	return out
}

// How far a run in real time may lie outside what the simulator's runs span: of the goodput, and of a path's share of the traffic.
const (
	goodputTolerance = 0.1
	shareTolerance   = 0.1
)

// realID is the ID of the entry of a figure's runs in real time.
func realID(id string) string {
	if id == truthID {
		return id
	}
	return id + "-real"
}

// JudgeReal sets a figure's runs in real time beside those in the simulator.
func JudgeReal(f *Figure, m Mode, runs []Both) *Entry {
	e := &Entry{ID: realID(f.ID), Title: f.Title + ": simulated and in real time", Setup: f.Setup, Runs: len(runs), Rerun: "braid paper " + f.ID + " --real",
		Claim: fmt.Sprintf("What the simulator says is what the same stack does in real time, over sockets: the goodput lies within what simulations with different seeds span, give or take %.0f %%, and so do the paths' shares, give or take %v.", 100*goodputTolerance, shareTolerance)}
	if f.ID == truthID {
		e.Title, e.Claim, e.Rerun = f.Title, f.Claim+" "+e.Claim, "braid paper "+f.ID
	}
	if m.Quick {
		e.Rerun += " --quick"
	}
	e.Findings = compare(f, runs)
	e.Verdict = string(e.Findings.Verdict())
	if m.Quick {
		e.Verdict += " (quick)"
	}
	return e
}

// span is what the simulations of a run say of a value: the mean, the least and the most.
func (b *Both) span(of func(*netsim.Result) float64) experiment.Interval {
	i := experiment.Interval{N: len(b.Simulated), Low: math.Inf(1), High: math.Inf(-1)}
	for _, r := range b.Simulated {
		v := of(r)
		i.Mean += v / float64(i.N)
		i.Low, i.High = min(i.Low, v), max(i.High, v)
	}
	return i
}

// name is the run's row.
func (b *Both) name(runs []Both) string {
	if slices.ContainsFunc(runs, func(o Both) bool { return o.Cell == b.Cell && o.Seed != b.Seed }) {
		return fmt.Sprintf("%s, seed %d", b.Cell, b.Seed)
	}
	return b.Cell
}

// exactly is a value without an interval.
func exactly(v float64) experiment.Interval {
	return experiment.Interval{N: 1, Mean: v, Low: v, High: v}
}

// compare makes the table, the charts and the checks.
func compare(f *Figure, runs []Both) *Findings {
	out := &Findings{}
	t := Table{Name: "real", Title: "Simulated (least to most) and real",
		Header: []string{"run", "goodput, simulated (Mbit/s)", "real", "real / simulated", "share of path 1, simulated", "real", "out-of-order queue, simulated (packets)", "real", "lateness p50, p99 (ms)", ""}}
	var charts []Chart
	for _, c := range []struct{ name, y string }{{"goodput", "goodput (Mbit/s)"}, {"queue", "mean out-of-order queue (packets)"}} {
		charts = append(charts, Chart{Name: c.name, Title: f.Title, Kind: Bars, Y: c.y, Series: []Series{{Name: "simulated", Group: 0}, {Name: "real", Group: 1}}})
	}
	late := 0
	for i := range runs {
		b := &runs[i]
		name := b.name(runs)
		sim, real := b.span(goodput), goodput(b.Real)
		part, realPart := b.span(share(1)), share(1)(b.Real)
		queue, realQueue := b.span(disorder), disorder(b.Real)
		t.Rows = append(t.Rows, []string{name, spanText(sim), fmt.Sprintf("%.2f", real), fmt.Sprintf("%.3f", real/sim.Mean), spanText(part), fmt.Sprintf("%.2f", realPart),
			spanText(queue), fmt.Sprintf("%.1f", realQueue), fmt.Sprintf("%.2f, %.2f", b.LatenessP50Ms, b.LatenessP99Ms), b.remark()})
		for k, v := range []experiment.Interval{sim, queue} {
			charts[k].Categories = append(charts[k].Categories, name)
			charts[k].Series[0].bar(v)
			charts[k].Series[1].bar(exactly([]float64{real, realQueue}[k]))
		}
		if b.Late {
			late++
			continue
		}
		out.between("goodput, "+name, exactly(real), "Mbit/s", digits(sim.Low*(1-goodputTolerance)), digits(sim.High*(1+goodputTolerance)))
		if len(b.Real.Flow(multipath).Subflows) > 1 {
			out.between("share of path 1, "+name, exactly(realPart), "", digits(part.Low-shareTolerance), digits(part.High+shareTolerance))
		}
	}
	if late > 0 {
		out.note("%d of %d runs were late by more than a millisecond (99th percentile): they are shown and not judged. The machine had other things to do.", late, len(runs))
	}
	out.note("Packets travel over UDP in both worlds. Each row's simulations have the same paths and other random numbers; the run in real time draws its own.")
	out.Charts, out.Tables = charts, []Table{t}
	return out
}

// remark says what a reader of a run's row must know.
func (b *Both) remark() string {
	var words []string
	if b.Late {
		words = append(words, "late")
	}
	if b.Tries > 1 {
		words = append(words, fmt.Sprintf("%d tries", b.Tries))
	}
	if b.LostPackets > 0 {
		words = append(words, fmt.Sprintf("sockets lost %d packets", b.LostPackets))
	}
	if e := b.Real.Flow(multipath).Error; e != "" {
		words = append(words, e)
	}
	return strings.Join(words, "; ")
}

func spanText(i experiment.Interval) string {
	return fmt.Sprintf("%.2f (%.2f to %.2f)", i.Mean, i.Low, i.High)
}

// digits rounds a threshold to three significant digits.
func digits(v float64) float64 {
	if v == 0 {
		return 0
	}
	scale := math.Pow(10, 2-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}

// Markdown is the table for people: GitHub's form.
func (t *Table) Markdown() string {
	var b strings.Builder
	row := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	row(t.Header)
	row(slices.Repeat([]string{"---"}, len(t.Header)))
	for _, r := range t.Rows {
		row(r)
	}
	return b.String()
}

// WriteRuns writes a table of the runs (runs.csv), and all that was measured (runs.json), to a folder.
func WriteRuns(dir string, runs []Both) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, "runs.csv"))
	if err != nil {
		return err
	}
	if err := errors.Join(writeRuns(f, runs), f.Close()); err != nil {
		return err
	}
	return writeJSON(filepath.Join(dir, "runs.json"), runs)
}

// writeRuns writes a row for every flow of every run, in the simulator and in real time.
func writeRuns(w io.Writer, runs []Both) error {
	out := csv.NewWriter(w)
	text := func(v float64) string { return strconv.FormatFloat(v, 'g', 7, 64) }
	_ = out.Write(strings.Split("cell,seed,world,flow,goodput_mbps,out_of_order_packets,path,throughput_mbps,mean_rtt_ms,lateness_p50_ms,lateness_p99_ms,late", ",")) // errors show in Error
	for i := range runs {
		b := &runs[i]
		rows := func(world string, r *netsim.Result, timing ...string) {
			for _, f := range r.Flows {
				for _, s := range f.Subflows {
					_ = out.Write(append([]string{b.Cell, strconv.FormatUint(r.Seed, 10), world, f.Name, text(f.GoodputMbps), text(f.OutOfOrderPackets),
						s.Path, text(s.ThroughputMbps), text(s.MeanRTTMs)}, timing...))
				}
			}
		}
		for _, r := range b.Simulated {
			rows("simulated", r, "", "", "")
		}
		rows("real", b.Real, text(b.LatenessP50Ms), text(b.LatenessP99Ms), strconv.FormatBool(b.Late))
	}
	out.Flush()
	return out.Error()
}
