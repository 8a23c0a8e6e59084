package link

import "braid/clock"

// item is a packet with the time that its place cares about: arrival in the queue, delivery on the wire.
type item struct {
	at     clock.Time
	order  uint64 // wire: breaks ties; queue: unused
	packet *Packet
}

// ring is a first-in-first-out queue of items whose storage grows by doubling and never shrinks.
type ring struct {
	items []item // length is a power of two, or none
	first int
	n     int
}

func (r *ring) push(it item) {
	if r.n == len(r.items) {
		r.grow()
	}
	r.items[(r.first+r.n)&(len(r.items)-1)] = it
	r.n++
}

func (r *ring) grow() {
	items := make([]item, max(16, 2*len(r.items)))
	for i := range r.n {
		items[i] = r.items[(r.first+i)&(len(r.items)-1)]
	}
	r.items, r.first = items, 0
}

// head returns the oldest item of a ring that has one.
func (r *ring) head() *item { return &r.items[r.first] }

func (r *ring) pop() item {
	it := r.items[r.first]
	r.items[r.first].packet = nil
	r.first = (r.first + 1) & (len(r.items) - 1)
	r.n--
	return it
}

// heap orders items by time, then by order: the packets of a wire that may overtake each other.
type heap []item

func (a *item) before(b *item) bool {
	return a.at < b.at || (a.at == b.at && a.order < b.order)
}

func (h *heap) push(it item) {
	*h = append(*h, it)
	s := *h
	i := len(s) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !it.before(&s[up]) {
			break
		}
		s[i] = s[up]
		i = up
	}
	s[i] = it
}

func (h *heap) pop() item {
	s := *h
	top, last := s[0], s[len(s)-1]
	s[len(s)-1].packet = nil
	s = s[:len(s)-1]
	*h = s
	if len(s) == 0 {
		return top
	}
	i := 0
	for {
		down := 2*i + 1
		if down >= len(s) {
			break
		}
		if down+1 < len(s) && s[down+1].before(&s[down]) {
			down++
		}
		if !s[down].before(&last) {
			break
		}
		s[i] = s[down]
		i = down
	}
	s[i] = last
	return top
}
