package netsim

import (
	"cmp"
	"slices"
	"testing"

	"braid/clock"

	"pgregory.net/rapid"
)

type note struct {
	n   int
	log *[]int
}

func (n *note) act(clock.Time) { *n.log = append(*n.log, n.n) }

// The agenda does what a sorted list does: by time, then by when it was planned.
func TestAgendaMatchesSortedList(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var g agenda
		var log []int
		type planned struct {
			id    int32
			at    clock.Time
			order int
		}
		var model []planned
		for i := range 12 {
			g.add(&note{i, &log})
		}
		for step := range rapid.IntRange(1, 200).Draw(rt, "steps") {
			if rapid.IntRange(0, 3).Draw(rt, "what") == 0 && len(model) > 0 {
				slices.SortFunc(model, func(a, b planned) int {
					return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.order, b.order))
				})
				if g.next() != model[0].at {
					rt.Fatalf("next is %v, want %v", g.next(), model[0].at)
				}
				g.take().act(0)
				if log[len(log)-1] != int(model[0].id) {
					rt.Fatalf("%d acted, want %d", log[len(log)-1], model[0].id)
				}
				model = model[1:]
				continue
			}
			id := int32(rapid.IntRange(0, 11).Draw(rt, "actor"))
			at := clock.Time(rapid.IntRange(0, 20).Draw(rt, "at"))
			if at == 20 {
				at = clock.Never
			}
			g.plan(id, at)
			i := slices.IndexFunc(model, func(p planned) bool { return p.id == id })
			switch {
			case i >= 0 && model[i].at == at:
			case i >= 0:
				model = slices.Delete(model, i, i+1)
				fallthrough
			default:
				if at != clock.Never {
					model = append(model, planned{id, at, step})
				}
			}
		}
		if len(model) != len(g.heap) {
			rt.Fatalf("%d entries, want %d", len(g.heap), len(model))
		}
	})
}

func TestAgendaReusesNumbers(t *testing.T) {
	var g agenda
	var log []int
	a, b := g.add(&note{1, &log}), g.add(&note{2, &log})
	g.plan(a, 5)
	g.plan(b, 6)
	g.remove(a)
	if c := g.add(&note{3, &log}); c != a {
		t.Errorf("new actor got number %d, want the free %d", c, a)
	}
	if g.next() != 6 {
		t.Errorf("next is %v, want 6: the removed actor must not act", g.next())
	}
}

func BenchmarkAgenda(b *testing.B) {
	var g agenda
	var log []int
	for i := range 16 {
		g.plan(g.add(&note{i, &log}), clock.Time(i*7))
	}
	b.ReportAllocs()
	for b.Loop() {
		e := g.heap[0]
		g.take()
		g.plan(e.id, e.at+100)
	}
}
