package tcp

import (
	"testing"

	"braid/wire"
)

// RFC 9293, Section 3.10.7.1: the RST for a segment that belongs to no connection.
func TestMakeReset(t *testing.T) {
	for _, tc := range []struct {
		seg  wire.Segment
		want wire.Segment
		ok   bool
	}{
		{wire.Segment{Flags: wire.SYN, Seq: 100}, wire.Segment{Flags: wire.RST | wire.ACK, Ack: 101}, true},
		{wire.Segment{Flags: wire.SYN | wire.FIN, Seq: 100, Payload: []byte("abc")}, wire.Segment{Flags: wire.RST | wire.ACK, Ack: 105}, true},
		{wire.Segment{Seq: 0xffffffff, Payload: []byte("ab")}, wire.Segment{Flags: wire.RST | wire.ACK, Ack: 1}, true},
		{wire.Segment{Flags: wire.ACK, Seq: 100, Ack: 7}, wire.Segment{Flags: wire.RST, Seq: 7}, true},
		{wire.Segment{Flags: wire.SYN | wire.ACK, Seq: 100, Ack: 7}, wire.Segment{Flags: wire.RST, Seq: 7}, true},
		{wire.Segment{Flags: wire.RST, Seq: 100}, wire.Segment{}, false},
		{wire.Segment{Flags: wire.RST | wire.ACK, Seq: 100, Ack: 7}, wire.Segment{}, false},
	} {
		tc.seg.SrcPort, tc.seg.DstPort = 1, 2
		got := wire.Segment{Options: wire.OptMSS, Window: 9, Urgent: 9, Payload: []byte("x")} // left over from something else
		ok := MakeReset(&tc.seg, &got)
		if ok != tc.ok {
			t.Errorf("%v: made %v", &tc.seg, ok)
		}
		if !ok {
			continue
		}
		if got.SrcPort != 2 || got.DstPort != 1 || got.Flags != tc.want.Flags || got.Seq != tc.want.Seq || got.Ack != tc.want.Ack ||
			got.Window != 0 || got.Urgent != 0 || got.Options != 0 || got.Payload != nil {
			t.Errorf("%v: %v", &tc.seg, &got)
		}
	}
}
