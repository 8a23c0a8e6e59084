package real

import (
	"context"
	"math"
	"net/netip"
	"time"

	"braid/emulator"
	"braid/link"
	"braid/netsim"
)

// Run runs a Scenario in real time and measures. It takes as long as the Scenario says, and needs the machine for itself: two Runs at the same
// time make each other late. It ends early, with an error, with ctx.
func Run(ctx context.Context, s netsim.Scenario) (*Result, error) {
	s = Encapsulated(s)
	if err := Check(&s); err != nil {
		return nil, err
	}
	r, err := open(&s)
	defer r.close()
	if err != nil {
		return nil, err
	}
	r.begin = time.Now()
	running, stop := context.WithDeadline(ctx, r.begin.Add(duration(s.DurationS)))
	defer stop()
	for _, f := range r.flows {
		f.start(running, r.begin)
	}
	r.watch(ctx)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return r.result(), nil
}

// run is a Scenario while it runs.
type run struct {
	s     *netsim.Scenario
	begin time.Time
	paths []*path
	flows []*flow
	width time.Duration // of a bin
	bins  int
}

// path is an emulated path.
type path struct {
	way
	*emulator.Path
	warm [2]int64 // bytes delivered before the warm-up was over, by direction
}

// open makes paths and ends. What it returns is to be closed, be there an error or not.
func open(s *netsim.Scenario) (*run, error) {
	r := &run{s: s, width: 100 * time.Millisecond}
	if s.BinMs > 0 {
		r.width = time.Duration(s.BinMs * 1e6)
	}
	r.bins = int(math.Ceil(s.DurationS / r.width.Seconds()))
	ways, err := waysOf(s)
	if err != nil {
		return r, err
	}
	for _, w := range ways.all {
		r.paths = append(r.paths, &path{way: w})
	}
	for i := range s.Flows {
		f, err := newFlow(r, &s.Flows[i], ways)
		if f != nil {
			r.flows = append(r.flows, f)
		}
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

// to makes a path lead to a server, and returns where its clients send to.
func (p *path) to(server netip.AddrPort, seed uint64) (netip.AddrPort, error) {
	if p.Path != nil {
		return p.AddServer(server)
	}
	e, err := emulator.Open(emulator.Config{Name: p.name, Server: server, Up: p.up, Down: p.down, Seed: seed})
	if err != nil {
		return netip.AddrPort{}, err
	}
	p.Path = e
	return e.Addr(), nil
}

// close ends everything and waits for it.
func (r *run) close() {
	for _, f := range r.flows {
		f.close()
	}
	for _, p := range r.paths {
		if p.Path != nil {
			p.Close()
		}
	}
}

// look is how often the connections are looked at, at least.
const look = 50 * time.Millisecond

// watch looks at everything every so often, and at the end of the warm-up and of the run.
func (r *run) watch(ctx context.Context) {
	step := min(r.width, look)
	warm := false
	end, warmup := duration(r.s.DurationS), duration(r.s.WarmupS)
	for at := time.Duration(0); ; {
		now := time.Since(r.begin)
		ends := !warm && now >= warmup
		for _, f := range r.flows {
			f.look(now, ends)
		}
		if ends {
			warm = true
			for _, p := range r.paths {
				if p.Path != nil {
					rep := p.Report()
					p.warm = [2]int64{rep.Up.DeliveredBytes, rep.Down.DeliveredBytes}
				}
			}
		}
		if now >= end {
			return
		}
		if at += step; !warm && at > warmup {
			at = warmup
		}
		if !until(ctx, r.begin.Add(min(at, end))) {
			return
		}
	}
}

// until waits for a time; false: ctx was over first.
func until(ctx context.Context, at time.Time) bool {
	wait := time.Until(at)
	if wait <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (r *run) result() *Result {
	out := &Result{Result: netsim.Result{Name: r.s.Name, Seed: r.s.Seed, DurationS: r.s.DurationS, WarmupS: r.s.WarmupS, BinS: r.width.Seconds()}}
	for _, f := range r.flows {
		out.Flows = append(out.Flows, f.result(r))
		out.Timing.LostPackets += f.lost()
	}
	ms := func(d time.Duration) float64 { return d.Seconds() * 1e3 }
	t := &out.Timing
	for _, p := range r.paths {
		if p.Path == nil {
			continue
		}
		rep := p.Report()
		t.LatenessP50Ms = max(t.LatenessP50Ms, ms(rep.Lateness.Quantile(0.5)))
		t.LatenessP99Ms = max(t.LatenessP99Ms, ms(rep.Lateness.Quantile(0.99)))
		t.LatenessMaxMs = max(t.LatenessMaxMs, ms(rep.Lateness.Max()))
		t.LostPackets += rep.Overflowed + rep.Dropped + rep.NoFlow
		out.Links = append(out.Links, p.result(r, 0, rep.Up), p.result(r, 1, rep.Down))
	}
	t.Late = t.LatenessP99Ms > ms(MaxLateness)
	return out
}

// result is what a direction of a path measured.
func (p *path) result(r *run, dir int, c link.Counters) netsim.LinkResult {
	l := netsim.LinkResult{Name: p.links[dir], Counters: c}
	if l.Name == "" {
		l.Name = p.name + " back"
	}
	if spec := []link.Spec{p.up, p.down}[dir]; spec.RateMbps > 0 && len(spec.Changes) == 0 {
		l.Utilisation = float64(c.DeliveredBytes-p.warm[dir]) * 8 / (spec.RateMbps * 1e6 * (r.s.DurationS - r.s.WarmupS))
	}
	return l
}

// duration is a number of seconds.
func duration(s float64) time.Duration { return time.Duration(s * 1e9) }
