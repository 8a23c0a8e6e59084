package emulator

import (
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"braid/device"
	"braid/device/devicetest"
	"braid/link"
)

var (
	clientAddr = netip.MustParseAddrPort("10.0.0.1:1000")
	relayAddr  = netip.MustParseAddrPort("10.0.0.9:9")
	serverAddr = netip.MustParseAddrPort("10.1.0.1:443")
)

// rig is a client and a server with a Path between them, in a bubble.
type rig struct {
	t      *testing.T
	net    devicetest.Network
	path   *Path
	client *devicetest.Port
	server *devicetest.Port
	start  time.Time
	opened int
	got    map[*devicetest.Port]chan arrival
}

type arrival struct {
	text string
	at   time.Duration
	from netip.AddrPort
}

func newRig(t *testing.T, cfg Config) *rig {
	r := &rig{t: t, start: time.Now(), got: make(map[*devicetest.Port]chan arrival)}
	cfg.Name, cfg.Server = "test", serverAddr
	r.client = r.net.Open(clientAddr, devicetest.Options{})
	r.server = r.net.Open(serverAddr, devicetest.Options{})
	path, err := start(cfg, r.net.Open(relayAddr, devicetest.Options{}), func() (device.Device, error) {
		r.opened++
		return r.net.Open(netip.AddrPortFrom(netip.MustParseAddr("10.1.0.9"), uint16(r.opened)), devicetest.Options{}), nil
	}, newTimerWaiter())
	if err != nil {
		t.Fatal(err)
	}
	r.path = path
	for _, p := range []*devicetest.Port{r.client, r.server} {
		c := make(chan arrival, 1000)
		r.got[p] = c
		go func() {
			var b device.Batch
			for p.Read(&b) == nil {
				for _, pkt := range b.Packets {
					c <- arrival{string(pkt.Data), time.Since(r.start), pkt.From}
				}
			}
		}()
	}
	return r
}

func (r *rig) close() {
	r.path.Close()
	r.client.Close()
	r.server.Close()
}

func (r *rig) send(p *devicetest.Port, to netip.AddrPort, texts ...string) {
	r.t.Helper()
	for _, s := range texts {
		if err := p.Write(device.Train{Data: []byte(s), Size: len(s), To: to}); err != nil {
			r.t.Fatal(err)
		}
	}
}

// want waits and then compares what has arrived at p.
func (r *rig) want(p *devicetest.Port, wait time.Duration, texts ...string) (got []arrival) {
	r.t.Helper()
	time.Sleep(wait)
	synctest.Wait()
	for len(r.got[p]) > 0 {
		got = append(got, <-r.got[p])
	}
	if !slices.EqualFunc(got, texts, func(a arrival, s string) bool { return a.text == s }) {
		r.t.Fatalf("arrived: %v, want %v", got, texts)
	}
	return got
}

func ptr[T any](v T) *T { return &v }

func TestDelayEachWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Up: link.Spec{DelayMs: 20}, Down: link.Spec{DelayMs: 30}})
		defer r.close()
		r.send(r.client, relayAddr, "ask")
		r.want(r.server, 19*time.Millisecond)
		got := r.want(r.server, 2*time.Millisecond, "ask")
		if got[0].at != 20*time.Millisecond {
			t.Errorf("reached the server after %v, want 20ms", got[0].at)
		}
		r.send(r.server, got[0].from, "answer") // at 21 ms
		back := r.want(r.client, 100*time.Millisecond, "answer")
		if back[0].at != 51*time.Millisecond || back[0].from != relayAddr {
			t.Errorf("answer at %v from %v, want 51ms from %v", back[0].at, back[0].from, relayAddr)
		}
	})
}

// At 1 Mbit/s a packet of 125 bytes (97 and the headers) takes a millisecond.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Up: link.Spec{RateMbps: 1}})
		defer r.close()
		payload := string(make([]byte, 97))
		r.send(r.client, relayAddr, payload, payload, payload)
		for i, a := range r.want(r.server, time.Second, payload, payload, payload) {
			if want := time.Duration(i+1) * time.Millisecond; a.at != want {
				t.Errorf("packet %d at %v, want %v", i, a.at, want)
			}
		}
		if rep := r.path.Report(); rep.Up.Delivered != 3 || rep.Lateness.Count() != 3 || rep.Lateness.Max() != 0 {
			t.Errorf("report: delivered %d, %d measured, latest %v", rep.Up.Delivered, rep.Lateness.Count(), rep.Lateness.Max())
		}
	})
}

// What falls due within the grain leaves together, late by no more than the grain.
func TestGrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Up: link.Spec{RateMbps: 100}, Grain: 10 * time.Millisecond})
		defer r.close()
		texts := slices.Repeat([]string{"0123456789"}, 50)
		r.send(r.client, relayAddr, texts...)
		r.want(r.server, time.Second, texts...)
		if max := r.path.Report().Lateness.Max(); max == 0 || max > 10*time.Millisecond {
			t.Errorf("latest %v, want up to 10ms", max)
		}
	})
}

func TestCutAndRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Up: link.Spec{DelayMs: 10}})
		defer r.close()
		r.send(r.client, relayAddr, "before")
		time.Sleep(5 * time.Millisecond)
		if err := r.path.SetDown(true); err != nil {
			t.Fatal(err)
		}
		r.send(r.client, relayAddr, "during")
		r.want(r.server, 100*time.Millisecond, "before")
		if err := r.path.SetDown(false); err != nil {
			t.Fatal(err)
		}
		r.send(r.client, relayAddr, "after")
		r.want(r.server, 100*time.Millisecond, "after")
		if n := r.path.Report().Up.DropsDown; n != 1 {
			t.Errorf("%d packets dropped while down, want 1", n)
		}
	})
}

func TestApplyChangesOneDirection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Up: link.Spec{DelayMs: 10}})
		defer r.close()
		if err := r.path.Apply(Up, link.Change{DelayMs: ptr(50.0)}); err != nil {
			t.Fatal(err)
		}
		r.send(r.client, relayAddr, "x")
		if got := r.want(r.server, time.Second, "x"); got[0].at != 50*time.Millisecond {
			t.Errorf("after %v, want 50ms", got[0].at)
		}
		if err := r.path.Apply(Down, link.Change{Loss: ptr(2.0)}); err == nil {
			t.Error("a loss of 200 % was taken")
		}
	})
}

func TestRebindChangesThePort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		defer r.close()
		r.send(r.client, relayAddr, "one")
		before := r.want(r.server, time.Second, "one")[0].from
		if err := r.path.Rebind(); err != nil {
			t.Fatal(err)
		}
		r.send(r.server, before, "to the old port")
		r.want(r.client, time.Second)
		r.send(r.client, relayAddr, "two")
		after := r.want(r.server, time.Second, "two")[0].from
		if before == after {
			t.Errorf("the server still sees %v", after)
		}
		r.send(r.server, after, "to the new port")
		r.want(r.client, time.Second, "to the new port")
	})
}

// Each client has a port of its own, and only the server may answer to it.
func TestClientsAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		defer r.close()
		other := r.net.Open(netip.MustParseAddrPort("10.0.0.2:1000"), devicetest.Options{})
		defer other.Close()
		r.send(r.client, relayAddr, "a")
		a := r.want(r.server, time.Second, "a")[0].from
		r.send(other, relayAddr, "b")
		b := r.want(r.server, time.Second, "b")[0].from
		if a == b {
			t.Fatalf("both clients come from %v", a)
		}
		r.send(other, a, "not from the server")
		r.send(r.server, a, "answer")
		r.want(r.client, time.Second, "answer")
		if rep := r.path.Report(); rep.Strangers != 1 || rep.Clients != 2 {
			t.Errorf("%d strangers, %d clients; want 1 and 2", rep.Strangers, rep.Clients)
		}
	})
}

// The emulator writes new UDP checksums, so it must do what a receiver does with a damaged packet.
func TestCorruptedPacketsAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Up: link.Spec{Corrupt: 1}})
		defer r.close()
		r.send(r.client, relayAddr, "damaged")
		r.want(r.server, time.Second)
		if n := r.path.Report().Corrupted; n != 1 {
			t.Errorf("%d packets counted as corrupted, want 1", n)
		}
	})
}

func TestHistogram(t *testing.T) {
	var h Histogram
	if h.Quantile(0.5) != 0 {
		t.Error("the median of nothing is not 0")
	}
	for i := range 1000 {
		h.Add(time.Duration(i+1) * 10 * time.Microsecond)
	}
	h.Add(-time.Second)
	for _, tt := range []struct {
		q    float64
		want time.Duration
	}{{0.5, 5 * time.Millisecond}, {0.99, 9900 * time.Microsecond}, {1, 10 * time.Millisecond}} {
		got := h.Quantile(tt.q)
		if got < tt.want-20*time.Microsecond || got > tt.want+tt.want/10 {
			t.Errorf("quantile %v: %v, want %v or up to 10 %% more", tt.q, got, tt.want)
		}
	}
	if h.Max() != 10*time.Millisecond || h.Count() != 1001 {
		t.Errorf("max %v, count %d", h.Max(), h.Count())
	}
	for i := range buckets - 1 { // every bucket ends where the next one begins
		h := Histogram{}
		h.Add(upper(i) - time.Microsecond)
		if h.buckets[i] != 1 {
			t.Fatalf("%v is not in bucket %d", upper(i)-time.Microsecond, i)
		}
	}
}

// Clients of two servers share the links: the second packet waits for the first, and each answer finds its own client.
func TestTwoServersShareTheLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Up: link.Spec{RateMbps: 1}})
		defer r.close()
		second := r.net.Open(netip.MustParseAddrPort("10.1.0.2:443"), devicetest.Options{})
		defer second.Close()
		entry := netip.MustParseAddrPort("10.0.0.9:10")
		dial := func() (device.Device, error) {
			return r.net.Open(netip.MustParseAddrPort("10.1.0.9:700"), devicetest.Options{}), nil
		}
		if err := r.path.addServer(&entrance{r.net.Open(entry, devicetest.Options{}), second.LocalAddr(), dial}); err != nil {
			t.Fatal(err)
		}
		c := make(chan arrival, 10)
		r.got[second] = c
		go func() {
			var b device.Batch
			for second.Read(&b) == nil {
				c <- arrival{string(b.Packets[0].Data), time.Since(r.start), b.Packets[0].From}
			}
		}()
		payload := string(make([]byte, 97)) // with its headers a millisecond at 1 Mbit/s
		r.send(r.client, relayAddr, payload)
		r.send(r.client, entry, payload)
		first := r.want(r.server, 10*time.Millisecond, payload)[0]
		other := r.want(second, 0, payload)[0]
		if first.at != time.Millisecond || other.at != 2*time.Millisecond {
			t.Errorf("arrived after %v and %v, want 1ms and 2ms", first.at, other.at)
		}
		r.send(second, other.from, "from the second")
		if back := r.want(r.client, time.Second, "from the second"); back[0].from != entry {
			t.Errorf("the second server's answer came from %v, want %v", back[0].from, entry)
		}
		if err := r.path.addServer(&entrance{r.net.Open(netip.MustParseAddrPort("10.0.0.9:11"), devicetest.Options{}), netip.AddrPort{}, dial}); err == nil {
			t.Error("took a server without an address")
		}
	})
}
