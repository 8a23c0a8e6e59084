package mptcp

import (
	"braid/clock"
	"braid/seq"
	"braid/tcp"
	"braid/wire"
)

// FallbackReason says why a connection is plain TCP.
type FallbackReason uint8

// The reasons.
const (
	NoFallback          FallbackReason = iota // MPTCP
	FallbackConfigured                        // Config.NoMPTCP, or this path is remembered to lose SYNs with MPTCP's options
	FallbackNotOffered                        // the peer's SYN had no usable MP_CAPABLE
	FallbackNotAnswered                       // the SYN/ACK had no usable MP_CAPABLE
	FallbackSYN                               // SYNs with MP_CAPABLE were not answered, one without was
	FallbackThirdPacket                       // the third packet of the handshake had no usable MP_CAPABLE
	FallbackNoMapping                         // data came without a mapping
	FallbackNoDataAck                         // data was acknowledged without a DATA_ACK
	FallbackChecksum                          // a DSS checksum failed on the only subflow
	FallbackPeer                              // the peer sent MP_FAIL or an infinite mapping
)

// handshake is what the handshakes of a connection agreed on.
type handshake struct {
	localKey, peerKey     wire.Key
	localToken, peerToken uint32
	localIDSN, peerIDSN   seq.Data
	checksums             bool // DSS checksums in both directions
	peerNoJoin            bool // the peer sent flag C: no joins to the initial address
	established           bool // the first subflow completed its handshake
	confirmed             bool // the peer gave data-level proof of MPTCP (a DATA_ACK or a mapping); set by pathManager.confirmed
	plain                 bool // plain TCP: no options are sent or believed any more; set by Conn.setFallback
	noJoins               bool // no join is accepted or started any more: the connection ends or fell back
	registered            bool // localToken is in the token table
}

// setLocal sets our key and what follows from it.
func (hs *handshake) setLocal(key wire.Key, token uint32) {
	hs.localKey, hs.localToken, hs.localIDSN = key, token, key.IDSN()
}

// setPeer sets the peer's key and what follows from it.
func (hs *handshake) setPeer(key wire.Key) {
	hs.peerKey, hs.peerToken, hs.peerIDSN = key, key.Token(), key.IDSN()
}

// offerable reports whether an MP_CAPABLE in a SYN is one that we can answer: our version (RFC 8684, Section 3.1: otherwise the listener
// may answer without the option), no extensibility flag (B: to be ignored then), and HMAC-SHA256 among the algorithms.
func offerable(c *wire.MPCapable) bool {
	return c.Version == wire.Version && !c.Extensibility && c.HMACSHA256
}

// answers reports whether an MP_CAPABLE in a SYN/ACK answers ours: our version, and exactly the algorithm that we offered
// (RFC 8684, Section 3.1).
func answers(c *wire.MPCapable) bool {
	return offerable(c) && c.OtherFlags == 0 && c.Keys == 1
}

// capable returns an MP_CAPABLE of ours without keys.
func (s *Stack) capable(checksums bool) wire.MPCapable {
	return wire.MPCapable{Version: wire.Version, Checksums: checksums, NoJoin: s.cfg.NoJoinInitial, HMACSHA256: true}
}

// fillSYN adds the option of a SYN: MP_CAPABLE on the connection's first subflow, MP_JOIN on others.
func (sf *Subflow) fillSYN(seg *wire.Segment) {
	s := sf.conn.stack
	sf.join.syns++
	switch {
	case !sf.initial:
		sf.fillJoinSYN(seg)
	case sf.join.plain:
	case int(sf.join.syns) > s.cfg.SYNFallback:
		// RFC 8684, Section 3.1: after some SYNs that were not answered, one goes without the option. An answer to an earlier one that comes
		// with MP_CAPABLE nevertheless is not believed any more (a host that did not offer it ignores it).
		sf.join.plain, sf.join.gaveUp = true, true
	default:
		seg.Options |= wire.OptMPCapable
		seg.Capable = s.capable(s.cfg.Checksums)
		s.counters.CapableSYNsSent++
	}
}

// needsKeys reports whether the subflow still has to tell the peer the keys (RFC 8684, Section 3.1): on ACKs without data, and in place of
// the DSS on the connection's first data. Reserve 24 option bytes for it.
func (sf *Subflow) needsKeys() bool {
	hs := &sf.conn.hs
	return sf.initial && sf.conn.client && hs.established && !hs.confirmed && !hs.plain
}

// fillKeys adds MP_CAPABLE with both keys to the third ACK and its repetitions, and with a data length to the first data. Later data
// uses DSS (RFC 8684, Section 3.1), and so does an ACK with a DATA_FIN.
func (sf *Subflow) fillKeys(now clock.Time, seg *wire.Segment, out *tcp.Out) bool {
	c := sf.conn
	o := c.stack.capable(c.hs.checksums)
	o.Keys, o.Sender, o.Receiver = 2, c.hs.localKey, c.hs.peerKey
	switch {
	case out.Len > 0:
		if out.Chunk.ID != 1 || out.Chunk.Start != 1 { // sent again at data level, the first data is no longer the subflow's first: DSS says where it is
			return false
		}
		o.HasData, o.DataLength = true, uint16(out.Chunk.Len)
		if c.hs.checksums {
			o.HasChecksum, o.Checksum = true, c.mappingChecksum(out.Chunk.ID, out.Chunk.Start, out.Chunk.Len)
		}
	case sf.join.keysSent && (seg.Flags&wire.FIN != 0 || sf.data.finDue || sf.data.addrDue):
		return false
	case sf.data.finDue:
		sf.tcp.RequestAck(now) // the DATA_FIN follows in an ACK of its own
	}
	sf.join.keysSent = true
	if seg.Options&wire.OptSACK != 0 && seg.OptionsLen()+wire.MPCapableLen(2, o.HasData, o.HasChecksum) > wire.MaxOptionsLen {
		seg.Options &^= wire.OptSACK
	}
	seg.Options |= wire.OptMPCapable
	seg.Capable = o
	return true
}

// deliverOpening takes a segment of a subflow whose SYN we sent.
func (s *Stack) deliverOpening(now clock.Time, sf *Subflow, seg *wire.Segment) {
	res := sf.tcp.HandleSegment(now, seg)
	if res.Acceptable && seg.Has(wire.OptMPTCPReset) {
		s.handshakeOptions(now, sf, seg)
	}
	switch {
	case !res.Established:
		sf.checkClosed(now)
	case sf.initial:
		sf.irs = seg.Seq
		s.raceWon(now, sf, seg, res)
	default:
		sf.irs = seg.Seq
		s.joinAnswered(now, sf, seg)
	}
}

// raceWon makes the subflow that was answered first the connection's initial one. Its SYN/ACK says whether the connection is MPTCP
// (RFC 8684, Sections 3.1 and 3.7).
func (s *Stack) raceWon(now clock.Time, sf *Subflow, seg *wire.Segment, res tcp.Result) {
	c := sf.conn
	r := c.race
	c.race = nil
	for i := len(c.subflows) - 1; i >= 0; i-- {
		if other := c.subflows[i]; other != sf {
			s.counters.RacersAborted++
			s.abandonRacer(now, other)
		}
	}
	both := seg.Has(wire.OptMPCapable | wire.OptMPJoin)
	synack := seg.Flags.Has(wire.SYN | wire.ACK)
	reason := NoFallback
	switch {
	case sf.join.gaveUp:
		reason = FallbackSYN
		s.counters.FallbackSYN++
	case sf.join.plain:
		reason = FallbackConfigured
	case !synack || both || !seg.Has(wire.OptMPCapable) || !answers(&seg.Capable):
		reason = FallbackNotAnswered
		s.counters.FallbackNotAnswered++
	}
	target := r.target(sf)
	s.known.remember(now, target, sf.path, reason)
	if reason != NoFallback {
		s.loseKey(sf)
		s.plain(now, c, reason)
	} else {
		s.counters.CapableSYNACKsReceived++
		c.hs.setLocal(sf.join.key, sf.join.token)
		sf.join.token = 0 // the connection's from now on
		c.hs.setPeer(seg.Capable.Sender)
		// RFC 8684, Section 3.1: checksums are used if either side asks for them.
		c.hs.checksums = s.cfg.Checksums || seg.Capable.Checksums
		c.hs.peerNoJoin = seg.Capable.NoJoin
		s.register(c)
	}
	c.hs.established = true
	c.pm.begin(now, sf, target)
	s.counters.DialsConnected++
	c.established(now)
	s.emit(Event{Kind: EventConnected, Conn: c})
	s.activate(now, sf)
	if !synack && sf.up() { // a simultaneous open ends with an ACK, which may carry data
		c.handleSegment(now, sf, seg, res)
	}
}

// keysOf reports whether the third packet of a handshake proves MPTCP: MP_CAPABLE with both keys, ours being the one that was
// sent in the SYN/ACK (RFC 8684, Section 3.1).
func keysOf(seg *wire.Segment, local wire.Key) bool {
	return seg.Has(wire.OptMPCapable) && !seg.Has(wire.OptMPJoin) && seg.Capable.Version == wire.Version && !seg.Capable.Extensibility &&
		seg.Capable.Keys == 2 && wire.MACEqual(seg.Capable.Receiver[:], local[:])
}
