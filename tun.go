package braid

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"braid/device"
	"braid/mptcp"
)

// openTUNs opens the interfaces of Config.TUN and adds their addresses to the Engine as paths.
func (w *watcher) openTUNs() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, text := range w.cfg.TUN {
		name, own, err := ParseTUN(text)
		if err != nil {
			return err
		}
		if err := w.openTUN(name, own); err != nil {
			return err
		}
	}
	return nil
}

// openTUN opens one interface. Each of the stack's addresses behind it is a path.
func (w *watcher) openTUN(name string, own []netip.Addr) error {
	dev, err := device.OpenTUN(device.TUNConfig{Name: name, Own: own})
	if err != nil {
		return err
	}
	paths := make([]mptcp.Path, len(own))
	for i, addr := range own {
		paths[i] = mptcp.Path{
			Name: name, Kind: mptcp.IP, Local: netip.AddrPortFrom(addr, 0), MTU: w.cfg.MTU, Burst: dev.Burst(),
			Backup: slices.Contains(w.cfg.Backup, name) || slices.Contains(w.cfg.Backup, addr.String()),
		}
		if paths[i].MTU == 0 || paths[i].MTU > dev.MTU() {
			paths[i].MTU = dev.MTU()
		}
	}
	ids, err := w.engine.AddPaths(dev, paths...)
	if err != nil {
		return err
	}
	for i, addr := range own {
		c := candidate{name: name, iface: name, local: addr}
		w.paths[c] = &path{id: ids[i], at: len(w.paths)}
		w.log("path up", c, nil)
	}
	return nil
}

// lookTUNs opens interfaces again that were removed and are back. None is created: whoever removed it may make it anew as it should be.
func (w *watcher) lookTUNs() {
	for _, text := range w.cfg.TUN {
		name, own, err := ParseTUN(text)
		if err != nil {
			panic("braid: " + err.Error()) // openTUNs has read it
		}
		c := candidate{name: name, iface: name, local: own[0]}
		open := slices.ContainsFunc(own, func(a netip.Addr) bool {
			return w.paths[candidate{name: name, iface: name, local: a}] != nil
		})
		if open {
			continue
		}
		if _, err := net.InterfaceByName(name); err != nil {
			delete(w.failed, c)
			continue
		}
		w.opened(c, w.openTUN(name, own))
	}
}

// ParseTUN reads an element of Config.TUN: the interface and the stack's addresses behind it.
func ParseTUN(text string) (name string, own []netip.Addr, err error) {
	name, list, ok := strings.Cut(text, "=")
	if !ok || name == "" || list == "" {
		return "", nil, fmt.Errorf("TUN interface %q: want NAME=ADDRESS, the address being this program's behind the interface", text)
	}
	for _, s := range strings.Split(list, ",") {
		addr, err := netip.ParseAddr(s)
		if err != nil {
			return "", nil, fmt.Errorf("TUN interface %q: %w", text, err)
		}
		if addr = addr.Unmap(); addr.IsUnspecified() || addr.IsMulticast() || addr.Zone() != "" || slices.Contains(own, addr) {
			return "", nil, fmt.Errorf("TUN interface %q: %s cannot be an address behind it", text, addr)
		}
		own = append(own, addr)
	}
	return name, own, nil
}
