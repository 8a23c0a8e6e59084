package tcp

import (
	"testing"
	"time"
)

func TestBulkTransfer(t *testing.T) {
	p := connected(t, nil)
	const n = 5 << 20
	p.a.write(n)
	p.a.close()
	p.b.close()
	if !p.run(time.Minute, func() bool { return p.b.got == n && p.b.gotFIN }) {
		t.Fatalf("b got %d bytes; a: %+v", p.b.got, p.a.c.Info(p.now))
	}
	p.advance(time.Second)
	if p.a.released != n {
		t.Errorf("released %d", p.a.released)
	}
	t.Logf("%v, a sent %d segments, b %d", p.now, p.a.sent, p.b.sent)
	p.advance(2 * time.Minute)
	p.wantStates(Closed, Closed)
}
