package tcp

import (
	"testing"
	"time"
)

// RFC 9293, Section 3.5: the three-way handshake, seen from both sides, with the options of RFC 9293, RFC 7323 and RFC 2018.
func TestActiveOpen(t *testing.T) {
	s := dialScript(t, func(c *Config) { c.NoTimestamps = false; c.WindowScale = 3; c.InitialWindow = 100000 })
	s.want("S 0 win 65535 mss 1460 ws 3 sackok ts 3600000/0")
	s.now = s.now.Add(20 * time.Millisecond)
	r := s.send("S. 0 ack 1 win 1000 mss 1000 ws 4 sackok ts 7/3600000")
	if !r.Established || !r.Acceptable || s.c.State() != Established {
		t.Fatalf("%+v %v", r, s.c.State())
	}
	s.want(". 1 ack 1 win 12500 ts 3600020/7") // the first scaled window
	s.quiet()
	if s.c.PeerWindow() != 1000 {
		t.Errorf("RFC 7323, Section 2.2: the window of a SYN is not scaled; got %d", s.c.PeerWindow())
	}
	if got := s.c.SRTT(); got != 20*time.Millisecond {
		t.Errorf("SRTT %v", got)
	}
	if s.c.MSS() != 1000-12 {
		t.Errorf("RFC 6691: options come off the peer's MSS; got %d", s.c.MSS())
	}
	s.send(". 1 ack 1 win 1000 ts 8/3600020")
	if s.c.PeerWindow() != 16000 {
		t.Errorf("window after the SYN %d", s.c.PeerWindow())
	}
}

func TestPassiveOpen(t *testing.T) {
	s := acceptScript(t, "S 0 win 5000 mss 1200 ws 20 sackok ts 9/0", func(c *Config) { c.NoTimestamps = false; c.WindowScale = 30 })
	s.want("S. 0 ack 1 win 10000 mss 1460 ws 14 sackok ts 3600000/9")
	s.state(SynReceived)
	if r := s.send(". 1 ack 1 win 2 ts 10/3600000"); !r.Established {
		t.Fatalf("%+v", r)
	}
	s.state(Established)
	if s.c.PeerWindow() != 2<<14 {
		t.Errorf("RFC 7323, Section 2.3: a shift above 14 counts as 14; window %d", s.c.PeerWindow())
	}
	s.quiet()
}

// Every option is used only if both SYNs carry it (RFC 7323, Sections 1.3 and 2.2; RFC 2018, Section 2), and the answer has only what was
// offered.
func TestOptionsNeedBothSides(t *testing.T) {
	for _, tc := range []struct {
		syn, answer string
		edit        func(*Config)
	}{
		{"S 0 win 100", "S. 0 ack 1 win 10000 mss 1460", nil},
		{"S 0 win 100 sackok", "S. 0 ack 1 win 10000 mss 1460 sackok", nil},
		{"S 0 win 100 ws 1", "S. 0 ack 1 win 10000 mss 1460 ws 2", nil},
		{"S 0 win 100 ts 5/0", "S. 0 ack 1 win 10000 mss 1460 ts 3600000/5", nil},
		{"S 0 win 100 mss 900 ws 1 sackok ts 5/0", "S. 0 ack 1 win 10000 mss 1460",
			func(c *Config) { c.NoSACK, c.NoTimestamps, c.NoWindowScale = true, true, true }},
	} {
		s := acceptScript(t, tc.syn, func(c *Config) {
			c.NoTimestamps, c.WindowScale = false, 2
			if tc.edit != nil {
				tc.edit(c)
			}
		})
		s.want(tc.answer)
	}
	// And the active side believes no option that it did not offer.
	s := dialScript(t, func(c *Config) { c.NoSACK, c.NoTimestamps, c.NoWindowScale = true, true, true })
	s.want("S 0 win 10000 mss 1460")
	s.send("S. 0 ack 1 win 100 ws 5 sackok ts 1/1")
	s.want(". 1 ack 1 win 10000")
	if s.c.opts.sack || s.c.ts.on || s.c.PeerWindow() != 100 {
		t.Error("options that were not offered are in use")
	}
}

// RFC 9293, Section 3.7.1: without the option 536 for IPv4 and 1220 for IPv6 are assumed; absurd values have a floor.
func TestMissingMSS(t *testing.T) {
	for _, tc := range []struct {
		overhead int
		option   string
		want     int
	}{{20, "", 536}, {40, "", 1220}, {20, " mss 1", minMSS}, {20, " mss 9000", 1460}, {40, " mss 9000", 1440}} {
		s := acceptScript(t, "S 0 win 100"+tc.option, func(c *Config) { c.Overhead = tc.overhead })
		if s.c.MSS() != tc.want {
			t.Errorf("overhead %d, option %q: %d, want %d", tc.overhead, tc.option, s.c.MSS(), tc.want)
		}
	}
}

// RFC 6298: SYN retransmission after 1 s, doubled each time; RFC 9293, Section 3.8.3: R2 is at least three minutes.
func TestSYNRetransmission(t *testing.T) {
	s := dialScript(t, nil)
	syn := "S 0 win 10000 mss 1460 ws 0 sackok"
	s.want(syn)
	start := s.now
	for _, wait := range []time.Duration{1, 2, 4, 8, 16, 32, 60} {
		if d := s.until(); d != wait*time.Second {
			t.Fatalf("waited %v, want %v s", d, int64(wait))
		}
		s.want(syn)
		s.quiet()
	}
	s.until()
	s.state(Closed)
	if s.c.Err() != ErrTimeout || s.now.Sub(start) < 180*time.Second {
		t.Errorf("%v after %v", s.c.Err(), s.now.Sub(start))
	}
	s.quiet()
}

// RFC 6298, Section 5.7 and Karn: after a lost SYN without timestamps there is no RTT sample; with them the echo gives one.
func TestLostSYN(t *testing.T) {
	s := dialScript(t, nil)
	s.poll()
	s.until()
	s.poll()
	s.now = s.now.Add(30 * time.Millisecond)
	s.send("S. 0 ack 1 win 1000 mss 1460 sackok")
	if s.c.SRTT() != 0 || s.c.RTO() != 3*time.Second {
		t.Errorf("SRTT %v, RTO %v", s.c.SRTT(), s.c.RTO())
	}
	s = dialScript(t, func(c *Config) { c.NoTimestamps = false })
	s.poll()
	s.until()
	s.poll()
	s.now = s.now.Add(30 * time.Millisecond)
	s.send("S. 0 ack 1 win 1000 mss 1460 sackok ts 5/3601000")
	if s.c.SRTT() != 30*time.Millisecond {
		t.Errorf("SRTT %v", s.c.SRTT())
	}
}

// A repeated SYN gets the SYN/ACK again; the timer repeats it too.
func TestSYNACKRetransmission(t *testing.T) {
	s := acceptScript(t, "S 0 win 1000 mss 1460", nil)
	answer := "S. 0 ack 1 win 10000 mss 1460"
	s.want(answer)
	if r := s.send("S 0 win 1000 mss 1460"); r.Acceptable {
		t.Error("a repeated SYN is acceptable")
	}
	s.want(answer)
	s.quiet()
	if d := s.until(); d != time.Second {
		t.Errorf("waited %v", d)
	}
	s.want(answer)
	s.send(". 1 ack 1 win 1000")
	s.state(Established)
}

// RFC 9293, Section 3.10.7.4, SYN-RECEIVED: an ACK of something never sent is answered with a RST and changes nothing.
func TestSynReceivedRefusesWrongAck(t *testing.T) {
	s := acceptScript(t, "S 0 win 1000 mss 1460", nil)
	s.poll()
	s.send(". 1 ack 77 win 1000")
	s.want("R 77 win 0")
	s.quiet()
	s.state(SynReceived)
	s.send(". 1 ack 1 win 1000")
	s.state(Established)
}

// RFC 9293, Section 3.10.7.3, first and second check.
func TestSynSentChecks(t *testing.T) {
	s := dialScript(t, nil)
	s.poll()
	s.send(". 500 ack 300 win 1000") // a half-open peer (RFC 9293, Section 3.5.1)
	s.want("R 300 win 0")
	s.send("R. 0 ack 300 win 0") // a RST that acknowledges something else
	s.send("R 0 win 0")          // one without ACK
	s.send(". 500 ack 1 win 1000")
	s.quiet()
	s.state(SynSent)
	if r := s.send("R. 0 ack 1 win 0"); !r.Reset || !r.Closed {
		t.Errorf("%+v", r)
	}
	s.state(Closed)
	if s.c.Err() != ErrRefused {
		t.Error(s.c.Err())
	}
}

// RFC 9293, Section 3.5, Figure 8: simultaneous open.
func TestSimultaneousOpen(t *testing.T) {
	s := dialScript(t, nil)
	s.want("S 0 win 10000 mss 1460 ws 0 sackok")
	if r := s.send("S 0 win 1000 mss 1460 ws 0 sackok"); !r.Acceptable || r.Established {
		t.Fatalf("%+v", r)
	}
	s.state(SynReceived)
	s.want("S. 0 ack 1 win 10000 mss 1460 ws 0 sackok")
	if r := s.send("S. 0 ack 1 win 1000 mss 1460 ws 0 sackok"); !r.Established {
		t.Fatalf("%+v", r)
	}
	s.state(Established)
	s.want(". 1 ack 1 win 10000")
	s.quiet()
}

func TestSimultaneousOpenOfTwo(t *testing.T) {
	p := newPair(t, nil)
	p.b.c = Dial(p.now, p.b.c.cfg)
	p.a.write(1000)
	p.b.write(1000)
	p.advance(time.Second)
	p.wantStates(Established, Established)
	if p.a.got != 1000 || p.b.got != 1000 {
		t.Errorf("received %d and %d", p.a.got, p.b.got)
	}
}

// RFC 9293, Section 3.5.1: a host that restarted and dials again clears the other's half-open connection.
func TestHalfOpenRecovery(t *testing.T) {
	p := connected(t, nil)
	cfg := p.a.c.cfg
	cfg.ISS += 123456
	p.a.c = Dial(p.now, cfg)
	old := p.b.c
	p.run(time.Minute, func() bool { return old.State() == Closed })
	if old.Err() != ErrReset {
		t.Fatalf("the old connection: %v, %v", old.State(), old.Err())
	}
	p.b.c = &Conn{cfg: p.b.c.cfg} // the listener
	p.advance(10 * time.Second)
	p.wantStates(Established, Established)
}

// A SYN/ACK may carry payload (RFC 9293, Section 3.10.7.3, fourth check).
func TestPayloadOnSYNACK(t *testing.T) {
	s := dialScript(t, nil)
	s.poll()
	seg := s.parse("S. 0 ack 1 win 1000 mss 1460")
	seg.Payload = []byte("hello")
	if r := s.c.HandleSegment(s.now, seg); !r.Established {
		t.Fatalf("%+v", r)
	}
	if c := s.c.NextReceived(); c == nil || string(c.Data) != "hello" || c.Start != 1 {
		t.Fatalf("received %v", c)
	}
	s.want(". 1 ack 6 win 9995")
}

// A FIN asked for during the handshake follows it.
func TestCloseDuringHandshake(t *testing.T) {
	s := dialScript(t, nil)
	s.poll()
	s.c.CloseWrite(s.now)
	s.state(SynSent)
	s.send("S. 0 ack 1 win 1000 mss 1460")
	s.state(FinWait1)
	s.want("F. 1 ack 1 win 10000")

	s = dialScript(t, nil)
	s.poll()
	s.c.Close(s.now) // RFC 9293, Section 3.10.4: in SYN-SENT the TCB is deleted
	s.state(Closed)
	s.quiet()
}
