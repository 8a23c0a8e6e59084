package mptcp

import (
	"testing"
	"time"

	"braid/schedule"
	"braid/wire"
)

// REL-04: what a subflow carried when its path is removed goes to the others at once: the transfer hardly notices.
func TestRemovedPathsDataIsReinjected(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(20 * time.Millisecond).rate = 2e6
	w.link(25 * time.Millisecond).rate = 2e6
	c, s := w.connect(w.listen())
	st := w.stream(c, s, 50_000_000)
	w.run(time.Second)
	before := st.read
	w.client.RemovePath(w.now, w.links[0].client)
	w.run(500 * time.Millisecond)
	if n := st.read - before; n < 500_000 {
		t.Errorf("%d bytes in the half second after", n)
	}
	if c.Info(w.now).ReinjectedBytes == 0 || w.client.counters.Reinjections == 0 {
		t.Error("nothing was reinjected")
	}
}

// REL-02, REL-05: the data of a path that goes dark comes over the other; the dark one gets no new data, and is used again
// within two seconds of its return.
func TestDarkPathComesBack(t *testing.T) {
	for _, name := range []string{"minrtt", "arp", "roundrobin"} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{}
			var err error
			if cfg.Scheduler, err = schedule.ByName(name); err != nil {
				t.Fatal(err)
			}
			w := newWorld(t, cfg, cfg)
			dark := w.link(20 * time.Millisecond)
			dark.rate, dark.limit = 2e6, 100*time.Millisecond
			other := w.link(30 * time.Millisecond)
			other.rate, other.limit = 2e6, 100*time.Millisecond
			c, s := w.connect(w.listen())
			st := w.stream(c, s, 500_000_000)
			w.run(2 * time.Second)
			dark.down = true
			w.run(2 * time.Second)
			before, sent := st.read, dark.count[1]
			w.run(10 * time.Second)
			if n := st.read - before; n < 15_000_000 {
				t.Errorf("%d bytes in 10 s over the other path", n)
			}
			if n := dark.count[1] - sent; n > 60 {
				t.Errorf("%d packets on the dark path", n)
			}
			dark.down = false
			w.run(2 * time.Second)
			sent = dark.count[1]
			w.run(time.Second)
			if n := dark.count[1] - sent; n < 300 {
				t.Errorf("%d packets in the third second after the return\n%s", n, dump(w, c))
			}
		})
	}
}

// REL-08, PRI-02, PRI-05: a backup path carries data only while no other works; MP_PRIO changes that under way, in the
// direction that it is about, and no byte is lost or doubled.
func TestBackupPath(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	regular := w.link(30 * time.Millisecond)
	regular.rate = 2e6
	backup := w.link(10 * time.Millisecond)
	backup.rate = 2e6
	w.client.paths[backup.client].Backup = true
	c, s := w.connectOver(regular)
	up := w.stream(c, s, 100_000_000)
	down := w.stream(s, c, 100_000_000)
	w.run(3 * time.Second)
	if c.Subflows() != 2 || s.Subflows() != 2 {
		t.Fatal("not two subflows")
	}
	carried := func(c *Conn) int64 {
		for _, sf := range c.Info(w.now).Subflows {
			if !sf.Initial {
				return sf.NewBytes + sf.RedundantBytes
			}
		}
		return 0
	}
	if carried(c) != 0 || carried(s) != 0 {
		t.Errorf("the backup carried %d and %d bytes beside a regular path", carried(c), carried(s))
	}
	regular.down = true
	w.run(3 * time.Second)
	if carried(c) < 1_000_000 || carried(s) < 1_000_000 {
		t.Errorf("the backup carried %d and %d bytes when it was needed", carried(c), carried(s))
	}
	regular.down = false
	w.run(4 * time.Second)
	before := carried(c)
	w.run(2 * time.Second)
	if n := carried(c) - before; n > 200_000 {
		t.Errorf("the backup carried %d bytes after the regular path came back", n)
	}
	id := -1
	for _, sf := range c.Info(w.now).Subflows {
		if !sf.Initial {
			id = sf.ID
		}
	}
	if !c.SetPriority(w.now, id, false) || c.SetPriority(w.now, 99, false) {
		t.Fatal("SetPriority")
	}
	w.run(2 * time.Second)
	before, beforeDown := carried(c), carried(s)
	w.run(2 * time.Second)
	if carried(c)-before < 1_000_000 || carried(s)-beforeDown < 1_000_000 {
		t.Errorf("no backup any more, and it carries only %d and %d bytes", carried(c)-before, carried(s)-beforeDown)
	}
	if up.err != nil || down.err != nil || up.read < 10_000_000 {
		t.Errorf("%d bytes, %v %v", up.read, up.err, down.err)
	}
}

// connectOver connects with the first SYN on the given link.
func (w *world) connectOver(l *testLink) (c, s *Conn) {
	w.t.Helper()
	for _, other := range w.links {
		other.down = other != l
	}
	c, s = w.connect(w.listen())
	for _, other := range w.links {
		other.down = false
	}
	return c, s
}

// RFC 8684, Section 3.3.2 (ACK-03): memory of data that is DATA_ACKed but held by a dark subflow is bounded: the subflow is
// reset.
func TestHeldMemoryIsBounded(t *testing.T) {
	redundant, err := schedule.ByName("redundant")
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{HeldLimit: 256 << 10, Scheduler: redundant}
	w := newWorld(t, cfg, cfg)
	slow := w.link(200 * time.Millisecond)
	w.link(5 * time.Millisecond).rate = 20e6
	c, s := w.connect(w.listen())
	st := w.stream(c, s, 200_000_000)
	most := int64(0)
	resets := 0
	w.tap = func(f *flight) bool {
		if seg := f.segment(t); seg.Has(wire.OptMPTCPReset) && (seg.Reset.Reason == wire.ResetTooMuchData || seg.Reset.Reason == wire.ResetPerformance) {
			resets++
		}
		return true
	}
	w.run(2 * time.Second)
	slow.down = true
	for end := w.now.Add(2 * time.Second); w.step(end); {
		most = max(most, c.Info(w.now).Held)
	}
	if most > 512<<10 || resets == 0 || w.client.counters.HeldResets == 0 {
		t.Errorf("%d bytes held at most, %d resets", most, resets)
	}
	if !w.until(time.Minute, func() bool { return st.eof }) {
		t.Errorf("%d bytes read", st.read)
	}
}

// REL-03, MB-07: data that the subflow's other end acknowledged and lost is found by the data-level timer, also where there is
// only one path.
func TestDataLevelTimerFindsWhatAProxyLost(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(10 * time.Millisecond)
	c, s := w.connect(w.listen())
	st := w.stream(c, s, 100_000)
	w.until(time.Second, func() bool { return st.read > 20_000 })
	// The server throws away what waits behind the next byte, as a host short of memory may: acknowledged below, not above.
	dropped := int64(0)
	w.tap = func(f *flight) bool {
		if seg := f.segment(t); f.toServer && len(seg.Payload) > 0 && dropped == 0 {
			dropped = s.rcv.next
			s.stack.cfg.StackMemory = -1 << 40
			f.rewrite(t, func(seg *wire.Segment) { seg.DSS.DataSeq += 10 })
		}
		return true
	}
	w.until(time.Second, func() bool { return s.stats.droppedMemory > 0 })
	s.stack.cfg.StackMemory = 1 << 30
	if !w.until(20*time.Second, func() bool { return st.eof }) {
		t.Fatalf("%d bytes read\n%s%s", st.read, dump(w, c), dump(w, s))
	}
	if w.client.counters.DataTimeouts == 0 {
		t.Error("no data-level timeout")
	}
}

// JOIN-11, LNX-05, LNX-06: the answer to the third packet of a join is an ACK with a DATA_ACK, before any data.
func TestFourthAckOfAJoinComesBeforeData(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(10 * time.Millisecond).rate = 1e6
	second := w.link(10 * time.Millisecond)
	c, s := w.connect(w.listen())
	var first *wire.Segment
	w.tap = func(f *flight) bool {
		if seg := f.segment(t); f.link == second && !f.toServer && seg.Flags&wire.SYN == 0 && first == nil {
			first = &seg
		}
		return true
	}
	w.stream(s, c, 3_000_000)
	up := w.stream(c, s, 10)
	up.noClose = true
	w.run(time.Second)
	if first == nil || len(first.Payload) != 0 || !first.Has(wire.OptDSS) || !first.DSS.HasAck {
		t.Errorf("%+v", first)
	}
	if c.Subflows() != 2 {
		t.Error("no second subflow")
	}
}
