package mptcp

// EventKind says what an Event tells.
type EventKind uint8

// The kinds of event.
const (
	EventAccept      EventKind = iota // Listener has a connection to Accept
	EventConnected                    // Conn's first subflow completed its handshake
	EventReadable                     // Conn has something to read: data, the end of the stream, or an error
	EventWritable                     // Conn has room again after a Write that took less than it was given
	EventClosed                       // Conn is over; Err says why, nil after an orderly close. The last event of a Conn: whoever waits to read or write may
	EventSubflowUp                    // subflow Subflow of Conn may carry data
	EventSubflowDown                  // subflow Subflow of Conn is gone; Err says why
)

// String returns the name of the kind.
func (k EventKind) String() string {
	names := [...]string{"accept", "connected", "readable", "writable", "closed", "subflow up", "subflow down"}
	if int(k) < len(names) {
		return names[k]
	}
	return "event?"
}

// Event is something that the application may want to know. Of EventReadable, EventWritable and EventAccept at most one of
// a kind waits for each connection or listener.
type Event struct {
	Kind     EventKind
	Conn     *Conn
	Listener *Listener
	Subflow  int
	Err      error
}

// eventQueue holds events in order. The zero value is empty and ready.
type eventQueue struct {
	events []Event
	head   int
}

// emit queues an event, unless it is one of a kind that waits already, or its connection is over or not known to the application.
func (s *Stack) emit(e Event) {
	if e.Conn != nil {
		if !e.Conn.visible {
			return
		}
		if e.Kind == EventClosed {
			e.Conn.visible = false // nothing comes after it
		}
		bit := uint8(1) << e.Kind
		if (e.Kind == EventReadable || e.Kind == EventWritable) && e.Conn.pendingEvents&bit != 0 {
			return
		}
		e.Conn.pendingEvents |= bit
	}
	s.events.events = append(s.events.events, e)
}

// PollEvent returns the next event, false if there is none.
func (s *Stack) PollEvent() (Event, bool) {
	q := &s.events
	if q.head == len(q.events) {
		return Event{}, false
	}
	e := q.events[q.head]
	q.events[q.head] = Event{} // a connection that is over must not be kept alive by its last event
	q.head++
	if q.head == len(q.events) {
		q.events, q.head = q.events[:0], 0
	}
	if e.Conn != nil {
		e.Conn.pendingEvents &^= uint8(1) << e.Kind
	}
	if e.Kind == EventAccept {
		e.Listener.announced = false
	}
	return e, true
}
