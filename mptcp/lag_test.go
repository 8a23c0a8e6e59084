package mptcp

import (
	"testing"
	"time"

	"braid/clock"
	"braid/seq"
	"braid/wire"
)

// lagDataAcks makes the server's DATA_ACKs on bare ACKs those of three milliseconds before, as Linux's are when a segment arrives while its connection is
// locked: it acknowledges on the subflow, takes the data a little later, and says nothing about it, nor of the window that this opens.
func lagDataAcks(w *world) {
	type state struct {
		at  clock.Time
		ack seq.Data
	}
	var past []state
	var acked seq.Number
	w.tap = func(p *flight) bool {
		var ip wire.IP
		var seg wire.Segment
		if p.toServer || wire.ParseIP(p.b, &ip) != nil || wire.ParseTCP(ip.Payload, &seg) != nil {
			return true
		}
		if seg.Options&wire.OptDSS == 0 || !seg.DSS.HasAck || !seg.DSS.Ack64 || len(seg.Payload) > 0 {
			return true
		}
		if n := len(past); n > 0 && seg.Ack == acked && w.now.Sub(past[n-1].at) < 10*time.Millisecond {
			return false
		}
		acked = seg.Ack
		past = append(past, state{w.now, seg.DSS.DataAck})
		for len(past) > 1 && past[1].at <= w.now.Add(-3*time.Millisecond) {
			past = past[1:]
		}
		seg.DSS.DataAck = past[0].ack
		b := wire.AppendIPHeader(nil, &ip, wire.TCPHeaderLen+seg.OptionsLen())
		head := len(b)
		b = wire.AppendTCPHeader(b, &seg)
		wire.SetTCPChecksum(b[head:], 0, wire.PseudoSum(ip.Src, ip.Dst, wire.ProtoTCP), 0)
		p.b = b
		return true
	}
}

// TestLaggingDataAck: neither a full window nor Nagle waits for a DATA_ACK that nothing on its way will bring.
func TestLaggingDataAck(t *testing.T) {
	for _, burst := range []int{0, 16} {
		w := newWorld(t, Config{}, Config{FixedReceiveWindow: true, ReceiveBuffer: 60000})
		w.link(time.Millisecond)
		w.client.paths[0].Burst = burst
		c, s := w.connect(w.listen())
		lagDataAcks(w)
		const n = 300 << 10
		up := w.stream(c, s, n)
		began := w.now
		if !w.until(20*time.Second, func() bool { return up.eof }) {
			t.Fatalf("burst %d: %+v", burst, up)
		}
		if took := w.now.Sub(began); took > 3*time.Second {
			t.Errorf("burst %d: %v for %d bytes, a window every 200 ms at worst", burst, took, n)
		}
	}
}

// TestLaggingDataAckSmall: small writes, one after the other has been acknowledged below.
func TestLaggingDataAckSmall(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(time.Millisecond)
	c, s := w.connect(w.listen())
	lagDataAcks(w)
	began := w.now
	for i := range 50 {
		if _, err := c.Write(w.now, make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		w.drain()
		read := 0
		if !w.until(5*time.Second, func() bool {
			n, _ := s.Read(w.now, w.read[:])
			read += n
			return read == 100
		}) {
			t.Fatalf("write %d: %d bytes arrived", i, read)
		}
	}
	if took := w.now.Sub(began); took > 50*60*time.Millisecond { // the peer may delay its ACKs
		t.Errorf("50 small writes took %v", took)
	}
}
