package mptcp

import (
	"testing"
	"time"

	"braid/wire"
)

// closed connects, transfers a little and closes both ends; the client closes first.
func closed(t *testing.T, client Config) (w *world, c, s *Conn, fin wire.Segment) {
	t.Helper()
	w = newWorld(t, client, Config{})
	w.link(10 * time.Millisecond)
	w.tap = func(f *flight) bool {
		if seg := f.segment(t); !f.toServer && seg.Flags&wire.FIN != 0 {
			fin = seg
			fin.Payload = nil
		}
		return true
	}
	c, s = w.connect(w.listen())
	w.transfer(c, s, 1000, time.Second)
	w.transfer(s, c, 1000, time.Second)
	c.Close(w.now)
	s.Close(w.now)
	w.run(500 * time.Millisecond)
	return w, c, s, fin
}

// RFC 9293, Section 3.6 (TCP-07) and RFC 8684, Section 3.3.3 (FIN-12): after both closed, one end keeps the subflow for two segment
// lifetimes, without its connection, and acknowledges a repeated FIN with the DATA_ACK.
func TestTimeWait(t *testing.T) {
	w, c, s, fin := closed(t, Config{})
	if len(w.client.conns)+len(w.server.conns) != 0 {
		t.Fatalf("%d and %d connections", len(w.client.conns), len(w.server.conns))
	}
	if n := w.client.remnants.n + w.server.remnants.n; n != 1 {
		t.Fatalf("%d remnants", n)
	}
	if c.Err() != nil || s.Err() != nil {
		t.Errorf("%v, %v", c.Err(), s.Err())
	}
	if w.client.remnants.n == 1 {
		w.inject(w.links[0], false, fin)
		segs := w.collect(true)
		if len(segs) != 1 || segs[0].Flags != wire.ACK || segs[0].Ack != next(&fin) {
			t.Fatalf("answer %v", segs)
		}
		if o := segs[0].DSS; !segs[0].Has(wire.OptDSS) || !o.HasAck || o.DataAck != c.hs.peerIDSN.At(1+1000+1) {
			t.Errorf("DATA_ACK %+v", o)
		}
	}
	w.run(61 * time.Second)
	wantEmpty(t, "client", w.client)
}

// RFC 9293, Section 3.6.1: a SYN beyond what TIME-WAIT has seen opens anew; an old one does not.
func TestReopenFromTimeWait(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(10 * time.Millisecond)
	lis := w.listen()
	c, s := w.connect(lis)
	w.transfer(s, c, 1000, time.Second)
	w.transfer(c, s, 1000, time.Second)
	s.Close(w.now)
	c.Close(w.now)
	w.run(500 * time.Millisecond)
	r := w.server.remnants.first
	if r == nil || w.server.remnants.n != 1 {
		t.Fatalf("%d remnants at the server", w.server.remnants.n)
	}
	seg := syn(r.dstPort, r.tcp.PeerNumber(r.tcp.ReceivedOffset())-5)
	w.inject(w.links[0], true, seg)
	if segs := w.collect(false); len(w.server.halves) != 0 || len(segs) != 1 || segs[0].Flags&wire.SYN != 0 {
		t.Fatalf("an old SYN is answered with %v", segs)
	}
	seg.Seq += 1000
	w.inject(w.links[0], true, seg)
	if segs := w.collect(false); len(segs) != 1 || !segs[0].Flags.Has(wire.SYN|wire.ACK) || w.server.remnants.n != 0 {
		t.Errorf("a new SYN is answered with %v, %d remnants", segs, w.server.remnants.n)
	}
}

// The number of remnants is bounded.
func TestTimeWaitIsBounded(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(time.Millisecond)
	lis := w.listen()
	for range maxRemnants + 20 {
		c, s := w.connect(lis)
		c.Close(w.now)
		s.Close(w.now)
		w.run(10 * time.Millisecond)
	}
	if a, b := w.client.remnants.n, w.server.remnants.n; max(a, b) != maxRemnants {
		t.Errorf("%d and %d remnants", a, b)
	}
	if w.client.counters.TimeWaitEvicted+w.server.counters.TimeWaitEvicted < 20 {
		t.Error("too few were evicted")
	}
	w.run(2 * time.Minute)
	lis.Close(w.now)
	wantEmpty(t, "client", w.client)
	wantEmpty(t, "server", w.server)
}
