package tcp

import (
	"testing"
	"time"

	"braid/clock"
	"braid/wire"
)

// FuzzConn gives a Conn segments that no sane peer sends, between calls of the owner's and timeouts. Nothing may panic, and what must
// hold of the numbers holds. Fields are drawn near the values that matter, since far ones are refused at the door.
func FuzzConn(f *testing.F) {
	f.Add([]byte{0})
	f.Add([]byte("\x01\x02\x10\x01\x01\x40\x00\x05\x00\x02\x10\x01\x01\x40\x00\x05\x08\x09\x0a"))
	f.Add([]byte{1, 6, 100, 6, 200, 0, 16, 1, 1, 255, 10, 3, 0, 16, 5, 2, 200, 2, 0, 17, 1, 9, 9, 9, 4, 5, 3, 3, 3})
	f.Fuzz(fuzzConn)
}

func fuzzConn(t *testing.T, data []byte) {
	next := func() int {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return int(b)
	}
	var s *script
	options := func(c *Config) {
		o := next()
		c.NoSACK, c.NoTimestamps, c.NoWindowScale, c.NoDelay = o&1 != 0, o&2 != 0, o&4 != 0, o&8 != 0
		c.WindowScale = uint8(o >> 4)
		if o&1 == 0 {
			c.KeepAlive = time.Minute
		}
	}
	if next()%2 == 0 {
		s = dialScript(t, options)
	} else {
		s = acceptScript(t, "S 0 win 2000 mss 500 ws 3 sackok ts 9/0", options)
	}
	for len(data) > 0 {
		fuzzStep(s, next)
		checkConn(t, s.c)
	}
}

// fuzzStep does one thing that the next bytes say.
func fuzzStep(s *script, next func() int) {
	c := s.c
	switch next() % 12 {
	case 0, 1, 2, 3:
		s.fuzzSegment(next)
	case 4:
		s.now = s.now.Add(time.Duration(next()) * 10 * time.Millisecond)
	case 5:
		if at := c.NextTimeout(); at != clock.Never {
			s.now = max(s.now, at)
			c.HandleTimeout(s.now)
		}
	case 6:
		if !c.end.finWanted && states(SynSent, SynReceived, Established, CloseWait).has(c.state) {
			c.Push(1, 1+next()*next())
		}
	case 7:
		c.SetMore(next()%2 == 0)
		c.SetBlocked(next()%2 == 0)
	case 8:
		c.SetWindow(int64(next() * next()))
		c.RequestAck(s.now)
	case 9:
		switch next() % 8 {
		case 0:
			c.CloseWrite(s.now)
		case 1:
			c.Close(s.now)
		case 2:
			c.Abort(s.now)
		case 3:
			c.Penalise(s.now)
		case 4:
			c.Probe(s.now)
		case 5:
			c.HandleMTU(s.now, next()*8)
		case 6:
			c.HandleUnreachable(s.now, next()%2 == 0)
		}
	default:
		reserve := next() % 41
		for range 20 {
			if !c.PollSegment(s.now, &s.seg, &s.out, reserve, reserve) {
				break
			}
		}
	}
	for b := c.NextReceived(); b != nil; b = c.NextReceived() {
		c.cfg.Pool.Release(b)
	}
	for _, ok := c.NextReleased(); ok; _, ok = c.NextReleased() {
	}
	c.CanSend(s.now)
	c.Info(s.now)
}

// fuzzSegment sends one segment of the peer's.
func (s *script) fuzzSegment(next func() int) {
	near := func(points ...int64) int64 { return points[next()%len(points)] + int64(int8(next())) }
	c := s.c
	seg := &wire.Segment{Flags: wire.Flags(next() & 0x3f), Window: uint16(next() * next())}
	if next()%4 > 0 {
		seg.Flags = seg.Flags&^(wire.SYN|wire.RST) | wire.ACK
	}
	seg.Seq = scriptIRS.At(near(c.rcv.nxt, c.rcv.nxt, c.rcv.edge, c.rcv.lastAck, 0, 1<<31))
	seg.Ack = scriptISS.At(near(c.snd.nxt(), c.snd.una(), 1, -20000, 1<<31))
	seg.Payload = make([]byte, next()*next()%3000)
	if c.ts.on || next()%2 == 0 {
		seg.Options |= wire.OptTimestamps
		seg.TSVal, seg.TSEcr = c.ts.recent+uint32(int8(next())), c.ts.value(s.now)-uint32(next())
	}
	if next()%3 == 0 {
		seg.Options |= wire.OptSACK
		for seg.SACKBlocks = 0; seg.SACKBlocks < next()%5; seg.SACKBlocks++ {
			start := near(c.snd.una(), c.snd.nxt(), (c.snd.una()+c.snd.nxt())/2)
			seg.SACK[seg.SACKBlocks] = wire.SACKBlock{Start: scriptISS.At(start), End: scriptISS.At(start + int64(next())*4)}
			if seg.SACKBlocks == 3 {
				seg.SACKBlocks++
				break
			}
		}
	}
	if seg.Flags.Has(wire.SYN) {
		seg.Options |= wire.OptMSS | wire.OptWindowScale | wire.OptSACKPermitted
		seg.MSS, seg.WindowScale = uint16(next()*8), uint8(next())
	}
	c.HandleSegment(s.now, seg)
}

// checkConn verifies what must hold at any time.
func checkConn(t *testing.T, c *Conn) {
	t.Helper()
	r := &c.rcv
	if r.lastAck > r.nxt || r.delivered > r.nxt || (r.fin != finUnknown && r.nxt > r.fin+1) || !r.queue.Empty() && r.queue.End() > max(r.edge, r.nxt) {
		t.Fatalf("receiver: nxt %d, last ACK %d, delivered %d, edge %d, fin %d, queue to %d", r.nxt, r.lastAck, r.delivered, r.edge, r.fin, r.queue.End())
	}
	if c.snd.una() > c.snd.nxt() || c.snd.nxt() > c.snd.pushed() {
		t.Fatalf("sender: una %d, nxt %d, pushed %d", c.snd.una(), c.snd.nxt(), c.snd.pushed())
	}
	if c.mtu.current < c.mtu.floor || c.mtu.current > c.mtu.top {
		t.Fatalf("MTU %d, floor %d, top %d", c.mtu.current, c.mtu.floor, c.mtu.top)
	}
	if c.state == Closed && c.NextTimeout() != clock.Never {
		t.Fatal("a timer runs in CLOSED")
	}
}
