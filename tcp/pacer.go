package tcp

import (
	"math"
	"time"

	"braid/clock"
)

// Constants of the pacer.
const (
	pacerBurstTime    = time.Millisecond      // credit is at most what the rate brings in that time,
	pacerBurstPackets = 2                     // or so many packets if that is more
	pacerLateTime     = 10 * time.Millisecond // and where wake-ups wait for a quantum, what a late one missed of that much time
	unpacedSegments   = 10                    // the first segments of a connection leave at once: the initial window (RFC 6928); as Linux does
)

// pacer spreads packets at a rate: credit grows with time up to a bound and each packet takes its size from it.
// Because credit is kept in bytes, a new rate holds at once, also for a packet that is being waited for.
//
// Invariant: credit <= burst().
type pacer struct {
	rate    float64 // bytes/s; 0: no pacing
	credit  float64 // bytes
	at      clock.Time
	mss     int
	quantum time.Duration // a wake-up waits for that much credit, within the bound
	unpaced int           // segments that may still leave unpaced
}

func (p *pacer) init(now clock.Time, mss int, quantum time.Duration) {
	*p = pacer{at: now, mss: mss, quantum: quantum, unpaced: unpacedSegments}
}

// bound returns how many bytes may leave back to back when wake-ups are on time.
func (p *pacer) bound() float64 {
	return max(float64(p.rate*seconds(pacerBurstTime)), float64(pacerBurstPackets*p.mss))
}

// burst returns the most credit there is, in bytes. Where wake-ups wait for a quantum, on a real machine, they come late: what a late one did not send
// would be lost, and BBR would take the rest for the path's bandwidth.
func (p *pacer) burst() float64 {
	if p.quantum == 0 {
		return p.bound()
	}
	return p.bound() + float64(p.rate*seconds(pacerLateTime))
}

// accrue brings the credit up to date.
func (p *pacer) accrue(now clock.Time) {
	if now > p.at {
		p.credit = min(p.credit+float64(p.rate*seconds(now.Sub(p.at))), p.burst())
		p.at = now
	}
}

// setRate changes the rate from now on.
func (p *pacer) setRate(now clock.Time, rate float64) {
	if rate == p.rate {
		return
	}
	if p.rate == 0 {
		p.at = now
		p.rate = rate
		p.credit = p.bound()
		return
	}
	p.accrue(now)
	p.rate = rate
	p.credit = min(p.credit, p.burst())
}

// ready reports whether n bytes may leave now. A packet larger than a burst needs a full burst's credit and leaves a debt.
func (p *pacer) ready(now clock.Time, n int) bool {
	if p.rate == 0 || p.unpaced > 0 {
		return true
	}
	p.accrue(now)
	return p.credit >= min(float64(n), p.burst())-0.5 // half a byte for the rounding of wake-up times
}

// readyAt returns when to wake up for n bytes, at least one quantum of them.
func (p *pacer) readyAt(now clock.Time, n int) clock.Time {
	if p.ready(now, n) {
		return now
	}
	need := min(max(float64(n), float64(p.rate*seconds(p.quantum))), p.bound()) - p.credit
	wait := math.Ceil(need / p.rate * 1e9)
	if wait >= float64(math.MaxInt64-1)-float64(now) {
		return clock.Never
	}
	return now.Add(time.Duration(wait))
}

// room returns how many bytes may leave now; mostly used to size a train of packets.
func (p *pacer) room(now clock.Time) int64 {
	if p.rate == 0 {
		return math.MaxInt64
	}
	p.accrue(now)
	return max(int64(p.credit+0.5), 0) + int64(p.unpaced*p.mss)
}

// spend takes a packet of n bytes from the credit.
func (p *pacer) spend(now clock.Time, n int) {
	if p.unpaced > 0 {
		p.unpaced--
		return
	}
	if p.rate > 0 {
		p.accrue(now)
		p.credit -= float64(n)
	}
}

// seconds is Duration.Seconds without its integer division: exact enough for credit, and on the path of every packet.
func seconds(d time.Duration) float64 { return float64(d) * 1e-9 }
