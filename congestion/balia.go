package congestion

import "braid/clock"

// baliaGroup is the Balanced Linked Adaptation (draft-walid-mptcp-congestion-control-04; Peng, Walid, Hwang, Low, "Multipath TCP:
// Analysis, Design and Implementation", 2016): increase and decrease weighted by how far a path's rate is from the
// largest, between LIA's responsiveness and OLIA's balance. Slow start is each subflow's own.
type baliaGroup struct{ roster[*balia] }

// NewBALIA returns the Group of BALIA.
func NewBALIA() Group { return &baliaGroup{} }

// baliaCap bounds a_i in the decrease.
const baliaCap = 1.5

// balia is one of its subflows.
type balia struct {
	window
	member
	group *baliaGroup
}

// Join adds a subflow.
func (g *baliaGroup) Join(id int, cfg Config) Controller {
	return g.add(&balia{window: newWindow(cfg, byteLimitRFC), member: member{id: id}, group: g})
}

// OnAck opens the window.
func (b *balia) OnAck(s *Sample) {
	b.observe(s)
	if !b.mayGrow(s) {
		return
	}
	if rest := b.slowStart(s.Acked); rest > 0 {
		b.grow(b.group.increase(b, float64(rest)))
	}
}

// OnCongestion takes cwnd / 2 min(a_i, 1.5) off: half on the path with the largest rate, up to three quarters elsewhere.
func (b *balia) OnCongestion(_ clock.Time, cause Cause, inFlight int64) {
	flight := b.flight(inFlight)
	ratio := 1.0
	if b.usable() {
		_, ratio = b.group.rates(b)
	}
	b.reduce(cause, flight-int64(float64(flight)/2*min(ratio, baliaCap)))
}

func (b *balia) usable() bool { return !b.silent && b.srtt > 0 }

// rates returns the sum of all rates x = cwnd / rtt, in bytes per second, and a_i = max x / x_i of member b.
func (g *baliaGroup) rates(b *balia) (sum, ratio float64) {
	var largest float64
	for _, m := range g.list {
		if m.usable() {
			x := float64(m.size) / m.srtt.Seconds()
			sum += x
			largest = max(largest, x)
		}
	}
	return sum, largest / (float64(b.size) / b.srtt.Seconds())
}

// increase returns what acked bytes on b add to its window: acked mss x_i / rtt_i / (sum x)^2 (1 + a_i) / 2 (4 + a_i) / 5.
func (g *baliaGroup) increase(b *balia, acked float64) float64 {
	if !b.usable() {
		return acked * float64(b.mss) / float64(b.size)
	}
	sum, a := g.rates(b)
	rtt := b.srtt.Seconds()
	x := float64(b.size) / rtt
	return acked * float64(b.mss) * (x / rtt / (sum * sum)) * ((1 + a) / 2) * ((4 + a) / 5)
}
