package paper

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"braid/experiment"
	"braid/link"
	"braid/netsim"
)

// tiny is a figure that takes a moment: one connection over two slow paths, with every kind of chart.
func tiny() Figure {
	return Figure{
		ID: "tiny", Title: "A <tiny> figure", Claim: "Two paths carry more than one & a half.", Setup: "Two paths of 4 Mbit/s.",
		Cells: func(m Mode) []experiment.Cell {
			specs := []link.Spec{netsim.Bottleneck(4, 10, 0), netsim.Bottleneck(4, 10, 0.01)}
			return []experiment.Cell{{Name: "both", Scenario: bottlenecks(specs, "bbr", "minrtt", 0).During(3), Seeds: m.seeds(5, 2), Vary: stagger,
				Keep: keepOf(experiment.Keep{Goodput: true})}}
		},
		Judge: func(_ Mode, d *Data) *Findings {
			f := &Findings{}
			bin, series := d.meanSeries("both", goodputSeries)
			bar := Series{Name: "goodput"}
			bar.bar(d.mean("both", goodput))
			f.Charts = []Chart{
				{Name: "time", Title: "over time", Kind: Lines, X: "time (s)", Y: "Mbit/s", Series: []Series{overTime("goodput", bin, series)}, Marks: []Mark{{1, "one"}}, Limit: 7.6, LimitName: "capacity"},
				{Name: "bars", Title: "bars", Kind: Bars, Y: "Mbit/s", Categories: []string{"both"}, Series: []Series{bar}},
				{Name: "boxes", Title: "boxes", Kind: Boxes, Y: "Mbit/s", Categories: []string{"both"}, Series: []Series{{Name: "goodput", Samples: [][]float64{d.values("both", goodput)}}}},
				{Name: "cdf", Title: "distribution", Kind: CDF, X: "Mbit/s", Y: "share", Series: []Series{cdf("goodput", d.values("both", goodput))}},
			}
			f.Tables = []Table{{Name: "t", Title: "numbers", Header: []string{"cell", "goodput"}, Rows: [][]string{{"both", d.mean("both", goodput).String()}}}}
			f.atLeast("goodput", d.mean("both", goodput), "Mbit/s", 6)
			return f
		},
	}
}

// report runs tiny in quick mode and judges it.
func report(t *testing.T) *Report {
	t.Helper()
	f, m := tiny(), Mode{Quick: true}
	jobs, err := experiment.Jobs(f.ID, f.Cells(m))
	if err != nil {
		t.Fatal(err)
	}
	set, err := experiment.Sweep{}.Run(context.Background(), jobs)
	if err != nil {
		t.Fatal(err)
	}
	return &Report{Quick: true, Entries: []*Entry{Judge(&f, m, set)}}
}

// From cells to files: every chart in four formats, and a verdict that is labelled quick.
func TestFigureFromEndToEnd(t *testing.T) {
	r, dir := report(t), t.TempDir()
	if e := r.Entries[0]; e.Verdict != "holds (quick)" || e.Runs != 2 {
		t.Errorf("verdict %q after %d runs: %+v", e.Verdict, e.Runs, e.Findings.Checks)
	}
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"time", "bars", "boxes", "cdf"} {
		file := func(ending string) []byte {
			b, err := os.ReadFile(filepath.Join(dir, "tiny", name+ending))
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		if _, err := png.Decode(bytes.NewReader(file(".png"))); err != nil {
			t.Errorf("%s.png: %v", name, err)
		}
		wellFormed(t, name+".svg", file(".svg"), true)
		rows, err := csv.NewReader(bytes.NewReader(file(".csv"))).ReadAll()
		if err != nil || len(rows) < 2 || rows[0][0] != "series" || rows[1][0] != "goodput" {
			t.Errorf("%s.csv: %v, %v", name, rows, err)
		}
		var c Chart
		if err := json.Unmarshal(file(".json"), &c); err != nil || c.Name != name || len(c.Series) != 1 {
			t.Errorf("%s.json: %v", name, err)
		}
	}
	for _, name := range []string{"verdicts.json", "verdicts.md", "report.html", "tiny/findings.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// wellFormed reads all tokens of XML, or of HTML that closes what XML would.
func wellFormed(t *testing.T, name string, b []byte, strict bool) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(b))
	d.Strict = strict
	if !strict {
		d.AutoClose, d.Entity = xml.HTMLAutoClose, xml.HTMLEntity
	}
	for {
		_, err := d.Token()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
	}
}

// The report is one page: well-formed, with everything in it, and nothing that a browser would fetch.
func TestReportIsSelfContained(t *testing.T) {
	var page bytes.Buffer
	if err := report(t).WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	html := page.String()
	wellFormed(t, "report.html", page.Bytes(), false)
	for _, m := range regexp.MustCompile(`(?:src|href|url)\s*[=(]\s*["']?([^"')> ]*)`).FindAllStringSubmatch(html, -1) {
		if !strings.HasPrefix(m[1], "data:image/") && !strings.HasPrefix(m[1], "#") {
			t.Errorf("refers to %q", m[1])
		}
	}
	if strings.Contains(html, "<script") || strings.Contains(html, "@import") {
		t.Error("has a script or imports a style")
	}
	for _, want := range []string{"A &lt;tiny&gt; figure", "one &amp; a half", "holds (quick)", "braid paper tiny --quick", "Mbit/s", "This is a quick run"} {
		if !strings.Contains(html, want) {
			t.Errorf("lacks %q", want)
		}
	}
	if n := strings.Count(html, ";base64,"); n != 4 {
		t.Errorf("%d plots, want 4", n)
	}
}
