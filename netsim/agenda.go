package netsim

import "braid/clock"

// actor is something that wants to act at times: a link, a host, a timer.
type actor interface {
	act(now clock.Time)
}

// agenda knows when each actor acts next: a 4-ary heap with one entry for each actor that waits, which can be moved. What is due at
// the same time acts in the order in which it was planned.
type agenda struct {
	heap   []entry
	actors []actor
	place  []int32 // where an actor's entry is; -1: nowhere
	free   []int32 // numbers of actors that left
	order  uint64
}

type entry struct {
	at    clock.Time
	order uint64
	id    int32
}

func (a *entry) before(b *entry) bool {
	return a.at < b.at || (a.at == b.at && a.order < b.order)
}

// add enters an actor and returns its number.
func (g *agenda) add(a actor) int32 {
	if n := len(g.free); n > 0 {
		id := g.free[n-1]
		g.free = g.free[:n-1]
		g.actors[id] = a
		return id
	}
	g.actors = append(g.actors, a)
	g.place = append(g.place, -1)
	return int32(len(g.actors) - 1)
}

// remove forgets an actor; its number will be another's.
func (g *agenda) remove(id int32) {
	g.plan(id, clock.Never)
	g.actors[id] = nil
	g.free = append(g.free, id)
}

// next returns when something happens next.
func (g *agenda) next() clock.Time {
	if len(g.heap) == 0 {
		return clock.Never
	}
	return g.heap[0].at
}

// plan makes an actor act at the given time, and not when it was to act before; clock.Never: not at all. Planning what is planned
// already changes nothing, its order neither.
func (g *agenda) plan(id int32, at clock.Time) {
	i := int(g.place[id])
	switch {
	case i < 0 && at == clock.Never:
	case i < 0:
		g.order++
		g.heap = append(g.heap, entry{})
		g.up(len(g.heap)-1, entry{at, g.order, id})
	case at == clock.Never:
		g.drop(i)
	case g.heap[i].at != at:
		g.order++
		e := entry{at, g.order, id}
		if at < g.heap[i].at {
			g.up(i, e)
		} else {
			g.down(i, e)
		}
	}
}

// take removes what happens next and returns its actor.
func (g *agenda) take() actor {
	id := g.heap[0].id
	g.drop(0)
	return g.actors[id]
}

// drop removes the entry at i.
func (g *agenda) drop(i int) {
	g.place[g.heap[i].id] = -1
	last := len(g.heap) - 1
	e := g.heap[last]
	g.heap = g.heap[:last]
	if i == last {
		return
	}
	if i > 0 && e.before(&g.heap[(i-1)/4]) {
		g.up(i, e)
	} else {
		g.down(i, e)
	}
}

func (g *agenda) set(i int, e entry) {
	g.heap[i] = e
	g.place[e.id] = int32(i)
}

func (g *agenda) up(i int, e entry) {
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(&g.heap[parent]) {
			break
		}
		g.set(i, g.heap[parent])
		i = parent
	}
	g.set(i, e)
}

func (g *agenda) down(i int, e entry) {
	for {
		first := 4*i + 1
		if first >= len(g.heap) {
			break
		}
		least := first
		for c := first + 1; c < min(first+4, len(g.heap)); c++ {
			if g.heap[c].before(&g.heap[least]) {
				least = c
			}
		}
		if !g.heap[least].before(&e) {
			break
		}
		g.set(i, g.heap[least])
		i = least
	}
	g.set(i, e)
}
