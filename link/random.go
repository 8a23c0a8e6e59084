package link

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
)

// Stream returns the random stream that belongs to a name under a seed. Streams of different names are independent, so that
// one cause of randomness (the losses of one link, the keys of one host) draws the same numbers whatever else is switched on
// beside it. The numbers are the same on every machine and in every version: PCG, started from the SHA-256 of seed and name.
func Stream(seed uint64, name string) *rand.Rand {
	b := make([]byte, 8, 8+len(name))
	binary.BigEndian.PutUint64(b, seed)
	sum := sha256.Sum256(append(b, name...))
	return rand.New(rand.NewPCG(binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:16])))
}
