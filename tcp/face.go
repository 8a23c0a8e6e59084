package tcp

import (
	"math/rand/v2"
	"time"

	"braid/buffer"
	"braid/clock"
	"braid/congestion"
	"braid/seq"
	"braid/trace"
)

// Config is what a Conn is made from.
type Config struct {
	LocalPort, RemotePort uint16
	ISS                   seq.Number // initial send sequence number (RFC 6528: the owner draws it)
	TimestampOffset       uint32     // random start of the timestamp clock (RFC 7323, Section 7.1)
	Rand                  *rand.Rand // for challenge-ACK and keep-alive jitter
	Pool                  *buffer.Pool

	MTU        int // largest packet of the path, in bytes, counted as Overhead says
	Overhead   int // bytes of the packet before the TCP header: 20 IPv4, 40 IPv6, or IP + UDP + shim
	ProbeMTU   int // probe for larger packets than MTU, up to this size, when the path may pass them; 0: never above MTU
	MinMTU     int // floor for black-hole detection and PMTU reports; 0: 576 (IPv4-sized) or 1280
	Controller congestion.Controller
	Subflow    int // number for traces
	ConnID     uint32
	Trace      trace.Sink // nil: off

	NoSACK, NoTimestamps, NoWindowScale bool  // switch an option off
	WindowScale                         uint8 // shift to offer, at most 14; 0 with NoWindowScale unset offers shift 0
	InitialWindow                       int64 // receive window before the owner calls SetWindow; 0: 64 KiB

	MinRTO         time.Duration // 0: 200 ms
	MaxRTO         time.Duration // 0: 60 s; RFC 6298 wants no less than 60 s
	InitialRTO     time.Duration // 0: 1 s
	SYNRetries     int           // SYN transmissions after the first; 0: 7, which is 255 s (RFC 9293, Section 3.8.3: at least 3 minutes)
	UserTimeout    time.Duration // give up when data stays unacknowledged that long (R2); 0: 15 RTO back-offs, at least 100 s; <0: never
	KeepAlive      time.Duration // idle time before the first keep-alive probe; 0: off
	KeepAliveEvery time.Duration // 0: 75 s
	KeepAliveCount int           // unanswered probes before giving up; 0: 9
	MSL            time.Duration // maximum segment lifetime; TIME-WAIT lasts twice that; 0: 30 s
	PacingQuantum  time.Duration // how much paced data one wake-up may send, besides the bound of 1 ms or 2 packets; 0: packet by packet
	NoDelay        bool          // no Nagle

	StrictTimestamps bool // drop bare ACKs that lack a negotiated timestamp too (RFC 7323, Section 3.2)
}

// State is a state of RFC 9293, Section 3.3.2.
type State uint8

// The eleven states.
const (
	Closed State = iota
	Listen       // never a Conn's: listeners live in mptcp
	SynSent
	SynReceived
	Established
	FinWait1
	FinWait2
	CloseWait
	Closing
	LastAck
	TimeWait
)

// Result says what HandleSegment made of a segment.
type Result struct {
	Acceptable  bool // passed the checks of RFC 9293 Section 3.10.7.4, RFC 5961 and PAWS: its options may be believed
	Established bool // this segment completed the handshake
	InOrder     bool // it carried payload that is next in order, or none at all, with SEG.SEQ == RCV.NXT
	Duplicate   bool // it carried only payload (or a FIN) received before
	Repeats     bool // not acceptable, but genuine to all appearance: it lies at most a window before RCV.NXT, as keep-alives do and repetitions of what our lost ACK acknowledged
	AckedData   bool // it acknowledged new data of ours
	PeerFIN     bool // the peer's FIN has now been reached in order
	Reset       bool // the peer reset the subflow: Err says how
	Closed      bool // the Conn has reached Closed
}

// Chunk is a piece of the outgoing stream as the owner pushed it. ID is the owner's: mptcp puts the data offset of the first
// byte there.
type Chunk struct {
	ID    int64
	Start int64 // subflow offset of its first byte
	Len   int
}

// Out is what PollSegment says about the segment it made, beside the header.
type Out struct {
	Chunk          Chunk // the chunk that the payload comes from; Len 0 if there is no payload
	Start          int64 // subflow offset of the first payload byte
	Len            int   // payload bytes: Chunk.Start <= Start and Start+Len <= Chunk.Start+Chunk.Len
	Retransmission bool
	Probe          bool // a PMTU probe: payload larger than the current MSS is intended
	OptionRoom     int  // option bytes left for the owner, a multiple of 4
}

// Info is a snapshot for people, schedulers and tests.
type Info struct {
	State                                                                         State
	SRTT, RTTVar, MinRTT, RTO                                                     time.Duration
	RecentRTT                                                                     time.Duration // smoothed over the last few samples: follows a growing queue at once, where SRTT takes some round trips
	Window, InFlight, PeerWindow                                                  int64         // bytes: congestion window in force (PRR's during recovery), in flight, the peer's window
	Retrans                                                                       int64         // bytes waiting to be retransmitted
	PacingRate, DeliveryRate                                                      float64       // bytes/s
	PacerAt                                                                       clock.Time
	LastAck                                                                       clock.Time // last ACK of new data
	Oldest                                                                        clock.Time // sending time of the oldest outstanding segment; clock.Never if none
	Loss                                                                          float64    // average loss share over the last 128 packets
	Backoffs                                                                      int        // RTO back-offs in a row: > 0 means that the timer expired and nothing was heard since
	InRecovery, WindowLimited                                                     bool
	MSS, MTU                                                                      int
	Reordering                                                                    bool // reordering has been seen (RACK)
	Delivered, SentBytes, RetransBytes, ReceivedBytes                             int64
	SentSegs, RetransSegs, ReceivedSegs, LostSegs, RTOs, TLPs, SpuriousRecoveries int64
	Controller                                                                    congestion.State
}
