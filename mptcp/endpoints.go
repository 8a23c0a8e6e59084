package mptcp

import (
	"net/netip"
	"strings"

	"braid/clock"
)

// EndpointFlags say what connections do with a path beside using it when they are dialled, under the names that "ip mptcp endpoint"
// gives them. Without any but EndpointBackup a path is EndpointSubflow for connections that this host opened, and EndpointSignal for those
// that it accepted, unless Config.NoAnnounce is set.
type EndpointFlags uint8

// The flags.
const (
	// EndpointSubflow opens a subflow over the path to the address that the connection was opened to, and makes the path a
	// candidate for addresses that the peer announces.
	EndpointSubflow EndpointFlags = 1 << iota
	// EndpointSignal announces the path's address to the peer (RFC 8684, Section 3.4.1).
	EndpointSignal
	// EndpointBackup asks the peer to use subflows over the path last (RFC 8684, Sections 3.2 and 3.3.8). It is the same as Path.Backup.
	EndpointBackup
	// EndpointFullmesh is EndpointSubflow, with a subflow to every address of the peer's that is known.
	EndpointFullmesh
)

// String lists the flags as "ip mptcp endpoint" does, separated by spaces.
func (f EndpointFlags) String() string {
	var names []string
	for i, name := range [...]string{"subflow", "signal", "backup", "fullmesh"} {
		if f&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// Limits bound what path management adds to a connection, as "ip mptcp limits" does.
type Limits struct {
	// Subflows is how many subflows a connection may have beside one, whoever opened them. 0: as many as Config.MaxSubflows
	// allows; negative: none.
	Subflows int
	// AddAddrAccepted is how many announced addresses of the peer's a connection keeps and opens subflows to; further ones are
	// echoed and not used. 0: 8 if this host opened the connection, else none; negative: none; at most 64.
	AddAddrAccepted int
}

const (
	defaultAccepted = 8
	maxAccepted     = 64
	maxSubflows     = 100 // address IDs are 8 bits, and silent subflows do not count (see room)
)

// subflows returns the most subflows of a connection, given Config.MaxSubflows.
func (l Limits) subflows(most int) int {
	switch {
	case l.Subflows < 0:
		most = 1
	case l.Subflows > 0:
		most = min(most, l.Subflows+1)
	}
	return min(most, maxSubflows)
}

// accepted returns how many announced addresses are kept.
func (l Limits) accepted(client bool) int {
	switch {
	case l.AddAddrAccepted > 0:
		return min(l.AddAddrAccepted, maxAccepted)
	case l.AddAddrAccepted == 0 && client:
		return defaultAccepted
	}
	return 0
}

// opens reports whether subflows are opened over the path. The host that opened the connection normally does (RFC 8684, Section 3.9.2).
func (p *path) opens(client bool) bool {
	if f := p.Flags &^ EndpointBackup; f != 0 {
		return f&(EndpointSubflow|EndpointFullmesh) != 0
	}
	return client
}

// SetPathFlags changes the flags of a path. Subflows over it learn of EndpointBackup by MP_PRIO (RFC 8684, Section 3.3.8); new
// EndpointSignal, EndpointSubflow and EndpointFullmesh are acted on in all connections. What was opened or announced under a flag that
// is taken away stays until RemovePath. It reports whether there is such a path.
func (s *Stack) SetPathFlags(now clock.Time, id PathID, flags EndpointFlags) bool {
	p := s.livePath(id)
	if p == nil {
		return false
	}
	changed := p.Backup != (flags&EndpointBackup != 0)
	p.Flags, p.Backup = flags, flags&EndpointBackup != 0
	for _, c := range s.conns {
		for _, sf := range c.subflows {
			if changed && sf.path == id {
				c.SetPriority(now, sf.id, p.Backup)
			}
		}
		if c.race == nil {
			c.pm.pathAdded(now, p)
		}
		s.rearm(c)
		s.wake(c)
	}
	return true
}

// scope says how far an address reaches.
type scope uint8

const (
	scopeNone     scope = iota // nothing that a subflow can be opened to
	scopeLoopback              // this host
	scopePrivate               // a site: another host may have the same address elsewhere
	scopeGlobal
)

// scopeOf returns the scope of an address of a peer's. Link-local ones mean nothing without a zone, which ADD_ADDR does not carry.
func scopeOf(a netip.Addr) scope {
	switch {
	case !a.IsValid(), a.IsUnspecified(), a.IsMulticast(), a.IsLinkLocalUnicast():
		return scopeNone
	case a.IsLoopback():
		return scopeLoopback
	case a.Is4():
		b := a.As4()
		switch {
		case b[0] == 0, b[0] >= 240: // RFC 1122, Section 3.2.1.3: this network; reserved and broadcast
			return scopeNone
		case b[0] == 100 && b[1]&0xc0 == 64: // RFC 6598: a provider's own
			return scopePrivate
		}
	}
	if a.IsPrivate() {
		return scopePrivate
	}
	return scopeGlobal
}

// connScope is the scope of an address that a connection goes over: a link-local one is a site's.
func connScope(a netip.Addr) scope {
	if s := scopeOf(a); s != scopeNone {
		return s
	}
	if a.IsLinkLocalUnicast() {
		return scopePrivate
	}
	return scopeGlobal
}

// ownAddress reports whether a path of this host's has an address.
func (s *Stack) ownAddress(a netip.Addr) bool {
	for _, p := range s.paths {
		if !p.removed && p.Local.Addr() == a {
			return true
		}
	}
	return false
}

// acceptable reports whether a subflow may be opened to an announced address. One that reaches less far than the one that the
// connection was opened to would lead to whoever has it here, and one of this host's own to itself, unless the peer is on this host
// (RFC 8684, Sections 3.4.1 and 5: a HMAC proves who announced it, not whose it is).
func (pm *pathManager) acceptable(a netip.AddrPort) bool {
	far := scopeOf(a.Addr())
	peer := pm.target.Addr()
	if far == scopeNone || a.Port() == 0 || far < connScope(peer) {
		return false
	}
	s := pm.conn.stack
	return !s.ownAddress(a.Addr()) || peer.IsLoopback() || s.ownAddress(peer)
}

// announces reports whether the address of a path is announced: by flag, or by default in a connection that was accepted, if it
// differs from the one that the peer came to and reaches as far.
func (pm *pathManager) announces(p *path) bool {
	c := pm.conn
	local := p.Local.Addr()
	if p.removed || p.id == pm.initialPath || p.Kind != pm.initialKind || scopeOf(local) == scopeNone {
		return false
	}
	if f := p.Flags &^ EndpointBackup; f != 0 {
		return f&EndpointSignal != 0
	}
	if c.client || c.stack.cfg.NoAnnounce {
		return false
	}
	here := pm.initialLocal.Addr()
	if c.stack.livePath(pm.initialPath) != nil && (p.Local == pm.initialLocal || p.Kind == IP && local == here) {
		return false
	}
	if !here.IsValid() || here.IsUnspecified() { // a socket at all addresses: the peer's tells how far the one that it came to reaches
		here = pm.initialRemote.Addr()
	}
	return scopeOf(local) >= connScope(here)
}

// reachesAnnounced reports whether an announced address can be reached over a path.
func (pm *pathManager) reachesAnnounced(p *path, a netip.AddrPort) bool {
	f := p.Flags &^ EndpointBackup
	if p.removed || p.Kind != pm.initialKind || f != 0 && f&(EndpointSubflow|EndpointFullmesh) == 0 || p.Remote.IsValid() && p.Remote != a {
		return false
	}
	_, ok := p.reaches(a)
	return ok
}

// sameNet reports whether two addresses look like neighbours: in one /24 or /64.
func sameNet(a, b netip.Addr) bool {
	bits := 64
	if a.Is4() {
		bits = 24
	}
	p, err := a.Prefix(bits)
	return err == nil && p.Contains(b)
}

// bestFor returns the path that fits an announced address best: a regular path before a backup, a neighbour of the address, then
// the one on which the fewest subflows are wanted, then the oldest. Nil if no path reaches it.
func (pm *pathManager) bestFor(a netip.AddrPort) *path {
	var best *path
	var least int
	for _, p := range pm.conn.stack.paths {
		if !pm.reachesAnnounced(p, a) {
			continue
		}
		cost := 0
		for i := range pm.entries {
			if e := &pm.entries[i]; e.path == p.id && !e.failed {
				cost++
			}
		}
		if !sameNet(p.Local.Addr(), a.Addr()) {
			cost += 1 << 10
		}
		if p.Backup {
			cost += 1 << 20
		}
		if best == nil || cost < least {
			best, least = p, cost
		}
	}
	return best
}
