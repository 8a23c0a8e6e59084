package mptcp

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"braid/clock"
)

// fakeTask is a task whose deadline and packets a test sets.
type fakeTask struct {
	task
	at      clock.Time
	packets int
	size    int
	fired   []clock.Time
	onFire  func()
}

func (f *fakeTask) pollTask(clock.Time, []byte) (Packet, bool) {
	if f.packets == 0 {
		return Packet{}, false
	}
	f.packets--
	return Packet{Len: f.size}, true
}

func (f *fakeTask) expire(now clock.Time) {
	f.fired = append(f.fired, now)
	f.at = clock.Never
	if f.onFire != nil {
		f.onFire()
	}
}

func (f *fakeTask) deadline() clock.Time { return f.at }

// Against a model: NextTimeout is the earliest deadline, and HandleTimeout fires what is due, once, whatever moved before.
func TestTimersAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := NewStack(Config{Entropy: entropy(1)})
		var tasks []*fakeTask
		now := clock.Time(0)
		for range rapid.IntRange(1, 20).Draw(t, "tasks") {
			f := &fakeTask{at: clock.Never}
			s.start(&f.task, f)
			tasks = append(tasks, f)
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			f := rapid.SampledFrom(tasks).Draw(t, "task")
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				f.at = now + clock.Time(rapid.IntRange(1, 100).Draw(t, "in"))
				s.rearmTask(&f.task)
			case 1:
				f.at = clock.Never
				s.rearmTask(&f.task)
			case 2:
				if len(tasks) > 1 {
					s.stop(&f.task)
					tasks = slices.DeleteFunc(tasks, func(o *fakeTask) bool { return o == f })
				}
			case 3:
				now += clock.Time(rapid.IntRange(0, 60).Draw(t, "pass"))
				var due []*fakeTask
				for _, f := range tasks {
					if f.at <= now {
						due = append(due, f)
					}
					f.fired = nil
				}
				s.HandleTimeout(now)
				for _, f := range tasks {
					want := 0
					if slices.Contains(due, f) {
						want = 1
					}
					if len(f.fired) != want {
						t.Fatalf("fired %d times, want %d", len(f.fired), want)
					}
				}
				for { // drain
					if _, ok := s.PollPacket(now, nil); !ok {
						break
					}
				}
			}
			first := clock.Never
			for _, f := range tasks {
				first = min(first, f.at)
			}
			if got := s.NextTimeout(); got != first {
				t.Fatalf("next timeout %v, want %v", got, first)
			}
		}
		if s.tasks != len(tasks) {
			t.Fatalf("%d tasks counted, %d alive", s.tasks, len(tasks))
		}
	})
}

// A deadline that moves back on every ACK does not touch the heap.
func TestTimerMovesBackLazily(t *testing.T) {
	s := NewStack(Config{Entropy: entropy(1)})
	var tasks []*fakeTask
	for i := range 1000 {
		f := &fakeTask{at: clock.Time(1000 + i)}
		s.start(&f.task, f)
		s.rearmTask(&f.task)
		tasks = append(tasks, f)
	}
	s.NextTimeout()
	busy := tasks[500]
	n := testing.AllocsPerRun(1000, func() {
		busy.at += 1000
		s.rearmTask(&busy.task)
		if s.NextTimeout() != 1000 {
			t.Fatal("wrong timeout")
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
	if at := s.timers.entries[busy.slot-1].at; at != 1500 {
		t.Errorf("the heap has it at %v", at)
	}
}

// Polling is fair: a task with much to send gets a train of 44 packets or 64 KiB, then the next one has its turn.
func TestPollIsFair(t *testing.T) {
	s := NewStack(Config{Entropy: entropy(1)})
	small, large, one := &fakeTask{at: clock.Never, packets: 1000, size: 1000}, &fakeTask{at: clock.Never, packets: 1000, size: 16000}, &fakeTask{at: clock.Never, packets: 1, size: 7}
	for _, f := range []*fakeTask{small, large, one} {
		s.start(&f.task, f)
		s.wakeTask(&f.task)
	}
	var trains []int
	last := 0
	for range 200 {
		p, ok := s.PollPacket(0, nil)
		if !ok {
			t.Fatal("nothing to send")
		}
		if p.Len == last {
			trains[len(trains)-1]++
		} else {
			trains = append(trains, 1)
		}
		last = p.Len
	}
	if want := []int{44, 5, 1, 44, 5, 44, 5}; !slices.Equal(trains[:len(want)], want) {
		t.Errorf("trains of %v, want %v", trains, want)
	}
}

// A task that stops while it waits in the lists is asked for nothing any more; one that is stopped by another's timeout does not fire.
func TestStoppedTask(t *testing.T) {
	s := NewStack(Config{Entropy: entropy(1)})
	a, b := &fakeTask{at: 1, packets: 5}, &fakeTask{at: 2, packets: 5}
	for _, f := range []*fakeTask{a, b} {
		s.start(&f.task, f)
		s.wakeTask(&f.task)
		s.rearmTask(&f.task)
	}
	a.onFire = func() { s.stop(&b.task) }
	s.HandleTimeout(10)
	if len(a.fired) != 1 || len(b.fired) != 0 {
		t.Errorf("fired %d and %d times", len(a.fired), len(b.fired))
	}
	s.stop(&a.task)
	if _, ok := s.PollPacket(10, nil); ok || s.NextTimeout() != clock.Never || s.tasks != 0 {
		t.Error("stopped tasks are still there")
	}
}

func BenchmarkTimers(b *testing.B) {
	s := NewStack(Config{Entropy: entropy(1)})
	rng := rand.New(rand.NewPCG(1, 1))
	var tasks []*fakeTask
	for range 10000 {
		f := &fakeTask{at: clock.Time(rng.IntN(1 << 30))}
		s.start(&f.task, f)
		s.rearmTask(&f.task)
		tasks = append(tasks, f)
	}
	for i := 0; b.Loop(); i++ {
		f := tasks[i%len(tasks)]
		f.at = clock.Time(rng.IntN(1 << 30))
		s.rearmTask(&f.task)
		s.NextTimeout()
	}
}
