package paper

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"

	"braid/experiment"
)

// Kind is a kind of chart.
type Kind string

// The kinds of chart.
const (
	Lines Kind = "lines" // Series.X, Y and, if there, Low and High
	CDF   Kind = "cdf"   // like Lines; X is the value, Y the share of values up to it
	Bars  Kind = "bars"  // Series.Y, Low, High by category; series of one Group stand on each other
	Boxes Kind = "boxes" // Series.Samples by category
)

// Chart is a plot as data.
type Chart struct {
	Name       string   `json:"name"` // of its files
	Title      string   `json:"title"`
	Kind       Kind     `json:"kind"`
	X          string   `json:"x"` // axis labels
	Y          string   `json:"y"`
	LogX       bool     `json:"log_x,omitempty"`
	LogY       bool     `json:"log_y,omitempty"`
	Categories []string `json:"categories,omitempty"`
	Series     []Series `json:"series"`
	Marks      []Mark   `json:"marks,omitempty"`
	Limit      float64  `json:"limit,omitempty"` // a dashed horizontal line, for what is possible; 0: none
	LimitName  string   `json:"limit_name,omitempty"`
}

// Series is one line, one set of bars or one set of boxes.
type Series struct {
	Name    string      `json:"name"`
	X       []float64   `json:"x,omitempty"`
	Y       []float64   `json:"y,omitempty"`
	Low     []float64   `json:"low,omitempty"`
	High    []float64   `json:"high,omitempty"`
	Samples [][]float64 `json:"samples,omitempty"`
	Group   int         `json:"group,omitempty"`
	Dashed  bool        `json:"dashed,omitempty"`
}

// Mark is a vertical line at a moment worth naming.
type Mark struct {
	X    float64 `json:"x"`
	Name string  `json:"name"`
}

// add appends a point with its interval to the series.
func (s *Series) add(x float64, i experiment.Interval) {
	s.X = append(s.X, x)
	s.bar(i)
}

// bar appends a bar with its interval to the series.
func (s *Series) bar(i experiment.Interval) {
	s.Y = append(s.Y, i.Mean)
	s.Low = append(s.Low, i.Low)
	s.High = append(s.High, i.High)
}

// overTime makes a series of values in bins of a width; x is the middle of the bin.
func overTime(name string, binS float64, values []float64) Series {
	s := Series{Name: name, Y: values}
	for i := range values {
		s.X = append(s.X, (float64(i)+0.5)*binS)
	}
	return s
}

// cdf makes the distribution of values.
func cdf(name string, values []float64) Series {
	s := Series{Name: name}
	v := slices.Sorted(slices.Values(values))
	for i := range v {
		s.X = append(s.X, v[i])
		s.Y = append(s.Y, float64(i+1)/float64(len(v)))
	}
	return s
}

// smooth averages over n bins at a time.
func smooth(values []float64, n int) []float64 {
	var out []float64
	for i := 0; i+n <= len(values); i += n {
		sum := 0.0
		for _, v := range values[i : i+n] {
			sum += v
		}
		out = append(out, sum/float64(n))
	}
	return out
}

// averageSeries averages series of runs, bin by bin.
func averageSeries(runs [][]float64) []float64 {
	if len(runs) == 0 {
		return nil
	}
	n := len(runs[0])
	for _, r := range runs {
		n = min(n, len(r))
	}
	out := make([]float64, n)
	for _, r := range runs {
		for i := range out {
			out[i] += r[i] / float64(len(runs))
		}
	}
	return out
}

// WriteCSV writes a row for every point: series, category or x, y, and the interval; of boxes a row for every sample.
func (c *Chart) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	text := func(v float64) string { return strconv.FormatFloat(v, 'g', 7, 64) }
	at := func(s *Series, i int) string {
		if i < len(s.X) {
			return text(s.X[i])
		}
		if i < len(c.Categories) {
			return c.Categories[i]
		}
		return strconv.Itoa(i)
	}
	row := func(fields ...string) { _ = out.Write(fields) } // errors show in Error
	row("series", "x", "y", "low", "high")
	for i := range c.Series {
		s := &c.Series[i]
		for k, y := range s.Y {
			low, high := "", ""
			if k < len(s.Low) {
				low, high = text(s.Low[k]), text(s.High[k])
			}
			row(s.Name, at(s, k), text(y), low, high)
		}
		for k, samples := range s.Samples {
			for _, v := range samples {
				row(s.Name, at(s, k), text(v), "", "")
			}
		}
	}
	out.Flush()
	return out.Error()
}
