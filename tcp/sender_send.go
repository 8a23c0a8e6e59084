package tcp

import (
	"braid/clock"
	"braid/congestion"
)

// push appends a chunk of n bytes to what is to be sent.
func (s *sender) push(id int64, n int) {
	if s.finPushed {
		panic("tcp: push after the FIN")
	}
	if n <= 0 {
		panic("tcp: push of an empty chunk")
	}
	s.q.push(s.pushedEnd, id, n, false)
	s.pushedEnd += int64(n)
}

// pushFIN appends the FIN: to the last record if it has not left, else as one of its own.
func (s *sender) pushFIN() {
	if s.finPushed {
		return
	}
	s.finPushed = true
	if s.q.hasUnsent() {
		s.q.slab[s.q.at(s.q.tail-1)].fin = true
		s.q.bytes[recUnsent]++
	} else {
		s.q.push(s.pushedEnd, 0, 0, true)
	}
	s.pushedEnd++
}

// firstUnsent returns the payload bytes of the first record that has not been sent, 0 if there is none.
func (s *sender) firstUnsent() int {
	if !s.q.hasUnsent() {
		return 0
	}
	return int(s.q.slab[s.q.at(s.q.unsent)].size)
}

// fits reports whether n more bytes may be in flight. An empty path takes one segment whatever the window.
func (s *sender) fits(n int64) bool {
	flight := s.inFlight()
	return flight+n <= s.window() || flight == 0
}

// canSend reports whether a new full segment, or all that the owner has, could leave now, after everything that was pushed.
func (s *sender) canSend(now clock.Time) bool {
	s.now = now
	if s.finPushed || s.q.lost.first != none {
		return false
	}
	waiting := s.q.bytes[recUnsent]
	if !s.worthSending(s.pushedEnd, s.nextLen()) {
		s.armPersist(now)
		return false
	}
	if s.tlp.pending {
		return waiting == 0
	}
	if waiting > 0 { // that is polled for anyway: no wake-up
		n := waiting + int64(s.mss)
		return s.inFlight()+n <= s.window() && n <= s.pacer.room(now)
	}
	return s.fits(int64(s.mss)) && s.pass(now, s.mss)
}

// nextLen is the length of the segment that the owner would push next.
func (s *sender) nextLen() int64 {
	if s.tail > 0 && s.tail < int64(s.mss) {
		return s.tail
	}
	return int64(s.mss)
}

// room returns how many new bytes could leave now by windows and pacer, beside what was pushed.
func (s *sender) room(now clock.Time) int64 {
	if s.finPushed || s.q.lost.first != none {
		return 0
	}
	n := s.window() - s.inFlight()
	if s.inFlight() == 0 || s.tlp.pending {
		n = max(n, int64(s.mss))
	}
	n = min(n, s.pacer.room(now)) - s.q.bytes[recUnsent]
	return max(min(n, s.edge-s.pushedEnd), 0)
}

// pass asks the pacer. If it refuses, the sender wakes up when it will not.
func (s *sender) pass(now clock.Time, n int) bool {
	if s.pacer.ready(now, n) {
		return true
	}
	s.pacerAt = s.pacer.readyAt(now, n)
	return false
}

// worthSending is the sender's half of silly-window avoidance for a segment of n bytes at an offset.
//
// RFC 9293, Section 3.8.6.2.1: send if all of it fits the peer's window, or as much as half of the largest window seen.
// The override timeout is the persist timer's (persist.go).
func (s *sender) worthSending(start, n int64) bool {
	usable := s.edge - start
	return usable >= n || usable > 0 && (usable >= s.maxWindow/2 || s.persist.override)
}

// next offers the segment that shall leave now: lost data first, then a tail loss probe, then new data. maxLen is the
// payload that a segment may carry. It commits to nothing: sent does.
func (s *sender) next(now clock.Time, maxLen int, t *transmission) bool {
	s.now = now
	if s.q.lost.first != none {
		return s.nextRetransmission(now, maxLen, t)
	}
	if s.tlp.pending {
		return s.nextProbe(maxLen, t)
	}
	if s.q.hasUnsent() {
		return s.nextNew(now, maxLen, t)
	}
	s.noteAppLimited()
	return false
}

// nextRetransmission offers the first lost record. After a timeout the first one goes whatever window and pacer
// say (RFC 6298, Section 5.4).
func (s *sender) nextRetransmission(now clock.Time, maxLen int, t *transmission) bool {
	i := s.q.lost.first
	r := &s.q.slab[i]
	if !s.forced {
		n := min(r.space(), int64(maxLen)+1)
		if !s.fits(n) || !s.pass(now, int(n)) {
			return false
		}
	}
	return s.offer(t, s.q.find(r.start), maxLen)
}

// nextProbe offers a tail loss probe: new data if there is some and the peer's window allows, else the last record again
// (RFC 8985, Section 7.3). The congestion window does not count.
func (s *sender) nextProbe(maxLen int, t *transmission) bool {
	pos := s.q.unsent
	if !s.q.hasUnsent() || s.q.slab[s.q.at(pos)].end() > s.edge {
		pos--
	}
	if !s.offer(t, pos, maxLen) {
		return false
	}
	for t.Retransmission && t.rec != s.q.at(s.q.unsent-1) { // it was split: the probe is the very last piece
		s.offer(t, s.q.unsent-1, maxLen)
	}
	t.probe = true
	return true
}

// nextNew offers the first record that has not been sent, or as much of it as the peer's window takes.
func (s *sender) nextNew(now clock.Time, maxLen int, t *transmission) bool {
	r := &s.q.slab[s.q.at(s.q.unsent)]
	if !s.worthSending(r.start, min(r.space(), int64(maxLen))) {
		s.armPersist(now)
		return false
	}
	if s.nagle(r, maxLen) {
		s.noteAppLimited()
		return false
	}
	small := int(r.size) < maxLen
	n := min(int64(r.size), int64(maxLen), s.edge-r.start)
	if r.size > 0 && (!s.fits(n) || !s.pass(now, int(n))) {
		return false
	}
	if r.fin && r.end() > s.edge && n == int64(r.size) && n > 0 { // the data fits, the FIN behind it does not
		s.q.split(s.q.unsent, int(r.size))
	}
	if r.size > 0 {
		maxLen = int(n)
	}
	ok := s.offer(t, s.q.unsent, maxLen)
	t.small = small
	return ok
}

// nagle reports whether the last record is to be held because it is small: RFC 9293, Section 3.7.4 in Minshall's form (as
// Linux): only while another small segment is unacknowledged, and not if more follows or the FIN is on it.
func (s *sender) nagle(r *record, maxLen int) bool {
	return !s.noDelay && !s.more && int(r.size) < maxLen && !r.fin && s.q.tail-s.q.unsent == 1 && s.smallEnd > s.ackedEnd
}

// offer describes the record at a position, cut to maxLen.
func (s *sender) offer(t *transmission, pos uint32, maxLen int) bool {
	i := s.q.at(pos)
	if n := int(s.q.slab[i].size); n > maxLen {
		if maxLen <= 0 {
			return false
		}
		s.q.split(pos, maxLen)
	}
	r := &s.q.slab[i]
	*t = transmission{
		Chunk: r.chunk(), Start: r.start, Len: int(r.size), FIN: r.fin,
		Retransmission: r.state != recUnsent, rec: i,
	}
	return true
}

// sent confirms that the offered segment leaves now.
func (s *sender) sent(now clock.Time, t *transmission) {
	s.now = now
	if !s.q.outstanding() {
		s.sampler.begin(now)
		s.progressAt = now
		if s.everSent {
			// RFC 5681, Section 4.1: idle is counted from the last transmission.
			s.ctl.OnRestart(now, now.Sub(s.lastSent), s.rto())
		}
	}
	weight := s.ctl.OnSend(congestion.Send{Now: now, Bytes: t.Len, InFlight: s.inFlight(), SRTT: s.rtt.srtt, Retransmission: t.Retransmission})
	r := &s.q.slab[t.rec]
	if t.Retransmission {
		s.noteRetransmission(now, t, r)
	} else {
		r.mtuProbe = t.mtuProbe
		s.q.unsent++
		s.sentEnd = r.end()
		if t.small {
			s.smallEnd = s.sentEnd
		}
	}
	s.sampler.stamp(r, now, weight)
	s.q.move(t.rec, recFlying)
	s.noteUsage()
	s.countSent(t)
	s.everSent, s.lastSent = true, now
	s.refreshSent(now)
	s.pacer.spend(now, t.Len)
	s.prr.sent(r.space())
	s.armAfterSend(now, t)
}

// noteRetransmission updates what only retransmissions touch.
func (s *sender) noteRetransmission(now clock.Time, t *transmission, r *record) {
	r.retransmitted, r.mtuProbe = true, false
	s.forced = false
	s.undo.onRetransmit()
	if !s.retransmissionOutstanding(s.ackedEnd) {
		s.retransStamp = s.tsval(now)
	}
	s.retransEnd = max(s.retransEnd, r.end())
	if t.rec == s.q.at(s.q.head) {
		s.restartRTO(now)
	}
}

func (s *sender) countSent(t *transmission) {
	s.stats.segs++
	s.stats.bytes += int64(t.Len)
	if t.Retransmission {
		s.stats.retransSegs++
		s.stats.retransBytes += int64(t.Len)
	}
}

// noteAppLimited marks the rate samples that follow if it is the application that leaves the path idle: nothing to send,
// nothing waiting to be retransmitted, and room in the window (draft-cheng-iccrg-delivery-rate-estimation, Section 3.2).
func (s *sender) noteAppLimited() {
	if !s.more && s.q.lost.first == none && s.inFlight()+int64(s.mss) <= s.window() {
		s.sampler.limit(s.inFlight())
	}
}

// windowUsage remembers how far the window was used in the last round trip, for controllers that grow only a window that limits.
type windowUsage struct {
	limited bool
	most    int64 // most bytes outstanding, if not limited
	end     int64 // SND.NXT when this was noted: the round lasts until it is acknowledged
}

// noteUsage keeps the strongest sign of a round: window-limited, or else the most that was outstanding.
func (s *sender) noteUsage() {
	u := &s.usage
	flight := s.inFlight()
	limited := flight+int64(s.mss) > s.window()
	if s.ackedEnd >= u.end || limited || !u.limited && flight > u.most {
		*u = windowUsage{limited, flight, s.sentEnd}
	}
}

// windowLimited reports whether the window limited sending in the last round. In slow start half a window in use will do,
// because it is about to double.
func (s *sender) windowLimited() bool {
	if s.usage.limited {
		return true
	}
	if s.ctlWindow >= 2*s.usage.most {
		return false
	}
	th := s.ctl.State().Threshold
	return th == 0 || s.ctlWindow < th
}
