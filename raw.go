package braid

import (
	"errors"
	"net/netip"
	"slices"

	"braid/device"
	"braid/mptcp"
)

// rawBlock is how many ports a connection's own subflows have to choose from. A port can be used again for another path or server, and, when
// the old subflow is forgotten, for the same.
const rawBlock = 32

// checkRaw finds what cannot go with Config.Raw.
func (c *Config) checkRaw() error {
	switch {
	case !c.Raw:
	case len(c.TUN) > 0:
		return errors.New("Config.Raw and Config.TUN: segments travel one way or the other")
	case len(c.Via) > 0:
		return errors.New("Config.Raw and Config.Via: a relay's address is for segments inside UDP")
	}
	return nil
}

// holdBlock takes ports for the subflows that this end opens.
func (w *watcher) holdBlock(stack *mptcp.Config) error {
	h, err := device.HoldBlock(rawBlock)
	if err != nil {
		return err
	}
	w.holds = append(w.holds, h)
	stack.FirstPort, stack.PortCount = h.Ports.First, h.Ports.Count
	return nil
}

// holdPort takes a listener's port, at the addresses it was given or at all.
func (w *watcher) holdPort(local []netip.AddrPort) error {
	for _, at := range local {
		h, err := device.HoldPort(netip.AddrPortFrom(at.Addr(), w.port))
		if err != nil {
			return err
		}
		w.holds = append(w.holds, h)
		w.port = h.Ports.First
	}
	return nil
}

// releaseAfter gives the ports back when the Engine has been closed.
func (w *watcher) releaseAfter() {
	<-w.engine.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.holds {
		h.Close()
	}
}

// openRaw opens the device of c and adds it to the Engine as a path.
func (w *watcher) openRaw(c candidate, at int) error {
	cfg := device.RawConfig{Local: c.local, Interface: c.iface}
	for _, h := range w.holds {
		if !slices.Contains(cfg.Ports, h.Ports) {
			cfg.Ports = append(cfg.Ports, h.Ports)
		}
	}
	dev, err := device.OpenRaw(cfg)
	if err != nil {
		return err
	}
	mtu := w.cfg.MTU
	if mtu == 0 {
		mtu = min(dev.MTU(), ethernetMTU)
	}
	id, err := w.engine.AddPath(dev, mptcp.Path{
		Name: c.name, Kind: mptcp.IP, Local: dev.LocalAddr(), MTU: mtu, Burst: dev.Burst(),
		Backup: slices.Contains(w.cfg.Backup, c.name) || slices.Contains(w.cfg.Backup, c.local.String()),
	})
	if err != nil {
		return err
	}
	w.paths[c] = &path{id: id, at: at}
	w.log("path up", c, nil)
	return nil
}

// served returns the addresses of a listener that was given none: those on the interfaces that were named, or all that clients can come to.
func (w *watcher) served(have []iface) (all []candidate) {
	if len(w.cfg.Interfaces) > 0 {
		all = choose(have, w.cfg.Interfaces, nil)
	} else {
		for _, i := range have {
			for _, a := range i.addrs {
				if a.IsGlobalUnicast() || a.IsLoopback() {
					all = append(all, candidate{name: i.name, local: a})
				}
			}
		}
	}
	return slices.DeleteFunc(all, func(c candidate) bool { return w.only4 && c.local.Is6() })
}
