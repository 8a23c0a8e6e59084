package script

import (
	"net/netip"
	"time"
)

// Backend is a host under test: its network, its application and its clock. Scripts run on each in the same way.
type Backend interface {
	// Now is the time since the backend was made.
	Now() time.Duration
	// Inject hands the host a whole IP packet from the network.
	Inject(packet []byte)
	// Next returns the next IP packet that the host sends and when it did, or false if for so long there is none.
	Next(wait time.Duration) (packet []byte, at time.Duration, ok bool)
	// Until waits until done, for as long as an answer to what has been injected may take, and reports whether it is.
	Until(done func() bool) bool
	// Tolerance widens a span of time that a script allows by what the clock cannot tell apart.
	Tolerance(from, to time.Duration) (time.Duration, time.Duration)

	// Calls of the application. Connect and Listen begin; Accept and Connected report whether they have come to something.
	Listen(addr netip.AddrPort) error
	Accept() bool
	Connect(addr netip.AddrPort) error
	Connected() Outcome
	// Read returns what there is, at most n bytes.
	Read(n int) ([]byte, Outcome)
	Write(p []byte) (int, Outcome)
	Shutdown() error
	Close() error
	Abort() error
	// MPTCP reports whether the connection is one, and has not fallen back.
	MPTCP() bool
	// Endpoint adds, changes or deletes an address of path management with flags as "ip mptcp endpoint" knows them.
	Endpoint(verb string, addr netip.Addr, flags []string) error
}

// Outcome is what comes of a call, in words that are the same for all backends.
type Outcome string

// The outcomes of calls.
const (
	OK      Outcome = ""
	Nothing Outcome = "nothing" // it would block
	EOF     Outcome = "EOF"
	Reset   Outcome = "reset"
	Refused Outcome = "refused"
	Timeout Outcome = "timeout"
	Broken  Outcome = "broken" // this end can neither read nor write any more
)

// Setup says how the tested host is configured.
type Setup struct {
	Checksums     bool // it asks for DSS checksums
	NoMPTCP       bool // its application wants plain TCP
	NoJoinInitial bool // it sends flag C
	V6            bool // the script speaks IPv6 unless a line says otherwise
	NoDelay       bool // no Nagle
	Joins         bool // further subflows and announced addresses are welcome
	SYNFallback   int  // SYNs with MP_CAPABLE before one goes without; 0: the default
	MTU           int  // 0: 1500
	ReceiveBuffer int  // bytes; 0: the default
}

// Where the host is.
var (
	hostAddrs  = []netip.Addr{netip.MustParseAddr("10.1.0.2"), netip.MustParseAddr("10.2.0.2"), netip.MustParseAddr("fd00:1::2"), netip.MustParseAddr("fd00:2::2")}
	firstPath4 = 0
	firstPath6 = 2
)

// servicePort is where servers listen, the host's and the script's.
const servicePort = 80
