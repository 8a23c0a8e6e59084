package mptcp

import (
	"errors"
	"fmt"

	"braid/clock"
	"braid/congestion"
	"braid/seq"
	"braid/tcp"
	"braid/trace"
	"braid/wire"
)

// subflowState is where a subflow stands.
type subflowState uint8

const (
	synSent        subflowState = iota // our SYN is out
	synReceived                        // the peer's handshake is complete, ours is being checked
	preEstablished                     // MP_JOIN: our third ACK is out and not acknowledged: no data (RFC 8684, Section 3.2)
	active                             // carries data
	closing                            // a FIN was sent or received: no new data
	gone                               // reset, closed or given up; no longer in Conn.subflows
)

var subflowStateNames = [...]string{"SYN sent", "SYN received", "pre-established", "active", "closing", "gone"}

// String returns the state in words.
func (s subflowState) String() string { return subflowStateNames[s] }

// subflowTransitions says which states may follow which.
var subflowTransitions = [...]uint8{
	synSent:        1<<preEstablished | 1<<active | 1<<gone,
	synReceived:    1<<active | 1<<gone,
	preEstablished: 1<<active | 1<<gone,
	active:         1<<closing | 1<<gone,
	closing:        1 << gone,
	gone:           0,
}

// Subflow is one TCP connection of a Conn over one path.
type Subflow struct {
	route
	conn *Conn
	id   int // unique within the connection, ascending
	tcp  *tcp.Conn
	iss  seq.Number // our initial sequence number
	irs  seq.Number // the peer's

	state                       subflowState
	initial                     bool  // opened with MP_CAPABLE, not MP_JOIN
	localID, remoteID           uint8 // address IDs (RFC 8684, Section 3.2)
	backupLocal, backupPeer     bool  // we asked the peer to use it as backup; the peer asked us to
	resetSet, resetTransient    bool  // the MP_TCPRST of the RST that drop ordered
	resetReason                 wire.ResetReason
	peerReset, peerResetForever bool // the peer sent MP_TCPRST; ... that says not to try again soon
	joined                      bool // it was active once

	join  joinState
	watch silence
	data  subflowData

	opened clock.Time // when it was opened
}

// SubflowError says why a subflow ended.
type SubflowError struct {
	Reason wire.ResetReason // RFC 8684, Section 3.6
	Peer   bool             // the peer reset it; otherwise this host did
	Err    error            // what TCP says; may be nil
}

// Error says it in words.
func (e *SubflowError) Error() string {
	who, why := "this host", "unspecified"
	if e.Peer {
		who = "the peer"
	}
	reasons := [...]string{"", "protocol error", "lack of resources", "administratively prohibited", "too much outstanding data",
		"unacceptable performance", "middlebox interference"}
	if e.Reason > 0 && int(e.Reason) < len(reasons) {
		why = reasons[e.Reason]
	}
	return fmt.Sprintf("mptcp: subflow reset by %s: %s", who, why)
}

// Unwrap returns what TCP says.
func (e *SubflowError) Unwrap() error { return e.Err }

// setState moves the subflow; a move that cannot be is a mistake of ours.
func (sf *Subflow) setState(to subflowState) {
	if subflowTransitions[sf.state]&(1<<to) == 0 {
		panic(fmt.Sprintf("mptcp: subflow %d goes from %v to %v", sf.id, sf.state, to))
	}
	sf.state = to
}

// up reports whether c.subflowActive was called for the subflow and c.subflowGone not yet.
func (sf *Subflow) up() bool { return sf.state == active || sf.state == closing }

// isBackup reports whether either end wants the subflow to be used last.
func (sf *Subflow) isBackup() bool { return sf.backupLocal || sf.backupPeer }

// newSubflow makes a subflow of c and puts it into the tables. Its tcp is nil: the caller opens it.
func (s *Stack) newSubflow(now clock.Time, c *Conn, r route, state subflowState) *Subflow {
	sf := &Subflow{route: r, conn: c, id: c.nextSubflow, state: state, opened: now}
	sf.join.ackAt, sf.watch.probeAt = clock.Never, clock.Never
	if p := s.livePath(r.path); p != nil {
		sf.backupLocal = p.Backup
	}
	c.nextSubflow++
	c.subflows = append(c.subflows, sf)
	if r.kind == UDP {
		s.tags[r.env.localTag] = sf
	} else {
		s.tuples[r.tuple()] = sf
	}
	return sf
}

// unlink takes a subflow out of the tables by which packets find it.
func (s *Stack) unlink(sf *Subflow) {
	if sf.kind == UDP {
		delete(s.tags, sf.env.localTag)
		return
	}
	if key := sf.tuple(); s.tuples[key] == sf {
		delete(s.tuples, key)
	}
	if s.lastSubflow == sf {
		s.lastSubflow = nil
	}
}

// tcpConfig is the part of a subflow's configuration that does not depend on its connection.
func (s *Stack) tcpConfig(r *route) tcp.Config {
	cfg := tcp.Config{
		LocalPort: r.srcPort, RemotePort: r.dstPort,
		Pool:          s.pool,
		MTU:           1500,
		Overhead:      r.overhead(),
		MinRTO:        s.cfg.MinRTO,
		UserTimeout:   -1, // the connection decides: a silent path is probed until the path manager gives it up
		KeepAlive:     s.cfg.TCPKeepAlive,
		MSL:           s.cfg.MSL,
		PacingQuantum: s.cfg.PacingQuantum,
		NoDelay:       true, // the data plane does Nagle
		Trace:         s.cfg.Trace,
	}
	if p := s.livePath(r.path); p != nil {
		cfg.MTU = p.MTU
	}
	if r.kind == UDP {
		cfg.KeepAlive = max(s.cfg.KeepAlive, 0)
		// It is for the bindings of NATs. A path that does not answer is given up as late as one with data to send.
		cfg.KeepAliveEvery = cfg.KeepAlive
		cfg.KeepAliveCount = max(5, int(s.cfg.UserTimeout/max(cfg.KeepAlive, 1)))
	}
	return cfg
}

// configure completes cfg for subflow sf.
func (s *Stack) configure(sf *Subflow, cfg *tcp.Config) {
	c := sf.conn
	cfg.ISS = sf.iss
	cfg.Rand = s.rand()
	cfg.Subflow, cfg.ConnID = sf.id, c.id
	cfg.InitialWindow, cfg.WindowScale = s.cfg.initialWindow(), s.cfg.windowScale()
	mss := cfg.MTU - cfg.Overhead - wire.TCPHeaderLen - wire.TimestampsLen
	cfg.Controller = c.joinGroup(sf.id, congestion.Config{MSS: max(mss, 1), Rand: cfg.Rand})
}

// activate lets a subflow carry data.
func (s *Stack) activate(now clock.Time, sf *Subflow) {
	if c := sf.conn; c.stack.cfg.Trace != nil {
		from := tcp.SynSent
		if sf.state == synReceived {
			from = tcp.SynReceived
		}
		c.trace(now, int16(sf.id), trace.SubflowState, int64(from), int64(tcp.Established), -1)
	}
	sf.setState(active)
	sf.joined = true
	sf.join.ackAt = clock.Never
	sf.conn.subflowActive(now, sf)
	if sf.state == active {
		s.emit(Event{Kind: EventSubflowUp, Conn: sf.conn, Subflow: sf.id})
		sf.conn.pm.subflowUp(now, sf)
	}
}

// drop resets subflow sf with an MP_TCPRST of the given reason (RFC 8684, Section 3.6): its RST leaves at the next poll, it is out of
// c.subflows when drop returns, and c.subflowGone was called.
func (s *Stack) drop(now clock.Time, sf *Subflow, reason wire.ResetReason, transient bool) {
	if sf.state == gone {
		return
	}
	s.reset(now, sf, reason, transient)
	s.detach(now, sf, &SubflowError{Reason: reason, Err: ErrAborted})
}

// reset sends the RST of a subflow.
func (s *Stack) reset(now clock.Time, sf *Subflow, reason wire.ResetReason, transient bool) {
	sf.resetSet, sf.resetReason, sf.resetTransient = true, reason, transient
	sf.tcp.Abort(now)
	seg, out := &s.rstSeg, &s.rstOut
	for sf.tcp.PollSegment(now, seg, out, 0, 0) {
		if seg.Flags&wire.RST == 0 {
			continue
		}
		if !sf.fillHandshake(now, seg, out) {
			sf.conn.fillData(now, sf, seg, out)
		}
		if b := s.control.next(); b != nil {
			s.control.add(s.build(now, sf, seg, out, b))
		}
		s.counters.SubflowResetsSent++
	}
}

// abandon takes a subflow away without a word to the peer.
func (s *Stack) abandon(now clock.Time, sf *Subflow, err error) {
	if sf.state == gone {
		return
	}
	sf.tcp.Abort(now)
	for sf.tcp.PollSegment(now, &s.rstSeg, &s.rstOut, 0, 0) { // its RST is not sent
	}
	s.detach(now, sf, err)
}

// leave takes a subflow away from a connection that is over. A closing handshake goes on without the connection, unless data is
// outstanding that only the connection could send again.
func (s *Stack) leave(now clock.Time, sf *Subflow) {
	state := sf.tcp.State()
	switch {
	case state == tcp.Closed:
		s.detach(now, sf, nil)
	case state == tcp.SynSent:
		s.abandon(now, sf, ErrAborted)
	case sf.conn.err == ErrAborted && (state == tcp.FinWait1 || state == tcp.FinWait2):
		// RFC 9293, Section 3.10.5: the peer may still send, and has to know that nobody takes it.
		s.drop(now, sf, wire.ResetUnspecified, false)
	case (state >= tcp.FinWait1 && state != tcp.CloseWait || sf.state == closing) && !sf.owesData():
		s.remnants.add(s, now, sf)
		s.detach(now, sf, nil)
	default:
		s.drop(now, sf, wire.ResetUnspecified, false)
	}
}

// owesData reports whether payload of ours is not acknowledged.
func (sf *Subflow) owesData() bool {
	owes := false
	sf.tcp.EachOutstanding(func(ch tcp.Chunk, _, _ bool) bool {
		owes = ch.Len > 0
		return !owes
	})
	return owes
}

// checkClosed looks whether the subflow's TCP is over and, if so, takes it out of the tables and calls c.subflowGone. TIME-WAIT counts
// as over: it goes on without the connection.
func (sf *Subflow) checkClosed(now clock.Time) {
	if sf.state == gone {
		return
	}
	s := sf.conn.stack
	switch sf.tcp.State() {
	case tcp.Closed:
		err := sf.tcp.Err()
		if sf.peerReset || errors.Is(err, tcp.ErrReset) {
			err = &SubflowError{Reason: sf.resetReason, Peer: true, Err: ErrReset} // also where TCP was done anyway and sees no error
		} else if err != nil {
			err = closeError(err)
		}
		s.detach(now, sf, err)
	case tcp.TimeWait:
		s.remnants.add(s, now, sf)
		s.detach(now, sf, nil)
	}
}

// closeError translates an error of package tcp.
func closeError(err error) error {
	switch {
	case errors.Is(err, tcp.ErrRefused), errors.Is(err, tcp.ErrUnreachable):
		return fmt.Errorf("%w (%w)", ErrRefused, err)
	case errors.Is(err, tcp.ErrReset):
		return ErrReset
	case errors.Is(err, tcp.ErrTimeout):
		return ErrTimeout
	case err == nil:
		return nil
	}
	return err
}

// detach takes a subflow out of everything and tells those concerned. Its TCP sends nothing any more, or belongs to a remnant.
func (s *Stack) detach(now clock.Time, sf *Subflow, err error) {
	c, was := sf.conn, sf.state
	if s.cfg.Trace != nil {
		reason := int64(-1)
		if sf.resetSet || sf.peerReset {
			reason = int64(sf.resetReason)
		}
		from := tcp.SynSent
		if sf.up() {
			from = tcp.Established
		}
		c.trace(now, int16(sf.id), trace.SubflowState, int64(from), int64(tcp.Closed), reason)
	}
	if sf.tcp != nil {
		s.retired.Add(sf.tcp)
	}
	sf.setState(gone)
	s.unlink(sf)
	s.loseKey(sf)
	sf.join.ackAt = clock.Never
	if was == active || was == closing {
		if err != nil {
			s.counters.SubflowsLost++
		}
		c.removeSubflow(sf)
		c.subflowGone(now, sf, err)
		s.emit(Event{Kind: EventSubflowDown, Conn: c, Subflow: sf.id, Err: err})
	} else {
		c.removeSubflow(sf)
		c.leaveGroup(sf.id)
		s.countLostJoin(sf, was, err)
	}
	switch {
	case c.finished:
	case c.race != nil:
		c.race.lost(now, sf, err)
	default:
		c.pm.subflowGone(now, sf, err)
	}
	s.wake(c)
	s.rearm(c)
}

// countLostJoin counts a subflow that ended before it carried data.
func (s *Stack) countLostJoin(sf *Subflow, was subflowState, err error) {
	switch {
	case sf.initial || was == synReceived || sf.join.failed:
	case sf.peerReset || errors.Is(err, ErrRefused) || errors.Is(err, ErrReset):
		s.counters.JoinsSentRefused++
	case errors.Is(err, ErrTimeout):
		s.counters.JoinsSentFailed++
	default:
		s.counters.JoinsSentDropped++
	}
}

// removeSubflow takes sf out of c.subflows.
func (c *Conn) removeSubflow(sf *Subflow) {
	for i, other := range c.subflows {
		if other == sf {
			copy(c.subflows[i:], c.subflows[i+1:])
			c.subflows[len(c.subflows)-1] = nil
			c.subflows = c.subflows[:len(c.subflows)-1]
			return
		}
	}
}

// deliver takes a segment of subflow sf.
func (s *Stack) deliver(now clock.Time, sf *Subflow, seg *wire.Segment) {
	c := sf.conn
	if sf.state == synSent {
		s.deliverOpening(now, sf, seg)
		s.wake(c)
		s.rearm(c)
		return
	}
	res := sf.tcp.HandleSegment(now, seg)
	s.accepted = res.Acceptable || res.Repeats
	if res.Acceptable {
		if seg.Options&(wire.OptMPJoin|wire.OptMPTCPReset) != 0 {
			s.handshakeOptions(now, sf, seg)
		}
		if sf.state == preEstablished && seg.Flags&(wire.SYN|wire.RST) == 0 {
			// RFC 8684, Section 3.2: any acknowledgment on the subflow ends the wait.
			s.counters.JoinsSentUp++
			s.activate(now, sf)
		}
		if sf.up() {
			c.handleSegment(now, sf, seg, res)
		}
		if now >= c.pm.lookAt && !c.finished {
			c.pm.look(now)
		}
	}
	if res.Closed || res.Reset || sf.tcp.State() == tcp.TimeWait {
		sf.checkClosed(now)
	}
	s.wake(c)
	s.rearm(c)
}

// handshakeOptions looks at options of an acceptable segment that concern a subflow's beginning and end.
func (s *Stack) handshakeOptions(now clock.Time, sf *Subflow, seg *wire.Segment) {
	if seg.Has(wire.OptMPTCPReset) && seg.Flags&wire.RST != 0 {
		// RFC 8684, Section 3.6: T says that the condition may pass.
		sf.peerReset = true
		sf.resetReason = seg.Reset.Reason
		sf.peerResetForever = !seg.Reset.Transient
		s.counters.ResetReasonsIn[knownReason(seg.Reset.Reason)]++
	}
	if seg.Has(wire.OptMPJoin) && seg.Flags&(wire.SYN|wire.RST) == 0 && sf.up() && !sf.initial {
		// RFC 8684, Section 3.2: the peer did not see our fourth ACK.
		sf.tcp.RequestAck(now)
	}
}

// fillHandshake adds MPTCP's options to seg if it belongs to a handshake: SYN, the third ACK and its repetitions, the first data
// with the keys, and every segment of a plain TCP connection (none). It reports whether the segment is complete; if not, c.fillData
// adds DSS and others.
func (sf *Subflow) fillHandshake(now clock.Time, seg *wire.Segment, out *tcp.Out) bool {
	c := sf.conn
	switch {
	case seg.Flags&wire.SYN != 0:
		// A SYN/ACK comes from here only in a simultaneous open, which is plain TCP.
		if seg.Flags&wire.ACK == 0 {
			sf.fillSYN(seg)
		}
		return true
	case c.hs.plain:
		return true
	case seg.Flags&wire.RST != 0:
		return false
	case sf.state == preEstablished:
		sf.fillJoinACK(now, seg)
		return true
	case sf.needsKeys():
		return sf.fillKeys(now, seg, out)
	}
	return false
}

// fillReset adds MP_TCPRST to the RST that drop ordered (RFC 8684, Section 3.6).
func (sf *Subflow) fillReset(seg *wire.Segment) {
	if !sf.resetSet || sf.conn.hs.plain || seg.OptionsLen()+wire.MPTCPResetLen > wire.MaxOptionsLen {
		return
	}
	seg.Options |= wire.OptMPTCPReset
	seg.Reset = wire.MPTCPReset{Transient: sf.resetTransient, Reason: sf.resetReason}
	sf.conn.stack.counters.ResetReasonsOut[knownReason(sf.resetReason)]++
}
