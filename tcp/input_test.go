package tcp

import (
	"testing"
	"time"
)

// RFC 9293, Section 3.10.7.4: the four cases of the acceptability test, with our two additions for segments without text.
func TestAcceptability(t *testing.T) {
	for _, tc := range []struct {
		name   string
		window int64
		text   string
		want   bool
		ack    string // the answer; "" if none
	}{
		{"empty, at RCV.NXT", 1000, ". 1 ack 1 win 10000", true, ""},
		{"empty, inside", 1000, ". 500 ack 1 win 10000", true, ""},
		{"empty, at the edge", 1000, ". 1001 ack 1 win 10000", true, ""},
		{"empty, beyond", 1000, ". 1002 ack 1 win 10000", false, ". 1 ack 1 win 1000"},
		{"empty, below", 1000, ". 0 ack 1 win 10000", false, ". 1 ack 1 win 1000"},
		{"empty, zero window", 0, ". 1 ack 1 win 10000", true, ""},
		{"empty, zero window, beyond", 0, ". 2 ack 1 win 10000", false, ". 1 ack 1 win 0"},
		{"text, inside", 1000, ". 1:101 ack 1 win 10000", true, ". 1 ack 101 win 900"},
		{"text, reaching beyond", 1000, ". 1:2001 ack 1 win 10000", true, ". 1 ack 1001 win 0"},
		{"text, at the edge", 1000, ". 1001:1002 ack 1 win 10000", false, ". 1 ack 1 win 1000"},
		{"text, from below", 1000, ". 0:3 ack 1 win 10000", true, ". 1 ack 3 win 998 sack 0-1"},
		{"text, old", 1000, ". 0:1 ack 1 win 10000", false, ". 1 ack 1 win 1000 sack 0-1"},
		{"text, zero window", 0, ". 1:2 ack 1 win 10000", true, ". 1 ack 1 win 0"},
		{"RST beyond", 1000, "R 5000 win 0", false, ""},
		{"RST below", 1000, "R 0 win 0", false, ""},
		{"no ACK bit", 1000, "- 1:101 win 10000", false, ""},
	} {
		s := establishedScript(t, func(c *Config) { c.InitialWindow = max(tc.window, 1) })
		if tc.window == 0 { // a byte fills it
			s.send(". 1:2 ack 1 win 10000")
			s.want(". 1 ack 2 win 0")
			s.got = nil
			s.c.irs++ // count from there
			s.c.rcv.nxt, s.c.rcv.lastAck, s.c.rcv.edge, s.c.rcv.limit, s.c.rcv.delivered = 1, 1, 1, 1, 1
			s.c.peer.wl1 = 0
			seg := s.parse(tc.text)
			seg.Seq++
			if r := s.c.HandleSegment(s.now, seg); r.Acceptable != tc.want {
				t.Errorf("%s: acceptable %v", tc.name, r.Acceptable)
			}
			got := ""
			if s.c.PollSegment(s.now, &s.seg, &s.out, 0, 0) {
				got = describe(scriptISS, scriptIRS+1, &s.seg)
			}
			if got != tc.ack {
				t.Errorf("%s: answer %q, want %q", tc.name, got, tc.ack)
			}
			continue
		}
		if r := s.send(tc.text); r.Acceptable != tc.want {
			t.Errorf("%s: acceptable %v", tc.name, r.Acceptable)
		}
		if got := s.poll(); got != tc.ack {
			t.Errorf("%s: answer %q, want %q", tc.name, got, tc.ack)
		}
		s.quiet()
	}
}

// RFC 5961, Section 3.2: a RST resets at exactly RCV.NXT only; elsewhere in the window it is challenged.
func TestBlindReset(t *testing.T) {
	s := establishedScript(t, nil)
	s.send("R 2 win 0")
	s.want(". 1 ack 1 win 10000")
	s.send("R 10000 win 0")
	s.want(". 1 ack 1 win 10000")
	s.send("R 10001 win 0")
	s.quiet()
	s.state(Established)
	if r := s.send("R 1 win 0"); !r.Reset || !r.Closed || !r.Acceptable {
		t.Errorf("%+v", r)
	}
	s.state(Closed)
	if s.c.Err() != ErrReset {
		t.Error(s.c.Err())
	}
	s.quiet()
}

// RFC 5961, Section 4.2: a SYN on a synchronized connection is challenged wherever its sequence number lies.
func TestBlindSYN(t *testing.T) {
	s := establishedScript(t, nil)
	for _, text := range []string{"S 1 win 0", "S 500 win 0", "S 90000 win 0", "S. 0 ack 1 win 0", "S. 1 ack 99 win 0"} {
		if r := s.send(text); r.Acceptable {
			t.Errorf("%s is acceptable", text)
		}
		s.want(". 1 ack 1 win 10000")
	}
	s.send("SR 1 win 0")
	s.quiet()
	s.state(Established)
}

// RFC 5961, Section 5.2: SND.UNA - MAX.SND.WND <= SEG.ACK <= SND.NXT.
func TestBlindData(t *testing.T) {
	s := establishedScript(t, nil)
	for _, tc := range []struct {
		text string
		want bool
	}{
		{". 1:11 ack 1 win 10000", true},
		{". 11:21 ack -9999 win 10000", true}, // 10000 below SND.UNA
		{". 21:31 ack -10000 win 10000", false},
		{". 21:31 ack 2 win 10000", false},
		{". 21:31 ack 100000 win 10000", false},
	} {
		if r := s.send(tc.text); r.Acceptable != tc.want {
			t.Errorf("%s: acceptable %v", tc.text, r.Acceptable)
		}
		if s.poll() == "" {
			t.Errorf("%s: no answer", tc.text)
		}
	}
	if len(s.got) != 20 {
		t.Errorf("received %d bytes", len(s.got))
	}
}

// RFC 5961, Section 7: ten challenges at once, then one in half a second. Text that was received before is always answered.
func TestChallengeLimit(t *testing.T) {
	s := establishedScript(t, nil)
	count := func(text string, n int) (answers int) {
		for range n {
			s.send(text)
			if s.poll() != "" {
				answers++
			}
		}
		return answers
	}
	if n := count("S 1 win 0", 100); n != challengeBurst {
		t.Errorf("%d answers at once", n)
	}
	s.now = s.now.Add(1200 * time.Millisecond)
	if n := count(". 0 ack 1 win 10000", 100); n != 2 {
		t.Errorf("%d answers after 1.2 s", n)
	}
	if n := count(". 0:1 ack 1 win 10000", 100); n != 100 {
		t.Errorf("%d answers to repeated text", n)
	}
	if s.c.Challenges() != challengeBurst+2 {
		t.Errorf("counted %d", s.c.Challenges())
	}
}

// RFC 9293, Section 3.10.7.4: SND.WND follows SND.WL1 and SND.WL2, so that old segments do not change it; a newer one may shrink it.
func TestWindowUpdates(t *testing.T) {
	s := establishedScript(t, nil)
	s.c.Push(1, 100)
	s.want("P. 1:101 ack 1 win 10000")
	for _, tc := range []struct {
		text string
		want int64 // window beyond SND.UNA
	}{
		{". 1 ack 1 win 5000", 5000},         // shrunk by a segment of the same numbers
		{". 1 ack 101 win 6000", 6000},       // newer by its ACK
		{". 1 ack 1 win 9000", 6000},         // older
		{". 1:11 ack 101 win 0", 0},          // closed
		{". 11 ack 101 win 1", 1},            // newer by its sequence number
		{". 5 ack 101 win 7000", 1},          // older
		{". 11:12 ack 101 win 65535", 65535}, // RFC 9293, Section 3.8.6: unsigned
		{". 12:13 ack 1 win 10", 65535},      // newer by its sequence number, but its ACK is below SND.UNA
	} {
		s.send(tc.text)
		for s.poll() != "" {
		}
		if got := s.c.PeerWindow(); got != max(tc.want, 0) {
			t.Errorf("%s: window %d, want %d", tc.text, got, tc.want)
		}
	}
}

// RFC 9293, Section 3.8.5: the urgent pointer is parsed and otherwise ignored; the data is delivered in line.
func TestUrgentData(t *testing.T) {
	s := establishedScript(t, nil)
	seg := s.parse(". 1:11 ack 1 win 10000")
	seg.Flags |= 1 << 5
	seg.Urgent = 65535
	s.c.HandleSegment(s.now, seg)
	if c := s.c.NextReceived(); c == nil || len(c.Data) != 10 {
		t.Errorf("received %v", c)
	}
}

// What HandleSegment says about payload.
func TestResult(t *testing.T) {
	s := establishedScript(t, nil)
	for _, tc := range []struct {
		text                  string
		inOrder, dup, peerFIN bool
	}{
		{". 1 ack 1 win 10000", true, false, false},
		{". 1:101 ack 1 win 10000", true, false, false},
		{". 1:101 ack 1 win 10000", false, true, false},
		{". 201:301 ack 1 win 10000", false, false, false},
		{". 201:301 ack 1 win 10000", false, true, false},
		{"F. 301 ack 1 win 10000", false, false, false},
		{". 101:201 ack 1 win 10000", true, false, true},
		{"F. 301 ack 1 win 10000", false, true, false},
		{". 302 ack 1 win 10000", true, false, false},
	} {
		r := s.send(tc.text)
		if r.InOrder != tc.inOrder || r.Duplicate != tc.dup || r.PeerFIN != tc.peerFIN {
			t.Errorf("%s: %+v", tc.text, r)
		}
	}
	s.state(CloseWait)
}
