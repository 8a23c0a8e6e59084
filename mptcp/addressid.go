package mptcp

import "slices"

// addressIDs gives the paths of a connection their address IDs (RFC 8684, Sections 3.2 and 3.4.1): 0 is the address of the initial
// subflow, every other path has one of 1 to 255 of its own for as long as it exists. IDs that became free are reused as late as
// possible, so that what still travels about the old address does not hit the new one.
type addressIDs struct {
	held []heldID // in the order of assignment
	last uint8    // the ID assigned last
}

type heldID struct {
	path PathID
	id   uint8
}

// of returns the ID of a path, false if it has none.
func (t *addressIDs) of(path PathID) (uint8, bool) {
	i := slices.IndexFunc(t.held, func(h heldID) bool { return h.path == path })
	if i < 0 {
		return 0, false
	}
	return t.held[i].id, true
}

// assign gives path the next ID that no other path has and that is not busy; false if there is none.
func (t *addressIDs) assign(path PathID, busy func(id uint8) bool) (uint8, bool) {
	for range 255 {
		t.last++
		if t.last == 0 {
			t.last = 1
		}
		taken := slices.ContainsFunc(t.held, func(h heldID) bool { return h.id == t.last })
		if !taken && !busy(t.last) {
			t.held = append(t.held, heldID{path, t.last})
			return t.last, true
		}
	}
	return 0, false
}

// free takes a path's ID back, false if it had none.
func (t *addressIDs) free(path PathID) (uint8, bool) {
	i := slices.IndexFunc(t.held, func(h heldID) bool { return h.path == path })
	if i < 0 {
		return 0, false
	}
	id := t.held[i].id
	t.held = slices.Delete(t.held, i, i+1)
	return id, true
}

// addressID returns the ID of the address of a path. Where more than 255 paths exist at once, one that carries no subflow gives its
// ID up and is withdrawn.
func (pm *pathManager) addressID(path PathID) uint8 {
	if path == pm.initialPath {
		return 0
	}
	if id, ok := pm.ids.of(path); ok {
		return id
	}
	if id, ok := pm.ids.assign(path, pm.busyID); ok {
		return id
	}
	for _, h := range pm.ids.held {
		if !pm.busyID(h.id) {
			pm.ids.free(h.path)
			pm.ours.forget(h.path)
			id, _ := pm.ids.assign(path, pm.busyID)
			return id
		}
	}
	panic("mptcp: a connection with 255 subflows") // Config.MaxSubflows is less
}

// busyID reports whether a subflow of ours has an address ID. It may outlive its path by a closing handshake.
func (pm *pathManager) busyID(id uint8) bool {
	return slices.ContainsFunc(pm.conn.subflows, func(sf *Subflow) bool { return sf.localID == id })
}
