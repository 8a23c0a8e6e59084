package buffer

import (
	"bytes"
	"testing"
)

func TestPoolCopies(t *testing.T) {
	var p Pool
	for _, tc := range []struct{ n, cost int }{
		{0, 128}, {1, 128}, {128, 128}, {129, 512}, {1448, 1536}, {1537, 4096}, {8948, 16384}, {65535, 65536}, {65536, 65536}, {70000, 70000},
	} {
		payload := bytes.Repeat([]byte{byte(tc.n)}, tc.n)
		c := p.Copy(7, payload)
		if !bytes.Equal(c.Data, payload) || c.Start != 7 || c.End() != 7+int64(tc.n) || c.Cost() != tc.cost {
			t.Errorf("%d bytes: start %d end %d cost %d", tc.n, c.Start, c.End(), c.Cost())
		}
		if tc.n > 0 {
			payload[0]++
			if c.Data[0] == payload[0] {
				t.Errorf("%d bytes: the chunk shares the caller's memory", tc.n)
			}
		}
		if p.InUse() != int64(tc.cost) {
			t.Errorf("%d bytes: in use %d, want %d", tc.n, p.InUse(), tc.cost)
		}
		p.Release(c)
		if p.InUse() != 0 {
			t.Errorf("%d bytes: in use after release %d", tc.n, p.InUse())
		}
	}
}

func TestChunkTrims(t *testing.T) {
	var p Pool
	c := p.Copy(100, []byte("abcdef"))
	c.TrimFront(2)
	c.TrimBack(1)
	if c.Start != 102 || c.End() != 105 || string(c.Data) != "cde" {
		t.Errorf("got %q at [%d,%d)", c.Data, c.Start, c.End())
	}
	p.Release(c)
	// The whole memory comes back, not what trimming left.
	if c = p.Get(0, 128); len(c.Data) != 128 {
		t.Errorf("reused chunk holds %d bytes", len(c.Data))
	}
}

func TestPoolDoesNotAllocateInSteadyState(t *testing.T) {
	var p Pool
	payload := make([]byte, 1448)
	var held [32]*Chunk
	run := func() {
		for i := range held {
			held[i] = p.Copy(0, payload)
		}
		for _, c := range held {
			p.Release(c)
		}
	}
	run()
	if n := testing.AllocsPerRun(100, run); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestPoolGivesIdleMemoryUp(t *testing.T) {
	var p Pool
	var held []*Chunk
	for range 2000 {
		held = append(held, p.Get(0, 1448))
	}
	for _, c := range held {
		p.Release(c)
	}
	if p.Free() != 2000*1536 {
		t.Fatalf("free %d", p.Free())
	}
	for range 20 * trimPeriod { // one chunk at a time from now on
		p.Release(p.Get(0, 1448))
	}
	if p.Free() > 2*trimMinimum*1536 {
		t.Errorf("%d bytes still idle", p.Free())
	}
	p.Trim()
	if p.Free() != 0 {
		t.Errorf("%d bytes after Trim", p.Free())
	}
}

func TestPoolBoundsFreeMemory(t *testing.T) {
	var p Pool
	var held []*Chunk
	for range 3 * maxFree / 65536 {
		held = append(held, p.Get(0, 65536))
	}
	for _, c := range held {
		p.Release(c)
	}
	if p.Free() > maxFree {
		t.Errorf("free %d, bound %d", p.Free(), maxFree)
	}
}

func TestDoubleReleasePanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	var p Pool
	c := p.Get(0, 1)
	p.Release(c)
	p.Release(c)
}
