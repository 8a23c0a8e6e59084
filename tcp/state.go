package tcp

import "fmt"

var stateNames = [...]string{
	Closed: "CLOSED", Listen: "LISTEN", SynSent: "SYN-SENT", SynReceived: "SYN-RECEIVED", Established: "ESTABLISHED",
	FinWait1: "FIN-WAIT-1", FinWait2: "FIN-WAIT-2", CloseWait: "CLOSE-WAIT", Closing: "CLOSING", LastAck: "LAST-ACK", TimeWait: "TIME-WAIT",
}

// String returns the state's name in RFC 9293.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// stateSet is a set of states.
type stateSet uint16

func states(list ...State) (set stateSet) {
	for _, s := range list {
		set |= 1 << s
	}
	return set
}

func (set stateSet) has(s State) bool { return set>>s&1 != 0 }

// transitions says which states may follow which (RFC 9293, Section 3.3.2, Figure 5). Every state may fall to CLOSED: by
// a reset, an abort or a timeout. A CLOSE in SYN-RECEIVED waits for ESTABLISHED here, and a FIN cannot be processed before
// the handshake is complete, so that SYN-RECEIVED has one way forward.
var transitions = [...]stateSet{
	Closed:      states(SynSent, SynReceived),
	Listen:      0,
	SynSent:     states(SynReceived, Established, Closed),
	SynReceived: states(Established, Closed),
	Established: states(FinWait1, CloseWait, Closed),
	FinWait1:    states(FinWait2, Closing, Closed),
	FinWait2:    states(TimeWait, Closed),
	CloseWait:   states(LastAck, Closed),
	Closing:     states(TimeWait, Closed),
	LastAck:     states(Closed),
	TimeWait:    states(Closed),
}

// Sets of states that several rules ask for.
const (
	sendStates    = stateSet(1<<Established | 1<<FinWait1 | 1<<CloseWait | 1<<Closing | 1<<LastAck) // the sender may have something to (re)transmit
	pushStates    = stateSet(1<<Established | 1<<CloseWait)                                         // new payload may be pushed
	receiveStates = stateSet(1<<Established | 1<<FinWait1 | 1<<FinWait2)                            // payload and FIN are taken
)

// setState changes the state. A change that the table does not know is a mistake of this package.
func (c *Conn) setState(to State) {
	if !transitions[c.state].has(to) {
		panic(fmt.Sprintf("tcp: impossible transition from %v to %v", c.state, to))
	}
	c.state = to
}
