package device

import (
	"errors"
	"net/netip"
	"testing"

	"braid/internal/netns"
)

// An interface whose MTU went down after the socket was opened tells the new one, in both families and for sockets of every kind.
func TestTooLargeNamesTheMTU(t *testing.T) {
	n := netns.New(t)
	n.IP("link", "set", "lo", "mtu", "1400")
	for _, tt := range []struct{ local, to string }{
		{"127.0.0.1:0", "127.0.0.1:9"},
		{"[::1]:0", "[::1]:9"},
		{"[::]:0", "[::1]:9"},
		{"[::]:0", "127.0.0.1:9"},
	} {
		n.Must(func() error {
			u, err := Open(Config{Local: netip.MustParseAddrPort(tt.local)})
			if err != nil {
				return err
			}
			defer u.Close()
			data := make([]byte, 2*1452)
			var large *TooLargeError
			if err := u.Write(Train{data, 1452, netip.MustParseAddrPort(tt.to)}); !errors.As(err, &large) || large.MTU != 1400 || !errors.Is(err, ErrTooLarge) {
				t.Errorf("%s to %s: %v", tt.local, tt.to, err)
			}
			if err := u.Write(Train{data[:2*1352], 1352, netip.MustParseAddrPort(tt.to)}); err != nil {
				t.Errorf("%s to %s: %v for packets that fit", tt.local, tt.to, err)
			}
			if c := u.Counters(); c.TooLarge != 2 || c.Sent != 2 {
				t.Errorf("%s to %s: %+v", tt.local, tt.to, c)
			}
			return nil
		})
	}
}
