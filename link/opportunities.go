package link

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sort"
	"strconv"
	"strings"

	"braid/clock"
)

// OpportunityBytes is what one line of a delivery trace can carry.
const OpportunityBytes = 1500

// ReadOpportunities reads a delivery trace in Mahimahi's format: one integer a line, milliseconds from the start, never
// decreasing; each line is one opportunity to carry 1500 bytes. Empty lines and lines that begin with # are skipped.
func ReadOpportunities(r io.Reader) ([]int64, error) {
	var ms []int64
	sc := bufio.NewScanner(r)
	for line := 1; sc.Scan(); line++ {
		text := strings.TrimSpace(sc.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("delivery trace, line %d: %q is not a number of milliseconds", line, text)
		}
		ms = append(ms, v)
	}
	if err := sc.Err(); err != nil {
		return nil, err
	}
	return ms, checkOpportunities(ms)
}

func checkOpportunities(ms []int64) error {
	if len(ms) == 0 {
		return errors.New("a delivery trace needs at least one opportunity")
	}
	for i, v := range ms {
		if v < 0 || v > maxTraceMs || (i > 0 && v < ms[i-1]) {
			return fmt.Errorf("delivery trace: entry %d (%d ms) must be between its predecessor and %d", i+1, v, int64(maxTraceMs))
		}
	}
	if ms[len(ms)-1] == 0 {
		return errors.New("a delivery trace ends with its period, which must be above 0 ms")
	}
	return nil
}

const maxTraceMs = 1e9 // 11 days

// Walk says how GenerateOpportunities lets a capacity wander.
type Walk struct {
	MeanMbps  float64 `toml:"mean_mbps" json:"mean_mbps"`   // the capacity that it returns to
	MinMbps   float64 `toml:"min_mbps" json:"min_mbps"`     // bounds
	MaxMbps   float64 `toml:"max_mbps" json:"max_mbps"`     // 0: twice the mean
	Wander    float64 `toml:"wander" json:"wander"`         // largest change in 100 ms as a share of the mean; 0: 0.15
	DurationS float64 `toml:"duration_s" json:"duration_s"` // period; 0: 60
}

func (w Walk) withDefaults() Walk {
	if w.MaxMbps == 0 {
		w.MaxMbps = 2 * w.MeanMbps
	}
	if w.Wander == 0 {
		w.Wander = 0.15
	}
	if w.DurationS == 0 {
		w.DurationS = 60
	}
	return w
}

func (w Walk) check() error {
	switch {
	case !(w.MeanMbps > 0) || w.MeanMbps > 1e5:
		return fmt.Errorf("mean_mbps %v must be above 0 and at most 100000", w.MeanMbps)
	case !(w.MinMbps >= 0 && w.MinMbps <= w.MeanMbps):
		return fmt.Errorf("min_mbps %v must be between 0 and mean_mbps", w.MinMbps)
	case !(w.MaxMbps >= w.MeanMbps):
		return fmt.Errorf("max_mbps %v must not be under mean_mbps", w.MaxMbps)
	case !(w.Wander >= 0 && w.Wander <= 1):
		return fmt.Errorf("wander %v must be between 0 and 1", w.Wander)
	case !(w.DurationS >= 0.2 && w.DurationS <= 86400):
		return fmt.Errorf("duration_s %v must be between 0.2 and 86400", w.DurationS)
	}
	return nil
}

// GenerateOpportunities makes a delivery trace whose capacity is a bounded random walk with steps every 100 ms, pulled back to
// its mean: a stand-in for a cellular link where no recording is at hand.
func GenerateOpportunities(w Walk, r *rand.Rand) ([]int64, error) {
	w = w.withDefaults()
	if err := w.check(); err != nil {
		return nil, fmt.Errorf("generated delivery trace: %w", err)
	}
	var ms []int64
	rate, credit := w.MeanMbps, 0.0
	last := int64(w.DurationS * 1000)
	for t := int64(1); t <= last; t++ {
		if t%100 == 0 {
			step := float64(w.Wander * w.MeanMbps * (2*r.Float64() - 1))
			rate += step + float64((w.MeanMbps-rate)*0.05)
			rate = min(max(rate, w.MinMbps), w.MaxMbps)
		}
		credit += rate * 1000 / 8 / OpportunityBytes
		for ; credit >= 1; credit-- {
			ms = append(ms, t)
		}
	}
	if len(ms) == 0 || ms[len(ms)-1] != last {
		ms = append(ms, last) // the last number is the period
	}
	return ms, nil
}

// opportunities walks along a delivery trace that repeats with its last entry as the period.
type opportunities struct {
	ms     []int64
	period int64 // ms
	cycle  int64
	next   int // the opportunity in use or next to be used
	left   int // bytes of it not used yet
}

func newOpportunities(ms []int64) *opportunities {
	return &opportunities{ms: ms, period: ms[len(ms)-1], left: OpportunityBytes}
}

// meanBitRate is the trace's average capacity in bits per second.
func (o *opportunities) meanBitRate() float64 {
	return float64(len(o.ms)) * OpportunityBytes * 8 * 1000 / float64(o.period)
}

func (o *opportunities) time() clock.Time {
	return clock.Time((o.cycle*o.period + o.ms[o.next]) * 1e6)
}

func (o *opportunities) step() {
	o.left = OpportunityBytes
	if o.next++; o.next == len(o.ms) {
		o.next = 0
		o.cycle++
	}
}

// skipTo passes over the opportunities before t: they found no packet and are lost.
func (o *opportunities) skipTo(t clock.Time) {
	if o.time() >= t {
		return
	}
	ms := (int64(t) + 1e6 - 1) / 1e6 // the first whole millisecond not before t
	cycle := max(o.cycle, (ms-1)/o.period)
	rest := ms - cycle*o.period
	o.next = sort.Search(len(o.ms), func(i int) bool { return o.ms[i] >= rest })
	o.cycle, o.left = cycle, OpportunityBytes
	if o.next == len(o.ms) {
		o.next = 0
		o.cycle++
	}
}

// serve returns when the last of size bytes leaves, if they are first in line from start on.
func (o *opportunities) serve(start clock.Time, size int) clock.Time {
	o.skipTo(start)
	for {
		if o.left == 0 {
			o.step()
		}
		n := min(o.left, size)
		o.left -= n
		if size -= n; size == 0 {
			return o.time()
		}
	}
}
