package mptcp

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"braid/schedule"
	"braid/seq"
	"braid/wire"
)

// referee sees every packet of a connection before the network does and judges it by what RFC 8684 asks of a sender. It takes numbers from
// keys and SYNs that it saw, and payload from the pattern that all streams consist of: nothing from the code that made the packet.
type referee struct {
	*world
	conns  [2]*Conn // client, server
	totals [2]int64 // bytes of their streams
	keys   [2]wire.Key
	flows  map[flowName]*judgedFlow
	acks   [2]int64 // offset of each end's last DATA_ACK
	fins   [2]int   // DATA_FINs with data, and alone
	rng    *rand.Rand
	loss   float64
	shrunk bool // the first path's MTU has fallen
}

// flowName names one direction of a subflow.
type flowName struct {
	toServer bool
	link     *testLink
	port     uint16 // the client's
}

// judgedFlow is what the referee knows of one.
type judgedFlow struct {
	iss       seq.Number
	maps      map[int64]judgedMapping // by first subflow offset
	end       int64                   // behind the last mapping
	delivered seq.Set                 // subflow offsets that the network let through
	reset     bool
}

type judgedMapping struct{ data, n int64 }

func newReferee(w *world, loss float64) *referee {
	r := &referee{world: w, flows: map[flowName]*judgedFlow{}, rng: rand.New(rand.NewPCG(3, 4)), loss: loss}
	w.tap = r.judge
	return r
}

// judge looks at a packet and decides its fate.
func (r *referee) judge(f *flight) bool {
	seg := f.segment(r.t)
	from := 1
	name := flowName{f.toServer, f.link, seg.DstPort}
	if f.toServer {
		from, name.port = 0, seg.SrcPort
	}
	r.secrecy(f, &seg)
	if seg.Flags&wire.SYN != 0 {
		r.flows[name] = &judgedFlow{iss: seg.Seq, maps: map[int64]judgedMapping{}, end: 1}
		if seg.Has(wire.OptMPCapable) && seg.Capable.Keys == 1 {
			r.keys[1] = seg.Capable.Sender
		}
		return true
	}
	flow := r.flows[name]
	if seg.Flags&wire.RST != 0 {
		flow.reset = true
		return true
	}
	if seg.Has(wire.OptMPCapable) {
		r.keys[0] = seg.Capable.Sender
	}
	r.judgeOptions(from, flow, &seg)
	if !r.shrunk && f.toServer && f.link == r.links[0] && len(f.b) > 1400 && len(flow.maps) > 100 {
		r.shrunk = true
		r.client.HandlePacket(r.now, f.link.client, netip.AddrPort{}, icmpError(f.link, 3, 4, 1300, seg.SrcPort, seg.Seq))
	}
	if r.rng.Float64() < r.loss || r.shrunk && f.toServer && f.link == r.links[0] && len(f.b) > 1300 {
		return false
	}
	start := flow.iss.Offset(seg.Seq, flow.end)
	flow.delivered.Add(seq.Range{Start: start, End: start + int64(len(seg.Payload))})
	return true
}

// secrecy: RFC 8684, Sections 3.1 and 5 (KEY-06): keys are seen in MP_CAPABLE only.
func (r *referee) secrecy(f *flight, seg *wire.Segment) {
	for _, key := range r.keys {
		if key != (wire.Key{}) && !seg.Has(wire.OptMPCapable) && bytes.Contains(f.b, key[:]) {
			r.t.Errorf("a key in %v", seg)
		}
	}
}

// judgeOptions checks DATA_ACK, mapping and FIN of a segment from one end.
func (r *referee) judgeOptions(from int, flow *judgedFlow, seg *wire.Segment) {
	d := &seg.DSS
	if c := r.conns[from]; c != nil && c.hs.confirmed && seg.Options&(wire.OptMPCapable|wire.OptMPJoin) == 0 && !(seg.Has(wire.OptDSS) && d.HasAck) {
		r.t.Errorf("no DATA_ACK in %v", seg) // Section 3.3.2 (ACK-04)
	}
	if seg.Has(wire.OptDSS) && d.HasAck {
		r.judgeAck(from, d)
	}
	// Section 3.3.3 (FIN-06, FIN-07): subflows close when both streams have ended and both ends know it.
	if c := r.conns[from]; seg.Flags&wire.FIN != 0 && !(c.fin.acked && c.fin.peerReached) {
		r.t.Errorf("FIN before the DATA_FINs were acknowledged: %v", seg)
	}
	switch {
	case seg.Has(wire.OptDSS) && d.HasMap:
		r.judgeMapping(from, flow, seg, d)
	case seg.Has(wire.OptMPCapable) && len(seg.Payload) > 0:
		// Section 3.1 (CAP-06, CSUM-05): it maps subflow offset 1 to IDSN + 1.
		o := &seg.Capable
		r.judgeMapping(from, flow, seg, &wire.DSS{
			Map64: true, DataSeq: r.keys[from].IDSN() + 1, Subflow: 1, Length: o.DataLength, HasCheck: o.HasChecksum, Checksum: o.Checksum,
		})
	case len(seg.Payload) > 0:
		r.t.Errorf("payload without mapping: %v", seg)
	}
}

// judgeAck: RFC 8684, Section 3.3.2 (ACK-05): a DATA_ACK never goes back, nor beyond the peer's DATA_FIN.
func (r *referee) judgeAck(from int, d *wire.DSS) {
	idsn := r.keys[1-from].IDSN()
	n := d.DataAck
	if !d.Ack64 {
		n = seq.Promote(uint32(n), idsn.At(r.acks[from]))
	}
	o := idsn.Offset(n)
	if o < max(r.acks[from], 1) || o > r.totals[1-from]+2 {
		r.t.Errorf("DATA_ACK %d after %d", o, r.acks[from])
	}
	r.acks[from] = max(r.acks[from], o)
}

// judgeMapping: RFC 8684, Sections 3.1, 3.3.1 and 3.3.3.
func (r *referee) judgeMapping(from int, flow *judgedFlow, seg *wire.Segment, d *wire.DSS) {
	data, n, total := r.keys[from].IDSN().Offset(d.DataSeq), int64(d.Length), r.totals[from]
	if !d.Map64 {
		r.t.Errorf("32-bit data sequence number: %v", seg) // DSS-07
	}
	if d.HasCheck != r.conns[0].hs.checksums {
		r.t.Errorf("checksum %v", d.HasCheck) // CAP-13, DSS-04
	}
	if d.DataFIN {
		if n--; data+n != total+1 {
			r.t.Errorf("DATA_FIN at %d of a stream of %d bytes", data+n, total) // FIN-01, FIN-02
		}
		r.fins[min(1, max(0, 1-n))]++
		if n == 0 && (d.Subflow != 0 || len(seg.Payload) > 0) {
			r.t.Errorf("DATA_FIN alone: %+v", d) // FIN-03
		}
	}
	stream := make([]byte, n)
	for i := range stream {
		stream[i] = pattern(int(data) - 1 + i) // KEY-05: the first byte of a stream has data offset 1
	}
	if want := wire.DSSChecksum(d.DataSeq, d.Subflow, d.Length, wire.Sum(0).Add(stream)); d.HasCheck && d.Checksum != want {
		r.t.Errorf("checksum %04x, want %04x: %v", d.Checksum, want, seg) // CSUM-01 to CSUM-03
	}
	if n == 0 {
		return
	}
	start := int64(d.Subflow) // MAP-01; no flow here is longer than 2^32
	switch old, known := flow.maps[start]; {
	case known && old != judgedMapping{data, n}:
		r.t.Errorf("subflow offset %d mapped to %+v, then to %d,+%d", start, old, data, n) // MAP-04, MTU-08
	case !known && start != flow.end:
		r.t.Errorf("mapping from %d on, the last one ended at %d", start, flow.end) // MAP-02
	case !known:
		flow.maps[start], flow.end = judgedMapping{data, n}, start+n
	}
	at := flow.iss.Offset(seg.Seq, start) - start
	if at < 0 || at+int64(len(seg.Payload)) > n || !bytes.Equal(seg.Payload, stream[at:at+int64(len(seg.Payload))]) {
		r.t.Errorf("the payload is not what the mapping says: %v", seg) // MAP-03
	}
}

// Everything that a sender may get wrong about keys, mappings, checksums, DATA_ACK and DATA_FIN, over two paths with losses, copies on both
// paths, and an MTU that falls under way. REL-01 (RFC 8684, Section 3.3.6): what a subflow lost is repaired on it, even if another one
// delivered the data.
func TestReferee(t *testing.T) {
	for _, tc := range []struct {
		name, scheduler string
		checksums       bool
		loss            float64
		late            bool // the streams end after everything was delivered
	}{
		{"clean", "minrtt", false, 0, false},
		{"checksums", "roundrobin", true, 0.02, false},
		{"copies", "redundant", false, 0.02, false},
		{"copies with checksums", "redundant", true, 0.02, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := Config{Checksums: tc.checksums}
			cfg.Scheduler, _ = schedule.ByName(tc.scheduler)
			w := newWorld(t, cfg, cfg)
			for i := range 2 {
				l := w.link(time.Duration(10+15*i) * time.Millisecond)
				l.rate, l.limit = 2e6, 100*time.Millisecond
			}
			r := newReferee(w, tc.loss)
			l := w.listen()
			r.conns[0] = w.dial()
			const up, down = 700_001, 300_001
			r.totals = [2]int64{up, down}
			there := w.stream(r.conns[0], nil, up)
			if !w.until(5*time.Second, func() bool { r.conns[1], _ = l.Accept(); return r.conns[1] != nil }) {
				t.Fatal("not connected")
			}
			there.to = r.conns[1]
			back := w.stream(r.conns[1], r.conns[0], down)
			if there.noClose, back.noClose = tc.late, tc.late; tc.late {
				w.until(time.Minute, func() bool { return there.read == up && back.read == down })
				w.run(time.Second)
				there.noClose, back.noClose = false, false
			}
			if !w.until(time.Minute, func() bool { return there.eof && back.eof }) {
				t.Fatalf("%d and %d bytes read", there.read, back.read)
			}
			w.run(time.Minute)
			for _, c := range r.conns {
				if c.state != connOver || c.Err() != nil || c.Info(w.now).Fallback != NoFallback {
					t.Errorf("%v, %v", c.Err(), c.Info(w.now).Fallback)
				}
			}
			if len(r.flows) != 4 || tc.late != (r.fins[0] == 0) || tc.late != (r.fins[1] > 0) || !r.shrunk {
				t.Errorf("%d flows, DATA_FINs with data and alone %v, MTU fell %v: not what was to be judged", len(r.flows), r.fins, r.shrunk)
			}
			for name, flow := range r.flows {
				if gap := flow.delivered.FirstGap(seq.Range{Start: 1, End: flow.end}); !flow.reset && !gap.Empty() {
					t.Errorf("flow %+v ends with %v of %d bytes never delivered", name, gap, flow.end)
				}
				if flow.reset {
					t.Errorf("flow %+v was reset", name)
				}
			}
		})
	}
}
