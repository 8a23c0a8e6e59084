package congestion

import "slices"

// member is what every coupled controller carries of its place in the group.
type member struct {
	id     int
	silent bool // timed out and not heard since: left out of the coupling
}

func (m *member) membership() *member { return m }

// roster is the list of a coupled group's members, ascending by id, so that no sum and no tie depends on the order in which
// they came.
type roster[M interface{ membership() *member }] struct{ list []M }

func (r *roster[M]) find(id int) (int, bool) {
	return slices.BinarySearchFunc(r.list, id, func(m M, id int) int { return m.membership().id - id })
}

// add puts a new member in. A second member of the same id is the caller's error.
func (r *roster[M]) add(m M) M {
	i, found := r.find(m.membership().id)
	if found {
		panic("congestion: Join of a subflow that is a member already")
	}
	r.list = slices.Insert(r.list, i, m)
	return m
}

// Leave removes a subflow that was closed.
func (r *roster[M]) Leave(id int) {
	if i, found := r.find(id); found {
		r.list = slices.Delete(r.list, i, i+1)
	}
}

// Silence leaves a subflow out of the coupling, or takes it in again.
func (r *roster[M]) Silence(id int, silent bool) {
	if i, found := r.find(id); found {
		r.list[i].membership().silent = silent
	}
}
