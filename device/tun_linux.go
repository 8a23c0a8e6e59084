package device

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	tunPath      = "/dev/net/tun"
	tunName      = "braid%d"
	tunPacket    = 1<<16 + 256 // room for the largest packet with its header
	tunArena     = 8 * tunPacket
	tunBatch     = 128 // packets of one Read
	carrierEvery = time.Millisecond
	carrierMost  = time.Second
	packetFrom   = 16 // where a packet starts behind its vnetHeader, so that it is aligned
)

// TUN is a Device of whole IP packets over a TUN interface (Linux' Documentation/networking/tuntap). What Write sends arrives at
// this machine's kernel as if it had come in on the interface; what the kernel routes there is what Read returns.
//
// Packets that the kernel has not finished are finished here: their checksums are complete. They may be larger than the MTU: what the
// kernel would have cut into segments (TSO) comes as one.
type TUN struct {
	file  *os.File
	raw   syscall.RawConn
	name  string
	local netip.AddrPort
	mtu   int
	count counters

	closed atomic.Bool

	arena     []byte // of the Read under way
	sizes     [tunBatch]int
	starts    [tunBatch]int
	rxN       int
	rxErr     syscall.Errno
	readFn    func(fd uintptr) bool
	txTrain   Train
	txErr     syscall.Errno
	txRefused int // packets that the error concerns
	writeFn   func(fd uintptr) bool
	merger
}

var _ Device = (*TUN)(nil)

// OpenTUN opens a TUN interface as cfg says and brings it up if it was created or addressed.
func OpenTUN(cfg TUNConfig) (*TUN, error) {
	fd, name, err := attachTUN(cfg)
	if err != nil {
		return nil, err
	}
	t := &TUN{name: name, mtu: defaultMTU, merger: merger{segments: !cfg.NoOffload}}
	if err := t.setUp(fd, cfg); err != nil {
		unix.Close(fd)
		return nil, err
	}
	// The poller must not see the descriptor before the interface is attached.
	t.file = os.NewFile(uintptr(fd), tunPath)
	if t.raw, err = t.file.SyscallConn(); err != nil {
		t.file.Close()
		return nil, fmt.Errorf("device: %s: %w", name, err)
	}
	if len(cfg.Own) > 0 {
		t.local = netip.AddrPortFrom(cfg.Own[0].Unmap(), 0)
	}
	t.readFn, t.writeFn = t.receive, t.send
	t.merger.init()
	return t, nil
}

// attachTUN opens the descriptor and ties it to the interface of the configuration, which it creates if need be.
func attachTUN(cfg TUNConfig) (fd int, name string, err error) {
	name = cfg.Name
	if name == "" {
		name = tunName
	}
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		return 0, "", fmt.Errorf("device: %q is no name for an interface: %w", name, err)
	}
	fd, err = unix.Open(tunPath, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return 0, "", fmt.Errorf("device: open %s: %w", tunPath, err)
	}
	ifr.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err != nil {
		unix.Close(fd)
		switch {
		case errors.Is(err, unix.EPERM):
			err = fmt.Errorf("%w: it takes root or CAP_NET_ADMIN, or an interface made for you with \"braid tun up\"", err)
		case errors.Is(err, unix.EBUSY):
			err = fmt.Errorf("%w: another program has it open", err)
		case errors.Is(err, unix.EINVAL):
			err = fmt.Errorf("%w: there is an interface of that name that is no TUN device", err)
		}
		return 0, "", fmt.Errorf("device: TUN interface %s: %w", name, err)
	}
	return fd, ifr.Name(), nil
}

// setUp sets what the interface does and what the machine knows of it.
func (t *TUN) setUp(fd int, cfg TUNConfig) error {
	if err := unix.IoctlSetPointerInt(fd, unix.TUNSETVNETHDRSZ, vnetHeaderLen); err != nil {
		return fmt.Errorf("device: %s: header size: %w", t.name, err)
	}
	offload := 0
	if !cfg.NoOffload {
		offload = unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6
	}
	if err := unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, offload); err != nil {
		return fmt.Errorf("device: %s: offload: %w", t.name, err)
	}
	if len(cfg.Kernel) > 0 || cfg.MTU > 0 {
		if err := configureLink(t.name, cfg); err != nil {
			return err
		}
	}
	if ifc, err := awaitCarrier(t.name); err == nil {
		t.mtu = ifc.MTU
	}
	return nil
}

// awaitCarrier returns the interface when it is running. One that was there before gets its carrier from being opened, and the kernel
// drops what it sends to the interface for the moment that takes. An interface that is down stays down.
func awaitCarrier(name string) (*net.Interface, error) {
	for began := time.Now(); ; time.Sleep(carrierEvery) {
		ifc, err := net.InterfaceByName(name)
		if err != nil || ifc.Flags&net.FlagUp == 0 || ifc.Flags&net.FlagRunning != 0 || time.Since(began) > carrierMost {
			return ifc, err
		}
	}
}

// CreateTUN makes a TUN interface that outlives this process, for the user with the number owner (negative: root only), and
// returns its name. If there is one already it is configured anew.
func CreateTUN(cfg TUNConfig, owner int) (string, error) {
	fd, name, err := attachTUN(cfg)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	if owner >= 0 {
		if err := unix.IoctlSetInt(fd, unix.TUNSETOWNER, owner); err != nil {
			return "", fmt.Errorf("device: %s: owner: %w", name, err)
		}
	}
	if err := configureLink(name, cfg); err != nil {
		return "", err
	}
	if err := unix.IoctlSetInt(fd, unix.TUNSETPERSIST, 1); err != nil {
		return "", fmt.Errorf("device: %s: keep: %w", name, err)
	}
	return name, nil
}

// RemoveTUN removes a TUN interface, whoever made it. It refuses to remove interfaces of other kinds.
func RemoveTUN(name string) error {
	if _, err := net.InterfaceByName(name); err != nil {
		return fmt.Errorf("device: no interface %s: %w", name, err)
	}
	fd, _, err := attachTUN(TUNConfig{Name: name})
	if errors.Is(err, unix.EBUSY) {
		return deleteLink(name) // a program has it open: so it is a TUN device
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.IoctlSetInt(fd, unix.TUNSETPERSIST, 0); err != nil {
		return fmt.Errorf("device: remove %s: %w", name, err)
	}
	return nil
}

// Name is the name of the interface.
func (t *TUN) Name() string { return t.name }

// LocalAddr is the first of the stack's addresses, with port 0; invalid if none was given.
func (t *TUN) LocalAddr() netip.AddrPort { return t.local }

// MTU is the interface's MTU when it was opened.
func (t *TUN) MTU() int { return t.mtu }

// Counters returns what happened so far.
func (t *TUN) Counters() Counters { return t.count.load() }

// Burst is how many packets of one connection Write sends as one: what mptcp.Path.Burst can be.
func (t *TUN) Burst() int {
	if !t.segments {
		return 1
	}
	return min(maxMerged, MaxTrain/t.mtu)
}

// Close closes the descriptor; an interface that was created for it vanishes.
func (t *TUN) Close() error {
	t.closed.Store(true)
	if err := t.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("device: close %s: %w", t.name, err)
	}
	return nil
}

// Read waits for packets and takes what there is, up to a batch. The packets' From is the zero AddrPort: it stands in the packet.
func (t *TUN) Read(b *Batch) error {
	for {
		t.arena = b.Room(0, tunArena)
		if err := t.raw.Read(t.readFn); err != nil {
			return t.ended(err)
		}
		b.Packets = b.Packets[:0]
		bytes := 0
		for i := range t.rxN {
			packet := finishPacket(t.arena[t.starts[i]:t.starts[i]+t.sizes[i]], 0)
			if packet == nil {
				t.count.truncated.Add(1)
				continue
			}
			bytes += len(packet)
			b.Packets = append(b.Packets, Packet{Data: packet})
		}
		if len(b.Packets) > 0 {
			t.count.received.Add(int64(len(b.Packets)))
			t.count.receivedBytes.Add(int64(bytes))
			t.count.receivedCalls.Add(int64(t.rxN))
			return nil
		}
		if t.rxErr != 0 { // EBADFD: the interface was removed
			return &GoneError{Name: t.name, Err: t.rxErr}
		}
	}
}

// receive is what the poller runs: it reads until there is nothing left or the arena is full. False asks the poller to wait.
func (t *TUN) receive(fd uintptr) bool {
	t.rxN, t.rxErr = 0, 0
	for at := packetFrom - vnetHeaderLen; t.rxN < tunBatch && len(t.arena)-at >= tunPacket; {
		n, _, errno := unix.Syscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(&t.arena[at])), tunPacket)
		switch errno {
		case 0:
			t.starts[t.rxN], t.sizes[t.rxN] = at, int(n)
			t.rxN++
			at += (int(n) + 15) &^ 15
		case unix.EINTR:
		case unix.EAGAIN:
			return t.rxN > 0
		default:
			t.rxErr = errno
			return true
		}
	}
	return true
}

// Write sends the packets of a train. To is of no meaning: the destination stands in the packets.
func (t *TUN) Write(train Train) error {
	t.txTrain, t.txErr = train, 0
	for len(t.txTrain.Data) > 0 {
		if err := t.raw.Write(t.writeFn); err != nil {
			return t.ended(err)
		}
		if t.txErr == 0 {
			continue
		}
		// What stands at the head was refused; what is behind it may go.
		n := min(len(t.txTrain.Data), t.txRefused*t.txTrain.Size)
		t.txTrain.Data = t.txTrain.Data[n:]
		switch t.txErr {
		case unix.EAGAIN, unix.ENOBUFS, unix.ENOMEM:
			t.count.dropped.Add(int64(t.txRefused))
		case unix.EBADF, unix.EBADFD, unix.ENODEV, unix.EFAULT:
			return &GoneError{Name: t.name, Err: t.txErr}
		default: // EIO: the interface is down
			t.count.unreachable.Add(int64(t.txRefused))
		}
	}
	return nil
}

// send is what the poller runs: it writes the packets of the train until one is refused. It never waits. Rows of segments of one connection leave
// as one packet, which the kernel cuts where it must: mostly it does not have to.
func (t *TUN) send(fd uintptr) bool {
	t.txErr = 0
	var sent, bytes, calls int64
	for len(t.txTrain.Data) > 0 {
		packets, n, vectors := t.merge(t.txTrain.Data, t.txTrain.Size)
		if packets == 1 {
			t.txHead = vnetHeader{}
			t.txIov[1].Base = &t.txTrain.Data[0]
			t.txIov[1].SetLen(n)
			vectors = 2
		}
		_, _, errno := unix.Syscall(unix.SYS_WRITEV, fd, uintptr(unsafe.Pointer(&t.txIov[0])), uintptr(vectors))
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			t.txErr = errno
			t.txRefused = packets
			break
		}
		t.txTrain.Data = t.txTrain.Data[n:]
		sent += int64(packets)
		bytes += int64(n)
		calls++
	}
	runtime.KeepAlive(t.txTrain.Data)
	t.txIov[1].Base = nil
	t.count.sent.Add(sent)
	t.count.sentBytes.Add(bytes)
	t.count.sentCalls.Add(calls)
	return true
}

// ended maps an error of the poller, which is final: the descriptor was closed, or the interface behind it was removed.
func (t *TUN) ended(err error) error {
	if t.closed.Load() {
		return net.ErrClosed
	}
	return &GoneError{Name: t.name, Err: err}
}
