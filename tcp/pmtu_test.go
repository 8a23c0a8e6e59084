package tcp

import (
	"testing"
	"time"

	"braid/wire"
)

// limitPackets loses packets of a's that are larger than size, as a router would that sends no ICMP.
func limitPackets(p *pair, size *int) {
	p.fate = func(from *side, seg *wire.Segment, out *Out) verdict {
		return verdict{lose: from == p.a && 20+20+seg.OptionsLen()+out.Len > *size}
	}
}

// RFC 6691, Section 2: the MSS option is the MTU without fixed headers. RFC 9293, Section 3.7.1: payload makes room for options.
func TestPayloadRoom(t *testing.T) {
	for _, tc := range []struct {
		timestamps    bool
		reserve, want int
	}{{false, 0, 1460}, {false, 20, 1440}, {false, 18, 1440}, {true, 0, 1448}, {true, 28, 1420}} {
		s := acceptScript(t, "S 0 win 9 mss 1460 ts 1/0", func(c *Config) { c.NoTimestamps = !tc.timestamps })
		if got := s.c.PayloadRoom(tc.reserve); got != tc.want {
			t.Errorf("timestamps %v, reserve %d: %d, want %d", tc.timestamps, tc.reserve, got, tc.want)
		}
	}
}

// RFC 1191, Sections 3 and 6.5, RFC 8201, Section 4: a report lowers the size, what is outstanding leaves again at once in smaller segments, and
// the congestion window stays; a report neither raises the size nor gets it below the floor.
func TestMTUReport(t *testing.T) {
	s := establishedScript(t, nil)
	window := s.c.Info(s.now).Window
	s.c.SetMore(true)
	for i := range int64(2) {
		s.c.Push(1+1460*i, 1460)
		s.poll()
	}
	s.c.HandleMTU(s.now, 1000)
	s.c.SetMore(false)
	s.want(". 1:961 ack 1 win 10000", ". 961:1461 ack 1 win 10000", ". 1461:2421 ack 1 win 10000")
	if got := s.poll(); got != "P. 2421:2921 ack 1 win 10000" {
		t.Errorf("polled %q", got)
	}
	s.quiet()
	if i := s.c.Info(s.now); i.Window < window || i.MTU != 1000 || i.MSS != 960 || i.InRecovery {
		t.Errorf("window %d (before %d), MTU %d, MSS %d, recovery %v", i.Window, window, i.MTU, i.MSS, i.InRecovery)
	}
	for _, tc := range []struct{ report, want int }{{1400, 1000}, {1000, 1000}, {100, 576}, {0, 576}} {
		s.c.HandleMTU(s.now, tc.report)
		if s.c.Info(s.now).MTU != tc.want {
			t.Errorf("report of %d: %d, want %d", tc.report, s.c.Info(s.now).MTU, tc.want)
		}
	}
	s = establishedScript(t, func(c *Config) { c.Overhead = 40 })
	s.c.HandleMTU(s.now, 100)
	if s.c.Info(s.now).MTU != 1280 {
		t.Errorf("IPv6: %d", s.c.Info(s.now).MTU)
	}
}

// RFC 4821, Section 7.7, and RFC 8899, Section 4.3: when packets of one size vanish without a word, smaller ones are tried.
func TestBlackHole(t *testing.T) {
	for _, passes := range []int{1492, 1300, 600} {
		p := connected(t, nil)
		limitPackets(p, &passes)
		const n = 500_000
		p.a.write(n)
		if !p.run(2*time.Minute, func() bool { return p.b.got == n }) {
			t.Fatalf("a path of %d bytes: received %d; %+v", passes, p.b.got, p.a.c.Info(p.now))
		}
	}
}

// After a black hole the size is searched again: the largest at once if the path has recovered, by halves if not (RFC 8899, Section 5.3).
// Lost probes are no sign of congestion (RFC 4821, Section 7.4).
func TestSearchAfterBlackHole(t *testing.T) {
	for _, tc := range []struct{ hole, later, least, most int }{
		{600, 1500, 1500, 1500}, {1300, 1300, 1300 - probeStep, 1300}, {1400, 1400, 1400 - probeStep, 1400},
	} {
		p := connected(t, nil)
		passes := tc.hole
		limitPackets(p, &passes)
		p.a.write(100_000)
		p.run(time.Minute, func() bool { return p.b.got == 100_000 })
		passes = tc.later
		before := p.a.c.Info(p.now)
		for range 600 {
			p.a.write(20_000)
			p.advance(100 * time.Millisecond)
		}
		i := p.a.c.Info(p.now)
		if i.MTU < tc.least || i.MTU > tc.most {
			t.Errorf("a hole of %d, then %d: MTU %d", tc.hole, tc.later, i.MTU)
		}
		if p.b.got != 100_000+600*20_000 {
			t.Errorf("received %d", p.b.got)
		}
		if i.LostSegs > before.LostSegs+2 || i.RTOs > before.RTOs {
			t.Errorf("a hole of %d: %d segments lost, %d timeouts by probing", tc.hole, i.LostSegs-before.LostSegs, i.RTOs-before.RTOs)
		}
		if p.a.c.mtu.searching {
			t.Error("the search does not end")
		}
	}
}

// An owner that pushes chunks longer than a segment, and one that reserves room for options, probe as well.
func TestProbeWithLongChunks(t *testing.T) {
	p := connected(t, nil)
	passes := 600
	limitPackets(p, &passes)
	p.a.chunk, p.a.reserve = 30000, 20
	p.a.write(100_000)
	p.run(time.Minute, func() bool { return p.b.got == 100_000 })
	passes = 1500
	for range 300 {
		p.a.write(20_000)
		p.advance(100 * time.Millisecond)
	}
	if i := p.a.c.Info(p.now); i.MTU != 1500 {
		t.Errorf("MTU %d", i.MTU)
	}
}

// After a report the size is raised by probing, ten minutes later (RFC 1191, Section 6.3).
func TestRaiseAfterReport(t *testing.T) {
	p := connected(t, nil)
	p.a.c.HandleMTU(p.now, 1000)
	busy := func(d time.Duration) {
		for end := p.now.Add(d); p.now < end; {
			p.a.write(3000)
			p.advance(time.Second)
		}
	}
	busy(9*time.Minute + 50*time.Second)
	if i := p.a.c.Info(p.now); i.MTU != 1000 {
		t.Errorf("raised to %d too early", i.MTU)
	}
	busy(30 * time.Second)
	if i := p.a.c.Info(p.now); i.MTU != 1500 {
		t.Errorf("MTU %d", i.MTU)
	}
}

// Above the configured size only on request.
func TestProbeAboveConfigured(t *testing.T) {
	for _, limit := range []int{0, 9000} {
		p := connected(t, func(a, b *Config) { a.ProbeMTU, b.MTU = limit, 9000 })
		passes := 4000
		limitPackets(p, &passes)
		for range 600 {
			p.a.write(50_000)
			p.advance(100 * time.Millisecond)
		}
		i := p.a.c.Info(p.now)
		if limit == 0 && i.MTU != 1500 || limit > 0 && (i.MTU > 4000 || i.MTU < 4000-probeStep) {
			t.Errorf("probing up to %d: MTU %d", limit, i.MTU)
		}
	}
}
