package real

import (
	"context"
	"fmt"
	"time"

	"braid/netsim"
)

// Result is what a run in real time measured. Of netsim's Result it lacks RTT percentiles, windows, LostBytes, Counts and the links'
// queues; what it has means the same, but for three things: RTTs are smoothed ones, looked at every so often; the out-of-order queue is averaged
// over the packets that brought something new; the most that it held is that of the whole run.
type Result struct {
	netsim.Result
	Timing Timing `json:"timing"`
}

// Timing says how true a run was to its Scenario.
type Timing struct {
	LatenessP50Ms float64 `json:"lateness_p50_ms"` // how much later than its link said a packet left: of the latest path
	LatenessP99Ms float64 `json:"lateness_p99_ms"`
	LatenessMaxMs float64 `json:"lateness_max_ms"`
	Late          bool    `json:"late"`         // LatenessP99Ms is above MaxLateness
	LostPackets   int64   `json:"lost_packets"` // found a socket's buffer full: no link's doing
}

// MaxLateness is the 99th percentile of lateness beyond which a run is marked as late.
const MaxLateness = time.Millisecond

// String says it in a few words.
func (t Timing) String() string {
	s := fmt.Sprintf("emulator's lateness_ms p50 %.2f, p99 %.2f, max %.1f", t.LatenessP50Ms, t.LatenessP99Ms, t.LatenessMaxMs)
	if t.LostPackets > 0 {
		s += fmt.Sprintf("; sockets lost %d packets", t.LostPackets)
	}
	if t.Late {
		s += "; LATE: the machine was too busy for these numbers to count"
	}
	return s
}

// Pair is one Scenario in both worlds.
type Pair struct {
	Simulated []*netsim.Result `json:"simulated"`
	Real      *Result          `json:"real"`
	Tries     int              `json:"tries"` // runs in real time: the others were later
}

// otherSeed is between the seeds of a Pair's simulations.
const otherSeed = 1000

// Beside runs a Scenario, as Encapsulated returns it, in the simulator and in real time. The simulator runs it so many times, with seeds of its own
// after the first: how far those lie apart is what chance does, and a run in real time is another throw of the same dice. A run in real time that
// is late is repeated, up to so many tries; the least late one counts.
func Beside(ctx context.Context, s netsim.Scenario, simulations, tries int) (*Pair, error) {
	s = Encapsulated(s)
	if err := Check(&s); err != nil {
		return nil, err
	}
	p := &Pair{}
	for i := range simulations {
		again := s
		again.Seed += uint64(i * otherSeed)
		r, err := netsim.Run(again)
		if err != nil {
			return nil, err
		}
		p.Simulated = append(p.Simulated, r)
	}
	for p.Tries < tries {
		r, err := Run(ctx, s)
		if err != nil {
			return nil, err
		}
		p.Tries++
		if p.Real == nil || r.Timing.LatenessP99Ms < p.Real.Timing.LatenessP99Ms {
			p.Real = r
		}
		if !r.Timing.Late {
			break
		}
	}
	return p, nil
}
