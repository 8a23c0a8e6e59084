package paper

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The size of every plot.
const (
	plotWidth  = 17 * vg.Centimeter
	plotHeight = 9.5 * vg.Centimeter
)

// The palette can be told apart without colour vision.
var palette = []color.NRGBA{
	{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff},
	{0xe6, 0x9f, 0x00, 0xff}, {0x56, 0xb4, 0xe9, 0xff}, {0x40, 0x40, 0x40, 0xff}, {0x99, 0x33, 0x33, 0xff},
}

func colour(i int) color.NRGBA { return palette[i%len(palette)] }

// Draw renders the chart; format is "svg" or "png".
func (c *Chart) Draw(format string) ([]byte, error) {
	p := plot.New()
	p.Title.Text = c.Title
	p.X.Label.Text, p.Y.Label.Text = c.X, c.Y
	p.Legend.Top = true
	p.Legend.TextStyle.Font.Size = vg.Points(9)
	p.Legend.ThumbnailWidth, p.Legend.Padding = vg.Points(18), vg.Points(2)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{0xe0}, color.Gray{0xe0}
	p.Add(grid)
	var err error
	switch c.Kind {
	case Lines, CDF:
		err = c.drawLines(p)
	case Bars:
		err = c.drawBars(p)
	case Boxes:
		err = c.drawBoxes(p)
	default:
		err = fmt.Errorf("kind %q", c.Kind)
	}
	if err == nil {
		err = c.drawMarks(p)
	}
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", c.Name, err)
	}
	return render(p, format)
}

func render(p *plot.Plot, format string) ([]byte, error) {
	w, err := p.WriterTo(plotWidth, plotHeight, format)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if _, err := w.WriteTo(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// least is the smallest positive value that a logarithmic axis shows.
const least = 1e-3

func (c *Chart) drawLines(p *plot.Plot) error {
	if c.LogY {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	} else {
		p.Y.Min = 0
	}
	if c.LogX {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	if c.Kind == CDF {
		p.Y.Max = 1
		p.Legend.Left, p.Legend.Top = true, true
	}
	for i := range c.Series {
		if err := c.drawLine(p, i); err != nil {
			return err
		}
	}
	if !c.LogY && c.Kind == Lines {
		p.Y.Max *= 1 + 0.06*float64(min(len(c.Series), 5)) // room for the legend
	}
	return nil
}

func (c *Chart) drawLine(p *plot.Plot, i int) error {
	s := &c.Series[i]
	xys := make(plotter.XYs, 0, len(s.Y))
	for k := range s.Y {
		x, y := s.X[k], s.Y[k]
		if c.LogX {
			x = max(x, least)
		}
		if c.LogY {
			y = max(y, least)
		}
		if c.Kind == CDF && len(xys) > 0 {
			xys = append(xys, plotter.XY{X: x, Y: xys[len(xys)-1].Y})
		}
		xys = append(xys, plotter.XY{X: x, Y: y})
	}
	if len(xys) == 0 {
		return nil
	}
	l, err := plotter.NewLine(xys)
	if err != nil {
		return err
	}
	l.Color, l.Width = colour(i), vg.Points(1.3)
	if s.Dashed || i >= 4 {
		l.Dashes = []vg.Length{vg.Points(5), vg.Points(2)}
	}
	p.Add(l)
	if len(s.Low) == 0 {
		p.Legend.Add(s.Name, l)
		return nil
	}
	points, err := plotter.NewScatter(xys)
	if err != nil {
		return err
	}
	points.GlyphStyle = draw.GlyphStyle{Color: colour(i), Radius: vg.Points(2.5), Shape: glyph(i)}
	p.Add(points)
	p.Legend.Add(s.Name, l, points)
	return errorBars(p, xys, s, colour(i), c.LogY)
}

func glyph(i int) draw.GlyphDrawer {
	return []draw.GlyphDrawer{draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.PyramidGlyph{}, draw.RingGlyph{}, draw.BoxGlyph{}}[i%6]
}

// intervals are points with the distances to the ends of their intervals.
type intervals struct {
	plotter.XYs
	plotter.YErrors
}

func errorBars(p *plot.Plot, at plotter.XYs, s *Series, c color.Color, log bool) error {
	e := intervals{XYs: at}
	any := false
	for k := range s.Low {
		low, high := at[k].Y-s.Low[k], s.High[k]-at[k].Y
		if math.IsNaN(low) || math.IsNaN(high) {
			low, high = 0, 0
		}
		if log {
			low = min(low, at[k].Y*0.9)
		}
		any = any || low > 0 || high > 0
		e.YErrors = append(e.YErrors, struct{ Low, High float64 }{-low, high})
	}
	if !any {
		return nil
	}
	bars, err := plotter.NewYErrorBars(e)
	if err != nil {
		return err
	}
	bars.Color = c
	p.Add(bars)
	return nil
}

// drawBars draws groups of bars, one for each category; series with the same Group are stacked.
func (c *Chart) drawBars(p *plot.Plot) error {
	p.Y.Min = 0
	groups := c.groups()
	width := 0.8 * float64(plotWidth-2.5*vg.Centimeter) / float64(len(c.Categories)) / float64(groups)
	below := map[int]*plotter.BarChart{}
	base := map[int][]float64{}
	top := 0.0
	for i := range c.Series {
		s := &c.Series[i]
		g := c.group(i)
		values := make(plotter.Values, len(s.Y))
		for k, v := range s.Y {
			if !math.IsNaN(v) {
				values[k] = v
			}
		}
		b, err := plotter.NewBarChart(values, vg.Length(width))
		if err != nil {
			return err
		}
		b.Color, b.LineStyle.Width = colour(i), 0
		b.Offset = vg.Length((float64(g) - float64(groups-1)/2) * width)
		if under := below[g]; under != nil {
			b.StackOn(under)
		} else {
			base[g] = make([]float64, len(values))
		}
		below[g] = b
		p.Add(b)
		p.Legend.Add(s.Name, b)
		for k := range values {
			base[g][k] += values[k]
			top = max(top, base[g][k])
			if k < len(s.High) && k < len(s.Y) && !math.IsNaN(s.High[k]) {
				top = max(top, min(base[g][k]+s.High[k]-s.Y[k], 1.5*base[g][k]))
			}
		}
		if err := barErrors(p, s, base[g], b.Offset); err != nil {
			return err
		}
	}
	c.nameCategories(p)
	p.Y.Max = max(top, c.Limit) * (1.05 + 0.06*float64(min(len(c.Series), 6)))
	return nil
}

// nameCategories labels the X axis, turned when the names would run into each other.
func (c *Chart) nameCategories(p *plot.Plot) {
	const lineOfText = 90 // characters
	p.NominalX(c.Categories...)
	if len(strings.Join(c.Categories, "  ")) > lineOfText {
		p.X.Tick.Label.Rotation = math.Pi / 9
		p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = draw.XRight, draw.YTop
	}
}

// group returns which group of bars series i is in: its own, if none has one.
func (c *Chart) group(i int) int {
	for k := range c.Series {
		if c.Series[k].Group != 0 {
			return c.Series[i].Group
		}
	}
	return i
}

func (c *Chart) groups() int {
	n := 0
	for i := range c.Series {
		n = max(n, c.group(i)+1)
	}
	return max(n, 1)
}

// barErrors draws the intervals of bars, moved like the bars.
func barErrors(p *plot.Plot, s *Series, tops []float64, offset vg.Length) error {
	if len(s.Low) == 0 {
		return nil
	}
	xys := make(plotter.XYs, len(tops))
	moved := Series{}
	for k := range tops {
		xys[k] = plotter.XY{X: float64(k), Y: tops[k]}
		shift := tops[k] - s.Y[k]
		moved.Low, moved.High = append(moved.Low, s.Low[k]+shift), append(moved.High, s.High[k]+shift)
	}
	e := intervals{XYs: xys}
	for k := range tops {
		low, high := max(tops[k]-moved.Low[k], 0), max(moved.High[k]-tops[k], 0)
		e.YErrors = append(e.YErrors, struct{ Low, High float64 }{-low, high})
	}
	p.Add(shifted{e, offset})
	return nil
}

// shifted draws error bars beside where their X is.
type shifted struct {
	intervals
	offset vg.Length
}

// Plot implements plot.Plotter.
func (s shifted) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	style := draw.LineStyle{Color: color.Black, Width: vg.Points(0.7)}
	for i := range s.XYs {
		low, high := max(s.XYs[i].Y+s.YErrors[i].Low, p.Y.Min), min(s.XYs[i].Y+s.YErrors[i].High, p.Y.Max)
		if !(high > low) {
			continue
		}
		at := x(s.XYs[i].X) + s.offset
		const cap = 2.5
		c.StrokeLine2(style, at, y(low), at, y(high))
		c.StrokeLine2(style, at-cap, y(low), at+cap, y(low))
		c.StrokeLine2(style, at-cap, y(high), at+cap, y(high))
	}
}

// drawBoxes draws medians, quartiles and whiskers, one group for each category.
func (c *Chart) drawBoxes(p *plot.Plot) error {
	if c.LogY {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	} else {
		p.Y.Min = 0
	}
	n := len(c.Series)
	width := 0.7 * float64(plotWidth-2.5*vg.Centimeter) / float64(max(len(c.Categories), 1)*n)
	for i := range c.Series {
		for k, samples := range c.Series[i].Samples {
			if len(samples) == 0 {
				continue
			}
			values := make(plotter.Values, len(samples))
			for j, v := range samples {
				values[j] = v
				if c.LogY {
					values[j] = max(v, least)
				}
			}
			b, err := plotter.NewBoxPlot(vg.Length(width), float64(k), values)
			if err != nil {
				return err
			}
			b.Offset = vg.Length((float64(i) - float64(n-1)/2) * width * 1.1)
			b.FillColor = colour(i)
			b.MedianStyle.Width = vg.Points(2)
			p.Add(b)
		}
		if n > 1 {
			p.Legend.Add(c.Series[i].Name, swatch{colour(i)})
		}
	}
	c.nameCategories(p)
	if !c.LogY {
		p.Y.Max *= 1.05
		if n > 1 {
			p.Y.Max *= 1 + 0.06*float64(n)
		}
	}
	return nil
}

// swatch is a legend's patch of colour.
type swatch struct{ color.Color }

// Thumbnail implements plot.Thumbnailer.
func (s swatch) Thumbnail(c *draw.Canvas) {
	c.FillPolygon(s.Color, []vg.Point{{X: c.Min.X, Y: c.Min.Y}, {X: c.Min.X, Y: c.Max.Y}, {X: c.Max.X, Y: c.Max.Y}, {X: c.Max.X, Y: c.Min.Y}})
}

// drawMarks draws vertical lines with their names, and the horizontal limit.
func (c *Chart) drawMarks(p *plot.Plot) error {
	dashes := []vg.Length{vg.Points(4), vg.Points(3)}
	for _, m := range c.Marks {
		v, err := plotter.NewLine(plotter.XYs{{X: m.X, Y: p.Y.Min}, {X: m.X, Y: p.Y.Max}})
		if err != nil {
			return err
		}
		v.Color, v.Dashes = color.Gray{0x70}, dashes
		label, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{{X: m.X, Y: p.Y.Max * 0.96}}, Labels: []string{" " + m.Name}})
		if err != nil {
			return err
		}
		p.Add(v, label)
	}
	if c.Limit > 0 {
		h, err := plotter.NewLine(plotter.XYs{{X: p.X.Min, Y: c.Limit}, {X: p.X.Max, Y: c.Limit}})
		if err != nil {
			return err
		}
		h.Color, h.Dashes = color.Gray{0x50}, dashes
		p.Add(h)
		p.Legend.Add(c.LimitName, h)
	}
	return nil
}
