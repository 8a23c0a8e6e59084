package mptcp

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"braid/clock"
	"braid/seq"
	"braid/wire"
)

// SYN cookies (RFC 4987, Section 3.6): while the backlog of a listener is full, a SYN is answered without keeping anything. What has to
// be known later stands in the numbers of the SYN/ACK, which the third packet brings back: the initial sequence number
// proves that the SYN/ACK was ours and holds the MSS; the timestamp holds window scale and SACK; and our key follows from both, so that
// the two keys in the third packet rebuild an MPTCP connection (RFC 8684, Section 3.1: a listener may be stateless).
//
// An initial sequence number is, from the top: 2 bits of time, 3 of MSS, 3 that make the token usable, 24 of proof.
// UDP paths have no cookies: nothing in the third packet names the peer's flow tag.
type cookieJar struct {
	secret [32]byte
	until  clock.Time // cookies may still come back until then
}

const (
	cookieSlot = 64 * time.Second // one value of the time bits; the current and the last one are good
	cookieTS   = 63               // bits of the timestamp that hold options
	cookieSACK = 1 << 4
	noScale    = 15 // window scale bits: the option was not there
)

// cookieMSS are the segment sizes that a cookie can name: the largest that is not above the peer's.
var cookieMSS = [8]uint16{216, 536, 1220, 1360, 1440, 1460, 4312, 8960}

// newCookieJar draws the secret.
func newCookieJar(entropy func() uint64) cookieJar {
	var j cookieJar
	for i := range 4 {
		binary.BigEndian.PutUint64(j.secret[8*i:], entropy())
	}
	return j
}

// digest returns the keyed hash of what a cookie is about.
func (j *cookieJar) digest(purpose byte, key *tuple, a, b uint32) [32]byte {
	var m [32 + 1 + 32 + 4 + 8 + 8]byte
	copy(m[:], j.secret[:])
	m[32] = purpose
	copy(m[33:], key.src[:])
	copy(m[49:], key.dst[:])
	binary.BigEndian.PutUint32(m[65:], key.ports)
	binary.BigEndian.PutUint64(m[69:], key.extra)
	binary.BigEndian.PutUint32(m[77:], a)
	binary.BigEndian.PutUint32(m[81:], b)
	return sha256.Sum256(m[:])
}

// iss returns the initial sequence number whose upper eight bits are given.
func (j *cookieJar) iss(key *tuple, irs seq.Number, top uint32) seq.Number {
	d := j.digest('s', key, uint32(irs), top)
	return seq.Number(top<<24 | binary.BigEndian.Uint32(d[:])>>8)
}

// key returns our key for a connection with that initial sequence number.
func (j *cookieJar) key(key *tuple, iss seq.Number) wire.Key {
	d := j.digest('k', key, uint32(iss), 0)
	return wire.Key(d[:8])
}

// offset returns the start of the timestamp clock for a connection.
func (j *cookieJar) offset(key *tuple) uint32 {
	d := j.digest('t', key, 0, 0)
	return binary.BigEndian.Uint32(d[:])
}

func milliseconds(t clock.Time) uint32 { return uint32(uint64(t) / uint64(time.Millisecond)) }

func slot(now clock.Time) uint32 { return uint32(uint64(now)/uint64(cookieSlot)) & 3 }

// answerStateless answers the SYN in s.in with a cookie.
func (s *Stack) answerStateless(now clock.Time, key tuple, r *route) {
	j, seg := &s.cookies, &s.in
	b := s.control.next()
	if b == nil {
		s.counters.SYNsDropped++
		return
	}
	h := &halfOpen{stack: s, route: *r, key: key, stateless: true}
	h.syn.read(seg)
	mss := uint32(len(cookieMSS) - 1)
	for mss > 0 && (seg.Options&wire.OptMSS == 0 || cookieMSS[mss] > seg.MSS) && (seg.Options&wire.OptMSS != 0 || mss > 1) {
		mss--
	}
	h.syn.options |= wire.OptMSS
	h.syn.mss = cookieMSS[mss]
	top := slot(now)<<6 | mss<<3
	h.iss = j.iss(&key, seg.Seq, top)
	if s.offered(seg) {
		usable := false
		for n := uint32(0); n < 8 && !usable; n++ {
			h.iss = j.iss(&key, seg.Seq, top|n)
			h.localKey = j.key(&key, h.iss)
			usable = s.usableToken(h.localKey.Token())
		}
		if !usable {
			s.counters.SYNsDropped++
			return
		}
		h.mptcp, h.peerChecksums = true, seg.Capable.Checksums
	}
	if seg.Options&wire.OptTimestamps == 0 {
		h.syn.options &= wire.OptMSS
	} else {
		bits := uint32(noScale)
		if seg.Options&wire.OptWindowScale != 0 {
			bits = min(uint32(seg.WindowScale), 14)
		}
		if seg.Options&wire.OptSACKPermitted != 0 {
			bits |= cookieSACK
		}
		ms := milliseconds(now)
		h.timestampOffset = ((ms+j.offset(&key))&^cookieTS | bits) - ms
	}
	s.control.add(h.synAck(now, b))
	s.counters.CookiesSent++
	j.until = now.Add(2 * cookieSlot)
}

// fromCookie rebuilds the half-open handshake that the segment in s.in completes; nil if it brings no cookie of ours.
func (s *Stack) fromCookie(now clock.Time, key tuple, r *route) *halfOpen {
	j, seg := &s.cookies, &s.in
	if now >= j.until || r.kind != IP || seg.Flags&(wire.SYN|wire.ACK|wire.RST) != wire.ACK {
		return nil
	}
	l := s.listenerFor(r.local.Addr(), seg.DstPort)
	if l == nil {
		return nil
	}
	iss, irs := seg.Ack-1, seg.Seq-1
	top := uint32(iss) >> 24
	if age := (slot(now) - top>>6) & 3; age > 1 || j.iss(&key, irs, top) != iss {
		return nil
	}
	h := &halfOpen{stack: s, listener: l, route: *r, key: key, stateless: true, iss: iss, born: now, sent: 1, strikes: maxStrikes}
	h.syn = synRecord{seq: irs, window: seg.Window, options: wire.OptMSS, mss: cookieMSS[top>>3&7]}
	if seg.Options&wire.OptTimestamps != 0 && !h.readTimestamp(now, seg, j.offset(&key)) {
		return nil
	}
	h.localKey = j.key(&key, iss)
	if h.token = h.localKey.Token(); keysOf(seg, h.localKey) {
		if s.cfg.NoMPTCP || !s.usableToken(h.token) {
			return nil
		}
		h.mptcp = true
		h.peerChecksums, h.peerNoJoin = seg.Capable.Checksums, seg.Capable.NoJoin
	}
	s.counters.CookiesReturned++
	return h
}

// refuseCookieless resets the segment in s.in, which belongs to no connection and brings no cookie, unless it belongs to a connection that a cookie of
// ours may still open: when a peer's first flight is lost, something behind it comes first. The timestamp that it echoes tells. A RST would end that
// connection, while its first byte comes again and brings the cookie.
func (s *Stack) refuseCookieless(now clock.Time, key tuple, r *route) {
	j, seg := &s.cookies, &s.in
	if now < j.until && r.kind == IP && seg.Flags&(wire.SYN|wire.ACK|wire.RST) == wire.ACK && seg.Options&wire.OptTimestamps != 0 &&
		s.listenerFor(r.local.Addr(), seg.DstPort) != nil && cookieAge(now, seg.TSEcr, j.offset(&key)) <= 2*cookieSlot {
		s.counters.DropHalfOpen++
		return
	}
	s.refuse(now, r, seg)
}

// cookieAge is how long ago, at most 63 ms too long, a SYN/ACK had that timestamp.
func cookieAge(now clock.Time, ts, offset uint32) time.Duration {
	return time.Duration(milliseconds(now)-(ts&^cookieTS-offset)) * time.Millisecond
}

// readTimestamp reads what the echoed timestamp holds, and from it the time of the SYN/ACK, at most 63 ms too early.
func (h *halfOpen) readTimestamp(now clock.Time, seg *wire.Segment, offset uint32) bool {
	age := cookieAge(now, seg.TSEcr, offset)
	if age > 2*cookieSlot {
		return false
	}
	h.born = now.Add(-age)
	h.timestampOffset = seg.TSEcr - milliseconds(h.born)
	h.syn.options |= wire.OptTimestamps
	h.syn.tsVal = seg.TSVal
	if scale := uint8(seg.TSEcr & 15); scale != noScale {
		h.syn.options |= wire.OptWindowScale
		h.syn.windowScale = scale
	}
	if seg.TSEcr&cookieSACK != 0 {
		h.syn.options |= wire.OptSACKPermitted
	}
	return true
}
