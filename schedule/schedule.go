// Package schedule answers one question per connection: which subflow carries what?
//
// A Scheduler decides over a snapshot of the subflows (Views) and of the connection (Queue); it sends nothing, marks
// nothing and knows no packets. Package mptcp obeys it. Two questions are asked: Plan, now and then, gives each subflow a
// role; Pick, whenever a subflow can send, says what it sends next.
//
// Sizes are in bytes, rates in bytes per second. Nothing here is safe for concurrent use.
package schedule

import (
	"time"

	"braid/clock"
	"braid/seq"
)

// View is what a scheduler sees of one subflow. Views of one call are ordered by ID, ascending, and hold established
// subflows only.
type View struct {
	ID        int           // the subflow's number within its connection
	SRTT      time.Duration // RTT smoothed over the last few ACKs; 0: no sample yet
	MinRTT    time.Duration // smallest RTT seen
	RTTVar    time.Duration
	Rate      float64    // sending rate without the probing gain; Window / SRTT for controllers that do not pace
	Bandwidth float64    // estimated bottleneck bandwidth; 0: the controller has no model
	Window    int64      // congestion window
	InFlight  int64      // sent, not acknowledged, not SACKed, not lost
	CanSend   bool       // window, peer's window and pacer let it send a full packet now
	PacerAt   clock.Time // when the pacer lets the next packet go; in the past: now
	Retrans   int64      // bytes waiting to be retransmitted on this subflow
	Loss      float64    // average loss share over the last 128 packets, 0 to 1
	LastAck   clock.Time // when the last ACK of new data came; the start of the subflow before the first
	Oldest    clock.Time // when the oldest outstanding packet was sent; clock.Never if none
	MSS       int
	Backup    bool // the peer or the local policy asks to use it only when nothing else works
	Startup   bool // its controller is still in slow start or STARTUP
	ProbeRTT  bool // its controller is sending next to nothing to measure the RTT
	Overdue   bool // no ACK for longer than its RTT explains (see Overdue in algorithms: srtt + max(4 rttvar, srtt/2) + 10 ms)
	TimedOut  bool // its retransmission timer expired and it has not been heard since: stale
}

// Queue is what a scheduler sees of the connection.
type Queue struct {
	Unsent   seq.Range // data offsets not yet given to any subflow: from the first to the end of what the application wrote (holes possible)
	Waiting  int64     // bytes in Unsent that are really unsent
	Edge     int64     // the connection-level right edge: the first data offset the peer has no room for
	Acked    int64     // every data offset below it is DATA_ACKed
	Reinject bool      // data waits for reinjection that the asked subflow may carry
	Repairs  int64     // bytes that wait for reinjection, whoever may carry them
	Copyable bool      // data is in flight elsewhere, not DATA_ACKed and not carried by the asked subflow; it may turn out to have arrived (see Decision)
	Holder   int       // ID of the subflow on which the oldest data not DATA_ACKed was first sent, if it is still a member; else -1
	Opening  bool      // the connection is at its beginning: no subflow has left startup yet
	Window   int64     // the connection's receive window as advertised: Edge - Acked
}

// Role is what a subflow is used for.
type Role uint8

// The roles. NewData is the zero value: a scheduler without opinion leaves every subflow in it.
const (
	NewData   Role = iota // N: carries new data
	Redundant             // R: carries copies of data in flight elsewhere, and its own retransmissions
)

// Reason says why a subflow has its role.
type Reason uint8

// The reasons.
const (
	ReasonDefault     Reason = iota
	ReasonUtility            // the utility is larger without it
	ReasonFewInFlight        // too little in flight to detect loss quickly (the paper's 4-packet rule)
	ReasonOverdue            // its ACKs are overdue
	ReasonTimedOut           // its retransmission timer expired
	ReasonStartup            // kept because it is still starting up
	ReasonBackup             // a backup subflow while a regular one works
)

// Assignment is the role of one subflow and why.
type Assignment struct {
	Role   Role
	Reason Reason
}

// Kind is what a subflow sends next.
type Kind uint8

// The kinds.
const (
	Wait     Kind = iota // nothing now
	New                  // unsent data at or after offset From, after leaving Skip packets of it to the others
	Reinject             // the oldest data waiting for reinjection that the subflow may carry
	Copy                 // the oldest data in flight elsewhere, at or after offset From, that it does not carry
)

// Decision answers Pick. If there is nothing of the kind asked for (no unsent data that far below Edge, nothing left to
// copy after From), the answer is as good as Else; Else is New (the next in order) or Wait, its zero value. New never
// reaches Edge or beyond, whatever is asked.
type Decision struct {
	Kind     Kind
	Else     Kind       // New, Reinject, Copy: what to send if there is nothing of Kind after all: Wait or New
	Skip     int        // New: full packets of unsent data, in order, to leave to other subflows; 0 is the next in order
	From     int64      // New, Copy: the first data offset of interest; 0 takes the oldest
	Penalise bool       // the controller of subflow Queue.Holder gets congestion.Penalty (v0.9x penalisation), whatever Kind is
	Wake     clock.Time // Wait: when to ask again although nothing happened; clock.Never leaves it to events
}

// Scheduler chooses. One per connection.
type Scheduler interface {
	// Plan writes the role of each view to roles (same length and order, preset to NewData) and returns when it wants to be asked again
	// although nothing happened: a full window brings no ACKs. clock.Never: not before the next event. It must be asked when a subflow
	// came, went, or changed TimedOut, Overdue, Backup or Startup, so that roles fit the views; it may be asked more often (it is cheap).
	Plan(now clock.Time, q *Queue, views []View, roles []Assignment) (again clock.Time)
	// Pick says what subflow views[i], which can send now, sends next. roles are those of the last Plan. Whoever asks goes on asking all
	// that can send until each has answered Wait: an answer may leave the next packet to another subflow.
	Pick(now clock.Time, q *Queue, views []View, roles []Assignment, i int) Decision
	// OnSent reports that subflow id was given data r as the answer to a Pick (kind New, Reinject or Copy).
	OnSent(now clock.Time, id int, kind Kind, r seq.Range)
	// OnLost reports that data r was found lost on subflow id, or stalls there; it asks whether the data shall be offered once to the others.
	OnLost(now clock.Time, id int, r seq.Range) (reinject bool)
	// OnGone reports that a subflow was closed.
	OnGone(id int)
}
