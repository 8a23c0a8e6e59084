package mptcp

import (
	"errors"
	"testing"
	"time"

	"braid/tcp"
	"braid/trace"
	"braid/wire"
)

// The transition table: what it does not know panics, naming both states.
func TestSubflowTransitions(t *testing.T) {
	for from := synSent; from <= gone; from++ {
		for to := synSent; to <= gone; to++ {
			known := subflowTransitions[from]&(1<<to) != 0
			func() {
				defer func() {
					if r := recover(); (r == nil) != known {
						t.Errorf("%v to %v: %v", from, to, r)
					}
				}()
				sf := &Subflow{state: from}
				sf.setState(to)
			}()
		}
	}
}

// Why a subflow ended is said in words and by errors.Is.
func TestSubflowErrors(t *testing.T) {
	e := &SubflowError{Reason: wire.ResetMiddlebox, Peer: true, Err: ErrReset}
	if e.Error() != "mptcp: subflow reset by the peer: middlebox interference" || !errors.Is(e, ErrReset) {
		t.Error(e)
	}
	for _, tc := range []struct{ in, want error }{
		{tcp.ErrRefused, ErrRefused}, {tcp.ErrUnreachable, ErrRefused}, {tcp.ErrReset, ErrReset}, {tcp.ErrTimeout, ErrTimeout}, {nil, nil},
	} {
		if got := closeError(tc.in); !errors.Is(got, tc.want) {
			t.Errorf("%v: %v", tc.in, got)
		}
	}
}

// recorder keeps trace events.
type recorder []trace.Event

func (r *recorder) Trace(e *trace.Event) { *r = append(*r, *e) }

// RFC 8684, Section 3.6: the reason of a reset crosses the wire, is counted, traced and told.
func TestResetReason(t *testing.T) {
	var rec recorder
	w := newWorld(t, Config{Trace: &rec}, Config{})
	w.link(10 * time.Millisecond).rate = 2e5
	w.link(10 * time.Millisecond).rate = 2e5
	c, s := w.connect(w.listen())
	st := w.stream(c, s, 1<<40)
	w.run(500 * time.Millisecond)
	var lost wire.Segment
	w.tap = func(f *flight) bool {
		if seg := f.segment(t); seg.Flags&wire.RST != 0 && lost.Flags == 0 {
			lost = seg
		}
		return true
	}
	w.server.drop(w.now, s.subflows[1], wire.ResetTooMuchData, true)
	w.run(500 * time.Millisecond)
	if !lost.Has(wire.OptMPTCPReset) || lost.Reset.Reason != wire.ResetTooMuchData || !lost.Reset.Transient {
		t.Errorf("RST %+v", lost.Reset)
	}
	if w.client.counters.ResetReasonsIn[wire.ResetTooMuchData] != 1 || w.server.counters.ResetReasonsOut[wire.ResetTooMuchData] != 1 {
		t.Error("not counted")
	}
	var told, traced bool
	for _, e := range w.events[c] {
		var se *SubflowError
		told = told || e.Kind == EventSubflowDown && errors.As(e.Err, &se) && se.Reason == wire.ResetTooMuchData && se.Peer
	}
	for _, e := range rec {
		traced = traced || e.Kind == trace.SubflowState && e.V[1] == int64(tcp.Closed) && e.V[2] == int64(wire.ResetTooMuchData)
	}
	if !told || !traced {
		t.Errorf("told %t, traced %t", told, traced)
	}
	before := st.read
	w.run(time.Second)
	if st.read == before || len(c.subflows) != 2 {
		t.Errorf("the transfer stands, %d subflows", len(c.subflows))
	}
}

// MB-10: a RST with a wrong number does not harm a subflow, one with the right number only that one.
func TestResetHarmsOneSubflow(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	l := w.link(10 * time.Millisecond)
	w.link(10 * time.Millisecond)
	c, s := w.connect(w.listen())
	st := w.stream(c, s, 100000)
	st.noClose = true
	w.run(time.Second)
	sf := s.subflows[0]
	rst := wire.Segment{SrcPort: sf.dstPort, DstPort: sf.srcPort, Seq: sf.irs.At(sf.tcp.ReceivedOffset()) + 7, Flags: wire.RST}
	w.inject(l, true, rst)
	if len(s.subflows) != 2 {
		t.Fatal("a blind RST worked")
	}
	rst.Seq -= 7
	w.inject(l, true, rst)
	if len(s.subflows) != 1 || s.Err() != nil {
		t.Errorf("%d subflows, %v", len(s.subflows), s.Err())
	}
	st.total, st.noClose = 200000, false
	if !w.until(5*time.Second, func() bool { return st.eof }) {
		t.Errorf("read %d", st.read)
	}
	_ = c
}
