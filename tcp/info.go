package tcp

import (
	"time"

	"braid/clock"
	"braid/seq"
)

// Info returns a snapshot.
func (c *Conn) Info(now clock.Time) (i Info) {
	c.snd.info(now, &i)
	i.State = c.state
	i.MSS, i.MTU = c.MSS(), c.mtu.current
	i.PeerWindow = max(0, c.peer.edge-c.snd.una())
	i.ReceivedBytes, i.ReceivedSegs = c.rcv.bytes, c.rcv.segments
	return i
}

// State returns the state of RFC 9293. In Closed nothing is polled any more and the Conn can be forgotten, once NextReceived has returned nil.
func (c *Conn) State() State { return c.state }

// Established reports whether the handshake is complete and the Conn not closed: both sides are synchronized.
func (c *Conn) Established() bool { return c.state >= Established }

// SRTT returns the smoothed round-trip time, 0 before the first sample.
func (c *Conn) SRTT() time.Duration { return c.snd.srtt() }

// ReceiverRTT returns the round-trip time as the receiving side sees it, from the echoes on payload; 0 if it has none
// (no timestamps, or nothing was received). A host that only receives measures it here.
func (c *Conn) ReceiverRTT() time.Duration { return c.ts.rtt }

// MSS returns the payload of a full segment without options of the owner's.
func (c *Conn) MSS() int { return c.mtu.base - c.optionsLen() }

// PeerWindow returns the room below the right edge that the peer advertises, beyond SND.UNA.
func (c *Conn) PeerWindow() int64 { return max(0, c.peer.edge-c.snd.una()) }

// AdvertisedWindow returns the room below the highest right edge advertised, beyond RCV.NXT.
func (c *Conn) AdvertisedWindow() int64 { return c.rcv.advertised() }

// ReceivedOffset returns RCV.NXT as an offset: 1 when nothing was received; the peer's FIN takes one.
func (c *Conn) ReceivedOffset() int64 { return c.rcv.nxt }

// QueuedBytes returns the payload bytes that arrived and were not handed out: out of order, or not yet taken.
func (c *Conn) QueuedBytes() int64 {
	n := c.rcv.queue.Bytes()
	if c.rcv.ready != nil {
		n += int64(len(c.rcv.ready.Data))
	}
	return n
}

// SentOffset returns SND.NXT as an offset.
func (c *Conn) SentOffset() int64 { return c.snd.nxt() }

// AckedOffset returns SND.UNA as an offset.
func (c *Conn) AckedOffset() int64 { return c.snd.una() }

// Outstanding returns what was sent and is not acknowledged: [SND.UNA, SND.NXT), a FIN included.
func (c *Conn) Outstanding() seq.Range { return seq.Range{Start: c.snd.una(), End: c.snd.nxt()} }

// EachOutstanding calls f for each outstanding chunk, or part of one, in order of sequence until f returns false. It is not made for the hot
// path.
func (c *Conn) EachOutstanding(f func(chunk Chunk, sacked, lost bool) bool) { c.snd.eachOutstanding(f) }

// Penalise halves the congestion window at the scheduler's request.
func (c *Conn) Penalise(now clock.Time) { c.snd.penalise(now) }

// PeerNumber returns the sequence number, as it stands on the wire, of an offset in the peer's stream.
func (c *Conn) PeerNumber(offset int64) seq.Number { return c.irs.At(offset) }

// Number returns the sequence number, as it stands on the wire, of an offset in our stream.
func (c *Conn) Number(offset int64) seq.Number { return c.iss.At(offset) }

// InFlight reports whether n is the sequence number of something outstanding: the check that a quoted segment in an ICMP message
// must pass (RFC 5927, Section 4.1).
func (c *Conn) InFlight(n seq.Number) bool {
	if c.state == SynSent || c.state == SynReceived {
		return n == c.iss
	}
	o := c.iss.Offset(n, c.snd.una())
	return o >= c.snd.una() && o < c.snd.nxt()
}

// HandleUnreachable takes a verified ICMP error other than "packet too big". A hard error (protocol, port or host
// prohibited) ends an attempt to connect; a synchronized connection survives both kinds: the path may come back
// (RFC 9293, Section 3.9.2.2; RFC 5461, Section 4.1).
func (c *Conn) HandleUnreachable(now clock.Time, hard bool) {
	if hard && (c.state == SynSent || c.state == SynReceived) {
		c.closed(ErrUnreachable)
	}
}

// Challenges returns how many challenge ACKs were asked for, and PAWSDrops how many segments were too old.
func (c *Conn) Challenges() int64 { return c.challenges }

// PAWSDrops returns how many segments were dropped for an old timestamp (RFC 7323, Section 5.3).
func (c *Conn) PAWSDrops() int64 { return c.pawsDrops }
