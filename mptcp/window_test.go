package mptcp

import (
	"errors"
	"testing"
	"time"

	"braid/wire"
)

// WIN-08: a receiver that does not read closes the window; it is probed, on any path that works, and reopens without loss.
func TestZeroWindowIsProbedAndReopens(t *testing.T) {
	w := newWorld(t, Config{}, Config{ReceiveBuffer: 64 << 10, InitialReceive: 64 << 10})
	first := w.link(10 * time.Millisecond)
	w.link(12 * time.Millisecond)
	c, s := w.connect(w.listen())
	sent := w.stream(c, nil, 500_000)
	w.run(10 * time.Second)
	if in := c.Info(w.now); in.SendWindow != 0 || in.Acked < 60_000 || in.Acked > 70_000 || !c.snd.blocked {
		t.Fatalf("window %d, %d acked, blocked %v", in.SendWindow, in.Acked, c.snd.blocked)
	}
	// One path fails: probes go on on the other.
	first.down = true
	before := w.links[1].count[1]
	w.run(2 * time.Minute)
	if n := w.links[1].count[1] - before; n < 3 || n > 60 {
		t.Errorf("%d packets in two minutes of a closed window", n)
	}
	if c.Err() != nil || s.Err() != nil {
		t.Fatalf("a peer without room was given up: %v %v", c.Err(), s.Err())
	}
	sent.to = s
	if !w.until(2*time.Minute, func() bool { return sent.eof }) {
		t.Fatalf("%d bytes read\n%s%s", sent.read, dump(w, c), dump(w, s))
	}
}

// WIN-01, WIN-02: however many subflows there are, what is outstanding never exceeds the one window of the connection.
func TestSharedWindowBoundsAllSubflows(t *testing.T) {
	w := newWorld(t, Config{}, Config{ReceiveBuffer: 64 << 10, FixedReceiveWindow: true})
	for i := range 3 {
		w.link(time.Duration(10+20*i) * time.Millisecond)
	}
	c, s := w.connect(w.listen())
	st := w.stream(c, s, 3_000_000)
	for !st.eof {
		if !w.step(w.now.Add(time.Minute)) {
			t.Fatalf("%d bytes read", st.read)
		}
		if c.snd.next > c.snd.edge || s.rcv.ooo.Bytes()+s.rcv.queue.Bytes() > 64<<10 {
			t.Fatalf("sent to %d, edge %d, receiver holds %d", c.snd.next, c.snd.edge, s.rcv.ooo.Bytes()+s.rcv.queue.Bytes())
		}
	}
	if s.stats.beyondWindow != 0 {
		t.Errorf("%d bytes beyond the window", s.stats.beyondWindow)
	}
}

// WIN-07: a path that stalls with the first bytes of a small shared window cannot stop the connection: what it carries goes
// over the others.
func TestStalledPathDoesNotBlockTheSharedWindow(t *testing.T) {
	w := newWorld(t, Config{}, Config{ReceiveBuffer: 64 << 10, FixedReceiveWindow: true})
	stalling := w.link(10 * time.Millisecond)
	w.link(30 * time.Millisecond)
	c, s := w.connect(w.listen())
	st := w.stream(c, s, 20_000_000)
	w.run(400 * time.Millisecond)
	stalling.down = true
	before := st.read
	w.run(5 * time.Second)
	if st.read-before < 2_000_000 {
		t.Errorf("only %d bytes in 5 s beside a stalled path\n%s", st.read-before, dump(w, c))
	}
}

// The window grows with what the application reads (WIN-06), up to its limit.
func TestReceiveWindowGrows(t *testing.T) {
	w := newWorld(t, Config{}, Config{InitialReceive: 64 << 10, ReceiveBuffer: 4 << 20})
	w.link(50 * time.Millisecond).rate = 10e6
	c, s := w.connect(w.listen())
	w.transfer(c, s, 30_000_000, time.Minute)
	if n := s.Info(w.now).ReceiveBuffer; n < 1<<20 {
		t.Errorf("receive buffer %d", n)
	}
}

// Write takes no more than the send buffer holds and says when there is room again.
func TestWriteIsBounded(t *testing.T) {
	w := newWorld(t, Config{SendBuffer: 100_000}, Config{ReceiveBuffer: 64 << 10})
	w.link(10 * time.Millisecond)
	c, s := w.connect(w.listen())
	big := make([]byte, 300_000)
	n, err := c.Write(w.now, big)
	if n != 100_000 || !errors.Is(err, ErrWouldBlock) {
		t.Fatalf("wrote %d, %v", n, err)
	}
	w.run(time.Second)
	if c.Info(w.now).Acked < 60_000 {
		t.Fatal("nothing was taken")
	}
	for {
		if n, _ := s.Read(w.now, big); n == 0 {
			break
		}
	}
	w.run(time.Second)
	for _, e := range w.events[c] {
		if e.Kind == EventWritable {
			if n, _ := c.Write(w.now, big); n == 0 {
				t.Error("no room after EventWritable")
			}
			return
		}
	}
	t.Error("no EventWritable")
}

// A small write beside unacknowledged small data waits (RFC 9293, Section 3.7.4), and goes at once with NoDelay.
func TestNagle(t *testing.T) {
	for _, noDelay := range []bool{false, true} {
		w := newWorld(t, Config{NoDelay: noDelay}, Config{})
		w.link(50 * time.Millisecond)
		c, s := w.connect(w.listen())
		w.transfer(c, s, 0, time.Second)
		c, s = w.connect(mustListener(w))
		c.Write(w.now, []byte("x"))
		w.run(time.Second)
		packets := 0
		w.tap = func(f *flight) bool {
			if seg := f.segment(t); f.toServer && len(seg.Payload) > 0 {
				packets++
			}
			return true
		}
		for range 10 {
			c.Write(w.now, []byte("abc"))
			w.run(time.Millisecond)
		}
		w.run(time.Second)
		if noDelay && packets != 10 || !noDelay && packets != 2 {
			t.Errorf("no delay %v: %d packets", noDelay, packets)
		}
		if in := s.Info(w.now); in.Received != 31 {
			t.Errorf("%d bytes received", in.Received)
		}
	}
}

// mustListener returns the listener of a world that has one.
func mustListener(w *world) *Listener {
	for _, l := range w.server.listeners {
		return l
	}
	w.t.Fatal("no listener")
	return nil
}

// LNX-10, WIN-09: a probe that maps one byte already acknowledged at data level onto new subflow bytes is acknowledged and
// discarded.
func TestWindowProbeWithAnOldByte(t *testing.T) {
	f := newForger(t, Config{}, Config{})
	if got := f.give(f.mapped(f.segment(6, "o"), 6, 5, 1)); got != "" {
		t.Errorf("read %q", got)
	}
	list := f.answers()
	if len(list) == 0 || list[0].Ack != f.c.subflows[0].tcp.Number(7) || f.s.rcv.next != 6 {
		t.Errorf("answered by %d segments, next %d", len(list), f.s.rcv.next)
	}
	if list[0].Options&wire.OptDSS == 0 {
		t.Error("no DATA_ACK")
	}
}
