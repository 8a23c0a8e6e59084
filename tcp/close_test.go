package tcp

import (
	"testing"
	"time"
)

// RFC 9293, Section 3.6: the active close and TIME-WAIT.
func TestActiveClose(t *testing.T) {
	s := establishedScript(t, func(c *Config) { c.MSL = 10 * time.Second })
	s.c.Push(1, 100)
	s.c.CloseWrite(s.now)
	s.state(FinWait1)
	s.want("FP. 1:101 ack 1 win 10000")
	s.send(". 1 ack 101 win 10000") // the payload only
	s.state(FinWait1)
	s.send(". 1 ack 102 win 10000")
	s.state(FinWait2)
	s.send(". 1:51 ack 102 win 10000") // half closed: the peer goes on
	s.want(". 102 ack 51 win 9950")
	if r := s.send("F. 51 ack 102 win 10000"); !r.PeerFIN {
		t.Errorf("%+v", r)
	}
	s.state(TimeWait)
	s.want(". 102 ack 52 win 9949")
	if len(s.got) != 50 {
		t.Errorf("received %d bytes", len(s.got))
	}
	s.now = s.now.Add(19 * time.Second)
	s.send("F. 51 ack 102 win 10000") // repeated: acknowledged, and the wait starts again
	s.want(". 102 ack 52 win 9949")
	if d := s.until(); d != 20*time.Second {
		t.Errorf("TIME-WAIT ended after %v", d)
	}
	s.state(Closed)
	if s.c.Err() != nil {
		t.Error(s.c.Err())
	}
}

func TestPassiveClose(t *testing.T) {
	s := establishedScript(t, nil)
	s.send("F. 1:11 ack 1 win 10000")
	s.state(CloseWait)
	s.want(". 1 ack 12 win 9989")
	s.c.Push(1, 10)
	s.want("P. 1:11 ack 12 win 9989")
	s.send(". 12 ack 11 win 10000")
	s.c.CloseWrite(s.now)
	s.state(LastAck)
	s.want("F. 11 ack 12 win 9989")
	s.until() // lost: the retransmission timer repeats it (or a probe does)
	s.want("F. 11 ack 12 win 9989")
	s.send(". 12 ack 12 win 10000")
	s.state(Closed)
	if s.c.Err() != nil {
		t.Error(s.c.Err())
	}
	s.quiet()
}

// RFC 9293, Section 3.6, Figure 13: both FINs cross.
func TestSimultaneousClose(t *testing.T) {
	s := establishedScript(t, nil)
	s.c.CloseWrite(s.now)
	s.want("F. 1 ack 1 win 10000")
	s.send("F. 1 ack 1 win 10000")
	s.state(Closing)
	s.want(". 2 ack 2 win 9999")
	s.send(". 2 ack 2 win 10000")
	s.state(TimeWait)
	s.until()
	s.state(Closed)
}

// The peer's FIN acknowledges ours in the same segment: FIN-WAIT-1 to TIME-WAIT, by way of FIN-WAIT-2.
func TestFINWithAck(t *testing.T) {
	s := establishedScript(t, nil)
	s.c.CloseWrite(s.now)
	s.poll()
	s.send("F. 1 ack 2 win 10000")
	s.state(TimeWait)
	s.want(". 2 ack 2 win 9999")
}

// RFC 9293, Section 3.10.7: a FIN ahead of missing payload waits; what seems to follow a FIN is not believed.
func TestFINOutOfOrder(t *testing.T) {
	s := establishedScript(t, nil)
	s.send("F. 101:201 ack 1 win 10000")
	s.want(". 1 ack 1 win 10000 sack 101-201")
	s.state(Established)
	s.send(". 201:301 ack 1 win 10000") // beyond the FIN
	s.want(". 1 ack 1 win 10000 sack 101-201")
	s.send(". 1:101 ack 1 win 10000")
	s.state(CloseWait)
	s.want(". 1 ack 202 win 9799")
	if len(s.got) != 200 {
		t.Errorf("received %d bytes", len(s.got))
	}
	s.send(". 202:302 ack 1 win 10000")
	s.want(". 1 ack 202 win 9799")
	if len(s.got) != 200 {
		t.Errorf("received %d bytes", len(s.got))
	}
}

// A FIN inside of payload that arrived before is a lie.
func TestFINInsideReceivedPayload(t *testing.T) {
	s := establishedScript(t, nil)
	s.send(". 201:301 ack 1 win 10000")
	s.send("F. 1:101 ack 1 win 10000")
	s.state(Established)
	s.send(". 101:201 ack 1 win 10000")
	if len(s.got) != 300 {
		t.Errorf("received %d bytes", len(s.got))
	}
	s.send("F. 301 ack 1 win 10000")
	s.state(CloseWait)
}

// RFC 9293, Section 3.10.7.1 and RFC 2525, Section 2.17: payload after Close is answered with a RST.
func TestDataAfterClose(t *testing.T) {
	s := establishedScript(t, nil)
	s.c.Close(s.now)
	s.want("F. 1 ack 1 win 10000")
	s.send(". 1 ack 2 win 10000")
	s.state(FinWait2)
	s.send(". 1:11 ack 2 win 10000")
	s.want("R. 2 ack 1 win 10000")
	s.state(Closed)
	if s.c.Err() != ErrDataAfterClose {
		t.Error(s.c.Err())
	}
}

// RFC 9293, Section 3.6.1: Close with payload that nobody has read resets.
func TestCloseWithUnreadPayload(t *testing.T) {
	s := establishedScript(t, nil)
	s.c.HandleSegment(s.now, s.parse(". 1:11 ack 1 win 10000"))
	s.c.Close(s.now)
	s.want("R. 1 ack 11 win 9990")
	s.state(Closed)
}

// FIN-WAIT-2 does not last for ever when nobody reads any more.
func TestOrphanedFinWait2(t *testing.T) {
	for _, before := range []bool{true, false} {
		s := establishedScript(t, nil)
		if before {
			s.c.Close(s.now)
		} else {
			s.c.CloseWrite(s.now)
		}
		s.poll()
		s.send(". 1 ack 2 win 10000")
		s.state(FinWait2)
		if !before {
			if s.c.NextTimeout() < s.now.Add(time.Hour) {
				t.Error("a half-closed connection has a timer")
			}
			s.c.Close(s.now)
		}
		if d := s.until(); d != 60*time.Second {
			t.Errorf("waited %v", d)
		}
		s.state(Closed)
		if s.c.Err() != ErrTimeout {
			t.Error(s.c.Err())
		}
	}
}

// RFC 9293, Section 3.10.5: Abort in every state.
func TestAbort(t *testing.T) {
	reset := "R. 1 ack 1 win 10000"
	for _, tc := range []struct {
		state State
		bring func() *script
		want  string
	}{
		{SynSent, func() *script { s := dialScript(t, nil); s.poll(); return s }, ""},
		{SynReceived, func() *script { s := acceptScript(t, "S 0 win 1000", nil); s.poll(); return s }, reset},
		{Established, func() *script { return establishedScript(t, nil) }, reset},
		{FinWait1, func() *script { s := establishedScript(t, nil); s.c.CloseWrite(s.now); s.poll(); return s }, "R. 2 ack 1 win 10000"},
		{CloseWait, func() *script { s := establishedScript(t, nil); s.send("F. 1 ack 1 win 9"); s.poll(); return s }, "R. 1 ack 2 win 9999"},
	} {
		s := tc.bring()
		s.state(tc.state)
		s.c.Abort(s.now)
		if tc.want != "" {
			s.state(tc.state) // until the RST has left
			if r := s.send(". 1:2 ack 1 win 1"); r.Acceptable {
				t.Errorf("%v: an aborted connection takes segments", tc.state)
			}
		}
		s.want(tc.want)
		s.state(Closed)
		s.quiet()
		if s.c.Err() != ErrAborted {
			t.Errorf("%v: %v", tc.state, s.c.Err())
		}
		s.c.Abort(s.now)
		s.c.RequestAck(s.now)
		s.quiet()
	}
}

// RFC 9293, Section 3.10.7.4, second check: a RST in each state, and what the owner hears.
func TestResetInEachState(t *testing.T) {
	for _, tc := range []struct {
		steps []string // segments of the peer's; "close" is ours
		state State
		seq   string
		err   error
	}{
		{nil, Established, "1", ErrReset},
		{[]string{"close"}, FinWait1, "1", ErrReset},
		{[]string{"close", ". 1 ack 2 win 9"}, FinWait2, "1", ErrReset},
		{[]string{"F. 1 ack 1 win 9"}, CloseWait, "2", ErrReset},
		{[]string{"F. 1 ack 1 win 9", "close"}, LastAck, "2", nil},
		{[]string{"close", "F. 1 ack 1 win 9"}, Closing, "2", nil},
		{[]string{"close", "F. 1 ack 2 win 9"}, TimeWait, "2", nil},
	} {
		s := establishedScript(t, nil)
		for _, step := range tc.steps {
			if step == "close" {
				s.c.CloseWrite(s.now)
			} else {
				s.send(step)
			}
			for s.poll() != "" {
			}
		}
		s.state(tc.state)
		if r := s.send("R " + tc.seq + " win 0"); !r.Reset {
			t.Errorf("%v: %+v", tc.state, r)
		}
		s.state(Closed)
		if s.c.Err() != tc.err {
			t.Errorf("%v: %v, want %v", tc.state, s.c.Err(), tc.err)
		}
		if s.c.NextTimeout() < s.now.Add(1000*time.Hour) {
			t.Errorf("%v: a timer runs in CLOSED", tc.state)
		}
	}
}

// RFC 6191, Section 2, and RFC 9293, Section 3.6.1: which SYN may reuse a connection in TIME-WAIT.
func TestReuseOfTimeWait(t *testing.T) {
	for _, tc := range []struct {
		timestamps bool
		syn        string
		want       bool
	}{
		{false, "S 2 win 9", true},
		{false, "S 100000 win 9", true},
		{false, "S 1 win 9", false},
		{false, "S -5000 win 9", false},
		{false, "S -5000 win 9 ts 1/0", true}, // no duplicate: the old connection had no timestamps
		{true, "S -5000 win 9 ts 101/0", true},
		{true, "S -5000 win 9 ts 100/0", false},
		{true, "S 2 win 9 ts 100/0", true},
		{true, "S 2 win 9 ts 99/0", false},
		{true, "S 2 win 9", true},
		{true, "S 1 win 9", false},
		{true, "S. 2 win 9 ts 101/0", false},
		{true, "RS 2 win 9 ts 101/0", false},
		{true, ". 2 win 9 ts 101/0", false},
	} {
		syn, ts := "S 0 win 10000", ""
		if tc.timestamps {
			syn, ts = syn+" ts 100/0", " ts 100/3600000"
		}
		s := acceptScript(t, syn, func(c *Config) { c.NoTimestamps = false })
		s.poll()
		s.send(". 1 ack 1 win 100" + ts)
		if s.c.AcceptsNewSYN(s.parse("S 50 win 9 ts 500/0")) {
			t.Error("an established connection gives its ports away")
		}
		s.c.CloseWrite(s.now)
		s.poll()
		s.send("F. 1 ack 2 win 100" + ts)
		s.state(TimeWait)
		if got := s.c.AcceptsNewSYN(s.parse(tc.syn)); got != tc.want {
			t.Errorf("%q after timestamps %v: %v", tc.syn, tc.timestamps, got)
		}
	}
}

// Payload that was received in order can be taken after the connection is gone, and everything goes back to the pool.
func TestPayloadOutlivesReset(t *testing.T) {
	s := establishedScript(t, nil)
	for _, text := range []string{". 1:101 ack 1 win 9", ". 101:201 ack 1 win 9", ". 301:401 ack 1 win 9", "R 201 win 0"} {
		s.c.HandleSegment(s.now, s.parse(text))
	}
	s.state(Closed)
	n := 0
	for c := s.c.NextReceived(); c != nil; c = s.c.NextReceived() {
		n += len(c.Data)
		s.c.cfg.Pool.Release(c)
	}
	if n != 200 || s.c.cfg.Pool.InUse() != 0 {
		t.Errorf("%d bytes taken, %d in use", n, s.c.cfg.Pool.InUse())
	}
}
