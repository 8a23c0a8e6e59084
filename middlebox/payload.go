package middlebox

import (
	"braid/clock"
	"braid/seq"
	"braid/wire"
)

// Replace is a Box that writes something else into the forward stream of every TCP connection, as application gateways do: New in the place
// of Len bytes from Offset on (0: the first byte after the SYN). Lengths may differ; the sequence and acknowledgment numbers behind are
// then moved so that TCP notices nothing. Connections whose SYN it did not see are left alone.
type Replace struct {
	Editor
	offset, length int
	text           []byte
	begin          map[flow]seq.Number // the number of the first byte, by forward flow
	scratch        []byte
}

// ReplacePayload returns a Replace. The text must not be empty: an acknowledgment could not tell whether what is gone had come.
func ReplacePayload(offset, length int, text []byte) *Replace {
	if len(text) == 0 {
		panic("middlebox: ReplacePayload without text")
	}
	r := &Replace{offset: offset, length: length, text: text, begin: map[flow]seq.Number{}}
	r.Edit = r.edit
	return r
}

func (r *Replace) edit(_ clock.Time, dir Direction, _ *wire.IP, s *wire.Segment) Verdict {
	f := r.packet.flow()
	if dir == Reverse {
		f = f.back()
	}
	if dir == Forward && s.Flags.Has(wire.SYN) {
		r.begin[f] = s.Seq + 1
		return Leave
	}
	begin, ok := r.begin[f]
	if !ok {
		return Leave
	}
	if dir == Reverse {
		s.Ack = begin + seq.Number(r.back(int(int32(s.Ack-begin))))
		if s.Has(wire.OptSACK) {
			for i := range s.SACK[:s.SACKBlocks] {
				b := &s.SACK[i]
				b.Start = begin + seq.Number(r.back(int(int32(b.Start-begin))))
				b.End = begin + seq.Number(r.back(int(int32(b.End-begin))))
			}
		}
		return Edited
	}
	return r.forward(s, begin)
}

// forward rewrites a segment of the stream.
func (r *Replace) forward(s *wire.Segment, begin seq.Number) Verdict {
	from := int(int32(s.Seq - begin))
	to := from + len(s.Payload)
	if to <= r.offset {
		return Leave
	}
	out := r.scratch[:0]
	if from < r.offset {
		out = append(out, s.Payload[:r.offset-from]...)
	}
	if first, last := max(r.there(from), r.offset)-r.offset, r.there(to)-r.offset; first < len(r.text) {
		out = append(out, r.text[first:min(last, len(r.text))]...)
	}
	if end := r.offset + r.length; to > end {
		out = append(out, s.Payload[max(from, end)-from:]...)
	}
	s.Seq = begin + seq.Number(r.there(from))
	r.scratch, s.Payload = out, out
	return Edited
}

// there is where a position of the sender's stream is in the receiver's.
func (r *Replace) there(x int) int {
	switch {
	case x <= r.offset:
		return x
	case x >= r.offset+r.length:
		return x + len(r.text) - r.length
	}
	return r.offset + min(x-r.offset, len(r.text))
}

// back is where a position of the receiver's stream is in the sender's, or the last one before it that has been received whole.
func (r *Replace) back(y int) int {
	switch {
	case y <= r.offset:
		return y
	case y >= r.offset+len(r.text):
		return y - len(r.text) + r.length
	}
	return r.offset
}
