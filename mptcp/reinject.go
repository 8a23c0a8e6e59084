package mptcp

import (
	"time"

	"braid/clock"
	"braid/seq"
	"braid/trace"
	"braid/wire"
)

const (
	// minDataRTO is the least time that data may stay without a DATA_ACK before the data-level timer looks for what is missing.
	minDataRTO = 200 * time.Millisecond
	maxDataRTO = 60 * time.Second
	// dataRTOBytes is how much one data-level timeout sends again at most.
	dataRTOBytes = 64 << 10
	// strippedRounds data-level timeouts in a row, with the subflow acknowledging all the while and no DSS coming back, mean
	// that a middlebox removes the options.
	strippedRounds = 3
	// soleRounds data-level timeouts pass before anything is sent again on the only subflow there ever was, in the first window.
	// A peer that acknowledges there and does not DATA_ACK got no mappings. It may fall back any moment (missingDSS), and would
	// take what is sent again for the stream's next bytes; it gives up waiting for mappings in less time (maxUnmappedWait).
	soleRounds = 4
)

// takeReleased gives back to the send buffer what tcp let go of.
func (c *Conn) takeReleased(now clock.Time, sf *Subflow) {
	ch, ok := sf.tcp.NextReleased()
	if !ok {
		return
	}
	var to int64
	for ; ok; ch, ok = sf.tcp.NextReleased() {
		if whole, ok := sf.data.carried.release(ch); ok {
			c.snd.buf.Release(whole.Start, int(whole.Len()))
		}
		to = ch.ID + int64(ch.Len)
		if !c.snd.reinject.Empty() {
			c.snd.reinject.Remove(seq.Range{Start: ch.ID, End: to}) // it has arrived: nobody else need bring it
		}
		if ch.ID <= c.snd.acked() && to > c.snd.acked() {
			c.snd.sink = sf.path
		}
		sf.data.dssBytes += int64(ch.Len)
		if c.fb.sending && ch.Start >= c.fb.infinite && to > c.snd.acked() {
			// Under the infinite mapping the subflow's acknowledgment is that of the data (RFC 8684, Section 3.7).
			c.dataAcked(now, to)
			c.hs.plain = c.fb.active // the declaration has arrived: no option is sent any more
		}
	}
}

// takeLost asks the scheduler about what tcp found lost: besides the retransmission on the same subflow it may be offered to
// the others, once.
func (c *Conn) takeLost(now clock.Time, sf *Subflow) {
	for ch, ok := sf.tcp.NextLost(); ok; ch, ok = sf.tcp.NextLost() {
		sf.data.stats.lostBytes += int64(ch.Len)
		if len(c.subflows) > 1 && !c.fb.any() {
			c.offer(now, sf, seq.Range{Start: ch.ID, End: ch.ID + int64(ch.Len)}, trace.ReinjectLoss, true)
		}
	}
}

// offer queues the part of r for reinjection that is not DATA_ACKed, that no other live subflow carries and that sf has not
// offered before: each range once for each subflow that fails it. ask lets the scheduler decide.
func (c *Conn) offer(now clock.Time, sf *Subflow, r seq.Range, cause int64, ask bool) {
	offered := &sf.data.stale.offered
	offered.RemoveBefore(c.snd.acked())
	r.Start = max(r.Start, c.snd.acked())
	for !r.Empty() {
		gap := offered.FirstGap(r)
		if gap.Empty() {
			return
		}
		gap, r = c.notElsewhere(sf, gap, r)
		if gap.Empty() {
			continue
		}
		if ask && !c.sched.OnLost(now, sf.id, gap) {
			continue
		}
		offered.Add(gap)
		c.queueReinjection(now, sf, gap, cause)
	}
}

// notElsewhere returns the first part of gap that no other live subflow carries, and what of r comes after the part looked at.
func (c *Conn) notElsewhere(sf *Subflow, gap, r seq.Range) (seq.Range, seq.Range) {
	r.Start = gap.End
	for _, other := range c.subflows {
		if other == sf || !other.usable() || other.data.stale.overdue {
			continue
		}
		carried := &other.data.carried.data
		if !carried.Overlaps(gap) {
			continue
		}
		free := carried.FirstGap(gap)
		if free.Empty() {
			return free, r
		}
		// Go on behind the free part later: it is at most a few ranges.
		gap, r.Start = free, free.End
	}
	return gap, r
}

// queueReinjection puts r into the queue of what needs another carrier (RFC 8684, Section 3.3.6).
func (c *Conn) queueReinjection(now clock.Time, sf *Subflow, r seq.Range, cause int64) {
	c.snd.reinject.Add(r)
	c.snd.reinjected = true
	c.stack.counters.Reinjections++
	id := int16(-1)
	if sf != nil {
		id = int16(sf.id)
	}
	c.trace(now, id, trace.Reinjection, r.Start, r.End, cause)
	c.stack.wake(c)
}

// offerAll offers everything that sf carries.
func (c *Conn) offerAll(now clock.Time, sf *Subflow, cause int64, ask bool) {
	d := &sf.data.carried.data
	for i := 0; i < d.Count(); i++ {
		c.offer(now, sf, d.At(i), cause, ask)
	}
}

// abandon takes back what sf carried when it is gone: at once it is for the others (RFC 8684, Section 3.3.6).
func (c *Conn) abandon(now clock.Time, sf *Subflow) {
	for ch, ok := sf.tcp.NextReleased(); ok; ch, ok = sf.tcp.NextReleased() {
		if whole, ok := sf.data.carried.release(ch); ok {
			c.snd.buf.Release(whole.Start, int(whole.Len()))
		}
	}
	if c.state == connOpen && !c.fb.any() {
		carried := &sf.data.carried.data
		for i := range carried.Count() {
			for r := carried.At(i); !r.Empty(); {
				var gap seq.Range
				if gap, r = c.notElsewhere(sf, r, r); !gap.Empty() {
					c.queueReinjection(now, sf, gap, trace.ReinjectClosed)
				}
			}
		}
	}
	sf.data.carried.drain(func(id int64, n int) { c.snd.buf.Release(id, n) })
}

// dropWorstHolder resets the subflow that holds the most memory of data that was DATA_ACKed long ago. It will not be missed:
// what it carries has arrived another way.
func (c *Conn) dropWorstHolder(now clock.Time) {
	var worst *Subflow
	var most int64
	for _, sf := range c.subflows {
		if n := sf.data.carried.heldBelow(c.snd.acked()); n > most {
			worst, most = sf, n
		}
	}
	if worst == nil || len(c.subflows) < 2 {
		return
	}
	reason := wire.ResetTooMuchData
	if worst.data.stale.timedOut {
		reason = wire.ResetPerformance
	}
	c.stack.counters.HeldResets++
	c.stack.drop(now, worst, reason, true)
}

// dataProgress follows up on a DATA_ACK that moved.
func (c *Conn) dataProgress(now clock.Time) {
	s := &c.snd
	s.movedAt, s.backoff = now, 0
	c.noteStuck(now)
	if s.acked() >= s.tuneAt {
		c.tuneSendLimit()
		s.tuneAt = s.acked() + s.limit/8
	}
	if !s.inFlight() {
		s.rtoAt = clock.Never
	}
	s.sink = -1 // what is the oldest data now, nobody has swallowed yet
	if s.recoverTo > s.acked() {
		c.resendOldest(now)
	}
}

// swallows reports whether sf runs over a path that took the oldest data and did not deliver it, so that what is missing had
// better go over another one: there a middlebox removes mappings, say, and every attempt would end like the last.
func (c *Conn) swallows(sf *Subflow) bool {
	s := &c.snd
	if s.recoverTo <= s.acked() || sf.path != s.sink {
		return false
	}
	for _, other := range c.subflows {
		if other.path != s.sink && other.usable() && (!other.isBackup() || sf.isBackup()) {
			return true // a backup would not be asked as long as sf is there
		}
	}
	return false
}

// armDataRTO starts the data-level timer if data is in flight and it does not run.
func (c *Conn) armDataRTO(now clock.Time) {
	if c.snd.rtoAt == clock.Never && !c.fb.sending {
		c.snd.movedAt = now
		c.snd.rtoAt = now.Add(c.dataRTO())
	}
}

// dataRTO is the data-level timeout: the longest of the subflows', so that a subflow's own recovery comes first, doubled each
// time (RFC 8684, Section 3.3.6).
func (c *Conn) dataRTO() time.Duration {
	d := time.Duration(minDataRTO)
	for _, sf := range c.subflows {
		if sf.usable() {
			d = max(d, sf.tcp.RTO())
		}
	}
	return min(d<<min(c.snd.backoff, 16), maxDataRTO)
}

// dataTimeout looks for data that no subflow will bring: acknowledged below and never DATA_ACKed, because the peer had to drop
// it, or a proxy took it and failed.
func (c *Conn) dataTimeout(now clock.Time) {
	s := &c.snd
	s.rtoAt = clock.Never
	if !s.inFlight() || c.fb.sending {
		return
	}
	due := s.movedAt.Add(c.dataRTO())
	if due > now {
		s.rtoAt = due // a DATA_ACK came meanwhile
		return
	}
	if c.strippedInPlace() {
		c.setFallback(now, FallbackNoDataAck)
		c.signalWritable()
		return
	}
	if c.stripped(now) {
		return
	}
	if c.soleAndYoung() {
		s.backoff++
		s.movedAt = now
		s.rtoAt = now.Add(c.dataRTO())
		return
	}
	s.recoverTo = s.next
	if c.resendOldest(now) {
		s.backoff++
		c.stack.counters.DataTimeouts++
	}
	s.movedAt = now
	s.rtoAt = now.Add(c.dataRTO())
}

// soleAndYoung reports whether nothing may be sent again under a new mapping now (see soleRounds).
func (c *Conn) soleAndYoung() bool {
	return c.everActive <= 1 && c.snd.acked() <= youngBytes && c.snd.backoff < soleRounds
}

// resendOldest queues the oldest data for reinjection if no live subflow carries it, and reports whether it did.
func (c *Conn) resendOldest(now clock.Time) bool {
	s := &c.snd
	r := seq.Range{Start: s.acked(), End: min(s.firstUnsent(), s.acked()+dataRTOBytes)}
	r.End = s.reinject.FirstGap(r).End
	if r.Empty() || s.reinject.Contains(r.Start) {
		return false
	}
	for _, sf := range c.subflows {
		carried := &sf.data.carried.data
		if !sf.up() || len(c.subflows) > 1 && (sf.data.stale.timedOut || sf.data.stale.overdue) {
			continue
		}
		if carried.Contains(r.Start) {
			return false // its own recovery will bring it
		}
		if first := carried.FirstIn(r); !first.Empty() {
			r.End = first.Start
		}
	}
	if r.Empty() {
		return false
	}
	c.queueReinjection(now, nil, r, trace.ReinjectTimeout)
	return true
}

// strippedInPlace reports whether the peer may have fallen back: ACKs have come without any DSS, and all that it got fits the
// first window, within which a host follows a fallback (see missingDSS; RFC 8684, Section 3.7). Data that was sent again under
// a new mapping would then be taken for the stream's next bytes: falling back too is the only way to go on.
func (c *Conn) strippedInPlace() bool {
	if len(c.subflows) != 1 || !c.inPlace() || c.rcv.next > 1 || c.snd.acked() > youngBytes {
		return false
	}
	sf := c.subflows[0]
	return sf.initial && sf.state == active && sf.data.dssBytes > 0 && sf.data.lastDSS < sf.data.stale.heardAt
}

// stripped resets subflows whose ACKs have come without any DSS for several data-level timeouts: a middlebox removes the
// options, so what is sent there never counts (RFC 8684, Section 3.7). On the only subflow there ever was it does so at the
// first: the peer may have fallen back, and would take what is sent again under its old numbers for new data.
func (c *Conn) stripped(now clock.Time) bool {
	if c.snd.backoff < strippedRounds && c.everActive > 1 {
		return false
	}
	for _, sf := range c.subflows {
		if sf.state == active && sf.data.dssBytes > 0 && sf.data.lastDSS < sf.data.stale.heardAt {
			c.stack.counters.StrippedResets++
			c.stack.drop(now, sf, wire.ResetMiddlebox, false)
			return true
		}
	}
	return false
}
