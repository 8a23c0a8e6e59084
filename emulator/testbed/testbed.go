package testbed

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
)

// ErrUnsupported is returned where there are no network namespaces.
var ErrUnsupported = errors.New("testbed: network namespaces exist on Linux only")

// Config says how to make a Testbed.
type Config struct {
	Paths []string // names of the paths, 1 to MaxPaths: each is an interface of this name in both namespaces
	MTU   int      // of all interfaces; 0: 1500

	// Client and Server name existing namespaces ("ip netns list", or a file such as /proc/1/ns/net). Empty: new ones, which get a name that
	// other programs can enter them by and which vanish with Close. Those that a killed process has left behind vanish with the next Open.
	Client, Server string

	Unnamed bool // new namespaces get no names: they cannot outlive the process, whatever becomes of it
}

// MaxPaths is how many paths a Testbed can have.
const MaxPaths = 8

// The addresses. Path i, counted from 1, is 10.77.i.0/24 and fd77:i::/64: the client has number 2 there and the server 1. What lies between
// 128 and 254 at the client's end is free for stacks of their own behind TUN interfaces in its namespace. The server has ServerAddr and ServerAddr6
// too, which are reached over all paths, over the first one by default.
var (
	ServerAddr  = netip.MustParseAddr("10.77.0.1")
	ServerAddr6 = netip.MustParseAddr("fd77::1")
)

// ClientAt is the client's IPv4 address on a path, counted from 1.
func ClientAt(path int) netip.Addr { return netip.AddrFrom4([4]byte{10, 77, byte(path), 2}) }

// ServerAt is the server's IPv4 address on a path, counted from 1.
func ServerAt(path int) netip.Addr { return netip.AddrFrom4([4]byte{10, 77, byte(path), 1}) }

// ClientAt6 is the client's IPv6 address on a path, counted from 1.
func ClientAt6(path int) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x77, 3: byte(path), 15: 2})
}

// ServerAt6 is the server's IPv6 address on a path, counted from 1.
func ServerAt6(path int) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x77, 3: byte(path), 15: 1})
}

// interfaceName is what the kernel takes and iproute2 does not take for a word of its own.
var interfaceName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$`)

// Check says what is wrong with a Config.
func (c *Config) Check() error {
	if n := len(c.Paths); n < 1 || n > MaxPaths {
		return fmt.Errorf("testbed: %d paths: 1 to %d are possible", n, MaxPaths)
	}
	for i, name := range c.Paths {
		if !interfaceName.MatchString(name) || name == "lo" {
			return fmt.Errorf("testbed: path name %q: it becomes an interface, so it must be 1 to 15 letters, digits, dots, dashes or underscores, and not lo", name)
		}
		if slices.Contains(c.Paths[:i], name) {
			return fmt.Errorf("testbed: two paths are called %q", name)
		}
	}
	if c.MTU != 0 && (c.MTU < 1280 || c.MTU > 65535) {
		return fmt.Errorf("testbed: MTU %d: must be 1280 to 65535", c.MTU)
	}
	return nil
}
