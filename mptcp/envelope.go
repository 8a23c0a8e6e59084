package mptcp

import (
	"errors"
	"net/netip"
	"time"

	"braid/clock"
	"braid/tcp"
	"braid/wire"
)

// envelope is the outer side of a TCP connection over a UDP path (docs/encapsulation.md). On IP paths it is unused.
type envelope struct {
	localTag, remoteTag uint32         // 0: not known yet
	to                  netip.AddrPort // outer address that packets are sent to
	moving              *rebinding     // the peer seems to have a new address
	tell                bool           // the next packet brings our tag along
}

// rebinding is an outer address that acceptable segments came from and that has not proven itself yet.
type rebinding struct {
	addr      netip.AddrPort
	challenge uint64
	received  int        // bytes that came from it
	sent      int        // bytes sent to it
	askAgain  clock.Time // when a further challenge may be sent
}

const (
	amplification  = 3 // bytes to an unproven address for each byte that came from it
	challengeEvery = 250 * time.Millisecond
)

// synPadding returns the padding of a SYN whose TCP options take olen bytes: with it, no SYN/ACK is larger than the SYN.
func synPadding(olen int) int { return wire.MaxOptionsLen - olen }

// unheard reports whether a packet of n bytes to a silent peer has room for our tag: the peer may have forgotten the subflow, and without the tag
// its RST would not find us (docs/encapsulation.md, Tags).
func (sf *Subflow) unheard(now clock.Time, n int) bool {
	return now.Sub(sf.tcp.LastHeard()) > probeEvery && sf.tcp.State() >= tcp.Established &&
		n+wire.ShimSYNLen-wire.ShimLen <= sf.tcp.MTU()
}

// handleDatagram takes the payload of a UDP datagram.
func (s *Stack) handleDatagram(now clock.Time, p *path, from netip.AddrPort, b []byte) {
	shim, rest, err := wire.ParseShim(b)
	if err != nil {
		if errors.Is(err, wire.ErrShimVersion) {
			s.counters.DropVersion++
			s.negotiateVersion(now, p, from, &shim, len(b))
			return
		}
		s.counters.DropMalformed++
		return
	}
	if a := from.Addr(); a.Is4In6() {
		from = netip.AddrPortFrom(a.Unmap(), from.Port())
	}
	switch shim.Type {
	case wire.ShimSegment:
		if err := wire.ParseTCP(rest, &s.in); err != nil {
			s.counters.DropMalformed++
			return
		}
		s.handleEnveloped(now, p, from, &shim, len(b))
	case wire.ShimChallenge:
		s.handleChallenge(p, from, &shim)
	case wire.ShimResponse:
		s.handleResponse(now, from, &shim)
	case wire.ShimVersions:
		s.handleVersions(now, &shim)
	}
}

// handleEnveloped takes the segment in s.in. Its connection is found by tag, never by outer address: NATs rebind.
func (s *Stack) handleEnveloped(now clock.Time, p *path, from netip.AddrPort, shim *wire.Shim, size int) {
	seg := &s.in
	if sf := s.tags[shim.Tag]; sf != nil {
		s.deliverEnveloped(now, sf, from, shim, size)
		return
	}
	if rem := s.remnants.tags[shim.Tag]; rem != nil {
		rem.handleEnveloped(now, from, seg)
		return
	}
	if h := s.halfTags[shim.Tag]; h != nil {
		if from != h.env.to {
			// Its address was rebound in the middle of the handshake. The third packet proves that the peer got our SYN/ACK at
			// the old one; the next segments bring the challenge.
			size = 0
		}
		h.handle(now, seg, size)
		return
	}
	if !shim.HasSender {
		s.counters.DropUnknownTag++
		return
	}
	r := &route{
		path: p.id, kind: UDP, srcPort: seg.DstPort, dstPort: seg.SrcPort, local: p.Local, remote: from,
		env: envelope{remoteTag: shim.SenderTag, to: from},
	}
	if shim.Tag != 0 || seg.Flags&(wire.SYN|wire.ACK|wire.RST) != wire.SYN {
		if seg.Flags&wire.RST == 0 {
			s.refuse(now, r, seg) // the SYN/ACK of a connection that we gave up
		} else {
			s.counters.DropUnknownTag++
		}
		return
	}
	key := tupleOfDatagram(from, shim.SenderTag, seg.SrcPort, seg.DstPort)
	if h := s.halves[key]; h != nil {
		h.handle(now, seg, size)
		return
	}
	s.handleSYN(now, key, r, size)
}

// deliverEnveloped takes a segment of a subflow.
func (s *Stack) deliverEnveloped(now clock.Time, sf *Subflow, from netip.AddrPort, shim *wire.Shim, size int) {
	if shim.HasSender && sf.state == synSent && s.in.Flags.Has(wire.SYN|wire.ACK) && s.in.Ack == sf.iss+1 { // else TCP will refuse it: its tag is nobody's
		if from != sf.env.to { // only the address that was asked can answer
			s.counters.DropNotOurs++
			return
		}
		sf.env.remoteTag = shim.SenderTag
	}
	s.accepted = false
	s.deliver(now, sf, &s.in)
	if s.accepted && from != sf.env.to && sf.state != gone {
		s.rebind(now, sf, from, size)
	}
}

// rebind starts or goes on to prove a new outer address. An acceptable segment or a genuine repetition came from it; it is used for sending only when it has
// also echoed a fresh number, and gets no more than three times what came from it until then.
func (s *Stack) rebind(now clock.Time, sf *Subflow, from netip.AddrPort, size int) {
	m := sf.env.moving
	if m == nil || m.addr != from {
		m = &rebinding{addr: from, challenge: s.cfg.Entropy(), askAgain: now}
		sf.env.moving = m
	}
	m.received += size
	if now < m.askAgain {
		return
	}
	if m.sent+wire.ShimChallengeLen > amplification*m.received {
		s.counters.AmplificationHeld++
		return
	}
	m.sent += wire.ShimChallengeLen
	m.askAgain = now.Add(challengeEvery)
	s.counters.ChallengesSent++
	s.sendShim(sf.path, from, &wire.Shim{
		Version: wire.ShimVersion, Type: wire.ShimChallenge, Tag: sf.env.remoteTag, Challenge: m.challenge,
	})
}

// handleChallenge returns the number of a challenge to where it came from.
func (s *Stack) handleChallenge(p *path, from netip.AddrPort, shim *wire.Shim) {
	env := s.envelopeOf(shim.Tag)
	if env == nil || env.remoteTag == 0 {
		s.counters.DropUnknownTag++
		return
	}
	s.sendShim(p.id, from, &wire.Shim{
		Version: wire.ShimVersion, Type: wire.ShimResponse, Tag: env.remoteTag, Challenge: shim.Challenge,
	})
}

// envelopeOf returns the envelope of our tag, nil if there is none.
func (s *Stack) envelopeOf(tag uint32) *envelope {
	if sf := s.tags[tag]; sf != nil {
		return &sf.env
	}
	if r := s.remnants.tags[tag]; r != nil {
		return &r.env
	}
	return nil
}

// handleResponse takes the answer to a challenge: the address has proven itself.
func (s *Stack) handleResponse(now clock.Time, from netip.AddrPort, shim *wire.Shim) {
	sf := s.tags[shim.Tag]
	if sf == nil {
		s.counters.DropUnknownTag++
		return
	}
	m := sf.env.moving
	if m == nil || m.addr != from || m.challenge != shim.Challenge {
		s.counters.DropUnknownTag++
		return
	}
	sf.env.to, sf.env.moving = from, nil
	s.counters.Rebindings++
	if sf.watch.silent {
		sf.tcp.Probe(now)
	}
	s.wake(sf.conn)
	s.rearm(sf.conn)
}

// negotiateVersion tells a peer that speaks another version of the envelope which ones we speak.
func (s *Stack) negotiateVersion(now clock.Time, p *path, from netip.AddrPort, shim *wire.Shim, size int) {
	if !shim.HasSender || size < wire.ShimVersionsLen || !s.limiter.allow(now) {
		return
	}
	s.counters.VersionsSent++
	s.sendShim(p.id, from, &wire.Shim{Type: wire.ShimVersions, Tag: shim.SenderTag, Versions: 1 << wire.ShimVersion})
}

// handleVersions takes a version negotiation: a peer that does not speak our version refuses the subflow.
func (s *Stack) handleVersions(now clock.Time, shim *wire.Shim) {
	sf := s.tags[shim.Tag]
	if sf == nil || sf.state != synSent || shim.Versions&(1<<wire.ShimVersion) != 0 {
		s.counters.DropVersion++
		return
	}
	s.abandon(now, sf, ErrRefused)
}

// sendShim queues a datagram without a segment.
func (s *Stack) sendShim(path PathID, to netip.AddrPort, shim *wire.Shim) {
	if b := s.control.next(); b != nil {
		s.control.add(Packet{Path: path, To: to, Len: len(wire.AppendShim(b[:0], shim))})
	}
}
