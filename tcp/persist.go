package tcp

import "braid/clock"

// persist is the timer that asks about a closed window (RFC 9293, Section 3.8.6.1): it runs while there is something to send,
// the peer's window forbids it, and nothing is outstanding that would bring an ACK.
type persist struct {
	at         clock.Time
	began      clock.Time // when this closed window was first waited for
	backoff    int
	unanswered int  // probes since the peer was heard last
	due        bool // an empty probe is to be sent
	override   bool // the window is open but small: send what fits (the override timeout of silly-window avoidance)

	probes int64 // sent since the start
}

func (p *persist) init() { *p = persist{at: clock.Never, probes: p.probes} }

// stop ends the wait: the window opened, or there is nothing left to send.
func (p *persist) stop() { p.init() }

// windowClosed reports whether the persist timer has something to wait for: what was pushed, or what the owner would push.
func (s *sender) windowClosed() bool {
	if s.q.outstanding() {
		return false
	}
	if !s.q.hasUnsent() {
		return s.blocked || s.more && !s.worthSending(s.pushedEnd, s.nextLen())
	}
	r := &s.q.slab[s.q.at(s.q.unsent)]
	return !s.worthSending(r.start, min(r.space(), int64(s.mss)))
}

// armPersist starts the timer if the window is closed and it does not run: the first probe leaves after one RTO, those
// after it after twice as long each (RFC 9293, Section 3.8.6.1).
func (s *sender) armPersist(now clock.Time) {
	p := &s.persist
	switch {
	case !s.windowClosed():
		if !p.override || !s.q.hasUnsent() && !s.more { // an override lasts until it is used
			p.stop()
		}
	case p.at == clock.Never && !p.due:
		if p.backoff == 0 {
			p.began = now
		}
		p.at = now.Add(s.rtt.backedOff(p.backoff))
	}
}

// persistExpired asks for a probe: of what fits into the window, or an empty one. It reports whether to give up, which is only if
// probes stay unanswered.
func (s *sender) persistExpired(now clock.Time) (giveUp bool) {
	p := &s.persist
	p.at = clock.Never
	if !s.windowClosed() {
		p.stop()
		return false
	}
	if s.exhausted(now, p.unanswered, max(p.began, s.heardAt)) {
		return true
	}
	// What fits into a small window leaves now. If it has not been pushed, the owner is asked for it (canSend), and an empty
	// probe leaves in case that a window of its own stops him.
	p.override = s.edge > s.sentEnd
	p.due = !p.override || !s.q.hasUnsent()
	return false
}

// wantsWindowProbe reports whether an empty probe shall leave.
func (s *sender) wantsWindowProbe(clock.Time) bool { return s.persist.due }

// windowProbeSent notes that it left.
func (s *sender) windowProbeSent(now clock.Time) {
	p := &s.persist
	p.due = false
	p.probes++
	p.backoff++
	p.unanswered++
	p.at = now.Add(s.rtt.backedOff(p.backoff))
}

// setBlocked says whether the owner has data that the connection-level window forbids. Then the persist timer asks for a
// window update just as for the subflow's own window.
func (s *sender) setBlocked(blocked bool) {
	if s.blocked != blocked {
		s.blocked = blocked
		s.armPersist(s.now)
	}
}
