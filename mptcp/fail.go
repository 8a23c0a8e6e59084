package mptcp

import (
	"time"

	"braid/clock"
	"braid/seq"
	"braid/wire"
)

// failWait is how long the infinite mapping is waited for after an MP_FAIL, beside a few round trips.
const failWait = 3 * time.Second

// failRepeats ACKs carry an MP_FAIL as long as it is not answered: any of them may be lost.
const failRepeats = 10

// checksumFailed handles a mapping whose checksum is wrong: somebody changed the payload on the way. The bytes are not
// delivered and not DATA_ACKed. With another subflow, or if falling back in place is impossible, this one is reset with MP_FAIL
// and the data comes again elsewhere. On the only subflow MP_FAIL goes on an ACK, and everything is discarded until the
// infinite mapping comes (RFC 8684, Section 3.7). When falling back has begun, the bytes are dropped: they come again under the
// infinite mapping.
//
// The bytes are the n chunks of the backlog from i on. It reports whether the others may be looked at.
func (c *Conn) checksumFailed(now clock.Time, sf *Subflow, i, n int, m *mapping) bool {
	d := &sf.data
	c.stack.counters.ChecksumErrors++
	if c.fb.any() {
		for ; n > 0; n-- {
			ch := d.backlog.chunks[i]
			d.backlog.remove(i, i+1)
			c.discard(ch)
		}
		return true
	}
	d.failDue, d.fail = true, m.data
	if !sf.initial || !c.inPlace() {
		c.stack.drop(now, sf, wire.ResetMiddlebox, true)
		return false
	}
	f := &c.fb
	f.failed, f.discard = true, true
	f.repeats = failRepeats
	f.failAt = now.Add(max(failWait, 8*sf.tcp.RTO()))
	for _, ch := range d.backlog.chunks {
		c.discard(ch)
	}
	d.backlog.chunks = d.backlog.chunks[:0]
	d.backlog.clear(c.stack.pool)
	sf.tcp.RequestAck(now)
	c.stack.rearm(c)
	return false
}

// takeFail obeys an MP_FAIL on an ACK: the peer could not use what we sent on its only subflow. What it has not DATA_ACKed is
// sent again under the infinite mapping, and it is told in turn that our side falls back, unless we said so first (RFC 8684,
// Section 3.7). Where falling back in place is impossible, because we know of more subflows than the peer, the subflow is reset
// instead.
func (c *Conn) takeFail(now clock.Time, sf *Subflow, _ seq.Data) {
	c.stack.counters.FailsReceived++
	if c.fb.sending {
		return
	}
	if !sf.initial || !c.inPlace() {
		c.stack.drop(now, sf, wire.ResetMiddlebox, true)
		return
	}
	if c.fb.reason == NoFallback {
		c.fb.reason = FallbackPeer
		c.noteFallback(now, FallbackPeer)
	}
	if !c.fb.failed {
		c.fb.failed = true
		c.fb.repeats = failRepeats
		sf.data.failDue, sf.data.fail = true, c.rcv.next
		sf.tcp.RequestAck(now)
	}
	c.startInfinite(now, sf)
}

// resumeAfterFail undoes a fall back that was announced and not begun: a second subflow came up, or the only one went. The one
// that failed is reset, as it would have been had there been two.
func (c *Conn) resumeAfterFail(now clock.Time, failed *Subflow) {
	if !c.fb.failed || c.fb.any() {
		return
	}
	c.fb.init()
	c.fb.failed, c.fb.discard = false, false
	if failed != nil {
		failed.data.failDue = true
		c.stack.drop(now, failed, wire.ResetMiddlebox, true)
	}
}

// failTimeout gives up waiting for the infinite mapping.
func (c *Conn) failTimeout(now clock.Time) {
	c.fb.failAt = clock.Never
	if !c.fb.receiving && len(c.subflows) > 0 {
		c.stack.drop(now, c.subflows[0], wire.ResetMiddlebox, false)
	}
}
