package mptcp

import (
	"braid/clock"
	"braid/wire"
)

// fillReset adds MP_FASTCLOSE and MP_FAIL to a RST where they belong (RFC 8684, Sections 3.5 and 3.7). Room is never short: a
// RST has nothing else but MP_TCPRST.
func (c *Conn) fillReset(sf *Subflow, seg *wire.Segment) {
	if c.fb.active || c.hs.plain {
		return
	}
	if c.fastClose && sf.state != synSent {
		// RFC 8684, Section 3.5: the option carries the receiver's key.
		seg.Options |= wire.OptMPFastClose
		seg.FastClose.Receiver = c.hs.peerKey
	}
	if sf.data.failDue {
		seg.Options |= wire.OptMPFail
		seg.Fail.DataSeq = c.hs.peerIDSN.At(sf.data.fail)
		sf.data.failDue = false
		c.stack.counters.FailsSent++
	}
}

// takeFastClose obeys an MP_FASTCLOSE, on an ACK or on a RST, if it carries our key: every subflow is reset and the connection
// fails. It reports whether it did; with a wrong key nothing happens beyond what a RST does to its own subflow (RFC 8684,
// Section 3.5).
func (c *Conn) takeFastClose(now clock.Time, sf *Subflow, seg *wire.Segment) bool {
	if !wire.MACEqual(seg.FastClose.Receiver[:], c.hs.localKey[:]) {
		c.stack.counters.FastClosesRefused++
		return false
	}
	c.stack.counters.FastClosesReceived++
	c.end(now, ErrReset)
	return true
}
