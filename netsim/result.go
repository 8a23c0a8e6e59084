package netsim

import (
	"braid/clock"
	"braid/link"
	"braid/mptcp"
)

// Result is what a Scenario's run measured. Averages leave the warm-up out, series do not. It can be marshalled to JSON, and
// is the same for the same Scenario on every machine.
type Result struct {
	Name      string       `json:"name,omitempty"`
	Seed      uint64       `json:"seed"`
	DurationS float64      `json:"duration_s"`
	WarmupS   float64      `json:"warmup_s"`
	BinS      float64      `json:"bin_s"`
	Flows     []FlowResult `json:"flows"`
	Links     []LinkResult `json:"links"`
	Counts    Counts       `json:"counts"`
}

// FlowResult is what was measured of a Flow.
type FlowResult struct {
	Name        string  `json:"name"`
	GoodputMbps float64 `json:"goodput_mbps"`        // bytes handed in order to the receiving application
	Bytes       int64   `json:"bytes"`               // ... in the whole run
	CompletedS  float64 `json:"completed_s"`         // when the receiver had everything, since the flow's start; 0: it has not
	Error       string  `json:"error,omitempty"`     // what ended a connection otherwise than by a close
	Corrupted   int64   `json:"corrupted,omitempty"` // offset + 1 of the first byte received that is not what was sent

	OutOfOrderPackets    float64 `json:"out_of_order_packets"` // mean of the connection's out-of-order queue over arrivals, in packets
	OutOfOrderBytes      float64 `json:"out_of_order_bytes"`
	MaxOutOfOrderPackets int     `json:"max_out_of_order_packets"`
	MaxOutOfOrderBytes   int64   `json:"max_out_of_order_bytes"`

	Requests           int64        `json:"requests,omitempty"`
	LatencyMs          float64      `json:"latency_ms,omitempty"`             // mean
	LatencyPercentiles []float64    `json:"latency_percentiles_ms,omitempty"` // 0th to 100th
	Churn              *churnCounts `json:"churn,omitempty"`

	Subflows []SubflowResult `json:"subflows"` // by path, in the order of Flow.Paths
	Series   FlowSeries      `json:"series"`

	Sender, Receiver mptcp.Counters `json:"-"`
}

// FlowSeries are a flow's measurements by time.
type FlowSeries struct {
	GoodputMbps       []float64 `json:"goodput_mbps"`
	OutOfOrderPackets []float64 `json:"out_of_order_packets"`
}

// SubflowResult is what was measured of a flow's traffic over one path: all its subflows there, one after the other.
type SubflowResult struct {
	Path               string  `json:"path"`
	ThroughputMbps     float64 `json:"throughput_mbps"` // payload that the path delivered, copies included
	MeanRTTMs          float64 `json:"mean_rtt_ms"`     // over the RTT samples of ACKs
	SentBytes          int64   `json:"sent_bytes"`      // payload, in the whole run
	LostBytes          int64   `json:"lost_bytes"`      // ... found lost
	RetransmittedBytes int64   `json:"retransmitted_bytes"`
	Retransmissions    int64   `json:"retransmissions"` // segments

	RTTPercentilesMs []float64     `json:"rtt_percentiles_ms,omitempty"` // 0th to 100th
	Series           SubflowSeries `json:"series"`
}

// SubflowSeries are a path's measurements by time.
type SubflowSeries struct {
	ThroughputMbps []float64 `json:"throughput_mbps"`
	RTTMs          []float64 `json:"rtt_ms"`
	SRTTMs         []float64 `json:"srtt_ms"`
	WindowBytes    []float64 `json:"window_bytes"`
	InFlightBytes  []float64 `json:"in_flight_bytes"`
}

// LinkResult is what was measured of a link.
type LinkResult struct {
	Name        string        `json:"name"`
	Utilisation float64       `json:"utilisation"` // bytes delivered after the warm-up / bytes that the rate allows; 0 for links without a constant rate
	Counters    link.Counters `json:"counters"`
	QueueBytes  []float64     `json:"queue_bytes"` // mean by bin, of samples taken every millisecond (or bin, if that is shorter)
}

// Flow returns the result of the flow with a name; nil: there is none.
func (r *Result) Flow(name string) *FlowResult {
	for i := range r.Flows {
		if r.Flows[i].Name == name {
			return &r.Flows[i]
		}
	}
	return nil
}

// Subflow returns the result of a path with a name; nil: the flow does not use it.
func (f *FlowResult) Subflow(path string) *SubflowResult {
	for i := range f.Subflows {
		if f.Subflows[i].Path == path {
			return &f.Subflows[i]
		}
	}
	return nil
}

// result collects what a flow measured, over span seconds after the warm-up, in n bins.
func (f *flowRun) result(span float64, n int) FlowResult {
	r := FlowResult{Name: f.spec.Name, GoodputMbps: round(float64(f.received) * 8 / 1e6 / span), Bytes: f.total,
		Requests: f.requests, LatencyMs: f.latencies.mean(), LatencyPercentiles: f.latencies.percentiles()}
	if f.failure != nil {
		r.Error = f.failure.Error()
	}
	if f.finished != clock.Never {
		r.CompletedS = f.finished.Sub(seconds(f.spec.StartS)).Seconds()
	}
	if f.spec.Workload.Kind == Churn {
		r.Churn = &f.churn
	}
	for _, e := range f.ends {
		if e.in.wrong != 0 && r.Corrupted == 0 {
			r.Corrupted = e.in.wrong
		}
	}
	if d := &f.disorder; d.samples > 0 {
		r.OutOfOrderBytes, r.OutOfOrderPackets = round(d.bytes/float64(d.samples)), round(d.packets/float64(d.samples))
		r.MaxOutOfOrderBytes, r.MaxOutOfOrderPackets = d.maxBytes, d.maxPackets
	}
	r.Series = FlowSeries{GoodputMbps: f.goodput.rates(n, 8e-6), OutOfOrderPackets: f.disorder.series.values(n, 1)}
	for _, m := range f.meters {
		r.Subflows = append(r.Subflows, m.result(span, n))
	}
	sender, receiver := f.client, f.server
	if f.spec.Download {
		sender, receiver = receiver, sender
	}
	r.Sender, r.Receiver = *sender.stack.(*mptcp.Stack).Counters(), *receiver.stack.(*mptcp.Stack).Counters()
	return r
}

func (m *pathMeter) result(span float64, n int) SubflowResult {
	return SubflowResult{Path: m.name, ThroughputMbps: round(float64(m.payload) * 8 / 1e6 / span), MeanRTTMs: m.rtts.mean(),
		SentBytes: m.sent, LostBytes: m.lost, RetransmittedBytes: m.retransmitted, Retransmissions: m.retransmissions,
		RTTPercentilesMs: m.rtts.percentiles(),
		Series: SubflowSeries{ThroughputMbps: m.delivered.rates(n, 8e-6), RTTMs: m.rtt.values(n, 1e-6), SRTTMs: m.srtt.values(n, 1e-6),
			WindowBytes: m.window.values(n, 1), InFlightBytes: m.inFlight.values(n, 1)}}
}
