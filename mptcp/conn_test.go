package mptcp

import (
	"testing"
	"time"
)

// A transfer over one path: every byte once and in order, both directions closed, nothing kept.
func TestTransferOverOnePath(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(10 * time.Millisecond)
	l := w.listen()
	c, s := w.connect(l)
	back := w.stream(s, c, 300_000)
	w.transfer(c, s, 3_000_000, 20*time.Second)
	if !w.until(20*time.Second, func() bool { return back.eof }) {
		t.Fatal("the answer did not arrive")
	}
	w.run(10 * time.Second)
	if c.state != connOver || s.state != connOver || c.Err() != nil || s.Err() != nil {
		t.Errorf("client %v %v, server %v %v", c.state, c.Err(), s.state, s.Err())
	}
	l.Close(w.now)
	w.run(3 * time.Minute)
	wantEmpty(t, "client", w.client)
	wantEmpty(t, "server", w.server)
	if w.client.counters.FallbackNoDataAck+w.client.counters.FallbackNoMapping+w.server.counters.FallbackNoMapping != 0 {
		t.Error("fell back")
	}
}

// Two paths carry one stream.
func TestTransferOverTwoPaths(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	for _, delay := range []time.Duration{10 * time.Millisecond, 30 * time.Millisecond} {
		l := w.link(delay)
		l.rate, l.limit = 2e6, 100*time.Millisecond
	}
	l := w.listen()
	c, s := w.connect(l)
	start := w.now
	w.transfer(c, s, 20_000_000, 60*time.Second)
	took := w.now.Sub(start)
	if rate := 20_000_000 / took.Seconds(); rate < 3e6 {
		t.Errorf("%.0f bytes/s over two paths of 2000000", rate)
	}
	i := c.Info(w.now)
	if len(i.Subflows) != 2 || i.Subflows[0].NewBytes < 2_000_000 || i.Subflows[1].NewBytes < 2_000_000 {
		t.Errorf("%+v", i)
	}
}
