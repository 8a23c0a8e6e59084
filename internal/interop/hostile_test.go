//go:build linux

package interop

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"braid/device"
	"braid/host"
	"braid/internal/hostile"
	"braid/mptcp"
)

var hostileTime = flag.Duration("hostile.time", 3*time.Second, "TestHostile: how long the attack lasts, say 1h")

// sacrificePort is where connections go that attackers who know their numbers may end.
const sacrificePort = 5001

// watched lets attackers see what comes in over a device.
type watched struct {
	device.Device
	siege *siege
	link  int
}

func (d *watched) Read(b *device.Batch) error {
	err := d.Device.Read(b)
	if err == nil {
		d.siege.mu.Lock()
		defer d.siege.mu.Unlock()
		for _, p := range b.Packets {
			if !d.siege.forged[string(p.Data)] {
				d.siege.attacker(p.Data).See(hostile.Packet{To: d.link, Data: p.Data})
			}
		}
	}
	return err
}

// siege is an attack on our stack through its TUN interfaces: forged packets leave the kernel's side of them like everybody's.
type siege struct {
	mu     sync.Mutex
	rng    *rand.Rand
	seen   [2]*hostile.Attacker // of connections that must survive, and of others
	forged map[string]bool      // under way: what attackers sent is not what they learn from
	recent []string
	socket int
	index  []int // of the interfaces
	count  [2]atomic.Int64
}

const underWay = 4096 // forged packets that are remembered

func newSiege() *siege {
	s := &siege{rng: rand.New(rand.NewPCG(1, 2)), forged: map[string]bool{}, socket: -1}
	for i := range s.seen {
		s.seen[i] = hostile.New(s.rng, false)
		s.seen[i].Ports = []uint16{servicePort, sacrificePort}
		s.seen[i].Window = 64 << 10
	}
	return s
}

// attacker is the one that a packet is for.
func (s *siege) attacker(b []byte) *hostile.Attacker {
	t := 20
	if len(b) > 0 && b[0]>>4 == 6 {
		t = 40
	}
	if len(b) >= t+4 {
		for _, at := range []int{t, t + 2} {
			if int(b[at])<<8|int(b[at+1]) == sacrificePort {
				return s.seen[1]
			}
		}
	}
	return s.seen[0]
}

// open gets ready to send through the interfaces of a world.
func (s *siege) open(w *world) {
	w.ns.Must(func() (err error) {
		if s.socket, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		for i := range w.tuns {
			ifc, err := net.InterfaceByName(fmt.Sprintf("tun%d", i+1))
			if err != nil {
				return err
			}
			s.index = append(s.index, ifc.Index)
		}
		return nil
	})
	w.t.Cleanup(func() { unix.Close(s.socket) })
}

// volley forges and sends some packets.
func (s *siege) volley(kinds []hostile.Kind) error {
	for range 20 {
		s.mu.Lock()
		a, k, class := s.seen[s.rng.IntN(2)], kinds[s.rng.IntN(len(kinds))], 0
		if s.rng.IntN(3) == 0 {
			a, k, class = s.seen[1], hostile.Altered, 1
		}
		p, ok := a.Forge(k)
		if !ok || len(p.Data) == 0 {
			s.mu.Unlock()
			continue
		}
		key := string(p.Data)
		if len(s.recent) == underWay {
			delete(s.forged, s.recent[0])
			s.recent = append(s.recent[:0], s.recent[1:]...)
		}
		s.forged[key] = true
		s.recent = append(s.recent, key)
		s.mu.Unlock()
		to := &unix.SockaddrLinklayer{Protocol: 0x0008, Ifindex: s.index[p.To]} // ETH_P_IP in network order
		if p.Data[0]>>4 == 6 {
			to.Protocol = 0xdd86
		}
		if err := unix.Sendto(s.socket, []byte(key), 0, to); err != nil && err != unix.ENOBUFS && err != unix.EMSGSIZE && err != unix.EINVAL {
			return fmt.Errorf("send %v: %w", k, err)
		}
		s.count[class].Add(1)
	}
	return nil
}

// TestHostile attacks our stack through TUN interfaces while it talks to the kernel's: nothing panics, a connection carries its bytes both ways over two
// subflows all the time, clients still connect, and no memory is kept. The simulator's TestHostile does the same without a kernel and by the million.
func TestHostile(t *testing.T) {
	s := newSiege()
	w := newWorld(t, setup{links: 2, limits: true, noOffload: true, announce: true, watch: s, stack: mptcp.Config{ReceiveBuffer: 128 << 10, InitialReceive: 64 << 10, SendBuffer: 256 << 10}})
	s.open(w)
	w.extend(*hostileTime + 3*patience)
	p := w.dialOwn(own4(1), true)
	for _, c := range []net.Conn{p.own, p.kernel} {
		c.SetDeadline(time.Now().Add(*hostileTime + 2*patience))
	}
	w.sacrifices(t, 2)
	lates, err := w.engine.Listen(servicePort, own4(2))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lates.Close() })
	piece := stream(256<<10, 61)
	send(t, p.own, p.kernel, piece)
	w.until("the join", func() bool { return up(p, "tun1", "tun2") })
	before := heap()
	kinds := hostile.Harmless()
	end := time.Now().Add(*hostileTime)
	var broken error
	var group sync.WaitGroup
	group.Go(func() {
		for time.Now().Before(end) && broken == nil {
			broken = s.volley(kinds)
			unix.Nanosleep(&unix.Timespec{Nsec: 2_000_000}, nil) // the rate: some thousand packets a second
		}
	})
	pieces, late := 0, 0
	var slowest time.Duration
	for began := time.Now(); time.Now().Before(end); pieces++ {
		at := time.Now()
		send(t, p.own, p.kernel, piece)
		send(t, p.kernel, p.own, piece)
		slowest = max(slowest, time.Since(at))
		if since := time.Since(began); int(since/time.Second) > late {
			late++
			w.latecomer(t, lates)
		}
	}
	group.Wait()
	if broken != nil {
		t.Fatal(broken)
	}
	exchange(t, p, piece, piece)
	w.wantMPTCP(p)
	after := heap()
	n := w.engine.Counters()
	t.Logf("%d harmless and %d altered packets in %v; %d pieces both ways, the slowest took %v; %d late clients; heap %d KiB before, %d KiB after\n%+v",
		s.count[0].Load(), s.count[1].Load(), *hostileTime, pieces, slowest, late, before>>10, after>>10, n)
	if after > before+64<<20 {
		t.Errorf("the heap grew from %d to %d bytes", before, after)
	}
	if n.DropChecksum == 0 || n.DropMalformed == 0 || n.JoinUnknownToken == 0 || n.ResetsLimited == 0 || pieces == 0 {
		t.Errorf("not much of an attack: %+v", n)
	}
}

// heap is what is in use after a collection.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// latecomer is a client of the kernel's that comes in the middle of it.
func (w *world) latecomer(t *testing.T, l *host.Listener) {
	t.Helper()
	var k net.Conn
	w.ns.Must(func() (err error) {
		d := net.Dialer{Timeout: patience}
		d.SetMultipathTCP(true)
		k, err = d.DialContext(w.ctx, "tcp", netip.AddrPortFrom(own4(2), servicePort).String())
		return err
	})
	l.SetDeadline(time.Now().Add(patience))
	var own *host.Conn
	for own == nil {
		c, err := l.AcceptConn()
		if err != nil {
			t.Fatalf("accept: %v", err)
		}
		if c.RemoteAddr().String() == k.LocalAddr().String() {
			own = c
			continue
		}
		c.Abort() // an earlier client's handshake, sent again by an attacker who saw it: a cookie is good for two minutes
	}
	q := w.pair(own, k)
	data := stream(64<<10, 62)
	send(t, q.kernel, q.own, data)
	send(t, q.own, q.kernel, data)
	q.own.Abort()
	q.kernel.Close()
}

// sacrifices keeps connections open, over which whatever comes is read and whatever goes is sent, until the test is over.
func (w *world) sacrifices(t *testing.T, n int) {
	t.Helper()
	l, err := w.engine.Listen(sacrificePort, netip.Addr{})
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	stop := make(chan struct{})
	busy := func(c net.Conn) { // until an error ends it
		defer c.Close()
		c.SetDeadline(time.Now().Add(2 * time.Second))
		group.Go(func() { io.Copy(io.Discard, c) })
		block := make([]byte, 1000)
		for _, err := c.Write(block); err == nil; _, err = c.Write(block) {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}
	group.Go(func() {
		for {
			c, err := l.AcceptConn()
			if err != nil {
				return
			}
			group.Go(func() {
				busy(c)
				c.Abort()
			})
		}
	})
	for range n {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				w.ns.Do(func() error {
					d := net.Dialer{Timeout: 2 * time.Second}
					d.SetMultipathTCP(true)
					c, err := d.Dial("tcp", netip.AddrPortFrom(own4(1), sacrificePort).String())
					if err == nil {
						busy(c)
					}
					return err
				})
			}
		})
	}
	t.Cleanup(func() {
		close(stop)
		l.Close()
		group.Wait()
	})
}
