package braid

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// laptop is a machine with two ways out, and what else there is on one.
var laptop = []iface{
	{name: "lo", loopback: true, virtual: true, addrs: addrs("127.0.0.1", "::1")},
	{name: "wlan0", addrs: addrs("192.0.2.7", "2001:db8::7", "fe80::7")},
	{name: "wwan0", addrs: addrs("198.51.100.9", "fe80::9")},
	{name: "docker0", virtual: true, addrs: addrs("172.17.0.1")},
	{name: "eth0", addrs: addrs("fe80::1")}, // a cable without a DHCP server
}

func addrs(all ...string) (out []netip.Addr) {
	for _, s := range all {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

func TestChoose(t *testing.T) {
	const server4, server6 = "203.0.113.1:443", "[2001:db8:1::1]:443"
	tests := []struct {
		name   string
		have   []iface
		names  []string
		remote []string
		want   string
	}{
		{"every interface that leads out", laptop, nil, []string{server4}, "wlan0=192.0.2.7 wwan0=198.51.100.9"},
		{"only those of the server's family", laptop, nil, []string{server6}, "wlan0=2001:db8::7"},
		{"both families until one has proved to work", laptop, nil, []string{server6, server4}, "wlan0=2001:db8::7 wlan0=192.0.2.7 wwan0=198.51.100.9"},
		{"named ones in the order given", laptop, []string{"wwan0", "wlan0"}, []string{server4}, "wwan0=198.51.100.9 wlan0=192.0.2.7"},
		{"a virtual one if it is named", laptop, []string{"docker0"}, []string{server4}, "docker0=172.17.0.1"},
		{"named by address", laptop, []string{"198.51.100.9"}, []string{server4}, "198.51.100.9=198.51.100.9"},
		{"an address that is not here", laptop, []string{"198.51.100.10"}, []string{server4}, ""},
		{"an address of the wrong family", laptop, []string{"198.51.100.9"}, []string{server6}, ""},
		{"an interface that is not here", laptop, []string{"wlan7"}, []string{server4}, ""},
		{"a server on loopback", laptop, nil, []string{"127.0.0.1:443"}, "127.0.0.1=127.0.0.1"},
		{"a server on another loopback address", laptop, nil, []string{"127.0.0.5:443"}, "127.0.0.1=127.0.0.1"},
		{"a server called localhost", laptop, nil, []string{"[::1]:443", "127.0.0.1:443"}, "::1=::1 127.0.0.1=127.0.0.1"},
		{"a server at one of our addresses", laptop, nil, []string{"192.0.2.7:443"}, "192.0.2.7=192.0.2.7"},
		{"loopback addresses can be named", laptop, []string{"127.0.0.2", "127.0.0.3"}, []string{"127.0.0.1:443"}, "127.0.0.2=127.0.0.2 127.0.0.3=127.0.0.3"},
		{"a container has only virtual ones", laptop[3:4], nil, []string{server4}, "docker0=172.17.0.1"},
		{"a neighbour on a link", laptop, nil, []string{"[fe80::77%wwan0]:443"}, "wwan0=fe80::9%wwan0"},
		{"nothing", laptop[:1], nil, []string{server4}, ""},
		{"a listener takes both families", laptop, []string{"wlan0"}, nil, "wlan0=192.0.2.7 wlan0=2001:db8::7"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var remote []netip.AddrPort
			for _, r := range tt.remote {
				remote = append(remote, netip.MustParseAddrPort(r))
			}
			var got []string
			for _, c := range choose(tt.have, tt.names, remote) {
				got = append(got, c.name+"="+c.local.String())
				if byName := c.iface != ""; byName != (c.name == c.iface) {
					t.Errorf("%s is bound to interface %q", c.name, c.iface)
				}
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("got %v, want %s", got, tt.want)
			}
		})
	}
}

func TestOneFamilyPerInterface(t *testing.T) {
	remote := []netip.AddrPort{netip.MustParseAddrPort("203.0.113.1:1"), netip.MustParseAddrPort("[2001:db8:1::1]:1")}
	all := choose(laptop, nil, remote)
	for _, tt := range []struct {
		family4 bool
		want    []string
	}{
		{true, []string{"192.0.2.7", "198.51.100.9"}},
		{false, []string{"2001:db8::7", "198.51.100.9"}}, // wwan0 has no choice
	} {
		var got []string
		for _, c := range oneFamily(all, tt.family4) {
			got = append(got, c.local.String())
		}
		slices.Sort(got)
		slices.Sort(tt.want)
		if !slices.Equal(got, tt.want) {
			t.Errorf("IPv4 %v: got %v, want %v", tt.family4, got, tt.want)
		}
	}
}

func TestSystemListsLoopback(t *testing.T) {
	have, err := system{}.list()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(have, func(i iface) bool { return i.loopback })
	if i < 0 || len(have[i].addrs) == 0 {
		t.Errorf("no loopback interface with an address in %+v", have)
	}
}
