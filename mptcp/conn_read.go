package mptcp

import (
	"net"
	"time"

	"braid/buffer"
	"braid/clock"
	"braid/tcp"
)

// receiveStream is the incoming half of a connection in data offsets: what came in order waits in queue for the application,
// what did not in ooo.
type receiveStream struct {
	next  int64 // first data offset not received: our DATA_ACK
	edge  int64 // the highest right edge advertised: nothing at or beyond it is accepted (RFC 8684, Section 3.3.1)
	queue buffer.Queue
	ooo   buffer.Reassembly

	window  tcp.ReceiveBuffer
	fixed   int64      // Config.FixedReceiveWindow: the size; 0: window decides
	told    int64      // fixed: right edge last advertised
	gapAt   clock.Time // when the out-of-order queue last began to wait: at its first chunk, or when a gap was closed
	ack64   bool       // DATA_ACKs go as 64 bits because the peer's mappings do
	signals bool       // EventReadable was emitted since the last Read
}

func (r *receiveStream) init(cfg *Config) {
	r.next = 1
	if cfg.FixedReceiveWindow {
		r.fixed = cfg.ReceiveBuffer
	} else {
		r.window = tcp.NewReceiveBuffer(cfg.InitialReceive, cfg.ReceiveBuffer)
	}
	r.edge = 1 + r.size()
}

// size returns the size of the receive buffer now.
func (r *receiveStream) size() int64 {
	if r.fixed > 0 {
		return r.fixed
	}
	return r.window.Size()
}

// advertise returns the window to advertise beside a DATA_ACK of next, and remembers that it was. When memory is short nothing
// is promised beyond what was, but that a connection with an empty queue can always go on.
func (r *receiveStream) advertise(short bool) int64 {
	var n int64
	if short {
		n = r.edge - r.next
		if r.queue.Empty() {
			n = max(n, min(leastRoom, r.size()))
		}
	} else if r.fixed > 0 {
		n = max(r.fixed-r.queue.Bytes(), r.edge-r.next)
	} else {
		n = r.window.Window(r.queue.Bytes())
	}
	r.edge = max(r.edge, r.next+n)
	return n
}

// announced says that a segment with what advertise returned left.
func (r *receiveStream) announced() {
	if r.fixed > 0 {
		r.told = r.edge
		return
	}
	r.window.Announced()
}

// wantsUpdate reports whether the window has opened so much that an ACK should say so.
func (r *receiveStream) wantsUpdate() bool {
	if r.fixed == 0 {
		return r.window.WantsUpdate(r.queue.Bytes())
	}
	fresh := r.fixed - r.queue.Bytes()
	return fresh > 0 && fresh >= 2*(r.told-r.next)
}

// Read copies what was received in order into p and returns how much. It returns ErrWouldBlock if nothing is there now, io.EOF
// after the end of the peer's stream, and why the connection ended after that. After Close it returns net.ErrClosed.
func (c *Conn) Read(now clock.Time, p []byte) (int, error) {
	if c.closed {
		return 0, net.ErrClosed
	}
	c.rcv.signals = false
	if c.rcv.queue.Empty() {
		if c.fin.peerReached || c.state == connOver {
			return 0, c.readError()
		}
		return 0, ErrWouldBlock
	}
	n := c.rcv.queue.Read(c.stack.pool, p)
	c.stats.read += int64(n)
	if c.state != connOpen || c.fin.peerReached {
		return n, nil
	}
	if c.rcv.fixed == 0 && c.mayGrow() {
		c.rcv.window.OnRead(now, int64(n), c.receiveRTT())
	}
	if c.rcv.wantsUpdate() && (c.mayGrow() || c.rcv.queue.Empty()) {
		c.announceWindow(now)
	}
	return n, nil
}

// receiveRTT returns the largest round-trip time of the subflows as the receiving side sees it.
func (c *Conn) receiveRTT() time.Duration {
	var most time.Duration
	for _, sf := range c.subflows {
		if !sf.usable() {
			continue
		}
		rtt := sf.tcp.ReceiverRTT()
		if rtt <= 0 {
			rtt = sf.tcp.SRTT()
		}
		most = max(most, rtt)
	}
	return most
}

// mayGrow reports whether receive windows may still grow: not when the Stack's memory is nearly used up.
func (c *Conn) mayGrow() bool {
	return c.stack.Memory() < c.stack.cfg.StackMemory/4*3
}

// announceWindow sends an ACK that tells of the reopened window, on the subflow that was heard last.
func (c *Conn) announceWindow(now clock.Time) {
	var best *Subflow
	for _, sf := range c.subflows {
		if sf.state != active && sf.state != closing {
			continue
		}
		if best == nil || sf.data.stale.heardAt > best.data.stale.heardAt {
			best = sf
		}
	}
	if best != nil {
		best.tcp.RequestAck(now)
		c.stack.wake(c)
	}
}

// signalReadable emits EventReadable unless the application knows already and has not read since.
func (c *Conn) signalReadable() {
	if c.rcv.signals || c.closed {
		return
	}
	c.rcv.signals = true
	c.stack.emit(Event{Kind: EventReadable, Conn: c})
}
