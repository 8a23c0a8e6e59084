package testbed

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"braid/device"
)

// Testbed is two namespaces with interfaces whose other ends are devices: what programs send over path i of the client comes out of ClientEnd[i],
// and what is written there reaches them; likewise at the server.
type Testbed struct {
	Client, Server       *Namespace
	ClientEnd, ServerEnd []device.Device // one a path; whoever bridges them closes them

	names []string
	lost  int64 // while it was made
}

const (
	firstTable    = 7700  // of the routes by source: 7700 and the path's number
	firstEndpoint = 200   // number of the kernel's MPTCP endpoints
	queueLength   = 10000 // packets that an interface holds while this process does not run: none may get lost before they reach a link
)

// Open makes a Testbed.
func Open(cfg Config) (_ *Testbed, err error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if err := removeStale(); err != nil {
		return nil, err
	}
	t := &Testbed{names: cfg.Paths}
	defer func() {
		if err != nil {
			t.closeEnds()
			t.Close()
		}
	}()
	if t.Client, err = namespace(cfg.Client, "client", cfg.Unnamed); err != nil {
		return nil, err
	}
	if t.Server, err = namespace(cfg.Server, "server", cfg.Unnamed); err != nil {
		return nil, err
	}
	for _, n := range []*Namespace{t.Client, t.Server} {
		n.tidy() // what a killed process has left behind
		if err := n.prepare(); err != nil {
			return nil, err
		}
	}
	if t.ClientEnd, err = t.Client.interfaces(cfg); err != nil {
		return nil, err
	}
	if t.ServerEnd, err = t.Server.interfaces(cfg); err != nil {
		return nil, err
	}
	if err := t.Client.ip(clientCommands(cfg.Paths)); err != nil {
		return nil, err
	}
	if err := t.Server.ip(serverCommands(cfg.Paths)); err != nil {
		return nil, err
	}
	t.lost = t.count()
	return t, nil
}

func namespace(existing, side string, unnamed bool) (*Namespace, error) {
	switch {
	case existing != "":
		return openNamespace(existing)
	case unnamed:
		return newNamespace("")
	}
	return newNamespace(fmt.Sprintf(namePattern, os.Getpid(), side))
}

// prepare makes the namespace take part in several networks: packets may come in where none would go out, and stacks of their own may stand behind
// it.
func (n *Namespace) prepare() error {
	var errs []error
	for _, s := range [][2]string{
		{"ipv4/ip_forward", "1"}, {"ipv4/conf/all/rp_filter", "0"}, {"ipv4/conf/default/rp_filter", "0"},
		{"ipv6/conf/all/forwarding", "1"}, {"ipv6/conf/default/accept_dad", "0"},
	} {
		if err := n.sysctl(s[0], s[1]); err != nil && !errors.Is(err, os.ErrNotExist) { // there may be no IPv6
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, n.ip([]string{"link set lo up"}))...)
}

// interfaces opens one TUN interface a path.
func (n *Namespace) interfaces(cfg Config) (ends []device.Device, err error) {
	mtu := cfg.MTU
	if mtu == 0 {
		mtu = 1500
	}
	for _, name := range cfg.Paths {
		err = n.Do(func() error {
			dev, err := device.OpenTUN(device.TUNConfig{Name: name, MTU: mtu, NoOffload: true}) // packets must be what they are on a wire
			if err == nil {
				ends = append(ends, dev)
			}
			return err
		})
		if err != nil {
			return ends, err
		}
	}
	return ends, nil
}

// clientCommands give the client an address on each path, and routes by where packets come from: a program that binds to an address or an
// interface uses its path; others use the first.
func clientCommands(paths []string) []string {
	var c []string
	for i, name := range paths {
		k := i + 1
		at4, at6 := fmt.Sprintf("10.77.%d.0/24", k), fmt.Sprintf("fd77:%d::/64", k)
		c = append(c,
			fmt.Sprintf("link set dev %s txqueuelen %d", name, queueLength),
			fmt.Sprintf("address add %s/24 dev %s", ClientAt(k), name),
			fmt.Sprintf("-6 address add %s/64 dev %s nodad", ClientAt6(k), name),
			fmt.Sprintf("route add %s/32 dev %s metric %d", ServerAddr, name, k),
			fmt.Sprintf("-6 route add %s/128 dev %s metric %d", ServerAddr6, name, k),
			fmt.Sprintf("route add default dev %s table %d", name, firstTable+k),
			fmt.Sprintf("-6 route add default dev %s table %d", name, firstTable+k),
			fmt.Sprintf("rule add from %s lookup %d", at4, firstTable+k),
			fmt.Sprintf("-6 rule add from %s lookup %d", at6, firstTable+k))
	}
	if mptcp() {
		c = append(c, "mptcp limits set subflows 8 add_addr_accepted 8")
		for i, name := range paths[1:] {
			c = append(c, fmt.Sprintf("mptcp endpoint add %s id %d dev %s subflow", ClientAt(i+2), firstEndpoint+2*i, name))
			if len(paths) <= MaxPaths/2 { // the kernel takes 8 in all
				c = append(c, fmt.Sprintf("mptcp endpoint add %s id %d dev %s subflow", ClientAt6(i+2), firstEndpoint+2*i+1, name))
			}
		}
	}
	return c
}

// serverCommands give the server an address on each path and one that all lead to.
func serverCommands(paths []string) []string {
	c := []string{
		fmt.Sprintf("address add %s/32 dev lo", ServerAddr),
		fmt.Sprintf("-6 address add %s/128 dev lo nodad", ServerAddr6),
	}
	for i, name := range paths {
		c = append(c,
			fmt.Sprintf("link set dev %s txqueuelen %d", name, queueLength),
			fmt.Sprintf("address add %s/24 dev %s", ServerAt(i+1), name),
			fmt.Sprintf("-6 address add %s/64 dev %s nodad", ServerAt6(i+1), name))
	}
	if mptcp() {
		c = append(c, "mptcp limits set subflows 8 add_addr_accepted 8")
	}
	return c
}

// mptcp reports whether the kernel speaks it.
func mptcp() bool {
	_, err := os.Stat("/proc/sys/net/mptcp/enabled")
	return err == nil
}

// Lost is how many packets the kernel dropped between the programs and the ends, because this process did not run for long: the emulation was not true.
func (t *Testbed) Lost() int64 { return t.count() - t.lost }

func (t *Testbed) count() int64 { return t.Client.dropped(t.names) + t.Server.dropped(t.names) }

func (t *Testbed) closeEnds() {
	for _, dev := range slices.Concat(t.ClientEnd, t.ServerEnd) {
		dev.Close()
	}
}

// Close gives up the namespaces: new ones vanish when the last program in them has ended. In existing ones the rules and addresses are taken back; the rest goes
// with the interfaces, whose ends the caller closes first.
func (t *Testbed) Close() error {
	var errs []error
	for _, n := range []*Namespace{t.Client, t.Server} {
		if n != nil {
			n.tidy()
			errs = append(errs, n.close())
		}
	}
	return errors.Join(errs...)
}

// tidy takes back what does not go with the interfaces, in a namespace that stays. It may be there no more, or not yet.
func (n *Namespace) tidy() {
	if n.made || n.name == "" {
		return
	}
	c := []string{fmt.Sprintf("address del %s/32 dev lo", ServerAddr), fmt.Sprintf("-6 address del %s/128 dev lo", ServerAddr6)}
	for k := 1; k <= MaxPaths; k++ {
		if mptcp() {
			c = append(c, fmt.Sprintf("mptcp endpoint delete id %d", firstEndpoint+2*k-2), fmt.Sprintf("mptcp endpoint delete id %d", firstEndpoint+2*k-1))
		}
		c = append(c, fmt.Sprintf("rule del lookup %d", firstTable+k), fmt.Sprintf("-6 rule del lookup %d", firstTable+k))
	}
	_ = n.ip(c, "-force")
}
