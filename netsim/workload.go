package netsim

import (
	"time"

	"braid/clock"
	"braid/mptcp"
)

// hostApp is the application on one of a flow's hosts: it hands events to the connection's end.
type hostApp struct {
	flow   *flowRun
	host   *Host
	opened func(now clock.Time, e *end) // a connection is there: connected or accepted

	unconnected func() // a dial failed; nil: that fails the flow
}

// HandleEvent implements App.
func (a *hostApp) HandleEvent(now clock.Time, ev mptcp.Event) {
	if ev.Kind == mptcp.EventAccept {
		for {
			c, ok := ev.Listener.Accept()
			if !ok {
				return
			}
			e := a.flow.newEnd(a.host, c)
			a.note(now, c, -1)
			a.opened(now, e)
			e.readable(now)
		}
	}
	e, _ := ev.Conn.User.(*end)
	switch ev.Kind {
	case mptcp.EventConnected:
		a.note(now, ev.Conn, -1)
		if e == nil {
			e = a.flow.newEnd(a.host, ev.Conn)
		}
		a.opened(now, e)
	case mptcp.EventSubflowUp:
		a.note(now, ev.Conn, ev.Subflow)
	case mptcp.EventReadable:
		if e != nil {
			e.readable(now)
		}
	case mptcp.EventWritable:
		if e != nil {
			e.out.push(now)
		}
	case mptcp.EventClosed:
		a.closed(now, e, ev.Err)
	}
}

// note finds out over which path a subflow of the sender runs; -1: all of them.
func (a *hostApp) note(now clock.Time, c *mptcp.Conn, id int) {
	if (a.host == a.flow.client) == a.flow.spec.Download || a.flow.spec.Workload.Kind == Churn {
		return
	}
	info := c.Info(now)
	for i := range info.Subflows {
		if s := &info.Subflows[i]; id < 0 || s.ID == id {
			a.flow.subflowUp(s.ID, s.Path)
		}
	}
}

func (a *hostApp) closed(now clock.Time, e *end, err error) {
	if e == nil { // it never connected
		if a.unconnected != nil {
			a.unconnected()
			return
		}
		a.flow.failed(err)
		return
	}
	e.closed, e.err = true, err
	if err != nil && a.flow.spec.Workload.Kind != Churn {
		a.flow.failed(err)
	}
	if e.onClosed != nil {
		e.onClosed(now)
	}
}

// failed keeps the first error of a flow.
func (f *flowRun) failed(err error) {
	if f.failure == nil {
		f.failure = err
	}
}

// workload gives the hosts their applications and plans the start.
func (f *flowRun) workload() {
	ca, sa := &hostApp{flow: f, host: f.client}, &hostApp{flow: f, host: f.server}
	f.client.app, f.server.app = ca, sa
	sender, receiver := ca, sa
	if f.spec.Download {
		sender, receiver = sa, ca
	}
	switch f.spec.Workload.Kind {
	case Bulk:
		sender.opened, receiver.opened = f.sendBulk, f.receive
	case Paced:
		sender.opened, receiver.opened = f.sendPaced, f.receive
	case Request:
		f.request(ca, sa)
	case Churn:
		f.churnStart(ca, sa)
		return
	}
	f.net.At(seconds(f.spec.StartS), func(now clock.Time) {
		if _, err := f.dial(now); err != nil {
			f.failed(err)
		}
	})
}

// sendBulk sends as fast as it goes.
func (f *flowRun) sendBulk(now clock.Time, e *end) {
	e.out.limit, e.out.finish = f.size(), true
	f.sends(e)
	e.out.push(now)
}

// size is how much bulk and paced senders send.
func (f *flowRun) size() int64 {
	if f.spec.Workload.Bytes == 0 {
		return forever
	}
	return f.spec.Workload.Bytes
}

// sends makes the end one that stops on demand and closes when the peer has closed.
func (f *flowRun) sends(e *end) {
	f.stop = func(now clock.Time) {
		e.out.limit = min(e.out.limit, e.out.sent)
		e.out.finish = true
		e.out.push(now)
		e.host.Touch()
	}
	e.progress = func(now clock.Time) {
		if e.in.eof && e.out.ended {
			e.conn.Close(now)
		}
	}
}

// sendPaced sends a chunk at a time.
func (f *flowRun) sendPaced(now clock.Time, e *end) {
	w := &f.spec.Workload
	period := time.Duration(float64(8*w.ChunkBytes) / w.RateMbps * 1e3)
	f.sends(e)
	size, stopped := f.size(), false
	stop := f.stop
	f.stop = func(now clock.Time) {
		stopped = true
		stop(now)
	}
	var t *Timer
	t = f.net.NewTimer(func(now clock.Time) {
		if stopped || e.closed {
			return
		}
		e.out.limit = min(e.out.limit+int64(w.ChunkBytes), size)
		e.out.finish = e.out.limit == size
		e.out.push(now)
		e.host.Touch()
		if !e.out.finish {
			t.Set(now.Add(period))
		}
	})
	t.Set(now)
}

// receive reads to the end and closes.
func (f *flowRun) receive(_ clock.Time, e *end) {
	e.progress = func(now clock.Time) {
		if !e.in.eof || e.out.ended {
			return
		}
		e.out.ended = true
		f.finished = now
		e.conn.Close(now)
	}
}

// request is the workload of a client that asks and a server that answers.
func (f *flowRun) request(client, server *hostApp) {
	w := &f.spec.Workload
	client.opened = func(now clock.Time, e *end) {
		var asked clock.Time
		var timer *Timer
		ask := func(now clock.Time) {
			if e.out.ended {
				return
			}
			asked = now
			e.out.limit += w.RequestBytes
			e.out.push(now)
			e.host.Touch()
		}
		timer = f.net.NewTimer(ask)
		e.progress = func(now clock.Time) {
			if e.in.eof {
				e.conn.Close(now)
				return
			}
			if f.requests*w.ResponseBytes+w.ResponseBytes > e.in.got {
				return
			}
			f.requests++
			if now >= f.warmup {
				f.latencies.add(float64(now.Sub(asked)) / 1e6)
			}
			timer.Set(now.Add(time.Duration(w.ThinkS * 1e9)))
		}
		f.stop = func(now clock.Time) {
			e.out.limit, e.out.finish = e.out.sent, true
			e.out.push(now)
			e.host.Touch()
		}
		ask(now)
	}
	server.opened = func(_ clock.Time, e *end) {
		e.progress = func(now clock.Time) {
			e.out.limit = e.in.got / w.RequestBytes * w.ResponseBytes
			e.out.finish = e.in.eof
			e.out.push(now)
			if e.in.eof && e.out.ended {
				e.conn.Close(now)
			}
		}
	}
}
