package emulator

import (
	"sync"
	"time"

	"braid/clock"
	"braid/link"
)

// loop drives links in real time: a goroutine that sleeps until a packet falls due, takes what is due out of the links, and sends it.
type loop struct {
	base  time.Time
	grain time.Duration
	wait  waiter
	cargo cargo

	mu     sync.Mutex
	links  []*link.Link
	pool   *link.Pool
	target clock.Time // when the loop looks next
	closed bool
	late   Histogram

	running sync.WaitGroup
}

// cargo is what a loop moves.
type cargo interface {
	due() clock.Time     // when take may next have something; the lock is held
	take(now clock.Time) // moves what is due out of the links; the lock is held
	send()               // sends what was taken
}

const (
	defaultGrain = 100 * time.Microsecond
	packetSize   = 2048 // initial room of a packet
)

// begin starts the loop, whose links are made.
func (l *loop) begin() {
	if l.grain <= 0 {
		l.grain = defaultGrain
	}
	l.base, l.target = time.Now(), clock.Never
	l.running.Add(1)
	go l.run()
}

// now is the links' time. The lock is held, so that it never goes back for them.
func (l *loop) now() clock.Time { return clock.Time(time.Since(l.base)) }

// hurry wakes the loop if something falls due before it would look. The lock is held.
func (l *loop) hurry() {
	if next := l.cargo.due(); next < l.target {
		l.target = next
		l.wait.wake()
	}
}

// nextOfLinks is when a link may next have something.
func (l *loop) nextOfLinks() clock.Time {
	next := clock.Never
	for _, k := range l.links {
		next = min(next, k.NextEvent())
	}
	return next
}

func (l *loop) run() {
	defer l.running.Done()
	leave := l.wait.enter()
	defer leave()
	for {
		l.mu.Lock()
		if l.closed {
			l.mu.Unlock()
			return
		}
		now := l.now()
		l.cargo.take(now)
		next := l.cargo.due()
		l.target = max(next, now.Add(l.grain))
		if next == clock.Never {
			l.target = clock.Never
		}
		l.mu.Unlock()

		l.cargo.send()

		l.mu.Lock()
		pause := l.target.Sub(l.now())
		never := l.target == clock.Never
		l.mu.Unlock()
		switch {
		case never:
			l.wait.wait(-1)
		case pause > 0:
			l.wait.wait(pause)
		}
	}
}

// end stops the loop and waits for it and for what else runs; stop, called with the lock held, ends that. False: it was stopped before.
func (l *loop) end(stop func()) bool {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return false
	}
	l.closed = true
	stop()
	l.wait.wake()
	l.mu.Unlock()
	l.running.Wait()
	l.wait.close()
	return true
}
