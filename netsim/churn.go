package netsim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"braid/clock"
)

// churnCounts say what became of a churn's connections.
type churnCounts struct {
	Dialled   int64 `json:"dialled"`
	Connected int64 `json:"connected"`
	Accepted  int64 `json:"accepted"`
	Closed    int64 `json:"closed"`  // ends whose connection is over, on both sides
	Aborted   int64 `json:"aborted"` // ends that aborted
	Failed    int64 `json:"failed"`  // dials that failed
}

// churnStart keeps up to Connections connections open. Each sends a random amount each way, and at a random moment one of its ends does something
// about it: closes, half closes, aborts, or nothing, in which case both close when they have had everything.
func (f *flowRun) churnStart(client, server *hostApp) {
	w := &f.spec.Workload
	r := f.net.Stream("churn of " + f.spec.Name)
	open, stopped := 0, false
	f.stop = func(clock.Time) { stopped = true }
	var opener *Timer
	opener = f.net.NewTimer(func(now clock.Time) {
		if stopped {
			return
		}
		if open < w.Connections {
			if _, err := f.dial(now); err != nil {
				f.churn.Failed++
			} else {
				open++
			}
			f.churn.Dialled++
		}
		opener.Set(now.Add(time.Duration(r.Int64N(int64(200 * time.Millisecond)))))
	})
	opener.Set(seconds(f.spec.StartS))
	client.opened = func(now clock.Time, e *end) {
		f.churn.Connected++
		f.churnEnd(now, e, r)
		e.onClosed = f.churnOver(e, func() { open-- })
	}
	server.opened = func(now clock.Time, e *end) {
		f.churn.Accepted++
		f.churnEnd(now, e, r)
		e.onClosed = f.churnOver(e, func() {})
	}
	client.unconnected = func() {
		f.churn.Failed++
		open--
	}
}

// churnOver counts an end and forgets it.
func (f *flowRun) churnOver(e *end, then func()) func(clock.Time) {
	return func(clock.Time) {
		f.churn.Closed++
		if e.in.wrong != 0 {
			f.failed(fmt.Errorf("byte %d of a connection is not what was sent", e.in.wrong-1))
		}
		then()
	}
}

// churnEnd decides what an end of a connection does with it.
func (f *flowRun) churnEnd(now clock.Time, e *end, r *rand.Rand) {
	e.out.limit, e.out.finish = r.Int64N(f.spec.Workload.Bytes+1), true
	e.progress = func(now clock.Time) {
		if (e.in.eof || e.in.err != nil) && e.out.ended {
			e.conn.Close(now)
		}
	}
	e.out.push(now)
	act := r.IntN(8)
	if act > 3 {
		return
	}
	f.net.At(now.Add(time.Duration(r.Int64N(int64(time.Second)))), func(now clock.Time) {
		if e.closed {
			return
		}
		switch act {
		case 0, 1:
			e.out.ended = true
			e.conn.Close(now)
		case 2:
			e.out.limit = min(e.out.limit, e.out.sent)
			e.out.push(now)
		case 3:
			f.churn.Aborted++
			e.out.ended = true
			e.conn.Abort(now)
		}
		e.host.Touch()
	})
}
