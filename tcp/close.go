package tcp

import (
	"time"

	"braid/clock"
	"braid/wire"
)

const defaultMSL = 30 * time.Second

// teardown is how far the closing of a Conn has come.
type teardown struct {
	at         clock.Time // end of TIME-WAIT, or of FIN-WAIT-2 when nobody reads any more; Never: neither
	finWanted  bool       // CloseWrite came before the connection was established
	readClosed bool       // Close: payload that arrives now is nobody's
	aborting   bool       // a RST is to be polled, then the state is CLOSED
}

// CloseWrite ends the outgoing stream: a FIN follows everything that was pushed (RFC 9293, Section 3.10.4). Receiving goes on.
// Before the connection is established it waits for that.
func (c *Conn) CloseWrite(now clock.Time) {
	switch {
	case c.end.aborting:
	case c.state == SynSent || c.state == SynReceived:
		c.end.finWanted = true
	case c.state == Established:
		c.snd.pushFIN()
		c.setState(FinWait1)
	case c.state == CloseWait:
		c.snd.pushFIN()
		c.setState(LastAck)
	}
}

// Close is CloseWrite by an owner who will not read either. What has arrived and was not taken yet, or arrives from now
// on, makes a RST: the peer must learn that it was lost (RFC 9293, Section 3.6.1; RFC 2525, Section 2.17).
func (c *Conn) Close(now clock.Time) {
	if c.end.aborting || c.state == Closed {
		return
	}
	c.end.readClosed = true
	switch {
	case c.state == SynSent:
		c.closed(nil) // RFC 9293, Section 3.10.4: delete the TCB
	case c.rcv.ready != nil || !c.rcv.queue.Empty():
		c.Abort(now)
	case c.state == FinWait2:
		c.end.at = now.Add(2 * c.msl())
	default:
		c.CloseWrite(now)
	}
}

// Abort gives the connection up: the next poll yields a RST, and then the state is CLOSED. There is no RST when the peer
// knows nothing of the connection or is done with it (RFC 9293, Section 3.10.5; in CLOSING and LAST-ACK one is sent,
// since our FIN may have been lost and the peer be waiting).
func (c *Conn) Abort(now clock.Time) { c.giveUp(ErrAborted) }

// giveUp is Abort with a reason.
func (c *Conn) giveUp(err error) {
	switch {
	case c.state == Closed || c.end.aborting:
	case c.state == SynSent || c.state == TimeWait:
		c.closed(err)
	default:
		c.err = err
		c.end.aborting = true
	}
}

// closed enters CLOSED. What was received in order can still be taken.
func (c *Conn) closed(err error) {
	if c.err == nil {
		c.err = err
	}
	c.setState(Closed)
	c.end.aborting, c.syn.due = false, false
	c.end.at, c.syn.at, c.keep.at, c.mtu.at = clock.Never, clock.Never, clock.Never, clock.Never
	c.rcv.acked()
	c.rcv.drop(c.cfg.Pool)
}

// Err returns why the Conn closed or is about to: nil while it is open and after an orderly close.
func (c *Conn) Err() error { return c.err }

func (c *Conn) msl() time.Duration {
	if c.cfg.MSL > 0 {
		return c.cfg.MSL
	}
	return defaultMSL
}

// finAcked follows the acknowledgment of our FIN (RFC 9293, Section 3.10.7.4, fifth check).
func (c *Conn) finAcked(now clock.Time) {
	switch c.state {
	case FinWait1:
		c.setState(FinWait2)
		if c.end.readClosed {
			// Nobody waits for the peer's FIN. RFC 9293 sets no limit; two segment lifetimes are enough for one on its way.
			c.end.at = now.Add(2 * c.msl())
		}
	case Closing:
		c.enterTimeWait(now)
	case LastAck:
		c.closed(nil)
	}
}

// peerFIN follows the peer's FIN, which was reached in order (RFC 9293, Section 3.10.7.4, eighth check).
func (c *Conn) peerFIN(now clock.Time) {
	switch c.state {
	case Established:
		c.setState(CloseWait)
	case FinWait1:
		c.setState(Closing)
	case FinWait2:
		c.enterTimeWait(now)
	}
}

func (c *Conn) enterTimeWait(now clock.Time) {
	c.setState(TimeWait)
	c.keep.at, c.mtu.at = clock.Never, clock.Never
	c.restartTimeWait(now)
}

// restartTimeWait waits two maximum segment lifetimes from now on (RFC 9293, Section 3.6.1).
func (c *Conn) restartTimeWait(now clock.Time) { c.end.at = now.Add(2 * c.msl()) }

// teardownTimeout ends TIME-WAIT, or a FIN-WAIT-2 that nobody reads from.
func (c *Conn) teardownTimeout() {
	c.end.at = clock.Never
	if c.state == TimeWait {
		c.closed(nil)
	} else {
		c.closed(ErrTimeout)
	}
}

// AcceptsNewSYN reports whether a SYN may take over this Conn's ports: it is in TIME-WAIT and the SYN can be no duplicate
// of an old one, because its timestamp or its sequence number is higher than any the peer has used here (RFC 9293,
// Section 3.6.1; RFC 6191, Section 2). The owner then forgets this Conn and accepts the SYN.
func (c *Conn) AcceptsNewSYN(seg *wire.Segment) bool {
	if c.state != TimeWait || seg.Flags&(wire.SYN|wire.ACK|wire.RST) != wire.SYN {
		return false
	}
	if seg.Has(wire.OptTimestamps) {
		if !c.ts.on {
			return true
		}
		if d := int32(seg.TSVal - c.ts.recent); d != 0 {
			return d > 0
		}
	}
	return c.irs.At(c.rcv.nxt).Before(seg.Seq) || seg.Seq == c.irs.At(c.rcv.nxt)
}
