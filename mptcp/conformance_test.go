package mptcp

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"braid/seq"
	"braid/wire"
)

// One test for each requirement that no other test proves: docs/rfc8684.md says where the others are.

// RFC 8684, Section 3.1 (CAP-08): when the listener sends first, its mapping is the proof, and the initiator's data needs no MP_CAPABLE.
func TestDataAfterProofUsesDSS(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(10 * time.Millisecond)
	c, s := w.connect(w.listen())
	s.Write(w.now, []byte("first"))
	w.run(time.Second)
	w.tap = func(f *flight) bool {
		if seg := f.segment(t); f.toServer && (seg.Has(wire.OptMPCapable) || !seg.Has(wire.OptDSS)) {
			t.Errorf("%v", &seg)
		}
		return true
	}
	c.Write(w.now, []byte("answer"))
	w.run(time.Second)
	var b [10]byte
	if n, _ := s.Read(w.now, b[:]); string(b[:n]) != "answer" {
		t.Errorf("read %q", b[:n])
	}
}

// RFC 8684, Section 3.1 (CAP-20): who did not offer MP_CAPABLE ignores one in the answer.
func TestCapableNotOfferedIsIgnored(t *testing.T) {
	w := newWorld(t, Config{NoMPTCP: true}, Config{NoMPTCP: true})
	w.link(10 * time.Millisecond)
	w.tap = func(f *flight) bool {
		seg := f.segment(t)
		if f.toServer && seg.Options&wire.OptMPTCP != 0 {
			t.Errorf("%v", &seg)
		}
		if !f.toServer && seg.Flags&wire.SYN != 0 {
			f.rewrite(t, func(seg *wire.Segment) {
				seg.Options |= wire.OptMPCapable
				seg.Capable = wire.MPCapable{Version: 1, HMACSHA256: true, Keys: 1, Sender: wire.Key{7}}
			})
		}
		return true
	}
	c, s := w.connect(w.listen())
	w.transfer(c, s, 50_000, 5*time.Second)
	if !c.fallen() || c.hs.peerKey != (wire.Key{}) {
		t.Errorf("plain %v, key %x", c.fallen(), c.hs.peerKey)
	}
}

// RFC 8684, Section 3.7 (CAP-17, FB-06, FB-07): a connection that fell back sends no MPTCP option, ignores those that come, and never returns,
// whatever becomes of the middlebox.
func TestFallbackIsForGood(t *testing.T) {
	for _, tc := range []struct {
		name  string
		strip func(toServer, syn bool) bool
	}{
		{"SYN/ACK", func(toServer, syn bool) bool { return !toServer && syn }},
		{"all but SYNs", func(toServer, syn bool) bool { return !syn }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, Config{}, Config{})
			w.link(10 * time.Millisecond).rate = 1e6
			var c, s *Conn
			stop := w.now.Add(300 * time.Millisecond)
			added := false
			w.tap = func(f *flight) bool {
				seg := f.segment(t)
				from := s
				if f.toServer {
					from = c
				}
				if from != nil && from.fb.active && seg.Options&wire.OptMPTCP != 0 {
					t.Errorf("after the fallback: %v", &seg)
				}
				switch {
				case w.now < stop && tc.strip(f.toServer, seg.Flags&wire.SYN != 0):
					strip(t, f)
				case w.now >= stop && !f.toServer && len(seg.Payload) == 0 && !added:
					added = true
					f.rewrite(t, func(seg *wire.Segment) {
						seg.Options |= wire.OptMPFastClose
						seg.FastClose.Receiver = c.hs.localKey
					})
				}
				return true
			}
			l := w.listen()
			c = w.dial()
			st := w.stream(c, nil, 1_000_000)
			w.until(time.Second, func() bool { s, _ = l.Accept(); return s != nil })
			st.to = s
			back := w.stream(s, c, 200_000)
			if !w.until(20*time.Second, func() bool { return st.eof && back.eof }) {
				t.Fatalf("%d and %d bytes read, %v, %v", st.read, back.read, c.Err(), s.Err())
			}
			if !c.fb.active || !s.fb.active || !added || w.client.counters.JoinsSent != 0 {
				t.Errorf("client %+v, server %+v, MP_FASTCLOSE added %v", c.fb, s.fb, added)
			}
		})
	}
}

// RFC 8684, Section 3.2 (JOIN-12): the third packet of a join is repeated with back-off until it is acknowledged, and given up with a RST.
func TestUnansweredJoinAckGivesUp(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(10 * time.Millisecond)
	second := w.link(10 * time.Millisecond)
	var at []time.Duration
	var rst *wire.Segment
	port := uint16(0)
	w.tap = func(f *flight) bool {
		seg := f.segment(t)
		switch {
		case f.link != second:
		case !f.toServer:
			return seg.Flags&wire.SYN != 0
		case port == 0:
			port = seg.SrcPort
		case seg.SrcPort != port || seg.Flags&wire.SYN != 0:
		case seg.Flags&wire.RST != 0:
			rst = &seg
		case seg.Has(wire.OptMPJoin) && seg.Join.Form == wire.JoinACK && len(seg.Payload) == 0:
			at = append(at, time.Duration(w.now))
		default:
			t.Errorf("before the fourth packet: %v", &seg)
		}
		return true
	}
	c, _ := w.connect(w.listen())
	c.Write(w.now, []byte("x"))
	w.run(time.Minute)
	for i := 2; i < len(at); i++ {
		if a, b := at[i-1]-at[i-2], at[i]-at[i-1]; b < 3*a/2 {
			t.Errorf("no back-off: pauses of %v and %v", a, b)
		}
	}
	if len(at) < 4 || rst == nil || !rst.Has(wire.OptMPTCPReset) || c.Subflows() != 1 || c.Err() != nil {
		t.Errorf("%d repetitions, reset %v, %d subflows, %v", len(at), rst, c.Subflows(), c.Err())
	}
}

// RFC 8684, Section 3.2 (JOIN-15, JOIN-16): B in the SYN/ACK asks the initiator to use the subflow as backup, and the address ID of the
// listener's first address is 0.
func TestJoinBackupOfTheListener(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(10 * time.Millisecond)
	w.link(10 * time.Millisecond)
	w.server.paths[0].Backup = true
	c, _ := w.connect(w.listen())
	c.Write(w.now, []byte("x"))
	w.run(time.Second)
	if c.Subflows() != 2 || !c.subflows[1].backupPeer || c.subflows[1].backupLocal || c.subflows[1].remoteID != 0 || c.subflows[0].localID != 0 {
		t.Errorf("%d subflows, second %+v", c.Subflows(), c.Info(w.now).Subflows)
	}
}

// RFC 8684, Section 3.2 (JOIN-16): an address keeps its ID as long as it is there, no two have the same, and 0 is the first one's.
func TestAddressIDs(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(10 * time.Millisecond)
	c, _ := w.connect(w.listen())
	add := func(i int) PathID {
		return w.client.AddPath(w.now, Path{Local: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), 0)})
	}
	first := add(0)
	kept := c.pm.addressID(first)
	for i := 1; i < 1000; i++ {
		p := add(i)
		id := c.pm.addressID(p)
		if id == 0 || id == kept || c.pm.addressID(p) != id || c.pm.addressID(first) != kept || c.pm.addressID(0) != 0 {
			t.Fatalf("path %d has ID %d; the first one %d, now %d", p, id, kept, c.pm.addressID(first))
		}
		w.client.RemovePath(w.now, p)
	}
}

// JOIN-18, SEC-02: half-open joins are limited for the whole Stack.
func TestHalfOpenJoinsOfAStackAreLimited(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	l := w.link(10 * time.Millisecond)
	_, s := w.connect(w.listen())
	w.server.joining = maxJoining
	w.inject(l, true, wire.Segment{
		SrcPort: 999, DstPort: serverPort, Seq: 5, Flags: wire.SYN, Window: 1000, Options: wire.OptMPJoin,
		Join: wire.MPJoin{Form: wire.JoinSYN, Token: s.hs.localToken, Nonce: 3, AddressID: 9},
	})
	w.server.joining = 0
	segs := w.collect(false)
	if len(segs) != 1 || segs[0].Flags&wire.RST == 0 || segs[0].Reset != (wire.MPTCPReset{Transient: true, Reason: wire.ResetResources}) {
		t.Errorf("answer %v", segs)
	}
}

// RFC 8684, Sections 3.3.1 and 3.7 (MAP-10, FAI-08): an infinite mapping where falling back is impossible resets its subflow: with several
// subflows, or when it does not go on where the data stands.
func TestInfiniteMappingRefused(t *testing.T) {
	f := newForger(t, Config{}, Config{})
	f.give(f.mapped(f.segment(6, "abc"), 6, 20, 0))
	f.wantReset(wire.ResetMPTCP)

	w := newWorld(t, Config{}, Config{})
	w.link(10 * time.Millisecond)
	w.link(10 * time.Millisecond)
	c, s := w.connect(w.listen())
	st := w.stream(c, s, 10_000)
	st.noClose = true
	w.run(time.Second)
	infinite := 0
	w.tap = func(f *flight) bool {
		if seg := f.segment(t); infinite == 0 && f.toServer && len(seg.Payload) > 0 {
			infinite++
			f.rewrite(t, func(seg *wire.Segment) { seg.DSS.Length = 0 })
		}
		return true
	}
	st.total, st.noClose = 10_100, false
	if !w.until(20*time.Second, func() bool { return st.eof }) || infinite != 1 || s.fb.any() || w.server.counters.InfiniteRefused != 1 {
		t.Errorf("%d bytes read, %d infinite mappings, fallback %v, %d refused", st.read, infinite, s.fb.any(), w.server.counters.InfiniteRefused)
	}
}

// RFC 8684, Section 3.3.1 (CSUM-02, CSUM-03): the checksum is over the 64-bit number although 32 bits came, and over a length that counts
// the DATA_FIN; a wrong one is noticed.
func TestChecksumCoversWhatWasNotSent(t *testing.T) {
	for _, wrong := range []uint16{0, 1} {
		f := newForger(t, Config{Checksums: true}, Config{})
		seg := f.mapped(f.segment(6, "abc"), 6, 6, 4)
		seg.DSS.DataFIN, seg.DSS.HasCheck = true, true
		seg.DSS.Checksum = wire.DSSChecksum(seg.DSS.DataSeq, 6, 4, wire.Sum(0).Add([]byte("abc"))) + wrong
		seg.DSS.Map64 = false
		seg.DSS.DataSeq &= 1<<32 - 1
		got := f.give(seg)
		if ok := wrong == 0; ok != (got == "abc") || ok != f.s.fin.peerReached || ok != (f.server.counters.ChecksumErrors == 0) {
			t.Errorf("wrong by %d: read %q, end reached %v, %d errors", wrong, got, f.s.fin.peerReached, f.server.counters.ChecksumErrors)
		}
	}
}

// RFC 8684, Sections 3.3.4 and 3.3.5 (WIN-01 to WIN-04): only a window beside a DATA_ACK moves the edge of the connection, and never to the
// left.
func TestWindowCountsFromTheDataAck(t *testing.T) {
	f := newForger(t, Config{}, Config{})
	before := f.s.snd.edge
	give := func(window uint16, ack bool) int64 {
		seg := f.mapped(f.segment(6, ""), 0, 0, 0)
		seg.DSS.HasMap = false
		if seg.Window = window; !ack {
			seg.Options &^= wire.OptDSS
		}
		f.give(seg)
		return f.s.snd.edge
	}
	if e := give(65535, false); e != before {
		t.Errorf("a window without DATA_ACK moved the edge from %d to %d", before, e)
	}
	if e := give(1, true); e != before {
		t.Errorf("a smaller window moved the edge from %d to %d", before, e)
	}
	scale := f.s.subflows[0].tcp.WindowOf(&wire.Segment{Window: 1, Flags: wire.ACK})
	if e := give(65535, true); e != 6+65535*scale {
		t.Errorf("edge at %d, want DATA_ACK + window = %d", e, 6+65535*scale)
	}
}

// RFC 8684, Section 3.3.3 (FIN-06): a FIN ends what the peer sends on that subflow, not its stream.
func TestSubflowFINEndsNoStream(t *testing.T) {
	f := newForger(t, Config{}, Config{})
	seg := f.mapped(f.segment(6, "abc"), 6, 6, 3)
	seg.Flags |= wire.FIN
	if got := f.give(seg); got != "abc" {
		t.Errorf("read %q", got)
	}
	if list := f.answers(); len(list) == 0 || list[0].Ack != f.c.subflows[0].tcp.Number(10) {
		t.Errorf("the FIN was answered with %v", list)
	}
	if _, err := f.s.Read(f.now, make([]byte, 1)); !errors.Is(err, ErrWouldBlock) || f.s.state != connOpen {
		t.Errorf("read: %v, state %v", err, f.s.state)
	}
	if _, err := f.s.Write(f.now, []byte("x")); err != nil {
		t.Errorf("write: %v", err)
	}
}

// RFC 8684, Section 3.3.3 (FIN-12): what is left of a closed connection acknowledges a repeated DATA_FIN.
func TestDataFINInTimeWait(t *testing.T) {
	w, c, _, fin := closed(t, Config{})
	if w.client.remnants.n != 1 {
		t.Fatalf("%d remnants at the client", w.client.remnants.n)
	}
	seg := fin
	seg.Seq, seg.Flags = next(&fin), wire.ACK
	seg.Options = seg.Options&wire.OptTimestamps | wire.OptDSS
	seg.DSS = wire.DSS{HasMap: true, Map64: true, DataFIN: true, DataSeq: c.hs.peerIDSN.At(1001), Length: 1}
	w.inject(w.links[0], false, seg)
	segs := w.collect(true)
	if len(segs) != 1 || !segs[0].Has(wire.OptDSS) || segs[0].DSS.DataAck != c.hs.peerIDSN.At(1002) {
		t.Errorf("answer %v", segs)
	}
	seg.Seq += 1 << 28 // not acceptable: nothing of it is believed
	w.inject(w.links[0], false, seg)
	for _, s := range w.collect(true) {
		if s.Flags&wire.RST != 0 {
			t.Errorf("answer %v", &s)
		}
	}
}

// RFC 8684, Section 3.3.8 (PRI-03): MP_PRIO binds the host that gets it, in its own direction; it is not sent back.
func TestPriorityIsTheReceivers(t *testing.T) {
	f := newForger(t, Config{}, Config{})
	seg := f.segment(6, "")
	seg.Options |= wire.OptMPPrio
	seg.Prio.Backup = true
	f.give(seg)
	for _, answer := range f.answers() {
		if answer.Has(wire.OptMPPrio) {
			t.Errorf("answer %v", &answer)
		}
	}
	if sf := f.s.subflows[0]; !sf.backupPeer || sf.backupLocal || f.server.counters.PriosReceived != 1 {
		t.Errorf("peer %v, local %v", sf.backupPeer, sf.backupLocal)
	}
}

// RFC 8684, Section 3.3.8 (PRI-02): MP_CAPABLE has no flag B, so a first subflow over a backup path is followed by MP_PRIO.
func TestFirstSubflowOverABackupPath(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	first := w.link(10 * time.Millisecond)
	w.link(10 * time.Millisecond)
	w.client.paths[first.client].Backup = true
	c, s := w.connectOver(first)
	c.Write(w.now, []byte("x"))
	w.run(time.Second)
	if s.Subflows() != 2 || !s.subflows[0].backupPeer || s.subflows[1].backupPeer {
		t.Errorf("the server sees %+v", s.Info(w.now).Subflows)
	}
}

// RFC 8684, Section 3.7 (FAI-01, FAI-04, FAI-06): after a wrong checksum on the only subflow MP_FAIL goes on an ACK, and nothing is taken until the
// infinite mapping comes.
func TestDataAfterMPFailIsDiscarded(t *testing.T) {
	f := newForger(t, Config{Checksums: true}, Config{})
	seal := func(seg wire.Segment, wrong uint16) wire.Segment {
		seg.DSS.HasCheck = true
		seg.DSS.Checksum = wire.DSSChecksum(seg.DSS.DataSeq, seg.DSS.Subflow, seg.DSS.Length, wire.Sum(0).Add(seg.Payload)) + wrong
		return seg
	}
	if got := f.give(seal(f.mapped(f.segment(6, "abc"), 6, 6, 3), 1)); got != "" {
		t.Errorf("read %q of a corrupted mapping", got)
	}
	var fail *wire.Segment
	for _, seg := range f.answers() {
		if seg.Has(wire.OptMPFail) {
			fail = &seg
		}
	}
	if fail == nil || fail.Flags&wire.RST != 0 || f.c.hs.localIDSN.Offset(fail.Fail.DataSeq) != 6 || fail.Ack != f.c.subflows[0].tcp.Number(9) {
		t.Fatalf("MP_FAIL: %v", fail)
	}
	if got := f.give(seal(f.mapped(f.segment(9, "xyz"), 9, 6, 3), 0)); got != "" || f.dataAck() != 6 {
		t.Errorf("read %q before the infinite mapping", got)
	}
	infinite := f.mapped(f.segment(12, "abcdef"), 12, 6, 0)
	infinite.DSS.HasCheck = true
	if got := f.give(infinite); got != "abcdef" {
		t.Errorf("read %q under the infinite mapping", got)
	}
	if got := f.give(f.segment(18, "ghi")); got != "ghi" {
		t.Errorf("then read %q", got)
	}
}

// RFC 8684, Section 3.7 (FAI-05, FAI-07, FB-09): MP_FAIL on the only subflow is answered with MP_FAIL, and what was not DATA_ACKed is sent again under
// the infinite mapping: length 0, with the numbers at which it begins.
func TestPeersMPFail(t *testing.T) {
	f := newForger(t, Config{}, Config{})
	f.s.Write(f.now, []byte("more"))
	f.collect(false)
	seg := f.mapped(f.segment(6, ""), 0, 0, 0)
	seg.DSS.HasMap = false
	seg.Options |= wire.OptMPFail
	seg.Fail.DataSeq = f.c.hs.peerIDSN.At(6)
	f.give(seg)
	fails, infinite := 0, 0
	for _, seg := range f.answers() {
		if seg.Has(wire.OptMPFail) {
			fails++
		}
		if seg.Flags&wire.RST != 0 {
			t.Errorf("reset: %v", &seg)
		}
		if seg.Has(wire.OptDSS) && seg.DSS.HasMap && seg.DSS.Length == 0 {
			infinite++
			// The bytes before it on the subflow are "world" and the first "more".
			if f.c.hs.peerIDSN.Offset(seg.DSS.DataSeq) != 6 || seg.DSS.Subflow != 10 || len(seg.Payload) != 4 || f.c.subflows[0].tcp.PeerNumber(10) != seg.Seq {
				t.Errorf("infinite mapping %v", &seg)
			}
		}
	}
	if fails == 0 || infinite == 0 {
		t.Errorf("%d MP_FAIL, %d infinite mappings", fails, infinite)
	}
}

// RFC 8684, Section 3.5 (FCL-01, FCL-03): an abort sends a RST with MP_FASTCLOSE and the receiver's key on every subflow.
func TestAbortResetsEverySubflow(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(10 * time.Millisecond)
	w.link(10 * time.Millisecond)
	c, s := w.connect(w.listen())
	c.Write(w.now, []byte("x"))
	w.run(time.Second)
	resets := map[*testLink]int{}
	key := s.hs.localKey
	w.tap = func(f *flight) bool {
		if seg := f.segment(t); f.toServer && seg.Flags&wire.RST != 0 && seg.Has(wire.OptMPFastClose) && seg.FastClose.Receiver == key {
			resets[f.link]++
		}
		return true
	}
	c.Abort(w.now)
	w.run(time.Second)
	if len(resets) != 2 {
		t.Errorf("resets on %d subflows", len(resets))
	}
}

// RFC 8684, Section 3.5 (FCL-04): MP_FASTCLOSE on an ACK is answered with a RST.
func TestFastCloseOnAnAckIsAnswered(t *testing.T) {
	f := newForger(t, Config{}, Config{})
	seg := f.segment(6, "")
	seg.Options |= wire.OptMPFastClose
	seg.FastClose.Receiver = f.c.hs.peerKey
	f.give(seg)
	for _, answer := range f.answers() {
		if answer.Flags&wire.RST != 0 {
			return
		}
	}
	t.Error("no RST")
}

// RFC 8684, Section 3.6 (RST-04): a reason that is not known counts as unspecified, and none makes a RST valid.
func TestUnknownResetReason(t *testing.T) {
	f := newForger(t, Config{}, Config{})
	rst := f.segment(6, "")
	rst.Flags |= wire.RST
	rst.Options = wire.OptMPTCPReset
	rst.Reset = wire.MPTCPReset{Reason: 77}
	far := rst
	far.Seq += 1 << 28
	f.give(far)
	if n := f.server.counters.ResetReasonsIn; n != [7]int64{} || f.s.Subflows() != 1 {
		t.Errorf("a RST outside the window: %v, %d subflows", n, f.s.Subflows())
	}
	f.give(rst)
	if n := f.server.counters.ResetReasonsIn; n != [7]int64{1} || f.s.Subflows() != 0 {
		t.Errorf("%v, %d subflows", n, f.s.Subflows())
	}
}

// RFC 8684, Section 3.7 (FB-02, FB-03): the first data that comes without a mapping makes its receiver fall back at once, the first
// acknowledgment of data that comes without a DATA_ACK its sender.
func TestFirstSegmentsWithoutOptions(t *testing.T) {
	for _, tc := range []struct {
		name           string
		strip          func(f *flight, seg *wire.Segment) bool
		client, server FallbackReason
	}{
		{"data", func(_ *flight, seg *wire.Segment) bool { return len(seg.Payload) > 0 }, NoFallback, FallbackNoMapping},
		{"acknowledgments", func(f *flight, seg *wire.Segment) bool { return !f.toServer && seg.Flags&wire.SYN == 0 }, FallbackNoDataAck, NoFallback},
	} {
		w := newWorld(t, Config{}, Config{})
		w.link(10 * time.Millisecond)
		w.tap = func(f *flight) bool {
			if seg := f.segment(t); tc.strip(f, &seg) {
				strip(t, f)
			}
			return true
		}
		c, s := w.connect(w.listen())
		c.Write(w.now, []byte("x"))
		w.run(11 * time.Millisecond)
		if got := s.Info(w.now).Fallback; got != tc.server {
			t.Errorf("%s: server %v", tc.name, got)
		}
		var b [10]byte
		if n, _ := s.Read(w.now, b[:]); string(b[:n]) != "x" {
			t.Errorf("%s: read %q", tc.name, b[:n])
		}
		w.run(15 * time.Millisecond)
		if got := c.Info(w.now).Fallback; tc.client != NoFallback && got != tc.client {
			t.Errorf("%s: client %v", tc.name, got)
		}
	}
}

// RFC 8684, Section 3.7 (FB-05): a subflow other than the first never falls back; it is reset, and the connection stays MPTCP.
func TestSecondSubflowNeverFallsBack(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	for range 2 {
		w.link(10 * time.Millisecond).rate = 1e6
	}
	w.tap = func(f *flight) bool {
		if seg := f.segment(t); f.link == w.links[1] && !seg.Has(wire.OptMPJoin) && seg.Flags&wire.RST == 0 {
			strip(t, f)
		}
		return true
	}
	c, s := w.connect(w.listen())
	st := w.stream(c, s, 3_000_000)
	if !w.until(time.Minute, func() bool { return st.eof }) {
		t.Fatalf("%d bytes read\n%s%s", st.read, dump(w, c), dump(w, s))
	}
	n, m := &w.client.counters, &w.server.counters
	if c.fb.any() || s.fb.any() || n.StrippedResets+n.UnmappedResets+m.StrippedResets+m.UnmappedResets == 0 {
		t.Errorf("fallback %v and %v, counters %+v", c.fb.any(), s.fb.any(), m.DataCounters)
	}
}

// RFC 8684, Section 5 (SEC-05): a segment with numbers that are not acceptable has no effect at data level.
func TestUnacceptableSegmentsAreNotBelieved(t *testing.T) {
	for name, spoil := range map[string]func(*wire.Segment){
		"sequence number beyond the window": func(seg *wire.Segment) { seg.Seq += 1 << 28 },
		"ACK of what was never sent":        func(seg *wire.Segment) { seg.Ack += 1 << 28 },
		"old timestamp":                     func(seg *wire.Segment) { seg.TSVal -= 1 << 30 },
	} {
		f := newForger(t, Config{}, Config{})
		f.s.Write(f.now, []byte("more"))
		f.collect(false)
		seg := f.mapped(f.segment(6, "abc"), 6, 6, 3)
		seg.DSS.DataAck = f.c.hs.peerIDSN.At(10)
		seg.Options &^= wire.OptTimestamps // room
		if name == "old timestamp" {
			seg.Options = seg.Options&^wire.OptDSS | wire.OptTimestamps
		}
		seg.Options |= wire.OptMPPrio
		seg.Prio.Backup = true
		fail := seg
		fail.Options = fail.Options&^wire.OptMPPrio&^wire.OptDSS | wire.OptMPFail
		for _, seg := range []wire.Segment{seg, fail} {
			spoil(&seg)
			if got := f.give(seg); got != "" {
				t.Errorf("%s: read %q", name, got)
			}
		}
		n := &f.server.counters
		if f.s.snd.acked() != 6 || f.s.subflows[0].backupPeer || f.s.subflows[0].data.maps.len() != 0 || n.PriosReceived+n.FailsReceived != 0 {
			t.Errorf("%s: acked %d, counters %+v", name, f.s.snd.acked(), n.DataCounters)
		}
	}
}

// RFC 5961, Section 4.2 (BLD-05): a challenge ACK on a subflow carries a DATA_ACK like every other ACK.
func TestChallengeCarriesADataAck(t *testing.T) {
	f := newForger(t, Config{}, Config{})
	seg := f.segment(6, "")
	seg.Flags = wire.SYN
	f.give(seg)
	list := f.collect(false)
	if len(list) != 1 || list[0].Flags != wire.ACK || !list[0].Has(wire.OptDSS) || f.c.hs.localIDSN.Offset(list[0].DSS.DataAck) != 6 {
		t.Errorf("answer %v", list)
	}
}

// RFC 7323, Section 7.1, RFC 6528 and RFC 8684, Section 5 (TS-07, KEY-01, SEC-01): each attempt has its own key, initial sequence number, port
// and start of the timestamp clock.
func TestEachAttemptHasItsOwnNumbers(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(10 * time.Millisecond)
	w.listen()
	stamps, numbers, keys := map[uint32]bool{}, map[seq.Number]bool{}, map[wire.Key]bool{}
	w.tap = func(f *flight) bool {
		if seg := f.segment(t); seg.Flags&wire.SYN != 0 {
			stamps[seg.TSVal], numbers[seg.Seq] = true, true
			if seg.Capable.Keys == 1 {
				keys[seg.Capable.Sender] = true
			}
		}
		return true
	}
	for range 20 {
		w.dial()
	}
	w.run(15 * time.Millisecond)
	if len(stamps) != 40 || len(numbers) != 40 || len(keys) != 20 {
		t.Errorf("%d timestamps, %d sequence numbers, %d keys", len(stamps), len(numbers), len(keys))
	}
}

// RFC 8684, Section 3.1 (CAP-25): an MP_CAPABLE without data on an established connection changes nothing.
func TestLateCapable(t *testing.T) {
	f := newForger(t, Config{}, Config{})
	for _, keys := range []wire.Key{f.c.hs.peerKey, {9}} {
		seg := f.segment(6, "")
		seg.Options |= wire.OptMPCapable
		seg.Capable = wire.MPCapable{Version: 1, HMACSHA256: true, Checksums: true, NoJoin: true, Keys: 2, Sender: wire.Key{8}, Receiver: keys}
		f.give(seg)
	}
	if f.s.hs.peerKey != f.c.hs.localKey || f.s.hs.checksums || f.s.hs.peerNoJoin || f.s.fb.any() {
		t.Errorf("%+v", f.s.hs)
	}
	if got := f.give(f.mapped(f.segment(6, "abc"), 6, 6, 3)); got != "abc" {
		t.Errorf("read %q", got)
	}
}

// RFC 8684, Section 3.3.6 (REL-03): the data-level timer doubles, and its bound is a minute.
func TestDataTimerBacksOff(t *testing.T) {
	f := newForger(t, Config{}, Config{})
	rto := f.s.dataRTO()
	for n, want := range []time.Duration{rto, 2 * rto, 4 * rto, 8 * rto} {
		if f.s.snd.backoff = n; f.s.dataRTO() != want {
			t.Errorf("after %d timeouts %v, want %v", n, f.s.dataRTO(), want)
		}
	}
	if f.s.snd.backoff = 40; f.s.dataRTO() != maxDataRTO {
		t.Errorf("%v", f.s.dataRTO())
	}
}

// SEC-07: single bytes with gaps between them at data level cannot make the host hold more memory than a bound; what is next in order is always
// taken.
func TestTinySegmentsWithGaps(t *testing.T) {
	f := newForger(t, Config{}, Config{ReceiveBuffer: 64 << 10, InitialReceive: 64 << 10, FixedReceiveWindow: true})
	most := int64(0)
	for i := int64(0); i < 30_000; i++ {
		f.give(f.mapped(f.segment(6+i, "x"), 6+i, 8+2*i, 1))
		f.collect(false)
		most = max(most, f.server.Memory())
	}
	if bound := int64(oooCostFactor*64<<10 + oooCostFloor + 64<<10); most > bound || f.s.stats.droppedMemory == 0 {
		t.Errorf("%d bytes of memory, bound %d, %d dropped", most, bound, f.s.stats.droppedMemory)
	}
	if got := f.give(f.mapped(f.segment(30_006, "ab"), 30_006, 6, 2)); got[:3] != "abx" {
		t.Errorf("read %q", got)
	}
}
