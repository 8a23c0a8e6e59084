package host

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"braid/device"
	"braid/mptcp"
)

// A path whose interface vanishes in the middle of a transfer is removed; everything arrives over the other.
func TestVanishedInterface(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gone []mptcp.PathID
		w := newWorld(t, worldConfig{paths: 2, delay: 20 * time.Millisecond, client: Config{
			PathGone: func(id mptcp.PathID, err error) {
				var ge *device.GoneError
				if !errors.As(err, &ge) {
					t.Errorf("PathGone with %v, want a GoneError", err)
				}
				gone = append(gone, id)
			},
		}})
		defer w.close()
		client, server := w.connect()
		time.AfterFunc(150*time.Millisecond, w.ports[0].Vanish)
		transfer(t, client, server, pattern(8<<20))
		synctest.Wait()
		if len(gone) != 1 || gone[0] != w.ids[0] {
			t.Errorf("paths reported gone: %v, want %v", gone, w.ids[:1])
		}
		if all := w.client.Paths(); len(all) != 1 || all[0].Path.Name != "path1" {
			t.Errorf("paths left: %+v", all)
		}
	})
}

// A connection that has lost its only path goes on over one that comes later.
func TestPathComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, worldConfig{delay: 10 * time.Millisecond})
		defer w.close()
		client, server := w.connect()
		transferSome(t, client, server)
		w.client.RemovePath(w.ids[0])
		time.AfterFunc(5*time.Second, func() { w.addPath(clientAddr(7), 10*time.Millisecond) })
		start := time.Now()
		transfer(t, client, server, pattern(100_000))
		if d := time.Since(start); d < 5*time.Second || d > 8*time.Second {
			t.Errorf("took %v, want a little over 5s", d)
		}
	})
}

func TestDialEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, worldConfig{})
		defer w.close()
		w.ports[0].Drop(func(netip.AddrPort, []byte) bool { return true })
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		start := time.Now()
		_, err := w.client.Dial(ctx, []netip.AddrPort{serverAddr}, nil)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 4*time.Second {
			t.Errorf("Dial: %v after %v, want DeadlineExceeded after 4s", err, time.Since(start))
		}
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err = w.client.Dial(ctx, []netip.AddrPort{serverAddr}, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled Dial: %v", err)
		}
		if _, err = w.client.Dial(ctx, []netip.AddrPort{serverAddr}, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("Dial with a cancelled context: %v", err)
		}
	})
}

func TestDialFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, worldConfig{delay: time.Millisecond, client: Config{Stack: mptcp.Config{DialTimeout: 10 * time.Second}}})
		defer w.close()
		closed := netip.AddrPortFrom(serverAddr.Addr(), serverAddr.Port())
		w.listener.Close()
		if _, err := w.client.Dial(t.Context(), []netip.AddrPort{closed}, nil); !errors.Is(err, mptcp.ErrRefused) {
			t.Errorf("nobody listens: %v, want ErrRefused", err)
		}
		start := time.Now()
		nowhere := netip.MustParseAddrPort("10.77.0.1:1")
		if _, err := w.client.Dial(t.Context(), []netip.AddrPort{nowhere}, nil); !errors.Is(err, mptcp.ErrTimeout) {
			t.Errorf("nobody there: %v, want ErrTimeout", err)
		}
		if d := time.Since(start); d > 11*time.Second {
			t.Errorf("gave up after %v", d)
		}
		if _, err := w.client.Dial(t.Context(), []netip.AddrPort{netip.MustParseAddrPort("[2001:db8::1]:1")}, nil); !errors.Is(err, mptcp.ErrNoPath) {
			t.Errorf("no IPv6 path: %v, want ErrNoPath", err)
		}
	})
}

func TestListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, worldConfig{delay: time.Millisecond})
		defer w.close()
		if _, err := w.server.Listen(serverAddr.Port(), netip.Addr{}); !errors.Is(err, mptcp.ErrAddressInUse) {
			t.Errorf("second Listen: %v, want ErrAddressInUse", err)
		}
		start := time.Now()
		w.listener.SetDeadline(start.Add(time.Second))
		if _, err := w.listener.Accept(); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("Accept: %v after %v", err, time.Since(start))
		}
		w.listener.SetDeadline(time.Time{})

		// A client that has come, spoken and gone before it is accepted is accepted all the same.
		c, err := w.client.Dial(t.Context(), []netip.AddrPort{serverAddr}, nil)
		if err != nil {
			t.Fatal(err)
		}
		c.Write([]byte("I was here"))
		c.Close()
		time.Sleep(10 * time.Second)
		s, err := w.listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(s); string(got) != "I was here" || err != nil {
			t.Errorf("read %q, %v", got, err)
		}
		s.Close()

		done := make(chan error, 1)
		go func() { _, err := w.listener.Accept(); done <- err }()
		synctest.Wait()
		w.listener.Close()
		if err := <-done; !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept on a closed listener: %v", err)
		}
		if err := w.listener.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("second Close: %v", err)
		}
	})
}

// Close of an Engine ends every call that waits, and every goroutine: the bubble would not end otherwise.
func TestEngineClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, worldConfig{paths: 2, delay: time.Millisecond})
		client, server := w.connect()
		errs := make(chan error, 2)
		go func() { _, err := client.Read(make([]byte, 1)); errs <- err }()
		go func() {
			_, err := w.client.Dial(t.Context(), []netip.AddrPort{netip.MustParseAddrPort("10.77.0.1:1")}, nil)
			errs <- err
		}()
		synctest.Wait()
		w.client.Close()
		for range 2 {
			if err := <-errs; !errors.Is(err, net.ErrClosed) {
				t.Errorf("blocked call: %v, want net.ErrClosed", err)
			}
		}
		if _, err := server.Read(make([]byte, 1)); !errors.Is(err, mptcp.ErrReset) {
			t.Errorf("peer read: %v, want ErrReset", err)
		}
		if _, err := w.client.Dial(t.Context(), []netip.AddrPort{serverAddr}, nil); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Dial: %v", err)
		}
		if _, err := w.client.Listen(1, netip.Addr{}); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Listen: %v", err)
		}
		<-w.client.Done()
		w.server.Close()
		w.server.Close()
	})
}

// Shutdown of an Engine delivers what was written on all its connections first.
func TestEngineShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, worldConfig{delay: 50 * time.Millisecond})
		defer w.close()
		data := pattern(1 << 20)
		got := make(chan bool, 3)
		for range 3 {
			client, server := w.connect()
			go func() {
				b, err := io.ReadAll(server)
				server.Close()
				got <- err == nil && bytes.Equal(b, data)
			}()
			if _, err := client.Write(data); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.client.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		for range 3 {
			if !<-got {
				t.Error("a peer has not got everything")
			}
		}
	})
}

// AutoClose: the last one out turns off the light.
func TestAutoClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, worldConfig{delay: time.Millisecond, client: Config{AutoClose: true}, server: Config{AutoClose: true, Linger: time.Second}})
		client, server := w.connect()
		w.listener.Close()
		time.Sleep(time.Minute)
		select {
		case <-w.server.Done():
			t.Fatal("closed with a connection open")
		default:
		}
		start := time.Now()
		client.Close()
		server.Close()
		<-w.server.Done()
		<-w.client.Done()
		if d := time.Since(start); d < defaultLinger || d > defaultLinger+time.Second {
			t.Errorf("closed after %v, want a little over %v", d, defaultLinger)
		}
	})
}

func TestEntropy(t *testing.T) {
	var e entropy
	seen := make(map[uint64]bool)
	for range 1000 {
		seen[e.next()] = true
	}
	if len(seen) != 1000 {
		t.Errorf("%d different values of 1000", len(seen))
	}
	if n := testing.AllocsPerRun(1000, func() { e.next() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
