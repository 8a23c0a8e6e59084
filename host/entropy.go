package host

import (
	"crypto/rand"
	"encoding/binary"
)

// entropy hands out the system's random bits, a block at a time. It is used under the Engine's lock.
type entropy struct {
	block [512]byte
	used  int // bytes of block handed out; 0 at the start means that block is empty
	full  bool
}

// next returns 64 unpredictable bits.
func (e *entropy) next() uint64 {
	if !e.full || e.used == len(e.block) {
		rand.Read(e.block[:]) // never fails: the program ends if the system has no randomness
		e.used, e.full = 0, true
	}
	v := binary.NativeEndian.Uint64(e.block[e.used:])
	clear(e.block[e.used : e.used+8]) // what keys were made from must not be found in memory
	e.used += 8
	return v
}
