package link

import (
	"testing"
	"time"

	"braid/clock"

	"pgregory.net/rapid"
)

func TestRateAndDelay(t *testing.T) {
	r := newRig(t, Spec{RateMbps: 12, DelayMs: 10}, 1) // 1500 bytes a millisecond
	r.send(3, 1500)
	r.drain()
	r.want(arrival{0, 11}, arrival{1, 12}, arrival{2, 13})
	if c := r.link.Counters(); c.QueueDelay != 6*time.Millisecond || c.MaxQueueDelay != 3*time.Millisecond || c.MaxQueueBytes != 4500 {
		t.Errorf("queue delay %v, longest %v, most bytes %d; want 6ms, 3ms, 4500", c.QueueDelay, c.MaxQueueDelay, c.MaxQueueBytes)
	}
}

func TestNoRateTakesNoTime(t *testing.T) {
	r := newRig(t, Spec{DelayMs: 2}, 1)
	r.now = ms(5)
	r.send(2, 9000)
	r.drain()
	r.want(arrival{0, 7}, arrival{1, 7})
}

func TestLongRunRateIsExact(t *testing.T) {
	r := newRig(t, Spec{RateMbps: 7, QueuePackets: 10000}, 1) // 1500 bytes take 1714285.714... ns
	r.send(7000, 1500)
	r.drain()
	if got := r.got[6999].AtMs; got != 12000 {
		t.Errorf("84 Mbit left a 7 Mbit/s link after %v ms, want 12000", got)
	}
}

func TestDropTail(t *testing.T) {
	for _, c := range []struct {
		name    string
		spec    Spec
		size    int
		fits    int
		bytes   int
		packets int
	}{
		{"bytes", Spec{RateMbps: 12, QueueBytes: 4600}, 1500, 3, 4500, 3},
		{"packets", Spec{RateMbps: 12, QueuePackets: 5}, 100, 5, 500, 5},
		{"one BDP of twice the delay", Spec{RateMbps: 12, DelayMs: 10}, 1500, 20, 30000, 20},
		{"half a BDP of the RTT", Spec{RateMbps: 12, DelayMs: 10, RTTMs: 40, QueueBDP: 0.5}, 1500, 20, 30000, 20},
		{"never under 16 packets", Spec{RateMbps: 12, DelayMs: 1}, 1500, 16, 24000, 16},
		{"trace, one BDP of its mean", Spec{TraceMs: []int64{1}, DelayMs: 10}, 1500, 20, 30000, 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.spec, 1)
			if v := r.send(c.fits, c.size); v != Accepted {
				t.Fatalf("packet %d of %d was %v", c.fits, c.fits, v)
			}
			if v := r.send(1, c.size); v != DroppedQueue {
				t.Errorf("packet %d was %v", c.fits+1, v)
			}
			if b, n := r.link.Queue(r.now); b != c.bytes || n != c.packets {
				t.Errorf("queue holds %d bytes in %d packets, want %d in %d", b, n, c.bytes, c.packets)
			}
			r.drain()
			if got := int(r.link.Counters().Delivered); got != c.fits {
				t.Errorf("%d delivered, want %d", got, c.fits)
			}
		})
	}
}

func TestDepartingPacketMakesRoom(t *testing.T) {
	r := newRig(t, Spec{RateMbps: 12, QueuePackets: 1}, 1)
	r.send(1, 1500)
	r.now = ms(1) // the very moment of its departure
	if v := r.send(1, 1500); v != Accepted {
		t.Errorf("packet was %v although the queue has just emptied", v)
	}
	r.drain()
	r.want(arrival{0, 1}, arrival{1, 2})
}

func TestDownAndMTU(t *testing.T) {
	r := newRig(t, Spec{RateMbps: 12, DelayMs: 10, MTU: 1400, Changes: []Change{{AtS: 0.0015, Down: value(true)}, {AtS: 1, Down: value(false)}}}, 1)
	if v := r.send(1, 1401); v != DroppedMTU {
		t.Errorf("oversized packet was %v", v)
	}
	r.send(3, 1400) // the second is in transmission when the link goes down; the first is on the wire and arrives
	r.to(ms(2))
	if v := r.send(1, 100); v != DroppedDown {
		t.Errorf("packet for a link that is down was %v", v)
	}
	r.to(ms(1000))
	if v := r.send(1, 1400); v != Accepted {
		t.Errorf("packet after the link came back was %v", v)
	}
	r.drain()
	r.want(arrival{1, 10 + 1400.0/1500}, arrival{5, 1010 + 1400.0/1500})
	if c := r.link.Counters(); c.DropsDown != 3 || c.DropsMTU != 1 {
		t.Errorf("%d down drops and %d MTU drops, want 3 and 1", c.DropsDown, c.DropsMTU)
	}
}

func TestRateStepDuringTransmission(t *testing.T) {
	r := newRig(t, Spec{RateMbps: 12, Changes: []Change{{AtS: 0.0005, RateMbps: value(6.0)}}}, 1)
	r.send(2, 1500) // half of the first at 12, then half speed
	r.drain()
	r.want(arrival{0, 1.5}, arrival{1, 3.5})
}

func TestRateRampIsIntegrated(t *testing.T) {
	// From 0 s to 1 s the rate falls from 10 to 2 Mbit/s: the area under it is 6 Mbit.
	r := newRig(t, Spec{RateMbps: 10, QueuePackets: 1000, Changes: []Change{{AtS: 0, OverS: 1, RateMbps: value(2.0)}}}, 1)
	r.send(500+250, 1500) // 6 Mbit, then 3 Mbit at 2 Mbit/s
	r.drain()
	if got := r.got[499].AtMs; absDiff(got, 1000) > 0.01 {
		t.Errorf("6 Mbit left after %v ms, want 1000", got)
	}
	if got := r.got[749].AtMs; absDiff(got, 2500) > 0.01 {
		t.Errorf("9 Mbit left after %v ms, want 2500", got)
	}
}

func TestApply(t *testing.T) {
	r := newRig(t, Spec{RateMbps: 12, DelayMs: 1, Changes: []Change{{AtS: 1, RateMbps: value(1.0)}}}, 1)
	r.send(1, 1500)
	r.to(ms(0.5))
	if err := r.link.Apply(r.now, Change{RateMbps: value(24.0), DelayMs: value(3.0)}); err != nil {
		t.Fatal(err)
	}
	r.drain()
	r.want(arrival{0, 0.75 + 3})
	r.now = ms(2000) // the scheduled change is forgotten
	r.send(1, 1500)
	r.drain()
	r.want(arrival{1, 2003.5})
	if err := r.link.Apply(r.now, Change{Loss: value(1.5)}); err == nil {
		t.Error("a loss of 1.5 was accepted")
	}
}

// Whatever a link is made of, every packet is accounted for, arrivals are in order of time, and NextEvent never lies in the past
// (the rig checks the last two).
func TestConservation(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		share := rapid.SampledFrom([]float64{0, 0, 0.1, 0.5, 1})
		spec := Spec{
			DelayMs: rapid.SampledFrom([]float64{0, 1, 7.3}).Draw(rt, "delay"), Loss: share.Draw(rt, "loss"),
			Duplicate: share.Draw(rt, "duplicate"), Corrupt: share.Draw(rt, "corrupt"),
			JitterMs: rapid.SampledFrom([]float64{0, 0, 5}).Draw(rt, "jitter"), InOrder: rapid.Bool().Draw(rt, "in order"),
			MTU: rapid.SampledFrom([]int{0, 0, 1000}).Draw(rt, "mtu"), QueuePackets: rapid.IntRange(0, 9).Draw(rt, "queue"),
		}
		switch rapid.IntRange(0, 3).Draw(rt, "medium") {
		case 1:
			spec.RateMbps = rapid.Float64Range(0.01, 50).Draw(rt, "rate")
		case 2:
			spec.TraceMs = rapid.SampledFrom([][]int64{{1}, {0, 0, 3, 9, 9}, {5, 200}}).Draw(rt, "trace")
		case 3:
			spec.RateMbps = 5
			spec.Changes = []Change{{AtS: 0.01, OverS: 0.1, RateMbps: value(0.5), DelayMs: value(0.1), Loss: value(0.9)},
				{AtS: 0.05, RateMbps: value(30.0), Down: value(true)}, {AtS: 0.2, Down: value(false)}}
		}
		if rapid.Bool().Draw(rt, "reordering") {
			spec.Reorder = &Reorder{Probability: 0.3, DelayMs: 4}
		}
		if rapid.Bool().Draw(rt, "bursts") {
			spec.GilbertElliott = &GilbertElliott{PGoodBad: 0.1, PBadGood: 0.5, LossBad: 0.8}
		}
		r := newRig(t, spec, rapid.Uint64().Draw(rt, "seed"))
		for range rapid.IntRange(0, 60).Draw(rt, "bursts") {
			r.send(rapid.IntRange(0, 5).Draw(rt, "packets"), rapid.IntRange(40, 1500).Draw(rt, "size"))
			r.to(r.now.Add(time.Duration(rapid.IntRange(0, 20e6).Draw(rt, "gap"))))
			if spec.RateMbps > 0 && rapid.IntRange(0, 9).Draw(rt, "apply") == 0 {
				if err := r.link.Apply(r.now, Change{RateMbps: value(3.0), OverS: 0.05}); err != nil {
					rt.Fatal(err)
				}
			}
		}
		r.drain()
		c := r.link.Counters()
		if c.Offered+c.Duplicated != c.Delivered+c.Drops() || c.Offered != int64(r.sent) || c.Delivered != int64(len(r.got)) {
			rt.Fatalf("packets unaccounted for: %+v", *c)
		}
		for i := 1; i < len(r.got); i++ {
			if r.got[i].AtMs < r.got[i-1].AtMs || (spec.InOrder && r.got[i].N < r.got[i-1].N && spec.Reorder == nil) {
				rt.Fatalf("out of order: %v", r.got[i-1:i+1])
			}
		}
	})
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	for name, spec := range map[string]Spec{
		"rate":  {RateMbps: 100, DelayMs: 5, Loss: 0.01},
		"trace": {TraceMs: []int64{1, 1, 2}, DelayMs: 5},
		"all": {RateMbps: 100, DelayMs: 5, JitterMs: 1, Duplicate: 0.1, Corrupt: 0.1, Reorder: &Reorder{0.1, 3},
			Changes: []Change{{AtS: 0, OverS: 1e5, RateMbps: value(50.0)}}},
	} {
		r := newRig(t, spec, 1)
		run := func() {
			r.send(20, 1500)
			r.to(r.now.Add(3 * time.Millisecond))
			r.got = r.got[:0]
		}
		for range 50 {
			run()
		}
		if n := testing.AllocsPerRun(100, run); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkLink(b *testing.B) {
	pool := NewPool(1500)
	l, err := New("bench", Spec{RateMbps: 1000, DelayMs: 5, Loss: 0.001}, 1, pool)
	if err != nil {
		b.Fatal(err)
	}
	var now clock.Time
	b.ReportAllocs()
	for b.Loop() {
		p := pool.Get()
		p.Data = p.Data[:cap(p.Data)]
		p.Size = 1500
		l.Enqueue(now, p)
		now = now.Add(12 * time.Microsecond)
		if l.NextEvent() > now {
			continue
		}
		for {
			p, _, ok := l.Dequeue(now)
			if !ok {
				break
			}
			pool.Put(p)
		}
	}
}
