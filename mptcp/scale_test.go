package mptcp

import (
	"runtime"
	"testing"
	"time"

	"braid/clock"
)

// Ten thousand connections, opened, used, closed in all ways: nothing stays.
func TestManyConnectionsLeakNothing(t *testing.T) {
	w := newWorld(t, Config{}, Config{Backlog: 1024})
	w.link(time.Millisecond)
	w.link(2 * time.Millisecond)
	lis := w.listen()
	const total, wave = 10000, 500
	for n := 0; n < total; n += wave {
		var cs, ss []*Conn
		for range wave {
			c := w.dial()
			c.Write(w.now, []byte("hello"))
			cs = append(cs, c)
		}
		w.until(10*time.Second, func() bool {
			for s, ok := lis.Accept(); ok; s, ok = lis.Accept() {
				ss = append(ss, s)
			}
			return len(ss) == wave
		})
		if len(ss) != wave {
			t.Fatalf("%d of %d accepted", len(ss), wave)
		}
		w.run(20 * time.Millisecond)
		for i := range cs {
			switch i % 4 {
			case 0:
				cs[i].Close(w.now)
			case 1:
				cs[i].Abort(w.now)
			case 2:
				ss[i].Abort(w.now)
			case 3:
				cs[i].CloseWrite(w.now)
			}
			ss[i].Write(w.now, []byte("bye"))
		}
		w.run(20 * time.Millisecond)
		var b [100]byte
		for i := range cs {
			ss[i].Read(w.now, b[:])
			cs[i].Read(w.now, b[:])
			ss[i].Close(w.now)
			cs[i].Close(w.now)
		}
		clear(w.events)
	}
	w.run(4 * time.Minute)
	lis.Close(w.now)
	wantEmpty(t, "client", w.client)
	wantEmpty(t, "server", w.server)
}

// An idle established connection costs less than 16 KiB.
func TestIdleConnectionMemory(t *testing.T) {
	w := newWorld(t, Config{}, Config{Backlog: 4096})
	w.link(time.Millisecond)
	lis := w.listen()
	var keep []*Conn
	open := func(n int) {
		for range n {
			c := w.dial()
			c.Write(w.now, []byte("hello"))
			keep = append(keep, c)
		}
		w.run(100 * time.Millisecond)
		var b [10]byte
		for s, ok := lis.Accept(); ok; s, ok = lis.Accept() {
			s.Read(w.now, b[:])
			keep = append(keep, s)
		}
		w.run(5 * time.Second)
		clear(w.events)
	}
	open(100)
	heap := func() uint64 {
		w.client.sendPool.Trim()
		w.client.pool.Trim()
		w.server.pool.Trim()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	const n = 1000
	open(n)
	each := float64(heap()-before) / (2 * n)
	if len(keep) != 2*(n+100) {
		t.Fatalf("%d connections", len(keep))
	}
	t.Logf("%.0f bytes per idle connection", each)
	if each > 16<<10 {
		t.Errorf("%.0f bytes per idle connection", each)
	}
	if at := w.server.NextTimeout(); at != clock.Never {
		t.Errorf("idle connections have a timer at %v (now %v)", at, w.now)
	}
	runtime.KeepAlive(keep)
}
