package netsim

import (
	"fmt"
	"io"
	"math"
	"time"

	"braid/clock"
	"braid/link"
	"braid/trace"
)

// Options are what a run has beside its Scenario. None of them changes the Result.
type Options struct {
	Capture      io.Writer                    // pcapng of what goes through the links; nil: none
	CaptureLinks []string                     // names; none: all
	Trace        func(host string) trace.Sink // of each host, "<flow> client" or "<flow> server"; it may return nil; nil: none
	Prepare      func(*Prepared) error        // called before the clock starts: for middleboxes and whatever a Scenario cannot say
	Progress     func(share float64)          // called now and then with the share of virtual time that has passed
}

// Prepared is a Scenario's network before its clock starts.
type Prepared struct {
	Network *Network
	Links   map[string]*Link
	Hosts   map[string]*Host // "<flow> client" and "<flow> server"
}

// Run runs a Scenario and measures.
func Run(s Scenario) (*Result, error) { return RunWith(s, Options{}) }

// RunWith is Run with Options.
func RunWith(s Scenario, opt Options) (*Result, error) {
	r, err := prepare(&s, &opt)
	if err != nil {
		return nil, err
	}
	end := seconds(s.DurationS)
	r.run(seconds(s.WarmupS), &opt, end)
	for _, l := range r.links {
		l.warm = l.Counters().DeliveredBytes
	}
	r.run(end, &opt, end)
	if err := r.net.StopCapture(); err != nil {
		return nil, fmt.Errorf("capture: %w", err)
	}
	return r.result(&s), nil
}

// running is a Scenario while it runs.
type running struct {
	net   *Network
	links []*meteredLink
	flows []*flowRun
}

// meteredLink is a link whose queue is looked at every so often.
type meteredLink struct {
	*Link
	queue means
	warm  int64 // bytes delivered before the warm-up was over
}

func prepare(s *Scenario, opt *Options) (*running, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	r := &running{net: New(s.Seed)}
	p := &Prepared{Network: r.net, Links: map[string]*Link{}, Hosts: map[string]*Host{}}
	for _, m := range s.Links {
		if m.TraceWalk != nil {
			var err error
			if m.TraceMs, err = link.GenerateOpportunities(*m.TraceWalk, r.net.Stream("trace of "+m.Name)); err != nil {
				return nil, fmt.Errorf("link %q: %w", m.Name, err)
			}
		}
		if err := r.addLink(p, s, m.Name, m.Spec); err != nil {
			return nil, err
		}
	}
	paths := map[string][2][]*Link{}
	for _, route := range s.Paths {
		both, err := r.route(p, s, route)
		if err != nil {
			return nil, err
		}
		paths[route.Name] = both
	}
	for i, f := range s.Flows {
		var routes [][2][]*Link
		for _, name := range f.Paths {
			routes = append(routes, paths[name])
		}
		flow, err := newFlowRun(r.net, i, f, s, routes, opt.Trace)
		if err != nil {
			return nil, err
		}
		r.flows = append(r.flows, flow)
		p.Hosts[flow.client.name], p.Hosts[flow.server.name] = flow.client, flow.server
	}
	r.watchQueues(binWidth(s))
	return r, r.open(p, opt)
}

// open does what the options ask for before the clock starts.
func (r *running) open(p *Prepared, opt *Options) error {
	if opt.Prepare != nil {
		if err := opt.Prepare(p); err != nil {
			return err
		}
	}
	if opt.Capture == nil {
		return nil
	}
	var links []*Link
	for _, name := range opt.CaptureLinks {
		l := p.Links[name]
		if l == nil {
			return fmt.Errorf("capture: no link is called %q", name)
		}
		links = append(links, l)
	}
	r.net.Capture(opt.Capture, links...)
	return nil
}

func (r *running) addLink(p *Prepared, s *Scenario, name string, spec link.Spec) error {
	l, err := r.net.AddLink(name, spec)
	if err != nil {
		return err
	}
	p.Links[name] = l
	r.links = append(r.links, &meteredLink{Link: l, queue: newMeans(binWidth(s))})
	return nil
}

// route finds the links of a path, and makes the one back if none is named.
func (r *running) route(p *Prepared, s *Scenario, route Route) (both [2][]*Link, err error) {
	back := route.Reverse
	if len(back) == 0 {
		var spec link.Spec
		for _, name := range route.Forward {
			spec.DelayMs += p.Links[name].Spec().DelayMs
		}
		name := route.Name + " back"
		if err := r.addLink(p, s, name, spec); err != nil {
			return both, err
		}
		back = []string{name}
	}
	for i, names := range [][]string{route.Forward, back} {
		for _, name := range names {
			both[i] = append(both[i], p.Links[name])
		}
	}
	return both, nil
}

// watchQueues samples the queues of all links that have one.
func (r *running) watchQueues(width time.Duration) {
	var with []*meteredLink
	for _, l := range r.links {
		spec := l.Spec()
		if bytes, packets := spec.QueueLimits(); bytes+packets > 0 {
			with = append(with, l)
		}
	}
	if len(with) == 0 {
		return
	}
	r.net.Every(0, min(width, time.Millisecond), func(now clock.Time) {
		for _, l := range with {
			b, _ := l.Queue(now)
			l.queue.add(now, float64(b))
		}
	})
}

// run goes on to a time, with reports of progress in between.
func (r *running) run(until clock.Time, opt *Options, end clock.Time) {
	for opt.Progress != nil && r.net.Now() < until {
		r.net.Run(min(until, r.net.Now()+end/100+1))
		opt.Progress(float64(r.net.Now()) / float64(end))
	}
	r.net.Run(until)
}

func (r *running) result(s *Scenario) *Result {
	width := binWidth(s)
	n := int(math.Ceil(s.DurationS / width.Seconds()))
	span := s.DurationS - s.WarmupS
	res := &Result{Name: s.Name, Seed: s.Seed, DurationS: s.DurationS, WarmupS: s.WarmupS, BinS: width.Seconds(), Counts: r.net.counts}
	for _, f := range r.flows {
		res.Flows = append(res.Flows, f.result(span, n))
	}
	for _, l := range r.links {
		lr := LinkResult{Name: l.Name(), Counters: *l.Counters(), QueueBytes: l.queue.values(n, 1)}
		if spec := l.Spec(); spec.RateMbps > 0 && len(spec.Changes) == 0 {
			lr.Utilisation = round(float64(l.Counters().DeliveredBytes-l.warm) * 8 / (spec.RateMbps * 1e6 * span))
		}
		res.Links = append(res.Links, lr)
	}
	return res
}
