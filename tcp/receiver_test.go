package tcp

import (
	"testing"
	"time"

	"braid/seq"
)

// RFC 2018, Section 4: the first block holds the segment that caused the ACK, the others follow by how recently they were
// reported, as many as fit; RFC 2883, Section 4: duplicates are reported once, in front.
func TestSACKBlocks(t *testing.T) {
	s := establishedScript(t, nil)
	for _, tc := range []struct{ text, want string }{
		{". 201:301 ack 1 win 9", ". 1 ack 1 win 10000 sack 201-301"},
		{". 401:501 ack 1 win 9", ". 1 ack 1 win 10000 sack 401-501 201-301"},
		{". 601:701 ack 1 win 9", ". 1 ack 1 win 10000 sack 601-701 401-501 201-301"},
		{". 301:351 ack 1 win 9", ". 1 ack 1 win 10000 sack 201-351 601-701 401-501"},
		{". 801:901 ack 1 win 9", ". 1 ack 1 win 10000 sack 801-901 201-351 601-701 401-501"},
		{". 1001:1101 ack 1 win 9", ". 1 ack 1 win 10000 sack 1001-1101 801-901 201-351 601-701"},
		{". 351:401 ack 1 win 9", ". 1 ack 1 win 10000 sack 201-501 1001-1101 801-901 601-701"},
		// A duplicate inside of a block: D-SACK, then the block around it.
		{". 651:701 ack 1 win 9", ". 1 ack 1 win 10000 sack 651-701 601-701 201-501 1001-1101"},
		// Filling the first gap: what became in order is no block any more.
		{". 1:201 ack 1 win 9", ". 1 ack 501 win 9500 sack 601-701 1001-1101 801-901"},
		// A duplicate below the cumulative ACK.
		{". 1:201 ack 1 win 9", ". 1 ack 501 win 9500 sack 1-201 601-701 1001-1101 801-901"},
		// In part: the part that was known.
		{". 451:551 ack 1 win 9", ". 1 ack 551 win 9450 sack 451-501 601-701 1001-1101 801-901"},
		{". 551:601 ack 1 win 9", ". 1 ack 701 win 9300 sack 1001-1101 801-901"},
	} {
		s.send(tc.text)
		s.want(tc.want)
		s.quiet()
	}
	if len(s.got) != 700 {
		t.Errorf("received %d bytes", len(s.got))
	}
	for i, b := range s.got {
		if b != pattern(0, int64(i)+1) {
			t.Fatalf("byte %d is wrong", i)
		}
	}
}

// With timestamps and room for the owner fewer blocks fit; the newest stays.
func TestSACKRoom(t *testing.T) {
	s := acceptScript(t, "S 0 win 9 mss 1460 sackok ts 1/0", func(c *Config) { c.NoTimestamps = false })
	s.poll()
	s.send(". 1 ack 1 win 9 ts 1/3600000")
	for _, text := range []string{". 201:301", ". 401:501", ". 601:701", ". 801:901"} {
		s.send(text + " ack 1 win 9 ts 1/3600000")
	}
	for _, tc := range []struct{ reserve, blocks int }{{0, 3}, {4, 2}, {8, 2}, {12, 1}, {20, 0}, {28, 0}} {
		s.c.RequestAck(s.now)
		if !s.c.PollSegment(s.now, &s.seg, &s.out, 0, tc.reserve) {
			t.Fatal("no ACK")
		}
		n := 0
		if s.seg.Has(1 << 3) {
			n = s.seg.SACKBlocks
			if s.seg.SACK[0].Start != scriptIRS.At(801) {
				t.Errorf("reserve %d: first block at %d", tc.reserve, scriptIRS.Offset(s.seg.SACK[0].Start, 0))
			}
		}
		if n != tc.blocks || s.out.OptionRoom != 40-s.seg.OptionsLen() || s.out.OptionRoom < tc.reserve {
			t.Errorf("reserve %d: %d blocks, want %d; room %d", tc.reserve, n, tc.blocks, s.out.OptionRoom)
		}
	}
}

// Without SACK every out-of-order segment gets a duplicate ACK of its own, also when several arrive before the poll
// (RFC 5681, Section 3.2: the peer counts them).
func TestDuplicateACKsWithoutSACK(t *testing.T) {
	s := establishedScript(t, func(c *Config) { c.NoSACK = true })
	for _, text := range []string{". 201:301", ". 301:401", ". 401:501"} {
		s.send(text + " ack 1 win 9")
	}
	s.want(". 1 ack 1 win 10000", ". 1 ack 1 win 10000", ". 1 ack 1 win 10000", "")
	// With SACK one says it all.
	s = establishedScript(t, nil)
	for _, text := range []string{". 201:301", ". 301:401", ". 401:501"} {
		s.send(text + " ack 1 win 9")
	}
	s.want(". 1 ack 1 win 10000 sack 201-501", "")
}

// slow leaves quick-ACK mode behind.
func slow(t *testing.T) (s *script, next int64) {
	s = establishedScript(t, func(c *Config) { c.InitialWindow = 60000 })
	next = 1
	for range quickAcks {
		s.segment(&next, 1000)
		if s.poll() == "" {
			t.Fatal("no quick ACK")
		}
	}
	return s, next
}

// segment sends n bytes at *next.
func (s *script) segment(next *int64, n int64) {
	seg := s.parse(". 1 ack 1 win 10000")
	seg.Seq = scriptIRS.At(*next)
	seg.Payload = make([]byte, n)
	*next += n
	s.c.HandleSegment(s.now, seg)
	for c := s.c.NextReceived(); c != nil; c = s.c.NextReceived() {
		s.c.cfg.Pool.Release(c)
	}
}

// RFC 9293, Section 3.8.6.3: an ACK for at least every second full segment; the delay is under half a second.
func TestDelayedACK(t *testing.T) {
	s, next := slow(t)
	s.segment(&next, 1000)
	s.quiet()
	s.segment(&next, 1000)
	if s.poll() == "" {
		t.Fatal("no ACK for the second full segment")
	}
	s.quiet()
	s.segment(&next, 1000)
	s.quiet()
	if d := s.until(); d < 30*time.Millisecond || d > 200*time.Millisecond {
		t.Errorf("delayed by %v", d)
	}
	if s.poll() == "" {
		t.Fatal("no ACK after the delay")
	}
	s.quiet()
	for range smallToACK - 1 { // small ones
		s.segment(&next, 10)
		s.quiet()
	}
	s.segment(&next, 10)
	if s.poll() == "" {
		t.Fatal("no ACK for many small segments")
	}
}

// What a driver or a middlebox has put together from several segments counts as several: a sender that paces such bursts would else wait for the
// delayed ACK of each.
func TestACKOfCoalesced(t *testing.T) {
	s, next := slow(t)
	for range 3 {
		s.segment(&next, 4*1448)
		if s.poll() == "" {
			t.Fatal("no ACK for a row of segments in one")
		}
		s.quiet()
	}
	s.segment(&next, 1448)
	s.quiet() // a full segment may wait
	s.segment(&next, 1448)
	if s.poll() == "" {
		t.Fatal("no ACK for the second full segment")
	}
}

// The ACK rides on payload of ours if there is some in time; the delay then ends.
func TestACKRidesOnPayload(t *testing.T) {
	s, next := slow(t)
	s.segment(&next, 500)
	s.quiet()
	s.c.Push(1, 100)
	if got := s.poll(); got != "P. 1:101 ack 16501 win 43500" {
		t.Errorf("polled %q", got)
	}
	if s.c.rcv.at != s.c.keep.at { // both Never
		t.Error("the delayed ACK is still due")
	}
	s.quiet()
}

// RFC 5681, Sections 3.2 and 4.2: at once for a gap, for each segment behind it, and for what fills it, in whole or in part.
func TestImmediateACKs(t *testing.T) {
	s, next := slow(t)
	hole := next
	next += 1000
	s.segment(&next, 1000)
	if s.poll() == "" {
		t.Error("no ACK for a segment behind a gap")
	}
	s.segment(&hole, 500)
	if s.poll() == "" {
		t.Error("no ACK for a segment that fills half of the gap")
	}
	s.segment(&hole, 500)
	if s.poll() == "" {
		t.Error("no ACK for a segment that fills the gap")
	}
	hole -= 500
	s.segment(&hole, 500)
	if s.poll() == "" {
		t.Error("no ACK for a duplicate")
	}
	s.segment(&next, 500)
	s.quiet()
}

// After a pause of a retransmission timeout the first segments are acknowledged at once again.
func TestQuickACKsAfterPause(t *testing.T) {
	s, next := slow(t)
	s.segment(&next, 500)
	s.quiet()
	s.advance(10 * time.Second)
	s.poll()
	s.segment(&next, 500)
	if s.poll() == "" {
		t.Error("no quick ACK after a pause")
	}
}

// Whatever SetWindow says, payload below the highest edge ever advertised is taken, and nothing beyond.
func TestShrunkWindow(t *testing.T) {
	s := establishedScript(t, nil)
	s.c.SetWindow(100)
	s.c.RequestAck(s.now)
	s.want(". 1 ack 1 win 100")
	s.send(". 1:10002 ack 1 win 9")
	s.want(". 1 ack 10001 win 0")
	if len(s.got) != 10000 {
		t.Errorf("received %d bytes", len(s.got))
	}
	s.c.SetWindow(50)
	s.c.RequestAck(s.now)
	s.want(". 1 ack 10001 win 50")
}

// RFC 7323, Section 2.4: rounding by the scale makes the right edge move left by less than a unit, and never promises more than was
// allowed.
func TestEdgeUnderScaling(t *testing.T) {
	for scale := range uint8(15) {
		var r receiver
		r.init(1<<20, 1460)
		unit := int64(1) << scale
		highest := int64(0)
		for i := range int64(20000) {
			edge := r.nxt + int64(r.advertise(scale))<<scale
			if edge <= highest-unit || edge > r.limit {
				t.Fatalf("scale %d, step %d: edge moved from %d to %d, allowed %d", scale, i, highest, edge, r.limit)
			}
			highest = max(highest, edge)
			r.nxt += min(17+i%200, r.edge-r.nxt)
			if i%9 == 0 {
				r.setLimit(max(r.limit-r.nxt, 65535*min(unit, 16)))
			}
		}
	}
}

// A sender of single bytes with gaps between them cannot make the receiver hold more memory than a bound.
func TestOutOfOrderMemoryIsBounded(t *testing.T) {
	s := establishedScript(t, func(c *Config) { c.InitialWindow = 65535 })
	for o := int64(3); o < 65000; o += 2 {
		seg := s.parse(". 1 ack 1 win 9")
		seg.Seq, seg.Payload = scriptIRS.At(o), []byte{1}
		s.c.HandleSegment(s.now, seg)
	}
	if n := s.c.cfg.Pool.InUse(); n > 2*65535+oooCostFloor+1024 {
		t.Errorf("%d bytes held", n)
	}
	// What was dropped was not reported: the peer repeats it, and all is well.
	s.c.HandleSegment(s.now, s.parse(". 1:60001 ack 1 win 9"))
	if s.c.ReceivedOffset() < 60001 {
		t.Errorf("received up to %d", s.c.ReceivedOffset())
	}
}

func TestHintsNameEachRangeOnce(t *testing.T) {
	var b blocks
	b.newest(10, seq.Range{Start: 10, End: 20})
	b.newest(30, seq.Range{Start: 30, End: 40})
	b.newest(20, seq.Range{Start: 10, End: 30})
	if b.hints != [4]int64{20, 30} {
		t.Errorf("%v", b.hints)
	}
}
