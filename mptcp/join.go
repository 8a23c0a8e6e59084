package mptcp

import (
	"time"

	"braid/clock"
	"braid/tcp"
	"braid/wire"
)

// joinState is the MP_JOIN or MP_CAPABLE handshake of one subflow that we opened.
type joinState struct {
	key                     wire.Key // racing initial subflow: its own key
	token                   uint32   // ... and the key's token
	localNonce, remoteNonce uint32
	mac                     [20]byte   // of the third ACK that we send
	ackAt                   clock.Time // when the third ACK is sent again; clock.Never if not
	ackTries                uint8
	syns                    uint8 // SYNs sent
	keysSent                bool  // MP_CAPABLE with the keys was sent at least once
	plain                   bool  // SYNs go without MPTCP options
	gaveUp                  bool  // ... because those with them were not answered
	failed                  bool  // counted as failed
}

// synRetries lets TCP try for longer than a Dial lasts or the path manager waits: they decide.
const synRetries = 20

// The third ACK of MP_JOIN is sent again until it is acknowledged (RFC 8684, Section 3.2).
const (
	joinAckFirst = 200 * time.Millisecond // at least; more than one RTT
	joinAckTries = 6
)

// openJoin opens a further subflow over p to remote (RFC 8684, Section 3.2).
func (s *Stack) openJoin(now clock.Time, c *Conn, r route) *Subflow {
	sf := s.newSubflow(now, c, r, synSent)
	sf.localID = c.pm.addressID(r.path)
	sf.join.localNonce = s.entropy32()
	s.connect(now, sf)
	s.counters.JoinsSent++
	return sf
}

// fillJoinSYN adds the SYN form of MP_JOIN.
func (sf *Subflow) fillJoinSYN(seg *wire.Segment) {
	seg.Options |= wire.OptMPJoin
	seg.Join = wire.MPJoin{
		Form: wire.JoinSYN, Backup: sf.backupLocal, AddressID: sf.localID,
		Token: sf.conn.hs.peerToken, Nonce: sf.join.localNonce,
	}
}

// joinAnswered checks the SYN/ACK of a join. Without MP_JOIN, or with a wrong HMAC, the subflow is reset (RFC 8684, Section 3.2).
func (s *Stack) joinAnswered(now clock.Time, sf *Subflow, seg *wire.Segment) {
	hs, j := &sf.conn.hs, &seg.Join
	if !seg.Has(wire.OptMPJoin) || seg.Has(wire.OptMPCapable) || j.Form != wire.JoinSYNACK {
		s.joinFailed(sf)
		s.drop(now, sf, wire.ResetMPTCP, false)
		return
	}
	want := wire.JoinMAC(hs.peerKey, hs.localKey, j.Nonce, sf.join.localNonce)
	if !wire.MACEqual(want[:8], j.MAC[:8]) {
		s.joinFailed(sf)
		s.counters.JoinBadMAC++
		s.counters.JoinSYNACKsBadMAC++
		s.drop(now, sf, wire.ResetMPTCP, false)
		return
	}
	s.counters.JoinSYNACKsReceived++
	if j.Backup {
		s.counters.JoinSYNACKsBackup++
	}
	sf.join.remoteNonce = j.Nonce
	sf.remoteID, sf.backupPeer = j.AddressID, j.Backup
	mac := wire.JoinMAC(hs.localKey, hs.peerKey, sf.join.localNonce, j.Nonce)
	sf.join.mac = [20]byte(mac[:])
	sf.setState(preEstablished)
	sf.tcp.RequestAck(now)
}

// joinFailed counts a join of ours that was never answered, or not as it should.
func (s *Stack) joinFailed(sf *Subflow) {
	s.counters.JoinsSentFailed++
	sf.join.failed = true
}

// fillJoinACK adds the ACK form of MP_JOIN: the third ACK and its repetitions.
func (sf *Subflow) fillJoinACK(now clock.Time, seg *wire.Segment) {
	if seg.OptionsLen()+wire.MPJoinACKLen > wire.MaxOptionsLen {
		seg.Options &^= wire.OptSACK
	}
	seg.Options |= wire.OptMPJoin
	seg.Join = wire.MPJoin{Form: wire.JoinACK, MAC: sf.join.mac}
	wait := max(joinAckFirst, 2*sf.tcp.SRTT())
	sf.join.ackAt = now.Add(wait << min(sf.join.ackTries, joinAckTries))
}

// expireJoins repeats third ACKs that were not acknowledged, and gives up in the end.
func (c *Conn) expireJoins(now clock.Time) {
	for i := len(c.subflows) - 1; i >= 0; i-- {
		if i >= len(c.subflows) {
			continue
		}
		sf := c.subflows[i]
		if sf.state != preEstablished || sf.join.ackAt > now {
			continue
		}
		if sf.join.ackTries++; sf.join.ackTries > joinAckTries {
			c.stack.joinFailed(sf)
			c.stack.drop(now, sf, wire.ResetPerformance, true)
			continue
		}
		sf.join.ackAt = clock.Never // fillJoinACK sets it again when the ACK leaves
		sf.tcp.RequestAck(now)
	}
}

// handleJoinSYN takes the SYN of a join. It is matched by its token alone, whether or not anything listens on its port. What cannot be
// accepted is reset; it never becomes plain TCP (RFC 8684, Section 3.2).
func (s *Stack) handleJoinSYN(now clock.Time, key tuple, r *route, size int) {
	seg := &s.in
	s.counters.JoinsReceived++
	if seg.Join.Backup {
		s.counters.JoinSYNsBackup++
	}
	c := s.tokens[seg.Join.Token]
	switch {
	case c == nil || !c.hs.registered || !c.hs.established:
		s.counters.JoinUnknownToken++
		s.refuseJoin(now, r, seg, wire.ResetMPTCP, false)
		return
	case c.hs.noJoins || c.hs.plain || s.cfg.NoJoinInitial && s.initialTarget(c, r):
		s.counters.JoinRefusedState++
		s.refuseJoin(now, r, seg, wire.ResetProhibited, false)
		return
	case len(c.subflows) >= s.cfg.MaxSubflows && c.outdatedBy(r.path, seg.Join.AddressID) == nil:
		s.counters.JoinRefusedMax++
		s.refuseJoin(now, r, seg, wire.ResetProhibited, true)
		return
	case s.joining >= maxJoining:
		s.counters.JoinRefusedMax++
		s.refuseJoin(now, r, seg, wire.ResetResources, true)
		return
	}
	h := s.newHalfOpen(now, key, r, size)
	h.conn = c
	h.remoteNonce, h.remoteID, h.backupPeer = seg.Join.Nonce, seg.Join.AddressID, seg.Join.Backup
	h.localNonce = s.entropy32()
	s.joining++
	c.pm.joins.add(h, s.cfg.Backlog)
	h.answer()
}

// initialTarget reports whether a join goes to the address and port that the connection's initial subflow used.
func (s *Stack) initialTarget(c *Conn, r *route) bool {
	return r.path == c.pm.initialPath && r.srcPort == c.pm.initialPort
}

// joinSYNACK returns the SYN/ACK form of MP_JOIN.
func (h *halfOpen) joinSYNACK() wire.MPJoin {
	hs := &h.conn.hs
	mac := wire.JoinMAC(hs.localKey, hs.peerKey, h.localNonce, h.remoteNonce)
	o := wire.MPJoin{Form: wire.JoinSYNACK, AddressID: h.conn.pm.addressID(h.path), Nonce: h.localNonce}
	copy(o.MAC[:8], mac[:8])
	if p := h.stack.livePath(h.path); p != nil {
		o.Backup = p.Backup
	}
	return o
}

// completeJoin takes the third packet of a join. Without MP_JOIN or with a wrong HMAC it is reset (RFC 8684, Section 3.2).
func (h *halfOpen) completeJoin(now clock.Time, seg *wire.Segment) {
	s, c := h.stack, h.conn
	hs := &c.hs
	want := wire.JoinMAC(hs.peerKey, hs.localKey, h.remoteNonce, h.localNonce)
	switch {
	case !seg.Has(wire.OptMPJoin) || seg.Join.Form != wire.JoinACK || !wire.MACEqual(want[:20], seg.Join.MAC[:]):
		s.counters.JoinBadMAC++
		s.refuseJoin(now, &h.route, seg, wire.ResetMPTCP, false)
		h.close()
		return
	case hs.noJoins || hs.plain:
		s.counters.JoinRefusedState++
		s.refuseJoin(now, &h.route, seg, wire.ResetProhibited, false)
		h.close()
		return
	case len(c.subflows) >= s.cfg.MaxSubflows:
		old := c.outdatedBy(h.path, h.remoteID)
		if old == nil {
			s.counters.JoinRefusedMax++
			s.refuseJoin(now, &h.route, seg, wire.ResetProhibited, true)
			h.close()
			return
		}
		s.drop(now, old, wire.ResetPerformance, true)
	}
	sf, res := h.establish(now, c, seg)
	if sf == nil {
		return
	}
	sf.localID, sf.remoteID, sf.backupPeer = c.pm.addressID(h.path), h.remoteID, h.backupPeer
	s.counters.JoinsReceivedUp++
	// RFC 8684, Section 3.2: the third ACK is acknowledged at once, so that the initiator may send.
	sf.tcp.RequestAck(now)
	s.activate(now, sf)
	if sf.up() {
		c.handleSegment(now, sf, seg, res)
	}
	s.wake(c)
	s.rearm(c)
}

// outdatedBy returns the subflow that a new one between the same addresses of ours and the peer's may replace: of those the one that was heard
// least recently; nil if there is none. A peer whose NAT forgets would otherwise be locked out by subflows that are dead and not yet
// known to be.
func (c *Conn) outdatedBy(path PathID, remoteID uint8) *Subflow {
	var oldest *Subflow
	for _, sf := range c.subflows {
		if sf.up() && sf.path == path && sf.remoteID == remoteID && (oldest == nil || sf.tcp.LastHeard() < oldest.tcp.LastHeard()) {
			oldest = sf
		}
	}
	return oldest
}

// connect opens the TCP of a subflow whose first packet is ours.
func (s *Stack) connect(now clock.Time, sf *Subflow) {
	sf.iss = s.iss(now, &sf.route)
	cfg := s.tcpConfig(&sf.route)
	cfg.TimestampOffset = uint32(s.cfg.Entropy())
	cfg.SYNRetries = synRetries
	s.configure(sf, &cfg)
	sf.tcp = tcp.Dial(now, cfg)
	s.wake(sf.conn)
	s.rearm(sf.conn)
}
