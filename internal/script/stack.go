package script

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"time"

	"braid/clock"
	"braid/congestion"
	"braid/mptcp"
	"braid/schedule"
)

// transit is how long a packet of the script's takes: numbers of a network without any delay would be absurd.
const transit = time.Millisecond

// stackBackend is a Stack of ours on a virtual clock.
type stackBackend struct {
	now      clock.Time
	stack    *mptcp.Stack
	paths    map[netip.Addr]mptcp.PathID
	mtu      int
	listener *mptcp.Listener
	conn     *mptcp.Conn
	sent     []sentPacket
	buf      []byte
}

type sentPacket struct {
	raw []byte
	at  clock.Time
}

// NewStack returns the backend of our own stack.
func NewStack(s Setup) Backend {
	n := uint64(0)
	cfg := mptcp.Config{
		Entropy: func() uint64 { n += 0x9e3779b97f4a7c15; return (n ^ n>>29) * 0xbf58476d1ce4e5b9 },
		// As simple as what the kernel does by default, so that the scripts are about the protocol.
		Group: func() congestion.Group {
			return congestion.Uncoupled(func(c congestion.Config) congestion.Controller { return congestion.NewNewReno(c) })
		},
		Scheduler:  schedule.NewMinRTT,
		NoAnnounce: true,
		Checksums:  s.Checksums, NoMPTCP: s.NoMPTCP, NoJoinInitial: s.NoJoinInitial, NoDelay: s.NoDelay, SYNFallback: s.SYNFallback,
	}
	if s.Joins {
		cfg.Limits = mptcp.Limits{Subflows: 7, AddAddrAccepted: 8}
	}
	if s.ReceiveBuffer > 0 {
		cfg.ReceiveBuffer, cfg.FixedReceiveWindow = int64(s.ReceiveBuffer), true
	}
	b := &stackBackend{stack: mptcp.NewStack(cfg), paths: map[netip.Addr]mptcp.PathID{}, mtu: s.MTU, buf: make([]byte, 1<<16)}
	for _, i := range []int{firstPath4, firstPath6} {
		b.addPath(hostAddrs[i], 0)
	}
	return b
}

func (b *stackBackend) addPath(addr netip.Addr, flags mptcp.EndpointFlags) {
	b.paths[addr] = b.stack.AddPath(b.now, mptcp.Path{Name: addr.String(), Local: netip.AddrPortFrom(addr, 0), MTU: b.mtu, Flags: flags})
}

func (b *stackBackend) Now() time.Duration { return time.Duration(b.now) }

func (b *stackBackend) Tolerance(from, to time.Duration) (time.Duration, time.Duration) {
	return from, to
}

func (b *stackBackend) Until(done func() bool) bool { b.drain(); return done() }

// drain keeps what the Stack has to send.
func (b *stackBackend) drain() {
	for {
		p, ok := b.stack.PollPacket(b.now, b.buf)
		if !ok {
			break
		}
		b.sent = append(b.sent, sentPacket{slices.Clone(b.buf[:p.Len]), b.now})
	}
	for _, ok := b.stack.PollEvent(); ok; _, ok = b.stack.PollEvent() {
	}
}

// advance lets timers expire until there is something to take or the time has come.
func (b *stackBackend) advance(until clock.Time, stop bool) {
	for b.drain(); b.now < until && !(stop && len(b.sent) > 0); b.drain() {
		b.now = max(b.now, min(until, b.stack.NextTimeout()))
		b.stack.HandleTimeout(b.now)
	}
}

func (b *stackBackend) Inject(packet []byte) {
	b.advance(b.now.Add(transit), false)
	var dst netip.Addr
	if packet[0]>>4 == 4 {
		dst, _ = netip.AddrFromSlice(packet[16:20])
	} else {
		dst, _ = netip.AddrFromSlice(packet[24:40])
	}
	if id, ok := b.paths[dst]; ok {
		b.stack.HandlePacket(b.now, id, netip.AddrPort{}, packet)
	}
	b.drain()
}

func (b *stackBackend) Next(wait time.Duration) ([]byte, time.Duration, bool) {
	b.advance(b.now.Add(wait), true)
	if len(b.sent) == 0 {
		return nil, 0, false
	}
	p := b.sent[0]
	b.sent = b.sent[1:]
	return p.raw, time.Duration(p.at), true
}

func (b *stackBackend) Listen(addr netip.AddrPort) (err error) {
	b.listener, err = b.stack.Listen(b.now, addr.Port(), netip.Addr{})
	return err
}

func (b *stackBackend) Accept() bool {
	c, ok := b.listener.Accept()
	if ok {
		b.conn = c
	}
	return ok
}

func (b *stackBackend) Connect(addr netip.AddrPort) (err error) {
	b.conn, err = b.stack.Dial(b.now, mptcp.Target{Remote: []netip.AddrPort{addr}, Paths: []mptcp.PathID{0, 1}})
	b.drain()
	return err
}

func (b *stackBackend) Connected() Outcome {
	switch {
	case b.conn.Established():
		return OK
	case b.conn.Err() != nil:
		return outcomeOf(b.conn.Err())
	}
	return Nothing
}

// outcomeOf sorts the errors of a Conn.
func outcomeOf(err error) Outcome {
	var sub *mptcp.SubflowError
	switch {
	case err == nil:
		return OK
	case errors.Is(err, mptcp.ErrWouldBlock):
		return Nothing
	case errors.Is(err, io.EOF):
		return EOF
	case errors.Is(err, mptcp.ErrRefused):
		return Refused
	case errors.Is(err, mptcp.ErrTimeout):
		return Timeout
	case errors.Is(err, net.ErrClosed):
		return Broken
	case errors.Is(err, mptcp.ErrReset), errors.As(err, &sub) && sub.Peer:
		return Reset
	}
	return Outcome(err.Error())
}

func (b *stackBackend) Read(n int) ([]byte, Outcome) {
	p := make([]byte, n)
	n, err := b.conn.Read(b.now, p)
	b.drain()
	return p[:n], outcomeOf(err)
}

func (b *stackBackend) Write(p []byte) (int, Outcome) {
	n, err := b.conn.Write(b.now, p)
	b.drain()
	return n, outcomeOf(err)
}

func (b *stackBackend) Shutdown() error {
	defer b.drain()
	return b.conn.CloseWrite(b.now)
}

func (b *stackBackend) Close() error {
	defer b.drain()
	return b.conn.Close(b.now)
}

func (b *stackBackend) Abort() error {
	b.conn.Abort(b.now)
	b.drain()
	return nil
}

func (b *stackBackend) MPTCP() bool {
	return b.conn.Info(b.now).Fallback == mptcp.NoFallback
}

func (b *stackBackend) Endpoint(verb string, addr netip.Addr, names []string) error {
	var flags mptcp.EndpointFlags
	for f := mptcp.EndpointSubflow; f <= mptcp.EndpointFullmesh; f <<= 1 {
		if slices.Contains(names, f.String()) {
			flags |= f
		}
	}
	defer b.drain()
	id, known := b.paths[addr]
	switch verb {
	case "add":
		if known {
			b.stack.SetPathFlags(b.now, id, flags)
			return nil
		}
		b.addPath(addr, flags)
		return nil
	case "change":
		if !b.stack.SetPathFlags(b.now, id, flags) {
			return fmt.Errorf("no endpoint %v", addr)
		}
		return nil
	case "delete":
		b.stack.RemovePath(b.now, id)
		delete(b.paths, addr)
		return nil
	}
	return fmt.Errorf("endpoint %s", verb)
}
