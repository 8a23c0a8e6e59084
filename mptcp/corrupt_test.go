package mptcp

import (
	"math/rand/v2"
	"testing"

	"braid/wire"
)

// corrupt changes a byte of the payload and mends the TCP checksum, as a middlebox that rewrites content does.
func (f *flight) corrupt(t testing.TB, rng *rand.Rand) {
	t.Helper()
	n := len(f.segment(t).Payload)
	if n == 0 {
		return
	}
	f.b[len(f.b)-1-rng.IntN(n)] ^= 0x55
	f.rewrite(t, func(*wire.Segment) {})
}
