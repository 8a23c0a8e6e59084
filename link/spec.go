package link

import (
	"fmt"
	"math"
	"time"

	"braid/clock"
)

// Spec describes one direction of a link. The zero value is a perfect one: no delay, no loss, any rate.
type Spec struct {
	RateMbps float64 `toml:"rate_mbps,omitempty" json:"rate_mbps,omitempty"` // 0: packets take no time and never queue
	TraceMs  []int64 `toml:"trace_ms,omitempty" json:"trace_ms,omitempty"`   // delivery opportunities instead of a rate (Mahimahi; see ReadOpportunities)
	DelayMs  float64 `toml:"delay_ms,omitempty" json:"delay_ms,omitempty"`   // propagation, one way

	// The queue drops from its tail beyond QueueBytes or QueuePackets, whichever is reached first; the packet in transmission
	// counts until its last bit has left. With neither, it holds QueueBDP (0: 1) times rate x RTTMs (0: twice DelayMs), and
	// never less than 16 packets of the MTU.
	QueueBytes   int     `toml:"queue_bytes,omitempty" json:"queue_bytes,omitempty"`
	QueuePackets int     `toml:"queue_packets,omitempty" json:"queue_packets,omitempty"`
	QueueBDP     float64 `toml:"queue_bdp,omitempty" json:"queue_bdp,omitempty"`
	RTTMs        float64 `toml:"rtt_ms,omitempty" json:"rtt_ms,omitempty"`

	Loss           float64         `toml:"loss,omitempty" json:"loss,omitempty"` // share of packets lost at random, 0 to 1
	GilbertElliott *GilbertElliott `toml:"gilbert_elliott,omitempty" json:"gilbert_elliott,omitempty"`

	JitterMs  float64  `toml:"jitter_ms,omitempty" json:"jitter_ms,omitempty"` // each packet's extra delay is uniform between 0 and this
	InOrder   bool     `toml:"in_order,omitempty" json:"in_order,omitempty"`   // jitter never lets packets overtake each other
	Reorder   *Reorder `toml:"reorder,omitempty" json:"reorder,omitempty"`
	Duplicate float64  `toml:"duplicate,omitempty" json:"duplicate,omitempty"` // share of packets delivered twice
	Corrupt   float64  `toml:"corrupt,omitempty" json:"corrupt,omitempty"`     // share of packets with one burst of at most 15 bits flipped
	MTU       int      `toml:"mtu,omitempty" json:"mtu,omitempty"`             // larger packets are dropped; 0: any size
	Down      bool     `toml:"down,omitempty" json:"down,omitempty"`           // silently loses everything

	Changes []Change `toml:"changes,omitempty" json:"changes,omitempty"` // in order of time
}

// GilbertElliott loses packets in bursts: a Markov chain, one step a packet, between a good and a bad state, each with a loss
// share of its own.
type GilbertElliott struct {
	PGoodBad float64 `toml:"p_good_bad" json:"p_good_bad"`
	PBadGood float64 `toml:"p_bad_good" json:"p_bad_good"`
	LossGood float64 `toml:"loss_good" json:"loss_good"`
	LossBad  float64 `toml:"loss_bad" json:"loss_bad"`
}

// MeanLoss is the share of packets that the chain loses in the long run.
func (g GilbertElliott) MeanLoss() float64 {
	if g.PGoodBad+g.PBadGood == 0 {
		return g.LossGood
	}
	bad := g.PGoodBad / (g.PGoodBad + g.PBadGood)
	return float64(g.LossGood*(1-bad)) + float64(g.LossBad*bad)
}

// Reorder holds a share of the packets back for an extra delay, so that those behind overtake them.
type Reorder struct {
	Probability float64 `toml:"probability" json:"probability"`
	DelayMs     float64 `toml:"delay_ms" json:"delay_ms"`
}

// Change gives fields of a Spec new values at a time: at once or, with OverS, numbers linearly over that many seconds (Down, MTU and
// queue sizes always change at once, at AtS). Fields not set stay as they are.
type Change struct {
	AtS   float64 `toml:"at_s" json:"at_s"`
	OverS float64 `toml:"over_s,omitempty" json:"over_s,omitempty"`

	RateMbps       *float64        `toml:"rate_mbps,omitempty" json:"rate_mbps,omitempty"` // only where the Spec has a rate
	DelayMs        *float64        `toml:"delay_ms,omitempty" json:"delay_ms,omitempty"`
	JitterMs       *float64        `toml:"jitter_ms,omitempty" json:"jitter_ms,omitempty"`
	Loss           *float64        `toml:"loss,omitempty" json:"loss,omitempty"`
	GilbertElliott *GilbertElliott `toml:"gilbert_elliott,omitempty" json:"gilbert_elliott,omitempty"`
	Reorder        *Reorder        `toml:"reorder,omitempty" json:"reorder,omitempty"`
	Duplicate      *float64        `toml:"duplicate,omitempty" json:"duplicate,omitempty"`
	Corrupt        *float64        `toml:"corrupt,omitempty" json:"corrupt,omitempty"`
	QueueBytes     *int            `toml:"queue_bytes,omitempty" json:"queue_bytes,omitempty"`
	QueuePackets   *int            `toml:"queue_packets,omitempty" json:"queue_packets,omitempty"`
	MTU            *int            `toml:"mtu,omitempty" json:"mtu,omitempty"`
	Down           *bool           `toml:"down,omitempty" json:"down,omitempty"`
}

// MinQueuePackets is the least that a queue sized by the bandwidth-delay product holds.
const MinQueuePackets = 16

// BDP returns the bandwidth-delay product in bytes.
func BDP(rateMbps, rttMs float64) int {
	return int(math.Round(float64(rateMbps*rttMs) * 1e3 / 8))
}

// QueueLimits returns what the queue holds: bytes and packets, 0 for no limit.
func (s *Spec) QueueLimits() (bytes, packets int) {
	if s.QueueBytes > 0 || s.QueuePackets > 0 {
		return s.QueueBytes, s.QueuePackets
	}
	rate := s.RateMbps
	if len(s.TraceMs) > 0 {
		rate = newOpportunities(s.TraceMs).meanBitRate() / 1e6
	}
	if rate == 0 {
		return 0, 0
	}
	rtt, multiple, mtu := s.RTTMs, s.QueueBDP, s.MTU
	if rtt == 0 {
		rtt = 2 * s.DelayMs
	}
	if multiple == 0 {
		multiple = 1
	}
	if mtu == 0 {
		mtu = 1500
	}
	return max(int(math.Round(multiple*float64(BDP(rate, rtt)))), MinQueuePackets*mtu), 0
}

// Check says what is wrong with a Spec, naming the field, its value and what it may be.
func (s *Spec) Check() error {
	if s.RateMbps != 0 && len(s.TraceMs) > 0 {
		return fmt.Errorf("rate_mbps and a delivery trace exclude each other")
	}
	if len(s.TraceMs) > 0 {
		if err := checkOpportunities(s.TraceMs); err != nil {
			return err
		}
	}
	if s.RateMbps != 0 {
		if err := checkRate(s.RateMbps); err != nil {
			return err
		}
	}
	for _, f := range []struct {
		name       string
		value, max float64
	}{
		{"delay_ms", s.DelayMs, maxDelayMs}, {"jitter_ms", s.JitterMs, maxDelayMs}, {"rtt_ms", s.RTTMs, 2 * maxDelayMs},
		{"queue_bdp", s.QueueBDP, 1e4}, {"queue_bytes", float64(s.QueueBytes), 1 << 40},
		{"queue_packets", float64(s.QueuePackets), 1 << 30}, {"mtu", float64(s.MTU), 65535},
		{"loss", s.Loss, 1}, {"duplicate", s.Duplicate, 1}, {"corrupt", s.Corrupt, 1},
	} {
		if err := checkRange(f.name, f.value, f.max); err != nil {
			return err
		}
	}
	if err := s.GilbertElliott.check(); err != nil {
		return err
	}
	if err := s.Reorder.check(); err != nil {
		return err
	}
	for i := range s.Changes {
		if err := s.Changes[i].check(s); err != nil {
			return fmt.Errorf("changes[%d]: %w", i, err)
		}
		if i > 0 && s.Changes[i].AtS < s.Changes[i-1].AtS {
			return fmt.Errorf("changes[%d]: at_s %v is before its predecessor's %v", i, s.Changes[i].AtS, s.Changes[i-1].AtS)
		}
	}
	return nil
}

const (
	maxDelayMs = 600_000
	minRate    = 0.001  // Mbit/s
	maxRate    = 1000e3 // Mbit/s
	maxSeconds = 1e6
)

func checkRate(mbps float64) error {
	if !(mbps >= minRate && mbps <= maxRate) {
		return fmt.Errorf("rate_mbps %v must be between %v and %v", mbps, minRate, maxRate)
	}
	return nil
}

func checkRange(name string, v, limit float64) error {
	if !(v >= 0 && v <= limit) {
		return fmt.Errorf("%s %v must be between 0 and %v", name, v, limit)
	}
	return nil
}

func (g *GilbertElliott) check() error {
	if g == nil {
		return nil
	}
	return firstError(checkRange("gilbert_elliott.p_good_bad", g.PGoodBad, 1), checkRange("gilbert_elliott.p_bad_good", g.PBadGood, 1),
		checkRange("gilbert_elliott.loss_good", g.LossGood, 1), checkRange("gilbert_elliott.loss_bad", g.LossBad, 1))
}

func (r *Reorder) check() error {
	if r == nil {
		return nil
	}
	return firstError(checkRange("reorder.probability", r.Probability, 1), checkRange("reorder.delay_ms", r.DelayMs, maxDelayMs))
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// check says what is wrong with a change of a link that began as s.
func (c *Change) check(s *Spec) error {
	err := firstError(checkRange("at_s", c.AtS, maxSeconds), checkRange("over_s", c.OverS, maxSeconds), c.GilbertElliott.check(), c.Reorder.check())
	if c.RateMbps != nil {
		if s.RateMbps == 0 {
			return fmt.Errorf("rate_mbps can only change on a link that begins with one")
		}
		err = firstError(err, checkRate(*c.RateMbps))
	}
	for _, f := range []struct {
		name  string
		value *float64
		max   float64
	}{
		{"delay_ms", c.DelayMs, maxDelayMs}, {"jitter_ms", c.JitterMs, maxDelayMs},
		{"loss", c.Loss, 1}, {"duplicate", c.Duplicate, 1}, {"corrupt", c.Corrupt, 1},
	} {
		if f.value != nil {
			err = firstError(err, checkRange(f.name, *f.value, f.max))
		}
	}
	for _, f := range []struct {
		name  string
		value *int
		max   float64
	}{{"queue_bytes", c.QueueBytes, 1 << 40}, {"queue_packets", c.QueuePackets, 1 << 30}, {"mtu", c.MTU, 65535}} {
		if f.value != nil {
			err = firstError(err, checkRange(f.name, float64(*f.value), f.max))
		}
	}
	return err
}

// at returns the time of s seconds.
func at(s float64) clock.Time { return clock.Time(math.Round(s * 1e9)) }

// clockDuration is a float count of nanoseconds as a duration.
func clockDuration(ns float64) time.Duration { return time.Duration(ns) }
