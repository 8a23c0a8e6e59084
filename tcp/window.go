package tcp

import (
	"time"

	"braid/clock"
)

// Limits of a receive buffer's size, in bytes.
const (
	minReceiveBuffer = 64 << 10
	maxReceiveBuffer = 64 << 20
)

// ReceiveBuffer decides how large a window to advertise: it is the receive buffer of one stream, sized while the stream
// runs. With MPTCP the stream is the connection and every subflow advertises the same window (RFC 8684, Section 3.3.4).
//
// Size: the bytes that the application reads in one round trip tell the rate at which the path and the application
// together deliver; a window of twice that lets the sender double its rate in the next round trip, and covers a loss that
// is repaired in one more (dynamic right-sizing). The round trip is the largest of the subflows', the bytes are the sum over them, so that
// the size tends to 2 x sum of bandwidths x largest RTT (RFC 8684, Section 3.3.4). It never shrinks.
//
// Edge: the right edge of the window never moves left, and moves right only by at least a segment or half of the buffer
// (RFC 9293, Section 3.8.6.2.2).
//
// The owner calls OnData and OnRead, hands Window to Conn.SetWindow before it polls segments, says with Announced that one
// left, and asks WantsUpdate after the application has read whether an ACK should carry the news at once.
type ReceiveBuffer struct {
	size, max int64
	mss       int64

	next      int64 // bytes received in order so far
	edge      int64 // right edge, counted like next
	announced int64 // edge when the last segment left

	since    clock.Time // start of the measured round trip
	read     int64      // bytes read in it
	lastRead int64      // bytes read in the one before
	started  bool
}

// NewReceiveBuffer returns a buffer of the initial size that may grow to max bytes; 0 means the default: 64 KiB, the
// smallest there is, and 64 MiB, the largest.
func NewReceiveBuffer(initial, max int64) ReceiveBuffer {
	if max == 0 {
		max = maxReceiveBuffer
	}
	max = clamp(max, minReceiveBuffer, maxReceiveBuffer)
	initial = clamp(initial, minReceiveBuffer, max)
	return ReceiveBuffer{size: initial, max: max, mss: 1460, edge: initial, announced: initial}
}

func clamp(n, low, high int64) int64 { return min(max(n, low), high) }

// SetMSS says how large full segments of the stream are; 1460 bytes until then.
func (b *ReceiveBuffer) SetMSS(n int) { b.mss = int64(max(1, n)) }

// Size returns the current size in bytes.
func (b *ReceiveBuffer) Size() int64 { return b.size }

// SetSize makes the buffer at least n bytes, within its limit: an application knows better.
func (b *ReceiveBuffer) SetSize(n int64) { b.size = clamp(n, b.size, b.max) }

// OnData notes that n bytes were received in order.
func (b *ReceiveBuffer) OnData(now clock.Time, n int64) {
	b.next += n
	if !b.started {
		b.started, b.since = true, now
	}
}

// OnRead notes that the application took n bytes. rtt is the largest round-trip time of the stream's subflows, <= 0 if unknown.
func (b *ReceiveBuffer) OnRead(now clock.Time, n int64, rtt time.Duration) {
	b.read += n
	if rtt <= 0 || now.Sub(b.since) < rtt {
		return
	}
	target := 2*b.read + 16*b.mss
	if b.lastRead > 0 && b.read > b.lastRead {
		// The sender is speeding up: the next round trip brings as much more again, at most twice as much.
		growth := min(float64(b.read-b.lastRead)/float64(b.lastRead), 1)
		target += int64(float64(2*b.read) * growth)
	}
	b.size = clamp(target, b.size, b.max)
	b.lastRead, b.read, b.since = b.read, 0, now
}

// Window returns the bytes that may be received beyond what has been received in order. buffered counts the bytes received in
// order and not read yet; what is out of order lies inside the window already.
func (b *ReceiveBuffer) Window(buffered int64) int64 {
	edge := b.next + b.size - buffered
	if edge >= b.edge+min(b.size/2, b.mss) {
		b.edge = edge
	}
	return max(0, b.edge-b.next)
}

// Announced notes that a segment with the window last returned by Window left.
func (b *ReceiveBuffer) Announced() { b.announced = b.edge }

// WantsUpdate reports whether the window that the peer knows of should be corrected by an ACK of its own: the window that
// could be advertised is at least twice as large as what is left of it.
func (b *ReceiveBuffer) WantsUpdate(buffered int64) bool {
	known := max(0, b.announced-b.next)
	fresh := b.Window(buffered)
	return fresh > known && fresh >= 2*known
}
