package mptcp

import (
	"testing"
	"time"
)

// The first whole: handshake, a second subflow, a transfer each way, close, nothing left.
func TestHandshakeTransferClose(t *testing.T) {
	for _, udp := range []bool{false, true} {
		w := newWorld(t, Config{}, Config{})
		for i := range 2 {
			if udp {
				w.linkUDP(time.Duration(10+20*i) * time.Millisecond)
			} else {
				w.link(time.Duration(10+20*i) * time.Millisecond)
			}
			w.links[i].rate = 2e6
		}
		l := w.listen()
		c, s := w.connect(l)
		up := w.stream(c, s, 3<<20)
		down := w.stream(s, c, 2<<20)
		if !w.until(20*time.Second, func() bool { return up.eof && down.eof }) {
			t.Fatalf("udp %v: up %+v down %+v\n%v\n%v", udp, up, down, c.Err(), s.Err())
		}
		if n := w.links[1].count[1]; n < 100 {
			t.Errorf("udp %v: second path carried %d packets", udp, n)
		}
		c.Close(w.now)
		s.Close(w.now)
		w.run(70 * time.Second)
		l.Close(w.now)
		wantEmpty(t, "client", w.client)
		wantEmpty(t, "server", w.server)
		if c.Err() != nil || s.Err() != nil {
			t.Errorf("udp %v: %v, %v", udp, c.Err(), s.Err())
		}
	}
}
