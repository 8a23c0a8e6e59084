// Package congestion answers one question per subflow: how fast may it send?
//
// A Controller is one subflow's answer: a congestion window and a pacing rate, computed from the events
// that the subflow's TCP reports. A Group is one connection's set of Controllers and the only place where
// subflows know of each other: coupled algorithms couple there. Controllers hold values only: no pointer
// to a connection, no clock, no random source but the stream they were given. Loss detection, recovery
// (PRR), pacing and rate sampling are mechanisms of package tcp and are not found here.
//
// Sizes are in bytes, rates in bytes per second. Nothing here is safe for concurrent use.
package congestion

import (
	"math/rand/v2"
	"time"

	"braid/clock"
)

// Config is what a Controller knows of its subflow from the start.
type Config struct {
	MSS           int        // full payload bytes per packet, at least 1; OnMSS reports a change
	InitialWindow int        // packets; 0 means 10 (RFC 6928)
	Rand          *rand.Rand // the subflow's own stream; must not be nil for controllers that draw (BBR)
}

// Cause says why a congestion event is reported.
type Cause uint8

// The causes.
const (
	Loss    Cause = iota // loss found by RACK or duplicate ACKs, once per window (RFC 5681, Section 3.2)
	ECN                  // congestion experienced echoed
	Timeout              // the retransmission timer expired (RFC 6298, Section 5)
	Penalty              // the scheduler asks for a halved window (v0.9x penalisation)
)

// Send describes one transmission, reported just before it leaves.
type Send struct {
	Now            clock.Time
	Bytes          int           // payload bytes
	InFlight       int64         // before this packet
	SRTT           time.Duration // smoothed RTT so far, the handshake's sample included; <= 0: none yet
	Retransmission bool
}

// Sample is what one ACK told: the delivery-rate sample of draft-cheng-iccrg-delivery-rate-estimation
// and the counts that loss-based controllers need. Only plain values.
type Sample struct {
	Now clock.Time

	Delivered      int64         // bytes delivered on the subflow up to and including this ACK
	PriorDelivered int64         // Delivered when the newest packet acknowledged here was sent
	Weighted       float64       // weighted bytes delivered since that packet was sent
	Interval       time.Duration // the longer of the send and the ACK interval; <= 0: no rate sample
	PriorInFlight  int64         // bytes in flight before this ACK
	InFlight       int64         // bytes in flight after it: sent, not acknowledged, not SACKed, not lost
	Acked          int64         // bytes newly acknowledged or SACKed
	Lost           int64         // bytes newly marked lost
	RTT            time.Duration // round-trip time of this ACK; <= 0: none
	SRTT           time.Duration // smoothed RTT after this ACK; <= 0: none yet
	MinRTT         time.Duration // smallest RTT that tcp has seen; <= 0: none yet

	AppLimited     bool // the sampled packet was sent while the application had nothing more
	Retransmission bool // the sampled packet was a retransmission
	RoundStart     bool // this ACK opens a new round trip (by packets, as BBR counts)
	WindowLimited  bool // the window, not the application, limited sending in the last round
	InRecovery     bool // fast recovery or RTO recovery is going on
}

// Rate returns the delivery rate of the sample in bytes per second, 0 if it has none.
func (s *Sample) Rate() float64 {
	if s.Interval <= 0 {
		return 0
	}
	return float64(s.Delivered-s.PriorDelivered) / s.Interval.Seconds()
}

// Controller is the congestion control of one subflow. Events go in through the On methods in the order in
// which they happen; answers come out of the others and hold until the next event.
type Controller interface {
	// OnSend is called just before each transmission, retransmissions included, and returns the weight
	// that the transmission is stamped with: 1 for every controller but Coupled BBR.
	OnSend(e Send) (weight float64)
	// OnAck is called once for each ACK that acknowledged, SACKed or lost something, after tcp updated its
	// scoreboard. The Sample is valid during the call only.
	OnAck(s *Sample)
	// OnCongestion reports a congestion event: at most once a window for Loss and ECN. inFlight is what was in flight just
	// before the losses of this event were marked (before everything was marked, for Timeout).
	OnCongestion(now clock.Time, cause Cause, inFlight int64)
	// OnRecoveryEnter and OnRecoveryExit bracket fast recovery and RTO recovery. inFlight is what is in flight
	// then. On entry OnCongestion comes first.
	OnRecoveryEnter(now clock.Time, inFlight int64)
	OnRecoveryExit(now clock.Time, inFlight int64)
	// OnRestart is called before the first transmission after the subflow was idle (nothing in flight) for the given
	// time (RFC 5681, Section 4.1). rto is the current retransmission timeout.
	OnRestart(now clock.Time, idle, rto time.Duration)
	// OnUndo says that the last congestion event was spurious: D-SACK or timestamps showed it.
	OnUndo(now clock.Time)
	// OnMSS reports a new packet payload size.
	OnMSS(mss int)

	// Window is the congestion window in bytes, at least one MSS.
	Window() int64
	// PacingRate is the rate at which packets may leave, in bytes per second; 0 means that the controller does not pace
	// (tcp then paces at a multiple of Window / SRTT so that bursts stay bounded).
	PacingRate() float64
	// OwnsRecovery reports whether Window is to be obeyed during recovery too, instead of PRR's (RFC 6937).
	OwnsRecovery() bool
	// State describes the controller for schedulers, traces and Info.
	State() State
}

// State is a snapshot for people, traces, and the scheduler's views.
type State struct {
	Phase       string        // "slow start", "avoidance", "startup", "drain", "probe bandwidth", "probe rtt", ...
	Startup     bool          // still looking for the path's bandwidth
	ProbeRTT    bool          // sending next to nothing to measure the RTT
	Threshold   int64         // slow-start threshold, bytes; 0: none
	Bandwidth   float64       // estimated bottleneck bandwidth, bytes/s; 0: no model
	SendingRate float64       // paced rate without the probing gain, bytes/s; 0: not paced
	MinRTT      time.Duration // the controller's own RTprop; 0: no model
	PacingGain  float64       // 0: no model
	WindowGain  float64       // 0: no model
}

// Group is the congestion control of one connection. Members are the subflows' controllers.
type Group interface {
	// Join makes the controller of a new subflow. id is the subflow's number within its connection, unique while it is
	// a member; ties between members break by id.
	Join(id int, cfg Config) Controller
	// Leave removes a subflow that was closed.
	Leave(id int)
	// Silence tells whether a subflow timed out and has not been heard since: coupled algorithms leave it out.
	Silence(id int, silent bool)
}

// Uncoupled returns a Group whose members ignore each other: each subflow gets what make returns.
func Uncoupled(make func(Config) Controller) Group { return uncoupled{make} }

type uncoupled struct{ make func(Config) Controller }

func (u uncoupled) Join(_ int, cfg Config) Controller { return u.make(cfg) }
func (u uncoupled) Leave(int)                         {}
func (u uncoupled) Silence(int, bool)                 {}
