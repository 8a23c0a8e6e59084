package real

import (
	"slices"
	"time"

	"braid/mptcp"
	"braid/netsim"
)

// bins adds amounts up by equal stretches of time.
type bins struct {
	width time.Duration
	sums  []float64
}

// add puts an amount at a time; beyond the last bin it counts for nothing.
func (b *bins) add(now time.Duration, amount float64) {
	if i := int(now / b.width); i < len(b.sums) {
		b.sums[i] += amount
	}
}

// mbps turns bytes into rates.
func (b *bins) mbps() []float64 {
	out := make([]float64, len(b.sums))
	for i, v := range b.sums {
		out[i] = v * 8e-6 / b.width.Seconds()
	}
	return out
}

// over divides bin by bin; a bin without samples is what the bin before was.
func (b *bins) over(count *bins) []float64 {
	out := make([]float64, len(b.sums))
	for i := range out {
		switch {
		case count.sums[i] > 0:
			out[i] = b.sums[i] / count.sums[i]
		case i > 0:
			out[i] = out[i-1]
		}
	}
	return out
}

func (r *run) newBins() bins { return bins{r.width, make([]float64, r.bins)} }

// outcome is what the receiving application saw.
type outcome struct {
	total, received int64 // bytes: in all, after the warm-up
	goodput         bins
	finished        time.Duration // 0: not
	corrupted       int64
	requests        int64
	latencies       []float64 // ms, after the warm-up
}

func (o *outcome) init(r *run) { o.goodput = r.newBins() }

// meter follows a connection by looking at it every so often.
type meter struct {
	paths     []pathMeter
	seen      [2]map[int]subflowSeen // of sender and receiver, by subflow
	warm      time.Duration          // when the warm-up was found over
	end       time.Duration          // the last look
	now, then disorder               // at the last look, and at the end of the warm-up
	level     [2]bins                // out-of-order packets summed over arrivals, and arrivals
}

// disorder are the running sums of a receiver's out-of-order queue.
type disorder struct {
	packets, bytes, arrivals float64
	maxPackets               int
	maxBytes                 int64
}

// subflowSeen are a subflow's counts at the last look.
type subflowSeen struct{ received, sent, resent, resentSegs int64 }

// pathMeter measures one path of a flow.
type pathMeter struct {
	name                     string
	delivered                bins
	payload                  int64 // after the warm-up
	sent, resent, resentSegs int64
	rttSum, rttCount         float64 // ms, after the warm-up
	rtt                      [2]bins // sum and count
}

func (m *meter) init(r *run, spec *netsim.Flow) {
	for _, name := range spec.Paths {
		m.paths = append(m.paths, pathMeter{name: name, delivered: r.newBins(), rtt: [2]bins{r.newBins(), r.newBins()}})
	}
	m.seen = [2]map[int]subflowSeen{{}, {}}
	m.level = [2]bins{r.newBins(), r.newBins()}
}

// path returns the meter of a path by name; nil: the flow has none of that name.
func (m *meter) path(name string) *pathMeter {
	i := slices.IndexFunc(m.paths, func(p pathMeter) bool { return p.name == name })
	if i < 0 {
		return nil
	}
	return &m.paths[i]
}

// look takes what happened since the last look. warmed: this is the end of the warm-up.
func (f *flow) look(now time.Duration, warmed bool) {
	f.mu.Lock()
	sender, receiver := f.conns[f.sender()], f.conns[1-f.sender()]
	f.mu.Unlock()
	m := &f.meter
	m.end = now
	if receiver != nil {
		m.received(now, receiver.Info())
	}
	if sender != nil {
		m.sent(now, sender.Info(), m.warm > 0)
	}
	if warmed {
		m.warm, m.then = max(now, 1), m.now
		for i := range m.paths {
			m.paths[i].payload = 0
		}
	}
}

// received takes the receiver's counts.
func (m *meter) received(now time.Duration, info mptcp.Info) {
	for i := range info.Subflows {
		s := &info.Subflows[i]
		seen, p := m.seen[0][s.ID], m.path(s.PathName)
		if p == nil {
			continue
		}
		p.delivered.add(now, float64(s.ReceivedBytes-seen.received))
		p.payload += s.ReceivedBytes - seen.received
		seen.received = s.ReceivedBytes
		m.seen[0][s.ID] = seen
	}
	before := m.now
	m.now = disorder{info.OutOfOrderPacketSum, info.OutOfOrderSum, float64(info.Arrivals), info.OutOfOrderMaxPackets, info.OutOfOrderMax}
	m.level[0].add(now, m.now.packets-before.packets)
	m.level[1].add(now, m.now.arrivals-before.arrivals)
}

// sent takes the sender's counts.
func (m *meter) sent(now time.Duration, info mptcp.Info, warm bool) {
	for i := range info.Subflows {
		s := &info.Subflows[i]
		seen, p := m.seen[1][s.ID], m.path(s.PathName)
		if p == nil {
			continue
		}
		p.sent += s.TCP.SentBytes - seen.sent
		p.resent += s.TCP.RetransBytes - seen.resent
		p.resentSegs += s.TCP.RetransSegs - seen.resentSegs
		m.seen[1][s.ID] = subflowSeen{sent: s.TCP.SentBytes, resent: s.TCP.RetransBytes, resentSegs: s.TCP.RetransSegs}
		if s.TCP.SRTT <= 0 {
			continue
		}
		rtt := s.TCP.SRTT.Seconds() * 1e3
		p.rtt[0].add(now, rtt)
		p.rtt[1].add(now, 1)
		if warm {
			p.rttSum += rtt
			p.rttCount++
		}
	}
}

// result is what a flow measured.
func (f *flow) result(r *run) netsim.FlowResult {
	f.mu.Lock()
	defer f.mu.Unlock()
	o, m := &f.out, &f.meter
	out := netsim.FlowResult{Name: f.spec.Name, GoodputMbps: float64(o.received) * 8e-6 / (r.s.DurationS - r.s.WarmupS), Bytes: o.total,
		Corrupted: o.corrupted, Requests: o.requests, MaxOutOfOrderPackets: m.now.maxPackets, MaxOutOfOrderBytes: m.now.maxBytes}
	if f.failed != nil {
		out.Error = f.failed.Error()
	}
	if o.finished > 0 {
		out.CompletedS = o.finished.Seconds() - f.spec.StartS
	}
	if n := m.now.arrivals - m.then.arrivals; n > 0 {
		out.OutOfOrderPackets, out.OutOfOrderBytes = (m.now.packets-m.then.packets)/n, (m.now.bytes-m.then.bytes)/n
	}
	if n := len(o.latencies); n > 0 {
		slices.Sort(o.latencies)
		for i := range 101 {
			out.LatencyPercentiles = append(out.LatencyPercentiles, o.latencies[i*(n-1)/100])
		}
		for _, v := range o.latencies {
			out.LatencyMs += v / float64(n)
		}
	}
	out.Series = netsim.FlowSeries{GoodputMbps: o.goodput.mbps(), OutOfOrderPackets: m.level[0].over(&m.level[1])}
	for i := range m.paths {
		out.Subflows = append(out.Subflows, m.paths[i].result((m.end - m.warm).Seconds()))
	}
	engines := [2]interface{ Counters() mptcp.Counters }{f.client, f.server}
	out.Sender, out.Receiver = engines[f.sender()].Counters(), engines[1-f.sender()].Counters()
	return out
}

// result is what a path measured over a span of seconds after the warm-up.
func (p *pathMeter) result(span float64) netsim.SubflowResult {
	r := netsim.SubflowResult{Path: p.name, SentBytes: p.sent, RetransmittedBytes: p.resent, Retransmissions: p.resentSegs}
	if span > 0 {
		r.ThroughputMbps = float64(p.payload) * 8e-6 / span
	}
	if p.rttCount > 0 {
		r.MeanRTTMs = p.rttSum / p.rttCount
	}
	srtt := p.rtt[0].over(&p.rtt[1])
	r.Series = netsim.SubflowSeries{ThroughputMbps: p.delivered.mbps(), RTTMs: srtt, SRTTMs: srtt}
	return r
}
