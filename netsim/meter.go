package netsim

import (
	"time"

	"braid/clock"
	"braid/congestion"
	"braid/mptcp"
)

// pathMeter measures one path of a flow.
type pathMeter struct {
	name      string
	warmup    clock.Time
	delivered bins // payload bytes that reached the receiver
	payload   int64
	rtts      distribution // ms, of ACK samples after the warm-up
	rtt       means        // ns
	srtt      means        // ns
	window    means        // bytes
	inFlight  means        // bytes

	sent, retransmitted, lost int64 // bytes
	retransmissions           int64 // segments
}

func newPathMeter(name string, width time.Duration, warmup clock.Time) *pathMeter {
	return &pathMeter{name: name, warmup: warmup, delivered: bins{width: width}, rtt: newMeans(width), srtt: newMeans(width),
		window: newMeans(width), inFlight: newMeans(width)}
}

// arrived counts payload at the receiver.
func (m *pathMeter) arrived(now clock.Time, n int) {
	m.delivered.add(now, float64(n))
	if now >= m.warmup {
		m.payload += int64(n)
	}
}

// acked takes the sample of an ACK and the window after it.
func (m *pathMeter) acked(s *congestion.Sample, window int64) {
	m.lost += s.Lost
	if s.RTT > 0 {
		m.rtt.add(s.Now, float64(s.RTT))
		if s.Now >= m.warmup {
			m.rtts.add(float64(s.RTT) / 1e6)
		}
	}
	if s.SRTT > 0 {
		m.srtt.add(s.Now, float64(s.SRTT))
	}
	m.window.add(s.Now, float64(window))
	m.inFlight.add(s.Now, float64(s.InFlight))
}

// meteredGroup is a congestion.Group that lets a flow's meters see what its controllers see.
type meteredGroup struct {
	congestion.Group
	flow *flowRun
}

func (g meteredGroup) Join(id int, cfg congestion.Config) congestion.Controller {
	return &meteredController{Controller: g.Group.Join(id, cfg), flow: g.flow, id: id}
}

type meteredController struct {
	congestion.Controller
	flow  *flowRun
	id    int
	meter *pathMeter // nil until the subflow's path is known
}

func (c *meteredController) OnSend(e congestion.Send) float64 {
	if m := c.path(); m != nil {
		m.sent += int64(e.Bytes)
		if e.Retransmission {
			m.retransmitted += int64(e.Bytes)
			m.retransmissions++
		}
	}
	return c.Controller.OnSend(e)
}

func (c *meteredController) OnAck(s *congestion.Sample) {
	c.Controller.OnAck(s)
	if m := c.path(); m != nil {
		m.acked(s, c.Controller.Window())
	}
}

func (c *meteredController) path() *pathMeter {
	if c.meter == nil && c.id < len(c.flow.subflowPaths) {
		if p := c.flow.subflowPaths[c.id]; p >= 0 {
			c.meter = c.flow.meters[p]
		}
	}
	return c.meter
}

// subflowUp notes which path a subflow of the sender runs over.
func (f *flowRun) subflowUp(id int, path mptcp.PathID) {
	for len(f.subflowPaths) <= id {
		f.subflowPaths = append(f.subflowPaths, -1)
	}
	f.subflowPaths[id] = int(path)
}
