package mptcp

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"time"

	"braid/clock"
	"braid/congestion"
	"braid/schedule"
	"braid/trace"
)

// Conn is one Multipath TCP connection: one byte stream each way over its subflows, or one plain TCP connection when the peer
// or the path does not speak MPTCP. Its methods are called by the driver of its Stack, with the same clock.
type Conn struct {
	attachment // stack, id, client, hs, pm, subflows: what the Stack keeps of it

	// User is the driver's own.
	User any

	state connState
	err   error // why it ended: what Read and Write return when nothing is left

	snd sendStream
	rcv receiveStream
	fin closeState
	fb  fallbackState

	group congestion.Group
	sched schedule.Scheduler
	views viewCache

	lonelyAt   clock.Time // when a connection without any subflow gives up (RFC 8684, Section 3.3.3); Never while one exists
	everActive int        // subflows that were ever active
	rotor      int        // index of the subflow that poll asks first

	traced    uint8      // state as last traced
	closed    bool       // the application called Close or Abort: it will neither read nor write
	fastClose bool       // resets carry MP_FASTCLOSE
	lingerAt  clock.Time // when a closed connection that cannot finish is aborted; Never while it is open
	local     netip.AddrPort
	remote    netip.AddrPort
	stats     connStats
}

// connState says how far a connection has come.
type connState uint8

// The states of a connection.
const (
	connOpening connState = iota // no subflow has completed its handshake
	connOpen                     // data may flow
	connOver                     // finished: only what was received in order can still be read
)

// subflowData is what the data plane keeps of each subflow.
type subflowData struct {
	maps      mappingTable // what the peer said about the bytes it sends on this subflow
	backlog   backlog      // its bytes that cannot be delivered yet: no mapping, or a checksum over more than has come
	carried   carriedSet   // what we send on it
	stale     staleState
	stats     subflowStats
	finChunk  int64 // ID of the chunk that carried the DATA_FIN; -1: none
	ackFirst  bool  // no data before an ACK has left
	finDue    bool  // a DATA_FIN is due on the next ACK (RFC 8684, Section 3.3.3)
	prioDue   bool  // an MP_PRIO is due on the next segment with room
	removeDue bool  // a REMOVE_ADDR is due on the next ACK
	addrDue   bool  // an ADD_ADDR is due on the next ACK, alone
	failDue   bool  // an MP_FAIL is due on the next ACK, or on the RST
	fail      int64 // data offset that it names

	lastDSS  clock.Time // when the last DSS came, or another option of MPTCP
	bare     int        // segments in a row without one
	dssBytes int64      // bytes that the peer acknowledged at subflow level since without a DSS
	taken    int64      // subflow offset behind what tcp has handed up
}

// init makes c a new connection that has opened nothing yet.
func (c *Conn) init(now clock.Time) {
	cfg := &c.stack.cfg
	c.group, c.sched = cfg.Group(), cfg.Scheduler()
	c.snd.init(c.stack.sendPool, min(minSendLimit, cfg.SendBuffer))
	c.rcv.init(cfg)
	c.fin.init()
	c.fb.init()
	c.views.init()
	c.lonelyAt, c.lingerAt = clock.Never, clock.Never
}

// joinGroup makes the congestion controller of a new subflow.
func (c *Conn) joinGroup(id int, cfg congestion.Config) congestion.Controller {
	return c.group.Join(id, cfg)
}

// leaveGroup takes a subflow that never became active out of congestion control.
func (c *Conn) leaveGroup(id int) { c.group.Leave(id) }

// established says that the first subflow completed its handshake. In fallback c.fb says so already.
func (c *Conn) established(now clock.Time) {
	if c.state != connOpening {
		panic(fmt.Sprintf("mptcp: connection %d established in state %d", c.id, c.state))
	}
	c.state = connOpen
	c.traceState(now)
	c.snd.short = true // whoever waits to write may
	c.signalWritable()
}

// subflowActive says that sf may carry data from now on.
func (c *Conn) subflowActive(now clock.Time, sf *Subflow) {
	d := &sf.data
	d.finChunk = -1
	d.stale.heardAt, d.lastDSS = now, now
	d.stale.startedAt = now
	if c.everActive++; c.everActive == 1 {
		c.local, c.remote = sf.local, sf.remote
		// The window of the handshake counts from the first byte of data (RFC 8684, Section 3.3.4).
		c.raiseEdge(1 + sf.tcp.Info(now).PeerWindow)
	}
	if c.fb.sending {
		c.snd.edge = math.MaxInt64
	}
	if c.fin.sent && !c.fin.acked && !c.fb.sending {
		d.finDue = true
		sf.tcp.RequestAck(now)
	}
	c.lonelyAt = clock.Never
	c.views.changed()
	c.stack.wake(c)
	if !sf.initial && !c.client {
		// The peer waits for an ACK of its MP_JOIN's third packet (RFC 8684, Section 3.2); it goes before any data, so that it
		// is what arrives first: peers reset a subflow that begins out of order.
		d.ackFirst = true
		sf.tcp.RequestAck(now)
	}
	sf.tcp.SetBlocked(c.snd.blocked)
	if c.fin.queued {
		c.advanceClose(now)
	}
	if c.fb.discard && c.subflows[0] != sf {
		c.resumeAfterFail(now, c.subflows[0])
	}
}

// subflowGone says that sf is no more: its tcp closed, was reset, or its path was removed. What it
// carried and nobody else does goes to the others (RFC 8684, Section 3.3.6).
func (c *Conn) subflowGone(now clock.Time, sf *Subflow, err error) {
	c.removeSubflow(sf)
	c.group.Leave(sf.id)
	c.dropReceived(sf)
	c.abandon(now, sf)
	c.sched.OnGone(sf.id)
	c.views.changed()
	c.rotor = 0
	c.stats.gone(sf)
	if c.state != connOpen {
		return
	}
	c.resumeAfterFail(now, nil)
	switch {
	case c.anyUp():
		c.advanceClose(now)
	case c.closedBothWays():
		c.end(now, nil)
	case c.fb.any():
		c.end(now, c.plainError(err))
	case c.lonelyAt == clock.Never:
		// Break before make: a new subflow may join for a while (RFC 8684, Section 3.3.3).
		c.lonelyAt = now.Add(c.stack.cfg.CloseTimeout)
	}
	c.stack.wake(c)
	c.stack.rearm(c)
}

// anyUp reports whether a subflow has completed its handshake and not closed.
func (c *Conn) anyUp() bool {
	for _, sf := range c.subflows {
		if sf.up() {
			return true
		}
	}
	return false
}

// plainError returns why a plain TCP connection ended, though not both streams had, whose only subflow closed with err.
func (c *Conn) plainError(err error) error {
	var reset *SubflowError
	switch {
	case err == nil: // a RST in LAST-ACK, for one, which is no error to TCP: but not everything of ours arrived
		return ErrReset
	case !errors.As(err, &reset):
		return err
	case reset.Peer: // there are no subflows to speak of
		return ErrReset
	}
	return fmt.Errorf("%w: %v", ErrProtocol, err) // nobody asked for an end
}

// end finishes the connection: err says why, nil after an orderly close. What was received in order can still be read.
func (c *Conn) end(now clock.Time, err error) {
	if c.state == connOver {
		return
	}
	c.state = connOver
	c.traceState(now)
	c.err = err
	c.stack.finish(now, c, err)
	if c.closed {
		c.rcv.queue.Clear(c.stack.pool)
	}
	c.signalReadable()
	c.signalWritable()
}

// traceState records a change of the connection's state.
func (c *Conn) traceState(now clock.Time) {
	const opening, open, fallen, closing, closed = 0, 1, 2, 3, 4 // the order of trace.ConnState's table
	state := uint8(opening)
	switch {
	case c.state == connOver:
		state = closed
	case c.state == connOpen && c.fin.closing:
		state = closing
	case c.state == connOpen && c.fb.active:
		state = fallen
	case c.state == connOpen:
		state = open
	}
	if state != c.traced {
		c.trace(now, -1, trace.ConnState, int64(c.traced), int64(state))
		c.traced = state
	}
}

// release gives back all memory but what the application can still read. The Stack calls it when no subflow needs c any more.
func (c *Conn) release() {
	for _, sf := range c.subflows {
		c.dropReceived(sf)
		sf.data.carried.drain(func(int64, int) {})
	}
	c.stats.acked = c.snd.acked() - 1
	c.snd.buf.Clear()
	c.snd.reinject.Reset()
	c.snd.holes.Reset()
	c.snd.holesLen = 0
	c.snd.next = c.snd.end()
	c.rcv.ooo.Clear(c.stack.pool)
}

// CloseWrite ends the outgoing stream: a DATA_FIN follows everything written (RFC 8684, Section 3.3.3). Reading goes on.
func (c *Conn) CloseWrite(now clock.Time) error {
	if c.state == connOver {
		return c.Err()
	}
	c.finishWriting(now)
	return nil
}

// Close ends the connection in an orderly way: everything written is delivered, then the stream ends. It does not wait: the
// Stack finishes in the background. If data was received and not read, the connection is aborted instead, so that the peer
// learns that it was lost (RFC 9293, Section 3.6.1). A second Close does nothing.
func (c *Conn) Close(now clock.Time) error {
	if c.closed {
		return nil
	}
	if c.state != connOver && (!c.rcv.queue.Empty() || !c.rcv.ooo.Empty()) {
		c.Abort(now)
		return nil
	}
	c.closed = true
	c.rcv.queue.Clear(c.stack.pool)
	if c.state == connOver {
		return nil
	}
	if c.state == connOpening && c.snd.buf.Len() == 0 {
		c.end(now, nil) // nothing was said: nobody has to be told
		return nil
	}
	c.lingerAt = now.Add(c.stack.cfg.UserTimeout)
	c.finishWriting(now)
	c.stack.rearm(c)
	return nil
}

// Abort ends the connection at once: the peer is told by MP_FASTCLOSE (RFC 8684, Section 3.5), or by a reset in plain TCP.
func (c *Conn) Abort(now clock.Time) {
	c.closed = true
	c.rcv.queue.Clear(c.stack.pool)
	c.abort(now, ErrAborted)
}

// abort ends the connection; the resets with which the Stack ends the subflows carry MP_FASTCLOSE.
func (c *Conn) abort(now clock.Time, err error) {
	if c.state == connOver {
		return
	}
	if !c.fb.any() && c.state == connOpen {
		c.fastClose = true
		c.stack.counters.FastClosesSent++
	}
	c.end(now, err)
}

// Readable reports whether Read would return something else than ErrWouldBlock.
func (c *Conn) Readable() bool {
	return !c.rcv.queue.Empty() || c.fin.peerReached || c.state == connOver || c.closed
}

// Writable reports whether Write would take something, or report why it never will.
func (c *Conn) Writable() bool {
	return c.room() > 0 || c.fin.queued || c.state == connOver
}

// Err returns why the connection ended; nil while it is open and after an orderly close.
func (c *Conn) Err() error { return c.err }

// Established reports whether the first subflow completed its handshake and the connection is not over.
func (c *Conn) Established() bool { return c.state == connOpen }

// LocalAddr returns the local address of the first subflow, even after it closed (RFC 6897, Section 5).
func (c *Conn) LocalAddr() netip.AddrPort {
	if c.everActive == 0 && len(c.subflows) > 0 {
		return c.subflows[0].local
	}
	return c.local
}

// RemoteAddr returns the peer's address of the first subflow, even after it closed.
func (c *Conn) RemoteAddr() netip.AddrPort {
	if c.everActive == 0 && len(c.subflows) > 0 {
		return c.subflows[0].remote
	}
	return c.remote
}

// usable reports whether the subflow may carry new data: it is active and its peer answers.
func (sf *Subflow) usable() bool { return sf.state == active && !sf.data.stale.timedOut }

// readError returns what Read reports when nothing is left.
func (c *Conn) readError() error {
	if c.fin.peerReached {
		return io.EOF
	}
	if c.err != nil {
		return c.err
	}
	return io.EOF
}

// rtt returns the largest smoothed round-trip time of the subflows that carry data, def if none has a sample.
func (c *Conn) rtt(def time.Duration) time.Duration {
	var most time.Duration
	for _, sf := range c.subflows {
		if sf.usable() {
			most = max(most, sf.tcp.SRTT(), sf.tcp.ReceiverRTT()) // the latter where we only receive
		}
	}
	if most == 0 {
		return def
	}
	return most
}
