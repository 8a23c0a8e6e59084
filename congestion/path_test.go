package congestion

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"

	"braid/clock"
)

// The smallest network that closes the loop: flows with endless data over drop-tail bottlenecks, every packet acknowledged,
// losses found by three later deliveries. It shows that a controller does on a path what its formulas promise; the
// real measurements are the simulator's, with the real TCP.

const (
	pathPacket  = 1500
	pathPayload = 1448
)

type bottleneck struct {
	rate   float64 // bytes/s
	rtt    time.Duration
	buffer float64 // bytes
	loss   float64
	rand   *rand.Rand
	free   clock.Time // when the transmitter has sent what it holds
}

func newBottleneck(mbps float64, rtt time.Duration, bdps, loss float64, seed uint64) *bottleneck {
	rate := mbps * 1e6 / 8
	return &bottleneck{
		rate: rate, rtt: rtt, buffer: max(16*pathPacket, bdps*rate*rtt.Seconds()), loss: loss, rand: rand.New(rand.NewPCG(seed, 7)),
	}
}

// transmit returns when the ACK of a packet entered now comes back; false: it is dropped or lost.
func (l *bottleneck) transmit(now clock.Time) (clock.Time, bool) {
	l.free = max(l.free, now)
	if l.free.Sub(now).Seconds()*l.rate+pathPacket > l.buffer+pathPacket {
		return 0, false
	}
	l.free = l.free.Add(time.Duration(pathPacket / l.rate * 1e9))
	return l.free.Add(l.rtt), l.rand.Float64() >= l.loss
}

type pathPacketState struct {
	seq                    int64
	sent, first, stampedAt clock.Time
	delivered              int64
	weighted, weight       float64
	done                   bool // acknowledged or lost
}

type pathFlow struct {
	c         Controller
	group     Group
	id        int
	link      *bottleneck
	start     clock.Time
	packets   []pathPacketState // from the oldest outstanding one
	base      int64             // seq of packets[0]
	next      int64             // seq of the next packet
	inFlight  int64
	delivered int64
	weighted  float64
	stampedAt clock.Time
	first     clock.Time
	srtt, min time.Duration
	round     int64
	pacer     clock.Time
	recover   int64 // seq that ends the recovery; -1: none
	lastAck   clock.Time
	rtts      float64 // sum over ACKs
	acks      float64
	full      bool       // the window stopped sending since the last ACK
	wake      clock.Time // when the earliest queued send event comes; Never: none
}

type pathEvent struct {
	at    clock.Time
	order int64
	flow  *pathFlow
	ack   int64 // seq; -1: try to send
}

type pathQueue []pathEvent

func (q pathQueue) Len() int { return len(q) }
func (q pathQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}
func (q pathQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *pathQueue) Push(x any)   { *q = append(*q, x.(pathEvent)) }
func (q *pathQueue) Pop() any     { n := len(*q) - 1; x := (*q)[n]; *q = (*q)[:n]; return x }

type network struct {
	now   clock.Time
	queue pathQueue
	order int64
	flows []*pathFlow
}

func (n *network) schedule(at clock.Time, f *pathFlow, ack int64) {
	n.order++
	heap.Push(&n.queue, pathEvent{at, n.order, f, ack})
}

func (n *network) add(c Controller, g Group, id int, l *bottleneck, start time.Duration) *pathFlow {
	f := &pathFlow{c: c, group: g, id: id, link: l, start: clock.Time(start), recover: -1, lastAck: clock.Time(start), wake: clock.Never}
	n.flows = append(n.flows, f)
	n.wake(f, f.start)
	return f
}

// connect adds a connection with one subflow on each link.
func (n *network) connect(name string, seed uint64, start time.Duration, links ...*bottleneck) []*pathFlow {
	newGroup, err := ByName(name)
	if err != nil {
		panic(err)
	}
	g := newGroup()
	var out []*pathFlow
	for i, l := range links {
		c := g.Join(i, Config{MSS: pathPayload, Rand: rand.New(rand.NewPCG(seed, uint64(i)))})
		out = append(out, n.add(c, g, i, l, start+time.Duration(i)*time.Millisecond))
	}
	return out
}

func (n *network) run(until time.Duration) {
	for len(n.queue) > 0 && n.queue[0].at <= clock.Time(until) {
		e := heap.Pop(&n.queue).(pathEvent)
		n.now = e.at
		switch {
		case e.ack >= 0:
			n.acknowledge(e.flow, e.ack)
		case e.at != e.flow.wake: // an earlier one took its place
			continue
		default:
			e.flow.wake = clock.Never
		}
		n.send(e.flow)
	}
	n.now = clock.Time(until)
}

func (n *network) send(f *pathFlow) {
	if f.inFlight > 0 && n.now.Sub(f.lastAck) > time.Second+f.srtt {
		n.timeout(f)
	}
	for {
		f.full = f.full || f.inFlight+pathPayload > f.c.Window()
		if f.inFlight+pathPayload > f.c.Window() {
			n.wake(f, n.now.Add(time.Second+f.srtt)) // a timer in the place of the RTO
			return
		}
		rate := f.c.PacingRate()
		if rate == 0 && f.srtt > 0 {
			rate = 1.2 * float64(f.c.Window()) / f.srtt.Seconds()
			if f.c.State().Startup {
				rate = rate / 1.2 * 2
			}
		}
		if f.pacer > n.now {
			n.wake(f, f.pacer)
			return
		}
		n.sendOne(f)
		if rate > 0 {
			f.pacer = max(f.pacer, n.now-1e6).Add(time.Duration(pathPayload / rate * 1e9))
		}
	}
}

// wake makes the flow try to send at the given time at the latest.
func (n *network) wake(f *pathFlow, at clock.Time) {
	if at < f.wake {
		f.wake = at
		n.schedule(at, f, -1)
	}
}

func (n *network) sendOne(f *pathFlow) {
	if f.inFlight == 0 {
		f.first, f.stampedAt, f.lastAck = n.now, n.now, n.now
	}
	w := f.c.OnSend(Send{Now: n.now, Bytes: pathPayload, InFlight: f.inFlight, SRTT: max(f.srtt, f.link.rtt)})
	f.packets = append(f.packets, pathPacketState{
		seq: f.next, sent: n.now, first: f.first, stampedAt: f.stampedAt, delivered: f.delivered, weighted: f.weighted, weight: w,
	})
	if at, ok := f.link.transmit(n.now); ok {
		n.schedule(at, f, f.next)
	}
	f.next++
	f.inFlight += pathPayload
}

func (n *network) acknowledge(f *pathFlow, seq int64) {
	if seq < f.base {
		return
	}
	p := &f.packets[seq-f.base]
	if p.done {
		return
	}
	p.done = true
	prior := f.inFlight
	f.inFlight -= pathPayload
	f.delivered += pathPayload
	f.weighted += float64(pathPayload * p.weight)
	f.lastAck = n.now
	rtt := n.now.Sub(p.sent)
	f.rtts += rtt.Seconds()
	f.acks++
	if f.srtt == 0 {
		f.srtt, f.min = rtt, rtt
	}
	f.srtt += (rtt - f.srtt) / 8
	f.min = min(f.min, rtt)
	s := Sample{
		Now: n.now, Delivered: f.delivered, PriorDelivered: p.delivered, Weighted: f.weighted - p.weighted,
		Interval: max(p.sent.Sub(p.first), n.now.Sub(p.stampedAt)), PriorInFlight: prior, Acked: pathPayload,
		RTT: rtt, SRTT: f.srtt, MinRTT: f.min, WindowLimited: f.full, RoundStart: p.delivered >= f.round,
	}
	f.full = f.inFlight+2*pathPayload > f.c.Window() || f.full && !s.RoundStart
	if s.RoundStart {
		f.round = f.delivered
	}
	f.first, f.stampedAt = p.sent, n.now
	before := f.inFlight
	for i := range f.packets {
		if q := &f.packets[i]; q.seq >= seq-2 {
			break
		} else if !q.done {
			q.done = true
			f.inFlight -= pathPayload
			s.Lost += pathPayload
		}
	}
	for len(f.packets) > 0 && f.packets[0].done {
		f.packets = f.packets[1:]
		f.base++
	}
	switch {
	case s.Lost > 0 && f.recover < 0:
		f.recover = f.next
		f.c.OnCongestion(n.now, Loss, before)
		f.c.OnRecoveryEnter(n.now, f.inFlight)
	case f.recover >= 0 && f.base >= f.recover:
		f.recover = -1
		f.c.OnRecoveryExit(n.now, f.inFlight)
	}
	s.InFlight = f.inFlight
	s.InRecovery = f.recover >= 0
	f.c.OnAck(&s)
}

func (n *network) timeout(f *pathFlow) {
	f.c.OnCongestion(n.now, Timeout, f.inFlight)
	f.inFlight = 0
	for i := range f.packets {
		f.packets[i].done = true
	}
	f.packets, f.base = nil, f.next
	f.recover = f.next
	f.c.OnRecoveryEnter(n.now, 0)
	f.lastAck = n.now
}

// measure runs the network from warm to until and returns each flow's goodput in Mbit/s and mean RTT in ms.
func (n *network) measure(warm, until time.Duration) (mbps, rtt []float64) {
	n.run(warm)
	before := make([]int64, len(n.flows))
	for i, f := range n.flows {
		before[i], f.rtts, f.acks = f.delivered, 0, 0
	}
	n.run(until)
	for i, f := range n.flows {
		mbps = append(mbps, float64(f.delivered-before[i])*8/1e6/(until-warm).Seconds())
		rtt = append(rtt, 1000*f.rtts/max(f.acks, 1))
	}
	return mbps, rtt
}

// Linux 6.18 on a 100 Mbit/s, 50 ms path with a buffer of one BDP reaches these; ours must be near them. Goodput capacity is
// 100 Mbit/s x 1448 / 1500 = 96.5 Mbit/s here.
func TestSingleFlow(t *testing.T) {
	for _, c := range []struct {
		name   string
		loss   float64
		lo, hi float64 // Mbit/s
		maxRTT float64 // ms; 0: any
	}{
		{"bbr", 0, 91, 97, 60}, {"bbr", 1e-4, 90, 97, 60}, {"bbr", 1e-3, 89, 97, 60}, {"bbr", 1e-2, 87, 96, 60},
		{"bbr-aggregation", 0, 91, 97, 60},
		{"coupledbbr", 0, 91, 97, 60}, {"coupledbbr-cycle", 1e-2, 87, 96, 60},
		{"cubic", 0, 93, 97, 100}, {"cubic", 1e-4, 22, 90, 0}, {"cubic", 1e-3, 5.5, 23, 0}, {"cubic", 1e-2, 1.6, 6.4, 0},
		{"newreno", 0, 90, 97, 100}, {"newreno", 1e-2, 1.6, 6.4, 0},
		{"lia", 0, 90, 97, 100}, {"olia", 0, 90, 97, 100}, {"balia", 0, 90, 97, 100},
	} {
		n := &network{}
		n.connect(c.name, 1, 0, newBottleneck(100, 50*time.Millisecond, 1, c.loss, 3))
		mbps, rtt := n.measure(10*time.Second, 30*time.Second)
		t.Logf("%-16s loss %.2f %%: %.1f Mbit/s, %.1f ms", c.name, 100*c.loss, mbps[0], rtt[0])
		if mbps[0] < c.lo || mbps[0] > c.hi || c.maxRTT > 0 && rtt[0] > c.maxRTT {
			t.Errorf("%s at loss %g: %.1f Mbit/s and %.1f ms, want %g to %g and at most %g", c.name, c.loss, mbps[0], rtt[0], c.lo, c.hi, c.maxRTT)
		}
	}
}

// Idle capacity is used: two free paths give the sum of what single flows would get.
func TestCoupledFreePaths(t *testing.T) {
	for _, name := range []string{"coupledbbr", "lia", "olia", "balia"} {
		n := &network{}
		n.connect(name, 1, 0, newBottleneck(40, 50*time.Millisecond, 1, 0, 3), newBottleneck(20, 50*time.Millisecond, 1, 0, 4))
		mbps, rtt := n.measure(20*time.Second, 40*time.Second)
		t.Logf("%-12s %.1f + %.1f Mbit/s, RTT %.1f, %.1f ms", name, mbps[0], mbps[1], rtt[0], rtt[1])
		if mbps[0]+mbps[1] < 0.95*60*pathPayload/pathPacket {
			t.Errorf("%s: %.1f + %.1f Mbit/s, want 0.95 of the sum of capacities", name, mbps[0], mbps[1])
		}
	}
}

// With two BBR flows on each of two paths, Coupled BBR takes about what one BBR flow would on one; uncoupled BBR takes twice that;
// the literal reading slides onto one path.
func TestCoupledFairness(t *testing.T) {
	total := func(name string, second bool) (sum, least float64) {
		n := &network{}
		links := []*bottleneck{newBottleneck(50, 50*time.Millisecond, 2, 0, 3), newBottleneck(50, 50*time.Millisecond, 2, 0, 4)}
		if !second {
			links = links[:1]
		}
		n.connect(name, 1, 0, links...)
		for i, l := range links {
			for k := range 2 {
				n.connect("bbr", uint64(10*i+k), time.Duration(i+2*k)*100*time.Millisecond, l)
			}
		}
		mbps, _ := n.measure(20*time.Second, 60*time.Second)
		for i := range links {
			sum += mbps[i]
		}
		return sum, min(mbps[0], mbps[len(links)-1]) / sum
	}
	one, _ := total("bbr", false)
	for _, c := range []struct {
		name   string
		lo, hi float64
		least  float64
	}{{"bbr", 1.7, 2.3, 0.4}, {"coupledbbr", 0.8, 1.25, 0.4}, {"coupledbbr-cycle", 0.5, 1.2, 0}} {
		sum, least := total(c.name, true)
		t.Logf("%-16s %.2f of one BBR flow, smaller subflow %.2f", c.name, sum/one, least)
		if r := sum / one; r < c.lo || r > c.hi || least < c.least {
			t.Errorf("%s: %.2f of one BBR flow and a smaller subflow of %.2f, want %g to %g and at least %g", c.name, r, least, c.lo, c.hi, c.least)
		}
	}
}
