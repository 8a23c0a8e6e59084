package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"braid/clock"
	"braid/device"
	"braid/mptcp"
)

// Config is what an Engine is made from.
type Config struct {
	// Stack configures the protocol. Entropy may be nil: the system's generator is used.
	Stack mptcp.Config

	// PathGone, if set, is called when a path's interface has vanished and the path has been removed. It runs on a goroutine of
	// its own.
	PathGone func(id mptcp.PathID, err error)

	// AutoClose lets the Engine close itself when its last listener and connection are over (if it ever had one), Linger after.
	AutoClose bool

	// Linger is how long an Engine that closes itself still answers packets for connections that are over: the last
	// acknowledgement may have been lost. 0: 2 s.
	Linger time.Duration
}

// pacingQuantum is what one wake-up of the timer may send when the configuration does not say. Go's timers are a
// millisecond coarse when the machine is idle.
const pacingQuantum = time.Millisecond

const defaultLinger = 2 * time.Second

// Engine drives a Stack over devices. Its methods may be called from any goroutine.
type Engine struct {
	cfg  Config
	base time.Time // the Stack's time zero

	mu       sync.Mutex
	stack    *mptcp.Stack
	entropy  entropy
	ports    []*port // by PathID, paths over one device share theirs; nil: removed
	guess    *port   // where the next packet probably goes
	alarm    alarm
	conns    map[*Conn]struct{} // those whose EventClosed has not come
	listens  map[*Listener]struct{}
	used     bool // it has had a listener or a connection
	closed   bool
	done     chan struct{} // closed with the Engine
	quiet    sync.Cond     // broadcast when conns or listens shrink
	stopAuto *time.Timer

	readers sync.WaitGroup
}

// NewEngine makes an Engine without paths.
func NewEngine(cfg Config) *Engine {
	e := &Engine{cfg: cfg, base: time.Now(), conns: make(map[*Conn]struct{}), listens: make(map[*Listener]struct{})}
	e.quiet.L = &e.mu
	e.done = make(chan struct{})
	if e.cfg.Stack.Entropy == nil {
		e.cfg.Stack.Entropy = e.entropy.next
	}
	if e.cfg.Stack.PacingQuantum == 0 {
		e.cfg.Stack.PacingQuantum = pacingQuantum
	}
	if e.cfg.Linger == 0 {
		e.cfg.Linger = defaultLinger
	}
	e.stack = mptcp.NewStack(e.cfg.Stack)
	e.alarm.init(e.onAlarm)
	return e
}

// now is the Stack's time. It must be called with the lock held: time then never goes back for the Stack.
func (e *Engine) now() clock.Time { return clock.Time(time.Since(e.base)) }

// AddPath lets the Stack use dev as path p. The Engine owns dev from here on and closes it with the path. A p without an MTU
// gets that of dev, a p without a local address dev's.
func (e *Engine) AddPath(dev device.Device, p mptcp.Path) (mptcp.PathID, error) {
	ids, err := e.AddPaths(dev, p)
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}

// AddPaths is AddPath for several paths over one device of IP packets: each has a local address of its own, and what arrives for
// none of them goes to the first. The device is closed with the last of them.
func (e *Engine) AddPaths(dev device.Device, paths ...mptcp.Path) ([]mptcp.PathID, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		dev.Close()
		return nil, fmt.Errorf("host: add path %s: %w", paths[0].Name, net.ErrClosed)
	}
	now := e.now()
	room := 0
	for i := range paths {
		p := &paths[i]
		if p.MTU == 0 {
			p.MTU = dev.MTU()
		}
		if !p.Local.IsValid() {
			p.Local = dev.LocalAddr()
		}
		room = max(room, p.MTU)
	}
	port := newPort(dev, room)
	for _, p := range paths {
		id := e.stack.AddPath(now, p)
		port.add(id, p.Local.Addr())
		for int(id) >= len(e.ports) {
			e.ports = append(e.ports, nil)
		}
		e.ports[id] = port
	}
	ids := slices.Clone(port.ids)
	e.readers.Add(1)
	go e.read(port)
	e.service(now)
	return ids, nil
}

// RemovePath takes a path away: its subflows end, their data moves to others, its device is closed if it was the last path
// over it. Removing a path that is gone does nothing.
func (e *Engine) RemovePath(id mptcp.PathID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if int(id) >= len(e.ports) || e.ports[id] == nil {
		return
	}
	now := e.now()
	port := e.ports[id]
	e.removePath(now, id)
	e.service(now)
	if len(port.ids) == 0 {
		port.dev.Close()
	}
}

// removePath takes a path out of the Stack and the table.
func (e *Engine) removePath(now clock.Time, id mptcp.PathID) {
	port := e.ports[id]
	e.stack.RemovePath(now, id)
	e.ports[id] = nil
	if port.remove(id); len(port.ids) == 0 && e.guess == port {
		e.guess = nil
	}
}

// Paths lists the paths in use with their devices' counters.
func (e *Engine) Paths() []PathInfo {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.pathInfos()
}

// pathInfos is Paths under the lock.
func (e *Engine) pathInfos() []PathInfo {
	var all []PathInfo
	for id, port := range e.ports {
		if port == nil {
			continue
		}
		if p, ok := e.stack.Path(mptcp.PathID(id)); ok {
			all = append(all, PathInfo{ID: mptcp.PathID(id), Path: p, Device: port.dev.Counters()})
		}
	}
	return all
}

// PathInfo describes a path in use.
type PathInfo struct {
	ID     mptcp.PathID
	Path   mptcp.Path
	Device device.Counters
}

// Counters returns the Stack's counters as they are now.
func (e *Engine) Counters() mptcp.Counters {
	e.mu.Lock()
	defer e.mu.Unlock()
	return *e.stack.Counters()
}

// read is the goroutine of one device.
func (e *Engine) read(port *port) {
	defer e.readers.Done()
	var batch device.Batch
	for {
		err := port.dev.Read(&batch)
		e.mu.Lock()
		if e.closed || len(port.ids) == 0 {
			e.mu.Unlock()
			return
		}
		now := e.now()
		if err != nil {
			e.lost(now, port, err)
			e.mu.Unlock()
			return
		}
		for i := range batch.Packets {
			p := &batch.Packets[i]
			e.stack.HandlePacket(now, port.pathOf(p.Data), p.From, p.Data)
		}
		e.service(now)
		e.mu.Unlock()
	}
}

// lost removes the paths of a device that has failed.
func (e *Engine) lost(now clock.Time, port *port, err error) {
	ids := slices.Clone(port.ids)
	for _, id := range ids {
		e.removePath(now, id)
	}
	port.dev.Close()
	e.service(now)
	if e.cfg.PathGone != nil {
		go func() {
			for _, id := range ids {
				e.cfg.PathGone(id, err)
			}
		}()
	}
}

// service does what has to follow every input: it sends, sets the timer and wakes.
func (e *Engine) service(now clock.Time) {
	if e.closed {
		return
	}
	e.drain(now)
	e.alarm.set(now, e.stack.NextTimeout())
	for {
		ev, ok := e.stack.PollEvent()
		if !ok {
			return
		}
		e.handle(ev)
	}
}

// handle wakes whoever waits for ev.
func (e *Engine) handle(ev mptcp.Event) {
	if ev.Kind == mptcp.EventAccept {
		for l := range e.listens {
			if l.inner == ev.Listener {
				l.arrived.Broadcast()
			}
		}
		return
	}
	c, ok := ev.Conn.User.(*Conn)
	if !ok { // not yet accepted: Accept finds the connection as it is then, and must know whether it is over
		if ev.Kind == mptcp.EventClosed {
			ev.Conn.User = ended{ev.Err}
		}
		return
	}
	switch ev.Kind {
	case mptcp.EventConnected, mptcp.EventReadable:
		c.readable.Broadcast()
	case mptcp.EventWritable:
		c.writable.Broadcast()
	case mptcp.EventClosed:
		c.over = true
		c.err = ev.Err
		e.forget(c)
		c.readable.Broadcast()
		c.writable.Broadcast()
	}
}

// ended is the User of a connection that was over before it was accepted.
type ended struct{ err error }

// forget drops a connection that is over.
func (e *Engine) forget(c *Conn) {
	delete(e.conns, c)
	e.quieter()
}

// quieter is called when a listener or a connection is over.
func (e *Engine) quieter() {
	e.quiet.Broadcast()
	if !e.cfg.AutoClose || e.closed || !e.used || len(e.conns)+len(e.listens) > 0 {
		return
	}
	if e.stopAuto == nil {
		e.stopAuto = time.AfterFunc(e.cfg.Linger, e.autoClose)
		return
	}
	e.stopAuto.Reset(e.cfg.Linger)
}

func (e *Engine) autoClose() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.conns)+len(e.listens) == 0 {
		e.shut()
	}
}

// onAlarm runs when the timer has fired.
func (e *Engine) onAlarm() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	now := e.now()
	if !e.alarm.fired(now) {
		return
	}
	if e.stack.NextTimeout() <= now {
		e.stack.HandleTimeout(now)
	}
	e.service(now)
}

// Shutdown stops listening, waits until every connection that was closed has delivered its data and is over, or ctx
// is done, and then closes the Engine. Connections that are still open are closed first. The error is ctx's if it came to that:
// what was unsent then is lost.
func (e *Engine) Shutdown(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		e.mu.Lock()
		e.quiet.Broadcast()
		e.mu.Unlock()
	})
	defer stop()
	e.mu.Lock()
	for l := range e.listens {
		l.close()
	}
	for c := range e.conns {
		c.close()
	}
	for len(e.conns) > 0 && ctx.Err() == nil && !e.closed {
		e.quiet.Wait()
	}
	left := len(e.conns)
	e.mu.Unlock()
	e.Close()
	if left > 0 && ctx.Err() != nil {
		return fmt.Errorf("host: shutdown with %d connections unfinished: %w", left, context.Cause(ctx))
	}
	return nil
}

// Close ends everything at once: connections are aborted, blocked calls return net.ErrClosed, devices are closed. It returns
// when all goroutines of the Engine have ended.
func (e *Engine) Close() error {
	e.mu.Lock()
	err := e.shut()
	e.mu.Unlock()
	e.readers.Wait()
	return err
}

// shut is Close under the lock, without waiting.
func (e *Engine) shut() error {
	if e.closed {
		return nil
	}
	now := e.now()
	for l := range e.listens {
		l.close()
	}
	for c := range e.conns {
		c.abort(now)
	}
	e.drain(now)
	e.closed = true
	close(e.done)
	e.alarm.stop()
	if e.stopAuto != nil {
		e.stopAuto.Stop()
	}
	e.quiet.Broadcast()
	var errs []error
	for _, port := range e.ports {
		if port != nil {
			errs = append(errs, port.dev.Close())
		}
	}
	return errors.Join(errs...)
}

// Done is closed when the Engine is, be it by Close, Shutdown or itself (Config.AutoClose).
func (e *Engine) Done() <-chan struct{} { return e.done }

// Dial connects to one of the addresses of remote (of one host) and waits until the connection is established. paths names those to try
// first; nil means all. It ends with ctx.
func (e *Engine) Dial(ctx context.Context, remote []netip.AddrPort, paths []mptcp.PathID) (*Conn, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, net.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	now := e.now()
	inner, err := e.stack.Dial(now, mptcp.Target{Remote: remote, Paths: paths})
	if err != nil {
		return nil, err
	}
	c := e.adopt(inner)
	stop := context.AfterFunc(ctx, func() {
		e.mu.Lock()
		c.readable.Broadcast()
		e.mu.Unlock()
	})
	defer stop()
	e.service(now)
	for !inner.Established() {
		switch {
		case c.over && c.err != nil:
			return nil, c.err
		case c.over || c.closed:
			return nil, net.ErrClosed
		case ctx.Err() != nil:
			c.abort(e.now())
			return nil, context.Cause(ctx)
		}
		c.readable.Wait()
	}
	return c, nil
}

// adopt makes the Conn of a connection of the Stack.
func (e *Engine) adopt(inner *mptcp.Conn) *Conn {
	c := &Conn{engine: e, inner: inner}
	c.readable.L, c.writable.L = &e.mu, &e.mu
	c.readBy.init(&e.mu, &c.readable)
	c.writeBy.init(&e.mu, &c.writable)
	e.used = true
	if end, ok := inner.User.(ended); ok {
		c.over, c.err = true, end.err
	} else {
		e.conns[c] = struct{}{}
	}
	inner.User = c
	return c
}

// Listen accepts connections to a port on all paths; addr limits it to one local address if valid.
func (e *Engine) Listen(port uint16, addr netip.Addr) (*Listener, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, net.ErrClosed
	}
	inner, err := e.stack.Listen(e.now(), port, addr)
	if err != nil {
		return nil, err
	}
	l := &Listener{engine: e, inner: inner, local: netip.AddrPortFrom(addr, port)}
	l.arrived.L = &e.mu
	l.acceptBy.init(&e.mu, &l.arrived)
	e.listens[l] = struct{}{}
	e.used = true
	return l, nil
}
