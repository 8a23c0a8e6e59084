package mptcp

import (
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"braid/wire"
)

// corrupt changes a byte of the payload and mends the TCP checksum, as a middlebox that rewrites content does.
func (f *flight) corrupt(t testing.TB, rng *rand.Rand) {
	t.Helper()
	n := len(f.segment(t).Payload)
	if n == 0 {
		return
	}
	f.b[len(f.b)-1-rng.IntN(n)] ^= 0x55
	f.rewrite(t, func(*wire.Segment) {})
}

// corruptOnce makes the network change the payload of one packet towards the server on the given link, the nth with payload.
func corruptOnce(w *world, l *testLink, nth int) (done *bool) {
	done = new(bool)
	rng := rand.New(rand.NewPCG(1, 2))
	w.tap = func(f *flight) bool {
		if *done || !f.toServer || f.link != l || len(f.segment(w.t).Payload) == 0 {
			return true
		}
		if nth--; nth == 0 {
			f.corrupt(w.t, rng)
			*done = true
		}
		return true
	}
	return done
}

// RFC 8684, Section 3.7 (FAI-03 to FAI-07, FB-09): a wrong checksum on the only subflow is answered with MP_FAIL on an ACK; the
// sender goes on under the infinite mapping from what was not DATA_ACKed, the other direction follows, and no byte is lost or
// wrong.
func TestChecksumFailureOnTheOnlySubflowFallsBackInPlace(t *testing.T) {
	for _, loss := range []float64{0, 0.03} {
		for _, nth := range []int{1, 2, 30, 100} {
			w := newWorld(t, Config{Checksums: true}, Config{})
			link := w.link(15 * time.Millisecond)
			link.rate = 2e6
			c, s := w.connect(w.listen())
			link.loss = loss
			done := corruptOnce(w, link, nth)
			infinite := 0
			corrupting := w.tap
			w.tap = func(f *flight) bool {
				if seg := f.segment(t); seg.Has(wire.OptDSS) && seg.DSS.HasMap && seg.DSS.Length == 0 {
					infinite++
					if seg.DSS.Checksum != 0 || !seg.DSS.HasCheck || len(seg.Payload) == 0 {
						t.Errorf("infinite mapping %+v", seg.DSS) // CSUM-06
					}
				}
				return corrupting(f)
			}
			exchange(w, c, s)
			n := &w.server.counters
			if !*done || n.ChecksumErrors != 1 || n.FailsSent == 0 || w.client.counters.FailsReceived == 0 {
				t.Errorf("packet %d: %d checksum errors, %d MP_FAIL sent, %d received", nth, n.ChecksumErrors, n.FailsSent, w.client.counters.FailsReceived)
			}
			// A direction that has nothing more to send declares nothing.
			if !c.fb.sending || !s.fb.active || infinite == 0 {
				t.Errorf("packet %d, loss %v: client %+v, server %+v, %d infinite mappings", nth, loss, c.fb, s.fb, infinite)
			}
		}
	}
}

// After the fallback a direction that had nothing in flight still ends by a plain FIN.
func TestCloseAfterMPFailWithoutMoreData(t *testing.T) {
	w := newWorld(t, Config{Checksums: true}, Config{})
	link := w.link(15 * time.Millisecond)
	c, s := w.connect(w.listen())
	corruptOnce(w, link, 4)
	w.transfer(c, s, 50_000, 10*time.Second)
	w.run(time.Second)
	s.Close(w.now)
	w.run(5 * time.Second)
	if n, err := c.Read(w.now, make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("client reads %d, %v", n, err)
	}
	if c.state != connOver || s.state != connOver || c.Err() != nil || s.Err() != nil {
		t.Errorf("client %v %v, server %v %v", c.state, c.Err(), s.state, s.Err())
	}
}

// FAI-02, FAI-03: with another subflow, the one with the wrong checksum is reset by a RST that carries MP_FAIL, and the data
// comes again elsewhere.
func TestChecksumFailureWithOtherSubflowsResets(t *testing.T) {
	w := newWorld(t, Config{Checksums: true}, Config{})
	bad := w.link(10 * time.Millisecond)
	bad.rate = 2e6
	w.link(15 * time.Millisecond).rate = 2e6
	c, s := w.connect(w.listen())
	st := w.stream(c, s, 3_000_000)
	w.run(300 * time.Millisecond)
	done := corruptOnce(w, bad, 5)
	corrupting := w.tap
	fails := 0
	w.tap = func(f *flight) bool {
		if seg := f.segment(t); seg.Has(wire.OptMPFail) {
			fails++
			if seg.Flags&wire.RST == 0 || !seg.Has(wire.OptMPTCPReset) || seg.Reset.Reason != wire.ResetMiddlebox {
				t.Errorf("MP_FAIL on %+v", seg)
			}
		}
		return corrupting(f)
	}
	if !w.until(time.Minute, func() bool { return st.eof }) {
		t.Fatalf("%d bytes read\n%s%s", st.read, dump(w, c), dump(w, s))
	}
	if !*done || fails != 1 || c.fb.any() || s.fb.any() || w.server.counters.ChecksumErrors != 1 {
		t.Errorf("corrupted %v, %d MP_FAIL, fallback %v %v", *done, fails, c.fb.any(), s.fb.any())
	}
}

// FAI-09: an MP_FAIL that is never answered resets the subflow in bounded time.
func TestUnansweredMPFailResets(t *testing.T) {
	w := newWorld(t, Config{Checksums: true}, Config{CloseTimeout: time.Second})
	link := w.link(15 * time.Millisecond)
	c, s := w.connect(w.listen())
	w.stream(c, s, 3_000_000)
	corruptOnce(w, link, 20)
	corrupting := w.tap
	w.tap = func(f *flight) bool {
		if seg := f.segment(t); seg.Has(wire.OptMPFail) && seg.Flags&wire.RST == 0 {
			f.rewrite(t, func(seg *wire.Segment) { seg.Options &^= wire.OptMPFail })
		}
		return corrupting(f)
	}
	if !w.until(30*time.Second, func() bool { return s.Subflows() == 0 }) {
		t.Error("the subflow is still there")
	}
}

// MB-06: without checksums a change goes undetected, and nothing else breaks.
func TestCorruptionWithoutChecksumsGoesUndetected(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	link := w.link(15 * time.Millisecond)
	c, s := w.connect(w.listen())
	corruptOnce(w, link, 3)
	for written := 0; written < 100_000; {
		n, _ := c.Write(w.now, make([]byte, 100_000-written))
		written += n
		w.run(50 * time.Millisecond)
	}
	c.CloseWrite(w.now)
	wrong, n := 0, 0
	w.until(10*time.Second, func() bool {
		var b [4096]byte
		k, err := s.Read(w.now, b[:])
		for _, x := range b[:k] {
			if x != 0 {
				wrong++
			}
		}
		n += k
		return err == io.EOF
	})
	if n != 100_000 || wrong != 1 {
		t.Errorf("%d bytes, %d wrong", n, wrong)
	}
}
