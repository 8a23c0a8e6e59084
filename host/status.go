package host

import (
	"cmp"
	"net/netip"
	"slices"

	"braid/mptcp"
)

// Status is what an Engine does at one moment.
type Status struct {
	Metrics     []mptcp.Metric
	Paths       []PathInfo
	Listeners   []netip.AddrPort
	Connections []ConnStatus
}

// ConnStatus is one connection of a Status.
type ConnStatus struct {
	ID            uint32 // unique in its Engine
	Client        bool   // this host opened it
	Local, Remote netip.AddrPort
	Info          mptcp.Info
}

// Status returns everything that can be seen of the Engine, connections that wait to be accepted included. It may be called after Close: then counters are what is left.
func (e *Engine) Status() Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	st := Status{Metrics: e.stack.Metrics(), Paths: e.pathInfos()}
	for l := range e.listens {
		st.Listeners = append(st.Listeners, l.local)
	}
	now := e.now()
	e.stack.Conns(func(c *mptcp.Conn) bool {
		st.Connections = append(st.Connections, ConnStatus{
			ID: c.ID(), Client: c.Client(), Local: c.LocalAddr(), Remote: c.RemoteAddr(), Info: c.Info(now),
		})
		return true
	})
	slices.SortFunc(st.Connections, func(a, b ConnStatus) int { return cmp.Compare(a.ID, b.ID) })
	return st
}
