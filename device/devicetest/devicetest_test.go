package devicetest

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"braid/device"
)

var (
	addrA = netip.MustParseAddrPort("10.0.0.1:1")
	addrB = netip.MustParseAddrPort("10.0.0.2:2")
)

// read returns the payloads of one Read as strings.
func read(t *testing.T, d device.Device) (got []string) {
	t.Helper()
	var b device.Batch
	if err := d.Read(&b); err != nil {
		t.Fatalf("Read: %v", err)
	}
	for _, p := range b.Packets {
		got = append(got, string(p.Data))
	}
	return got
}

func TestTrainArrivesAsPackets(t *testing.T) {
	a, b := Pair(addrA, addrB, Options{})
	if err := a.Write(device.Train{Data: []byte("aaabbbc"), Size: 3, To: addrB}); err != nil {
		t.Fatal(err)
	}
	got := read(t, b)
	if len(got) != 3 || got[0] != "aaa" || got[1] != "bbb" || got[2] != "c" {
		t.Errorf("got %q, want aaa bbb c", got)
	}
	if c := a.Counters(); c.Sent != 3 || c.SentBytes != 7 {
		t.Errorf("counters %+v", c)
	}
}

func TestDelayIsVirtualInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pair(addrA, addrB, Options{Delay: 30 * time.Millisecond})
		start := time.Now()
		for _, s := range []string{"one", "two"} {
			if err := a.Write(device.Train{Data: []byte(s), Size: 3, To: addrB}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		for i, want := range []time.Duration{30 * time.Millisecond, 40 * time.Millisecond} {
			read(t, b)
			if d := time.Since(start); d != want {
				t.Errorf("packet %d after %v, want %v", i, d, want)
			}
		}
		a.Close()
		b.Close()
	})
}

func TestLossMTUAndClose(t *testing.T) {
	a, b := Pair(addrA, addrB, Options{MTU: 28 + 4})
	n := 0
	a.Drop(func(netip.AddrPort, []byte) bool { n++; return n == 1 })
	for _, s := range []string{"lost", "here"} {
		if err := a.Write(device.Train{Data: []byte(s), Size: 4, To: addrB}); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Write(device.Train{Data: []byte("large"), Size: 5, To: addrB}); !errors.Is(err, device.ErrTooLarge) {
		t.Errorf("a packet above the MTU: %v, want ErrTooLarge", err)
	}
	if got := read(t, b); len(got) != 1 || got[0] != "here" {
		t.Errorf("got %q, want only here", got)
	}
	b.Close()
	if err := b.Read(new(device.Batch)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read after Close: %v, want net.ErrClosed", err)
	}
	a.Vanish()
	var gone *device.GoneError
	if err := a.Write(device.Train{Data: []byte("x"), Size: 1, To: addrB}); !errors.As(err, &gone) {
		t.Errorf("Write after Vanish: %v, want a GoneError", err)
	}
}
