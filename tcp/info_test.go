package tcp

import (
	"testing"
	"time"

	"braid/seq"
)

func TestInfo(t *testing.T) {
	s := establishedScript(t, nil)
	s.c.SetMore(true)
	s.c.Push(1, 1460)
	s.poll()
	s.now = s.now.Add(10 * time.Millisecond)
	s.send(". 1:101 ack 1001 win 5000")
	s.send(". 201:301 ack 1001 win 5000")
	i := s.c.Info(s.now)
	if i.State != Established || i.MSS != 1460 || i.MTU != 1500 || i.PeerWindow != 5000 || i.InFlight != 460 ||
		i.ReceivedBytes != 200 || i.SentBytes != 1460 || i.SRTT != s.c.SRTT() {
		t.Errorf("%+v", i)
	}
	if !s.c.Established() || s.c.ReceivedOffset() != 101 || s.c.SentOffset() != 1461 || s.c.AckedOffset() != 1001 ||
		s.c.Outstanding() != (seq.Range{Start: 1001, End: 1461}) || s.c.PeerWindow() != 5000 || s.c.AdvertisedWindow() != 9900 || s.c.QueuedBytes() != 100 {
		t.Errorf("established %v received %d sent %d acked %d outstanding %v window %d advertised %d queued %d", s.c.Established(), s.c.ReceivedOffset(),
			s.c.SentOffset(), s.c.AckedOffset(), s.c.Outstanding(), s.c.PeerWindow(), s.c.AdvertisedWindow(), s.c.QueuedBytes())
	}
	if s.c.Number(1) != scriptISS+1 || s.c.PeerNumber(5) != scriptIRS+5 {
		t.Errorf("numbers %d and %d", s.c.Number(1), s.c.PeerNumber(5))
	}
	var chunks []Chunk
	s.c.EachOutstanding(func(c Chunk, sacked, lost bool) bool { chunks = append(chunks, c); return true })
	if len(chunks) != 1 || chunks[0] != (Chunk{1001, 1001, 460}) {
		t.Errorf("outstanding %v", chunks)
	}
}

// RFC 5927, Section 4.1: an ICMP message is believed if it quotes a sequence number in flight.
func TestInFlight(t *testing.T) {
	s := dialScript(t, nil)
	s.poll()
	if !s.c.InFlight(scriptISS) || s.c.InFlight(scriptISS+1) {
		t.Error("only the SYN is in flight")
	}
	s = establishedScript(t, nil)
	s.c.Push(1, 100)
	s.poll()
	s.send(". 1 ack 51 win 10000")
	for offset, want := range map[int64]bool{50: false, 51: true, 100: true, 101: false, -1 << 31: false} {
		if got := s.c.InFlight(scriptISS.At(offset)); got != want {
			t.Errorf("offset %d: %v", offset, got)
		}
	}
}

// RFC 9293, Section 3.9.2.2: hard errors end an attempt to connect only; soft errors nothing.
func TestUnreachable(t *testing.T) {
	s := dialScript(t, nil)
	s.poll()
	s.c.HandleUnreachable(s.now, false)
	s.state(SynSent)
	s.c.HandleUnreachable(s.now, true)
	s.state(Closed)
	if s.c.Err() != ErrUnreachable {
		t.Error(s.c.Err())
	}
	s = establishedScript(t, nil)
	s.c.HandleUnreachable(s.now, true)
	s.state(Established)
}
