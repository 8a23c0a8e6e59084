package mptcp

import (
	"net/netip"
	"slices"
	"time"

	"braid/clock"
	"braid/wire"
)

// pathManager keeps one subflow open on every path (the host that opened the connection does, RFC 8684, Section 3.9.2), and asks
// silent paths whether they are back (both hosts do: each sees only the silence of what it sends).
//
// A path is silent when the retransmission timer of its subflow has expired and nothing was heard since. TCP's own back-off would let up
// to a minute pass before it asks again; a path that returns shall carry data within two seconds.
type pathManager struct {
	conn    *Conn
	entries []pathEntry // host that opened the connection: by path, ascending
	ids     []PathID    // paths with an address ID: 1 + index; the initial path has 0

	initialPath   PathID
	initialPort   uint16         // ours
	initialRemote netip.AddrPort // the peer's address

	joins  halfList   // half-open joins from the peer
	lookAt clock.Time // when the next segment makes us look for subflows that fell silent with nothing outstanding
}

// pathEntry is a path on which a subflow is wanted.
type pathEntry struct {
	path   PathID
	remote netip.AddrPort
	down   bool       // no subflow works on it
	since  clock.Time // since when
	next   clock.Time // when the next join may be tried
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
}

// cadence returns the pause before the next probe in an outage that began at since.
func cadence(now, since clock.Time) time.Duration {
	if now.Sub(since) < outageFresh {
		return probeEvery
	}
	return probeSlowly
}

// begin notes the initial subflow.
func (pm *pathManager) begin(now clock.Time, sf *Subflow) {
	pm.initialPath, pm.initialPort, pm.initialRemote = sf.path, sf.srcPort, sf.remote
	pm.lookAt = now.Add(lookEvery)
}

// confirmed says that the peer gave data-level proof of MPTCP: joins may start (RFC 8684, Section 3.2).
func (pm *pathManager) confirmed(now clock.Time) {
	c := pm.conn
	if c.hs.confirmed {
		return
	}
	c.hs.confirmed = true
	if !c.client {
		return
	}
	for _, p := range c.stack.paths {
		pm.pathAdded(now, p)
	}
	pm.open(now)
}

// pathAdded makes p a path on which a subflow is wanted, if the peer can be reached over it.
func (pm *pathManager) pathAdded(now clock.Time, p *path) {
	c := pm.conn
	if !c.client || !c.hs.confirmed || p.removed {
		return
	}
	remote, ok := p.reaches(pm.initialRemote)
	if !ok || c.hs.peerNoJoin && remote == pm.initialRemote {
		return // RFC 8684, Section 3.1: flag C forbids joins to the initial address and port
	}
	pm.entries = append(pm.entries, pathEntry{path: p.id, remote: remote, down: true, since: now, next: now})
	c.stack.rearm(c)
}

// pathRemoved forgets a path.
func (pm *pathManager) pathRemoved(id PathID) {
	pm.entries = slices.DeleteFunc(pm.entries, func(e pathEntry) bool { return e.path == id })
}

// addressID returns the ID of the address of a path (RFC 8684, Section 3.2: 0 is that of the initial subflow).
func (pm *pathManager) addressID(id PathID) uint8 {
	if id == pm.initialPath {
		return 0
	}
	i := slices.Index(pm.ids, id)
	if i < 0 {
		if len(pm.ids) == 255 { // paths that came and went: forget the oldest
			pm.ids = pm.ids[1:]
		}
		i = len(pm.ids)
		pm.ids = append(pm.ids, id)
	}
	return uint8(i + 1)
}

// close forgets what the peer began.
func (pm *pathManager) close() {
	for pm.joins.first != nil {
		pm.joins.first.close()
	}
	pm.entries = nil
}

// subflowUp says that sf may carry data.
func (pm *pathManager) subflowUp(now clock.Time, sf *Subflow) {
	c := pm.conn
	for i := len(c.subflows) - 1; i >= 0; i-- {
		if other := c.subflows[i]; other != sf && other.path == sf.path && other.watch.silent && c.client {
			c.stack.drop(now, other, wire.ResetPerformance, true)
		}
	}
	if e := pm.entry(sf.path); e != nil {
		e.down = false
	}
}

// subflowGone says that sf is no more.
func (pm *pathManager) subflowGone(now clock.Time, sf *Subflow, err error) {
	e := pm.entry(sf.path)
	if e == nil {
		return
	}
	pause := time.Duration(0)
	switch {
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

// entry returns the entry of a path, nil if there is none.
func (pm *pathManager) entry(id PathID) *pathEntry {
	for i := range pm.entries {
		if pm.entries[i].path == id {
			return &pm.entries[i]
		}
	}
	return nil
}

// expire probes silent subflows and opens what is missing.
func (pm *pathManager) expire(now clock.Time) {
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
	if now.Sub(w.since) >= c.stack.cfg.UserTimeout && pm.anotherWorks(sf) {
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
	e := pm.entry(sf.path)
	if e == nil || int(sf.join.syns) >= synsPerJoin {
		c.stack.counters.JoinsSentFailed++
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
	for i := range pm.entries {
		e := &pm.entries[i]
		works, opening := pm.onPath(now, e.path)
		switch {
		case works:
			e.down = false
			continue
		case !e.down:
			e.down, e.since = true, now
		}
		if opening || now < e.next || len(c.subflows) >= c.stack.cfg.MaxSubflows {
			continue
		}
		e.next = now.Add(cadence(now, e.since))
		p := c.stack.livePath(e.path)
		if p == nil {
			continue
		}
		if r, ok := c.stack.newRoute(p, e.remote); ok {
			sf := c.stack.openJoin(now, c, r)
			sf.watch.probeAt = now.Add(cadence(now, e.since))
		}
	}
	c.stack.rearm(c)
}

// onPath reports whether a subflow works on a path, or silence is young enough to wait; and whether one is being opened.
func (pm *pathManager) onPath(now clock.Time, id PathID) (works, opening bool) {
	for _, sf := range pm.conn.subflows {
		if sf.path != id {
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
	c, at := pm.conn, clock.Never
	for _, sf := range c.subflows {
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
		if e.down && !pm.openingOn(e.path) {
			at = min(at, e.next)
		}
	}
	return at
}

func (pm *pathManager) openingOn(id PathID) bool {
	for _, sf := range pm.conn.subflows {
		if sf.path == id && (sf.state == synSent || sf.state == preEstablished) {
			return true
		}
	}
	return false
}
