package tcp

import (
	"time"

	"braid/clock"
	"braid/congestion"
)

// sampler estimates the delivery rate as draft-cheng-iccrg-delivery-rate-estimation-02 does: each transmission is stamped with
// the state of delivery when it left; an ACK of it tells how much was delivered since, and in what time.
type sampler struct {
	delivered   int64      // bytes delivered on the subflow (C.delivered)
	deliveredAt clock.Time // when delivered last grew (C.delivered_time)
	firstSent   clock.Time // sending time of the packet whose delivery was learnt last (C.first_sent_time)
	weighted    float64    // bytes delivered, each times the weight of its transmission
	limited     int64      // delivered must pass this for the application limit to be over; 0: not limited (C.app_limited)
	nextRound   int64      // a sampled packet sent at or after this count opens a round

	s rateSample
}

// rateSample is the sample that the current ACK builds: the stamps of the packet delivered by it that was sent last.
type rateSample struct {
	valid          bool
	sentAt         clock.Time
	end            int64
	priorDelivered int64
	priorAt        clock.Time
	priorWeighted  float64
	sendInterval   time.Duration
	appLimited     bool
	retransmission bool
}

// begin starts a new busy period: nothing was outstanding (draft, Section 3.1.2.2).
func (m *sampler) begin(now clock.Time) { m.firstSent, m.deliveredAt = now, now }

// stamp notes the state of delivery in a record that leaves now.
func (m *sampler) stamp(r *record, now clock.Time, weight float64) {
	r.sentAt = now
	r.firstSent = m.firstSent
	r.deliveredAt = m.deliveredAt
	r.delivered = m.delivered
	r.weighted = m.weighted
	r.weight = weight
	r.appLimited = m.limited != 0
}

// start prepares for an ACK.
func (m *sampler) start() { m.s.valid = false }

// deliver counts a record that the ACK delivers (draft, Section 3.1.2.3: UpdateRateSample). Of several the sample is the one sent last.
func (m *sampler) deliver(r *record) {
	if !r.counted {
		m.delivered += r.space()
		m.weighted += float64(float64(r.space()) * r.weight)
	}
	s := &m.s
	if s.valid && !sentAfter(r.sentAt, r.end(), s.sentAt, s.end) {
		return
	}
	*s = rateSample{
		valid: true, sentAt: r.sentAt, end: r.end(),
		priorDelivered: r.delivered, priorAt: r.deliveredAt, priorWeighted: r.weighted,
		sendInterval: r.sentAt.Sub(r.firstSent),
		appLimited:   r.appLimited, retransmission: r.retransmitted,
	}
}

// finish fills in what the sample knows after an ACK; acked is what it delivered (GenerateRateSample).
func (m *sampler) finish(now clock.Time, acked int64, minRTT time.Duration, out *congestion.Sample) {
	if m.limited != 0 && m.delivered > m.limited {
		m.limited = 0
	}
	if acked > 0 {
		m.deliveredAt = now
	}
	out.Delivered = m.delivered
	s := &m.s
	if !s.valid {
		out.PriorDelivered = m.delivered
		return
	}
	m.firstSent = s.sentAt
	out.PriorDelivered = s.priorDelivered
	out.Weighted = m.weighted - s.priorWeighted
	out.AppLimited = s.appLimited
	out.Retransmission = s.retransmission
	if s.priorDelivered >= m.nextRound {
		m.nextRound = m.delivered
		out.RoundStart = true
	}
	// The longer of the two intervals: ACKs may be compressed, sending may be bunched (draft, Section 3.1.1). One shorter than
	// the minimum RTT cannot be true.
	if interval := max(s.sendInterval, now.Sub(s.priorAt)); interval >= minRTT {
		out.Interval = interval
	}
}

// limit marks the flow as limited by the application until what is in flight now is delivered (draft, Section 3.2).
func (m *sampler) limit(inFlight int64) { m.limited = max(m.delivered+inFlight, 1) }

// sentAfter orders transmissions by time, those of one instant by sequence (RFC 8985, Section 6.2, RACK_sent_after).
func sentAfter(t1 clock.Time, end1 int64, t2 clock.Time, end2 int64) bool {
	return t1 > t2 || t1 == t2 && end1 > end2
}
