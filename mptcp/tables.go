package mptcp

// Tables are the sizes of a Stack's tables. All are zero once every connection is over, TIME-WAIT has passed and the events have
// been taken: what is not then, is leaked.
type Tables struct {
	Conns    int // connections that are not over
	Tokens   int // local tokens in use or reserved
	Subflows int // subflows that packets can find
	HalfOpen int // half-open connections and joins
	Remnants int // closing handshakes and TIME-WAITs of subflows whose connection is over
	Tasks    int // of all these, those that may have a timer
	Events   int // not taken by PollEvent
}

// Tables returns the sizes of the Stack's tables.
func (s *Stack) Tables() Tables {
	return Tables{
		Conns: len(s.conns), Tokens: len(s.tokens), Subflows: len(s.tuples) + len(s.tags),
		HalfOpen: len(s.halves) + len(s.halfTags), Remnants: len(s.remnants.tuples) + len(s.remnants.tags),
		Tasks: s.tasks, Events: len(s.events.events) - s.events.head,
	}
}
