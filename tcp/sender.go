package tcp

import (
	"time"

	"braid/clock"
	"braid/congestion"
	"braid/seq"
)

// ackInput is what an acceptable segment with the ACK bit tells the sender. The numbers are unwrapped and have passed the
// checks of RFC 9293, Section 3.10.7.4 and RFC 5961, Section 5; an Ack below SND.UNA is welcome (its SACK blocks count).
type ackInput struct {
	Ack     int64         // offset that the peer expects next, at most SND.NXT
	SACK    []seq.Range   // blocks in the order of the option, as offsets; the first may be a D-SACK (RFC 2883)
	RTT     time.Duration // by the echoed timestamp; 0: none
	TSEcr   uint32
	HasTS   bool
	Edge    int64 // right edge of the peer's window by the newest window update (SND.WL1, SND.WL2); < 0: not updated by this segment
	Payload bool  // the segment carried payload or a FIN: it is no duplicate ACK (RFC 5681, Section 2)
}

// ackOutput is what an ACK did.
type ackOutput struct {
	NewData  bool  // SND.UNA advanced
	Acked    int64 // by so many bytes (a FIN counts as one)
	FINAcked bool  // our FIN is acknowledged
}

// transmission is a segment that next offers and that sent confirms.
type transmission struct {
	Chunk          Chunk // the pushed chunk that the bytes belong to
	Start          int64 // offset of the first byte (of the FIN, if Len is 0)
	Len            int   // payload bytes
	FIN            bool
	Retransmission bool
	rec            uint32 // the record's index in the queue
	probe          bool   // a tail loss probe
	mtuProbe       bool   // set by the caller before sent: its loss is no sign of congestion
	small          bool   // less than a full segment (Nagle)
}

// sender is the sending half of a Conn: what was sent, what of it was acknowledged or lost, and when the next segment may
// go. It sees no header and no payload.
//
// Its parts, one file each, keep one concern each: the queue of records with the scoreboard (sent.go), RTT and timeout (rtt.go), RACK
// (rack.go), the tail loss probe (tlp.go), PRR (prr.go), the delivery-rate sampler (sampler.go), the pacer (pacer.go),
// the persist timer (persist.go), the loss share (loss.go). The sender moves events between them: pushing and sending in
// sender_send.go, acknowledgements in sender_ack.go, the recovery states in recovery.go, timers in sender_timer.go.
//
// Invariants: ackedEnd <= sentEnd <= pushedEnd; the queue's records from head on tile [ackedEnd, pushedEnd).
type sender struct {
	ctl         congestion.Controller
	mss         int
	sack        bool
	timestamps  bool
	noDelay     bool
	userTimeout time.Duration
	tsOffset    uint32

	q       sentQueue
	rtt     rttEstimator
	rack    rack
	tlp     tlp
	prr     prr
	sampler sampler
	pacer   pacer
	loss    lossShare
	persist persist
	trace   senderTrace
	recovery

	ackedEnd  int64 // SND.UNA
	sentEnd   int64 // SND.NXT
	pushedEnd int64
	edge      int64 // right edge of the peer's window
	maxWindow int64 // the largest window the peer has offered (RFC 9293, Section 3.8.6.2.1)
	smallEnd  int64 // end of the last segment sent that was not full (Minshall's Nagle)
	finPushed bool
	more      bool  // the owner has more than it pushed
	tail      int64 // how much that is if it is less than a segment and will not become more soon; 0: a segment or more
	blocked   bool  // the owner's data waits for the connection-level window

	ownsRecovery bool // the controller's answers, as of the last event
	paced        bool
	ctlWindow    int64

	sample    congestion.Sample // of the ACK being handled; here so that it does not escape to the heap at each ACK
	newlyLost int64             // bytes marked lost since the controller was told last
	lostQueue []Chunk           // chunks newly marked lost, for the owner
	lostTaken int               // how many of them it has taken
	usage     windowUsage

	now        clock.Time // of the last event
	everSent   bool
	lastSent   clock.Time // last transmission
	lastAck    clock.Time // last delivery
	heardAt    clock.Time // last ACK of any kind
	progressAt clock.Time // SND.UNA advanced, or sending began
	rtoAt      clock.Time
	pacerAt    clock.Time // somebody was refused for the pacer's sake: wake him then
	trimAt     clock.Time // when an idle sender gives memory back
	backoff    int        // expiries of the retransmission timer in a row
	lostSYN    bool       // a SYN had to be repeated and no data has been delivered since

	stats senderStats
}

// senderStats counts for Info.
type senderStats struct {
	bytes, retransBytes                             int64
	segs, retransSegs, lostSegs, rtos, tlps, undone int64
}

// init prepares a sender with provisional values; established gives the negotiated ones.
func (s *sender) init(now clock.Time, cfg *Config, mss int, sack, timestamps bool) {
	*s = sender{
		ctl: cfg.Controller, mss: mss, sack: sack, timestamps: timestamps, noDelay: cfg.NoDelay,
		userTimeout: cfg.UserTimeout, tsOffset: cfg.TimestampOffset,
		ackedEnd: 1, sentEnd: 1, pushedEnd: 1, edge: 1,
		now: now, lastAck: now, heardAt: now, progressAt: now,
		rtoAt: clock.Never, pacerAt: clock.Never, trimAt: clock.Never,
	}
	s.q.init()
	s.rtt.init(cfg)
	s.rack.init()
	s.tlp.init()
	s.persist.init()
	s.trace.init(cfg)
	s.pacer.init(now, mss, cfg.PacingQuantum)
	s.refresh(now)
}

// synLost notes that a SYN or SYN/ACK had to be repeated. RFC 6298, Section 5.7: the timeout is 3 s when data starts.
func (s *sender) synLost() { s.lostSYN = true }

// established is called when the handshake is complete: edge is the first right edge of the peer's window, synRTT the
// handshake's round trip, 0 if a retransmission made it ambiguous.
func (s *sender) established(now clock.Time, mss int, sack, ts bool, edge int64, synRTT time.Duration) {
	s.now = now
	s.sack, s.timestamps = sack, ts
	s.lastAck, s.heardAt, s.progressAt = now, now, now
	if s.lostSYN {
		s.rtt.initial = max(s.rtt.initial, fallbackRTO)
	}
	if synRTT > 0 {
		s.rtt.sample(synRTT, 1)
		s.rtt.min.sample(now, synRTT)
	}
	if mss != s.mss {
		s.setMSS(mss)
	}
	s.setEdge(edge)
	s.refresh(now)
}

// setMSS changes the payload size of a full segment. Larger records are split when they are sent again.
func (s *sender) setMSS(mss int) {
	s.mss = mss
	s.pacer.mss = mss
	s.ctl.OnMSS(mss)
	s.refresh(s.now)
}

// setMore says whether the owner has more to send than it pushed.
func (s *sender) setMore(more bool) {
	s.more = more
	s.armPersist(s.now)
}

// penalise halves the window on the scheduler's wish.
func (s *sender) penalise(now clock.Time) {
	s.ctl.OnCongestion(now, congestion.Penalty, s.inFlight())
	s.refresh(now)
}

func (s *sender) una() int64          { return s.ackedEnd }  // SND.UNA
func (s *sender) nxt() int64          { return s.sentEnd }   // SND.NXT
func (s *sender) pushed() int64       { return s.pushedEnd } // end of what was pushed, the FIN included
func (s *sender) srtt() time.Duration { return s.rtt.srtt }
func (s *sender) backoffs() int       { return s.backoff }

// rto returns the retransmission timeout with the current back-off.
func (s *sender) rto() time.Duration { return s.rtt.backedOff(s.backoff) }

// inFlight returns the bytes sent and neither acknowledged, SACKed nor thought lost. Without SACK each duplicate ACK stands for
// a segment that has left the network (RFC 5681, Section 3.2).
func (s *sender) inFlight() int64 {
	return max(s.q.bytes[recFlying]-s.renoSacked, 0)
}

// window returns the congestion window in force. RFC 5681, Section 3.1: after a lost SYN the initial window is one segment.
func (s *sender) window() int64 {
	if s.lostSYN {
		return min(s.ctlWindow, int64(s.mss))
	}
	if s.state == stateRecovery && !s.ownsRecovery {
		return s.prr.window
	}
	return s.ctlWindow
}

// refresh takes the controller's answers after an event.
func (s *sender) refresh(now clock.Time) {
	s.ctlWindow = s.ctl.Window()
	s.ownsRecovery = s.ctl.OwnsRecovery()
	rate := s.ctl.PacingRate()
	if s.paced = rate > 0; !s.paced {
		rate = s.defaultRate()
	}
	s.pacer.setRate(now, rate)
}

// refreshSent does so after OnSend; the default rate changes only with acknowledgements.
func (s *sender) refreshSent(now clock.Time) {
	s.ctlWindow = s.ctl.Window()
	if s.paced {
		s.pacer.setRate(now, s.ctl.PacingRate())
	}
}

// defaultRate paces for a controller that does not: twice the window per round trip in the first half of slow start, so that
// it can double, and 1.2 times later, as Linux does.
func (s *sender) defaultRate() float64 {
	if s.rtt.srtt <= 0 {
		return 0
	}
	factor := 1.2
	if st := s.ctl.State(); st.Threshold == 0 || s.ctlWindow < st.Threshold/2 {
		factor = 2
	}
	w := max(s.window(), s.inFlight())
	return float64(factor*float64(w)) / seconds(s.rtt.srtt)
}

// info fills in what the sender knows.
func (s *sender) info(now clock.Time, i *Info) {
	i.SRTT, i.RTTVar, i.MinRTT, i.RTO = s.rtt.srtt, s.rtt.variation, s.rtt.min.value, s.rto()
	i.RecentRTT = s.rtt.recent
	i.Window, i.InFlight = s.window(), s.inFlight()
	i.PeerWindow = max(s.edge-s.ackedEnd, 0)
	i.Retrans = s.q.bytes[recLost]
	i.PacingRate, i.DeliveryRate = s.pacer.rate, s.sample.Rate()
	i.PacerAt = s.pacer.readyAt(now, s.mss)
	i.LastAck, i.Oldest = s.lastAck, s.oldest()
	i.Loss, i.Backoffs = s.loss.share(), s.backoff
	i.InRecovery = s.state >= stateRecovery
	i.WindowLimited = s.windowLimited()
	i.MSS, i.Reordering = s.mss, s.rack.reordering
	i.Delivered, i.SentBytes, i.RetransBytes = s.sampler.delivered, s.stats.bytes, s.stats.retransBytes
	i.SentSegs, i.RetransSegs, i.LostSegs = s.stats.segs, s.stats.retransSegs, s.stats.lostSegs
	i.RTOs, i.TLPs, i.SpuriousRecoveries = s.stats.rtos, s.stats.tlps, s.stats.undone
	i.Controller = s.ctl.State()
}

// oldest returns when the oldest outstanding segment was sent last, clock.Never if none is outstanding.
func (s *sender) oldest() clock.Time {
	switch {
	case s.q.flying.first != none:
		return s.q.slab[s.q.flying.first].sentAt
	case s.q.outstanding():
		return s.q.slab[s.q.at(s.q.head)].sentAt
	}
	return clock.Never
}

// nextReleased drains what the peer acknowledged cumulatively, in order.
func (s *sender) nextReleased() (Chunk, bool) { return s.q.release() }

// eachOutstanding calls f for every piece sent and not cumulatively acknowledged, in order, until f returns false.
func (s *sender) eachOutstanding(f func(c Chunk, sacked, lost bool) bool) {
	for p := s.q.head; p != s.q.unsent; p++ {
		r := &s.q.slab[s.q.at(p)]
		if r.size > 0 && !f(r.piece(), r.state == recSacked, r.state == recLost) {
			return
		}
	}
}
