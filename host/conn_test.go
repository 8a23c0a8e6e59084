package host

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"braid/mptcp"
)

func TestTransferOverOneAndTwoPaths(t *testing.T) {
	for _, paths := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, worldConfig{paths: paths, delay: 10 * time.Millisecond})
			defer w.close()
			client, server := w.connect()
			transfer(t, client, server, pattern(3<<20))
			transfer(t, server, client, pattern(1<<20))
			for i, p := range w.ports {
				if n := p.Counters().SentBytes; n < 100_000 {
					t.Errorf("%d paths: path %d carried %d bytes", paths, i, n)
				}
			}
		})
	}
}

// Deadlines in a bubble are exact, for calls that wait already and for those to come.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, worldConfig{client: Config{Stack: mptcp.Config{SendBuffer: 64 << 10}}})
		defer w.close()
		client, _ := w.connect()
		large := make([]byte, 4<<20) // more than both buffers take, as nobody reads
		tests := []struct {
			name string
			set  func(time.Time) error
			call func() error
		}{
			{"read", client.SetReadDeadline, func() error { _, err := client.Read(make([]byte, 1)); return err }},
			{"write", client.SetWriteDeadline, func() error { _, err := client.Write(large); return err }},
			{"both", client.SetDeadline, func() error { _, err := client.Read(make([]byte, 1)); return err }},
		}
		for _, tt := range tests {
			start := time.Now()
			if err := tt.set(start.Add(time.Second)); err != nil {
				t.Fatal(err)
			}
			if err := tt.call(); !isTimeout(err) || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: %v, want a timeout", tt.name, err)
			}
			if d := time.Since(start); d != time.Second {
				t.Errorf("%s gave up after %v, want 1s", tt.name, d)
			}
			if err := tt.call(); !isTimeout(err) || time.Since(start) != time.Second {
				t.Errorf("%s after the deadline: %v after %v, want a timeout at once", tt.name, err, time.Since(start))
			}
			tt.set(time.Time{})
			done := make(chan error, 1)
			go func() { done <- tt.call() }()
			time.Sleep(time.Hour) // no deadline: it waits
			synctest.Wait()
			select {
			case err := <-done:
				t.Fatalf("%s without a deadline ended: %v", tt.name, err)
			default:
			}
			tt.set(time.Now().Add(-time.Second)) // one in the past ends it
			if err := <-done; !isTimeout(err) {
				t.Errorf("%s with a deadline in the past: %v", tt.name, err)
			}
			tt.set(time.Time{})
		}
	})
}

func TestCloseUnblocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, worldConfig{client: Config{Stack: mptcp.Config{SendBuffer: 64 << 10}}})
		defer w.close()
		client, _ := w.connect()
		errs := make(chan error, 4)
		for range 2 {
			go func() { _, err := client.Read(make([]byte, 1)); errs <- err }()
			go func() { _, err := client.Write(make([]byte, 8<<20)); errs <- err }()
		}
		synctest.Wait()
		if err := client.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		for range 4 {
			if err := <-errs; !errors.Is(err, net.ErrClosed) {
				t.Errorf("blocked call: %v, want net.ErrClosed", err)
			}
		}
		if err := client.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("second Close: %v, want net.ErrClosed", err)
		}
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Read: %v, want net.ErrClosed", err)
		}
		if err := client.SetDeadline(time.Time{}); !errors.Is(err, net.ErrClosed) {
			t.Errorf("SetDeadline: %v, want net.ErrClosed", err)
		}
	})
}

// FIN-08: after CloseWrite the other direction goes on.
func TestHalfClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, worldConfig{delay: 5 * time.Millisecond})
		defer w.close()
		client, server := w.connect()
		if _, err := client.Write([]byte("question")); err != nil {
			t.Fatal(err)
		}
		if err := client.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(server); string(got) != "question" || err != nil {
			t.Errorf("server read %q, %v", got, err)
		}
		if _, err := client.Write([]byte("more")); err == nil {
			t.Error("Write after CloseWrite succeeded")
		}
		if _, err := server.Write([]byte("answer")); err != nil {
			t.Fatal(err)
		}
		if err := server.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(client); string(got) != "answer" || err != nil {
			t.Errorf("client read %q, %v", got, err)
		}
	})
}

// Close returns at once; Shutdown returns when the peer has everything.
func TestShutdownWaitsForDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, worldConfig{delay: 100 * time.Millisecond})
		defer w.close()
		client, server := w.connect()
		data := pattern(1 << 20)
		read := make(chan int, 1)
		go func() {
			b, _ := io.ReadAll(server)
			server.Close()
			read <- len(b)
		}()
		if _, err := client.Write(data); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := client.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if time.Since(start) < 200*time.Millisecond {
			t.Errorf("Shutdown returned after %v, before anything can have been acknowledged", time.Since(start))
		}
		select {
		case n := <-read:
			if n != len(data) {
				t.Errorf("peer read %d bytes, want %d", n, len(data))
			}
		default:
			t.Error("Shutdown returned before the peer had everything")
		}
	})
}

func TestShutdownEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, worldConfig{delay: 10 * time.Millisecond})
		defer w.close()
		client, _ := w.connect()
		time.Sleep(time.Second)
		w.ports[0].Drop(func(netip.AddrPort, []byte) bool { return true })
		if _, err := client.Write(pattern(1000)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		if err := client.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown: %v, want context.DeadlineExceeded", err)
		}
		if d := time.Since(start); d != 3*time.Second {
			t.Errorf("Shutdown returned after %v, want 3s", d)
		}
	})
}

func TestAbortReachesThePeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, worldConfig{delay: 5 * time.Millisecond})
		defer w.close()
		client, server := w.connect()
		transferSome(t, client, server)
		client.Abort()
		if _, err := server.Read(make([]byte, 1)); !errors.Is(err, mptcp.ErrReset) {
			t.Errorf("peer of an aborted connection read: %v, want ErrReset", err)
		}
		if _, err := client.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Write after Abort: %v, want net.ErrClosed", err)
		}
	})
}

// transferSome sends a few bytes each way.
func transferSome(t *testing.T, a, b *Conn) {
	t.Helper()
	for _, dir := range [][2]*Conn{{a, b}, {b, a}} {
		if _, err := dir[0].Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(dir[1], make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
	}
}

// Concurrent Writes do not mix: each stands in the stream as a whole.
func TestWritesAreWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, worldConfig{delay: time.Millisecond, client: Config{Stack: mptcp.Config{SendBuffer: 64 << 10}}})
		defer w.close()
		client, server := w.connect()
		const writers, size = 4, 300_000
		var wg sync.WaitGroup
		for i := range writers {
			wg.Go(func() {
				b := make([]byte, size)
				for j := range b {
					b[j] = byte(i)
				}
				if n, err := client.Write(b); n != size || err != nil {
					t.Errorf("Write: %d, %v", n, err)
				}
			})
		}
		go func() {
			wg.Wait()
			client.CloseWrite()
		}()
		got, err := io.ReadAll(server)
		if err != nil || len(got) != writers*size {
			t.Fatalf("read %d bytes, %v", len(got), err)
		}
		for i := range writers {
			piece := got[i*size : (i+1)*size]
			for j, b := range piece {
				if b != piece[0] {
					t.Fatalf("piece %d changes writer at byte %d", i, j)
				}
			}
		}
	})
}

// API-02: the addresses are those of the first subflow, whatever becomes of it.
func TestAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, worldConfig{paths: 2, delay: time.Millisecond})
		defer w.close()
		client, server := w.connect()
		transferSome(t, client, server)
		first, remote := client.LocalAddr().String(), client.RemoteAddr().String()
		if remote != serverAddr.String() || first != clientAddr(0).String() {
			t.Errorf("client %s, server %s", first, remote)
		}
		w.client.RemovePath(w.ids[0])
		time.Sleep(time.Second)
		transferSome(t, client, server)
		if client.LocalAddr().String() != first || client.RemoteAddr().String() != remote {
			t.Errorf("addresses changed to %v, %v", client.LocalAddr(), client.RemoteAddr())
		}
		if _, ok := server.RemoteAddr().(*net.TCPAddr); !ok {
			t.Errorf("RemoteAddr is a %T", server.RemoteAddr())
		}
	})
}
