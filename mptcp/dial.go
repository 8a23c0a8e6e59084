package mptcp

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"braid/clock"
	"braid/wire"
)

// Target says where a Dial goes.
type Target struct {
	Remote []netip.AddrPort // the server's addresses, best first
	Paths  []PathID         // the paths to try, best known first; nil: all
}

// race is a Dial that has not come to its end: SYNs to the server's addresses over the paths, a little apart from each other, until
// one is answered. Each has its own key; that of the winner becomes the connection's.
type race struct {
	conn       *Conn
	targets    []netip.AddrPort
	candidates []candidate
	next       int        // index of the candidate to start next
	nextAt     clock.Time // when
	giveUpAt   clock.Time
	running    []racer
	refused    int   // candidates that were refused
	err        error // why the last one failed
}

// candidate is a way to reach the server.
type candidate struct {
	path   PathID
	remote netip.AddrPort
	target netip.AddrPort // the address as dialled, which Path.Remote may have replaced
	plain  bool           // without MP_CAPABLE: such SYNs got lost on this way
}

// racer is a candidate that was started.
type racer struct {
	sf     *Subflow
	target netip.AddrPort
}

// maxRacers bounds the SYNs that are out at the same time.
const maxRacers = 8

// Dial opens a connection. It returns at once: EventConnected or EventClosed tells the outcome. Writing is possible from the start.
// Errors: ErrNoPath, ErrLimit, ErrAddressInUse.
func (s *Stack) Dial(now clock.Time, t Target) (*Conn, error) {
	if len(t.Remote) == 0 {
		return nil, errors.New("mptcp: dial: no address")
	}
	if len(s.conns) >= s.cfg.MaxConns || s.Memory() >= s.cfg.StackMemory {
		return nil, ErrLimit
	}
	r := &race{nextAt: now, giveUpAt: now.Add(s.cfg.DialTimeout)}
	for _, remote := range t.Remote {
		r.targets = append(r.targets, netip.AddrPortFrom(remote.Addr().Unmap(), remote.Port()))
	}
	r.candidates = s.candidates(now, r.targets, t.Paths)
	if len(r.candidates) == 0 {
		return nil, fmt.Errorf("%w (%v)", ErrNoPath, t.Remote[0])
	}
	c := s.newConn(now, true)
	c.visible = true
	c.race, r.conn = r, c
	s.counters.Dials++
	r.goOn(now)
	s.rearm(c)
	return c, nil
}

// candidates returns the ways to the targets: best known first, those where MPTCP's options got lost last.
func (s *Stack) candidates(now clock.Time, targets []netip.AddrPort, ids []PathID) []candidate {
	if ids == nil {
		for _, p := range s.paths {
			ids = append(ids, p.id)
		}
	}
	var ways []candidate
	for _, target := range targets {
		first := len(ways)
		for _, id := range ids {
			p := s.livePath(id)
			if p == nil {
				continue
			}
			remote, ok := p.reaches(target)
			if known := func(w candidate) bool { return w.path == id && w.remote == remote }; ok && !slices.ContainsFunc(ways, known) {
				ways = append(ways, candidate{path: id, remote: remote, target: target, plain: s.cfg.NoMPTCP})
			}
		}
		s.known.order(now, target, ways[first:])
	}
	return ways
}

// reaches returns the address under which target is reached over p, false if it cannot be.
func (p *path) reaches(target netip.AddrPort) (netip.AddrPort, bool) {
	if p.Remote.IsValid() {
		return p.Remote, p.Kind == UDP || p.local.IsValid()
	}
	local := p.Local.Addr()
	switch {
	case !target.IsValid() || target.Port() == 0:
		return target, false
	case p.Kind == UDP && (!local.IsValid() || local.Is6() && local.IsUnspecified()):
		return target, true // a socket of both families
	case p.Kind == IP && !p.local.IsValid():
		return target, false // no address to send from
	}
	return target, target.Addr().Is4() == local.Is4()
}

// startNext sends the next candidate's SYN.
func (r *race) startNext(now clock.Time) {
	s := r.conn.stack
	for r.next < len(r.candidates) && len(r.running) < maxRacers {
		way := r.candidates[r.next]
		r.next++
		r.nextAt = now.Add(s.cfg.RaceDelay)
		p := s.livePath(way.path)
		if p == nil {
			continue
		}
		route, ok := s.newRoute(p, way.remote)
		if !ok {
			r.err = ErrAddressInUse
			continue
		}
		if p.Kind == UDP { // whoever relays the path may do so from another port: the listener's is the one that was dialled
			route.dstPort = way.target.Port()
		}
		sf := s.newSubflow(now, r.conn, route, synSent)
		sf.initial = true
		sf.join.plain = way.plain
		if !way.plain {
			if sf.join.key, sf.join.token, ok = s.newKey(); !ok {
				sf.join.plain = true
			}
		}
		r.running = append(r.running, racer{sf, way.target})
		s.connect(now, sf)
		break
	}
	if r.next == len(r.candidates) || len(r.running) >= maxRacers {
		r.nextAt = clock.Never
	}
}

// newRoute returns a route over p to remote from a port that nothing else uses for it.
func (s *Stack) newRoute(p *path, remote netip.AddrPort) (route, bool) {
	r := route{path: p.id, kind: p.Kind, dstPort: remote.Port(), remote: remote, local: p.Local}
	if p.Kind == UDP {
		r.srcPort = s.ephemeral()
		r.env = envelope{localTag: s.newTag(), to: remote}
		return r, true
	}
	r.pseudo = wire.PseudoSum(p.Local.Addr(), remote.Addr(), wire.ProtoTCP)
	for range 4096 {
		r.srcPort = s.ephemeral()
		r.local = netip.AddrPortFrom(p.Local.Addr(), r.srcPort)
		key := r.tuple()
		if s.tuples[key] == nil && s.remnants.tuples[key] == nil && s.halves[key] == nil {
			return r, true
		}
	}
	return r, false
}

// ephemeral draws a port of the dynamic range (RFC 6335, Section 6; RFC 6056, Section 3.2 asks for as many as possible), or of the
// configuration's row.
func (s *Stack) ephemeral() uint16 {
	if n := s.cfg.PortCount; n > 0 {
		return s.cfg.FirstPort + uint16(s.entropy32()%uint32(n))
	}
	return uint16(32768 + s.entropy32()%(65536-32768-1))
}

// newTag draws a flow tag that is not in use.
func (s *Stack) newTag() uint32 {
	for {
		t := s.entropy32()
		if s.tags[t] == nil && s.halfTags[t] == nil && s.remnants.tags[t] == nil {
			return t
		}
	}
}

// target returns the dialled address that sf goes to.
func (r *race) target(sf *Subflow) netip.AddrPort {
	for _, x := range r.running {
		if x.sf == sf {
			return x.target
		}
	}
	return sf.remote
}

// loseKey gives the key of a subflow back that is not the connection's.
func (s *Stack) loseKey(sf *Subflow) {
	if sf.join.token != 0 {
		s.freeToken(sf.join.token)
		sf.join.token = 0
	}
}

// lost says that a racing subflow is gone: refused, timed out, or its path was removed. The next candidate need not wait any more.
func (r *race) lost(now clock.Time, sf *Subflow, err error) {
	for i, x := range r.running {
		if x.sf == sf {
			r.running = append(r.running[:i], r.running[i+1:]...)
			break
		}
	}
	if errors.Is(err, ErrRefused) || errors.Is(err, ErrReset) {
		r.refused++
		r.err = ErrRefused
	} else if r.err == nil {
		r.err = err
	}
	r.goOn(now)
}

// goOn starts the next candidate, and ends the Dial if none is left.
func (r *race) goOn(now clock.Time) {
	r.startNext(now)
	if len(r.running) == 0 && r.next == len(r.candidates) {
		r.fail(now, r.err)
	}
}

// fail ends the Dial.
func (r *race) fail(now clock.Time, err error) {
	c := r.conn
	c.stack.counters.DialsFailed++
	switch {
	case err == nil:
		err = ErrTimeout
	case errors.Is(err, ErrPathRemoved):
		err = fmt.Errorf("%w: %w", ErrNoPath, err)
	}
	c.end(now, fmt.Errorf("dial %v: %w", r.targets[0], err))
}

// pathAdded makes a new path a candidate.
func (r *race) pathAdded(now clock.Time, p *path) {
	for _, target := range r.targets {
		if remote, ok := p.reaches(target); ok {
			r.candidates = append(r.candidates, candidate{path: p.id, remote: remote, target: target, plain: r.conn.stack.cfg.NoMPTCP})
		}
	}
	if r.nextAt == clock.Never {
		r.nextAt = now
	}
}

// expire starts the next candidate, or gives up.
func (r *race) expire(now clock.Time) {
	switch {
	case now >= r.giveUpAt:
		r.fail(now, ErrTimeout)
	case now >= r.nextAt:
		r.goOn(now)
	}
}

func (r *race) deadline() clock.Time { return min(r.nextAt, r.giveUpAt) }

// abandonRacer takes away a subflow that lost the race. Its peer learns it from the RST that its SYN/ACK will be answered with.
func (s *Stack) abandonRacer(now clock.Time, sf *Subflow) {
	c := sf.conn
	sf.tcp.Abort(now)
	for sf.tcp.PollSegment(now, &s.rstSeg, &s.rstOut, 0, 0) {
	}
	s.retired.Add(sf.tcp)
	sf.setState(gone)
	s.unlink(sf)
	s.loseKey(sf)
	c.removeSubflow(sf)
	c.leaveGroup(sf.id)
}
