package tcp

import (
	"time"

	"braid/clock"
	"braid/congestion"
	"braid/trace"
)

// senderTrace reports what the sender does to a Sink. Without a Sink every method is a nil check.
type senderTrace struct {
	sink    trace.Sink
	conn    uint32
	subflow int16
	phase   string      // reported last
	e       trace.Event // here so that it does not escape to the heap each time
}

func (tr *senderTrace) init(cfg *Config) {
	*tr = senderTrace{sink: cfg.Trace, conn: cfg.ConnID, subflow: int16(cfg.Subflow)}
}

func (tr *senderTrace) event(now clock.Time, k trace.Kind, v [trace.MaxValues]int64) {
	tr.e = trace.Event{Time: now, Conn: tr.conn, Subflow: tr.subflow, Kind: k, V: v}
	tr.sink.Trace(&tr.e)
}

// traceAck reports a sample, and the controller's state at each round and each change of phase.
func (s *sender) traceAck(now clock.Time) {
	if s.trace.sink == nil {
		return
	}
	x := &s.sample
	s.trace.event(now, trace.AckSample, [trace.MaxValues]int64{
		x.Acked, x.Lost, int64(x.RTT), int64(x.SRTT), s.window(), x.InFlight, int64(x.Rate()), trace.Bool(x.AppLimited)})
	if st := s.ctl.State(); x.RoundStart || st.Phase != s.trace.phase {
		s.trace.phase = st.Phase
		s.trace.event(now, trace.Congestion, [trace.MaxValues]int64{
			trace.PhaseCode(st.Phase), s.ctlWindow, st.Threshold, int64(st.Bandwidth), int64(s.pacer.rate), int64(st.MinRTT),
			int64(st.PacingGain*1000 + 0.5), int64(st.WindowGain*1000 + 0.5)})
	}
}

func (s *sender) traceEnter(now clock.Time, cause congestion.Cause) {
	if s.trace.sink != nil {
		s.trace.event(now, trace.RecoveryEnter, [trace.MaxValues]int64{int64(cause), s.ctlWindow, s.inFlight(), s.point})
	}
}

func (s *sender) traceExit(now clock.Time, undone bool) {
	if s.trace.sink != nil {
		s.trace.event(now, trace.RecoveryExit, [trace.MaxValues]int64{
			s.window(), s.inFlight(), int64(now.Sub(s.began)), trace.Bool(undone)})
	}
}

// traceRTO reports an expiry with the timeout that ran out.
func (s *sender) traceRTO(now clock.Time, timeout time.Duration, inFlight int64) {
	if s.trace.sink != nil {
		s.trace.event(now, trace.RTO, [trace.MaxValues]int64{int64(timeout), int64(s.backoff), inFlight, s.ackedEnd})
	}
}

func (s *sender) traceTLP(now clock.Time, t *transmission) {
	if s.trace.sink != nil {
		s.trace.event(now, trace.TLP, [trace.MaxValues]int64{
			t.Start, int64(t.Len), int64(s.tlpTimeout()), trace.Bool(!t.Retransmission)})
	}
}
