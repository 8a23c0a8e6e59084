package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/user"
	"strconv"

	"braid/device"
)

// tunCmd is braid tun.
type tunCmd struct {
	Up   tunUpCmd   `cmd:"" help:"Make a TUN interface that stays until it is taken down."`
	Down tunDownCmd `cmd:"" help:"Remove a TUN interface."`
}

// tunUpCmd is braid tun up.
type tunUpCmd struct {
	Name string         `arg:"" help:"Name of the interface."`
	Addr []netip.Prefix `required:"" placeholder:"ADDR/BITS" help:"The machine's address on the interface; repeat for IPv4 and IPv6."`
	Peer []netip.Addr   `required:"" placeholder:"ADDR" help:"braid's address behind it; repeat for several."`
	MTU  int            `default:"1500" help:"Largest packet."`
	User string         `placeholder:"NAME|ID" help:"Who may use it besides root; default: who called sudo."`
}

// Help is the long help.
func (*tunUpCmd) Help() string {
	return `Example: a file to the kernel's side of this machine, and beyond it if the machine forwards (net.ipv4.ip_forward) and translates or routes 10.9.0.2.
  sudo braid tun up braid0 --addr 10.9.0.1/24 --peer 10.9.0.2
  braid send holiday.tar 10.9.0.1:9000 --via tun --tun braid0=10.9.0.2`
}

// Run makes the interface.
func (c *tunUpCmd) Run() error {
	if c.MTU < 1280 || c.MTU > 65535 {
		return fmt.Errorf("--mtu %d: must be 1280 to 65535", c.MTU)
	}
	owner, err := userID(c.User)
	if err != nil {
		return err
	}
	name, err := device.CreateTUN(device.TUNConfig{Name: c.Name, Kernel: c.Addr, Own: c.Peer, MTU: c.MTU}, owner)
	if err != nil {
		return err
	}
	fmt.Printf("%s is up; use it with --via tun --tun %s=%s\n", name, name, c.Peer[0])
	return nil
}

// userID returns the number of a user; of who called sudo if name is empty, and -1 if nobody did.
func userID(name string) (int, error) {
	if name == "" {
		if name = os.Getenv("SUDO_UID"); name == "" {
			return -1, nil
		}
	}
	if n, err := strconv.Atoi(name); err == nil && n >= 0 {
		return n, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return 0, fmt.Errorf("--user: %w", err)
	}
	n, err := strconv.Atoi(u.Uid)
	if err != nil {
		return 0, errors.New("--user: users have no numbers here")
	}
	return n, nil
}

// tunDownCmd is braid tun down.
type tunDownCmd struct {
	Name string `arg:"" help:"Name of the interface."`
}

// Run removes the interface.
func (c *tunDownCmd) Run() error { return device.RemoveTUN(c.Name) }
