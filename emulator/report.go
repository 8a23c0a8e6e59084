package emulator

import (
	"math/bits"
	"time"

	"braid/device"
	"braid/link"
)

// Report says what became of a Path's packets, and whether the emulation kept time.
type Report struct {
	Up, Down link.Counters
	Clients  int

	Lateness *Histogram // how much later than the link says packets left, the grain included

	Corrupted int64 // packets that a link corrupted: dropped, as a receiver's UDP checksum would have
	NoFlow    int64 // packets of new clients when no socket was to be had, or beyond the most clients
	Strangers int64 // packets to a client's port that were not from the server

	// What the emulator itself lost, against the plan: every packet here makes the emulation less true.
	Overflowed int64 // found a socket's receive buffer full
	Dropped    int64 // found a socket's send buffer full, or were refused
}

// Report returns what happened so far.
func (p *Path) Report() Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.report
	r.Up, r.Down = *p.links[Up].Counters(), *p.links[Down].Counters()
	r.Clients = len(p.byRoute)
	late := p.late
	r.Lateness = &late
	add := func(c device.Counters) {
		r.Overflowed += c.Overflowed
		r.Dropped += c.Dropped + c.Unreachable + c.TooLarge
	}
	add(p.client.dev.Counters())
	for _, e := range p.others {
		add(e.dev.Counters())
	}
	for _, f := range p.byRoute {
		add(f.dev.Counters())
	}
	return r
}

// Histogram counts durations from a microsecond up, in steps of about 6 %. The zero Histogram is empty.
type Histogram struct {
	buckets [buckets]int64
	count   int64
	max     time.Duration
}

const (
	subBits = 4 // each octave of microseconds has 16 steps
	buckets = (40 - subBits) << subBits
)

// Add counts d; a negative one counts as 0.
func (h *Histogram) Add(d time.Duration) {
	d = max(d, 0)
	us := uint64(d / time.Microsecond)
	shift := max(bits.Len64(us)-subBits-1, 0)
	h.buckets[min(shift<<subBits+int(us>>shift), buckets-1)]++
	h.count++
	h.max = max(h.max, d)
}

// Count is how many durations were added.
func (h *Histogram) Count() int64 { return h.count }

// Max is the longest of them, exactly.
func (h *Histogram) Max() time.Duration { return h.max }

// Quantile returns a duration that at least the share q (0 to 1) of those added do not exceed, up to the histogram's step; 0 if there
// are none.
func (h *Histogram) Quantile(q float64) time.Duration {
	want := int64(q * float64(h.count))
	var seen int64
	for i, n := range h.buckets {
		seen += n
		if n > 0 && seen >= want {
			return min(upper(i), h.max)
		}
	}
	return h.max
}

// upper is the end of bucket i.
func upper(i int) time.Duration {
	shift := max(i>>subBits-1, 0)
	us := uint64(i-shift<<subBits+1) << shift
	return time.Duration(us) * time.Microsecond
}
