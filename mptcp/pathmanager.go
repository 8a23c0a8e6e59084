package mptcp

import (
	"net/netip"
	"slices"
	"time"

	"braid/clock"
	"braid/wire"
)

// pathManager keeps one subflow open on every path (the host that opened the connection does, RFC 8684, Section 3.9.2) and to every
// address that the peer announces, announces our own (Section 3.4), and asks silent paths whether they are back (both hosts do: each
// sees only the silence of what it sends). What is done with a path, EndpointFlags say.
//
// A path is silent when the retransmission timer of its subflow has expired and nothing was heard since. TCP's own back-off would let up
// to a minute pass before it asks again; a path that returns shall carry data within two seconds.
type pathManager struct {
	conn    *Conn
	entries []pathEntry // subflows that are wanted, in the order in which they became so
	ids     addressIDs  // of our paths

	initialPath   PathID
	initialKind   PathKind
	initialLocal  netip.AddrPort
	initialPort   uint16         // ours
	initialTo     uint16         // the peer's
	initialRemote netip.AddrPort // the peer's address, or that of what relays the initial path to it (Path.Remote)
	target        netip.AddrPort // the peer's address, for paths that nothing relays
	initialGone   bool           // the peer removed it

	ours        announcements
	known       []peerAddress // what the peer announced, at most Limits.AddAddrAccepted
	echoes      []pendingEcho
	removing    []uint8 // IDs that a REMOVE_ADDR is due for
	removeSent  bool    // ... and left on one subflow at least
	joinsFailed int     // to announced addresses

	joins  halfList   // half-open joins from the peer
	lookAt clock.Time // when the next segment makes us look for subflows that fell silent with nothing outstanding
}

// pathEntry is a path on which a subflow is wanted, and the peer's address that it goes to.
type pathEntry struct {
	path   PathID
	remote netip.AddrPort
	id     int16      // the address's ID at the peer; -1: not known
	down   bool       // no subflow works on it
	since  clock.Time // since when
	next   clock.Time // when the next join may be tried

	announced bool // by ADD_ADDR; otherwise it is the address that the connection was opened to, as the path reaches it
	worked    bool // a subflow was open once
	failed    bool // announced: the first attempt failed. It is not repeated
}

// The cadence of probes and joins.
const (
	probeEvery    = 1200 * time.Millisecond // during the first minute of an outage
	probeSlowly   = 15 * time.Second        // after it
	outageFresh   = 60 * time.Second
	joinBeside    = 10 * time.Second // a subflow silent for so long gets a second one beside it: a middlebox may have forgotten the first
	synsPerJoin   = 5                // SYNs of one join before another one, from another port, takes its place
	lookEvery     = 5 * time.Second
	quietFor      = 25 * time.Second // a subflow that was not heard for so long, a keep-alive's time included, while others were is asked
	quietQuestion = 2                // ... and given up when it did not answer so many times
)

// silence is what the path manager keeps of a subflow.
type silence struct {
	silent  bool
	since   clock.Time
	probeAt clock.Time // silent or opening: when it is probed next
	asked   uint8      // questions to a quiet subflow since it was heard last
	askedAt clock.Time
	check   addressCheck
}

// cadence returns the pause before the next probe in an outage that began at since.
func cadence(now, since clock.Time) time.Duration {
	if now.Sub(since) < outageFresh {
		return probeEvery
	}
	return probeSlowly
}

// begin notes the initial subflow, and the address that was dialled.
func (pm *pathManager) begin(now clock.Time, sf *Subflow, target netip.AddrPort) {
	pm.target = target
	pm.initialPath, pm.initialKind = sf.path, sf.kind
	pm.initialPort, pm.initialTo = sf.srcPort, sf.dstPort
	pm.initialLocal, pm.initialRemote = sf.local, sf.remote
	pm.lookAt = now.Add(lookEvery)
}

// confirmed says that the peer gave data-level proof of MPTCP: joins may start (RFC 8684, Section 3.2).
func (pm *pathManager) confirmed(now clock.Time) {
	c := pm.conn
	if c.hs.confirmed {
		return
	}
	c.hs.confirmed = true
	for _, sf := range c.subflows {
		if sf.initial && sf.backupLocal {
			c.SetPriority(now, sf.id, true) // RFC 8684, Section 3.3.8: MP_CAPABLE could not say so
		}
	}
	for _, p := range c.stack.paths {
		pm.take(now, p)
	}
	pm.useAnnounced(now)
	pm.open(now)
}

// pathAdded does with a path that is new, or has new flags, what its flags say.
func (pm *pathManager) pathAdded(now clock.Time, p *path) {
	c := pm.conn
	if !c.hs.confirmed || c.hs.noJoins || c.hs.plain {
		return
	}
	pm.take(now, p)
	pm.useAnnounced(now)
	c.stack.rearm(c)
}

// take announces the address of a path and makes it one on which a subflow is wanted, as far as its flags say so and the peer can be reached over
// it. What it did already is not done again.
func (pm *pathManager) take(now clock.Time, p *path) {
	if p.removed {
		return
	}
	pm.announce(now, p)
	if client := pm.conn.client; p.opens(client) && (client || p.id != pm.initialPath) {
		pm.wantInitial(now, p)
	}
}

// wantInitial makes an entry for the address that the connection was opened to.
func (pm *pathManager) wantInitial(now clock.Time, p *path) {
	remote, ok := p.reaches(pm.target)
	if !ok || pm.entry(p.id, remote) != nil {
		return
	}
	e := pathEntry{path: p.id, remote: remote, id: -1, down: true, since: now, next: now}
	if pm.isInitial(remote) {
		e.id = 0
		// RFC 8684, Section 3.1: flag C forbids joins to the initial address and port; Section 3.4.2: so does its removal.
		if pm.conn.hs.peerNoJoin || pm.initialGone {
			return
		}
	}
	pm.entries = append(pm.entries, e)
}

// isInitial reports whether an address is the one that the connection was opened to.
func (pm *pathManager) isInitial(a netip.AddrPort) bool {
	return a == pm.target || a == pm.initialRemote
}

// pathRemoved forgets a path and tells the peer that its address is gone, used or not (RFC 8684, Section 3.4.2).
func (pm *pathManager) pathRemoved(now clock.Time, id PathID) {
	pm.entries = slices.DeleteFunc(pm.entries, func(e pathEntry) bool { return e.path == id })
	pm.ours.forget(id)
	if id == pm.initialPath {
		pm.withdraw(now, 0)
	} else if n, ok := pm.ids.free(id); ok {
		pm.withdraw(now, n)
	}
	if c := pm.conn; c.hs.confirmed && !c.hs.noJoins && !c.hs.plain {
		for _, p := range c.stack.paths {
			pm.announce(now, p) // one that has the same address, for which the removed one stood
		}
	}
	pm.useAnnounced(now)
}

// close forgets what the peer began.
func (pm *pathManager) close() {
	for pm.joins.first != nil {
		pm.joins.first.close()
	}
	pm.entries = nil
	pm.silenceAddresses()
}

// subflowUp says that sf may carry data.
func (pm *pathManager) subflowUp(now clock.Time, sf *Subflow) {
	c := pm.conn
	for i := len(c.subflows) - 1; i >= 0; i-- {
		if other := c.subflows[i]; other != sf && other.path == sf.path && other.remote == sf.remote && other.watch.silent && c.client {
			c.stack.drop(now, other, wire.ResetPerformance, true)
		}
	}
	if e := pm.entry(sf.path, sf.remote); e != nil {
		e.down, e.worked, e.failed, e.id = false, true, false, int16(sf.remoteID)
	}
	pm.withdrawAgain(now, sf)
	pm.announceAgain(now)
}

// subflowGone says that sf is no more.
func (pm *pathManager) subflowGone(now clock.Time, sf *Subflow, err error) {
	pm.subflowLeft(now, sf)
	alone := !pm.conn.anyUp()
	if alone && sf.joined {
		pm.lastResort(now)
	}
	e := pm.entry(sf.path, sf.remote)
	if e == nil {
		return
	}
	pause := time.Duration(0)
	switch {
	case e.announced && !e.worked && !pm.joinFailed(e, alone):
		return
	case sf.peerResetForever, err == nil:
		// RFC 8684, Section 3.6: without T, do not try again soon. The same if the peer closed it in order.
		pause = probeSlowly
	case !sf.joined:
		pause = cadence(now, e.since)
	}
	if !e.down {
		e.down, e.since = true, now
	}
	e.next = max(e.next, now.Add(pause))
	if !sf.joined && !sf.initial {
		e.next = max(e.next, min(sf.opened.Add(cadence(now, e.since)), now.Add(probeEvery)))
	}
}

// entry returns the entry of a path and an address of the peer's, nil if there is none.
func (pm *pathManager) entry(id PathID, remote netip.AddrPort) *pathEntry {
	for i := range pm.entries {
		if e := &pm.entries[i]; e.path == id && e.remote == remote {
			return e
		}
	}
	return nil
}

// expire probes silent subflows, opens what is missing and announces again what was not echoed.
func (pm *pathManager) expire(now clock.Time) {
	if now >= pm.ours.at {
		pm.announceNext(now)
	}
	pm.watch(now)
	pm.open(now)
}

// watch notices silence and its end, and probes.
func (pm *pathManager) watch(now clock.Time) {
	c := pm.conn
	for i := len(c.subflows) - 1; i >= 0; i-- {
		if i >= len(c.subflows) {
			continue
		}
		sf := c.subflows[i]
		switch {
		case sf.state == synSent && !sf.initial:
			pm.watchOpening(now, sf)
		case sf.up():
			pm.watchSilence(now, sf)
			if sf.state != gone {
				pm.watchRemoved(now, sf)
			}
		}
	}
}

// watchSilence probes a subflow that timed out.
func (pm *pathManager) watchSilence(now clock.Time, sf *Subflow) {
	c, w := pm.conn, &sf.watch
	if sf.tcp.Backoffs() == 0 {
		w.silent = false
		return
	}
	if !w.silent {
		w.silent, w.since = true, now
		w.probeAt = now.Add(probeEvery)
		return
	}
	if now < w.probeAt {
		return
	}
	// The last subflow goes too: what it still repeats may be long DATA_ACKed, and the connection must notice that the peer is gone.
	if now.Sub(w.since) >= c.stack.cfg.UserTimeout && (pm.anotherWorks(sf) || !c.fb.any()) {
		c.stack.drop(now, sf, wire.ResetPerformance, true)
		return
	}
	w.probeAt = now.Add(cadence(now, w.since))
	sf.tcp.Probe(now)
	c.stack.counters.PathProbes++
	c.stack.wake(c)
}

// anotherWorks reports whether a subflow beside sf carries data.
func (pm *pathManager) anotherWorks(sf *Subflow) bool {
	for _, other := range pm.conn.subflows {
		if other != sf && other.up() && !other.watch.silent {
			return true
		}
	}
	return false
}

// watchOpening repeats the SYN of a join, and gives it up for another one when it was not answered.
func (pm *pathManager) watchOpening(now clock.Time, sf *Subflow) {
	c, w := pm.conn, &sf.watch
	if now < w.probeAt {
		return
	}
	e := pm.entry(sf.path, sf.remote)
	if e == nil || int(sf.join.syns) >= synsPerJoin {
		c.stack.joinFailed(sf)
		c.stack.abandon(now, sf, ErrTimeout)
		if e != nil {
			e.next = now
		}
		return
	}
	w.probeAt = now.Add(cadence(now, e.since))
	sf.tcp.Probe(now)
	c.stack.counters.PathProbes++
	c.stack.wake(c)
}

// open joins on paths without a working subflow.
func (pm *pathManager) open(now clock.Time) {
	c := pm.conn
	if len(pm.entries) == 0 || c.hs.noJoins || c.hs.plain || c.finished {
		return
	}
	for _, announced := range [...]bool{false, true} { // every path comes before any address
		for i := range pm.entries {
			if pm.entries[i].announced == announced {
				pm.openEntry(now, &pm.entries[i])
			}
		}
	}
	c.stack.rearm(c)
}

// openEntry joins for one entry if it is time.
func (pm *pathManager) openEntry(now clock.Time, e *pathEntry) {
	c := pm.conn
	works, opening := pm.onEntry(now, e)
	switch {
	case works:
		e.down = false
		return
	case !e.down:
		e.down, e.since = true, now
	}
	if opening || e.failed || now < e.next || !pm.room(now) {
		return
	}
	if e.announced && !e.worked && pm.joinsFailed >= announcedTries {
		e.failed = true
		return
	}
	e.next = now.Add(cadence(now, e.since))
	p := c.stack.livePath(e.path)
	if p == nil {
		return
	}
	if r, ok := c.stack.newRoute(p, e.remote); ok {
		if p.Kind == UDP {
			r.dstPort = pm.initialTo // docs/encapsulation.md: the connection's
		}
		if e.announced {
			c.stack.counters.AnnouncedJoins++
		}
		sf := c.stack.openJoin(now, c, r)
		sf.watch.probeAt = now.Add(cadence(now, e.since))
	}
}

// room reports whether one more subflow may be opened. Those that have been silent for so long that they get a second one beside them do not
// count: their places are for that one.
func (pm *pathManager) room(now clock.Time) bool {
	n := len(pm.conn.subflows)
	for _, sf := range pm.conn.subflows {
		if sf.up() && sf.watch.silent && now.Sub(sf.watch.since) >= joinBeside {
			n--
		}
	}
	return n < pm.conn.stack.cfg.MaxSubflows
}

// onEntry reports whether a subflow of an entry works, or its silence is young enough to wait; and whether one is being opened.
func (pm *pathManager) onEntry(now clock.Time, e *pathEntry) (works, opening bool) {
	for _, sf := range pm.conn.subflows {
		if sf.path != e.path || sf.remote != e.remote {
			continue
		}
		switch {
		case sf.state == synSent, sf.state == preEstablished:
			opening = true
		case sf.up() && (!sf.watch.silent || now.Sub(sf.watch.since) < joinBeside):
			works = true
		}
	}
	return works, opening
}

// look asks subflows that were not heard for long whether they still exist, while others are heard: the peer may have given one up
// without our noticing, because nothing of ours is outstanding on it. It needs no timer: segments of the others drive it.
func (pm *pathManager) look(now clock.Time) {
	c := pm.conn
	pm.lookAt = now.Add(lookEvery)
	for i := len(c.subflows) - 1; i >= 0; i-- {
		if i >= len(c.subflows) {
			continue
		}
		sf := c.subflows[i]
		w := &sf.watch
		if !sf.up() || w.silent || now.Sub(sf.tcp.LastHeard()) < quietFor {
			w.asked = 0
			continue
		}
		if w.asked == 0 || sf.tcp.LastHeard() > w.askedAt {
			w.asked, w.askedAt = 0, now
		}
		if w.asked++; w.asked > quietQuestion {
			c.stack.drop(now, sf, wire.ResetPerformance, true)
			continue
		}
		sf.tcp.Probe(now)
		c.stack.counters.PathProbes++
	}
}

// deadline returns when expire is due. It is Never unless something is silent or missing.
func (pm *pathManager) deadline() clock.Time {
	c, at := pm.conn, pm.ours.at
	for _, sf := range c.subflows {
		if sf.watch.check.asked > 0 && sf.up() {
			at = min(at, sf.watch.check.at)
		}
		if w := &sf.watch; sf.state == synSent && !sf.initial || w.silent && sf.up() {
			at = min(at, w.probeAt)
			if w.silent {
				at = min(at, max(w.probeAt, w.since.Add(joinBeside)))
			}
		}
	}
	if c.hs.noJoins || c.hs.plain || len(c.subflows) >= c.stack.cfg.MaxSubflows {
		return at
	}
	for i := range pm.entries {
		e := &pm.entries[i]
		if e.down && !e.failed && !pm.openingOn(e) {
			at = min(at, e.next)
		}
	}
	return at
}

func (pm *pathManager) openingOn(e *pathEntry) bool {
	for _, sf := range pm.conn.subflows {
		if sf.path == e.path && sf.remote == e.remote && (sf.state == synSent || sf.state == preEstablished) {
			return true
		}
	}
	return false
}
