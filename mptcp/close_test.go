package mptcp

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"braid/wire"
)

// RFC 8684, Section 3.3.3: half close both ways round, with the answer coming after the end of the question (FIN-07, FIN-08,
// FIN-09).
func TestHalfClose(t *testing.T) {
	for _, paths := range []int{1, 2} {
		w := newWorld(t, Config{}, Config{})
		for range paths {
			w.link(10 * time.Millisecond)
		}
		c, s := w.connect(w.listen())
		w.transfer(c, s, 30_000, 5*time.Second)
		w.run(2 * time.Minute) // a half-closed connection has all the time it wants
		if _, err := c.Write(w.now, []byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("write after CloseWrite: %v", err)
		}
		w.transfer(s, c, 30_000, 5*time.Second)
		w.run(5 * time.Second)
		if c.state != connOver || s.state != connOver || c.Err() != nil || s.Err() != nil {
			t.Errorf("client %v %v, server %v %v", c.state, c.Err(), s.state, s.Err())
		}
		if n, err := c.Read(w.now, make([]byte, 1)); n != 0 || err != io.EOF {
			t.Errorf("read after the end: %d, %v", n, err)
		}
	}
}

// FIN-11: both close at the same time.
func TestSimultaneousClose(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(10 * time.Millisecond)
	w.link(20 * time.Millisecond)
	c, s := w.connect(w.listen())
	c.Write(w.now, []byte("x"))
	w.run(time.Second)
	s.Read(w.now, make([]byte, 10))
	c.Close(w.now)
	s.Close(w.now)
	w.run(5 * time.Second)
	if c.state != connOver || s.state != connOver || c.Err() != nil || s.Err() != nil {
		t.Errorf("client %v %v, server %v %v", c.state, c.Err(), s.state, s.Err())
	}
}

// FIN-05: a DATA_FIN is repeated with back-off until it is DATA_ACKed; any subflow that works will do.
func TestLostDataFINIsRepeated(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(10 * time.Millisecond)
	w.link(20 * time.Millisecond)
	c, s := w.connect(w.listen())
	c.Write(w.now, []byte("x"))
	w.run(time.Second)
	s.Read(w.now, make([]byte, 10))
	lost := 0
	var times []time.Duration
	start := w.now
	w.tap = func(f *flight) bool {
		seg := f.segment(t)
		if seg.Has(wire.OptDSS) && seg.DSS.HasMap && seg.DSS.DataFIN && f.toServer {
			if len(seg.Payload) == 0 && (seg.DSS.Subflow != 0 || seg.DSS.Length != 1) { // FIN-03
				t.Errorf("bare DATA_FIN %+v", seg.DSS)
			}
			if lost++; lost <= 6 {
				times = append(times, w.now.Sub(start))
				return false
			}
		}
		return true
	}
	c.CloseWrite(w.now)
	w.until(20*time.Second, func() bool { return s.Readable() })
	if _, err := s.Read(w.now, make([]byte, 1)); err != io.EOF {
		t.Fatalf("read: %v, %d DATA_FINs", err, lost)
	}
	if gap1, gap2 := times[2]-times[0], times[4]-times[2]; gap2 < 3*gap1/2 {
		t.Errorf("no back-off: %v", times)
	}
}

// FIN-04, FIN-07: the subflows end by FINs after both DATA_FINs, without any reset.
func TestOrderlyCloseResetsNothing(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(10 * time.Millisecond)
	w.link(20 * time.Millisecond)
	c, s := w.connect(w.listen())
	fins, resets := 0, 0
	w.tap = func(f *flight) bool {
		seg := f.segment(t)
		if seg.Flags&wire.RST != 0 {
			resets++
		}
		if seg.Flags&wire.FIN != 0 {
			fins++
		}
		return true
	}
	back := w.stream(s, c, 50_000)
	st := w.stream(c, s, 100_000)
	st.noClose = true
	w.run(time.Second)
	st.noClose = false
	w.until(10*time.Second, func() bool { return back.eof && st.eof })
	w.run(5 * time.Second)
	if resets != 0 || fins != 4 {
		t.Errorf("%d resets, %d FINs for 2 subflows", resets, fins)
	}
	if c.state != connOver || s.state != connOver {
		t.Error("not over")
	}
}

// RFC 9293, Section 3.6.1 (TCP-08, LNX-13): closing with unread data aborts, and the peer learns of it.
func TestCloseWithUnreadDataAborts(t *testing.T) {
	for _, plain := range []bool{false, true} {
		w := newWorld(t, Config{NoMPTCP: plain}, Config{})
		w.link(10 * time.Millisecond)
		c, s := w.connect(w.listen())
		c.Write(w.now, []byte("unread"))
		w.run(time.Second)
		fast := false
		w.tap = func(f *flight) bool {
			seg := f.segment(t)
			fast = fast || seg.Has(wire.OptMPFastClose) && seg.Flags&wire.RST != 0 && seg.FastClose.Receiver == c.hs.localKey
			return true
		}
		s.Close(w.now)
		w.run(time.Second)
		if fast == plain {
			t.Errorf("plain %v: MP_FASTCLOSE %v", plain, fast)
		}
		if _, err := c.Read(w.now, make([]byte, 1)); !errors.Is(err, ErrReset) {
			t.Errorf("plain %v: client reads %v", plain, err)
		}
		if _, err := s.Read(w.now, make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("server reads %v", err)
		}
	}
}

// Data that arrives after Close cannot be delivered: the connection is aborted (TCP-17).
func TestDataAfterCloseAborts(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(10 * time.Millisecond)
	c, s := w.connect(w.listen())
	c.Write(w.now, []byte("x"))
	w.run(time.Second)
	s.Read(w.now, make([]byte, 10))
	s.Close(w.now)
	w.run(time.Second)
	c.Write(w.now, []byte("too late"))
	w.run(time.Second)
	if !errors.Is(c.Err(), ErrReset) {
		t.Errorf("client: %v", c.Err())
	}
}

// API-03: Abort ends both sides at once, on every subflow, and what came in order before stays readable (FCL-07).
func TestAbort(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(10 * time.Millisecond)
	w.link(20 * time.Millisecond)
	c, s := w.connect(w.listen())
	c.Write(w.now, []byte("before"))
	w.run(time.Second)
	c.Abort(w.now)
	w.run(time.Second)
	if !errors.Is(c.Err(), ErrAborted) || !errors.Is(s.Err(), ErrReset) {
		t.Errorf("client %v, server %v", c.Err(), s.Err())
	}
	var b [100]byte
	if n, err := s.Read(w.now, b[:]); string(b[:n]) != "before" || err != nil {
		t.Errorf("read %q, %v", b[:n], err)
	}
	if _, err := s.Read(w.now, b[:]); !errors.Is(err, ErrReset) {
		t.Errorf("then %v", err)
	}
	if _, err := s.Write(w.now, b[:]); !errors.Is(err, ErrReset) {
		t.Errorf("write: %v", err)
	}
	mustListener(w).Close(w.now)
	w.run(2 * time.Minute)
	wantEmpty(t, "client", w.client)
	wantEmpty(t, "server", w.server)
}

// A peer that never closes its side cannot keep a closed connection for ever.
func TestClosedConnectionLingersForBoundedTime(t *testing.T) {
	w := newWorld(t, Config{UserTimeout: 30 * time.Second}, Config{})
	w.link(10 * time.Millisecond)
	c, s := w.connect(w.listen())
	c.Write(w.now, []byte("x"))
	w.run(time.Second)
	c.Close(w.now)
	w.run(20 * time.Second)
	if c.state == connOver {
		t.Fatal("over too early: the peer may still close")
	}
	w.run(20 * time.Second)
	if c.state != connOver || !errors.Is(c.Err(), ErrTimeout) || !errors.Is(s.Err(), ErrReset) {
		t.Errorf("client %v %v, server %v", c.state, c.Err(), s.Err())
	}
}

// FIN-10, LNX-14: a connection that lost all subflows lives on for a while, and a new subflow finds it.
func TestConnectionSurvivesWithoutSubflows(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(10 * time.Millisecond).rate = 3e6
	c, s := w.connect(w.listen())
	st := w.stream(c, s, 3_000_000)
	w.run(300 * time.Millisecond)
	w.client.drop(w.now, c.subflows[0], wire.ResetUnspecified, true)
	w.run(10 * time.Millisecond)
	if len(c.subflows) > 0 && c.subflows[0].up() || c.Err() != nil {
		t.Fatal("not without subflows")
	}
	if !w.until(time.Minute, func() bool { return st.eof }) {
		t.Fatalf("%d bytes read; %v %v\n%s", st.read, c.Err(), s.Err(), dump(w, c))
	}
}

// FIN-13: without a subflow for CloseTimeout the connection fails on both sides.
func TestConnectionWithoutSubflowsFails(t *testing.T) {
	w := newWorld(t, Config{CloseTimeout: 10 * time.Second}, Config{CloseTimeout: 10 * time.Second})
	link := w.link(10 * time.Millisecond)
	c, s := w.connect(w.listen())
	w.stream(c, s, 30_000_000)
	w.run(300 * time.Millisecond)
	w.client.drop(w.now, c.subflows[0], wire.ResetUnspecified, true)
	w.drain()
	w.run(15 * time.Millisecond)
	link.down = true
	w.run(30 * time.Second)
	if !errors.Is(c.Err(), ErrTimeout) || !errors.Is(s.Err(), ErrTimeout) {
		t.Errorf("client %v, server %v", c.Err(), s.Err())
	}
}

// UserTimeout: data that no subflow delivers fails the connection.
func TestUndeliverableDataFailsTheConnection(t *testing.T) {
	w := newWorld(t, Config{UserTimeout: 30 * time.Second, CloseTimeout: 10 * time.Second}, Config{})
	link := w.link(10 * time.Millisecond)
	c, s := w.connect(w.listen())
	w.stream(c, s, 100_000)
	w.run(time.Second)
	link.down = true
	w.stream(s, c, 100_000)
	w.server.cfg.UserTimeout = 20 * time.Second
	w.run(2 * time.Minute)
	if !errors.Is(s.Err(), ErrTimeout) {
		t.Errorf("server: %v\n%s", s.Err(), dump(w, s))
	}
}

// In plain TCP there are no subflows to speak of: a reset by the peer is just that.
func TestResetOfPlainTCP(t *testing.T) {
	w := newWorld(t, Config{NoMPTCP: true}, Config{})
	w.link(10 * time.Millisecond)
	c, s := w.connect(w.listen())
	s.Abort(w.now)
	w.run(time.Second)
	if err := c.Err(); err != ErrReset {
		t.Errorf("%v, want %v", err, ErrReset)
	}
	if _, err := c.Read(w.now, make([]byte, 1)); err != ErrReset {
		t.Errorf("Read: %v, want %v", err, ErrReset)
	}
}
