package link

import (
	"math/rand/v2"

	"braid/clock"
)

// wire carries packets that left the queue to the far end, and damages some on the way. Packets that keep their order lie in a
// ring; those that may be overtaken, and those that overtake, in a heap.
type wire struct {
	values   *values
	inOrder  bool
	pool     *Pool
	counters *Counters

	ring  ring
	heap  heap
	order uint64
	last  clock.Time // latest delivery so far: what in-order packets queue behind

	bad                                                   bool // Gilbert-Elliott's state
	lossRand, burstRand, jitterRand, reorderRand, dupRand *rand.Rand
	corruptRand                                           *rand.Rand
}

func newWire(seed uint64, name string, s *Spec, v *values, pool *Pool, c *Counters) wire {
	stream := func(cause string) *rand.Rand { return Stream(seed, name+"/"+cause) }
	return wire{
		values: v, inOrder: s.InOrder, pool: pool, counters: c,
		lossRand: stream("loss"), burstRand: stream("burst loss"), jitterRand: stream("jitter"),
		reorderRand: stream("reorder"), dupRand: stream("duplicate"), corruptRand: stream("corrupt"),
	}
}

// carry takes a packet that leaves the queue at t.
func (w *wire) carry(t clock.Time, p *Packet) {
	v := w.values
	if v[down].at(t) != 0 {
		w.counters.DropsDown++
		w.pool.Put(p)
		return
	}
	if w.loses(t) {
		w.counters.DropsLoss++
		w.pool.Put(p)
		return
	}
	due, overtaken := t+clock.Time(v[delay].at(t)), false
	if j := v[jitter].at(t); j > 0 {
		due += clock.Time(j * w.jitterRand.Float64())
		overtaken = true
	}
	if chance(w.reorderRand, v[reorder].at(t)) {
		due += clock.Time(v[reorderDelay].at(t))
		overtaken = true
		w.counters.Reordered++
	}
	var twin *Packet
	if chance(w.dupRand, v[duplicate].at(t)) {
		w.counters.Duplicated++
		twin = w.pool.clone(p)
	}
	if chance(w.corruptRand, v[corrupt].at(t)) {
		w.corrupt(p)
	}
	w.put(due, overtaken, p)
	if twin != nil {
		w.put(due, overtaken, twin)
	}
}

func (w *wire) put(due clock.Time, overtaken bool, p *Packet) {
	w.order++
	if overtaken && !w.inOrder {
		w.heap.push(item{due, w.order, p})
		return
	}
	w.last = max(w.last, due)
	w.ring.push(item{w.last, w.order, p})
}

// chance draws whether something of the given probability happens; what cannot happen draws nothing.
func chance(r *rand.Rand, probability float64) bool {
	return probability > 0 && r.Float64() < probability
}

// loses draws whether a packet is lost, for either cause. Both draw always, so that neither moves the other's stream.
func (w *wire) loses(t clock.Time) bool {
	v := w.values
	lost := chance(w.lossRand, v[loss].at(t))
	toBad, toGood := v[goodBad].at(t), v[badGood].at(t)
	if toBad == 0 && toGood == 0 && !w.bad && v[lossGood].at(t) == 0 {
		return lost
	}
	step, fate := w.burstRand.Float64(), w.burstRand.Float64()
	if w.bad {
		w.bad = step >= toGood
	} else {
		w.bad = step < toBad
	}
	if w.bad {
		return lost || fate < v[lossBad].at(t)
	}
	return lost || fate < v[lossGood].at(t)
}

// corrupt flips one burst of at most 15 bits, which the Internet checksum always finds, somewhere behind the protected header.
func (w *wire) corrupt(p *Packet) {
	bits := 8 * (len(p.Data) - p.Header)
	if bits <= 0 {
		return
	}
	w.counters.Corrupted++
	p.Corrupted = true
	n := min(1+w.corruptRand.IntN(15), bits)
	pattern := w.corruptRand.Uint32() | 1 | 1<<(n-1) // the burst's ends flip, those between may
	first := 8*p.Header + w.corruptRand.IntN(bits-n+1)
	for i := range n {
		if pattern>>i&1 != 0 {
			p.Data[(first+i)/8] ^= 0x80 >> ((first + i) % 8)
		}
	}
}

// next returns when the next packet arrives; clock.Never: none is on the wire.
func (w *wire) next() clock.Time {
	t := clock.Never
	if w.ring.n > 0 {
		t = w.ring.head().at
	}
	if len(w.heap) > 0 {
		t = min(t, w.heap[0].at)
	}
	return t
}

// take removes the packet that arrives next.
func (w *wire) take() item {
	if len(w.heap) > 0 && (w.ring.n == 0 || w.heap[0].before(w.ring.head())) {
		return w.heap.pop()
	}
	return w.ring.pop()
}

// orderly reports whether nothing that enters from now on can arrive before what is in the ring.
func (w *wire) orderly() bool {
	v := w.values
	return w.inOrder || (v[jitter].base == 0 && v[jitter].constant() && v[reorder].base == 0 && v[reorder].constant())
}
