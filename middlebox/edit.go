package middlebox

import (
	"math/rand/v2"

	"braid/clock"
	"braid/link"
	"braid/seq"
	"braid/wire"
)

// Where says in which kinds of segment a middlebox interferes.
type Where uint8

// The kinds of segment. Every segment is exactly one of them.
const (
	InSYN    Where = 1 << iota // SYN without ACK
	InSYNACK                   // SYN with ACK
	InAck                      // neither SYN nor payload
	InData                     // payload
	Anywhere = InSYN | InSYNACK | InAck | InData
)

// place says what kind of segment s is.
func place(s *wire.Segment) Where {
	switch {
	case s.Flags.Has(wire.SYN | wire.ACK):
		return InSYNACK
	case s.Flags.Has(wire.SYN):
		return InSYN
	case len(s.Payload) > 0:
		return InData
	}
	return InAck
}

// Verdict is what an Editor's function decides.
type Verdict uint8

// The verdicts.
const (
	Leave   Verdict = iota // the packet goes on as it came
	Edited                 // the segment was changed
	Discard                // the packet is dropped
)

// Editor is a Box that looks at TCP segments one by one and may change or drop them. Payload may be changed in place or replaced.
type Editor struct {
	Edit func(now clock.Time, dir Direction, ip *wire.IP, seg *wire.Segment) Verdict

	Edits    int64 // packets changed
	Discards int64 // packets dropped
	packet   tcpPacket
}

// Process applies Edit.
func (e *Editor) Process(now clock.Time, dir Direction, p *link.Packet, out Outlet) {
	if !e.packet.parse(p) {
		out.Pass(p)
		return
	}
	switch e.Edit(now, dir, &e.packet.ip, &e.packet.seg) {
	case Leave:
		out.Pass(p)
	case Edited:
		if !e.packet.fits() { // a sender packed the options more tightly than this package does
			out.Pass(p)
			return
		}
		e.Edits++
		q := out.New(p)
		e.packet.write(q)
		out.Drop(p)
		out.Pass(q)
	case Discard:
		e.Discards++
		out.Drop(p)
	}
}

// StripOptions returns a Box that removes options (wire.OptMPTCP: all of MPTCP's) from the given kinds of segment, after as many bytes of
// payload passed, counted over all flows. Sections 3.1, 3.2 and 3.7 of RFC 8684 say how hosts must live with it.
func StripOptions(options wire.Option, where Where, after int64) *Editor {
	passed := int64(0)
	return &Editor{Edit: func(_ clock.Time, _ Direction, _ *wire.IP, s *wire.Segment) Verdict {
		passed += int64(len(s.Payload))
		if passed < after || place(s)&where == 0 || s.Options&options == 0 {
			return Leave
		}
		s.Options &^= options
		return Edited
	}}
}

// DropOptions returns a Box that drops segments of the given kinds that carry any of the options: a firewall that does not know
// them.
func DropOptions(options wire.Option, where Where) *Editor {
	return &Editor{Edit: func(_ clock.Time, _ Direction, _ *wire.IP, s *wire.Segment) Verdict {
		if place(s)&where == 0 || s.Options&options == 0 {
			return Leave
		}
		return Discard
	}}
}

// MangleOptions returns a Box that changes the contents of MPTCP options in the given kinds of segment, after as many bytes of payload, in
// a share of the packets.
func MangleOptions(options wire.Option, where Where, after int64, share float64, r *rand.Rand) *Editor {
	passed := int64(0)
	return &Editor{Edit: func(_ clock.Time, _ Direction, _ *wire.IP, s *wire.Segment) Verdict {
		passed += int64(len(s.Payload))
		if passed < after || place(s)&where == 0 || s.Options&options == 0 || r.Float64() >= share {
			return Leave
		}
		mangle(s, s.Options&options, r)
		return Edited
	}}
}

// mangle changes one thing in each of the options.
func mangle(s *wire.Segment, o wire.Option, r *rand.Rand) {
	if o&wire.OptMPCapable != 0 {
		s.Capable.Sender[r.IntN(8)] ^= 1 << r.IntN(8)
	}
	if o&wire.OptMPJoin != 0 {
		s.Join.Token ^= 1 << r.IntN(32)
		s.Join.MAC[r.IntN(8)] ^= 1 << r.IntN(8)
	}
	if o&wire.OptDSS != 0 {
		shift := seq.Data(1 + r.IntN(1<<20))
		switch {
		case s.DSS.HasMap && r.IntN(2) == 0:
			s.DSS.DataSeq += shift
		case s.DSS.HasMap:
			s.DSS.Subflow += uint32(shift)
		case s.DSS.HasAck:
			s.DSS.DataAck += shift
		}
	}
	if o&wire.OptAddAddr != 0 {
		s.AddAddr.MAC[r.IntN(8)] ^= 1 << r.IntN(8)
	}
	if o&wire.OptMPFastClose != 0 {
		s.FastClose.Receiver[r.IntN(8)] ^= 1 << r.IntN(8)
	}
}

// ClampWindow returns a Box that never lets a window field above limit pass, SYNs excepted.
func ClampWindow(limit uint16) *Editor {
	return &Editor{Edit: func(_ clock.Time, _ Direction, _ *wire.IP, s *wire.Segment) Verdict {
		if s.Flags.Has(wire.SYN) || s.Window <= limit {
			return Leave
		}
		s.Window = limit
		return Edited
	}}
}

// ShiftSequence returns a Box that moves the sequence numbers of the forward direction by a constant, as firewalls do that draw initial
// sequence numbers anew, and the acknowledgments of the other direction back.
func ShiftSequence(by uint32) *Editor {
	return &Editor{Edit: func(_ clock.Time, dir Direction, _ *wire.IP, s *wire.Segment) Verdict {
		if dir == Forward {
			s.Seq += seq.Number(by)
			return Edited
		}
		s.Ack -= seq.Number(by)
		if s.Has(wire.OptSACK) {
			for i := range s.SACK[:s.SACKBlocks] {
				s.SACK[i].Start -= seq.Number(by)
				s.SACK[i].End -= seq.Number(by)
			}
		}
		return Edited
	}}
}
