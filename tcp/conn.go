package tcp

import (
	"braid/buffer"
	"braid/clock"
	"braid/seq"
	"braid/wire"
)

const (
	defaultInitialWindow = 64 << 10
	defaultSYNRetries    = 7  // 255 s: RFC 9293, Section 3.8.3 wants R2 to be at least 3 minutes for a SYN
	maxWindowScale       = 14 // RFC 7323, Section 2.3
)

// Conn is one TCP connection. Make it with Dial or Accept; package documentation says how to drive it. It is not safe for
// concurrent use.
type Conn struct {
	cfg    Config
	state  State
	active bool // opened by Dial
	more   bool // the owner has more than it pushed
	err    error

	iss, irs seq.Number
	opts     negotiation
	syn      handshake
	snd      sender
	rcv      receiver
	ts       timestamps
	mtu      pathMTU
	keep     keepalive
	end      teardown
	limit    limiter
	reply    reply
	peer     peerWindow

	lastHeard  clock.Time // last acceptable segment
	challenges int64
	pawsDrops  int64
	sackIn     [4]seq.Range // blocks of the segment at hand, as offsets
}

// Dial begins an active open: the SYN is polled.
func Dial(now clock.Time, cfg Config) *Conn {
	c := newConn(now, cfg)
	c.active = true
	c.setState(SynSent)
	c.syn.due = true
	return c
}

// Accept begins a passive open with the peer's SYN: the SYN/ACK is polled. Payload on the SYN is not taken; the peer sends it
// again. The ports are those of the configuration.
func Accept(now clock.Time, cfg Config, syn *wire.Segment) *Conn {
	c := newConn(now, cfg)
	c.setState(SynReceived)
	c.irs = syn.Seq
	c.negotiate(now, syn)
	c.lastHeard = now
	c.syn.due = true
	return c
}

func newConn(now clock.Time, cfg Config) *Conn {
	c := &Conn{cfg: cfg, iss: cfg.ISS}
	if c.cfg.InitialWindow <= 0 {
		c.cfg.InitialWindow = defaultInitialWindow
	}
	if c.cfg.Pool == nil {
		c.cfg.Pool = new(buffer.Pool)
	}
	c.mtu.init(&c.cfg)
	c.rcv.init(c.cfg.InitialWindow, int(c.mtu.offered))
	c.ts.offset, c.ts.start = cfg.TimestampOffset, now
	c.syn.init(now, &c.cfg)
	c.keep.at, c.end.at = clock.Never, clock.Never
	c.limit = limiter{tokens: challengeBurst, at: now}
	c.lastHeard = now
	c.snd.init(now, &c.cfg, c.MSS(), !cfg.NoSACK, !cfg.NoTimestamps)
	return c
}

// NextReceived returns the next chunk of received payload in subflow order, its Start being a subflow offset; nil: there is none.
// The chunk is the caller's, who releases it to the Config's Pool. It works in CLOSED too.
func (c *Conn) NextReceived() *buffer.Chunk {
	chunk := c.rcv.next()
	if chunk == nil && c.state == Closed {
		c.rcv.drop(c.cfg.Pool)
	}
	return chunk
}

// NextReleased returns the next sent chunk, or part of a chunk, that the peer acknowledged cumulatively; ID and Start are
// advanced to the part. false: there is none.
func (c *Conn) NextReleased() (Chunk, bool) { return c.snd.nextReleased() }

// NextLost returns the next chunk, or part of one, that was marked lost since the last call. false: there is none.
func (c *Conn) NextLost() (Chunk, bool) { return c.snd.nextLost() }

// CanSend reports whether a new full segment, or all that SetTail told of, could leave now: state, congestion window, the peer's window and the pacer
// allow it and no retransmission waits. It is also true when a tail loss probe wants new payload.
func (c *Conn) CanSend(now clock.Time) bool {
	return pushStates.has(c.state) && !c.end.aborting && c.snd.canSend(now)
}

// SendRoom returns how many new bytes could leave now, by the windows and the pacer's burst.
func (c *Conn) SendRoom(now clock.Time) int64 {
	if !pushStates.has(c.state) || c.end.aborting {
		return 0
	}
	return c.snd.room(now)
}

// PayloadRoom returns the payload bytes of a full segment beside reserve option bytes of the owner's. It changes with the path
// MTU, and is larger once when a larger packet is to be probed.
func (c *Conn) PayloadRoom(reserve int) int {
	used := c.optionsLen() + pad4(reserve)
	if c.mtu.probe.wanted {
		return c.mtu.room(c.mtu.probe.size) - used
	}
	return c.mtu.base - used
}

// Push appends a chunk of n > 0 bytes to the outgoing stream. It panics after CloseWrite. A chunk longer than PayloadRoom
// leaves in several segments.
func (c *Conn) Push(id int64, n int) {
	if n <= 0 || c.end.finWanted || !states(SynSent, SynReceived, Established, CloseWait, Closed).has(c.state) {
		panic("tcp: Push of nothing or behind the FIN")
	}
	if c.state != Closed {
		c.snd.push(id, n)
	}
}

// SetMore says whether the owner has more to send than it pushed: rate samples of a sender without more are marked
// application-limited, Nagle's algorithm holds back, and the last segment has PSH set.
func (c *Conn) SetMore(more bool) {
	if c.more != more {
		c.more = more
		c.snd.setMore(more)
	}
}

// SetTail says how many bytes the owner has to send, so that CanSend knows what fits into a window of less than a segment: the last of the data
// leaves if all of it does (RFC 9293, Section 3.8.6.2.1). 0: it may be as much as a segment.
func (c *Conn) SetTail(n int64) { c.snd.tail = n }

// SetBlocked says that the owner has data that it did not push because a window of the peer's forbids it, the one that CanSend knows or
// one that several Conns share. While nothing is outstanding the window is then probed (RFC 9293, Section 3.8.6.1).
func (c *Conn) SetBlocked(blocked bool) { c.snd.setBlocked(blocked) }

// RequestAck makes a poll yield an ACK without payload, behind what has to leave before it. The owner calls it for options
// that want a carrier, and when the receive window has opened enough that the peer should know.
func (c *Conn) RequestAck(now clock.Time) {
	c.rcv.ackNow()
	c.rcv.forced = true
}

// SetWindow says how many bytes beyond RCV.NXT the owner can take: the next segments advertise as much, rounded down to
// units of the window scale. Payload is accepted up to the highest right edge ever advertised, also after a smaller n.
func (c *Conn) SetWindow(n int64) { c.rcv.setLimit(n) }

// HandleTimeout does what is due.
func (c *Conn) HandleTimeout(now clock.Time) {
	if c.state == Closed || c.end.aborting {
		return
	}
	if c.syn.at <= now {
		c.synTimeout(now)
	}
	if c.rcv.at <= now {
		c.rcv.at = clock.Never
		c.rcv.ackNow()
	}
	if sendStates.has(c.state) && c.snd.nextTimeout() <= now {
		if c.snd.timeout(now) {
			c.giveUp(ErrTimeout)
			return
		}
		c.blackHole(now)
	}
	if c.keep.at <= now {
		c.keepAliveTimeout(now)
	}
	if c.mtu.at <= now {
		c.mtuTimeout(now)
	}
	if c.end.at <= now {
		c.teardownTimeout()
	}
}

// NextTimeout returns when HandleTimeout is to be called; clock.Never: no timer runs.
func (c *Conn) NextTimeout() clock.Time {
	if c.state == Closed || c.end.aborting {
		return clock.Never
	}
	t := min(c.rcv.at, c.syn.at, c.keep.at, c.mtu.at, c.end.at)
	if sendStates.has(c.state) {
		t = min(t, c.snd.nextTimeout())
	}
	return t
}
