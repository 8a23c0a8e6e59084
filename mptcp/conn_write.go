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
		if c.snd.buf.Len() == 0 {
			c.snd.stuckAt = now
		}
		c.snd.buf.Append(p[:n])
		if idle {
			c.stack.wake(c)
			c.armStuck(now)
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
		room = max(free, leastRoom-used)
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

// tuneSendLimit lets the application write ahead twice what the subflows send in the longest of their round-trip times: data
// stays buffered until it is DATA_ACKed, and what went over a fast subflow waits for what went over the slowest (RFC 8684,
// Section 3.3.5; RFC 6182, Section 5.3 has the same product for the receiver).
func (c *Conn) tuneSendLimit() {
	var windows, longest, rate float64 // bytes, seconds, bytes per second
	for _, sf := range c.subflows {
		if !sf.usable() {
			continue
		}
		w := float64(sf.tcp.Window())
		windows += w
		if rtt := sf.tcp.SRTT().Seconds(); rtt > 0 {
			longest = max(longest, rtt)
			rate += w / rtt
		}
	}
	limit := int64(2 * max(windows, rate*longest))
	c.snd.limit = min(max(c.snd.limit, limit), c.stack.cfg.SendBuffer)
}
