package mptcp

import (
	"fmt"
	"net"
	"net/netip"

	"braid/clock"
	"braid/wire"
)

// Listener accepts connections to one port.
type Listener struct {
	stack     *Stack
	key       listenKey
	queue     []*Conn // established and not accepted
	half      halfList
	announced bool // EventAccept waits
	closed    bool
}

// listenKey is what a listener is found by; the zero address is any.
type listenKey struct {
	addr netip.Addr
	port uint16
}

// Listen accepts connections to a port: at one local address, or at all if addr is the zero Addr or unspecified. On UDP paths
// the port is the one in the TCP header, by convention the socket's (docs/encapsulation.md).
func (s *Stack) Listen(now clock.Time, port uint16, addr netip.Addr) (*Listener, error) {
	if addr.IsUnspecified() {
		addr = netip.Addr{}
	}
	key := listenKey{addr.Unmap().WithZone(""), port}
	if port == 0 {
		return nil, fmt.Errorf("mptcp: listen: port 0")
	}
	if s.listeners[key] != nil {
		return nil, fmt.Errorf("%w: port %d", ErrAddressInUse, port)
	}
	l := &Listener{stack: s, key: key}
	s.listeners[key] = l
	return l, nil
}

// Addr returns the address and port that the listener was made with.
func (l *Listener) Addr() netip.AddrPort { return netip.AddrPortFrom(l.key.addr, l.key.port) }

// Accept takes the next established connection, false if there is none.
func (l *Listener) Accept() (*Conn, bool) {
	if len(l.queue) == 0 {
		return nil, false
	}
	c := l.queue[0]
	l.queue[0] = nil
	l.queue = l.queue[1:]
	if len(l.queue) == 0 {
		l.queue = nil
	}
	return c, true
}

// Close ends the listener. Connections that were not accepted are aborted, half-open ones forgotten. It returns net.ErrClosed the
// second time.
func (l *Listener) Close(now clock.Time) error {
	if l.closed {
		return net.ErrClosed
	}
	l.closed = true
	delete(l.stack.listeners, l.key)
	for l.half.first != nil {
		l.half.first.close()
	}
	for c, ok := l.Accept(); ok; c, ok = l.Accept() {
		c.Abort(now)
	}
	return nil
}

// listenerFor returns the listener for a SYN.
func (s *Stack) listenerFor(addr netip.Addr, port uint16) *Listener {
	if l := s.listeners[listenKey{addr, port}]; l != nil {
		return l
	}
	return s.listeners[listenKey{port: port}]
}

// handleSYN takes the SYN of no connection.
func (s *Stack) handleSYN(now clock.Time, key tuple, r *route, size int) {
	seg := &s.in
	s.counters.SYNsReceived++
	capable, join := seg.Has(wire.OptMPCapable), seg.Has(wire.OptMPJoin)
	if capable {
		s.counters.CapableSYNsReceived++
	}
	if join && !capable {
		s.handleJoinSYN(now, key, r, size)
		return
	}
	l := s.listenerFor(r.local.Addr(), seg.DstPort)
	if l == nil {
		s.refuse(now, r, seg)
		return
	}
	if len(s.conns) >= s.cfg.MaxConns || s.Memory() >= s.cfg.StackMemory {
		s.counters.SYNsDropped++
		return
	}
	if l.half.n >= s.cfg.Backlog && r.kind == IP {
		s.answerStateless(now, key, r)
		return
	}
	h := s.newHalfOpen(now, key, r, size)
	h.listener = l
	if s.offered(seg) {
		h.localKey, h.token, h.mptcp = s.newKey()
		h.peerChecksums = seg.Capable.Checksums
		h.peerNoJoin = seg.Capable.NoJoin
	}
	l.half.add(h, s.cfg.Backlog)
	h.answer()
}

// offered reports whether a SYN asks for MPTCP in a way that we can answer. One with both options is neither
// (RFC 8684, Sections 3.1 and 3.2): it is plain TCP.
func (s *Stack) offered(seg *wire.Segment) bool {
	return seg.Has(wire.OptMPCapable) && !seg.Has(wire.OptMPJoin) && !s.cfg.NoMPTCP && offerable(&seg.Capable)
}

// enqueue puts an established connection into the accept queue.
func (l *Listener) enqueue(c *Conn) {
	l.queue = append(l.queue, c)
	l.stack.counters.Accepts++
	if !l.announced {
		l.announced = true
		l.stack.emit(Event{Kind: EventAccept, Listener: l})
	}
}
