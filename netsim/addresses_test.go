package netsim

import (
	"fmt"
	"net/netip"
	"testing"

	"braid/clock"
	"braid/link"
	"braid/mptcp"
)

// multihomed is a client and a server with two addresses each. Every address has an access link of its own in each direction, so that a path is the
// client's link and the server's; the client is told only the first of the server's addresses.
type multihomed struct {
	net            *Network
	client, server *Host
	stacks         [2]*mptcp.Stack
	access         [2][2][2]*Link // side, number, from and to the host
	local          [2][2]netip.AddrPort
	ids            [2][2]mptcp.PathID
	got            int64 // bytes that the server read
	conns          [2]*mptcp.Conn
}

func newMultihomed(t *testing.T, kind mptcp.PathKind, client, server mptcp.Config) *multihomed {
	m := &multihomed{net: New(3)}
	client.Entropy, server.Entropy = m.net.Stream("client").Uint64, m.net.Stream("server").Uint64
	m.stacks = [2]*mptcp.Stack{mptcp.NewStack(client), mptcp.NewStack(server)}
	m.client, m.server = m.net.AddHost("client", m.stacks[0], m), m.net.AddHost("server", m.stacks[1], m)
	for side, h := range m.hosts() {
		for i := range 2 {
			for dir := range 2 {
				m.access[side][i][dir] = mustLink(t, m.net, fmt.Sprint(h.Name(), i, dir), link.Spec{RateMbps: 20, DelayMs: 5})
			}
			port := uint16(0)
			if kind == mptcp.UDP {
				port = serverPort
			}
			m.local[side][i] = netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, byte(18 + side), byte(i), 1}), port)
			m.add(side, i, kind)
		}
	}
	if _, err := m.stacks[1].Listen(0, serverPort, netip.Addr{}); err != nil {
		t.Fatal(err)
	}
	c, err := m.stacks[0].Dial(0, mptcp.Target{Remote: []netip.AddrPort{netip.AddrPortFrom(m.local[1][0].Addr(), serverPort)}})
	if err != nil {
		t.Fatal(err)
	}
	m.conns[0] = c
	m.client.Touch()
	return m
}

func (m *multihomed) hosts() [2]*Host { return [2]*Host{m.client, m.server} }

// add gives a host its address number i, and connects it with those that the other host has.
func (m *multihomed) add(side, i int, kind mptcp.PathKind) {
	id := m.hosts()[side].AddPath(mptcp.Path{Name: fmt.Sprint("address ", i), Kind: kind, Local: m.local[side][i]})
	m.ids[side][i] = id
	here, there := m.hosts()[side], m.hosts()[1-side]
	for j := range 2 {
		if len(there.paths) <= j {
			continue
		}
		far := m.ids[1-side][j]
		m.net.Connect(here, id, m.local[1-side][j].Addr(), there, far, m.access[side][i][0], m.access[1-side][j][1])
		m.net.Connect(there, far, m.local[side][i].Addr(), here, id, m.access[1-side][j][0], m.access[side][i][1])
	}
}

// HandleEvent implements App: the client writes without end, the server reads.
func (m *multihomed) HandleEvent(now clock.Time, e mptcp.Event) {
	if e.Kind == mptcp.EventAccept {
		m.conns[1], _ = e.Listener.Accept()
	}
	var buf [32 << 10]byte
	if c := m.conns[0]; c != nil {
		for n := 1; n > 0; {
			n, _ = c.Write(now, buf[:])
		}
	}
	if s := m.conns[1]; s != nil {
		for n := 1; n > 0; {
			n, _ = s.Read(now, buf[:])
			m.got += int64(n)
		}
	}
}

// cut lets nothing through the links of an address any more, or everything again.
func (m *multihomed) cut(side, i int, loss float64) {
	for _, l := range m.access[side][i] {
		l.Apply(link.Change{Loss: &loss})
	}
}

// rate runs for so many seconds and returns what arrived, in Mbit/s.
func (m *multihomed) rate(s float64) float64 {
	before := m.got
	m.net.Run(m.net.Now() + seconds(s))
	return float64(m.got-before) * 8 / 1e6 / s
}

// A server with two addresses, of which the client was told one: the other is announced, and both together carry what one access link of the server's
// cannot. One dies and the transfer goes on over the other; it comes back and is used again.
func TestServerWithTwoAddresses(t *testing.T) {
	for _, kind := range []mptcp.PathKind{mptcp.IP, mptcp.UDP} {
		t.Run(fmt.Sprint("udp ", kind == mptcp.UDP), func(t *testing.T) {
			m := newMultihomed(t, kind, mptcp.Config{}, mptcp.Config{})
			m.rate(3)
			if r := m.rate(3); r < 25 {
				t.Errorf("%.1f Mbit/s over both of the server's links", r)
			}
			if c, s := m.stacks[0].Counters(), m.stacks[1].Counters(); c.AddAddrsAccepted != 1 || s.AddAddrsEchoed != 1 {
				t.Errorf("client %+v\nserver %+v", c.AddressCounters, s.AddressCounters)
			}
			m.cut(1, 0, 1) // the one that the client came to
			m.rate(3)
			if r := m.rate(3); r < 12 {
				t.Errorf("%.1f Mbit/s over the announced address alone", r)
			}
			m.cut(1, 0, 0)
			m.rate(3)
			if r := m.rate(3); r < 25 {
				t.Errorf("%.1f Mbit/s after the first came back", r)
			}
			m.server.RemovePath(m.ids[1][0]) // now it vanishes, and the client is told
			m.rate(3)
			if r := m.rate(3); r < 12 {
				t.Errorf("%.1f Mbit/s after the first was removed", r)
			}
			for _, sf := range m.conns[0].Info(m.net.Now()).Subflows {
				if sf.Remote.Addr() == m.local[1][0].Addr() {
					t.Errorf("a subflow to an address that was removed: %+v", sf)
				}
			}
			if c := m.stacks[0].Counters(); c.RemoveAddrsReceived == 0 || c.RemovedSubflowsClosed == 0 || m.conns[0].Err() != nil {
				t.Errorf("%v, client %+v", m.conns[0].Err(), c.AddressCounters)
			}
		})
	}
}

// With fullmesh the client's paths each go to each of the server's addresses.
func TestFullMesh(t *testing.T) {
	m := newMultihomed(t, mptcp.IP, mptcp.Config{}, mptcp.Config{})
	for i := range 2 {
		m.stacks[0].SetPathFlags(0, m.ids[0][i], mptcp.EndpointFullmesh)
	}
	if r := m.rate(5); r < 20 || m.conns[0].Subflows() != 4 || m.conns[1].Subflows() != 4 {
		t.Errorf("%.1f Mbit/s over %d subflows", r, m.conns[0].Subflows())
	}
}
