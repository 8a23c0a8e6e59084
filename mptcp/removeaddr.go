package mptcp

import (
	"slices"
	"time"

	"braid/clock"
	"braid/tcp"
	"braid/wire"
)

const (
	// maxRemovals IDs fit beside timestamps and a DATA_ACK.
	maxRemovals = 13
	removeTries = 3 // probes without answer after which a subflow whose address was removed is reset
	removeFirst = 200 * time.Millisecond
	removeLast  = 2 * time.Second // bounds of the wait for an answer, otherwise the retransmission timeout
)

// addressCheck asks a subflow whose address the peer removed whether it works (RFC 8684, Section 3.4.2).
type addressCheck struct {
	asked uint8      // probes; 0: not being checked
	since clock.Time // when the first left
	at    clock.Time // when its answer should be there
}

// withdraw tells the peer that an address of ours is gone (RFC 8684, Section 3.4.2), on all subflows: nothing tells whether it arrives. While there
// is none, it waits for one.
func (pm *pathManager) withdraw(now clock.Time, id uint8) {
	c := pm.conn
	if c.finished || c.hs.plain || !c.hs.confirmed || c.fb.any() || c.state != connOpen || slices.Contains(pm.removing, id) {
		return
	}
	if len(pm.removing) == maxRemovals {
		c.stack.counters.RemoveAddrsForgotten++ // its subflows are found dead by their silence
		pm.removing = slices.Delete(pm.removing, 0, 1)
	}
	pm.removing = append(pm.removing, id)
	pm.removeSent = false
	for _, sf := range c.subflows {
		if sf.up() {
			sf.data.removeDue = true
			sf.tcp.RequestAck(now)
		}
	}
	c.stack.wake(c)
}

// withdrawAgain tells a subflow that came up what no other one could be told.
func (pm *pathManager) withdrawAgain(now clock.Time, sf *Subflow) {
	if len(pm.removing) > 0 && !pm.removeSent {
		sf.data.removeDue = true
		sf.tcp.RequestAck(now)
	}
}

// fillRemoval adds the REMOVE_ADDR to an ACK, beside the DATA_ACK.
func (pm *pathManager) fillRemoval(sf *Subflow, seg *wire.Segment, out *tcp.Out, room int) {
	n := len(pm.removing)
	if out.Len > 0 || out.Start != sf.tcp.SentOffset() || room < wire.RemoveAddrLen(n) { // the peer takes no option from a probe
		return
	}
	sf.data.removeDue = false
	if n == 0 {
		return
	}
	seg.Options |= wire.OptRemoveAddr
	seg.RemoveAddr.Count = copy(seg.RemoveAddr.IDs[:], pm.removing)
	pm.conn.stack.counters.RemoveAddrsSent++
	pm.removeSent = true
	pm.removalLeft()
}

// removalLeft forgets removals that have gone wherever they could.
func (pm *pathManager) removalLeft() {
	if pm.removeSent && !slices.ContainsFunc(pm.conn.subflows, func(sf *Subflow) bool { return sf.data.removeDue }) {
		pm.removing = nil
	}
}

// takeRemoveAddr takes a REMOVE_ADDR of an acceptable segment. RFC 8684, Section 3.4.2: IDs that mean nothing are skipped.
func (c *Conn) takeRemoveAddr(now clock.Time, r *wire.RemoveAddr) {
	n := &c.stack.counters
	if c.fb.any() || c.hs.plain || c.state != connOpen {
		return
	}
	n.RemoveAddrsReceived++
	for _, id := range r.IDs[:r.Count] {
		if !c.pm.removed(now, id) {
			n.RemoveAddrsUnknown++
		}
	}
	if !c.hs.noJoins {
		c.pm.useAnnounced(now) // the same address may be known under another ID
		c.pm.open(now)
	}
	c.stack.rearm(c)
}

// removed forgets an address of the peer's: nothing is opened to it any more, even if a subflow turns out to work (RFC 8684, Section 3.4.2). Those that
// go to it are found by its ID, which survives NATs. It reports whether the ID meant anything.
func (pm *pathManager) removed(now clock.Time, id uint8) bool {
	before := len(pm.known) + len(pm.entries)
	pm.known = slices.DeleteFunc(pm.known, func(a peerAddress) bool { return a.id == id })
	pm.entries = slices.DeleteFunc(pm.entries, func(e pathEntry) bool { return e.id == int16(id) })
	found := len(pm.known)+len(pm.entries) < before
	if id == 0 {
		pm.initialGone = true
	}
	for _, sf := range pm.conn.subflows {
		if !sf.up() || sf.remoteID != id {
			continue
		}
		found = true
		if k := &sf.watch.check; k.asked == 0 {
			*k = addressCheck{since: now}
			pm.ask(now, sf)
		}
	}
	return found
}

// ask sends the next probe to a subflow whose address was removed.
func (pm *pathManager) ask(now clock.Time, sf *Subflow) {
	k := &sf.watch.check
	k.asked++
	k.at = now.Add(min(max(sf.tcp.RTO(), removeFirst), removeLast))
	sf.tcp.Probe(now)
	pm.conn.stack.counters.PathProbes++
	pm.conn.stack.wake(pm.conn)
}

// watchRemoved decides about a subflow whose address was removed. What arrived sooner than a round trip after the question may have been on its
// way before and proves nothing.
func (pm *pathManager) watchRemoved(now clock.Time, sf *Subflow) {
	c, k := pm.conn, &sf.watch.check
	if k.asked == 0 || now < k.at {
		return
	}
	n := &c.stack.counters
	switch {
	case sf.tcp.LastHeard() >= k.since.Add(max(sf.tcp.Info(now).MinRTT, 1)):
		k.asked = 0
		n.RemovedSubflowsKept++
	case k.asked < removeTries:
		pm.ask(now, sf)
	default:
		// RFC 8684, Section 3.4.2: with a RST, for the sake of the middleboxes on the way.
		n.RemovedSubflowsClosed++
		c.stack.drop(now, sf, wire.ResetUnspecified, false)
	}
}
