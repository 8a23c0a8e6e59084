package experiment

import (
	"math"
	"slices"

	"braid/netsim"
)

// Keep says what stays of a Result: averages and counters always do, series and distributions only if they are asked for. Everything is
// rounded to five digits: results are kept by the thousand.
type Keep struct {
	Flows      []string `json:"flows,omitempty"`      // whose series and distributions; averages are kept of all
	Goodput    bool     `json:"goodput,omitempty"`    // series
	OutOfOrder bool     `json:"outoforder,omitempty"` // series
	Throughput bool     `json:"throughput,omitempty"` // series, by subflow
	RTT        bool     `json:"rtt,omitempty"`        // series, by subflow
	Percentile bool     `json:"percentile,omitempty"` // of RTTs, by subflow
	Queues     bool     `json:"queues,omitempty"`     // series, of links
}

// trim returns r without what is not kept.
func (k *Keep) trim(r *netsim.Result) *netsim.Result {
	out := *r
	out.Name = ""
	out.Flows = slices.Clone(r.Flows)
	out.Links = slices.Clone(r.Links)
	for i := range out.Flows {
		k.flow(&out.Flows[i])
	}
	for i := range out.Links {
		l := &out.Links[i]
		l.QueueBytes = kept(k.Queues, l.QueueBytes)
		l.Utilisation = digits(l.Utilisation)
	}
	return &out
}

func (k *Keep) flow(f *netsim.FlowResult) {
	watched := slices.Contains(k.Flows, f.Name)
	f.Series.GoodputMbps = kept(watched && k.Goodput, f.Series.GoodputMbps)
	f.Series.OutOfOrderPackets = kept(watched && k.OutOfOrder, f.Series.OutOfOrderPackets)
	f.GoodputMbps, f.OutOfOrderPackets, f.OutOfOrderBytes = digits(f.GoodputMbps), digits(f.OutOfOrderPackets), digits(f.OutOfOrderBytes)
	f.Subflows = slices.Clone(f.Subflows)
	for i := range f.Subflows {
		s := &f.Subflows[i]
		s.ThroughputMbps, s.MeanRTTMs = digits(s.ThroughputMbps), digits(s.MeanRTTMs)
		s.RTTPercentilesMs = kept(watched && k.Percentile, s.RTTPercentilesMs)
		s.Series = netsim.SubflowSeries{
			ThroughputMbps: kept(watched && k.Throughput, s.Series.ThroughputMbps),
			RTTMs:          kept(watched && k.RTT, s.Series.RTTMs),
		}
	}
}

// kept returns a rounded copy of a series, or nothing.
func kept(keep bool, series []float64) []float64 {
	if !keep || len(series) == 0 {
		return nil
	}
	out := make([]float64, len(series))
	for i, v := range series {
		out[i] = digits(v)
	}
	return out
}

// digits rounds to five significant digits.
func digits(v float64) float64 {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return v
	}
	scale := math.Pow(10, 4-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}
