package tcp

import (
	"testing"

	"braid/wire"
)

// What PollSegment says about the payload: which bytes of which chunk, and that a segment never crosses the end of one.
func TestSegmentsKeepToChunks(t *testing.T) {
	s := establishedScript(t, nil)
	s.c.SetMore(true)
	s.c.Push(1000, 2000)
	s.c.Push(7000, 100)
	for _, tc := range []struct {
		out Out
	}{
		{Out{Chunk: Chunk{1000, 1, 2000}, Start: 1, Len: 1460, OptionRoom: 0}},
		{Out{Chunk: Chunk{1000, 1, 2000}, Start: 1461, Len: 540, OptionRoom: 40}},
		{Out{Chunk: Chunk{7000, 2001, 100}, Start: 2001, Len: 100, OptionRoom: 40}},
	} {
		if s.poll() == "" || s.out != tc.out {
			t.Errorf("got %+v, want %+v", s.out, tc.out)
		}
	}
	s.quiet()
}

// The owner's reserve is kept on payload segments, whatever SACK would like to say; an ACK alone then says it.
func TestReserve(t *testing.T) {
	s := timestamped(t, nil)
	s.send(". 101:201 ack 1 win 10000 ts 100/3600000")
	s.c.SetMore(true)
	room := s.c.PayloadRoom(28)
	if room != 1420 {
		t.Fatalf("room %d", room)
	}
	s.c.Push(1, room)
	s.c.PollSegment(s.now, &s.seg, &s.out, 28, 12)
	if s.out.Len != room || s.out.OptionRoom != 28 || s.seg.Has(wire.OptSACK) {
		t.Errorf("%+v, options %x", s.out, s.seg.Options)
	}
	// The duplicate ACK was not said yet.
	s.c.PollSegment(s.now, &s.seg, &s.out, 28, 12)
	if s.out.Len != 0 || !s.seg.Has(wire.OptSACK) || s.seg.SACKBlocks != 1 || s.out.OptionRoom != 16 {
		t.Errorf("%+v, options %x", s.out, s.seg.Options)
	}
	s.quiet()
	// A short segment has room for it.
	s.send(". 201:301 ack 1 win 10000 ts 100/3600000")
	s.c.SetMore(false)
	s.c.Push(1, 100)
	s.c.PollSegment(s.now, &s.seg, &s.out, 16, 12)
	if s.out.Len != 100 || !s.seg.Has(wire.OptSACK) || s.out.OptionRoom != 16 {
		t.Errorf("%+v, options %x", s.out, s.seg.Options)
	}
	s.quiet()
}

// RFC 9293, Section 3.9.1.2: PSH on the last segment of what there is.
func TestPush(t *testing.T) {
	s := establishedScript(t, func(c *Config) { c.NoDelay = true })
	s.c.SetMore(true)
	s.c.Push(1, 100)
	s.want(". 1:101 ack 1 win 10000")
	s.c.SetMore(false)
	s.c.Push(1, 1500)
	s.want(". 101:1561 ack 1 win 10000", "P. 1561:1601 ack 1 win 10000")
	s.c.Push(1, 10)
	s.c.CloseWrite(s.now)
	s.want("FP. 1601:1611 ack 1 win 10000")
}

// RFC 9293, Section 3.7.4: a small segment waits while another is unacknowledged, unless the user says otherwise.
func TestNagle(t *testing.T) {
	for _, noDelay := range []bool{false, true} {
		s := establishedScript(t, func(c *Config) { c.NoDelay = noDelay })
		s.c.Push(1, 10)
		s.want("P. 1:11 ack 1 win 10000")
		s.c.Push(11, 10)
		if noDelay {
			s.want("P. 11:21 ack 1 win 10000")
			continue
		}
		s.quiet()
		s.send(". 1 ack 11 win 10000")
		s.want("P. 11:21 ack 1 win 10000")
	}
}

// RequestAck asks for a segment without payload, also beside payload.
func TestRequestAck(t *testing.T) {
	s := establishedScript(t, nil)
	s.c.RequestAck(s.now)
	s.want(". 1 ack 1 win 10000", "")
	s.c.Push(1, 10)
	s.c.RequestAck(s.now)
	s.want("P. 1:11 ack 1 win 10000", ". 11 ack 1 win 10000", "")
	s = dialScript(t, nil)
	s.poll()
	s.c.RequestAck(s.now) // nothing to acknowledge yet
	s.quiet()
}

func TestPushPanicsBehindFIN(t *testing.T) {
	s := establishedScript(t, nil)
	s.c.CloseWrite(s.now)
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	s.c.Push(1, 1)
}
