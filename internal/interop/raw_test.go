//go:build linux

package interop

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"braid/device"
	"braid/host"
	"braid/internal/netns"
	"braid/mptcp"
)

// rawWorld is two machines with two cables between them: the kernel's stack on one, ours on the other past that one's kernel, at that machine's own
// addresses.
type rawWorld struct {
	*world // its namespace is the kernel's machine
	own    *netns.Namespace
	holds  []*device.Hold
	raws   []*device.Raw
}

type rawSetup struct {
	links     int
	stack     mptcp.Config
	unbound   bool // devices at addresses, not on interfaces
	noOffload bool
}

func newRawWorld(t testing.TB, s rawSetup) *rawWorld {
	t.Helper()
	w := &rawWorld{world: &world{t: t, ns: netns.New(t, netns.MPTCP)}, own: netns.New(t)}
	w.ns.Sysctl("mptcp/enabled", "1")
	w.ns.Sysctl("mptcp/blackhole_timeout", "0")
	w.ns.IP("mptcp", "limits", "set", "subflows", "8", "add_addr_accepted", "8")
	var cancel context.CancelFunc
	w.world.ctx, cancel = context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	w.own.Must(func() error {
		block, err := device.HoldBlock(32)
		if err != nil {
			return err
		}
		service, err := device.HoldPort(netip.AddrPortFrom(netip.IPv6Unspecified(), servicePort))
		if err != nil {
			return err
		}
		w.holds = []*device.Hold{block, service}
		return nil
	})
	s.stack.FirstPort, s.stack.PortCount = w.holds[0].Ports.First, w.holds[0].Ports.Count
	w.engine = host.NewEngine(host.Config{Stack: s.stack})
	t.Cleanup(func() {
		w.engine.Close()
		for _, h := range w.holds {
			h.Close()
		}
	})
	for i := 1; i <= max(1, s.links); i++ {
		name := fmt.Sprintf("veth%d", i)
		w.ns.Veth(w.own, name, kernel4(i).String()+"/24", own4(i).String()+"/24")
		w.ns.IP("address", "add", kernel6(i).String()+"/64", "dev", name, "nodad")
		w.own.IP("address", "add", own6(i).String()+"/64", "dev", name, "nodad")
		w.usable(kernel6(i))
		if i > 1 { // IPv4 takes an interface without a route for one that leads everywhere, IPv6 does not
			w.own.IP("route", "add", kernel6(1).String(), "via", kernel6(i).String(), "dev", name, "metric", "2048")
		}
		w.open(name, own4(i), s)
		w.open(name, own6(i), s)
	}
	return w
}

// open opens a device and makes it a path.
func (w *rawWorld) open(name string, local netip.Addr, s rawSetup) {
	w.t.Helper()
	cfg := device.RawConfig{Local: local, Interface: name, NoOffload: s.noOffload}
	for _, h := range w.holds {
		cfg.Ports = append(cfg.Ports, h.Ports)
	}
	if s.unbound {
		cfg.Interface = ""
	}
	var dev *device.Raw
	w.own.Must(func() (err error) {
		dev, err = device.OpenRaw(cfg)
		return err
	})
	if local.Is6() {
		name += "v6"
	}
	path := mptcp.Path{Name: name, Local: dev.LocalAddr(), Burst: dev.Burst()}
	if _, err := w.engine.AddPath(dev, path); err != nil {
		w.t.Fatal(err)
	}
	w.raws = append(w.raws, dev)
}

// resets returns how many RSTs the kernel of our stack's machine has sent: TcpOutRsts of nstat.
func (w *rawWorld) resets() int64 {
	w.t.Helper()
	n := int64(-1)
	w.own.Must(func() error {
		text, err := os.ReadFile("/proc/thread-self/net/snmp")
		if err != nil {
			return err
		}
		var names []string
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			if len(fields) == 0 || fields[0] != "Tcp:" {
				continue
			}
			if names == nil {
				names = fields
				continue
			}
			for i, name := range names {
				if name == "OutRsts" {
					n, err = strconv.ParseInt(fields[i], 10, 64)
				}
			}
		}
		return err
	})
	if n < 0 {
		w.t.Fatal("this kernel does not count RSTs")
	}
	return n
}

// silent checks that the kernel of our stack's machine has not answered anything.
func (w *rawWorld) silent() {
	w.t.Helper()
	if n := w.resets(); n != 0 {
		w.t.Errorf("the kernel has sent %d RSTs for our stack's segments", n)
	}
}

// TestRaw moves data both ways at once between the kernel's stack and ours at its machine's own addresses. The kernel of that machine sees every
// segment too, and keeps quiet.
func TestRaw(t *testing.T) {
	up, down := stream(16*mib, 30), stream(16*mib, 31)
	for i, role := range roles {
		for _, peer := range []string{"MPTCP", "TCP"} {
			t.Run(role.name+" "+peer, func(t *testing.T) {
				w := newRawWorld(t, rawSetup{unbound: i%2 == 1})
				p := role.dial(w.world, peer == "MPTCP")
				if peer == "MPTCP" {
					w.wantMPTCP(p)
				}
				exchange(t, p, up, down)
				if peer == "MPTCP" {
					w.wantMPTCP(p)
					w.calm()
				}
				w.silent()
				for _, r := range w.raws {
					if c := r.Counters(); c.Sent > 0 && (c.Truncated+c.ReceiveErrors+c.Unreachable+c.TooLarge > 0) {
						t.Errorf("%+v", c)
					}
				}
			})
		}
	}
}

// TestRawJoin adds a subflow over the second cable, whoever opens it (RFC 8684, Section 3.2), and moves data over both.
func TestRawJoin(t *testing.T) {
	up, down := stream(16*mib, 32), stream(16*mib, 33)
	for _, tc := range []struct {
		name    string
		role    int
		paths   []string
		prepare func(w *rawWorld)
	}{
		{"braid dials IPv4", 0, []string{"veth1", "veth2"}, nil},
		{"braid dials IPv6", 1, []string{"veth1v6", "veth2v6"}, nil},
		{"kernel dials IPv4", 2, []string{"veth1", "veth2"}, func(w *rawWorld) {
			w.ns.IP("mptcp", "endpoint", "add", kernel4(2).String(), "dev", "veth2", "subflow")
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newRawWorld(t, rawSetup{links: 2})
			if tc.prepare != nil {
				tc.prepare(w)
			}
			p := roles[tc.role].dial(w.world, true)
			w.joined(p, tc.paths...)
			exchange(t, p, up, down)
			w.wantMPTCP(p)
			w.calm()
			w.silent()
			for _, r := range w.raws {
				if c := r.Counters(); r.LocalAddr().Addr().Is4() == (tc.role != 1) && c.SentBytes+c.ReceivedBytes < mib {
					t.Errorf("%s carried little: %+v", r.LocalAddr(), c)
				}
			}
		})
	}
}

// TestRawRows: what the stack sends in rows leaves as rows when the neighbour is known, and packet by packet without offload; what the kernel has merged
// is taken as one.
func TestRawRows(t *testing.T) {
	up, down := stream(16*mib, 34), stream(16*mib, 35)
	for _, offload := range []bool{true, false} {
		t.Run(fmt.Sprintf("offload=%v", offload), func(t *testing.T) {
			w := newRawWorld(t, rawSetup{noOffload: !offload})
			p := roles[0].dial(w.world, true)
			exchange(t, p, up, down)
			c := w.raws[0].Counters()
			packets := int64(len(down) / 1460)
			if c.Sent < packets || offload && c.SentCalls > c.Sent/2 {
				t.Errorf("sent %d packets of at least %d by %d calls", c.Sent, packets, c.SentCalls)
			}
			w.silent()
		})
	}
}

// TestRawUnheld shows what Hold is for: without it the kernel resets the connection that it does not know.
func TestRawUnheld(t *testing.T) {
	w := newRawWorld(t, rawSetup{})
	for _, h := range w.holds {
		h.Close()
	}
	w.kernelListen(kernel4(1), false)
	if conn, err := w.engine.Dial(w.ctx, []netip.AddrPort{netip.AddrPortFrom(kernel4(1), servicePort)}, nil); err == nil {
		defer conn.Abort()
		conn.SetDeadline(time.Now().Add(patience))
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Error("the connection works")
		}
	}
	w.until("a RST", func() bool { return w.resets() > 0 })
}

// BenchmarkRaw is our stack and the kernel's over a cable, one and two of them: beside BenchmarkKernel.
func BenchmarkRaw(b *testing.B) {
	for _, links := range []int{1, 2} {
		for _, offload := range []bool{true, false} {
			for _, way := range []string{"to the kernel", "from the kernel"} {
				b.Run(fmt.Sprintf("links=%d/offload=%v/%s", links, offload, way), func(b *testing.B) {
					w := newRawWorld(b, rawSetup{links: links, noOffload: !offload})
					w.ns.Sysctl("ipv4/tcp_congestion_control", "reno")
					if !offload {
						w.ns.IP("link", "set", "veth1", "gso_max_segs", "1")
					}
					p := w.dialKernel(kernel4(1), true)
					w.joined(p, []string{"veth1", "veth2"}[:links]...)
					if way == "to the kernel" {
						pour(b, p.own, p.kernel)
					} else {
						pour(b, p.kernel, p.own)
					}
				})
			}
		}
	}
}
