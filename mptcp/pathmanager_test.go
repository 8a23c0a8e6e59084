package mptcp

import (
	"fmt"
	"testing"
	"time"

	"braid/clock"
	"braid/schedule"
	"braid/wire"
)

// bulk connects over two paths of 1.6 Mbit/s and starts a transfer without end.
func bulk(t *testing.T, download bool) (w *world, c, s *Conn, st *stream) {
	t.Helper()
	cfg := Config{Scheduler: schedule.NewRoundRobin}
	w = newWorld(t, cfg, cfg)
	for i := range 2 {
		l := w.link(time.Duration(10+10*i) * time.Millisecond)
		l.rate, l.limit = 2e5, 100*time.Millisecond
	}
	c, s = w.connect(w.listen())
	if download {
		st = w.stream(s, c, 1<<40)
		c.Write(w.now, []byte("request"))
	} else {
		st = w.stream(c, s, 1<<40)
	}
	w.run(2 * time.Second)
	if len(c.subflows) != 2 || len(s.subflows) != 2 {
		t.Fatalf("%d and %d subflows", len(c.subflows), len(s.subflows))
	}
	return w, c, s, st
}

// dataOn returns how long it takes until so many full packets crossed a link.
func (w *world) dataOn(l *testLink, packets int, limit time.Duration) time.Duration {
	n := 0
	old := w.tap
	defer func() { w.tap = old }()
	w.tap = func(f *flight) bool {
		if f.link == l && len(f.b) > 1000 {
			n++
		}
		return true
	}
	start := w.now
	w.until(limit, func() bool { return n >= packets })
	return w.now.Sub(start)
}

// A path that falls silent and returns carries data again within two seconds of its return, in the first minute of the outage; later
// within its slower cadence. The other path carries the transfer meanwhile.
func TestSilentPathReturns(t *testing.T) {
	for _, download := range []bool{false, true} {
		for _, outage := range []time.Duration{time.Second, 3 * time.Second, 7 * time.Second, 29 * time.Second, 55 * time.Second, 200 * time.Second} {
			t.Run(fmt.Sprintf("download %t %v", download, outage), func(t *testing.T) {
				w, c, s, st := bulk(t, download)
				w.links[1].down = true
				before := st.read
				w.run(outage)
				if rate := float64(st.read-before) / outage.Seconds(); outage > 2*time.Second && rate < 1.4e5 {
					t.Errorf("%.0f bytes/s during the outage", rate)
				}
				w.links[1].down = false
				limit := 2 * time.Second
				if outage > time.Minute {
					limit = 17 * time.Second
				}
				if d := w.dataOn(w.links[1], 20, time.Minute); d > limit {
					t.Errorf("used again after %v", d)
				}
				if c.Err() != nil || s.Err() != nil {
					t.Errorf("%v, %v", c.Err(), s.Err())
				}
			})
		}
	}
}

// Both paths fall silent; the connection lives and goes on when one returns.
func TestAllPathsSilent(t *testing.T) {
	for _, download := range []bool{false, true} {
		for _, outage := range []time.Duration{5 * time.Second, 40 * time.Second} {
			w, c, s, st := bulk(t, download)
			w.links[0].down, w.links[1].down = true, true
			w.run(outage)
			before := st.read
			w.links[1].down = false
			if !w.until(2*time.Second, func() bool { return st.read > before }) {
				t.Errorf("download %t, %v: nothing moves (%v, %v)", download, outage, c.Err(), s.Err())
			}
		}
	}
}

// resetSubflows makes the server lose the subflows over a link as a middlebox or a reboot would: with a RST to the client, or without.
func resetSubflows(w *world, s *Conn, l *testLink, tell bool) {
	for i := len(s.subflows) - 1; i >= 0; i-- {
		sf := s.subflows[i]
		if sf.remote.Addr() != l.clientAddr.Addr() {
			continue
		}
		if tell {
			w.server.drop(w.now, sf, wire.ResetUnspecified, true)
		} else {
			w.server.abandon(w.now, sf, ErrAborted)
		}
	}
}

// A subflow that the peer resets is opened again by MP_JOIN at once, the initial one too.
func TestResetSubflowIsJoinedAgain(t *testing.T) {
	for link := range 2 {
		for _, download := range []bool{false, true} {
			w, c, s, _ := bulk(t, download)
			resetSubflows(w, s, w.links[link], true)
			if d := w.dataOn(w.links[link], 20, 10*time.Second); d > 2*time.Second {
				t.Errorf("link %d: used again after %v", link, d)
			}
			if len(c.subflows) != 2 || c.subflows[1].initial {
				t.Errorf("link %d: %d subflows", link, len(c.subflows))
			}
		}
	}
}

// RFC 8684, Section 3.6 (RST-03): without the transient flag the client does not try again soon.
func TestResetForGood(t *testing.T) {
	w, c, s, _ := bulk(t, false)
	for _, sf := range s.subflows {
		if sf.remote.Addr() == w.links[1].clientAddr.Addr() {
			w.server.drop(w.now, sf, wire.ResetProhibited, false)
			break
		}
	}
	joins := w.client.counters.JoinsSent
	w.run(10 * time.Second)
	if n := w.client.counters.JoinsSent - joins; n != 0 || len(c.subflows) != 1 {
		t.Errorf("%d joins", n)
	}
	w.run(7 * time.Second)
	if len(c.subflows) != 2 {
		t.Error("never tried again")
	}
	if w.client.counters.ResetReasonsIn[wire.ResetProhibited] != 1 {
		t.Errorf("reasons received %v", w.client.counters.ResetReasonsIn)
	}
}

// The last subflow is reset: the connection lives without one, and goes on when the path returns (FIN-10).
func TestBreakBeforeMake(t *testing.T) {
	w, c, s, st := bulk(t, false)
	resetSubflows(w, s, w.links[0], true)
	resetSubflows(w, s, w.links[1], true)
	w.run(20 * time.Millisecond)
	w.links[0].down, w.links[1].down = true, true
	w.run(30 * time.Second)
	if len(s.subflows) != 0 || s.Err() != nil || c.Err() != nil {
		t.Fatalf("%d subflows, %v, %v", len(s.subflows), c.Err(), s.Err())
	}
	w.links[0].down = false
	before := st.read
	if !w.until(2*time.Second, func() bool { return st.read > before }) {
		t.Error("nothing moves")
	}
}

// RFC 8684, Section 3.9.2: joins to a dead path are tried at the same cadence: 1.5 s or faster in the first minute, then every 15 s.
func TestJoinCadence(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(10 * time.Millisecond)
	dead := w.link(10 * time.Millisecond)
	dead.down = true
	var at []clock.Time
	ports := map[uint16]bool{}
	nonces := map[uint32]bool{}
	w.tap = func(f *flight) bool {
		if f.link == dead {
			seg := f.segment(t)
			if seg.Has(wire.OptMPJoin) {
				at = append(at, w.now)
				ports[seg.SrcPort] = true
				nonces[seg.Join.Nonce] = true
			}
		}
		return true
	}
	c, s := w.connect(w.listen())
	st := w.stream(c, s, 1<<40)
	w.links[0].rate = 1e4
	w.run(3 * time.Minute)
	for i := 1; i < len(at); i++ {
		pause, age := at[i].Sub(at[i-1]), at[i-1].Sub(at[0])
		if age < 58*time.Second && pause > 1500*time.Millisecond || age > 62*time.Second && pause > 15*time.Second {
			t.Errorf("%v into the outage: a pause of %v", age, pause)
		}
	}
	if len(at) < 45 || len(at) > 120 {
		t.Errorf("%d SYNs in 3 minutes", len(at))
	}
	if len(ports) < 10 || len(ports) != len(nonces) { // JOIN-06
		t.Errorf("%d ports, %d nonces", len(ports), len(nonces))
	}
	dead.down = false
	w.links[0].rate = 1e5
	if d := w.dataOn(dead, 5, time.Minute); d > 17*time.Second {
		t.Errorf("joined after %v", d)
	}
	if st.err != nil {
		t.Error(st.err)
	}
}

// The server forgot a subflow without a word, and nothing of the client's is outstanding on it: the segments on the other one make
// the client ask.
func TestForgottenSubflow(t *testing.T) {
	w, c, s, _ := bulk(t, true)
	resetSubflows(w, s, w.links[1], false)
	w.run(30 * time.Second)
	if len(s.subflows) != 2 || len(c.subflows) != 2 {
		t.Errorf("%d subflows at the server, %d at the client", len(s.subflows), len(c.subflows))
	}
}

// A middlebox forgets a subflow and swallows all but new handshakes: a second subflow is opened beside the silent one.
func TestMiddleboxForgets(t *testing.T) {
	for _, download := range []bool{false, true} {
		w, c, _, _ := bulk(t, download)
		port := c.subflows[1].srcPort
		w.tap = func(f *flight) bool {
			if f.link != w.links[1] {
				return true
			}
			seg := f.segment(t)
			return seg.SrcPort != port && seg.DstPort != port
		}
		if !w.until(40*time.Second, func() bool { return len(c.subflows) == 2 && c.subflows[1].srcPort != port && c.subflows[1].usable() }) {
			t.Errorf("download %t: no second subflow", download)
		}
	}
}

// Paths come and go.
func TestPathsComeAndGo(t *testing.T) {
	w, c, s, st := bulk(t, false)
	w.client.RemovePath(w.now, w.links[0].client)
	before := st.read
	w.run(3 * time.Second)
	if len(c.subflows) != 1 || st.read-before < 4e5 {
		t.Errorf("%d subflows, %d bytes", len(c.subflows), st.read-before)
	}
	w.links[0].client = w.client.AddPath(w.now, Path{Local: w.links[0].clientAddr})
	if d := w.dataOn(w.links[0], 20, 10*time.Second); d > 2*time.Second {
		t.Errorf("the new path is used after %v", d)
	}
	w.client.RemovePath(w.now, w.links[0].client)
	w.client.RemovePath(w.now, w.links[1].client)
	w.run(time.Second)
	w.links[1].client = w.client.AddPath(w.now, Path{Local: w.links[1].clientAddr})
	before = st.read
	w.run(2 * time.Second)
	if st.read == before || c.Err() != nil || s.Err() != nil {
		t.Errorf("%d bytes, %v, %v", st.read-before, c.Err(), s.Err())
	}
}

// An idle connection has no timer, and its path manager wakes nobody.
func TestIdleHasNoTimer(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(10 * time.Millisecond)
	w.link(10 * time.Millisecond)
	c, s := w.connect(w.listen())
	st := w.stream(c, s, 100000)
	st.noClose = true
	w.run(30 * time.Second)
	if st.read != 100000 {
		t.Fatalf("read %d", st.read)
	}
	if a, b := w.client.NextTimeout(), w.server.NextTimeout(); a != clock.Never || b != clock.Never {
		t.Errorf("timers at %v and %v, now %v", a, b, w.now)
	}
}

// A plain TCP connection's silent path is probed as well.
func TestPlainPathReturns(t *testing.T) {
	w := newWorld(t, Config{NoMPTCP: true}, Config{})
	w.link(10 * time.Millisecond).rate = 1e6
	c, s := w.connect(w.listen())
	st := w.stream(c, s, 1<<40)
	w.run(time.Second)
	w.links[0].down = true
	w.run(45 * time.Second)
	w.links[0].down = false
	before := st.read
	if !w.until(2*time.Second, func() bool { return st.read > before }) {
		t.Error("nothing moves")
	}
}
