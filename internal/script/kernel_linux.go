package script

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"braid/internal/netns"
)

const (
	patience   = 1500 * time.Millisecond // how long a loaded machine may take for what the kernel does at once
	pollEvery  = 2 * time.Millisecond
	quiet      = 25 * time.Millisecond // how long to listen for what must not come
	tunName    = "tun0"
	protoMPTCP = 262
	tcpIsMPTCP = 43 // getsockopt TCP_IS_MPTCP
)

// kernelBackend is the kernel of this machine in a namespace of its own, behind a TUN device.
type kernelBackend struct {
	t       testing.TB
	ns      *netns.Namespace
	setup   Setup
	tun     *os.File
	began   time.Time
	packets chan arrival
	socket  int // -1: none
	server  int
	ids     map[netip.Addr]int
}

type arrival struct {
	raw []byte
	at  time.Duration
}

// NewKernel returns the backend of this machine's kernel. It skips the test where there is no privilege for it.
func NewKernel(t testing.TB, s Setup) Backend {
	t.Helper()
	b := &kernelBackend{
		t: t, ns: netns.New(t, netns.MPTCP, netns.TUN), setup: s, socket: -1, server: -1, ids: map[netip.Addr]int{},
		packets: make(chan arrival, 1024),
	}
	for name, val := range map[string]string{
		"mptcp/enabled": "1", "mptcp/blackhole_timeout": "0", "mptcp/checksum_enabled": strconv.Itoa(int(bit(s.Checksums))),
		"mptcp/allow_join_initial_addr_port": strconv.Itoa(int(bit(!s.NoJoinInitial))), "ipv4/tcp_ecn": "0",
		"ipv4/tcp_rto_min_us": "400000", // a machine with other things to do must not be slower than the timers that a script leaves out
	} {
		b.ns.Sysctl(name, val)
	}
	if s.SYNFallback > 0 {
		b.ns.Sysctl("mptcp/syn_retrans_before_tcp_fallback", strconv.Itoa(s.SYNFallback-1))
	}
	b.openTUN()
	t.Cleanup(b.cleanUp)
	return b
}

// openTUN makes the device and starts to read it. It has no offloads: every segment comes as it would on a wire.
func (b *kernelBackend) openTUN() {
	b.ns.Must(func() error {
		fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		ifr, err := unix.NewIfreq(tunName)
		if err != nil {
			return err
		}
		ifr.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err != nil {
			return fmt.Errorf("TUN device: %w", err)
		}
		b.tun = os.NewFile(uintptr(fd), tunName)
		return nil
	})
	mtu := 1500
	if b.setup.MTU > 0 {
		mtu = b.setup.MTU
	}
	lines := fmt.Sprintf("link set %s up mtu %d\n", tunName, mtu)
	for _, a := range hostAddrs {
		if a.Is4() {
			lines += fmt.Sprintf("address add %v/24 dev %s\n", a, tunName)
		} else if b.setup.V6 {
			lines += fmt.Sprintf("address add %v/64 dev %s nodad\n", a, tunName)
		}
	}
	batch := filepath.Join(b.t.TempDir(), "ip") // one program for all of it: there are hundreds of scripts
	if err := os.WriteFile(batch, []byte(lines), 0o600); err != nil {
		b.t.Fatal(err)
	}
	b.ns.IP("-batch", batch)
	if b.setup.Joins {
		b.ns.IP("mptcp", "limits", "set", "subflows", "7", "add_addr_accepted", "8")
	}
	b.began = time.Now()
	go b.read()
}

// read brings packets until the device is closed.
func (b *kernelBackend) read() {
	defer close(b.packets)
	buf := make([]byte, 1<<16)
	for {
		n, err := b.tun.Read(buf)
		if err != nil {
			return
		}
		b.packets <- arrival{slices.Clone(buf[:n]), time.Since(b.began)}
	}
}

func (b *kernelBackend) cleanUp() {
	for _, fd := range []int{b.socket, b.server} {
		if fd >= 0 {
			unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
			unix.Close(fd)
		}
	}
	go func() {
		for range b.packets { // so that read ends
		}
	}()
	b.tun.Close()
}

func (b *kernelBackend) Now() time.Duration { return time.Since(b.began) }

// Tolerance allows for timers of ticks of 4 ms and for a machine with other things to do: packets are noticed late, the first of two as well
// as the second.
func (b *kernelBackend) Tolerance(from, to time.Duration) (time.Duration, time.Duration) {
	return from/2 - 5*time.Millisecond, to + to/4 + patience
}

func (b *kernelBackend) Inject(packet []byte) {
	if _, err := b.tun.Write(packet); err != nil {
		b.t.Errorf("TUN device: %v", err)
	}
}

func (b *kernelBackend) Next(wait time.Duration) ([]byte, time.Duration, bool) {
	timer := time.NewTimer(max(wait, quiet))
	defer timer.Stop()
	select {
	case p, ok := <-b.packets:
		return p.raw, p.at, ok
	case <-timer.C:
		return nil, 0, false
	}
}

func (b *kernelBackend) Until(done func() bool) bool {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); <-tick.C {
		if done() {
			return true
		}
	}
	return done()
}

// open makes a socket.
func (b *kernelBackend) open(v6 bool) (fd int, err error) {
	family, proto := unix.AF_INET, protoMPTCP
	if v6 {
		family = unix.AF_INET6
	}
	if b.setup.NoMPTCP {
		proto = unix.IPPROTO_TCP
	}
	err = b.ns.Do(func() error {
		fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, proto)
		return err
	})
	if err == nil && b.setup.ReceiveBuffer > 0 {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, b.setup.ReceiveBuffer/2) // the kernel doubles it
	}
	if err == nil && b.setup.NoDelay {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	}
	return fd, err
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}

// Listen binds to all addresses: a join finds the listener by where it goes to, as any SYN does.
func (b *kernelBackend) Listen(addr netip.AddrPort) (err error) {
	if b.server, err = b.open(addr.Addr().Is6()); err != nil {
		return err
	}
	unspecified := netip.IPv4Unspecified()
	if addr.Addr().Is6() {
		unspecified = netip.IPv6Unspecified()
	}
	if err := unix.Bind(b.server, sockaddr(netip.AddrPortFrom(unspecified, addr.Port()))); err != nil {
		return err
	}
	return unix.Listen(b.server, 16)
}

func (b *kernelBackend) Accept() bool {
	fd, _, err := unix.Accept4(b.server, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
	if err != nil {
		return false
	}
	b.socket = fd
	return true
}

func (b *kernelBackend) Connect(addr netip.AddrPort) (err error) {
	if b.socket, err = b.open(addr.Addr().Is6()); err != nil {
		return err
	}
	if err := unix.Connect(b.socket, sockaddr(addr)); !errors.Is(err, unix.EINPROGRESS) {
		return err
	}
	return nil
}

func (b *kernelBackend) Connected() Outcome {
	errno, err := unix.GetsockoptInt(b.socket, unix.SOL_SOCKET, unix.SO_ERROR)
	switch {
	case err != nil:
		return Outcome(err.Error())
	case errno != 0:
		return outcomeOfErrno(unix.Errno(errno))
	}
	if _, err := unix.Getpeername(b.socket); err != nil {
		return Nothing
	}
	return OK
}

// outcomeOfErrno sorts the errors of system calls.
func outcomeOfErrno(err error) Outcome {
	switch {
	case err == nil:
		return OK
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINPROGRESS):
		return Nothing
	case errors.Is(err, unix.ECONNREFUSED):
		return Refused
	case errors.Is(err, unix.ECONNRESET):
		return Reset
	case errors.Is(err, unix.ETIMEDOUT):
		return Timeout
	case errors.Is(err, unix.EPIPE):
		return Broken
	}
	return Outcome(err.Error())
}

func (b *kernelBackend) Read(n int) ([]byte, Outcome) {
	p := make([]byte, n)
	got, err := unix.Read(b.socket, p)
	switch {
	case err != nil:
		return nil, outcomeOfErrno(err)
	case got == 0 && n > 0:
		return nil, EOF
	}
	return p[:got], OK
}

func (b *kernelBackend) Write(p []byte) (int, Outcome) {
	n, err := unix.SendmsgN(b.socket, p, nil, nil, unix.MSG_NOSIGNAL)
	return max(n, 0), outcomeOfErrno(err)
}

func (b *kernelBackend) Shutdown() error { return unix.Shutdown(b.socket, unix.SHUT_WR) }

func (b *kernelBackend) Close() error {
	fd := b.socket
	b.socket = -1
	return unix.Close(fd)
}

func (b *kernelBackend) Abort() error {
	if err := unix.SetsockoptLinger(b.socket, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}); err != nil {
		return err
	}
	return b.Close()
}

func (b *kernelBackend) MPTCP() bool {
	v, err := unix.GetsockoptInt(b.socket, unix.IPPROTO_TCP, tcpIsMPTCP)
	return err == nil && v == 1
}

func (b *kernelBackend) Endpoint(verb string, addr netip.Addr, flags []string) error {
	args := []string{"mptcp", "endpoint", verb}
	switch verb {
	case "add":
		b.ids[addr] = len(b.ids) + 1
		args = append(append(args, addr.String(), "dev", tunName, "id", strconv.Itoa(b.ids[addr])), flags...)
	case "change":
		if !slices.Contains(flags, "backup") {
			flags = append(slices.Clone(flags), "nobackup")
		}
		flags = slices.DeleteFunc(slices.Clone(flags), func(f string) bool { return f == "subflow" || f == "signal" })
		args = append(append(args, "id", strconv.Itoa(b.ids[addr])), flags...)
	case "delete":
		args = append(args, "id", strconv.Itoa(b.ids[addr]))
	default:
		return fmt.Errorf("endpoint %s", verb)
	}
	b.ns.IP(args...)
	return nil
}
