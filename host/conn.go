package host

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"braid/clock"
	"braid/mptcp"
)

// network is what errors and addresses call the kind of connection.
const network = "mptcp"

// Conn is a net.Conn over all paths of its Engine. Its methods may be called from any goroutine.
type Conn struct {
	engine *Engine
	inner  *mptcp.Conn

	// All of this is the monitor's.
	readable, writable sync.Cond
	readBy, writeBy    deadline
	writing            bool // a Write is at work: others wait for their turn
	closed             bool // the application called Close, or the Engine was closed
	over               bool // the Stack has finished with it
	err                error
}

var _ net.Conn = (*Conn)(nil)

// Read waits for data and returns what is there, up to len(p). It returns io.EOF at the end of the peer's stream.
func (c *Conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	e := c.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		if c.closed {
			return 0, c.fail("read", net.ErrClosed)
		}
		if c.readBy.passed() {
			return 0, c.fail("read", os.ErrDeadlineExceeded)
		}
		now := e.now()
		n, err := c.inner.Read(now, p)
		if n > 0 {
			e.service(now) // the window may have opened: the peer must hear of it
			return n, nil
		}
		if err != nil && !errors.Is(err, mptcp.ErrWouldBlock) {
			return 0, c.fail("read", err)
		}
		c.readable.Wait()
	}
}

// Write hands p to the connection and returns when all of it is buffered, not when it has arrived.
func (c *Conn) Write(p []byte) (int, error) {
	e := c.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	for c.writing && !c.closed && !c.writeBy.passed() {
		c.writable.Wait()
	}
	if c.closed {
		return 0, c.fail("write", net.ErrClosed)
	}
	if c.writeBy.passed() {
		return 0, c.fail("write", os.ErrDeadlineExceeded)
	}
	c.writing = true
	n, err := c.write(p)
	c.writing = false
	c.writable.Broadcast()
	return n, err
}

// write is Write when its turn has come.
func (c *Conn) write(p []byte) (done int, err error) {
	e := c.engine
	for {
		now := e.now()
		n, err := c.inner.Write(now, p[done:])
		done += n
		if n > 0 {
			e.service(now)
		}
		if err != nil && !errors.Is(err, mptcp.ErrWouldBlock) {
			return done, c.fail("write", err)
		}
		if done == len(p) {
			return done, nil // also of an empty Write, which only finds out whether writing is possible
		}
		if n == 0 {
			c.writable.Wait()
		}
		switch {
		case c.closed:
			return done, c.fail("write", net.ErrClosed)
		case c.writeBy.passed():
			return done, c.fail("write", os.ErrDeadlineExceeded)
		}
	}
}

// fail dresses an error as package net does. The end of the stream stays io.EOF.
func (c *Conn) fail(op string, err error) error {
	if err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: network, Source: c.localAddr(), Addr: c.remoteAddr(), Err: err}
}

// CloseWrite ends the stream to the peer after everything written; reading goes on.
func (c *Conn) CloseWrite() error {
	e := c.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if c.closed {
		return c.fail("close", net.ErrClosed)
	}
	now := e.now()
	err := c.inner.CloseWrite(now)
	e.service(now)
	if err != nil {
		return c.fail("close", err)
	}
	return nil
}

// Close ends the connection in both directions and returns at once: the Engine goes on delivering what was written. A
// program that is about to exit uses Shutdown, because what is unsent is lost with the process. Close with unread data
// aborts the connection, as TCP does.
func (c *Conn) Close() error {
	e := c.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if c.closed {
		return c.fail("close", net.ErrClosed)
	}
	return c.close()
}

// close is Close under the lock.
func (c *Conn) close() error {
	if c.closed {
		return nil
	}
	e := c.engine
	c.release()
	if c.over || e.closed {
		return nil
	}
	now := e.now()
	err := c.inner.Close(now)
	e.service(now)
	if err != nil {
		return c.fail("close", err)
	}
	return nil
}

// Shutdown closes the connection and waits until the peer has acknowledged everything and the connection is over, or ctx is done. The
// error says why not everything may have arrived.
func (c *Conn) Shutdown(ctx context.Context) error {
	e := c.engine
	stop := context.AfterFunc(ctx, func() {
		e.mu.Lock()
		c.writable.Broadcast()
		e.mu.Unlock()
	})
	defer stop()
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := c.close(); err != nil {
		return err
	}
	for !c.over {
		if ctx.Err() != nil {
			return c.fail("shutdown", context.Cause(ctx))
		}
		if e.closed {
			return c.fail("shutdown", net.ErrClosed)
		}
		c.writable.Wait()
	}
	if c.err != nil {
		return c.fail("shutdown", c.err)
	}
	return nil
}

// Abort ends the connection at once and tells the peer so (MP_FASTCLOSE: RFC 8684, Section 3.5). What was not delivered is lost.
func (c *Conn) Abort() {
	e := c.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || c.over {
		return
	}
	now := e.now()
	c.abort(now)
	e.service(now)
}

// abort is Abort without sending. The Stack reports the end with its own event.
func (c *Conn) abort(now clock.Time) {
	c.release()
	c.inner.Abort(now)
}

// release ends all waiting of the application.
func (c *Conn) release() {
	c.closed = true
	c.readBy.stop()
	c.writeBy.stop()
	c.readable.Broadcast()
	c.writable.Broadcast()
}

// SetDeadline says when reads and writes give up with os.ErrDeadlineExceeded; the zero Time: never.
func (c *Conn) SetDeadline(t time.Time) error { return c.setDeadlines(t, &c.readBy, &c.writeBy) }

// SetReadDeadline says when reads give up.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadlines(t, &c.readBy) }

// SetWriteDeadline says when writes give up. A write that gives up may have taken part of its data: it says how much.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadlines(t, &c.writeBy) }

func (c *Conn) setDeadlines(t time.Time, all ...*deadline) error {
	c.engine.mu.Lock()
	defer c.engine.mu.Unlock()
	if c.closed {
		return c.fail("set deadline", net.ErrClosed)
	}
	for _, d := range all {
		d.set(t)
	}
	return nil
}

// LocalAddr is the local address of the first subflow, even after it has closed: a *net.TCPAddr.
func (c *Conn) LocalAddr() net.Addr {
	c.engine.mu.Lock()
	defer c.engine.mu.Unlock()
	return c.localAddr()
}

// RemoteAddr is the peer's address on the first subflow, even after it has closed: a *net.TCPAddr.
func (c *Conn) RemoteAddr() net.Addr {
	c.engine.mu.Lock()
	defer c.engine.mu.Unlock()
	return c.remoteAddr()
}

func (c *Conn) localAddr() net.Addr  { return net.TCPAddrFromAddrPort(c.inner.LocalAddr()) }
func (c *Conn) remoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.inner.RemoteAddr()) }

// Info returns the state of the connection and of its subflows.
func (c *Conn) Info() mptcp.Info {
	c.engine.mu.Lock()
	defer c.engine.mu.Unlock()
	return c.inner.Info(c.engine.now())
}

// Engine returns the Engine that drives the connection.
func (c *Conn) Engine() *Engine { return c.engine }
