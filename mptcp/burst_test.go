package mptcp

import (
	"testing"
	"time"

	"braid/wire"
)

// burstWorld is a world whose client sends bursts of 8 packets over IP paths.
func burstWorld(t *testing.T, cfg Config, links int) *world {
	cfg.PacingQuantum = time.Millisecond // as a host's: what leaves at a wake-up is worth a burst
	w := newWorld(t, cfg, Config{})
	for range links {
		l := w.link(10 * time.Millisecond)
		l.rate = 20e6
		l.limit = 200 * time.Millisecond
		w.client.paths[l.client].Burst = 8
	}
	return w
}

// mappingsOf counts the segments of the client's with payload by the length of their mapping in packets, and checks that all segments of a
// mapping carry the same one (RFC 8684, Section 3.3.1).
func mappingsOf(t *testing.T, w *world) map[int]int {
	byPackets := map[int]int{}
	type place struct {
		link    *testLink
		subflow uint32
	}
	seen := map[place]wire.DSS{}
	w.tap = func(p *flight) bool {
		var ip wire.IP
		var seg wire.Segment
		if !p.toServer || wire.ParseIP(p.b, &ip) != nil || wire.ParseTCP(ip.Payload, &seg) != nil {
			return true
		}
		if d := &seg.DSS; seg.Options&wire.OptDSS != 0 && d.HasMap && len(seg.Payload) > 0 {
			n := int(d.Length)
			if d.DataFIN {
				n--
			}
			byPackets[(n+len(seg.Payload)-1)/len(seg.Payload)]++
			at := place{p.link, d.Subflow}
			if old, ok := seen[at]; ok && (old.DataSeq != d.DataSeq || old.Length != d.Length) {
				t.Errorf("subflow offset %d: %+v after %+v", d.Subflow, *d, old)
			}
			seen[at] = *d
		}
		return true
	}
	return byPackets
}

// TestBurst: a mapping spans several segments where the driver wants it, and everything arrives, also when parts of bursts get lost.
func TestBurst(t *testing.T) {
	for _, links := range []int{1, 2} {
		for _, loss := range []float64{0, 0.02} {
			w := burstWorld(t, Config{}, links)
			counts := mappingsOf(t, w)
			c, s := w.connect(w.listen())
			for _, l := range w.links {
				l.loss = loss
			}
			up := w.stream(c, s, 4<<20)
			if !w.until(60*time.Second, func() bool { return up.eof }) {
				t.Fatalf("%d links, loss %v: %+v", links, loss, up)
			}
			long := 0
			for n, k := range counts {
				if n > 8 {
					// a piece at the end of a burst is shorter than a packet
					continue
				}
				if n > 1 {
					long += k
				}
			}
			if long < counts[1] {
				t.Errorf("%d links, loss %v: few bursts: %v", links, loss, counts)
			}
			if n := w.server.counters.MappingConflicts + w.server.counters.MappingsRefused; n != 0 {
				t.Errorf("the server refuses %d mappings", n)
			}
		}
	}
}

// TestNoBurst: with checksums, and without being asked, each segment has a mapping of its own.
func TestNoBurst(t *testing.T) {
	for _, checksums := range []bool{true, false} {
		w := burstWorld(t, Config{Checksums: checksums}, 1)
		if !checksums {
			w.client.paths[0].Burst = 0
		}
		counts := mappingsOf(t, w)
		c, s := w.connect(w.listen())
		up := w.stream(c, s, 1<<20)
		if !w.until(20*time.Second, func() bool { return up.eof }) {
			t.Fatalf("%+v", up)
		}
		if len(counts) != 1 || counts[1] < 100 {
			t.Errorf("checksums %v: %v", checksums, counts)
		}
	}
}
