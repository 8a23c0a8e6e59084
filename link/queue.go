package link

import (
	"braid/clock"
)

// queue holds packets in order and lets them go at a rate or by a delivery trace. When its head leaves is known from the
// moment it is head.
type queue struct {
	values *values
	trace  *opportunities // nil: by rate
	ring   ring
	bytes  int
	headAt clock.Time // when the head's last bit leaves; clock.Never: empty
	start  clock.Time // when its transmission began
	carry  int64      // constant rate: the part of a nanosecond (in 1/rate ns) that the last departure was rounded down by
}

// add puts a packet at the end.
func (q *queue) add(now clock.Time, p *Packet) {
	q.ring.push(item{at: now, packet: p})
	q.bytes += p.Size
	if q.ring.n == 1 {
		q.carry = 0
		q.serve(now)
	}
}

// serve computes when the head leaves if its transmission begins at start.
func (q *queue) serve(start clock.Time) {
	if q.ring.n == 0 {
		q.headAt = clock.Never
		return
	}
	q.start = start
	size := q.ring.head().packet.Size
	r := &q.values[rate]
	switch {
	case q.trace != nil:
		q.headAt = q.trace.serve(start, size)
	case !r.constant():
		q.headAt = r.crossing(start, float64(8*size))
	case r.base == 0:
		q.headAt = start
	default: // in integers: the long-run rate is exact
		bitRate := int64(r.base)
		n := int64(size)*8e9 + q.carry
		q.headAt = start + clock.Time(n/bitRate)
		q.carry = n % bitRate
	}
}

// take removes the head, which leaves at headAt, and starts the next one's transmission.
func (q *queue) take() (p *Packet, arrived clock.Time) {
	it := q.ring.pop()
	q.bytes -= it.packet.Size
	q.serve(q.headAt)
	return it.packet, it.at
}

// changed computes the head's departure anew after a change of the rate.
func (q *queue) changed() {
	if q.ring.n > 0 && q.trace == nil && !q.values[rate].constant() {
		q.serve(q.start)
	}
}
