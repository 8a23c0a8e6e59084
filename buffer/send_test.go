package buffer

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// read returns n bytes of s from o on.
func read(s *Send, o int64, n int) []byte {
	var out []byte
	for n > 0 {
		b := s.At(o, n)
		out = append(out, b...)
		o += int64(len(b))
		n -= len(b)
	}
	return out
}

func pattern(o int64, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		x := o + int64(i)
		b[i] = byte(x ^ x>>8 ^ x>>16)
	}
	return b
}

func TestSendKeepsWhatIsHeldOrNotAcknowledged(t *testing.T) {
	var pool Blocks
	var s Send
	s.Init(&pool, 1)
	s.Append(pattern(1, 3*BlockSize))
	s.Hold(1, 100)
	s.Ack(2 * BlockSize)
	if s.Held() != BlockSize || pool.InUse() != 3*BlockSize {
		t.Fatalf("held %d, in use %d", s.Held(), pool.InUse())
	}
	if !bytes.Equal(read(&s, 1, 100), pattern(1, 100)) {
		t.Error("held bytes changed")
	}
	s.Release(1, 60)
	if s.Held() != BlockSize {
		t.Error("released too early")
	}
	s.Release(61, 40)
	if s.Held() != 0 || pool.InUse() != 2*BlockSize {
		t.Errorf("held %d, in use %d", s.Held(), pool.InUse())
	}
}

func TestIdleSendHoldsNoBlock(t *testing.T) {
	var pool Blocks
	var s Send
	s.Init(&pool, 1)
	for o := int64(1); o < 3*BlockSize; o += 700 {
		s.Append(pattern(o, 700))
		s.Hold(o, 700)
		s.Ack(o + 700)
		if pool.InUse() == 0 {
			t.Fatal("a held block was returned")
		}
		s.Release(o, 700)
		if pool.InUse() != 0 {
			t.Fatalf("at %d: idle, %d bytes in use", o, pool.InUse())
		}
	}
}

func TestSendDoesNotAllocateInSteadyState(t *testing.T) {
	var pool Blocks
	var s Send
	s.Init(&pool, 1)
	p := pattern(0, 1400)
	o := int64(1)
	run := func() {
		for range 100 {
			s.Append(p)
			s.Hold(o, len(p))
			s.At(o, len(p))
			s.Release(o, len(p))
			s.Ack(o + int64(len(p)))
			o += int64(len(p))
		}
	}
	run()
	if n := testing.AllocsPerRun(50, run); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Whatever is written, held, released and acknowledged in whatever order: what may be asked for is there and right, and
// memory is exactly the blocks that something needs.
func TestSendModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type hold struct {
			o int64
			n int
		}
		var pool Blocks
		var s Send
		start := rapid.Int64Range(0, 2*BlockSize).Draw(t, "start")
		s.Init(&pool, start)
		var holds []hold
		acked, end := start, start
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				n := rapid.IntRange(0, 2*BlockSize).Draw(t, "n")
				s.Append(pattern(end, n))
				end += int64(n)
			},
			"hold": func(t *rapid.T) {
				if acked == end {
					t.Skip("nothing")
				}
				o := rapid.Int64Range(acked, end-1).Draw(t, "o")
				n := int(rapid.Int64Range(1, min(end-o, 5000)).Draw(t, "n"))
				s.Hold(o, n)
				holds = append(holds, hold{o, n})
			},
			"release": func(t *rapid.T) {
				if len(holds) == 0 {
					t.Skip("nothing")
				}
				i := rapid.IntRange(0, len(holds)-1).Draw(t, "i")
				n := rapid.IntRange(1, holds[i].n).Draw(t, "n")
				s.Release(holds[i].o, n)
				if holds[i].o, holds[i].n = holds[i].o+int64(n), holds[i].n-n; holds[i].n == 0 {
					holds = append(holds[:i], holds[i+1:]...)
				}
			},
			"ack": func(t *rapid.T) {
				acked = rapid.Int64Range(acked, end).Draw(t, "acked")
				s.Ack(acked)
			},
			"": func(t *rapid.T) {
				if s.Acked() != acked || s.End() != end || s.Len() != end-acked {
					t.Fatalf("acked %d end %d len %d", s.Acked(), s.End(), s.Len())
				}
				need := map[int64]bool{}
				old := map[int64]bool{}
				for i := acked >> blockShift; acked < end && i <= (end-1)>>blockShift; i++ {
					need[i] = true
				}
				for _, h := range holds {
					for i := h.o >> blockShift; i <= (h.o+int64(h.n)-1)>>blockShift; i++ {
						need[i] = true
						if (i+1)<<blockShift <= acked {
							old[i] = true
						}
					}
					if !bytes.Equal(read(&s, h.o, h.n), pattern(h.o, h.n)) {
						t.Fatalf("held bytes at %d differ", h.o)
					}
				}
				if acked < end && !bytes.Equal(read(&s, acked, int(end-acked)), pattern(acked, int(end-acked))) {
					t.Fatal("unacknowledged bytes differ")
				}
				if pool.InUse() != int64(len(need))*BlockSize || s.Held() != int64(len(old))*BlockSize {
					t.Fatalf("in use %d, want %d blocks; held %d, want %d", pool.InUse()/BlockSize, len(need), s.Held()/BlockSize, len(old))
				}
			},
		})
		s.Clear()
		if pool.InUse() != 0 {
			t.Fatalf("%d bytes in use after Clear", pool.InUse())
		}
	})
}

func TestBlocksGiveIdleMemoryUp(t *testing.T) {
	var pool Blocks
	var s Send
	s.Init(&pool, 1)
	for range 500 {
		s.Append(pattern(s.End(), BlockSize))
	}
	s.Ack(s.End())
	if pool.Free() < 499*BlockSize {
		t.Fatalf("%d bytes free", pool.Free())
	}
	for range 20 * blockPeriod { // one block at a time from now on
		s.Append([]byte{1})
		s.Ack(s.End())
	}
	if pool.Free() > 2*minFreeBlocks*BlockSize {
		t.Errorf("%d bytes still idle", pool.Free())
	}
	pool.Trim()
	if pool.Free() != 0 {
		t.Error("Trim left something")
	}
}
