package braid

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// candidate is a socket that can be opened: a local address, on an interface if that is known.
type candidate struct {
	name  string // as the configuration or the system calls it
	iface string // empty: the routing table decides
	local netip.Addr
}

// interfaces is what the system has: a seam for tests.
type interfaces interface {
	list() ([]iface, error)
}

// iface is a network interface that is up and running.
type iface struct {
	name     string
	loopback bool
	virtual  bool // not a piece of hardware: a bridge, a tunnel, a pair's end
	addrs    []netip.Addr
}

// system asks the operating system.
type system struct{}

func (system) list() ([]iface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("cannot list the network interfaces: %w", err)
	}
	var up []iface
	for _, i := range all {
		const ready = net.FlagUp | net.FlagRunning
		if i.Flags&ready != ready {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			continue // it vanished between the two calls
		}
		f := iface{name: i.Name, loopback: i.Flags&net.FlagLoopback != 0, virtual: isVirtual(i.Name)}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				f.addrs = append(f.addrs, p.Addr())
			}
		}
		up = append(up, f)
	}
	return up, nil
}

// choose returns the sockets to open for reaching remote: those that names asks for as far as they are there, or if names
// is empty all that make sense. Only families that remote has count.
func choose(have []iface, names []string, remote []netip.AddrPort) []candidate {
	families := familiesOf(remote)
	if len(names) > 0 {
		return chooseNamed(have, names, families)
	}
	if local := ownAddresses(have, remote); len(local) > 0 {
		return local
	}
	if linkLocal := onLink(have, remote); len(linkLocal) > 0 {
		return linkLocal
	}
	onlyReal := slices.ContainsFunc(have, func(i iface) bool { return !i.loopback && !i.virtual && len(i.best(families)) > 0 })
	var all []candidate
	for _, i := range have {
		if !i.loopback && !(onlyReal && i.virtual) {
			all = append(all, i.best(families)...)
		}
	}
	return all
}

func chooseNamed(have []iface, names []string, families []bool) (all []candidate) {
	for _, name := range names {
		if addr, err := netip.ParseAddr(name); err == nil {
			if slices.Contains(families, addr.Is4()) && onThisHost(have, addr) {
				all = append(all, candidate{name: name, local: addr})
			}
			continue
		}
		for _, i := range have {
			if i.name == name {
				all = append(all, i.best(families)...)
			}
		}
	}
	return all
}

// onThisHost reports whether an address stands on an interface that is up. All loopback addresses stand on the loopback interface.
func onThisHost(have []iface, addr netip.Addr) bool {
	return slices.ContainsFunc(have, func(i iface) bool {
		return i.loopback && addr.IsLoopback() || slices.Contains(i.addrs, addr.WithZone(""))
	})
}

// familiesOf returns which families occur: true is IPv4. Nil addresses stand for a server, which wants both.
func familiesOf(remote []netip.AddrPort) (families []bool) {
	if remote == nil {
		return []bool{true, false}
	}
	for _, r := range remote {
		if v4 := r.Addr().Is4(); !slices.Contains(families, v4) {
			families = append(families, v4)
		}
	}
	return families
}

// ownAddresses returns the sockets for a server on this machine: nothing leaves it, so that interfaces do not matter. Nil if the server
// is elsewhere.
func ownAddresses(have []iface, remote []netip.AddrPort) (all []candidate) {
	for _, r := range remote {
		if !onThisHost(have, r.Addr()) {
			return nil
		}
		local := r.Addr()
		if local.Is4() && local.IsLoopback() {
			local = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		}
		c := candidate{name: local.String(), local: local}
		if !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

// onLink returns the socket for a server at a link-local address: only the interface that its zone names leads there.
func onLink(have []iface, remote []netip.AddrPort) (all []candidate) {
	for _, r := range remote {
		for _, i := range have {
			if r.Addr().IsLinkLocalUnicast() && i.name == r.Addr().Zone() {
				if at := slices.IndexFunc(i.addrs, netip.Addr.IsLinkLocalUnicast); at >= 0 {
					all = append(all, candidate{name: i.name, iface: i.name, local: i.addrs[at].WithZone(i.name)})
				}
			}
		}
	}
	return all
}

// best returns a candidate for each family: the interface's first address that is valid beyond its link.
func (i iface) best(families []bool) (all []candidate) {
	for _, v4 := range families {
		for _, a := range i.addrs {
			if a.Is4() == v4 && (a.IsGlobalUnicast() || i.loopback && a.IsLoopback()) {
				c := candidate{name: i.name, iface: i.name, local: a}
				all = append(all, c)
				break
			}
		}
	}
	return all
}
