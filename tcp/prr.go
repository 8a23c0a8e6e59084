package tcp

import (
	"math"
	"math/bits"
)

// prr is Proportional Rate Reduction (RFC 9937, which replaces RFC 6937): during fast recovery it says how much may
// be in flight, so that sending slows down evenly to the new window. Sizes are in bytes.
type prr struct {
	target    int64 // ssthresh: the window that the controller wants at the end
	base      int64 // RecoverFS: in flight when recovery began
	delivered int64 // prr_delivered: delivered since then
	out       int64 // prr_out: sent since then
	window    int64 // what may be in flight until the next ACK
}

// start begins a recovery.
func (p *prr) start(target, base int64) {
	*p = prr{target: target, base: max(base, 1)}
}

// onAck takes what an ACK delivered. safe says that the ACK advanced SND.UNA and found no further loss.
//
// RFC 9937, Section 6.2: proportional while more than the target is in flight; below that conservation of packets
// (PRR-CRB) and, if it is safe, one more segment at each ACK (PRR-SSRB) until the target is reached.
func (p *prr) onAck(acked, inFlight, mss int64, safe bool) {
	p.delivered += acked
	var n int64
	if inFlight > p.target {
		n = ceilMulDiv(p.delivered, p.target, p.base) - p.out
	} else {
		n = max(p.delivered-p.out, acked)
		if safe {
			n += mss
		}
		n = min(p.target-inFlight, n)
	}
	if p.out == 0 && n < mss {
		n = mss // the fast retransmit itself is always sent
	}
	p.window = inFlight + max(n, 0)
}

// sent counts a transmission.
func (p *prr) sent(n int64) { p.out += n }

// ceilMulDiv returns a*b/c rounded up, computed in 128 bits and saturated far above any window.
func ceilMulDiv(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return math.MaxInt64 / 4
	}
	q, r := bits.Div64(hi, lo, uint64(c))
	if r > 0 {
		q++
	}
	return int64(min(q, math.MaxInt64/4))
}
