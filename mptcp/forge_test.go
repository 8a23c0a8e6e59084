package mptcp

import (
	"errors"
	"io"
	"testing"
	"time"

	"braid/wire"
)

// forger takes the place of the client of an established connection and sends what segments it likes to the server. Offsets are
// those of the subflow and of the data; the next byte of both is at.
type forger struct {
	*world
	c, s *Conn
	link *testLink
	last wire.Segment // the client's last segment: a template
	at   int64
}

// newForger connects, transfers a few bytes each way so that MPTCP is confirmed, and cuts the client off.
func newForger(t *testing.T, client, server Config) *forger {
	f := &forger{world: newWorld(t, client, server)}
	f.link = f.world.link(5 * time.Millisecond)
	f.tap = func(p *flight) bool {
		if p.toServer {
			f.last = p.segment(t)
			f.last.Payload = nil
		}
		return true
	}
	f.c, f.s = f.connect(f.listen())
	f.c.Write(f.now, []byte("hello"))
	f.s.Write(f.now, []byte("world"))
	f.run(time.Second)
	if got := f.read(); got != "hello" || !f.s.hs.confirmed || !f.c.hs.confirmed {
		t.Fatalf("server read %q", got)
	}
	f.tap = func(p *flight) bool { return !p.toServer }
	f.link.down = true
	f.at = 6
	f.collect(false)
	return f
}

// read returns what the server's application can read.
func (f *forger) read() string {
	var b [4096]byte
	n, _ := f.s.Read(f.now, b[:])
	return string(b[:n])
}

// segment returns an ACK of the client's with payload at subflow offset start and without MPTCP options.
func (f *forger) segment(start int64, payload string) wire.Segment {
	seg := f.last
	sf := f.c.subflows[0]
	seg.Seq, seg.Ack = sf.tcp.Number(start), sf.tcp.PeerNumber(sf.tcp.ReceivedOffset())
	seg.Flags = wire.ACK
	seg.Options = wire.OptTimestamps
	seg.Payload = []byte(payload)
	return seg
}

// mapped adds a mapping of n bytes from subflow offset start to data offset data.
func (f *forger) mapped(seg wire.Segment, start, data int64, n int) wire.Segment {
	seg.Options |= wire.OptDSS
	seg.DSS = wire.DSS{
		HasAck: true, Ack64: true, DataAck: f.c.hs.peerIDSN.At(6), HasMap: true, Map64: true,
		DataSeq: f.c.hs.localIDSN.At(data), Subflow: uint32(start), Length: uint16(n),
	}
	return seg
}

// give sends a segment to the server and returns what the server's application can read then.
func (f *forger) give(seg wire.Segment) string {
	f.now++
	f.inject(f.link, true, seg)
	return f.read()
}

// answers returns the server's segments until nothing more comes for a while.
func (f *forger) answers() []wire.Segment {
	list := f.collect(false)
	for range 10 {
		f.now = f.now.Add(20 * time.Millisecond)
		f.server.HandleTimeout(f.now)
		list = append(list, f.collect(false)...)
	}
	return list
}

// wantReset checks that the server reset its only subflow for the given reason.
func (f *forger) wantReset(reason wire.ResetReason) {
	f.t.Helper()
	for _, seg := range f.answers() {
		if seg.Flags&wire.RST != 0 {
			if !seg.Has(wire.OptMPTCPReset) || seg.Reset.Reason != reason {
				f.t.Errorf("reset with %+v, want reason %d", seg.Reset, reason)
			}
			if f.s.Subflows() != 0 {
				f.t.Error("the subflow is still there")
			}
			return
		}
	}
	f.t.Error("no reset")
}

// dataAck returns the offset that the server's last segment DATA_ACKs.
func (f *forger) dataAck() int64 {
	f.t.Helper()
	list := f.answers()
	if len(list) == 0 {
		f.t.Fatal("the server sends nothing")
	}
	seg := list[len(list)-1]
	if !seg.Has(wire.OptDSS) || !seg.DSS.HasAck {
		f.t.Fatalf("the server's segment has no DATA_ACK") // ACK-04, LNX-03
	}
	if !seg.DSS.Ack64 {
		f.t.Error("a 32-bit DATA_ACK to a peer that maps with 64 bits") // DSS-08
	}
	return f.c.hs.localIDSN.Offset(seg.DSS.DataAck)
}

// RFC 8684, Section 3.3.1: a mapping covers its bytes wherever segments begin and end, and may be repeated on each (MAP-03,
// MB-04, LNX-28).
func TestOneMappingForManySegments(t *testing.T) {
	for _, repeat := range []bool{false, true} {
		f := newForger(t, Config{}, Config{})
		got := f.give(f.mapped(f.segment(6, "abc"), 6, 6, 9))
		for i, part := range []string{"def", "ghi"} {
			seg := f.segment(9+3*int64(i), part)
			if repeat {
				seg = f.mapped(seg, 6, 6, 9)
			}
			got += f.give(seg)
		}
		if got != "abcdefghi" || f.dataAck() != 15 {
			t.Errorf("read %q", got)
		}
	}
}

// A segment that a middlebox merged from two, keeping both mappings' bytes and one of the options (MB-05): what is mapped is
// taken, the rest waits, and its mapping may still come.
func TestMergedSegmentsLoseAMapping(t *testing.T) {
	f := newForger(t, Config{}, Config{})
	if got := f.give(f.mapped(f.segment(6, "abcdef"), 9, 9, 3)); got != "" {
		t.Errorf("read %q", got)
	}
	if a := f.dataAck(); a != 6 {
		t.Errorf("DATA_ACK %d", a)
	}
	// The sender repeats the missing data as new subflow bytes under its old numbers (MAP-08).
	if got := f.give(f.mapped(f.segment(12, "abc"), 12, 6, 3)); got != "abcdef" {
		t.Errorf("read %q", got)
	}
}

// MAP-06: data may come before its mapping; it is held and not DATA_ACKed until then.
func TestDataBeforeItsMapping(t *testing.T) {
	f := newForger(t, Config{}, Config{})
	f.give(f.segment(6, "abc"))
	if a := f.dataAck(); a != 6 {
		t.Errorf("DATA_ACK %d of data without mapping", a)
	}
	if got := f.give(f.mapped(f.segment(9, "def"), 6, 6, 6)); got != "abcdef" || f.dataAck() != 12 {
		t.Errorf("read %q", got)
	}
}

// MAP-07: too much data without a mapping, or waiting too long for one, resets the subflow.
func TestDataWithoutMappingResets(t *testing.T) {
	f := newForger(t, Config{}, Config{ReceiveBuffer: 64 << 10, InitialReceive: 64 << 10})
	chunk := string(make([]byte, 1000))
	for o := int64(0); o < 70 && f.s.Subflows() > 0; o++ {
		f.give(f.segment(6+1000*o, chunk))
		if len(f.server.control.packets) > f.server.control.head {
			break
		}
		f.collect(false)
	}
	f.wantReset(wire.ResetMiddlebox)

	f = newForger(t, Config{}, Config{})
	f.give(f.segment(6, "abc"))
	f.collect(false)
	f.now = f.now.Add(maxUnmappedWait)
	f.server.HandleTimeout(f.now)
	f.wantReset(wire.ResetMiddlebox)
}

// MAP-05: the same bytes mapped elsewhere are a protocol error: the first mapping stays, the subflow goes.
func TestConflictingMappingResets(t *testing.T) {
	f := newForger(t, Config{}, Config{})
	f.give(f.mapped(f.segment(6, "abc"), 6, 6, 9))
	if got := f.give(f.mapped(f.segment(9, "def"), 9, 30, 6)); got != "" {
		t.Errorf("read %q", got)
	}
	f.wantReset(wire.ResetMPTCP)
}

// MAP-08, MAP-12: data that was received before, wholly or in part, is dropped after it was acknowledged on the subflow.
func TestOldDataIsTrimmed(t *testing.T) {
	f := newForger(t, Config{}, Config{})
	got := f.give(f.mapped(f.segment(6, "abcdef"), 6, 6, 6))
	got += f.give(f.mapped(f.segment(12, "abcdef"), 12, 6, 6))
	got += f.give(f.mapped(f.segment(18, "defghi"), 18, 9, 6))
	if got != "abcdefghi" || f.s.stats.duplicateIn != 9 {
		t.Errorf("read %q, %d duplicate bytes", got, f.s.stats.duplicateIn)
	}
	if a := f.dataAck(); a != 15 {
		t.Errorf("DATA_ACK %d", a)
	}
}

// MAP-11, ACK-07: what lies beyond the connection's window is acknowledged on the subflow and not at data level.
func TestDataBeyondTheWindow(t *testing.T) {
	f := newForger(t, Config{}, Config{})
	edge := f.s.rcv.edge
	f.give(f.mapped(f.segment(6, "abcdef"), 6, edge-3, 6))
	f.give(f.mapped(f.segment(12, "abcdef"), 12, edge+100, 6))
	if f.s.rcv.ooo.Bytes() != 3 || f.s.stats.beyondWindow != 9 {
		t.Errorf("%d bytes taken, %d refused", f.s.rcv.ooo.Bytes(), f.s.stats.beyondWindow)
	}
	if list := f.answers(); list[len(list)-1].Ack != f.c.subflows[0].tcp.Number(18) {
		t.Error("not acknowledged on the subflow") // ACK-02
	}
}

// DSS-05, DSS-06: 32-bit data sequence numbers and DATA_ACKs are widened to what is expected.
func TestShortNumbersAreWidened(t *testing.T) {
	f := newForger(t, Config{}, Config{})
	f.s.Write(f.now, []byte("more"))
	f.collect(false)
	seg := f.mapped(f.segment(6, "abc"), 6, 6, 3)
	seg.DSS.Map64, seg.DSS.Ack64 = false, false
	seg.DSS.DataSeq &= 1<<32 - 1
	seg.DSS.DataAck = f.c.hs.peerIDSN.At(10) & (1<<32 - 1)
	if got := f.give(seg); got != "abc" || f.s.snd.acked() != 10 {
		t.Errorf("read %q, DATA_ACKed to %d", got, f.s.snd.acked())
	}
}

// ACK-05, ACK-06: a DATA_ACK never goes back, and one for data that was never sent is not believed, nor is the window beside it
// (WIN-03).
func TestImpossibleDataAcks(t *testing.T) {
	f := newForger(t, Config{}, Config{})
	f.s.Write(f.now, []byte("more"))
	f.collect(false)
	edge := f.s.snd.edge
	for _, ack := range []int64{11, 1 << 40, -1 << 40} {
		seg := f.mapped(f.segment(6, ""), 6, 6, 1)
		seg.DSS.HasMap = false
		seg.DSS.DataAck = f.c.hs.peerIDSN.At(ack)
		f.give(seg)
		if f.s.snd.acked() != 6 || f.s.snd.edge > edge+8 {
			t.Fatalf("DATA_ACK %d: acked %d, edge %d", ack, f.s.snd.acked(), f.s.snd.edge)
		}
	}
	if f.server.counters.DataAcksBeyond != 2 {
		t.Errorf("%d counted", f.server.counters.DataAcksBeyond)
	}
}

// DSS-04: a checksum that was not negotiated, or lacks though it was, closes the subflow.
func TestChecksumPresence(t *testing.T) {
	for _, negotiated := range []bool{false, true} {
		f := newForger(t, Config{Checksums: negotiated}, Config{})
		seg := f.mapped(f.segment(6, "abc"), 6, 6, 3)
		seg.DSS.HasCheck = !negotiated
		f.give(seg)
		f.wantReset(wire.ResetMPTCP)
	}
}

// CSUM-04: of a checksummed mapping nothing is delivered or DATA_ACKed before all of it was verified, though the subflow
// acknowledges it.
func TestChecksummedMappingIsHeldUntilWhole(t *testing.T) {
	f := newForger(t, Config{Checksums: true}, Config{})
	seal := func(seg wire.Segment) wire.Segment {
		seg.DSS.HasCheck = true
		seg.DSS.Checksum = wire.DSSChecksum(seg.DSS.DataSeq, seg.DSS.Subflow, seg.DSS.Length, wire.Sum(0).Add([]byte("abcdefghi")))
		return seg
	}
	if got := f.give(seal(f.mapped(f.segment(6, "abcde"), 6, 6, 9))); got != "" {
		t.Errorf("read %q of half a mapping", got)
	}
	if a := f.dataAck(); a != 6 {
		t.Errorf("DATA_ACK %d of half a mapping", a)
	}
	if got := f.give(seal(f.mapped(f.segment(11, "fghi"), 6, 6, 9))); got != "abcdefghi" || f.dataAck() != 15 {
		t.Errorf("read %q", got)
	}
}

// FIN-02, FIN-04, FIN-11, FIN-12: a DATA_FIN with data, before earlier data, alone, and again.
func TestPeersDataFIN(t *testing.T) {
	f := newForger(t, Config{}, Config{})
	seg := f.mapped(f.segment(9, "def"), 9, 9, 4)
	seg.DSS.DataFIN = true
	if got := f.give(seg); got != "" || f.s.fin.peerReached {
		t.Fatalf("read %q, end reached %v", got, f.s.fin.peerReached)
	}
	if a := f.dataAck(); a != 6 {
		t.Errorf("DATA_ACK %d: the DATA_FIN was acknowledged before the data", a)
	}
	if got := f.give(f.mapped(f.segment(6, "abc"), 6, 6, 3)); got != "abcdef" {
		t.Errorf("read %q", got)
	}
	if _, err := f.s.Read(f.now, make([]byte, 1)); err != io.EOF || f.dataAck() != 13 {
		t.Errorf("after the end: %v", err)
	}
	alone := f.mapped(f.segment(12, ""), 0, 12, 1)
	alone.DSS.DataFIN = true
	f.give(alone)
	if f.dataAck() != 13 {
		t.Error("the repeated DATA_FIN was not acknowledged again")
	}
	// Half close: writing goes on (FIN-08).
	if _, err := f.s.Write(f.now, []byte("still")); err != nil {
		t.Error(err)
	}
}

// LNX-29: the last mapping repeated with F and one more in length is no conflict but the DATA_FIN.
func TestMappingGrownByADataFIN(t *testing.T) {
	f := newForger(t, Config{}, Config{})
	got := f.give(f.mapped(f.segment(6, "abc"), 6, 6, 3))
	seg := f.mapped(f.segment(9, ""), 6, 6, 4)
	seg.DSS.DataFIN = true
	f.give(seg)
	if got != "abc" || !f.s.fin.peerReached || f.s.Subflows() != 1 {
		t.Errorf("read %q, end reached %v", got, f.s.fin.peerReached)
	}
}

// DATA_FINs that cannot be are refused: another place than the first one's, before received data.
func TestImpossibleDataFINs(t *testing.T) {
	f := newForger(t, Config{}, Config{})
	fin := func(data int64) wire.Segment {
		seg := f.mapped(f.segment(6, ""), 0, data, 1)
		seg.DSS.DataFIN = true
		return seg
	}
	f.give(f.mapped(f.segment(6, "xyz"), 6, 20, 3))
	f.give(fin(5))
	f.give(fin(21))
	f.give(fin(f.s.rcv.edge + 1))
	if f.s.fin.peer >= 0 {
		t.Errorf("the end was taken to be at %d", f.s.fin.peer)
	}
	f.give(fin(30))
	f.give(fin(31))
	if f.s.fin.peer != 30 || f.server.counters.DataFINsRefused != 4 {
		t.Errorf("end at %d, %d refused", f.s.fin.peer, f.server.counters.DataFINsRefused)
	}
}

// RFC 8684, Section 3.5 (FCL-04, FCL-05, FCL-07): both variants of MP_FASTCLOSE with our key end the connection, after what
// came in order was offered; with another key nothing happens on an ACK, and a RST ends its subflow only.
func TestFastClose(t *testing.T) {
	for _, tc := range []struct {
		name      string
		rst, ours bool
		over      bool
		subflows  int
	}{
		{"ACK", false, true, true, 0},
		{"ACK with a wrong key", false, false, false, 1},
		{"RST", true, true, true, 0},
		{"RST with a wrong key", true, false, false, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newForger(t, Config{}, Config{})
			f.inject(f.link, true, f.mapped(f.segment(6, "abc"), 6, 6, 3))
			seg := f.segment(9, "")
			if tc.rst {
				seg.Flags |= wire.RST
			}
			seg.Options |= wire.OptMPFastClose
			seg.FastClose.Receiver = f.c.hs.peerKey
			if !tc.ours {
				seg.FastClose.Receiver[0]++
			}
			got := f.give(seg)
			if got != "abc" {
				t.Errorf("read %q of what came before", got)
			}
			_, err := f.s.Read(f.now, make([]byte, 1))
			if tc.over != errors.Is(err, ErrReset) || !tc.over && !errors.Is(err, ErrWouldBlock) {
				t.Errorf("read: %v", err)
			}
			if f.s.Subflows() != tc.subflows {
				t.Errorf("%d subflows", f.s.Subflows())
			}
		})
	}
}

// FCL-06: outside the window an MP_FASTCLOSE has no effect.
func TestFastCloseOutsideTheWindow(t *testing.T) {
	f := newForger(t, Config{}, Config{})
	for _, rst := range []wire.Flags{0, wire.RST} {
		seg := f.segment(6, "")
		seg.Seq += 1 << 28
		seg.Flags |= rst
		seg.Options |= wire.OptMPFastClose
		seg.FastClose.Receiver = f.c.hs.peerKey
		f.give(seg)
	}
	if f.s.Subflows() != 1 || f.s.Err() != nil {
		t.Errorf("%d subflows, %v", f.s.Subflows(), f.s.Err())
	}
}

// PRI-01, PRI-02: MP_PRIO changes how we use the subflow that it comes on, and back.
func TestPeersPriority(t *testing.T) {
	f := newForger(t, Config{}, Config{})
	for _, backup := range []bool{true, false} {
		seg := f.segment(6, "")
		seg.Options |= wire.OptMPPrio
		seg.Prio.Backup = backup
		f.give(seg)
		if f.s.subflows[0].backupPeer != backup {
			t.Errorf("backup is %v", !backup)
		}
	}
}

// MB-08: options of the handshake that come back later change nothing.
func TestReflectedHandshakeOptions(t *testing.T) {
	f := newForger(t, Config{}, Config{})
	seg := f.mapped(f.segment(6, "abc"), 6, 6, 3)
	seg.Options = seg.Options&^wire.OptDSS | wire.OptMPCapable
	seg.Capable = wire.MPCapable{Version: 1, HMACSHA256: true, Keys: 2, Sender: f.c.hs.localKey, Receiver: f.c.hs.peerKey, HasData: true, DataLength: 5}
	f.give(seg)
	if got := f.give(f.mapped(f.segment(9, "def"), 6, 6, 6)); got != "abcdef" {
		t.Errorf("read %q", got)
	}
}
