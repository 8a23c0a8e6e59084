package mptcp

import (
	"testing"
	"time"

	"braid/seq"
	"braid/wire"
)

// SEC-02, SEC-03: floods of joins with unknown tokens, with the right token and nothing behind, and with the right token and wrong HMACs cost no more
// than the backlog, leave nothing once they are over, and do not keep the peer's own joins out.
func TestJoinFloods(t *testing.T) {
	for _, tc := range []struct {
		name        string
		known, acks bool
	}{{"unknown tokens", false, false}, {"known token", true, false}, {"wrong HMACs", true, true}} {
		t.Run(tc.name, func(t *testing.T) {
			server := Config{Backlog: 16}
			w := newWorld(t, Config{}, server)
			l := w.link(10 * time.Millisecond)
			c, s := w.connect(w.listen())
			c.Write(w.now, []byte("hello"))
			w.run(time.Second)
			if n, _ := s.Read(w.now, make([]byte, 10)); n != 5 {
				t.Fatalf("read %d bytes", n)
			}
			before := w.server.Tables()
			var late *testLink
			most := 0
			for i := range 20_000 {
				if i == 10_000 {
					late = w.link(10 * time.Millisecond) // the client joins over it
				}
				seg := floodJoin(i, s, tc.known)
				w.inject(l, true, seg)
				if tc.acks {
					if h := w.server.halves[tupleOf(l.clientAddr.Addr(), l.serverAddr.Addr(), seg.SrcPort, seg.DstPort)]; h != nil {
						w.inject(l, true, floodACK(h, &seg))
					}
				}
				most = max(most, len(w.server.halves))
				if i%20 == 0 {
					w.run(time.Millisecond)
				}
			}
			if most > server.Backlog {
				t.Errorf("%d half-open joins, limit %d", most, server.Backlog)
			}
			if !w.until(10*time.Second, func() bool { return len(s.subflows) == 2 && s.subflows[1].state == active }) {
				t.Errorf("the client did not get its own join over %v through", late.clientAddr)
			}
			w.run(2 * time.Minute)
			after := w.server.Tables()
			before.Subflows, before.Tasks, after.Tasks = 2, 0, 0
			if after != before {
				t.Errorf("left behind: %+v, before %+v", after, before)
			}
			if n := w.server.counters.JoinsReceivedUp; n != 1 {
				t.Errorf("%d joins were let in", n)
			}
			if n := w.server.counters.JoinBadMAC; tc.acks && n < 10_000 {
				t.Errorf("%d wrong HMACs counted", n)
			}
			w.transfer(c, s, 100_000, 10*time.Second)
		})
	}
}

// floodJoin is the ith SYN of a flood.
func floodJoin(i int, s *Conn, known bool) wire.Segment {
	seg := syn(uint16(20_000+i%40_000), seq.Number(i*7919))
	seg.Options = wire.OptMSS | wire.OptMPJoin
	seg.Join = wire.MPJoin{Form: wire.JoinSYN, AddressID: uint8(i), Token: uint32(i) * 2654435761, Nonce: uint32(i)}
	if known {
		seg.Join.Token = s.hs.localToken
	}
	return seg
}

// floodACK is the third packet of a join with a wrong HMAC, of somebody who sees the SYN/ACK.
func floodACK(h *halfOpen, syn *wire.Segment) wire.Segment {
	return wire.Segment{
		SrcPort: syn.SrcPort, DstPort: syn.DstPort, Seq: syn.Seq + 1, Ack: h.iss + 1, Flags: wire.ACK, Window: 60000,
		Options: wire.OptMPJoin, Join: wire.MPJoin{Form: wire.JoinACK, MAC: [20]byte{1, 2, 3}},
	}
}
