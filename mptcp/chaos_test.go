package mptcp

import (
	"container/heap"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"braid/congestion"
	"braid/schedule"
	"braid/wire"
)

// app is one end's application in a chaos test: it writes, reads, closes and aborts when it likes, and checks what it reads.
type app struct {
	c       *Conn
	rng     *rand.Rand
	written int
	total   int
	read    int
	eof     bool
	err     error
	closed  bool
	aborts  bool
	corrupt bool
	seed    uint64
}

// act does one thing.
func (a *app) act(w *world) {
	var buf [20000]byte
	switch a.rng.IntN(10) {
	case 0, 1, 2, 3:
		n := min(a.rng.IntN(len(buf)), a.total-a.written)
		if a.rng.IntN(4) == 0 {
			n = min(n, 3)
		}
		for i := range n {
			buf[i] = pattern(a.written + i)
		}
		n, err := a.c.Write(w.now, buf[:n])
		a.written += n
		a.note(err)
	case 4, 5, 6, 7:
		n, err := a.c.Read(w.now, buf[:a.rng.IntN(len(buf))])
		for i := range n {
			// Plain TCP cannot see what a middlebox changed.
			if buf[i] != pattern(a.read+i) && !(a.corrupt && a.c.fb.any()) {
				w.t.Fatalf("seed %d: byte %d is wrong\n%s", a.seed, a.read+i, dump(w, a.c))
			}
		}
		a.read += n
		if err == io.EOF {
			a.eof = true
		} else {
			a.note(err)
		}
	case 8:
		if a.written == a.total && a.rng.IntN(3) == 0 {
			a.c.CloseWrite(w.now)
		}
		if a.eof && a.written == a.total && !a.closed {
			a.c.Close(w.now)
			a.closed = true
		}
	case 9:
		if a.aborts && a.rng.IntN(300) == 0 {
			a.c.Abort(w.now)
			a.closed = true
		}
		if n := a.c.Info(w.now).Subflows; len(n) > 0 && a.rng.IntN(20) == 0 {
			a.c.SetPriority(w.now, n[a.rng.IntN(len(n))].ID, a.rng.IntN(2) == 0)
		}
	}
}

func (a *app) note(err error) {
	if err != nil && !errors.Is(err, ErrWouldBlock) && !errors.Is(err, net.ErrClosed) {
		a.err = err
	}
}

// chaos is what a network may do to a connection. It draws what happens from one seed.
func chaos(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1234))
	pick := func(list ...float64) float64 { return list[rng.IntN(len(list))] }
	names := schedule.Names()
	controls := congestion.Names()
	cfg := Config{
		Entropy: entropy(seed*2 + 1), Checksums: rng.IntN(3) == 0, ReceiveBuffer: int64(pick(64<<10, 1<<20)), UserTimeout: time.Minute,
		CloseTimeout: 20 * time.Second, HeldLimit: int64(pick(64<<10, 1<<20)), NoDelay: rng.IntN(2) == 0,
	}
	cfg.InitialReceive = cfg.ReceiveBuffer
	cfg.Scheduler, _ = schedule.ByName(names[rng.IntN(len(names))])
	cfg.Group, _ = congestion.ByName(controls[rng.IntN(len(controls))])
	server := cfg
	server.Entropy = entropy(seed*2 + 2)
	w := newWorld(t, cfg, server)
	for i := range 1 + rng.IntN(3) {
		l := w.link(time.Duration(1+rng.IntN(80)) * time.Millisecond)
		l.rate, l.limit, l.loss = 3e5+rng.Float64()*5e6, 100*time.Millisecond, pick(0, 0.01, 0.08)
		l.rng = rand.New(rand.NewPCG(seed, uint64(i)))
	}
	stripped, corrupt := pick(0, 0, 0, 0.01, 1), pick(0, 0, 0.003)
	if !cfg.Checksums {
		corrupt = 0
	}
	duplicate, reorder, split := pick(0, 0.02), pick(0, 0.02, 0.1), pick(0, 0, 0.05)
	from := w.now.Add(time.Duration(pick(0, 0, 300, 1000)) * time.Millisecond)
	w.tap = func(f *flight) bool {
		if w.now >= from && stripped > 0 && f.link == w.links[0] && rng.Float64() < stripped {
			strip(t, f)
		}
		if rng.Float64() < corrupt {
			f.corrupt(t, rng)
		}
		if rng.Float64() < split {
			f.split(w)
			return false
		}
		if rng.Float64() < duplicate {
			g := *f
			w.send(&g)
		}
		if rng.Float64() < reorder {
			g := *f
			g.at = w.now.Add(g.link.delay + time.Duration(rng.IntN(40))*time.Millisecond)
			w.sent++
			g.n = w.sent
			heap.Push(&w.queue, &g)
			return false
		}
		return true
	}
	l := w.listen()
	c := w.dial()
	var s *Conn
	w.until(time.Minute, func() bool { s, _ = l.Accept(); return s != nil || c.state == connOver })
	aborts := rng.IntN(4) == 0
	apps := []*app{{c: c, rng: rng, total: rng.IntN(400_000), aborts: aborts, corrupt: corrupt > 0, seed: seed}}
	if s != nil {
		apps = append(apps, &app{c: s, rng: rng, total: rng.IntN(400_000), aborts: aborts, corrupt: corrupt > 0, seed: seed})
	}
	end := w.now.Add(8 * time.Minute)
	for w.now < end {
		done := true
		for _, a := range apps {
			a.act(w)
			done = done && a.closed && a.c.state == connOver
			if a.err != nil && !a.closed {
				a.c.Close(w.now)
				a.closed = true
			}
		}
		if done {
			break
		}
		w.step(w.now.Add(time.Duration(1+rng.IntN(20)) * time.Millisecond))
		if rng.IntN(500) == 0 {
			l := w.links[rng.IntN(len(w.links))]
			l.down = !l.down
		}
		if rng.IntN(3000) == 0 {
			if i := rng.IntN(len(w.links)); w.client.livePath(w.links[i].client) != nil && len(w.links) > 1 {
				w.client.RemovePath(w.now, w.links[i].client)
				w.links[i].client = w.client.AddPath(w.now, Path{Name: "again", Local: w.links[i].clientAddr})
			}
		}
	}
	for i, a := range apps {
		if other := apps[len(apps)-1-i]; a.c.state != connOver && a.c.fb.any() && other.c.Err() != nil {
			a.c.Abort(w.now) // plain TCP does not learn of a peer whose RST was lost
			a.closed = true
		}
		if !a.closed || a.c.state != connOver {
			t.Fatalf("seed %d: app %d %+v is not done after %v\n%s%s", seed, i, *a, w.now, dump(w, c), dump(w, s))
		}
	}
	if len(apps) == 2 && apps[0].err == nil && apps[1].err == nil && apps[0].c.Err() == nil && apps[1].c.Err() == nil {
		for i, a := range apps {
			if a.read != apps[1-i].written {
				t.Fatalf("seed %d: %d bytes written, %d read, no error", seed, apps[1-i].written, a.read)
			}
		}
	}
	for _, l := range w.links {
		l.down = false
	}
	l.Close(w.now)
	w.run(10 * time.Minute)
	wantEmpty(t, fmt.Sprintf("seed %d client", seed), w.client)
	wantEmpty(t, fmt.Sprintf("seed %d server", seed), w.server)
}

// split sends a segment in two pieces with the same options on each, as segmentation in the network does (MB-04).
func (f *flight) split(w *world) {
	seg := f.segment(w.t)
	n := len(seg.Payload)
	if n < 2 || seg.Flags&(wire.SYN|wire.RST) != 0 {
		w.send(f)
		return
	}
	payload := append([]byte(nil), seg.Payload...)
	first, second := *f, *f
	first.b = append([]byte(nil), f.b[:len(f.b)-n]...)
	second.b = append([]byte(nil), f.b[:len(f.b)-n]...)
	first.replace(w.t, payload[:n/2], func(seg *wire.Segment) { seg.Flags &^= wire.FIN })
	second.replace(w.t, payload[n/2:], func(seg *wire.Segment) { seg.Seq = seg.Seq.Add(int64(n / 2)) })
	w.send(&first)
	w.send(&second)
}

// replace changes header and payload of an IP packet.
func (f *flight) replace(t testing.TB, payload []byte, change func(*wire.Segment)) {
	var ip wire.IP
	// The packet was cut behind its TCP header: give it its length back for the parser.
	if err := wire.ParseIP(append(append([]byte(nil), f.b...), make([]byte, 65535)...)[:int(f.b[2])<<8|int(f.b[3])], &ip); err != nil {
		t.Fatal(err)
	}
	var seg wire.Segment
	if err := wire.ParseTCP(ip.Payload, &seg); err != nil {
		t.Fatal(err)
	}
	seg.Payload = nil
	change(&seg)
	head := wire.AppendTCPHeader(nil, &seg)
	wire.SetTCPChecksum(head, len(payload), wire.PseudoSum(ip.Src, ip.Dst, wire.ProtoTCP), wire.Sum(0).Add(payload))
	f.b = append(append(wire.AppendIPHeader(nil, &ip, len(head)+len(payload)), head...), payload...)
}

// Whatever network and applications do: no panic, no wrong byte, an end in bounded time, and nothing left behind.
func TestChaos(t *testing.T) {
	seeds := uint64(80)
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		chaos(t, seed)
	}
}
