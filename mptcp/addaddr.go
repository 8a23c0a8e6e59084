package mptcp

import (
	"net/netip"
	"slices"
	"time"

	"braid/clock"
	"braid/tcp"
	"braid/wire"
)

// AddressCounters are the Counters of address announcements and removals (RFC 8684, Section 3.4).
type AddressCounters struct {
	// ADD_ADDR as announcer.
	AddAddrsSent          int64 // options, repetitions included
	AddAddrsRepeated      int64 // of these, repetitions
	AddAddrsEchoed        int64 // announcements that the peer echoed
	AddAddrsGivenUp       int64 // announcements that it did not
	AddAddrEchoesUnwanted int64 // echoes of nothing that was announced

	// ADD_ADDR as receiver. Each one that is received counts under one of the seven from AddAddrsBadMAC on.
	AddAddrsReceived   int64 // announcements, no echoes
	AddAddrsWithPort   int64 // of these, with a port
	AddAddrsBadMAC     int64 // wrong HMAC: ignored
	AddAddrsClashing   int64 // the ID belongs to another address: ignored
	AddAddrsRefused    int64 // an address that no subflow is opened to: echoed
	AddAddrsOverLimit  int64 // Limits.AddAddrAccepted: echoed
	AddAddrsKnown      int64 // announced before: echoed, and tried again
	AddAddrsAccepted   int64 // kept and echoed
	AddAddrsUnwanted   int64 // the connection is ending: echoed
	AddAddrEchoesSent  int64
	AddAddrEchoesLost  int64 // not sent: too many at once, or their subflow ended
	AnnouncedJoins     int64 // subflows opened to announced addresses, successful or not
	AnnouncedJoinsLost int64 // of these, those that failed

	// REMOVE_ADDR.
	RemoveAddrsSent       int64 // options; the same removal goes on every subflow
	RemoveAddrsForgotten  int64 // removals of addresses that were not told: too many at once
	RemoveAddrsReceived   int64 // options
	RemoveAddrsUnknown    int64 // IDs in them that meant nothing
	RemovedSubflowsKept   int64 // subflows whose address was removed and whose peer answered nevertheless
	RemovedSubflowsClosed int64 // ... and did not: reset

	PriosSent int64 // MP_PRIO
}

const (
	addAddrFirst   = 200 * time.Millisecond // at least, before an announcement that is not echoed goes again; else the carrier's RTO
	addAddrTries   = 4                      // transmissions of an announcement, until another subflow comes up
	maxOurs        = 32                     // announced addresses of ours
	maxEchoes      = 8                      // echoes that wait for their ACK
	announcedTries = 32                     // failed joins to announced addresses, after which a connection opens no more (RFC 8684, Section 5)
)

// announcement is an address of ours that the peer is told.
type announcement struct {
	path       PathID
	id         uint8
	addr       netip.Addr
	port       uint16 // where we take joins; 0: where the carrier's come
	tries      uint8
	bare, full bool // it went without and with a port: these echoes count
	echoed     bool
}

// announcements are the addresses that we announce, one at a time: receivers may keep only one in mind (RFC 8684, Section 3.4.1).
type announcements struct {
	list    []announcement
	carrier *Subflow   // on whose next ACK the announcement in turn goes; nil: it left
	at      clock.Time // when it goes again, or the next one; Never: nothing to announce, or nothing to carry it
}

// forget drops what is announced of a path.
func (a *announcements) forget(id PathID) {
	a.list = slices.DeleteFunc(a.list, func(x announcement) bool { return x.path == id })
}

// turn returns the announcement that is in turn, nil if there is none.
func (a *announcements) turn() *announcement {
	for i := range a.list {
		if x := &a.list[i]; !x.echoed && x.tries <= addAddrTries {
			return x
		}
	}
	return nil
}

// pendingEcho is an echo that waits for the next ACK of the subflow that the announcement came on.
type pendingEcho struct {
	sf  *Subflow
	opt wire.AddAddr
}

// peerAddress is an address that the peer announced.
type peerAddress struct {
	id     uint8
	addr   netip.AddrPort
	failed bool // RFC 8684, Section 3.4.1: a subflow could not be opened to it: not again, unless it is announced anew
}

// announce begins to announce the address of a path.
func (pm *pathManager) announce(now clock.Time, p *path) {
	o := &pm.ours
	if !pm.announces(p) || len(o.list) == maxOurs || slices.ContainsFunc(o.list, func(x announcement) bool { return x.path == p.id }) {
		return
	}
	a := announcement{path: p.id, addr: p.Local.Addr(), port: p.Local.Port()}
	if p.Kind == IP {
		if a.port = pm.initialPort; pm.conn.client {
			a.port = 0 // nothing listens here: joins are found by their token, whatever their port
		}
	}
	if slices.ContainsFunc(o.list, func(x announcement) bool { return x.addr == a.addr && x.port == a.port }) {
		return // another path has the same one: once is enough
	}
	a.id = pm.addressID(p.id)
	o.list = append(o.list, a)
	if o.at == clock.Never {
		pm.announceNext(now)
	}
}

// announceNext puts the announcement in turn on the next ACK of a subflow, another one each time.
func (pm *pathManager) announceNext(now clock.Time) {
	c, o := pm.conn, &pm.ours
	o.carrier, o.at = nil, clock.Never
	for a := o.turn(); a != nil; a = o.turn() {
		if a.tries++; a.tries > addAddrTries {
			c.stack.counters.AddAddrsGivenUp++
			continue
		}
		sf := pm.carrierFor(int(a.tries) - 1)
		if sf == nil {
			a.tries--
			return // subflowUp goes on
		}
		o.carrier = sf
		o.at = now.Add(max(sf.tcp.RTO(), addAddrFirst) << (a.tries - 1))
		pm.carry(now, sf)
		return
	}
}

// carrierFor returns the n-th of the subflows that answer, from the start again behind the last; of all if none answers.
func (pm *pathManager) carrierFor(n int) *Subflow {
	var all, lively []*Subflow
	for _, sf := range pm.conn.subflows {
		if sf.up() {
			all = append(all, sf)
			if sf.usable() && !sf.watch.silent {
				lively = append(lively, sf)
			}
		}
	}
	if len(lively) > 0 {
		all = lively
	}
	if len(all) == 0 {
		return nil
	}
	return all[n%len(all)]
}

// carry makes sf send an ACK for an ADD_ADDR.
func (pm *pathManager) carry(now clock.Time, sf *Subflow) {
	sf.data.addrDue = true
	sf.tcp.RequestAck(now)
	pm.conn.stack.wake(pm.conn)
	pm.conn.stack.rearm(pm.conn)
}

// announceAgain gives announcements that were never echoed another chance: a subflow came up.
func (pm *pathManager) announceAgain(now clock.Time) {
	o := &pm.ours
	for i := range o.list {
		if a := &o.list[i]; a.tries > addAddrTries {
			a.tries = 0
		}
	}
	if o.at == clock.Never {
		pm.announceNext(now)
	}
}

// option returns the announcement as it goes on sf. RFC 8684, Section 3.4.1: without a port, the one that sf uses is meant. Over UDP
// that is what a NAT made of it, so it always stands there.
func (pm *pathManager) option(a *announcement, sf *Subflow) wire.AddAddr {
	o := wire.AddAddr{ID: a.id, Addr: a.addr, Port: a.port}
	if sf.kind == IP && a.port == sf.srcPort {
		o.Port = 0
	}
	if o.Port == 0 {
		a.bare = true
	} else {
		a.full = true
	}
	hs := &pm.conn.hs
	o.MAC = wire.AddAddrMAC(hs.localKey, hs.peerKey, o.ID, o.Addr, o.Port)
	return o
}

// nextOption takes the ADD_ADDR that goes on the next ACK of sf: echoes first.
func (pm *pathManager) nextOption(sf *Subflow) (wire.AddAddr, bool) {
	n := &pm.conn.stack.counters
	if i := slices.IndexFunc(pm.echoes, func(e pendingEcho) bool { return e.sf == sf }); i >= 0 {
		opt := pm.echoes[i].opt
		pm.echoes = slices.Delete(pm.echoes, i, i+1)
		n.AddAddrEchoesSent++
		return opt, true
	}
	if pm.ours.carrier != sf {
		return wire.AddAddr{}, false
	}
	pm.ours.carrier = nil
	a := pm.ours.turn()
	if a == nil {
		return wire.AddAddr{}, false
	}
	n.AddAddrsSent++
	if a.tries > 1 {
		n.AddAddrsRepeated++
	}
	return pm.option(a, sf), true
}

// fillAddress puts an ADD_ADDR on an ACK without anything else: with a DSS there is no room for it, and peers may expect it alone. An
// IPv6 address with a port takes the room of the timestamps too. It reports whether it did.
func (c *Conn) fillAddress(now clock.Time, sf *Subflow, seg *wire.Segment, out *tcp.Out) bool {
	d := &sf.data
	// A segment below SND.NXT is a probe, which the peer takes no option from.
	if seg.Flags != wire.ACK || out.Len > 0 || out.Start != sf.tcp.SentOffset() || d.finDue {
		return false
	}
	opt, ok := c.pm.nextOption(sf)
	if !ok {
		d.addrDue = false
		return false
	}
	seg.Options |= wire.OptAddAddr
	seg.AddAddr = opt
	for _, o := range [...]wire.Option{wire.OptSACK, wire.OptTimestamps} {
		if seg.OptionsLen() > wire.MaxOptionsLen {
			seg.Options &^= o
		}
	}
	d.addrDue = c.pm.ours.carrier == sf || slices.ContainsFunc(c.pm.echoes, func(e pendingEcho) bool { return e.sf == sf })
	sf.tcp.RequestAck(now) // what this ACK could not say, the DATA_ACK and the window that counts from it, follows
	return true
}

// takeAddAddr takes an ADD_ADDR of an acceptable segment.
func (c *Conn) takeAddAddr(now clock.Time, sf *Subflow, a *wire.AddAddr) {
	pm, n := &c.pm, &c.stack.counters
	if c.fb.any() || c.hs.plain || c.state != connOpen {
		return
	}
	if a.Echo {
		pm.takeEcho(now, sf, a)
		return
	}
	n.AddAddrsReceived++
	if a.Port != 0 {
		n.AddAddrsWithPort++
	}
	// RFC 8684, Section 3.4.1: without the right HMAC it is ignored silently.
	if want := wire.AddAddrMAC(c.hs.peerKey, c.hs.localKey, a.ID, a.Addr, a.Port); !wire.MACEqual(want[:], a.MAC[:]) {
		n.AddAddrsBadMAC++
		return
	}
	sf.data.optionSeen(now)
	port := a.Port
	if port == 0 { // the one that the subflow uses which brought it
		if port = sf.dstPort; sf.kind == UDP {
			port = sf.env.to.Port()
		}
	}
	remote := netip.AddrPortFrom(a.Addr.Unmap(), port)
	if pm.clashes(a.ID, remote.Addr()) {
		n.AddAddrsClashing++
		return
	}
	pm.echo(now, sf, a)
	pm.learn(now, a.ID, remote)
	c.stack.rearm(c)
}

// optionSeen notes that the peer's options get through and that it has not fallen back.
func (d *subflowData) optionSeen(now clock.Time) { d.lastDSS, d.dssBytes, d.bare = now, 0, 0 }

// clashes reports whether an ID of the peer's belongs to another address. RFC 8684, Section 3.4.1: it has to be removed first. Subflows do
// not tell: where they come from may be a NAT's address.
func (pm *pathManager) clashes(id uint8, addr netip.Addr) bool {
	if id == 0 && !pm.initialGone {
		return addr != pm.target.Addr() && addr != pm.initialRemote.Addr()
	}
	return slices.ContainsFunc(pm.known, func(a peerAddress) bool { return a.id == id && a.addr.Addr() != addr })
}

// echo orders the echo of an announcement: the same without HMAC, whether or not the address is used (RFC 8684, Section 3.4.1).
func (pm *pathManager) echo(now clock.Time, sf *Subflow, a *wire.AddAddr) {
	e := pendingEcho{sf, wire.AddAddr{Echo: true, ID: a.ID, Addr: a.Addr, Port: a.Port}}
	switch {
	case slices.Contains(pm.echoes, e):
		return
	case len(pm.echoes) == maxEchoes:
		pm.conn.stack.counters.AddAddrEchoesLost++ // the peer announces it again
		return
	}
	pm.echoes = append(pm.echoes, e)
	pm.carry(now, sf)
}

// takeEcho ends the repetitions of an announcement. ID, address and port must be what was sent.
func (pm *pathManager) takeEcho(now clock.Time, sf *Subflow, e *wire.AddAddr) {
	o, n := &pm.ours, &pm.conn.stack.counters
	for i := range o.list {
		a := &o.list[i]
		if a.id != e.ID || a.addr != e.Addr || !(e.Port == 0 && a.bare || e.Port == a.port && a.full) {
			continue
		}
		sf.data.optionSeen(now)
		if a.echoed {
			return // of a repetition
		}
		inTurn := o.turn() == a
		a.echoed = true
		n.AddAddrsEchoed++
		if inTurn {
			pm.announceNext(now)
			pm.conn.stack.rearm(pm.conn)
		}
		return
	}
	n.AddAddrEchoesUnwanted++
}

// learn keeps an address that the peer announced and opens subflows to it.
func (pm *pathManager) learn(now clock.Time, id uint8, addr netip.AddrPort) {
	c := pm.conn
	n := &c.stack.counters
	known := slices.IndexFunc(pm.known, func(a peerAddress) bool { return a.id == id && a.addr == addr })
	switch {
	case c.hs.noJoins:
		n.AddAddrsUnwanted++
		return
	case known >= 0 || id == 0 && !pm.initialGone:
		n.AddAddrsKnown++
		pm.tryAgain(now, addr)
	case !pm.acceptable(addr):
		n.AddAddrsRefused++
		return
	case len(pm.known) >= c.stack.cfg.Limits.accepted(c.client):
		n.AddAddrsOverLimit++
		return
	default:
		n.AddAddrsAccepted++
		pm.known = append(pm.known, peerAddress{id: id, addr: addr})
	}
	pm.useAnnounced(now)
	pm.open(now)
}

// tryAgain lets subflows be opened to an address again at once (RFC 8684, Section 3.4.1: an announcement that is repeated asks for it).
func (pm *pathManager) tryAgain(now clock.Time, addr netip.AddrPort) {
	for i := range pm.known {
		if pm.known[i].addr == addr {
			pm.known[i].failed = false
		}
	}
	for i := range pm.entries {
		if e := &pm.entries[i]; e.remote == addr && e.failed {
			e.failed, e.since, e.next = false, now, now
		}
	}
}

// useAnnounced makes entries for the addresses that the peer announced: over each path with EndpointFullmesh that reaches one, or else over the
// one that fits it best.
func (pm *pathManager) useAnnounced(now clock.Time) {
	c := pm.conn
	if !c.hs.confirmed || pm.joinsFailed >= announcedTries {
		return
	}
	for i := range pm.known {
		a := &pm.known[i]
		if a.failed || c.hs.peerNoJoin && pm.isInitial(a.addr) { // RFC 8684, Section 3.1: flag C forbids that one, others stay usable
			continue
		}
		full := false
		for _, p := range c.stack.paths {
			if p.Flags&EndpointFullmesh != 0 && pm.reachesAnnounced(p, a.addr) {
				full = true
				pm.want(now, p, a)
			}
		}
		if full || pm.wanted(a) {
			continue
		}
		if p := pm.bestFor(a.addr); p != nil {
			pm.want(now, p, a)
		}
	}
}

// wanted reports whether there is a subflow to an announced address, or one is to be opened.
func (pm *pathManager) wanted(a *peerAddress) bool {
	return slices.ContainsFunc(pm.entries, func(e pathEntry) bool { return e.remote == a.addr }) ||
		slices.ContainsFunc(pm.conn.subflows, func(sf *Subflow) bool { return sf.up() && sf.remoteID == a.id })
}

// want makes an entry for an announced address over a path.
func (pm *pathManager) want(now clock.Time, p *path, a *peerAddress) {
	if pm.entry(p.id, a.addr) == nil {
		pm.entries = append(pm.entries, pathEntry{path: p.id, remote: a.addr, id: int16(a.id), announced: true, down: true, since: now, next: now})
	}
}

// joinFailed notes that an announced address could not be reached, and reports whether to try again. RFC 8684, Section 3.4.1: no further attempts,
// unless it is announced anew. One that worked before is like any other: its path may come back. So is every one while there is no
// subflow: the connection would end otherwise.
func (pm *pathManager) joinFailed(e *pathEntry, alone bool) bool {
	pm.conn.stack.counters.AnnouncedJoinsLost++
	pm.joinsFailed++
	if alone {
		return true
	}
	e.failed = true
	for i := range pm.known {
		if pm.known[i].addr == e.remote {
			pm.known[i].failed = true
		}
	}
	return false
}

// lastResort lets every address be tried again that there ever was, because the last subflow is gone: what the peer took back or could not be
// reached may be there again, and nobody can say so.
func (pm *pathManager) lastResort(now clock.Time) {
	c := pm.conn
	if !c.hs.confirmed || c.hs.noJoins || c.hs.plain {
		return
	}
	pm.initialGone = false
	for i := range pm.known {
		pm.tryAgain(now, pm.known[i].addr)
	}
	for _, p := range c.stack.paths {
		pm.take(now, p)
	}
	pm.useAnnounced(now)
}

// silenceAddresses stops all announcements, echoes and removals: options are not sent any more, or there is nobody to send them.
func (pm *pathManager) silenceAddresses() {
	pm.ours = announcements{at: clock.Never}
	pm.echoes, pm.removing, pm.known = nil, nil, nil
	for _, sf := range pm.conn.subflows {
		sf.data.addrDue, sf.data.removeDue = false, false
	}
}

// subflowLeft forgets what a subflow was to carry.
func (pm *pathManager) subflowLeft(now clock.Time, sf *Subflow) {
	before := len(pm.echoes)
	pm.echoes = slices.DeleteFunc(pm.echoes, func(e pendingEcho) bool { return e.sf == sf })
	pm.conn.stack.counters.AddAddrEchoesLost += int64(before - len(pm.echoes))
	if pm.ours.carrier == sf {
		pm.ours.carrier = nil
		pm.ours.at = now // on another one
	}
	pm.removalLeft()
}
