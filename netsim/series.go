package netsim

import (
	"math"
	"slices"
	"time"

	"braid/clock"
)

// bins adds up amounts by equal stretches of time.
type bins struct {
	width time.Duration
	sums  []float64
	last  int // bin used last: most amounts come in order of time
	end   clock.Time
}

// add puts an amount at a time, which never lies before the one of the last call.
func (b *bins) add(now clock.Time, amount float64) {
	if now >= b.end {
		b.extend(now)
	}
	b.sums[b.last] += amount
}

func (b *bins) extend(now clock.Time) {
	b.last = int(now / clock.Time(b.width))
	b.end = clock.Time(b.last+1) * clock.Time(b.width)
	for len(b.sums) <= b.last {
		b.sums = append(b.sums, 0)
	}
}

// rates returns the bins as amount per second times unit, n of them.
func (b *bins) rates(n int, unit float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		if i < len(b.sums) {
			out[i] = round(b.sums[i] * unit / b.width.Seconds())
		}
	}
	return out
}

// means averages samples by equal stretches of time. A bin without samples is what the bin before was.
type means struct{ sum, count bins }

func newMeans(width time.Duration) means {
	return means{bins{width: width}, bins{width: width}}
}

func (m *means) add(now clock.Time, v float64) {
	m.sum.add(now, v)
	m.count.add(now, 1)
}

func (m *means) values(n int, unit float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		if i < len(m.sum.sums) && m.count.sums[i] > 0 {
			out[i] = round(m.sum.sums[i] / m.count.sums[i] * unit)
		} else if i > 0 {
			out[i] = out[i-1]
		}
	}
	return out
}

// round keeps results to nine significant digits: what is behind them says nothing, and differs between processors.
func round(v float64) float64 {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return v
	}
	scale := math.Pow(10, 8-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}

// distribution keeps samples in full.
type distribution struct {
	samples []float32
	sum     float64
}

func (d *distribution) add(v float64) {
	d.samples = append(d.samples, float32(v))
	d.sum += v
}

func (d *distribution) mean() float64 {
	if len(d.samples) == 0 {
		return 0
	}
	return round(d.sum / float64(len(d.samples)))
}

// percentiles returns the 0th to the 100th percentile; nil without samples.
func (d *distribution) percentiles() []float64 {
	if len(d.samples) == 0 {
		return nil
	}
	slices.Sort(d.samples)
	out := make([]float64, 101)
	for i := range out {
		out[i] = round(float64(d.samples[i*(len(d.samples)-1)/100]))
	}
	return out
}

// timeMean averages a level over time.
type timeMean struct {
	level float64
	since clock.Time
	begin clock.Time
	area  float64
	max   float64
}

func (t *timeMean) set(now clock.Time, level float64) {
	t.area += float64(t.level * now.Sub(t.since).Seconds())
	t.level, t.since = level, now
	t.max = max(t.max, level)
}

// reset begins the average anew.
func (t *timeMean) reset(now clock.Time) {
	*t = timeMean{level: t.level, since: now, begin: now, max: t.level}
}

func (t *timeMean) mean(now clock.Time) float64 {
	if now == t.begin {
		return t.level
	}
	return round((t.area + float64(t.level*now.Sub(t.since).Seconds())) / now.Sub(t.begin).Seconds())
}
