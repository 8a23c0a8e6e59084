package mptcp

import (
	"net/netip"
	"time"

	"braid/congestion"
	"braid/schedule"
	"braid/trace"
)

// Config is what a Stack is made from. The zero value of every field but Entropy is a sane default.
type Config struct {
	// Entropy yields 64 unpredictable bits: keys, nonces, initial sequence numbers, ports, tags, seeds of the subflows' random
	// streams. crypto/rand on the host, a seeded stream in the simulator. Required.
	Entropy func() uint64

	Group     func() congestion.Group   // congestion control of a new connection; nil: Coupled BBR
	Scheduler func() schedule.Scheduler // scheduler of a new connection; nil: AR&P (arp)

	Shards, Shard int // Shards > 1: keys are redrawn until token % Shards == Shard

	SendBuffer         int64 // most bytes of one connection that the application wrote and the peer has not DATA_ACKed; 0: 64 MiB
	ReceiveBuffer      int64 // largest receive window of one connection; 0: 64 MiB; at least 64 KiB, which a smaller one is raised to, unless FixedReceiveWindow is set
	InitialReceive     int64 // receive window at the start; 0: 256 KiB
	FixedReceiveWindow bool  // the window is ReceiveBuffer from the start and never tuned (experiments)
	HeldLimit          int64 // bytes DATA_ACKed and still held by slow subflows of one connection; beyond it the worst holder is reset; 0: 64 MiB
	StackMemory        int64 // all payload memory of the Stack; 0: 1 GiB

	// Limits; 0: 65536, 8 (at most 100), 128. Backlog bounds, each for itself, the connections that wait to be accepted and the half-open ones of a listener,
	// and the half-open joins of a connection. Beyond it SYNs on IP paths are answered with cookies; else the oldest makes room.
	MaxConns, MaxSubflows, Backlog int

	// FirstPort and PortCount are the row of ports that subflows on IP paths are opened from, where the driver has no others; a PortCount of 0:
	// all of the dynamic range, 32768 to 65534.
	FirstPort uint16
	PortCount int

	Checksums     bool          // ask for DSS checksums (flag A)
	NoMPTCP       bool          // plain TCP only
	NoJoinInitial bool          // send flag C
	NoAnnounce    bool          // accepted connections do not announce paths without flags (see EndpointFlags)
	Limits        Limits        // of path management
	NoDelay       bool          // no Nagle
	KeepAlive     time.Duration // UDP paths: 0: 20 s, < 0: none. Sent on idle subflows
	TCPKeepAlive  time.Duration // TCP keep-alive on IP paths; 0: off
	UserTimeout   time.Duration // how long a connection lives with data that no subflow can deliver; 0: 5 minutes
	CloseTimeout  time.Duration // how long a connection without any subflow waits for one; 0: 60 s
	DialTimeout   time.Duration // how long Dial tries before it fails; 0: 3 minutes, the least that RFC 9293, Section 3.8.3 wants for a SYN
	RaceDelay     time.Duration // pause between the first SYNs on the paths of a Dial; 0: 100 ms
	PacingQuantum time.Duration // see tcp.Config
	MinRTO        time.Duration // see tcp.Config
	SYNFallback   int           // SYNs with MP_CAPABLE that may go unanswered before one goes without; 0: 3
	MSL           time.Duration // 0: 30 s

	Trace trace.Sink // nil: off
}

// PathID numbers a path of a Stack: one local address (or UDP socket) that packets leave from and arrive at.
type PathID int32

// PathKind says what the bytes of a path's packets are.
type PathKind uint8

// The kinds of path.
const (
	IP  PathKind = iota // whole IP packets
	UDP                 // UDP payloads: shim and TCP segment (docs/encapsulation.md)
)

// Path describes a local path.
type Path struct {
	Name   string // for Info and traces: "wifi0"
	Kind   PathKind
	Local  netip.AddrPort // IP: the address (its port is ignored); UDP: the socket's address, possibly unspecified
	MTU    int            // largest IP packet; 0: 1500
	Burst  int            // packets that one mapping may cover, where the driver sends such a row as one (TSO: RFC 8684, Section 3.3.1 lets a mapping span segments); 0: one
	Backup bool           // our packets' priority: joins say B=1 and the peer is asked to use it last
	Flags  EndpointFlags  // what connections do with it; 0: see there
	Remote netip.AddrPort // if set: the only destination reachable over it (an emulated or tunnelled path); it takes the place of Dial's address
}

// Packet says where the bytes that PollPacket wrote go.
type Packet struct {
	Path PathID
	To   netip.AddrPort // UDP: the destination of the datagram; IP: invalid (it stands in the packet)
	Len  int
}

// initialWindow is the receive window of a connection's handshake: what its shared window starts with.
func (cfg *Config) initialWindow() int64 {
	if cfg.FixedReceiveWindow {
		return cfg.ReceiveBuffer
	}
	return cfg.InitialReceive
}

// windowScale is the shift that lets 16 bits express the largest receive window (RFC 7323, Section 2.3: at most 14).
func (cfg *Config) windowScale() uint8 {
	var shift uint8
	for shift < 14 && 0xffff<<shift < cfg.ReceiveBuffer {
		shift++
	}
	return shift
}
