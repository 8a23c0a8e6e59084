package braid

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// TestRawConfig: what cannot go together is said before anything is opened.
func TestRawConfig(t *testing.T) {
	for _, tc := range []struct {
		cfg  Config
		want string
	}{
		{Config{Raw: true, TUN: []string{"braid0=10.9.0.2"}}, "Config.Raw and Config.TUN"},
		{Config{Raw: true, Via: map[string]netip.AddrPort{"eth0": netip.MustParseAddrPort("192.0.2.1:1")}}, "Config.Raw and Config.Via"},
		{Config{Raw: true, Interfaces: []string{"none-of-this-name"}}, ""}, // or, elsewhere, that there is no such thing
	} {
		if conn, err := tc.cfg.Dial(context.Background(), "192.0.2.1:80"); err == nil {
			conn.Close()
			t.Errorf("%+v: dialled", tc.cfg)
		} else if !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v, want %s", tc.cfg, err, tc.want)
		}
		if l, err := tc.cfg.Listen(context.Background(), ":0"); err == nil {
			l.Close()
			t.Errorf("%+v: listened", tc.cfg)
		}
	}
}

// TestServed: a listener past the kernel's TCP has a path for each address that clients can come to.
func TestServed(t *testing.T) {
	addrs := func(texts ...string) (all []netip.Addr) {
		for _, s := range texts {
			all = append(all, netip.MustParseAddr(s))
		}
		return all
	}
	have := []iface{
		{name: "lo", loopback: true, virtual: true, addrs: addrs("127.0.0.1", "::1")},
		{name: "eth0", addrs: addrs("192.0.2.1", "192.0.2.2", "2001:db8::1", "fe80::1")},
		{name: "docker0", virtual: true, addrs: addrs("172.17.0.1")},
	}
	for _, tc := range []struct {
		cfg   Config
		only4 bool
		want  []string
	}{
		{Config{Raw: true}, false, []string{"127.0.0.1", "::1", "192.0.2.1", "192.0.2.2", "2001:db8::1", "172.17.0.1"}},
		{Config{Raw: true}, true, []string{"127.0.0.1", "192.0.2.1", "192.0.2.2", "172.17.0.1"}},
		{Config{Raw: true, Interfaces: []string{"eth0"}}, false, []string{"192.0.2.1", "2001:db8::1"}},
		{Config{Raw: true, Interfaces: []string{"192.0.2.2"}}, false, []string{"192.0.2.2"}},
	} {
		w := &watcher{cfg: tc.cfg, only4: tc.only4}
		var got []string
		for _, c := range w.served(have) {
			got = append(got, c.local.String())
			if bound := c.iface != ""; bound != (len(tc.cfg.Interfaces) > 0 && c.name == "eth0") {
				t.Errorf("%v: %s is bound to the interface: %v", tc.cfg.Interfaces, c.local, bound)
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%v: %v, want %v", tc.cfg.Interfaces, got, tc.want)
		}
	}
}
