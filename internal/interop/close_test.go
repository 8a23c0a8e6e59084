//go:build linux

package interop

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
)

// send writes data from one end and reads it at the other.
func send(t testing.TB, from, to net.Conn, data []byte) {
	t.Helper()
	wrote := make(chan error, 1)
	go func() {
		_, err := from.Write(data)
		wrote <- err
	}()
	got := make([]byte, len(data))
	n, err := io.ReadFull(to, got)
	if err != nil {
		t.Fatalf("read %d of %d bytes: %v", n, len(data), err)
	}
	if err := <-wrote; err != nil {
		t.Fatalf("write: %v", err)
	}
	if digest(got) != digest(data) {
		t.Fatalf("received %d other bytes", len(got))
	}
}

// wantEOF checks that the peer's stream has come to its end.
func wantEOF(t testing.TB, c net.Conn) {
	t.Helper()
	if n, err := c.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Fatalf("read %d, %v at the end of the stream", n, err)
	}
}

// TestHalfClose: a DATA_FIN ends one direction only (RFC 8684, Section 3.3.3).
func TestHalfClose(t *testing.T) {
	data := stream(8*mib, 9)
	for _, role := range roles {
		for _, first := range []string{"braid", "kernel"} {
			t.Run(role.name+" "+first+" first", func(t *testing.T) {
				w := newWorld(t, setup{})
				p := role.dial(w, true)
				var a, b duplex = p.own, p.kernel
				if first == "kernel" {
					a, b = b, a
				}
				send(t, a, b, data[:mib])
				if err := a.CloseWrite(); err != nil {
					t.Fatal(err)
				}
				wantEOF(t, b)
				send(t, b, a, data)
				if err := b.CloseWrite(); err != nil {
					t.Fatal(err)
				}
				wantEOF(t, a)
				w.gone(p)
				w.calm()
			})
		}
	}
}

// gone waits until both ends have finished a connection of which both directions are closed.
func (w *world) gone(p pair) {
	w.t.Helper()
	if err := p.own.Shutdown(w.ctx); err != nil {
		w.t.Errorf("shutdown: %v", err)
	}
	p.kernel.Close()
	w.until("the kernel forgets the connection", func() bool { return w.count("MPCurrEstab") == 0 })
}

// TestClose closes both directions of one end at once: what was written still arrives.
func TestClose(t *testing.T) {
	data := stream(4*mib, 10)
	for _, role := range roles {
		for _, first := range []string{"braid", "kernel"} {
			t.Run(role.name+" "+first+" first", func(t *testing.T) {
				w := newWorld(t, setup{})
				p := role.dial(w, true)
				var a, b duplex = p.own, p.kernel
				if first == "kernel" {
					a, b = b, a
				}
				got := make(chan error, 1)
				go func() {
					read, err := readAll(b, len(data))
					if err == nil && digest(read) != digest(data) {
						err = errors.New("other bytes arrived")
					}
					got <- err
				}()
				if _, err := a.Write(data); err != nil {
					t.Fatal(err)
				}
				if err := a.Close(); err != nil {
					t.Fatal(err)
				}
				if err := <-got; err != nil {
					t.Fatal(err)
				}
				b.Close()
				w.until("the kernel forgets the connection", func() bool { return w.count("MPCurrEstab") == 0 })
				w.calm()
			})
		}
	}
}

// TestAbort ends a connection at once, with data under way: RFC 8684, Section 3.5.
func TestAbort(t *testing.T) {
	data := stream(mib, 11)
	for _, role := range roles {
		t.Run(role.name+" braid aborts", func(t *testing.T) {
			w := newWorld(t, setup{})
			p := role.dial(w, true)
			send(t, p.own, p.kernel, data)
			send(t, p.kernel, p.own, data)
			p.own.Abort()
			if _, err := io.Copy(io.Discard, p.kernel); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the kernel's read: %v, want a reset", err)
			}
			w.wantCounts(map[string]int64{"MPFastcloseRx": 1})
			w.calm("MPFastcloseRx", "MPRstTx", "MPRstRx")
		})
		t.Run(role.name+" kernel aborts", func(t *testing.T) {
			w := newWorld(t, setup{})
			p := role.dial(w, true)
			send(t, p.own, p.kernel, data)
			send(t, p.kernel, p.own, data)
			p.kernel.SetLinger(0)
			p.kernel.Close()
			if _, err := io.Copy(io.Discard, p.own); err == nil {
				t.Error("the read saw an orderly end")
			}
			w.wantCounts(map[string]int64{"MPFastcloseTx": 1})
			w.calm("MPFastcloseTx", "MPRstTx", "MPRstRx")
			if got := w.engine.Counters().FastClosesReceived; got != 1 {
				t.Errorf("braid received %d MP_FASTCLOSE", got)
			}
		})
		t.Run(role.name+" kernel closes with unread data", func(t *testing.T) {
			w := newWorld(t, setup{})
			p := role.dial(w, true)
			wrote := make(chan error, 1)
			go func() {
				_, err := p.own.Write(stream(16*mib, 11)) // more than the kernel takes unread
				wrote <- err
			}()
			if _, err := io.ReadFull(p.kernel, make([]byte, 1000)); err != nil {
				t.Fatal(err)
			}
			p.kernel.Close()
			if _, err := io.Copy(io.Discard, p.own); err == nil {
				t.Error("the read saw an orderly end")
			}
			if err := <-wrote; err == nil {
				t.Error("the write went through")
			}
			w.wantCounts(map[string]int64{"MPFastcloseTx": 1})
			w.calm("MPFastcloseTx", "MPRstTx", "MPRstRx")
		})
	}
}
