package tcp

import (
	"strings"
	"testing"
)

// RFC 9293, Section 3.3.2, Figure 5, as a matrix: one row for each state, one column for each that may follow.
func TestTransitions(t *testing.T) {
	allowed := map[State][]State{
		Closed:      {SynSent, SynReceived},
		SynSent:     {SynReceived, Established, Closed},
		SynReceived: {Established, Closed},
		Established: {FinWait1, CloseWait, Closed},
		FinWait1:    {FinWait2, Closing, Closed},
		FinWait2:    {TimeWait, Closed},
		CloseWait:   {LastAck, Closed},
		Closing:     {TimeWait, Closed},
		LastAck:     {Closed},
		TimeWait:    {Closed},
	}
	for from := Closed; from <= TimeWait; from++ {
		for to := Closed; to <= TimeWait; to++ {
			want := false
			for _, s := range allowed[from] {
				want = want || s == to
			}
			panicked := func() (message any) {
				defer func() { message = recover() }()
				(&Conn{state: from}).setState(to)
				return nil
			}()
			if want != (panicked == nil) {
				t.Errorf("%v to %v: allowed %v", from, to, panicked == nil)
			}
			if text, _ := panicked.(string); panicked != nil && (!strings.Contains(text, from.String()) || !strings.Contains(text, to.String())) {
				t.Errorf("panic %q does not name %v and %v", text, from, to)
			}
		}
	}
}

func TestStateNames(t *testing.T) {
	if got := TimeWait.String() + " " + State(42).String(); got != "TIME-WAIT State(42)" {
		t.Error(got)
	}
}
