package mptcp

import (
	"net/netip"
	"slices"
	"time"

	"braid/clock"
)

// destinations remembers, for a bounded number of addresses, over which path they were reached best and on which paths MPTCP's
// options got lost (RFC 8684, Section 3.9.3). Nothing of one address is held against another.
type destinations struct {
	byAddr map[netip.AddrPort]*destination
	fifo   []netip.AddrPort // ring, oldest at head
	head   int
}

// destination is what is known of one address.
type destination struct {
	best  PathID
	paths []pathMemory
}

// pathMemory is what is known of one path to it.
type pathMemory struct {
	path     PathID
	stripped clock.Time // until then its handshakes are taken to end in plain TCP
	lossy    clock.Time // until then SYNs with MPTCP's options are taken to get lost
}

const (
	maxDestinations = 1024
	strippedFor     = 10 * time.Minute
)

func newDestinations() destinations {
	return destinations{byAddr: make(map[netip.AddrPort]*destination)}
}

// remember notes how a handshake over path with target ended.
func (d *destinations) remember(now clock.Time, target netip.AddrPort, path PathID, reason FallbackReason) {
	known := d.byAddr[target]
	if known == nil {
		known = &destination{}
		d.insert(target, known)
	}
	i := slices.IndexFunc(known.paths, func(m pathMemory) bool { return m.path == path })
	if i < 0 {
		i = len(known.paths)
		if i == maxRacers {
			i = 0 // paths come and go: the oldest makes room
		} else {
			known.paths = append(known.paths, pathMemory{})
		}
		known.paths[i] = pathMemory{path: path, stripped: now, lossy: now}
	}
	m := &known.paths[i]
	known.best = path
	switch reason {
	case NoFallback:
		m.stripped, m.lossy = now, now
	case FallbackSYN:
		m.stripped, m.lossy = now.Add(strippedFor), now.Add(strippedFor)
	case FallbackNotAnswered:
		m.stripped = now.Add(strippedFor)
	}
}

// insert adds a destination; the oldest makes room.
func (d *destinations) insert(target netip.AddrPort, known *destination) {
	if len(d.fifo) < maxDestinations {
		d.fifo = append(d.fifo, target)
	} else {
		delete(d.byAddr, d.fifo[d.head])
		d.fifo[d.head] = target
		d.head = (d.head + 1) % maxDestinations
	}
	d.byAddr[target] = known
}

// order sorts ways to target: the path that was best comes first, those without MPTCP last; else as they were. It marks those
// that better go without MP_CAPABLE.
func (d *destinations) order(now clock.Time, target netip.AddrPort, ways []candidate) {
	known := d.byAddr[target]
	if known == nil {
		return
	}
	rank := func(w candidate) int {
		for _, m := range known.paths {
			if m.path == w.path && now < m.stripped {
				return 2
			}
		}
		if w.path == known.best {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(ways, func(a, b candidate) int { return rank(a) - rank(b) })
	for i := range ways {
		for _, m := range known.paths {
			if m.path == ways[i].path && now < m.lossy {
				ways[i].plain = true
			}
		}
	}
}
