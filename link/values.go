package link

import "braid/clock"

// parameter numbers the values of a link that can change with time.
type parameter int

const (
	rate   parameter = iota // bit/s
	delay                   // ns
	jitter                  // ns
	loss
	goodBad
	badGood
	lossGood
	lossBad
	reorder
	reorderDelay // ns
	duplicate
	corrupt
	queueBytes
	queuePackets
	mtu
	down // 0 or 1
	parameters
)

// values are all parameters over time.
type values [parameters]profile

func newValues(s *Spec) *values {
	v := new(values)
	v[rate].base = s.RateMbps * 1e6
	v[delay].base = s.DelayMs * 1e6
	v[jitter].base = s.JitterMs * 1e6
	v[loss].base = s.Loss
	if g := s.GilbertElliott; g != nil {
		v[goodBad].base, v[badGood].base = g.PGoodBad, g.PBadGood
		v[lossGood].base, v[lossBad].base = g.LossGood, g.LossBad
	}
	if r := s.Reorder; r != nil {
		v[reorder].base, v[reorderDelay].base = r.Probability, r.DelayMs*1e6
	}
	v[duplicate].base, v[corrupt].base = s.Duplicate, s.Corrupt
	bytes, packets := s.QueueLimits()
	v[queueBytes].base, v[queuePackets].base = float64(bytes), float64(packets)
	v[mtu].base, v[down].base = float64(s.MTU), asNumber(s.Down)
	for i := range s.Changes {
		v.apply(at(s.Changes[i].AtS), &s.Changes[i])
	}
	return v
}

// apply adds a change that begins at begin, whatever its AtS.
func (v *values) apply(begin clock.Time, c *Change) {
	end := begin.Add(clockDuration(c.OverS * 1e9))
	ramp := func(p parameter, to *float64, unit float64) {
		if to != nil {
			v[p].set(begin, end, *to*unit)
		}
	}
	step := func(p parameter, to *int) {
		if to != nil {
			v[p].set(begin, begin, float64(*to))
		}
	}
	ramp(rate, c.RateMbps, 1e6)
	ramp(delay, c.DelayMs, 1e6)
	ramp(jitter, c.JitterMs, 1e6)
	ramp(loss, c.Loss, 1)
	if g := c.GilbertElliott; g != nil {
		ramp(goodBad, &g.PGoodBad, 1)
		ramp(badGood, &g.PBadGood, 1)
		ramp(lossGood, &g.LossGood, 1)
		ramp(lossBad, &g.LossBad, 1)
	}
	if r := c.Reorder; r != nil {
		ramp(reorder, &r.Probability, 1)
		ramp(reorderDelay, &r.DelayMs, 1e6)
	}
	ramp(duplicate, c.Duplicate, 1)
	ramp(corrupt, c.Corrupt, 1)
	step(queueBytes, c.QueueBytes)
	step(queuePackets, c.QueuePackets)
	step(mtu, c.MTU)
	if c.Down != nil {
		v[down].set(begin, begin, asNumber(*c.Down))
	}
}

func asNumber(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
