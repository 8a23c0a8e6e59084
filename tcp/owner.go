package tcp

import (
	"time"

	"braid/clock"
	"braid/wire"
)

// WindowOf returns the window in bytes that a segment without SYN advertises: the field times the negotiated scale
// (RFC 7323, Section 2.3). The owner needs it where the window counts from something else than the ACK (RFC 8684, Section 3.3.4).
func (c *Conn) WindowOf(seg *wire.Segment) int64 { return int64(seg.Window) << c.opts.sndScale }

// Backoffs returns how often in a row the retransmission timer expired; 0 as soon as anything new was acknowledged.
func (c *Conn) Backoffs() int { return c.snd.backoffs() }

// MTU returns the size of the largest packet that is assumed to pass, in bytes, counted as Config.Overhead says.
func (c *Conn) MTU() int { return c.mtu.current }

// RTO returns the current retransmission timeout, back-off included.
func (c *Conn) RTO() time.Duration { return c.snd.rto() }

// LastAck returns when something new was acknowledged last, and Oldest when the oldest outstanding segment was sent last,
// clock.Never if nothing is outstanding.
func (c *Conn) LastAck() clock.Time { return c.snd.lastAck }

// Oldest is described at LastAck.
func (c *Conn) Oldest() clock.Time { return c.snd.oldest() }

// Retrans returns the bytes that wait to be retransmitted.
func (c *Conn) Retrans() int64 { return c.snd.q.bytes[recLost] }

// FlightSize returns the bytes in flight: sent, not acknowledged, not SACKed, not lost.
func (c *Conn) FlightSize() int64 { return c.snd.inFlight() }

// Window returns the congestion window in force, in bytes.
func (c *Conn) Window() int64 { return c.snd.window() }

// PacerAt returns when the pacer lets the next full segment go; in the past: now.
func (c *Conn) PacerAt(now clock.Time) clock.Time { return c.snd.pacer.readyAt(now, c.snd.mss) }

// PushedOffset returns the offset behind everything that was pushed.
func (c *Conn) PushedOffset() int64 { return c.snd.pushedEnd }

// SACKed returns the bytes outstanding that the peer has acknowledged selectively.
func (c *Conn) SACKed() int64 { return c.snd.q.bytes[recSacked] }
