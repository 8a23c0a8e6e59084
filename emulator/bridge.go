package emulator

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"braid/clock"
	"braid/device"
	"braid/link"
	"braid/middlebox"
)

// BridgeConfig says how a Bridge runs.
type BridgeConfig struct {
	Links []NamedLink  // what paths are made of; times of changes count from OpenBridge
	Paths []BridgePath // the ends are the caller's until OpenBridge has returned without error
	Seed  uint64       // with a link's name, names its random streams

	Grain time.Duration // the shortest pause between two deliveries: what falls due meanwhile leaves as one row; 0: 100 us
}

// NamedLink is a link by name.
type NamedLink struct {
	Name string
	link.Spec
}

// BridgePath is a path between two devices that carry whole IP packets. Several may share links.
type BridgePath struct {
	Name             string
	Client, Server   device.Device
	Forward, Reverse []int           // the links that packets cross, by index, from client to server and back; at least one each
	Boxes            []middlebox.Box // in front of the first link, in this order from the client; their forward direction ends at the server
}

// Bridge joins pairs of devices by emulated paths: what enters at one end of a path crosses its middleboxes and links, and leaves at the other,
// packet by packet. A device that hands over several segments as one packet (see device.TUNConfig.NoOffload) would make the emulation
// untrue. Its methods may be called from any goroutine.
type Bridge struct {
	loop  // its lock guards what follows
	paths []bridgePath
	last  []clock.Time // of each link: when something entered last
	back  []answer     // what middleboxes answered, until the loop takes it
	gone  error        // the first end that vanished

	out outbox // the loop's own
}

// bridgePath is a BridgePath at work.
type bridgePath struct {
	BridgePath
	chain [2][]int
	ends  [2]device.Device  // by Direction: where packets leave
	from  [2][]bridgeOutlet // by Direction: one behind each box
}

// answer is a packet of a middlebox's own.
type answer struct {
	to     device.Device
	packet *link.Packet
}

// OpenBridge starts a Bridge, whose Close closes the devices.
func OpenBridge(cfg BridgeConfig) (*Bridge, error) {
	w := newWaiter()
	b, err := openBridge(cfg, w)
	if err != nil {
		w.close()
	}
	return b, err
}

func openBridge(cfg BridgeConfig, wait waiter) (*Bridge, error) {
	b := &Bridge{loop: loop{grain: cfg.Grain, wait: wait, pool: link.NewPool(packetSize)}, last: make([]clock.Time, len(cfg.Links))}
	b.cargo = b
	for _, n := range cfg.Links {
		l, err := link.New(n.Name, n.Spec, cfg.Seed, b.pool)
		if err != nil {
			return nil, fmt.Errorf("emulator: %w", err)
		}
		b.links = append(b.links, l)
	}
	for _, p := range cfg.Paths {
		for _, chain := range [][]int{p.Forward, p.Reverse} {
			if len(chain) == 0 || slices.Min(chain) < 0 || slices.Max(chain) >= len(cfg.Links) {
				return nil, fmt.Errorf("emulator: path %q goes over links %v of %d", p.Name, chain, len(cfg.Links))
			}
		}
		b.paths = append(b.paths, bridgePath{
			BridgePath: p, chain: [2][]int{Up: p.Forward, Down: p.Reverse}, ends: [2]device.Device{Up: p.Server, Down: p.Client},
		})
	}
	for i := range b.paths {
		p := &b.paths[i]
		for dir := range Direction(2) {
			for k := range p.Boxes {
				p.from[dir] = append(p.from[dir], bridgeOutlet{b, i, dir, k})
			}
		}
	}
	b.begin()
	for i, p := range b.paths {
		b.running.Add(2)
		go b.read(i, Up, p.Client)
		go b.read(i, Down, p.Server)
	}
	return b, nil
}

// read takes what enters at one end of a path.
func (b *Bridge) read(path int, dir Direction, dev device.Device) {
	defer b.running.Done()
	var batch device.Batch
	for {
		err := dev.Read(&batch)
		if err != nil {
			b.mu.Lock()
			if b.gone == nil && !b.closed {
				b.gone = err
			}
			b.mu.Unlock()
			return
		}
		b.mu.Lock()
		now := b.now()
		for _, in := range batch.Packets {
			p := b.pool.Get()
			p.Data = append(p.Data, in.Data...)
			p.Size, p.Header = len(p.Data), headerLen(p.Data)
			p.Route, p.Hop = int32(2*path)+int32(dir), 0
			b.process(now, p, path, dir, b.firstBox(path, dir))
		}
		b.hurry()
		b.mu.Unlock()
	}
}

// headerLen is how much of a packet corruption spares: the IP header.
func headerLen(b []byte) int {
	n := 40
	if len(b) > 0 && b[0]>>4 == 4 {
		n = int(b[0]&15) * 4
	}
	return min(n, len(b))
}

// firstBox is the box that packets of a direction meet first.
func (b *Bridge) firstBox(path int, dir Direction) int {
	if dir == Up {
		return 0
	}
	return len(b.paths[path].Boxes) - 1
}

// process gives a packet to a box, or to the first link if there is none of that index. The lock is held.
func (b *Bridge) process(now clock.Time, p *link.Packet, path int, dir Direction, box int) {
	at := &b.paths[path]
	if box < 0 || box >= len(at.Boxes) {
		b.enter(now, p, at.chain[dir][0])
		return
	}
	at.Boxes[box].Process(now, middlebox.Direction(dir), p, &at.from[dir][box])
}

// enter puts a packet into a link. What comes out of another link is stamped with its arrival there, unless something that entered since would then
// have overtaken time.
func (b *Bridge) enter(t clock.Time, p *link.Packet, link int) {
	t = max(t, b.last[link])
	b.last[link] = t
	b.links[link].Enqueue(t, p)
}

// bridgeOutlet is where a box puts packets of one direction.
type bridgeOutlet struct {
	bridge *Bridge
	path   int
	dir    Direction
	box    int
}

// Pass implements middlebox.Outlet.
func (o *bridgeOutlet) Pass(p *link.Packet) {
	next := o.box + 1
	if o.dir == Down {
		next = o.box - 1
	}
	o.bridge.process(o.bridge.now(), p, o.path, o.dir, next)
}

// Drop implements middlebox.Outlet.
func (o *bridgeOutlet) Drop(p *link.Packet) { o.bridge.pool.Put(p) }

// New implements middlebox.Outlet.
func (o *bridgeOutlet) New(p *link.Packet) *link.Packet {
	q := o.bridge.pool.Get()
	q.Route, q.Hop, q.Header = p.Route, p.Hop, p.Header
	return q
}

// Back implements middlebox.Outlet.
func (o *bridgeOutlet) Back(_, a *link.Packet) {
	o.bridge.back = append(o.bridge.back, answer{o.bridge.paths[o.path].ends[1-o.dir], a})
}

// due implements cargo.
func (b *Bridge) due() clock.Time {
	if len(b.back) > 0 {
		return 0
	}
	next := b.nextOfLinks()
	for i := range b.paths {
		for _, box := range b.paths[i].Boxes {
			if t, ok := box.(middlebox.Timed); ok {
				next = min(next, t.NextTimeout())
			}
		}
	}
	return next
}

// take implements cargo: it moves what is due from link to link and at last into the outbox, in the order of time.
func (b *Bridge) take(now clock.Time) {
	for i := range b.paths {
		for k, box := range b.paths[i].Boxes {
			if t, ok := box.(middlebox.Timed); ok && t.NextTimeout() <= now {
				t.HandleTimeout(now, &b.paths[i].from[Up][k])
			}
		}
	}
	for _, a := range b.back {
		b.out.add(a.to, netip.AddrPort{}, a.packet)
		b.pool.Put(a.packet)
	}
	b.back = b.back[:0]
	for {
		first, next := -1, now+1
		for i, l := range b.links {
			if t := l.NextEvent(); t < next {
				first, next = i, t
			}
		}
		if first < 0 {
			return
		}
		p, due, ok := b.links[first].Dequeue(now)
		if !ok {
			continue // it has moved something from its queue to its wire
		}
		path, dir := &b.paths[p.Route/2], Direction(p.Route%2)
		if p.Hop++; int(p.Hop) < len(path.chain[dir]) {
			b.enter(due, p, path.chain[dir][p.Hop])
			continue
		}
		b.late.Add(now.Sub(due))
		b.out.add(path.ends[dir], netip.AddrPort{}, p)
		b.pool.Put(p)
	}
}

// send implements cargo.
func (b *Bridge) send() { b.out.send() }

// Apply changes a link from now on, as link.Link.Apply does.
func (b *Bridge) Apply(link int, c link.Change) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last[link] = max(b.last[link], b.now())
	err := b.links[link].Apply(b.last[link], c)
	b.hurry()
	return err
}

// BridgeReport says what became of a Bridge's packets, and whether the emulation kept time.
type BridgeReport struct {
	Links    []link.Counters // by index
	Lateness *Histogram      // how much later than the link says packets left, the grain included

	// What the emulator itself lost, against the plan: every packet here makes the emulation less true.
	Dropped int64 // refused by the end where they should have left
	Gone    error // an end has vanished
}

// Report returns what happened so far.
func (b *Bridge) Report() BridgeReport {
	b.mu.Lock()
	defer b.mu.Unlock()
	late := b.late
	r := BridgeReport{Lateness: &late, Gone: b.gone}
	for _, l := range b.links {
		r.Links = append(r.Links, *l.Counters())
	}
	for i := range b.paths {
		for _, dev := range b.paths[i].ends {
			c := dev.Counters()
			r.Dropped += c.Dropped + c.Unreachable + c.TooLarge + c.Overflowed
		}
	}
	return r
}

// Close ends the Bridge and its devices. What is on its way is lost.
func (b *Bridge) Close() error {
	var errs []error
	b.end(func() {
		for i := range b.paths {
			for _, dev := range b.paths[i].ends {
				errs = append(errs, dev.Close())
			}
		}
	})
	return errors.Join(errs...)
}
