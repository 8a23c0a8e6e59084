package schedule

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"braid/clock"
	"braid/seq"
)

func drawView(t *rapid.T, id int) View {
	duration := rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "d"))
	})
	bytes := rapid.Int64Range(0, 1<<24)
	v := View{
		ID: id, SRTT: duration.Draw(t, "srtt"), RTTVar: duration.Draw(t, "rttvar"),
		Rate: rapid.Float64Range(0, 1e9).Draw(t, "rate"), Window: bytes.Draw(t, "window"), InFlight: bytes.Draw(t, "inflight"),
		Retrans: bytes.Draw(t, "retrans"), Loss: rapid.Float64Range(0, 1).Draw(t, "loss"), MSS: rapid.IntRange(1, 9000).Draw(t, "mss"),
		CanSend: rapid.Bool().Draw(t, "can send"), Backup: rapid.Bool().Draw(t, "backup"), Startup: rapid.Bool().Draw(t, "startup"),
		ProbeRTT: rapid.Bool().Draw(t, "probe rtt"), Overdue: rapid.Bool().Draw(t, "overdue"), TimedOut: rapid.Bool().Draw(t, "timed out"),
		Oldest: clock.Never,
	}
	v.MinRTT = min(v.SRTT, duration.Draw(t, "min rtt"))
	if rapid.Bool().Draw(t, "model") {
		v.Bandwidth = v.Rate
	}
	return v
}

func drawQueue(t *rapid.T) Queue {
	start := rapid.Int64Range(1, 1<<30).Draw(t, "unsent")
	length := rapid.Int64Range(0, 1<<22).Draw(t, "length")
	q := Queue{
		Unsent: seq.Range{Start: start, End: start + length}, Acked: max(1, start-rapid.Int64Range(0, 1<<22).Draw(t, "outstanding")),
		Reinject: rapid.Bool().Draw(t, "reinject"), Copyable: rapid.Bool().Draw(t, "copyable"),
		Opening: rapid.Bool().Draw(t, "opening"), Holder: rapid.IntRange(-1, 5).Draw(t, "holder"),
	}
	if length > 0 {
		q.Waiting = rapid.Int64Range(1, length).Draw(t, "waiting")
	}
	q.Edge = q.Acked + rapid.Int64Range(0, 1<<23).Draw(t, "window")
	q.Window = q.Edge - q.Acked
	return q
}

// Every scheduler, whatever it sees: answers are well formed, backups rest while a regular subflow is usable (RFC 8684, Section 3.3.8),
// someone carries new data, and with room and every window open, something is sent.
func TestConformance(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			newScheduler, err := ByName(name)
			if err != nil {
				t.Fatal(err)
			}
			rapid.Check(t, func(t *rapid.T) {
				s := newScheduler()
				now := clock.Time(0)
				next := int64(0) // each step sees a later part of the stream
				members := 0
				for range rapid.IntRange(1, 12).Draw(t, "steps") {
					now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "advance")))
					views := make([]View, rapid.IntRange(1, 5).Draw(t, "subflows"))
					for id := len(views); id < members; id++ {
						s.OnGone(id)
					}
					members = len(views)
					for i := range views {
						views[i] = drawView(t, i)
					}
					q := drawQueue(t)
					q.shift(next)
					next = q.Unsent.End
					check(t, s, now, &q, views)
					s.OnLost(now, 0, q.Unsent)
				}
			})
		})
	}
}

func (q *Queue) shift(d int64) {
	q.Unsent.Start += d
	q.Unsent.End += d
	q.Acked += d
	q.Edge += d
}

func check(t *rapid.T, s Scheduler, now clock.Time, q *Queue, views []View) {
	roles := make([]Assignment, len(views))
	if again := s.Plan(now, q, views, roles); again <= now {
		t.Fatalf("plans again at %v, now %v", again, now)
	}
	carriers, open := 0, true
	for i := range views {
		if usable(views, i) {
			open = open && views[i].CanSend
			if roles[i].Role == NewData {
				carriers++
			}
		}
	}
	if carriers == 0 {
		t.Fatalf("nobody carries new data: %+v", roles)
	}
	sends := false
	for _, i := range rapid.Permutation(indices(len(views))).Draw(t, "order") {
		if !views[i].CanSend {
			continue
		}
		d := s.Pick(now, q, views, roles, i)
		checkDecision(t, q, views, i, d)
		if d.Kind != Wait {
			sends = true
			if r := (seq.Range{Start: q.Unsent.Start, End: min(q.Unsent.End, q.Unsent.Start+int64(views[i].MSS))}); d.Kind == New && !r.Empty() {
				s.OnSent(now, i, d.Kind, r)
			}
		}
	}
	if open && q.room() && !sends {
		t.Fatalf("every window is open, %d bytes have room, and nobody sends", q.Waiting)
	}
}

func checkDecision(t *rapid.T, q *Queue, views []View, i int, d Decision) {
	switch {
	case d.Kind > Copy || d.Else > New:
		t.Fatalf("%+v is no answer", d)
	case d.Skip < 0 || d.From < 0:
		t.Fatalf("%+v: negative", d)
	case (d.Kind == New || d.Else == New) && !q.room():
		t.Fatalf("%+v without room", d)
	case d.Kind == Reinject && !q.Reinject, d.Kind == Copy && !q.Copyable:
		t.Fatalf("%+v, but there is none: %+v", d, q)
	case d.Kind != Wait && !usable(views, i):
		t.Fatalf("%+v on a subflow that is not usable", d)
	case d.Kind == New && int64(d.Skip) > (math.MaxInt64-q.Unsent.Start)/int64(views[i].MSS):
		t.Fatalf("%+v overflows", d)
	case d.Kind == New && q.Unsent.Start+int64(d.Skip*views[i].MSS) >= q.Edge, d.Kind == New && d.From >= q.Edge:
		t.Fatalf("%+v reaches beyond the window's edge %d", d, q.Edge)
	}
}

func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// Whatever befalls the subflows meanwhile, once they are well all data is sent, each byte as new data once.
func TestStreamIsSent(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(outer *testing.T) {
			newScheduler, _ := ByName(name)
			rapid.Check(outer, func(t *rapid.T) {
				h := newHarness(outer, newScheduler(), mbit(20*ms, 30), mbit(50*ms, 20), mbit(90*ms, 40))
				h.q.Edge = 1 << 40
				h.q.Window = 1 << 24
				for range rapid.IntRange(0, 200).Draw(t, "steps") {
					v := &h.views[rapid.IntRange(0, len(h.views)-1).Draw(t, "subflow")]
					switch rapid.IntRange(0, 9).Draw(t, "event") {
					case 0:
						v.CanSend = !v.CanSend
					case 1:
						v.Overdue = !v.Overdue
					case 2:
						v.TimedOut = !v.TimedOut
					case 3:
						v.InFlight = rapid.Int64Range(0, 100*testMSS).Draw(t, "in flight")
					case 4:
						h.write(rapid.IntRange(1, 50).Draw(t, "packets"))
					case 5:
						v.SRTT = time.Duration(rapid.IntRange(1, 300).Draw(t, "rtt")) * ms
						v.MinRTT = v.SRTT
					case 6:
						h.q.Opening = !h.q.Opening
					default:
						h.plan()
						if i := v.ID; v.CanSend {
							h.send(i)
						}
					}
				}
				if len(h.views) > 1 && rapid.Bool().Draw(t, "one leaves") {
					h.views = h.views[:2]
					h.s.OnGone(2)
				}
				finish(t, h)
			})
		})
	}
}

// finish makes all subflows well, sends the rest and checks the whole.
func finish(t *rapid.T, h *harness) {
	for i := range h.views {
		h.views[i].CanSend, h.views[i].Overdue, h.views[i].TimedOut = true, false, false
	}
	for rounds := 0; h.q.Waiting > 0; rounds++ {
		if rounds > 20000 {
			t.Fatalf("%d bytes are left and nobody sends them: %+v", h.q.Waiting, h.q)
		}
		h.advance(ms)
		for i := range h.views {
			h.send(i)
		}
	}
	var all seq.Set
	for _, x := range h.sent {
		if x.kind == New {
			if all.Overlaps(x.r) {
				t.Fatalf("%+v was sent before", x)
			}
			all.Add(x.r)
		}
	}
	if all.Len() != h.q.Unsent.End-1 {
		t.Fatalf("%d bytes sent, %d written", all.Len(), h.q.Unsent.End-1)
	}
}

// The same calls give the same answers.
func TestDeterminism(t *testing.T) {
	for _, name := range Names() {
		newScheduler, _ := ByName(name)
		run := func() (got []sent) {
			h := newHarness(t, newScheduler(), mbit(20*ms, 30), mbit(50*ms, 20), mbit(90*ms, 40))
			for k := range 60 {
				h.send(k % 3)
				h.advance(ms)
			}
			return h.sent
		}
		if a, b := run(), run(); !slices.Equal(a, b) {
			t.Errorf("%s: %v\n%v", name, a, b)
		}
	}
}

// bench runs a scheduler as a busy connection does, three subflows taking packets in turn.
func bench(s Scheduler) (step func()) {
	views := []View{mbit(20*ms, 30), mbit(50*ms, 20), mbit(90*ms, 40)}
	for i := range views {
		views[i].ID, views[i].MSS, views[i].CanSend, views[i].Window = i, testMSS, true, 1<<20
	}
	roles := make([]Assignment, len(views))
	now := clock.Time(0)
	q := Queue{Unsent: seq.Range{Start: 1, End: 1 + 4<<20}, Waiting: 4 << 20, Acked: 1, Edge: 1 + 8<<20, Window: 8 << 20, Holder: -1, Copyable: true}
	i := 0
	return func() {
		now += clock.Time(50 * time.Microsecond)
		s.Plan(now, &q, views, roles)
		d := s.Pick(now, &q, views, roles, i)
		start := max(d.From, q.Unsent.Start+int64(d.Skip*testMSS))
		s.OnSent(now, i, d.Kind, seq.Range{Start: start, End: start + testMSS})
		q.Unsent.Start += testMSS
		q.Unsent.End += testMSS
		q.Acked += testMSS
		q.Edge += testMSS
		i = (i + 1) % len(views)
	}
}

func TestAllocations(t *testing.T) {
	for _, name := range Names() {
		newScheduler, _ := ByName(name)
		step := bench(newScheduler())
		for range 20000 { // let scratch memory reach its size
			step()
		}
		if n := testing.AllocsPerRun(5000, step); n != 0 {
			t.Errorf("%s allocates %v times a packet", name, n)
		}
	}
}

func BenchmarkPick(b *testing.B) {
	for _, name := range Names() {
		newScheduler, _ := ByName(name)
		b.Run(name, func(b *testing.B) {
			step := bench(newScheduler())
			b.ReportAllocs()
			for b.Loop() {
				step()
			}
		})
	}
}
