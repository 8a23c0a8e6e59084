package host

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"braid/device/devicetest"
	"braid/mptcp"
)

// A device that takes less than its path was said to take (its interface's MTU went down) names the size: what it refused goes again at once in
// smaller packets, long before black-hole detection would find out.
func TestRefusedSizeIsBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, worldConfig{delay: 5 * time.Millisecond})
		defer w.close()
		narrow := w.net.Open(netip.MustParseAddrPort("10.1.0.9:7000"), devicetest.Options{Delay: 5 * time.Millisecond, MTU: 1400})
		if _, err := w.client.AddPath(narrow, mptcp.Path{Name: "narrow", Kind: mptcp.UDP, MTU: 1500}); err != nil {
			t.Fatal(err)
		}
		w.client.RemovePath(w.ids[0])
		client, server := w.connect()
		start := time.Now()
		transfer(t, client, server, pattern(1<<20))
		if d := time.Since(start); d > 600*time.Millisecond {
			t.Errorf("it took %v", d)
		}
		n := w.client.Counters().SendsTooLarge
		if n == 0 || n > 3 || narrow.Counters().TooLarge == 0 {
			t.Errorf("%d hints for %+v", n, narrow.Counters())
		}
		if got := client.Info().Subflows[0].TCP.MTU; got != 1400 {
			t.Errorf("packets of %d bytes", got)
		}
	})
}
