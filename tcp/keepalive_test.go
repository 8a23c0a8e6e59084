package tcp

import (
	"testing"
	"time"
)

func keepAliveConfig(c *Config) {
	c.KeepAlive, c.KeepAliveEvery, c.KeepAliveCount = 2*time.Hour, 10*time.Second, 3
}

// RFC 9293, Section 3.8.4: a probe below SND.NXT after the idle time; the answer ends the matter.
func TestKeepAlive(t *testing.T) {
	s := establishedScript(t, keepAliveConfig)
	for range 3 {
		if d := s.until(); d != 2*time.Hour {
			t.Errorf("probed after %v", d)
		}
		s.want(". 0 ack 1 win 10000", "")
		s.now = s.now.Add(time.Second)
		if r := s.send(". 1 ack 1 win 10000"); !r.Acceptable {
			t.Error("the answer is not acceptable")
		}
		s.until() // looks again
		s.now = s.c.lastHeard
		s.c.keep.at = s.now.Add(2 * time.Hour)
	}
	if n := s.c.keep.probes; n != 3 {
		t.Errorf("%d probes counted", n)
	}
}

// Segments that arrive put the probe off, without moving the timer each time.
func TestKeepAliveWaitsForSilence(t *testing.T) {
	s := establishedScript(t, keepAliveConfig)
	s.now = s.now.Add(time.Hour)
	s.send(". 1:2 ack 1 win 10000")
	s.poll()
	s.until()
	s.quiet()
	if d := s.until(); d != time.Hour {
		t.Errorf("probed %v after the idle hour", d)
	}
	s.want(". 0 ack 2 win 9999")
}

// One lost probe means nothing; as many as configured end the connection.
func TestKeepAliveGivesUp(t *testing.T) {
	s := establishedScript(t, keepAliveConfig)
	s.until()
	for range 2 {
		s.want(". 0 ack 1 win 10000", "")
		if d := s.until(); d != 10*time.Second {
			t.Errorf("next probe after %v", d)
		}
	}
	s.want(". 0 ack 1 win 10000")
	s.until()
	s.want("R. 1 ack 1 win 10000")
	s.state(Closed)
	if s.c.Err() != ErrTimeout {
		t.Error(s.c.Err())
	}
}

// Off by default (RFC 9293, Section 3.8.4).
func TestNoKeepAliveByDefault(t *testing.T) {
	s := establishedScript(t, nil)
	if d := s.c.NextTimeout(); d < s.now.Add(24*365*time.Hour) {
		t.Errorf("an idle connection has a timer at %v", d)
	}
}

// Both ends: the answer to a probe is one ACK, and nothing follows from it.
func TestKeepAliveOfTwo(t *testing.T) {
	p := connected(t, func(a, b *Config) { a.KeepAlive = time.Minute })
	a, b := p.a.sent, p.b.sent
	p.advance(10*time.Minute + 30*time.Second)
	if a, b = p.a.sent-a, p.b.sent-b; a < 9 || a > 11 || b != a {
		t.Errorf("%d probes, %d answers in ten minutes", a, b)
	}
	p.wantStates(Established, Established)
}

// The owner asks: with the SYN, with an empty segment, or with the oldest outstanding one when that has timed out.
func TestProbe(t *testing.T) {
	s := establishedScript(t, nil)
	s.c.Probe(s.now)
	s.want(". 0 ack 1 win 10000", "")
	s.c.Push(1, 100)
	s.want("P. 1:101 ack 1 win 10000", "")
	s.c.Probe(s.now)
	s.want(". 0 ack 1 win 10000", "")
	for s.c.Backoffs() < 3 {
		s.until()
		for s.poll() != "" {
		}
	}
	s.c.Probe(s.now)
	s.want("P. 1:101 ack 1 win 10000", "")
	s.send(". 1 ack 101 win 10000")
	s.quiet()
	if s.c.LastHeard() != s.now {
		t.Errorf("heard at %v", s.c.LastHeard())
	}
}
