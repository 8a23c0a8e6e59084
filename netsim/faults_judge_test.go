package netsim

import (
	"errors"
	"fmt"
	"net"

	"braid/clock"
	"braid/mptcp"
)

// suspect notes a byte that is not the one that was sent, unless a middlebox put it there and nothing could tell.
func (w *faultWorld) suspect(e *faultEnd, format string, args ...any) {
	if !w.deceived(e) {
		w.fail(format, args...)
	}
}

// deceived reports whether middleboxes change payload or mappings, and nothing guards the stream: no DSS checksums, or plain TCP.
func (w *faultWorld) deceived(e *faultEnd) bool {
	t := w.trouble
	for _, b := range t.boxes {
		if b.payload {
			i := e.conn.Info(w.net.Now())
			return !t.hosts[0].checksums && !t.hosts[1].checksums || i.Fallback != mptcp.NoFallback
		}
	}
	return false
}

// judge says what is wrong with how the connections ended.
func (w *faultWorld) judge() error {
	if w.wrong != nil {
		return w.wrong
	}
	for i := range w.pairs {
		if err := w.judgePair(i); err != nil {
			return fmt.Errorf("connection %d: %w", i, err)
		}
	}
	return nil
}

// judgePair judges a connection.
func (w *faultWorld) judgePair(i int) error {
	pair := w.pairs[i]
	excuse := w.excuse(i)
	rude := w.trouble.conns[i].ends[0].rude() || w.trouble.conns[i].ends[1].rude()
	for _, e := range pair {
		rude = rude || e != nil && e.rude
	}
	for side, e := range pair {
		if e == nil {
			if side == 1 && excuse == "" && !rude && pair[0] != nil {
				return errors.New("the server never got it")
			}
			continue
		}
		if err := e.judgeError(pair[1-side], excuse, rude); err != nil {
			return err
		}
		if err := e.judgeStream(pair[1-side]); err != nil && !w.deceived(e) {
			return err
		}
	}
	return nil
}

// judgeError judges why an end's connection ended.
func (e *faultEnd) judgeError(peer *faultEnd, excuse string, rude bool) error {
	who := e.w.hosts[e.side].Name()
	if e.failed != nil && e.failed != e.err && !errors.Is(e.failed, net.ErrClosed) {
		return fmt.Errorf("the %s was told %v, and when the connection was over %v", who, e.failed, e.err)
	}
	right := e.err == nil
	switch {
	case e.lastWordLost(peer) && (errors.Is(e.err, mptcp.ErrReset) || errors.Is(e.err, mptcp.ErrTimeout)):
		right = true
	case excuse == "" && !rude:
	case errors.Is(e.err, mptcp.ErrAborted):
		right = e.rude
	case errors.Is(e.err, mptcp.ErrReset), errors.Is(e.err, mptcp.ErrTimeout):
		right = true
	case errors.Is(e.err, mptcp.ErrRefused), errors.Is(e.err, mptcp.ErrNoPath), errors.Is(e.err, mptcp.ErrPathRemoved):
		right = excuse != ""
	case errors.Is(e.err, mptcp.ErrProtocol):
		right = excuse != ""
	}
	if !right {
		return fmt.Errorf("the %s's error is %v (excuse: %q, rude: %v)", who, e.err, excuse, rude)
	}
	return nil
}

// lastWordLost reports whether both streams came through and the peer has closed in order, but the last acknowledgment could not arrive
// because a path was cut then, or losses ate all repetitions: no protocol can help that.
func (e *faultEnd) lastWordLost(peer *faultEnd) bool {
	if peer == nil || !peer.closed || peer.err != nil || peer.got != e.written || !e.ended || e.got != peer.written || !peer.ended {
		return false
	}
	for _, c := range e.w.cuts {
		if c.at >= e.begun && c.at <= e.closedAt {
			return true
		}
	}
	return e.w.trouble.paths[e.w.trouble.survivor].mayLoseHandshake() // as few packets as those of a handshake may be all there is
}

// judgeStream judges what an end read: at the end of the stream everything that the peer sent before it ended it in order; and a connection
// that ended without error carried both streams whole.
func (e *faultEnd) judgeStream(peer *faultEnd) error {
	who := e.w.hosts[e.side].Name()
	if peer == nil {
		if e.got > 0 || e.eof {
			return fmt.Errorf("the %s read from nobody", who)
		}
		return nil
	}
	if e.eof && (!peer.ended || e.got != peer.written) {
		return fmt.Errorf("the %s's stream ended after %d bytes; the peer wrote %d and ended it: %v", who, e.got, peer.written, peer.ended)
	}
	if e.err == nil && !e.rude && !peer.rude && e.got != peer.plan.send {
		return fmt.Errorf("the %s's connection ended in order after %d of %d bytes", who, e.got, peer.plan.send)
	}
	return nil
}

// excuse says why connection i may fail though nobody aborted it; "" if it may not.
func (w *faultWorld) excuse(i int) string {
	t := w.trouble
	fell := false
	for _, e := range w.pairs[i] {
		fell = fell || e != nil && e.fellBack
	}
	for _, b := range t.boxes {
		if b.harm == harmsAll {
			return "a middlebox may force a reset"
		}
	}
	if t.harmOf(t.survivor) != harmless && !t.plainTCP() {
		return "a middlebox is on the only path that is sure to survive"
	}
	for _, c := range w.cuts {
		if fell {
			return "plain TCP, and a path was cut"
		}
		for _, j := range c.unready {
			if i == j {
				return "a path was cut before other subflows were possible"
			}
		}
	}
	if t.hosts[1].noJoin {
		for path := range t.paths {
			if t.harmOf(path) != harmless {
				return "a middlebox may be on the only path, because joins are not wanted"
			}
		}
	}
	if w.stacks[1].Counters().CookiesSent > 0 {
		return "a server that answers with cookies resets what comes before the third packet"
	}
	if n := w.stacks[1].Counters(); w.pairs[i][1] == nil && n.HalfOpenExpired+n.HalfOpenEvicted > 0 {
		return "the third packet did not come while the server waited for it"
	}
	if e := w.pairs[i][0]; e != nil && !e.established() && t.paths[t.survivor].mayLoseHandshake() {
		return "the handshake may be lost"
	}
	return ""
}

// established reports whether the connection was ever there.
func (e *faultEnd) established() bool { return e.conn.LocalAddr().IsValid() }

// plainTCP reports whether no connection is MPTCP by configuration.
func (t *trouble) plainTCP() bool { return t.hosts[0].plain || t.hosts[1].plain }

// look checks the bounds on memory, whenever a packet has arrived.
func (w *faultWorld) look(now clock.Time, side int) {
	s := w.stacks[side]
	h := &w.trouble.hosts[side]
	for _, p := range w.pairs {
		e := p[side]
		if e == nil || e.closed {
			continue
		}
		limit := h.receiveLimit()
		if n, _ := e.conn.OutOfOrder(); n > limit {
			w.fail("connection %d %d: %d bytes out of order, the receive buffer is %d", e.index, side, n, limit)
		}
	}
	if w.looks++; w.looks%64 != 0 {
		return
	}
	w.lookAll(now, side, s, h)
}

// receiveLimit is the most that the receive buffer may become. Buffers that are tuned are 64 KiB at least (tcp.ReceiveBuffer).
func (h *troubleHost) receiveLimit() int64 {
	switch {
	case h.receive == 0:
		return 64 << 20
	case h.fixedWindow:
		return h.receive
	}
	return max(h.receive, 64<<10)
}

// lookAll checks what takes longer.
func (w *faultWorld) lookAll(now clock.Time, side int, s *mptcp.Stack, h *troubleHost) {
	windows := int64(0)
	for _, p := range w.pairs {
		e := p[side]
		if e == nil || e.closed {
			continue
		}
		i := e.conn.Info(now)
		windows += i.ReceiveBuffer + 16<<10
		if n := i.Written - i.Acked; n > i.SendLimit {
			w.fail("connection %d %d: %d bytes written and not acknowledged, the limit is %d", e.index, side, n, i.SendLimit)
		}
		room := i.ReceiveBuffer
		if i.Fallback != mptcp.NoFallback {
			room *= 2 // what was discarded in front of an infinite mapping had moved TCP's own edge
		}
		if n := i.Readable + i.OutOfOrder; n > room {
			w.fail("connection %d %d: %d bytes in a receive buffer of %d", e.index, side, n, i.ReceiveBuffer)
		}
		if i.Received-i.Read != i.Readable && !e.rude {
			w.fail("connection %d %d: %d received, %d read, %d readable", e.index, side, i.Received, i.Read, i.Readable)
		}
	}
	limit := h.stackMemory
	if limit == 0 {
		limit = 1 << 30
	}
	if m := s.Memory(); m > limit+4*windows { // chunks may be four times as large as what is in them
		w.fail("host %d uses %d bytes, the limit is %d", side, m, limit)
	}
}
