package host

import (
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"braid/mptcp"
)

// Listener is a net.Listener for MPTCP connections.
type Listener struct {
	engine   *Engine
	inner    *mptcp.Listener
	local    netip.AddrPort
	arrived  sync.Cond
	acceptBy deadline
	closed   bool
}

var _ net.Listener = (*Listener)(nil)

// Accept waits for a connection. Its handshake is complete.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.AcceptConn()
	if err != nil {
		return nil, err
	}
	return c, nil
}

// AcceptConn is Accept with the Conn's own type.
func (l *Listener) AcceptConn() (*Conn, error) {
	e := l.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		if l.closed {
			return nil, l.fail(net.ErrClosed)
		}
		if l.acceptBy.passed() {
			return nil, l.fail(os.ErrDeadlineExceeded)
		}
		if inner, ok := l.inner.Accept(); ok {
			return e.adopt(inner), nil
		}
		l.arrived.Wait()
	}
}

func (l *Listener) fail(err error) error {
	return &net.OpError{Op: "accept", Net: network, Addr: l.Addr(), Err: err}
}

// SetDeadline says when Accept gives up with os.ErrDeadlineExceeded; the zero Time: never.
func (l *Listener) SetDeadline(t time.Time) error {
	l.engine.mu.Lock()
	defer l.engine.mu.Unlock()
	if l.closed {
		return l.fail(net.ErrClosed)
	}
	l.acceptBy.set(t)
	return nil
}

// Close stops accepting. Connections that were accepted go on; those that wait to be accepted are reset.
func (l *Listener) Close() error {
	e := l.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if l.closed {
		return &net.OpError{Op: "close", Net: network, Addr: l.Addr(), Err: net.ErrClosed}
	}
	l.close()
	if !e.closed {
		e.service(e.now())
	}
	return nil
}

// close is Close under the lock.
func (l *Listener) close() {
	if l.closed {
		return
	}
	l.closed = true
	l.acceptBy.stop()
	l.inner.Close(l.engine.now())
	l.arrived.Broadcast()
	delete(l.engine.listens, l)
	l.engine.quieter()
}

// Addr is the address that was listened on: a *net.TCPAddr, whatever carries the connections.
func (l *Listener) Addr() net.Addr { return net.TCPAddrFromAddrPort(l.local) }

// Engine returns the Engine that drives the listener and its connections: its Shutdown ends all of them in good order.
func (l *Listener) Engine() *Engine { return l.engine }
