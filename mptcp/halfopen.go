package mptcp

import (
	"time"

	"braid/clock"
	"braid/congestion"
	"braid/seq"
	"braid/tcp"
	"braid/wire"
)

// halfOpen is a handshake that somebody else began: MP_CAPABLE or plain TCP at a listener, or MP_JOIN at a connection. It is a few
// hundred bytes and becomes a TCP connection when the third packet proves that the peer's address is real.
type halfOpen struct {
	task
	route
	stack    *Stack
	list     *halfList
	listener *Listener // of a connection
	conn     *Conn     // of a join
	key      tuple

	syn             synRecord
	iss             seq.Number
	timestampOffset uint32

	mptcp         bool // we answer with MP_CAPABLE
	localKey      wire.Key
	token         uint32
	peerChecksums bool
	peerNoJoin    bool

	localNonce, remoteNonce uint32
	remoteID                uint8
	backupPeer              bool

	born      clock.Time
	sent      uint8      // SYN/ACKs
	due       bool       // one is to be sent
	at        clock.Time // when it is sent again
	stateless bool       // rebuilt from a cookie: in no table
	strikes   uint8      // third packets that speak MPTCP but bring no keys
	received  int        // UDP: bytes that came from the address
	answered  int        // UDP: bytes sent to it
	smallest  int        // UDP: the last SYN's size

	prev, nextHalf *halfOpen
}

// synRecord is what has to be kept of a SYN.
type synRecord struct {
	seq         seq.Number
	window      uint16
	mss         uint16
	tsVal       uint32
	windowScale uint8
	options     wire.Option
}

// Options of a SYN that TCP itself looks at.
const synOptions = wire.OptMSS | wire.OptWindowScale | wire.OptSACKPermitted | wire.OptTimestamps

// A SYN/ACK is repeated after 1, 2, 4, ... seconds. A peer that repeats its SYN is answered at once.
const (
	synAckFirst = time.Second
	synAckTries = 6
	maxJoining  = 4096 // half-open joins of a Stack (RFC 8684, Section 5)
	maxStrikes  = 3
)

// halfList is a list of half-open handshakes in order of age.
type halfList struct {
	first, last *halfOpen
	n           int
}

// add puts h at the end. If there are more than limit, the oldest has to go: it had the most time to complete, and a flood of SYNs cannot
// lock others out, only shorten their time.
func (l *halfList) add(h *halfOpen, limit int) {
	for l.n >= max(limit, 1) {
		h.stack.counters.HalfOpenEvicted++
		l.first.close()
	}
	h.list = l
	h.prev = l.last
	if l.last != nil {
		l.last.nextHalf = h
	} else {
		l.first = h
	}
	l.last = h
	l.n++
}

// remove takes h out.
func (l *halfList) remove(h *halfOpen) {
	if h.prev != nil {
		h.prev.nextHalf = h.nextHalf
	} else {
		l.first = h.nextHalf
	}
	if h.nextHalf != nil {
		h.nextHalf.prev = h.prev
	} else {
		l.last = h.prev
	}
	h.prev, h.nextHalf, h.list = nil, nil, nil
	l.n--
}

// newHalfOpen makes a half-open handshake from the SYN in s.in.
func (s *Stack) newHalfOpen(now clock.Time, key tuple, r *route, size int) *halfOpen {
	seg := &s.in
	h := &halfOpen{stack: s, route: *r, key: key, born: now, at: clock.Never, received: size, smallest: size}
	h.syn.read(seg)
	h.iss = s.iss(now, &h.route)
	h.timestampOffset = uint32(s.cfg.Entropy())
	if h.kind == UDP {
		h.env.localTag = s.newTag()
		s.halfTags[h.env.localTag] = h
	}
	s.halves[key] = h
	s.start(&h.task, h)
	return h
}

// close forgets h.
func (h *halfOpen) close() {
	s := h.stack
	if h.mptcp && h.conn == nil {
		s.freeToken(h.token)
	}
	h.unlink()
}

// unlink takes h out of all tables; its token stays reserved.
func (h *halfOpen) unlink() {
	s := h.stack
	if h.dead || h.stateless {
		return
	}
	if s.halves[h.key] == h {
		delete(s.halves, h.key)
	}
	if h.kind == UDP {
		delete(s.halfTags, h.env.localTag)
	}
	if h.conn != nil {
		s.joining--
	}
	if h.list != nil {
		h.list.remove(h)
	}
	s.stop(&h.task)
}

// halfOpenOn returns the half-open handshakes over a path, in no order.
func (s *Stack) halfOpenOn(id PathID) []*halfOpen {
	var found []*halfOpen
	for _, h := range s.halves {
		if h.path == id {
			found = append(found, h)
		}
	}
	return found
}

// answer orders a SYN/ACK.
func (h *halfOpen) answer() {
	h.due = true
	h.stack.wakeTask(&h.task)
}

// handle takes a segment for a half-open handshake (RFC 9293, Section 3.10.7.4, SYN-RECEIVED).
func (h *halfOpen) handle(now clock.Time, seg *wire.Segment, size int) {
	s := h.stack
	h.received += size
	next := h.syn.seq + 1
	switch {
	case seg.Flags&wire.RST != 0:
		if seg.Seq == next { // RFC 5961, Section 3.2
			h.close()
			return
		}
		s.counters.DropHalfOpen++
	case seg.Flags&wire.SYN != 0:
		h.handleSYN(now, seg, size)
	case seg.Flags&wire.ACK == 0:
		s.counters.DropHalfOpen++
	case seg.Ack != h.iss+1:
		// A copy of a SYN that a cookie had answered may have made h. The cookie's third packet is as good as ever, and a RST would end the
		// peer's connection.
		if made := s.fromCookie(now, h.key, &h.route); made != nil {
			h.close()
			made.complete(now, seg)
			return
		}
		s.refuseCookieless(now, h.key, &h.route)
	case seg.Seq != next, h.syn.options&wire.OptTimestamps != 0 && seg.Options&wire.OptTimestamps == 0:
		// Later data that came too early, or nothing of this connection's. What comes next in order will tell (it is sent again).
		s.counters.DropHalfOpen++
	case h.conn != nil:
		h.completeJoin(now, seg)
	default:
		h.complete(now, seg)
	}
}

// handleSYN takes another SYN: a repetition is answered again, another one is challenged, or over UDP takes the place of this one.
func (h *halfOpen) handleSYN(now clock.Time, seg *wire.Segment, size int) {
	s := h.stack
	switch {
	case seg.Flags&wire.ACK != 0:
		s.counters.DropHalfOpen++
	case seg.Seq != h.syn.seq && h.kind == UDP: // who knows the peer's tag is the peer, and has started anew
		key, r := h.key, h.route
		h.close()
		r.env.localTag = 0
		s.handleSYN(now, key, &r, size)
	case seg.Seq != h.syn.seq:
		s.counters.DropHalfOpen++
		h.challenge(now)
	default:
		h.smallest = size
		if seg.Options&wire.OptTimestamps != 0 && int32(seg.TSVal-h.syn.tsVal) > 0 {
			h.syn.tsVal = seg.TSVal // what the answer echoes: of the first SYN, it would make a round trip of the peer's whole back-off
		}
		if h.mptcp && !seg.Has(wire.OptMPCapable) {
			// The peer gave MPTCP up, perhaps because it was our option that got lost (RFC 8684, Section 3.1). Its third packet could not
			// bring the keys any more.
			s.freeToken(h.token)
			h.mptcp = false
		}
		h.answer()
	}
}

// challenge answers a SYN that may not be the peer's, as in every synchronized state (RFC 5961, Section 4.2). A peer that has started anew
// answers with the RST that makes way for its next SYN; who only guesses cannot take the place of somebody else's handshake.
func (h *halfOpen) challenge(now clock.Time) {
	s := h.stack
	if !s.limiter.allow(now) {
		s.counters.ResetsLimited++
		return
	}
	b := s.control.next()
	if b == nil {
		s.counters.ResetsLimited++
		return
	}
	ack := wire.Segment{
		SrcPort: h.srcPort, DstPort: h.dstPort, Seq: h.iss + 1, Ack: h.syn.seq + 1, Flags: wire.ACK,
		Window: uint16(min(s.cfg.initialWindow(), 0xffff)), Options: h.syn.options & wire.OptTimestamps,
		TSVal: milliseconds(now) + h.timestampOffset, TSEcr: h.syn.tsVal,
	}
	if h.syn.options&wire.OptWindowScale != 0 {
		ack.Window = uint16(min(s.cfg.initialWindow()>>s.cfg.windowScale(), 0xffff))
	}
	s.control.add(h.buildBare(&ack, b))
}

// complete takes the third packet of a connection's handshake.
func (h *halfOpen) complete(now clock.Time, seg *wire.Segment) {
	s, l := h.stack, h.listener
	keys := h.mptcp && keysOf(seg, h.localKey)
	switch {
	case h.mptcp && !keys && seg.Has(wire.OptDSS) && len(seg.Payload) == 0 && h.strikes < maxStrikes:
		// The packet with the keys was lost, and this one speaks MPTCP. Another SYN/ACK makes the peer repeat the keys.
		h.strikes++
		s.counters.DropHalfOpen++
		h.answer()
		return
	case len(l.queue) >= s.cfg.Backlog:
		s.counters.AcceptOverflows++ // the peer, which takes itself for connected, will repeat what it has to say
		return
	case len(s.conns) >= s.cfg.MaxConns:
		s.counters.SYNsDropped++
		return
	}
	c := s.newConn(now, false)
	switch {
	case keys:
		s.counters.CapableACKsReceived++
		if h.stateless {
			s.tokens[h.token] = nil
		}
		c.hs.setLocal(h.localKey, h.token)
		c.hs.setPeer(seg.Capable.Sender)
		c.hs.checksums = s.cfg.Checksums || h.peerChecksums
		c.hs.peerNoJoin = h.peerNoJoin
		s.register(c)
	case h.mptcp: // RFC 8684, Section 3.1: whatever the SYNs said
		s.freeToken(h.token)
		s.counters.FallbackThirdPacket++
		s.plain(now, c, FallbackThirdPacket)
	case s.cfg.NoMPTCP:
		s.plain(now, c, FallbackConfigured)
	default:
		s.counters.FallbackNotOffered++
		s.plain(now, c, FallbackNotOffered)
	}
	sf, res := h.establish(now, c, seg)
	if sf == nil {
		s.finish(now, c, ErrProtocol)
		return
	}
	sf.initial = true
	c.hs.established = true
	c.pm.begin(now, sf, sf.remote)
	c.visible = true
	l.enqueue(c)
	c.established(now)
	s.activate(now, sf)
	if sf.up() {
		c.handleSegment(now, sf, seg, res)
	}
	sf.checkClosed(now)
	s.wake(c)
	s.rearm(c)
}

// plain makes a connection plain TCP during its handshake.
func (s *Stack) plain(now clock.Time, c *Conn, reason FallbackReason) {
	if reason == FallbackConfigured {
		s.counters.FallbackConfigured++
	}
	c.hs.plain, c.hs.noJoins = true, true
	c.setFallback(now, reason)
}

// establish turns the half-open handshake into a subflow of c by its third packet. It returns nil if TCP does not take the packet.
func (h *halfOpen) establish(now clock.Time, c *Conn, seg *wire.Segment) (*Subflow, tcp.Result) {
	s := h.stack
	sf := s.newSubflow(now, c, h.route, synReceived)
	sf.iss, sf.irs = h.iss, h.syn.seq
	cfg := s.tcpConfig(&h.route)
	s.configure(sf, &cfg)
	cfg.TimestampOffset = h.timestampOffset
	sf.tcp = h.replay(cfg, now)
	h.unlink()
	res := sf.tcp.HandleSegment(now, seg)
	if !res.Established {
		s.abandon(now, sf, ErrProtocol)
		return nil, res
	}
	return sf, res
}

// replay makes the TCP connection as if it had existed since the SYN: it answers it, and sends the SYN/ACK again as often as we did.
func (h *halfOpen) replay(cfg tcp.Config, now clock.Time) *tcp.Conn {
	s := h.stack
	syn := h.syn.segment(&h.route)
	t := tcp.Accept(h.born, cfg, &syn)
	t.PollSegment(h.born, &s.rstSeg, &s.rstOut, 0, 0)
	for range max(int(h.sent)-1, 0) {
		at := t.NextTimeout()
		if at > now {
			break
		}
		t.HandleTimeout(at)
		t.PollSegment(at, &s.rstSeg, &s.rstOut, 0, 0)
	}
	return t
}

// read keeps what TCP needs of a SYN.
func (y *synRecord) read(seg *wire.Segment) {
	*y = synRecord{
		seq: seg.Seq, window: seg.Window, options: seg.Options & synOptions,
		mss: seg.MSS, tsVal: seg.TSVal, windowScale: seg.WindowScale,
	}
}

// segment returns the SYN as TCP saw it.
func (y *synRecord) segment(r *route) wire.Segment {
	return wire.Segment{
		SrcPort: r.dstPort, DstPort: r.srcPort, Seq: y.seq, Flags: wire.SYN, Window: y.window,
		Options: y.options, MSS: y.mss, WindowScale: y.windowScale, TSVal: y.tsVal,
	}
}

// pollTask sends the SYN/ACK.
func (h *halfOpen) pollTask(now clock.Time, buf []byte) (Packet, bool) {
	if !h.due {
		return Packet{}, false
	}
	h.due = false
	s := h.stack
	p := h.synAck(now, buf)
	h.sent++
	h.at = now.Add(synAckFirst << min(h.sent-1, synAckTries))
	if h.kind == UDP {
		// Nothing larger than the SYN, and not more than three times what came (docs/encapsulation.md).
		if p.Len > h.smallest || h.answered+p.Len > amplification*h.received {
			s.counters.AmplificationHeld++
			return Packet{}, false
		}
		h.answered += p.Len
	}
	return p, true
}

// synAck writes the SYN/ACK.
func (h *halfOpen) synAck(now clock.Time, buf []byte) Packet {
	s := h.stack
	cfg := s.tcpConfig(&h.route)
	cfg.ISS, cfg.TimestampOffset = h.iss, h.timestampOffset
	cfg.Controller = idleController{}
	cfg.Trace = nil
	cfg.InitialWindow, cfg.WindowScale = s.cfg.initialWindow(), s.cfg.windowScale()
	syn := h.syn.segment(&h.route)
	t := tcp.Accept(now, cfg, &syn)
	seg := &s.rstSeg
	if !t.PollSegment(now, seg, &s.rstOut, 0, 0) {
		panic("mptcp: no SYN/ACK")
	}
	switch {
	case h.conn != nil:
		seg.Options |= wire.OptMPJoin
		seg.Join = h.joinSYNACK()
	case h.mptcp:
		seg.Options |= wire.OptMPCapable
		// RFC 8684, Section 3.1: checksums are used if either side asks for them.
		seg.Capable = s.capable(s.cfg.Checksums || h.peerChecksums)
		seg.Capable.Keys, seg.Capable.Sender = 1, h.localKey
	}
	return h.buildBare(seg, buf)
}

// expire sends the SYN/ACK again, or gives up.
func (h *halfOpen) expire(now clock.Time) {
	if now < h.at {
		return
	}
	if h.sent >= synAckTries {
		h.stack.counters.HalfOpenExpired++
		h.close()
		return
	}
	h.at = clock.Never
	h.answer()
}

func (h *halfOpen) deadline() clock.Time { return h.at }

// idleController is the congestion control of a TCP that sends nothing but a SYN/ACK.
type idleController struct{}

func (idleController) OnSend(congestion.Send) float64                     { return 1 }
func (idleController) OnAck(*congestion.Sample)                           {}
func (idleController) OnCongestion(clock.Time, congestion.Cause, int64)   {}
func (idleController) OnRecoveryEnter(clock.Time, int64)                  {}
func (idleController) OnRecoveryExit(clock.Time, int64)                   {}
func (idleController) OnRestart(clock.Time, time.Duration, time.Duration) {}
func (idleController) OnUndo(clock.Time)                                  {}
func (idleController) OnMSS(int)                                          {}
func (idleController) Window() int64                                      { return 10 * 1460 }
func (idleController) PacingRate() float64                                { return 0 }
func (idleController) OwnsRecovery() bool                                 { return false }
func (idleController) State() congestion.State                            { return congestion.State{} }
