package braid

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"braid/device"
	"braid/host"
	"braid/mptcp"
)

// watcher gives an Engine its paths, and follows interfaces that come and go: one that is back gets a new socket, and an address that has
// changed a new path.
type watcher struct {
	cfg    Config
	engine *host.Engine
	system interfaces // nil: the operating system
	remote []netip.AddrPort
	port   uint16        // of a listener's sockets; 0: any
	fixed  []netip.Addr  // a listener's addresses; nil: those of the interfaces
	kick   chan struct{} // look now

	mu      sync.Mutex
	holds   []*device.Hold // with Config.Raw: the ports that are the Stack's
	only4   bool           // ... and a listener at all IPv4 addresses
	paths   map[candidate]*path
	failed  map[candidate]string // what has been said about those that cannot be opened
	settled bool                 // the connection is established
	family4 bool                 // ... over IPv4
}

// path is an open path of the Engine.
type path struct {
	id mptcp.PathID
	at int // place among the candidates: the order of preference
}

var errNoInterface = errors.New("no usable network interface")

// openAll opens the first sockets. It fails if there is none, or if one at an address that a listener was given cannot be opened.
func (w *watcher) openAll() error {
	if len(w.cfg.TUN) > 0 {
		return w.openTUNs()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	want, err := w.candidates()
	if err != nil {
		return err
	}
	var errs []error
	for i, c := range want {
		if err := w.open(c, i); err != nil {
			errs = append(errs, err)
		}
	}
	switch {
	case len(w.paths) > 0 && (w.fixed == nil || len(errs) == 0):
		return nil // those that failed are tried again
	case len(errs) > 0:
		return errors.Join(errs...)
	case len(w.cfg.Interfaces) > 0:
		return fmt.Errorf("%w: none of %v is up and has an address that fits the server's; see \"ip address\" for what there is", errNoInterface, w.cfg.Interfaces)
	}
	return fmt.Errorf("%w: none that is up has an address of the server's family; connect one, or name local addresses in Config.Interfaces", errNoInterface)
}

// candidates are the sockets that should be open now.
func (w *watcher) candidates() ([]candidate, error) {
	if w.fixed != nil { // a socket whose address vanishes is opened again when it is back
		all := make([]candidate, len(w.fixed))
		for i, addr := range w.fixed {
			all[i] = candidate{name: addr.String(), local: addr}
		}
		return all, nil
	}
	sys := w.system
	if sys == nil {
		sys = system{}
	}
	have, err := sys.list()
	if err != nil {
		return nil, err
	}
	if w.cfg.Raw && w.remote == nil {
		return w.served(have), nil
	}
	all := choose(have, w.cfg.Interfaces, w.remote)
	if w.settled {
		all = oneFamily(all, w.family4)
	}
	return all, nil
}

// oneFamily leaves each interface only one candidate: two subflows over one interface share one bottleneck. Where there is a
// choice, it is the family that the connection was established over.
func oneFamily(all []candidate, family4 bool) []candidate {
	return slices.DeleteFunc(slices.Clone(all), func(c candidate) bool {
		return c.iface != "" && c.local.Is4() != family4 && slices.ContainsFunc(all, func(o candidate) bool {
			return o.iface == c.iface && o.local.Is4() == family4
		})
	})
}

// open opens the socket of c and adds it to the Engine as a path.
func (w *watcher) open(c candidate, at int) error {
	if w.cfg.Raw {
		return w.openRaw(c, at)
	}
	dev, err := device.Open(device.Config{Local: netip.AddrPortFrom(c.local, w.port), Interface: c.iface})
	if err != nil {
		return err
	}
	if w.remote == nil {
		w.port = dev.LocalAddr().Port()
	}
	mtu := w.cfg.MTU
	if mtu == 0 {
		mtu = min(dev.MTU(), ethernetMTU)
	}
	id, err := w.engine.AddPath(dev, mptcp.Path{
		Name: c.name, Kind: mptcp.UDP, Local: dev.LocalAddr(), MTU: mtu, Remote: w.cfg.Via[c.name],
		Backup: slices.Contains(w.cfg.Backup, c.name) || slices.Contains(w.cfg.Backup, c.local.String()),
	})
	if err != nil {
		return err
	}
	w.paths[c] = &path{id: id, at: at}
	w.log("path up", c, nil)
	return nil
}

// order lists the paths, the preferred first.
func (w *watcher) order() []mptcp.PathID {
	w.mu.Lock()
	defer w.mu.Unlock()
	open := make([]*path, 0, len(w.paths))
	for _, p := range w.paths {
		open = append(open, p)
	}
	slices.SortFunc(open, func(a, b *path) int { return a.at - b.at })
	ids := make([]mptcp.PathID, len(open))
	for i, p := range open {
		ids[i] = p.id
	}
	return ids
}

// settle says that the connection is established to the given address: what was opened only to find out which family works is closed.
func (w *watcher) settle(remote netip.Addr) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settled, w.family4 = true, remote.Unmap().Is4()
	var open []candidate
	for c := range w.paths {
		open = append(open, c)
	}
	keep := oneFamily(open, w.family4)
	for _, c := range open {
		if !slices.Contains(keep, c) {
			w.drop(c, nil)
		}
	}
}

func (w *watcher) drop(c candidate, why error) {
	w.engine.RemovePath(w.paths[c].id)
	delete(w.paths, c)
	w.log("path down", c, why)
}

// gone is told by the Engine that a path's interface has vanished.
func (w *watcher) gone(id mptcp.PathID, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c, p := range w.paths {
		if p.id == id {
			delete(w.paths, c)
			w.log("path down", c, err)
		}
	}
	w.lookSoon()
}

// lookSoon asks for a look. It never waits.
func (w *watcher) lookSoon() {
	select {
	case w.kick <- struct{}{}:
	default: // one is asked for already
	}
}

// start watches until the Engine is closed. Where the system says when something changes, looking now and then is for what it may have forgotten
// to say, and for what could not be opened.
func (w *watcher) start() {
	every := w.cfg.Watch
	if every < 0 {
		return
	}
	stop := func() {}
	if w.system == nil {
		if s, ok := subscribe(w.lookSoon); ok {
			stop = s
			w.lookSoon() // what changed before
			if every == 0 {
				every = watchBeside
			}
		}
	}
	if every == 0 {
		every = defaultWatch
	}
	go func() {
		defer stop()
		for {
			wait := every
			if w.troubled() {
				wait = min(every, defaultWatch)
			}
			select {
			case <-w.engine.Done():
				return
			case <-time.After(wait):
			case <-w.kick:
			}
			w.look()
			select {
			case <-w.engine.Done():
				return
			case <-time.After(watchPause): // changes come in bursts
			}
		}
	}()
}

const (
	watchBeside = 30 * time.Second      // between looks where the system tells of changes
	watchPause  = 50 * time.Millisecond // between two looks at least
)

// troubled reports whether something cannot be opened.
func (w *watcher) troubled() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.failed) > 0
}

// look compares what is open with what should be.
func (w *watcher) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.cfg.TUN) > 0 {
		w.lookTUNs()
		return
	}
	want, err := w.candidates()
	if err != nil {
		return // the next look may succeed; what is open goes on
	}
	for c := range w.paths {
		if !slices.Contains(want, c) {
			w.drop(c, nil)
		}
	}
	for c := range w.failed {
		if !slices.Contains(want, c) {
			delete(w.failed, c)
		}
	}
	for i, c := range want {
		if w.paths[c] == nil {
			w.opened(c, w.open(c, i))
		}
	}
}

// opened notes what came of an attempt to open a path.
func (w *watcher) opened(c candidate, err error) {
	switch {
	case err == nil:
		delete(w.failed, c)
	case w.failed[c] != err.Error(): // once, not every second
		w.failed[c] = err.Error()
		w.log("path cannot be opened", c, err)
	}
}

func (w *watcher) log(what string, c candidate, err error) {
	if w.cfg.Log == nil {
		return
	}
	if err != nil {
		w.cfg.Log.Warn(what, "path", c.name, "address", c.local, "error", err)
		return
	}
	w.cfg.Log.Info(what, "path", c.name, "address", c.local)
}
