package netsim

import (
	"errors"
	"io"
	"time"

	"braid/clock"
	"braid/mptcp"
)

// faultEnd is the application at one end of a connection.
type faultEnd struct {
	w     *faultWorld
	index int // of the connection
	side  int
	conn  *mptcp.Conn
	plan  *troubleEnd
	peer  *troubleEnd

	written  int64
	got      int64
	begun    clock.Time
	finished bool // it has written everything, and ended its stream
	ended    bool // it ended its stream in order, by CloseWrite or Close
	rude     bool // it ended the connection otherwise
	eof      bool
	closed   bool // EventClosed came
	closedAt clock.Time
	err      error // of EventClosed
	failed   error // of Read or Write: EventClosed comes with the same
	fellBack bool
	joined   bool // there was more than one subflow

	paused bool
	writes *Timer
	reads  *Timer
}

// newFaultEnd makes the end of connection i on a side.
func newFaultEnd(w *faultWorld, i, side int, c *mptcp.Conn) *faultEnd {
	plan := &w.trouble.conns[i]
	e := &faultEnd{w: w, index: i, side: side, conn: c, plan: &plan.ends[side], peer: &plan.ends[1-side], begun: w.net.Now()}
	c.User = e
	e.writes = w.net.NewTimer(func(now clock.Time) {
		e.paused = false
		e.progress(now)
		w.hosts[side].Touch()
	})
	e.reads = w.net.NewTimer(func(now clock.Time) {
		e.progress(now)
		w.hosts[side].Touch()
	})
	return e
}

// salt is where in the pattern the bytes of a connection and direction begin: each stream has others.
func faultSalt(conn, side int) int64 { return int64(conn*2+side) * 7919 }

// accepted takes another connection to the same port: a client that was fooled about the first one may have opened it, if middleboxes or
// NATs interfere with handshakes.
func (e *faultEnd) accepted(now clock.Time, c *mptcp.Conn) { c.Abort(now) }

// begin starts what the application does once the connection is there.
func (e *faultEnd) begin(now clock.Time) {
	e.begun = now
	if e.plan.abortAtS >= 0 {
		e.w.net.At(now.Add(time.Duration(e.plan.abortAtS*1e9)), func(now clock.Time) {
			if !e.closed {
				e.rude = true
				e.conn.Abort(now)
				e.w.hosts[e.side].Touch()
			}
		})
	}
	e.progress(now)
}

// handle takes an event.
func (e *faultEnd) handle(now clock.Time, ev mptcp.Event) {
	if e.closed {
		e.w.fail("connection %d %d: event %v after EventClosed", e.index, e.side, ev.Kind)
	}
	switch ev.Kind {
	case mptcp.EventConnected:
		e.begin(now)
	case mptcp.EventReadable, mptcp.EventWritable:
		e.progress(now)
	case mptcp.EventSubflowUp:
		e.joined = e.joined || ev.Subflow > 0
	case mptcp.EventClosed:
		e.closed, e.closedAt, e.err = true, now, ev.Err
		e.fellBack = e.conn.Info(now).Fallback != mptcp.NoFallback
		e.pull(now)
		e.conn.Close(now)
	}
}

// progress reads and writes what is possible.
func (e *faultEnd) progress(now clock.Time) {
	if e.closed {
		return
	}
	e.pull(now)
	e.push(now)
	if e.eof && e.finished && !e.rude {
		e.conn.Close(now)
	}
}

// allowed is how much may have been sent by now.
func (e *faultEnd) allowed() int64 {
	p := e.plan
	switch {
	case p.afterEOF && !e.eof:
		return 0
	case p.after == 0:
		return p.send
	}
	pieces := e.got / p.after
	if e.side == 0 {
		pieces++ // the client asks first
	}
	return min(p.send, pieces*p.piece)
}

// push writes.
func (e *faultEnd) push(now clock.Time) {
	allowed := e.allowed()
	for e.written < allowed && !e.paused && !e.finished && !e.rude {
		at := e.written + faultSalt(e.index, e.side)
		n, err := e.conn.Write(now, patternAt(at, int(min(int64(e.plan.write), allowed-e.written, chunkRoom))))
		e.written += int64(n)
		if errors.Is(err, mptcp.ErrWouldBlock) {
			return
		}
		if err != nil {
			e.failed = err
			return
		}
		if e.plan.pause > 0 {
			e.paused = true
			e.writes.Set(now.Add(e.plan.pause))
		}
	}
	if e.written < e.plan.send || e.paused || e.finished || e.rude || e.plan.afterEOF && !e.eof {
		return
	}
	e.finished, e.ended = true, true
	if e.plan.hasty && e.peer.send == 0 {
		e.conn.Close(now)
		return
	}
	e.conn.CloseWrite(now)
}

// pull reads.
func (e *faultEnd) pull(now clock.Time) {
	var buf [64 << 10]byte
	for !e.eof && !e.rude {
		room := int64(min(e.plan.read, len(buf)))
		if !e.closed {
			if room = e.room(now, room); room == 0 {
				return
			}
		}
		n, err := e.conn.Read(now, buf[:room])
		if n > 0 {
			e.check(buf[:n])
			e.got += int64(n)
		}
		switch {
		case err == io.EOF:
			e.eof = !e.hasty()
			return
		case errors.Is(err, mptcp.ErrWouldBlock):
			if e.closed {
				e.w.fail("connection %d %d: Read would block after EventClosed", e.index, e.side)
			}
			return
		case err != nil:
			e.failed = err
			return
		}
		if e.plan.closeAt >= 0 && e.got >= e.plan.closeAt && !e.closed {
			e.rude, e.ended = true, true
			e.conn.Close(now)
		}
	}
}

// hasty reports whether the application closed without waiting for the end of the peer's stream.
func (e *faultEnd) hasty() bool { return e.plan.hasty && e.peer.send == 0 && e.finished }

// room is how much a slow reader, or one that stops, may read now.
func (e *faultEnd) room(now clock.Time, room int64) int64 {
	p := e.plan
	if p.stopRead >= 0 {
		room = min(room, p.stopRead-e.got)
		if room == 0 {
			e.stop(now)
			return 0
		}
	}
	if p.readRate > 0 {
		due := int64(p.readRate*now.Sub(e.begun).Seconds()) - e.got
		if due <= 0 {
			e.reads.Set(now.Add(time.Duration(max(5e7, float64(1-due)/p.readRate*1e9))))
			return 0
		}
		room = min(room, due)
	}
	return room
}

// stop closes a little later, when more has come that is not read.
func (e *faultEnd) stop(now clock.Time) {
	e.rude = true
	e.w.net.At(now.Add(300*time.Millisecond), func(now clock.Time) {
		if !e.closed {
			e.ended = true
			e.conn.Close(now)
			e.w.hosts[e.side].Touch()
		}
	})
}

// check compares what was read with what was sent.
func (e *faultEnd) check(b []byte) {
	peer := e.w.pairs[e.index][1-e.side]
	if e.got+int64(len(b)) > e.peer.send || peer != nil && e.got+int64(len(b)) > peer.written {
		e.w.suspect(e, "connection %d %d: read %d bytes, more than were sent", e.index, e.side, e.got+int64(len(b)))
		return
	}
	want := patternAt(e.got+faultSalt(e.index, 1-e.side), len(b))
	for i := range b {
		if b[i] != want[i] {
			e.w.suspect(e, "connection %d %d: byte %d is wrong", e.index, e.side, e.got+int64(i))
			return
		}
	}
}
