// Package devicetest is the in-memory twin of package device: Ports on a Network that lives in the process.
//
// Packets are handed over in the order in which they are due, whole, and only between Ports of one Network. A Port may delay
// its packets, drop them, or vanish, which is what tests of the layers above need; it does not shape, queue or reorder (package link
// does). It works inside a testing/synctest bubble: its only waits are on a condition and on timers.
package devicetest

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"braid/device"
)

// Network connects Ports by address. The zero Network is ready.
type Network struct {
	mu    sync.Mutex
	ports map[netip.AddrPort]*Port
}

// Port is a device.Device on a Network.
type Port struct {
	net   *Network
	local netip.AddrPort
	opts  Options

	mu      sync.Mutex
	arrived sync.Cond
	queue   []packet
	spare   [][]byte // packet buffers to use again
	timer   *time.Timer
	err     error // why Read ends
	count   device.Counters
	drop    func(to netip.AddrPort, p []byte) bool
	tap     func(from, to netip.AddrPort, p []byte)
}

type packet struct {
	from netip.AddrPort
	data []byte
	due  time.Time // zero: at once
}

var _ device.Device = (*Port)(nil)

// Options of a Port. The zero Options are an Ethernet without delay.
type Options struct {
	MTU   int           // largest IP packet, counting 28 bytes (IPv4) or 48 (IPv6) before a payload; 0: 1500
	Delay time.Duration // from Write to when Read on the other side may return the packet
	// DelayTo, if set, takes the place of Delay by destination: Ports of different distance.
	DelayTo func(to netip.AddrPort) time.Duration
	Limit   int // packets waiting at this Port before more are dropped; 0: 65536
}

const (
	overhead4 = 28
	overhead6 = 48
	batchSize = 256 // most packets that one Read returns
)

// Open adds a Port with the given address to the Network. It panics if the address is taken: tests choose addresses.
func (n *Network) Open(local netip.AddrPort, opts Options) *Port {
	if opts.MTU == 0 {
		opts.MTU = 1500
	}
	if opts.Limit == 0 {
		opts.Limit = 1 << 16
	}
	p := &Port{net: n, local: local, opts: opts}
	p.arrived.L = &p.mu
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ports == nil {
		n.ports = make(map[netip.AddrPort]*Port)
	}
	if n.ports[local] != nil {
		panic("devicetest: address " + local.String() + " is taken")
	}
	n.ports[local] = p
	return p
}

// Pair returns two Ports of a Network of their own.
func Pair(a, b netip.AddrPort, opts Options) (*Port, *Port) {
	var n Network
	return n.Open(a, opts), n.Open(b, opts)
}

// Drop sets a function that says which of the packets written to this Port get lost; nil: none. It is called under the Port's lock
// in the order of writing.
func (p *Port) Drop(f func(to netip.AddrPort, payload []byte) bool) {
	p.mu.Lock()
	p.drop = f
	p.mu.Unlock()
}

// Tap sets a function that sees every packet written to this Port, before Drop; nil: none.
func (p *Port) Tap(f func(from, to netip.AddrPort, payload []byte)) {
	p.mu.Lock()
	p.tap = f
	p.mu.Unlock()
}

// Vanish lets the Port behave as if its interface had been removed.
func (p *Port) Vanish() {
	p.end(&device.GoneError{Name: p.local.String(), Err: errors.New("removed by the test")})
}

// Read waits for packets and returns all that are due.
func (p *Port) Read(b *device.Batch) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, old := range b.Packets {
		p.spare = append(p.spare, old.Data)
	}
	b.Packets = b.Packets[:0]
	for {
		if p.err != nil {
			return p.err
		}
		n := p.due()
		if n > 0 {
			for _, q := range p.queue[:n] {
				b.Packets = append(b.Packets, device.Packet{Data: q.data, From: q.from})
				p.count.ReceivedBytes += int64(len(q.data))
			}
			p.queue = slices.Delete(p.queue, 0, n)
			p.count.Received += int64(n)
			p.count.ReceivedCalls++
			return nil
		}
		p.arrived.Wait()
	}
}

// due counts the packets at the head of the queue that may be read, and sets the timer for the first that may not yet.
func (p *Port) due() int {
	for i, q := range p.queue[:min(len(p.queue), batchSize)] {
		if q.due.IsZero() {
			continue
		}
		if wait := time.Until(q.due); wait > 0 {
			if i == 0 {
				p.wakeIn(wait)
			}
			return i
		}
	}
	return min(len(p.queue), batchSize)
}

func (p *Port) wakeIn(d time.Duration) {
	if p.timer == nil {
		p.timer = time.AfterFunc(d, func() {
			p.mu.Lock()
			p.arrived.Signal()
			p.mu.Unlock()
		})
		return
	}
	p.timer.Reset(d)
}

// Write hands the datagrams of t over, each by itself.
func (p *Port) Write(t device.Train) error {
	p.net.mu.Lock()
	to := p.net.ports[t.To]
	p.net.mu.Unlock()
	var result error
	for data := t.Data; len(data) > 0; {
		n := min(t.Size, len(data))
		sent, err := p.sending(t.To, data[:n])
		if err != nil {
			result = err
		}
		if sent && to != nil {
			to.deliver(p.local, data[:n], p.delay(t.To))
		}
		data = data[n:]
	}
	return result
}

// sending counts a packet that is about to leave and says whether it does.
func (p *Port) sending(to netip.AddrPort, data []byte) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return false, p.err
	}
	if p.tap != nil {
		p.tap(p.local, to, data)
	}
	overhead := overhead4
	if to.Addr().Is6() {
		overhead = overhead6
	}
	if len(data)+overhead > p.opts.MTU {
		p.count.TooLarge++
		return false, &device.TooLargeError{MTU: p.opts.MTU}
	}
	p.count.Sent++
	p.count.SentCalls++
	p.count.SentBytes += int64(len(data))
	return p.drop == nil || !p.drop(to, data), nil
}

func (p *Port) delay(to netip.AddrPort) time.Duration {
	if p.opts.DelayTo != nil {
		return p.opts.DelayTo(to)
	}
	return p.opts.Delay
}

func (p *Port) deliver(from netip.AddrPort, data []byte, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return
	}
	if len(p.queue) >= p.opts.Limit {
		p.count.Dropped++
		return
	}
	var buf []byte
	if n := len(p.spare); n > 0 {
		buf, p.spare = p.spare[n-1][:0], p.spare[:n-1]
	}
	q := packet{from: from, data: append(buf, data...)}
	if delay > 0 {
		q.due = time.Now().Add(delay)
	}
	at := len(p.queue) // packets of a nearer Port overtake those of a farther one, not each other
	for at > 0 && p.queue[at-1].due.After(q.due) {
		at--
	}
	p.queue = slices.Insert(p.queue, at, q)
	p.arrived.Signal()
}

// LocalAddr is the address that the Port was opened with.
func (p *Port) LocalAddr() netip.AddrPort { return p.local }

// MTU is Options.MTU.
func (p *Port) MTU() int { return p.opts.MTU }

// Counters returns what happened so far. Dropped counts packets that found this Port's queue full.
func (p *Port) Counters() device.Counters {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

// Close removes the Port from its Network and ends its Read with net.ErrClosed.
func (p *Port) Close() error {
	p.end(net.ErrClosed)
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	if p.net.ports[p.local] == p {
		delete(p.net.ports, p.local)
	}
	return nil
}

func (p *Port) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
	if p.timer != nil {
		p.timer.Stop()
	}
	p.queue = nil
	p.arrived.Broadcast()
}
