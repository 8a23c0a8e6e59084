package mptcp

import (
	"net"

	"braid/clock"
)

const (
	minSendLimit = 256 << 10 // what an application may write ahead before anything is known of the paths
	// leastRoom may be written by every connection with an empty buffer, whatever the Stack's memory: it can always go on.
	leastRoom = 16 << 10
)

// Write appends p to the outgoing stream, as much of it as there is room for, and returns how much. With less than all it
// also returns ErrWouldBlock, and EventWritable follows when there is room again. After CloseWrite, Close or Abort it returns
// net.ErrClosed, after the end of the connection the reason.
func (c *Conn) Write(now clock.Time, p []byte) (int, error) {
	switch {
	case c.closed || c.fin.queued:
		return 0, net.ErrClosed
	case c.state == connOver:
		if c.err == nil {
			return 0, net.ErrClosed
		}
		return 0, c.err
	case len(p) == 0:
		return 0, nil
	}
	n := int(min(int64(len(p)), c.room()))
	if n > 0 {
		idle := c.snd.waiting() == 0
		first := c.snd.stuckAt == clock.Never
		c.snd.buf.Append(p[:n])
		if first {
			c.noteStuck(now)
			c.stack.rearm(c)
		}
		if idle {
			c.stack.wake(c)
		}
	}
	if n < len(p) {
		c.snd.short = true
		return n, ErrWouldBlock
	}
	return n, nil
}

// room returns how many bytes Write would take.
func (c *Conn) room() int64 {
	if c.fin.queued || c.closed || c.state == connOver {
		return 0
	}
	used := c.snd.buf.Len()
	room := c.snd.limit - used
	if free := c.stack.cfg.StackMemory - c.stack.Memory(); free < room {
		room = min(room, max(free, leastRoom-used))
	}
	return max(0, room)
}

// signalWritable emits EventWritable if a Write came short and it is worth trying again.
func (c *Conn) signalWritable() {
	if !c.snd.short {
		return
	}
	if c.snd.limit < c.stack.cfg.SendBuffer {
		c.tuneSendLimit()
	}
	if c.state != connOver && c.room() < min(c.snd.limit/4, leastRoom) {
		return
	}
	c.snd.short = false
	c.stack.emit(Event{Kind: EventWritable, Conn: c})
}

// tuneSendLimit lets the application write ahead twice what can be on its way: data stays buffered until it is DATA_ACKed, and
// the DATA_ACK of what a fast subflow delivered may have to wait for what a slow one carries (RFC 8684, Section 3.3.5). So each
// window counts as often as it turns over in the longest round-trip time.
func (c *Conn) tuneSendLimit() {
	longest := c.rtt(0)
	var sum float64
	for _, sf := range c.subflows {
		if sf.state != active {
			continue
		}
		turns := 1.0
		if srtt := sf.tcp.SRTT(); srtt > 0 && longest > srtt {
			turns = float64(longest) / float64(srtt)
		}
		sum += float64(sf.tcp.Window()) * turns
	}
	if limit := int64(min(2*sum, float64(c.stack.cfg.SendBuffer))); limit > c.snd.limit {
		c.snd.limit = limit
	}
}
