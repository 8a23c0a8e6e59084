// Package trace records what happened: plain events with a table that names their values, a writer of JSON
// lines, and a writer of pcapng captures that Wireshark opens.
//
// Tracing is off when a Sink is nil: callers check that before they build an event. The package decides
// nothing, keeps no statistics, and knows no packet formats but the IP and UDP headers that it puts around
// captured datagrams. Nothing here is safe for concurrent use.
package trace

import "braid/clock"

// MaxValues is how many values an Event has room for.
const MaxValues = 8

// Event is one thing that happened. It holds values only, so that recording one allocates nothing.
type Event struct {
	Time    clock.Time
	Conn    uint32 // the connection's number within its Stack
	Subflow int16  // the subflow's number within the connection; -1: the connection as a whole
	Kind    Kind
	V       [MaxValues]int64 // what they mean depends on Kind: see its comment, or Kind.Fields
}

// Sink takes events. The Event is valid during the call only.
type Sink interface {
	Trace(e *Event)
}

// Recorder is a Sink that keeps events in memory.
type Recorder struct {
	Events []Event
}

// Trace appends a copy of e.
func (r *Recorder) Trace(e *Event) { r.Events = append(r.Events, *e) }

// Of returns the recorded events of a kind, in order.
func (r *Recorder) Of(k Kind) []Event {
	var out []Event
	for _, e := range r.Events {
		if e.Kind == k {
			out = append(out, e)
		}
	}
	return out
}

// Select returns a Sink that passes on events of the given kinds only.
func Select(s Sink, kinds ...Kind) Sink {
	f := &filter{sink: s}
	for _, k := range kinds {
		f.want[k] = true
	}
	return f
}

type filter struct {
	sink Sink
	want [256]bool
}

func (f *filter) Trace(e *Event) {
	if f.want[e.Kind] {
		f.sink.Trace(e)
	}
}

// Tee returns a Sink that passes events to each of the given ones in turn.
func Tee(sinks ...Sink) Sink { return tee(sinks) }

type tee []Sink

func (t tee) Trace(e *Event) {
	for _, s := range t {
		s.Trace(e)
	}
}
