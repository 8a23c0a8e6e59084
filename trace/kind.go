package trace

import "strconv"

// Kind says what happened and what an Event's values mean. A new kind is a constant here and a row in the
// table below.
//
// Offsets are unwrapped (package seq): of a subflow's stream, 0 is the SYN; of the data stream, 0 is the
// initial data sequence number.
type Kind uint8

// The kinds, each with its values in order.
const (
	_ Kind = iota

	// Sent: a segment left. Subflow offset, payload bytes, data offset (-1: none), TCP flags, ack offset, what it
	// carried (SentNew and so on), bytes in flight after it.
	Sent
	// Received: an acceptable segment came. Subflow offset, payload bytes, data offset (-1: none), TCP flags, ack
	// offset, window in bytes (scaled), DATA_ACK offset (-1: none).
	Received
	// AckSample: an ACK told something. Acknowledged bytes, lost bytes, RTT (<= 0: none), smoothed RTT, congestion
	// window, bytes in flight, delivery rate in bytes/s (0: none), 1 if application-limited.
	AckSample
	// Congestion: the controller's state changed. Phase (PhaseCode), window, slow-start threshold, estimated bandwidth, pacing
	// rate, the model's minimum RTT, pacing gain in thousandths, window gain in thousandths.
	Congestion
	// RecoveryEnter: loss recovery began. Cause (as congestion.Cause), window, bytes in flight, recovery point (subflow offset).
	RecoveryEnter
	// RecoveryExit: loss recovery ended. Window, bytes in flight, how long it took, 1 if undone as spurious.
	RecoveryExit
	// RTO: the retransmission timer expired. The timeout, times in a row, bytes in flight, oldest unacknowledged offset.
	RTO
	// TLP: a tail loss probe left. Subflow offset, bytes, the probe timeout, 1 if it carried new data.
	TLP
	// Reinjection: data was queued for other subflows. Data offsets from and to, cause (ReinjectLoss and so on).
	Reinjection
	// Schedule: the scheduler decided. Kind (as schedule.Kind), packets skipped, data offsets from and to, when to ask
	// again (0: no timer).
	Schedule
	// Role: a subflow's role changed. Role (as schedule.Role), reason (as schedule.Reason), role before.
	Role
	// SubflowState: a subflow's TCP state changed. From, to (RFC 9293, Section 3.3.2, in the order of the table), reset
	// reason (RFC 8684, Section 3.6; -1: none).
	SubflowState
	// ConnState: the connection's state changed. From, to (in the order of the table).
	ConnState
	// Mapping: a data sequence mapping was received. Data offsets from and to, subflow offset of the first byte, 1 if with a
	// DATA_FIN, 1 if it is the infinite mapping, 1 if it was accepted.
	Mapping
	// OutOfOrder: the level of the out-of-order queue changed. Bytes, packets, next data offset expected, receive window.
	OutOfOrder
	// Delivered: data became readable in order. Next data offset expected, bytes, how long the first of them had waited.
	Delivered
	// Fallback: the connection became plain TCP. Cause (FallbackNoOption and so on), data offset from which it holds.
	Fallback
	// Penalty: a subflow's window was halved because it blocked the connection. Window before, window after.
	Penalty
	// Counters: totals of a subflow (or, with Subflow -1, of the connection) so far. Segments sent, payload bytes sent,
	// segments received, payload bytes received, bytes retransmitted, bytes reinjected or copied, duplicate bytes received,
	// segments dropped as unacceptable.
	Counters

	kinds // how many there are
)

// What Sent carried.
const (
	SentNew        = iota // new data, or none
	SentRetransmit        // retransmitted on the same subflow
	SentReinject          // data that was sent on another subflow before and is missing there
	SentCopy              // a redundant copy of data in flight elsewhere
	SentProbe             // a zero-window, keep-alive, MTU or tail loss probe
)

// Why Reinjection happened.
const (
	ReinjectLoss    = iota // found lost on its subflow
	ReinjectTimeout        // its subflow timed out
	ReinjectBlocked        // it holds the connection's receive window
	ReinjectClosed         // its subflow was closed
)

// Why Fallback happened.
const (
	FallbackNoOption  = iota // the handshake came without usable MP_CAPABLE
	FallbackNoMapping        // data came without a mapping
	FallbackNoDataAck        // data was acknowledged without DATA_ACK
	FallbackChecksum         // a checksum failed on the only subflow
	FallbackPeer             // the peer said so: MP_FAIL or the infinite mapping
)

// Field describes one value of a Kind.
type Field struct {
	Name  string   // with the unit last, as it stands in JSON
	Words []string // the names of the values 0, 1, ...: JSON has them instead of the number; nil: a plain number
}

// table names kinds and values.
var table = [kinds]struct {
	name   string
	fields []Field
}{
	Sent: {"sent", []Field{{"seq", nil}, {"len_bytes", nil}, {"data_seq", nil}, {"flags", nil}, {"ack", nil},
		{"carries", []string{"new", "retransmission", "reinjection", "copy", "probe"}}, {"in_flight_bytes", nil}}},
	Received: {"received", []Field{{"seq", nil}, {"len_bytes", nil}, {"data_seq", nil}, {"flags", nil}, {"ack", nil},
		{"window_bytes", nil}, {"data_ack", nil}}},
	AckSample: {"ack_sample", []Field{{"acked_bytes", nil}, {"lost_bytes", nil}, {"rtt_ns", nil}, {"srtt_ns", nil},
		{"cwnd_bytes", nil}, {"in_flight_bytes", nil}, {"delivery_rate_bytes_per_s", nil}, {"app_limited", noYes}}},
	Congestion: {"congestion", []Field{{"phase", phases}, {"cwnd_bytes", nil}, {"ssthresh_bytes", nil},
		{"bandwidth_bytes_per_s", nil}, {"pacing_rate_bytes_per_s", nil}, {"min_rtt_ns", nil}, {"pacing_gain_milli", nil},
		{"window_gain_milli", nil}}},
	RecoveryEnter: {"recovery_enter", []Field{{"cause", []string{"loss", "ecn", "timeout", "penalty"}}, {"cwnd_bytes", nil},
		{"in_flight_bytes", nil}, {"recovery_point", nil}}},
	RecoveryExit: {"recovery_exit", []Field{{"cwnd_bytes", nil}, {"in_flight_bytes", nil}, {"took_ns", nil}, {"undone", noYes}}},
	RTO:          {"rto", []Field{{"rto_ns", nil}, {"times", nil}, {"in_flight_bytes", nil}, {"oldest_seq", nil}}},
	TLP:          {"tlp", []Field{{"seq", nil}, {"len_bytes", nil}, {"pto_ns", nil}, {"new_data", noYes}}},
	Reinjection: {"reinjection", []Field{{"data_start", nil}, {"data_end", nil},
		{"cause", []string{"loss", "timeout", "blocked", "closed"}}}},
	Schedule: {"schedule", []Field{{"decision", []string{"wait", "new", "reinject", "copy"}}, {"skip_packets", nil},
		{"data_start", nil}, {"data_end", nil}, {"wake_ns", nil}}},
	Role: {"role", []Field{{"role", roles},
		{"reason", []string{"default", "utility", "few in flight", "overdue", "timed out", "startup", "backup"}}, {"before", roles}}},
	SubflowState: {"subflow_state", []Field{{"from", tcpStates}, {"to", tcpStates}, {"reset_reason", nil}}},
	ConnState:    {"conn_state", []Field{{"from", connStates}, {"to", connStates}}},
	Mapping: {"mapping", []Field{{"data_start", nil}, {"data_end", nil}, {"seq", nil}, {"fin", noYes}, {"infinite", noYes},
		{"accepted", noYes}}},
	OutOfOrder: {"out_of_order", []Field{{"queued_bytes", nil}, {"queued_packets", nil}, {"data_next", nil}, {"window_bytes", nil}}},
	Delivered:  {"delivered", []Field{{"data_next", nil}, {"len_bytes", nil}, {"waited_ns", nil}}},
	Fallback: {"fallback", []Field{{"cause", []string{"no option", "no mapping", "no data ack", "checksum", "peer"}},
		{"data_start", nil}}},
	Penalty: {"penalty", []Field{{"before_bytes", nil}, {"after_bytes", nil}}},
	Counters: {"counters", []Field{{"sent_packets", nil}, {"sent_bytes", nil}, {"received_packets", nil}, {"received_bytes", nil},
		{"retransmitted_bytes", nil}, {"reinjected_bytes", nil}, {"duplicate_bytes", nil}, {"refused_packets", nil}}},
}

// Words that several kinds share.
var (
	noYes     = []string{"no", "yes"}
	roles     = []string{"new data", "redundant"}
	tcpStates = []string{"closed", "listen", "syn-sent", "syn-received", "established", "fin-wait-1", "fin-wait-2",
		"close-wait", "closing", "last-ack", "time-wait"}
	connStates = []string{"opening", "open", "fallen back", "closing", "closed"}
	phases     = []string{"other", "slow start", "avoidance", "recovery", "startup", "drain", "probe bandwidth", "probe rtt"}
)

// PhaseCode returns the number by which Congestion reports a controller's phase (congestion.State.Phase): 0,
// "other", for phases that the table does not name.
func PhaseCode(phase string) int64 {
	for i, p := range phases {
		if p == phase {
			return int64(i)
		}
	}
	return 0
}

// Bool returns 1 for true: the value of yes-or-no fields.
func Bool(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// Kinds returns every kind.
func Kinds() []Kind {
	var all []Kind
	for k := Kind(1); k < kinds; k++ {
		all = append(all, k)
	}
	return all
}

// String returns the kind's name as it stands in JSON.
func (k Kind) String() string {
	if k == 0 || k >= kinds {
		return "kind " + strconv.Itoa(int(k))
	}
	return table[k].name
}

// Fields describes the kind's values in order; none for kinds that do not exist. The caller must not change
// the result.
func (k Kind) Fields() []Field {
	if k >= kinds {
		return nil
	}
	return table[k].fields
}

// KindByName returns the kind with a name, for configuration and for reading traces back.
func KindByName(name string) (Kind, bool) {
	for k := Kind(1); k < kinds; k++ {
		if table[k].name == name {
			return k, true
		}
	}
	return 0, false
}

// Get returns the value of a field by name, and whether the event's kind has it.
func (e *Event) Get(field string) (int64, bool) {
	for i, f := range e.Kind.Fields() {
		if f.Name == field {
			return e.V[i], true
		}
	}
	return 0, false
}
