package paper

import (
	"fmt"

	"braid/netsim"
	"braid/schedule"
	"braid/trace"
)

// roles measures when the connection's scheduler makes each subflow redundant: "redundant <subflow>" is the share of time after the start
// in which it was, "redundant <subflow> from" the last time that it became so and stayed to the end, in seconds.
type roles struct{}

// Name implements experiment.Measure.
func (roles) Name() string { return "roles" }

// Watch implements experiment.Measure.
func (roles) Watch(s *netsim.Scenario, opt *netsim.Options) func(*netsim.Result) map[string]float64 {
	var events trace.Recorder
	opt.Trace = func(host string) trace.Sink {
		if host == multipath+" client" {
			return trace.Select(&events, trace.Role)
		}
		return nil
	}
	end := s.DurationS
	return func(*netsim.Result) map[string]float64 {
		since, sum, last := map[int16]float64{}, map[int16]float64{}, map[int16]float64{}
		for _, e := range events.Of(trace.Role) {
			at := float64(e.Time) / 1e9
			if from, was := since[e.Subflow]; was {
				sum[e.Subflow] += at - from
				delete(since, e.Subflow)
			}
			if schedule.Role(e.V[0]) == schedule.Redundant {
				since[e.Subflow] = at
				if _, was := last[e.Subflow]; !was || schedule.Role(e.V[2]) != schedule.Redundant {
					last[e.Subflow] = at
				}
			} else {
				delete(last, e.Subflow)
			}
		}
		out := map[string]float64{}
		for id, from := range since {
			sum[id] += end - from
			out[fmt.Sprintf("redundant %d from", id)] = last[id]
		}
		for id, s := range sum {
			out[fmt.Sprintf("redundant %d", id)] = s / end
		}
		return out
	}
}
