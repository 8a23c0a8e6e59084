package link

import (
	"math"
	"slices"

	"braid/clock"
)

// profile is a value over time: a constant, then steps and linear ramps. A knot holds until the next one begins, even when
// that cuts its ramp short.
type profile struct {
	base  float64
	knots []knot // ascending by begin
	begun int    // how many knots have begun at the time last asked for
}

// knot goes from one value, at its begin, linearly to another, at its end, and stays there.
type knot struct {
	begin, end clock.Time
	from, to   float64
}

func (k *knot) at(t clock.Time) float64 {
	if t >= k.end {
		return k.to
	}
	share := float64(t-k.begin) / float64(k.end-k.begin)
	return k.from + float64((k.to-k.from)*share)
}

// at returns the value at t.
func (p *profile) at(t clock.Time) float64 {
	if len(p.knots) == 0 {
		return p.base
	}
	return p.seek(t)
}

func (p *profile) seek(t clock.Time) float64 {
	for p.begun < len(p.knots) && p.knots[p.begun].begin <= t {
		p.begun++
	}
	for p.begun > 0 && p.knots[p.begun-1].begin > t {
		p.begun--
	}
	if p.begun == 0 {
		return p.base
	}
	return p.knots[p.begun-1].at(t)
}

// constant reports whether the value never changes.
func (p *profile) constant() bool { return len(p.knots) == 0 }

// piece returns the stretch of time around t in which the value is one straight line: its value at t, its slope per second and
// its end.
func (p *profile) piece(t clock.Time) (value, slope float64, end clock.Time) {
	value, end = p.at(t), clock.Never
	if p.begun < len(p.knots) {
		end = p.knots[p.begun].begin
	}
	if p.begun == 0 {
		return value, 0, end
	}
	if k := &p.knots[p.begun-1]; t < k.end {
		return value, float64(k.to-k.from) / k.end.Sub(k.begin).Seconds(), min(end, k.end)
	}
	return value, 0, end
}

// set adds a change that begins at the given time and replaces whatever was to begin after it.
func (p *profile) set(begin, end clock.Time, to float64) {
	i, _ := slices.BinarySearchFunc(p.knots, begin, func(k knot, t clock.Time) int {
		if k.begin < t {
			return -1
		}
		return 1
	})
	from := p.at(begin)
	p.knots = append(p.knots[:i], knot{begin, end, from, to})
	p.begun = 0
}

// crossing returns when the integral of a rate (bits per second, positive throughout) from start reaches bits.
func (p *profile) crossing(start clock.Time, bits float64) clock.Time {
	for {
		rate, slope, end := p.piece(start)
		var seconds float64
		reached := true
		if slope == 0 {
			seconds = bits / rate
		} else {
			// The smaller root of rate*x + slope/2*x*x = bits, in the form that does not cancel.
			root := float64(rate*rate) + float64(2*slope*bits)
			reached = root > 0
			seconds = 2 * bits / (rate + math.Sqrt(max(root, 0)))
		}
		if ns := math.Round(seconds * 1e9); reached && ns <= float64(end-start) {
			return start.Add(clockDuration(ns))
		}
		span := end.Sub(start).Seconds()
		bits -= float64((rate + float64(slope*span/2)) * span)
		bits = max(bits, 0)
		start = end
	}
}
