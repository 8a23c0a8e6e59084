package mptcp

import (
	"errors"
	"testing"
	"time"

	"braid/wire"
)

// strip removes MPTCP's options from a packet, as middleboxes do.
func strip(t testing.TB, f *flight) {
	f.rewrite(t, func(seg *wire.Segment) { seg.Options &^= wire.OptMPTCP })
}

// exchange transfers both ways and closes, and checks that every byte arrives.
func exchange(w *world, c, s *Conn) {
	w.t.Helper()
	back := w.stream(s, c, 120_000)
	w.transfer(c, s, 250_000, time.Minute)
	if !w.until(time.Minute, func() bool { return back.eof }) {
		w.t.Fatalf("only %d bytes came back (%v %v)", back.read, c.Err(), s.Err())
	}
	w.run(5 * time.Second)
	if c.Err() != nil || s.Err() != nil || c.state != connOver || s.state != connOver {
		w.t.Errorf("client %v %v, server %v %v", c.state, c.Err(), s.state, s.Err())
	}
}

// RFC 8684, Section 3.7: whatever part of the beginning loses its options, both ends go on as plain TCP without losing,
// repeating or reordering a byte (FB-01, FB-02, FB-03, FB-06, FB-08, MB-03).
func TestFallbackWhenOptionsAreRemovedFromTheStart(t *testing.T) {
	syn := func(seg *wire.Segment) bool { return seg.Flags&wire.SYN != 0 }
	for _, tc := range []struct {
		name  string
		strip func(f *flight, seg *wire.Segment) bool
	}{
		{"SYN", func(f *flight, seg *wire.Segment) bool { return f.toServer && syn(seg) }},
		{"SYN/ACK", func(f *flight, seg *wire.Segment) bool { return !f.toServer && syn(seg) }},
		{"third ACK and all of the client's", func(f *flight, seg *wire.Segment) bool { return f.toServer && !syn(seg) }},
		{"all but SYNs", func(f *flight, seg *wire.Segment) bool { return !syn(seg) }},
		{"all of the server's but the SYN/ACK", func(f *flight, seg *wire.Segment) bool { return !f.toServer && !syn(seg) }},
		{"all data", func(f *flight, seg *wire.Segment) bool {
			return !syn(seg) && seg.Options&wire.OptMPCapable == 0 || len(seg.Payload) > 0
		}},
		{"everything", func(*flight, *wire.Segment) bool { return true }},
	} {
		for _, loss := range []float64{0, 0.03} {
			t.Run(tc.name, func(t *testing.T) {
				w := newWorld(t, Config{}, Config{})
				link := w.link(15 * time.Millisecond)
				link.rate = 3e6
				w.link(20 * time.Millisecond)
				w.tap = func(f *flight) bool {
					seg := f.segment(t)
					if tc.strip(f, &seg) {
						strip(t, f)
					}
					return true
				}
				l := w.listen()
				c, s := w.connect(l)
				link.loss = loss
				exchange(w, c, s)
				if c.Info(w.now).Fallback == NoFallback || s.Info(w.now).Fallback == NoFallback {
					t.Errorf("client fell back: %d, server: %d", c.fb.reason, s.fb.reason)
				}
				// FB-06: no option of MPTCP after the fallback.
				if !c.fb.active || !s.fb.active {
					t.Error("one end still speaks MPTCP")
				}
			})
		}
	}
}

// The server that speaks first falls back as well.
func TestFallbackWhenTheServerSpeaksFirst(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(15 * time.Millisecond)
	w.tap = func(f *flight) bool {
		if seg := f.segment(t); seg.Flags&wire.SYN == 0 && !f.toServer {
			strip(t, f)
		}
		return true
	}
	c, s := w.connect(w.listen())
	w.transfer(s, c, 100_000, time.Minute)
	w.transfer(c, s, 100_000, time.Minute)
	if c.fb.reason != FallbackNoMapping {
		t.Errorf("client: %d", c.fb.reason)
	}
}

// FB-10: a connection without data that loses all options closes by plain FINs.
func TestFallbackWithoutData(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(15 * time.Millisecond)
	w.tap = func(f *flight) bool {
		if seg := f.segment(t); seg.Flags&wire.SYN == 0 {
			strip(t, f)
		}
		return true
	}
	c, s := w.connect(w.listen())
	c.Close(w.now)
	w.until(10*time.Second, func() bool { return s.Readable() })
	s.Close(w.now)
	w.run(5 * time.Second)
	if c.state != connOver || s.state != connOver || c.Err() != nil || s.Err() != nil {
		t.Errorf("client %v %v, server %v %v", c.state, c.Err(), s.state, s.Err())
	}
}

// FB-04: once MPTCP was confirmed, options that disappear break the subflow, not the stream: the others carry on.
func TestOptionsRemovedLaterResetTheSubflow(t *testing.T) {
	for _, dir := range []string{"to server", "to client", "both"} {
		t.Run(dir, func(t *testing.T) {
			w := newWorld(t, Config{}, Config{})
			bad := w.link(10 * time.Millisecond)
			bad.rate = 3e6
			w.link(20 * time.Millisecond).rate = 3e6
			c, s := w.connect(w.listen())
			st := w.stream(c, s, 6_000_000)
			w.run(500 * time.Millisecond)
			if st.read == 0 || c.Subflows() != 2 {
				t.Fatalf("%d bytes, %d subflows", st.read, c.Subflows())
			}
			w.tap = func(f *flight) bool {
				if f.link == bad && (dir == "both" || f.toServer == (dir == "to server")) {
					strip(t, f)
				}
				return true
			}
			if !w.until(time.Minute, func() bool { return st.eof }) {
				t.Fatalf("%d bytes read\n%s%s", st.read, dump(w, c), dump(w, s))
			}
			if c.fb.any() || s.fb.any() {
				t.Error("fell back with two subflows")
			}
		})
	}
}

// On the only subflow it ends the connection with an error in bounded time instead of hanging: falling back is no longer
// allowed.
func TestOptionsRemovedLaterOnTheOnlyPath(t *testing.T) {
	w := newWorld(t, Config{CloseTimeout: 5 * time.Second}, Config{CloseTimeout: 5 * time.Second})
	w.link(10 * time.Millisecond).rate = 3e6
	c, s := w.connect(w.listen())
	st := w.stream(c, s, 6_000_000)
	w.run(300 * time.Millisecond)
	w.tap = func(f *flight) bool {
		strip(t, f)
		return true
	}
	w.run(3 * time.Minute)
	if c.Err() == nil || s.Err() == nil {
		t.Errorf("%d bytes read; client %v, server %v\n%s%s", st.read, c.Err(), s.Err(), dump(w, c), dump(w, s))
	}
}

// Data that comes without its mapping makes the server fall back, although the client has seen its DATA_FIN and acknowledges it: the client goes on
// as MPTCP, and will send again what is not DATA_ACKed. The connection ends before that can be taken for new data (FB-06).
func TestDataAckAfterFallbackEndsTheConnection(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(15 * time.Millisecond)
	w.tap = func(f *flight) bool {
		if seg := f.segment(t); f.toServer && len(seg.Payload) > 0 {
			strip(t, f)
		}
		return true
	}
	c, s := w.connect(w.listen())
	s.CloseWrite(w.now)
	got := w.stream(c, s, 300_000)
	w.run(10 * time.Second)
	if s.fb.reason != FallbackNoMapping || !errors.Is(s.Err(), ErrProtocol) {
		t.Errorf("the server fell back: %v, and ended with %v", s.fb.reason, s.Err())
	}
	if got.eof || got.read == 0 {
		t.Errorf("%d bytes were read, to the end: %v", got.read, got.eof)
	}
}
