package link

import "testing"

func TestPool(t *testing.T) {
	p := NewPool(100)
	a := p.Get()
	a.Data = append(a.Data, 1, 2, 3)
	a.Size, a.Route, a.Corrupted = 3, 7, true
	twin := p.clone(a)
	if &twin.Data[0] == &a.Data[0] || string(twin.Data) != "\x01\x02\x03" || twin.Route != 7 || p.Outstanding() != 2 {
		t.Errorf("clone %+v of %+v, %d outstanding", twin, a, p.Outstanding())
	}
	p.Put(a)
	p.Grow(200)
	b := p.Get()
	if cap(b.Data) < 200 || len(b.Data) != 0 || b.Size != 0 || b.Route != 0 || b.Corrupted {
		t.Errorf("after Grow: got %+v with room for %d", b, cap(b.Data))
	}
	p.Put(b)
	p.Put(twin)
	if p.Outstanding() != 0 {
		t.Errorf("%d outstanding, want none", p.Outstanding())
	}
}
