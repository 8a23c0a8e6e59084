package tcp

import (
	"testing"
	"time"
)

// timestamped is connected with timestamps; the peer's clock stands at 100.
func timestamped(t *testing.T, edit func(*Config)) *script {
	t.Helper()
	s := acceptScript(t, "S 0 win 10000 mss 1460 sackok ts 100/0", func(c *Config) {
		c.NoTimestamps = false
		if edit != nil {
			edit(c)
		}
	})
	s.want("S. 0 ack 1 win 10000 mss 1460 sackok ts 3600000/100")
	s.send(". 1 ack 1 win 10000 ts 100/3600000")
	s.quiet()
	return s
}

// RFC 7323, Section 5.3: an older timestamp gives an ACK and a drop; a RST is exempt.
func TestPAWS(t *testing.T) {
	s := timestamped(t, nil)
	s.send(". 1:11 ack 1 win 9 ts 105/3600000")
	s.want(". 1 ack 11 win 9990 ts 3600000/105")
	if r := s.send(". 11:21 ack 1 win 9 ts 104/3600000"); r.Acceptable {
		t.Error("an older timestamp is acceptable")
	}
	s.want(". 1 ack 11 win 9990 ts 3600000/105")
	if s.c.PAWSDrops() != 1 {
		t.Errorf("counted %d", s.c.PAWSDrops())
	}
	if r := s.send(". 11:21 ack 1 win 9 ts 105/3600000"); !r.Acceptable {
		t.Error("an equal timestamp is not acceptable")
	}
	if r := s.send("R 21 win 0 ts 1/0"); !r.Reset {
		t.Error("a RST is subject to PAWS")
	}
}

// RFC 7323, Section 5.5: TS.Recent expires after 24 days.
func TestPAWSExpires(t *testing.T) {
	s := timestamped(t, nil)
	s.now = s.now.Add(25 * 24 * time.Hour)
	if r := s.send(". 1:11 ack 1 win 9 ts 50/3600000"); !r.Acceptable {
		t.Error("TS.Recent does not expire")
	}
	if s.c.ts.recent != 50 {
		t.Errorf("TS.Recent is %d", s.c.ts.recent)
	}
}

// RFC 7323, Section 3.2: text without the negotiated option is dropped; bare ACKs too if the Config is strict.
func TestMissingTimestamp(t *testing.T) {
	for _, strict := range []bool{false, true} {
		s := timestamped(t, func(c *Config) { c.StrictTimestamps = strict })
		if r := s.send(". 1:11 ack 1 win 9"); r.Acceptable {
			t.Error("text without a timestamp is taken")
		}
		s.quiet()
		if r := s.send(". 1 ack 1 win 9"); r.Acceptable == strict {
			t.Errorf("strict %v: a bare ACK is acceptable: %v", strict, r.Acceptable)
		}
		if r := s.send("R 1 win 0"); !r.Reset {
			t.Error("a RST without a timestamp is dropped")
		}
	}
}

// RFC 7323, Section 4.3: TS.Recent is that of the segment that the next ACK answers first: SEG.SEQ <= Last.ACK.sent.
func TestRecentTimestamp(t *testing.T) {
	s := timestamped(t, nil)
	for range quickAcks {
		s.c.rcv.quick = 0
	}
	s.send(". 1:101 ack 1 win 9 ts 101/3600000")
	s.send(". 101:201 ack 1 win 9 ts 102/3600000") // beyond Last.ACK.sent: the delayed ACK echoes the first
	s.want(". 1 ack 201 win 9800 ts 3600000/101")
	s.send(". 301:401 ack 1 win 9 ts 103/3600000") // out of order
	s.want(". 1 ack 201 win 9800 ts 3600000/101 sack 301-401")
	s.send(". 201:301 ack 1 win 9 ts 104/3600000") // fills the gap
	s.want(". 1 ack 401 win 9600 ts 3600000/104")
	// A repetition, because our ACK was lost: the next ACK echoes it.
	s.send(". 201:301 ack 1 win 9 ts 110/3600000")
	s.want(". 1 ack 401 win 9600 ts 3600000/110 sack 201-301")
	// One with numbers that a stranger could guess does not count.
	s.send(". -200000:-199900 ack 1 win 9 ts 5000/3600000")
	s.want(". 1 ack 401 win 9600 ts 3600000/110 sack -200000--199900")
}

// An echo of what was never sent is no sample.
func TestEchoOfNothing(t *testing.T) {
	ts := timestamps{offset: 0xffff_ff00, start: 1000 * 1e6}
	now := ts.start + 500*1e6
	for _, tc := range []struct {
		ago  uint32
		want time.Duration
		ok   bool
	}{
		{0, tick / 2, true}, {1, tick, true}, {300, 300 * tick, true}, {501, 501 * tick, true},
		{502, 0, false}, {1 << 30, 0, false}, {^uint32(0), 0, false},
	} {
		rtt, ok := ts.echo(now, ts.value(now)-tc.ago)
		if rtt != tc.want || ok != tc.ok {
			t.Errorf("echo of %d ms ago: %v %v", tc.ago, rtt, ok)
		}
	}
}

// A host that only receives measures the round trip by the echoes on payload.
func TestReceiverRTT(t *testing.T) {
	p := connected(t, nil)
	p.a.write(1 << 20)
	p.run(time.Minute, func() bool { return p.b.got == 1<<20 })
	if rtt := p.b.c.ReceiverRTT(); rtt < 19*time.Millisecond || rtt > 40*time.Millisecond {
		t.Errorf("%v, the path has 20 ms", rtt)
	}
}
