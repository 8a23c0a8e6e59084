package main

import (
	"fmt"
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// line is one curve of a plot over time.
type line struct {
	name   string
	colour color.Color
	fill   bool // shade down to the axis
	time_s []float64
	value  []float64
}

// mark is a vertical line at a moment worth naming.
type mark struct {
	time_s float64
	name   string
}

// The palette: distinguishable without colour vision, dark enough for print.
var (
	blue   = color.NRGBA{0x00, 0x72, 0xb2, 0xff}
	orange = color.NRGBA{0xd5, 0x5e, 0x00, 0xff}
	green  = color.NRGBA{0x00, 0x9e, 0x73, 0xff}
	purple = color.NRGBA{0xcc, 0x79, 0xa7, 0xff}
	black  = color.NRGBA{0x20, 0x20, 0x20, 0xff}
	grey   = color.NRGBA{0x80, 0x80, 0x80, 0xff}
)

// palette returns the colour of the i-th subflow.
func palette(i int) color.Color { return []color.Color{blue, orange, green, purple}[i%4] }

// plotOverTime writes the lines with their marks to file; its ending (.svg, .png, .pdf) chooses the format.
func plotOverTime(file, title, unit string, lines []line, marks []mark) error {
	p := plot.New()
	p.Title.Text = title
	p.X.Label.Text = "time (s)"
	p.Y.Label.Text = unit
	p.Y.Min = 0
	p.Legend.Top = true
	p.Legend.Padding = vg.Points(2)
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.TickerFunc(roundTicks), plot.TickerFunc(roundTicks)
	p.Add(plotter.NewGrid())
	top := 0.0
	for _, l := range lines {
		xys := make(plotter.XYs, len(l.time_s))
		for i := range xys {
			xys[i] = plotter.XY{X: l.time_s[i], Y: l.value[i]}
			top = max(top, l.value[i])
		}
		pl, err := plotter.NewLine(xys)
		if err != nil {
			return fmt.Errorf("plot %q: %w", l.name, err)
		}
		pl.Color = l.colour
		pl.Width = vg.Points(1.5)
		if l.fill {
			r, g, b, _ := l.colour.RGBA()
			pl.FillColor = color.NRGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 0x30}
		}
		p.Add(pl)
		p.Legend.Add(l.name, pl)
	}
	p.Y.Max = top * 1.3 // room for the legend and the marks
	for _, m := range marks {
		v, err := plotter.NewLine(plotter.XYs{{X: m.time_s, Y: 0}, {X: m.time_s, Y: p.Y.Max}})
		if err != nil {
			return err
		}
		v.Color, v.Dashes = grey, []vg.Length{vg.Points(4), vg.Points(3)}
		label, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{{X: m.time_s, Y: p.Y.Max * 0.97}}, Labels: []string{" " + m.name}})
		if err != nil {
			return err
		}
		p.Add(v, label)
	}
	return p.Save(18*vg.Centimeter, 9*vg.Centimeter, file)
}

// roundTicks puts about eight ticks at round numbers.
func roundTicks(low, high float64) (ticks []plot.Tick) {
	step := math.Pow(10, math.Floor(math.Log10((high-low)/4)))
	for (high-low)/step > 10 {
		step *= 2
	}
	for v := math.Ceil(low/step) * step; v <= high; v += step {
		ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(math.Round(v/step)*step, 'g', 6, 64)})
	}
	return ticks
}
