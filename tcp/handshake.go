package tcp

import (
	"time"

	"braid/clock"
	"braid/wire"
)

// handshake times the SYN or SYN/ACK (RFC 6298; RFC 9293, Section 3.8.3).
type handshake struct {
	due     bool // to be polled
	sentAt  clock.Time
	at      clock.Time // retransmission; Never: not running
	rto     time.Duration
	limit   time.Duration // of rto
	retries int           // transmissions after the first
}

func (h *handshake) init(now clock.Time, cfg *Config) {
	h.at = clock.Never
	h.rto = cfg.InitialRTO
	if h.rto <= 0 {
		h.rto = initialRTO
	}
	h.limit = cfg.MaxRTO
	if h.limit <= 0 {
		h.limit = defaultMaxRTO
	}
}

// sent notes that the SYN or SYN/ACK left.
func (h *handshake) sent(now clock.Time) {
	if h.at == clock.Never {
		h.sentAt = now
		h.at = now.Add(h.rto)
	}
	h.due = false
}

// synTimeout sends the SYN or SYN/ACK again, twice as patient (RFC 6298, Section 5.5), or gives up.
func (c *Conn) synTimeout(now clock.Time) {
	h := &c.syn
	most := c.cfg.SYNRetries
	if most <= 0 {
		most = defaultSYNRetries
	}
	if h.retries >= most {
		c.closed(ErrTimeout)
		return
	}
	h.retries++
	h.rto = min(2*h.rto, h.limit)
	h.at = now.Add(h.rto)
	h.due = true
}

// offeredScale is the shift that our SYN offers.
func (c *Conn) offeredScale() uint8 { return min(c.cfg.WindowScale, maxWindowScale) }

// complete enters ESTABLISHED: seg acknowledged our SYN.
func (c *Conn) complete(now clock.Time, seg *wire.Segment, r *Result) {
	c.setState(Established)
	r.Established = true
	c.syn.at, c.syn.due = clock.Never, false
	var rtt time.Duration
	if c.syn.retries == 0 {
		rtt = now.Sub(c.syn.sentAt)
	} else {
		// Karn: only an echo tells which transmission was answered (RFC 6298, Section 3).
		if c.ts.on && seg.Has(wire.OptTimestamps) {
			rtt, _ = c.ts.echo(now, seg.TSEcr)
		}
		c.snd.synLost()
	}
	c.rcv.sack = c.opts.sack
	scale := c.opts.sndScale
	if seg.Flags.Has(wire.SYN) {
		scale = 0 // RFC 7323, Section 2.2: the window of a SYN is not scaled
	}
	edge := c.peer.first(1, c.irs.Offset(seg.Seq, c.rcv.nxt), int64(seg.Window)<<scale)
	c.snd.established(now, c.MSS(), c.opts.sack, c.ts.on, edge, rtt)
	c.snd.setMore(c.more)
	c.startKeepAlive(now)
	if c.mtu.current < c.mtu.top { // probing above the configured size was asked for
		c.mtu.at = now.Add(probeAgainWait)
	}
	if c.end.finWanted {
		c.end.finWanted = false
		c.CloseWrite(now)
	}
}

// peerWindow remembers which segment updated the send window last (RFC 9293, Section 3.10.7.4).
type peerWindow struct {
	wl1, wl2 int64 // SND.WL1, SND.WL2: sequence and acknowledgment of that segment
	edge     int64 // acknowledgment plus window, as it said
	largest  int64 // MAX.SND.WND (RFC 5961, Section 5.2)
}

func (p *peerWindow) first(ack, start, window int64) (edge int64) {
	p.wl1, p.wl2, p.edge = start, ack, ack+window
	p.largest = max(p.largest, window)
	return p.edge
}

// update returns the right edge if the segment is not older than the one that updated it last, keepEdge otherwise.
func (p *peerWindow) update(ack, start, window, una int64) (edge int64) {
	p.largest = max(p.largest, window)
	if ack >= una && (p.wl1 < start || p.wl1 == start && p.wl2 <= ack) {
		p.wl1, p.wl2, p.edge = start, ack, ack+window
		return p.edge
	}
	return keepEdge
}

// keepEdge tells the sender that a segment does not update the window.
const keepEdge = -1

func pad4(n int) int { return (n + 3) &^ 3 }
