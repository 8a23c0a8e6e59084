package wire

import (
	"net/netip"

	"braid/seq"
)

// Subtype is the upper four bits of an MPTCP option's third byte (RFC 8684, Section 7.2).
type Subtype uint8

// The subtypes of version 1.
const (
	SubtypeMPCapable   Subtype = 0x0
	SubtypeMPJoin      Subtype = 0x1
	SubtypeDSS         Subtype = 0x2
	SubtypeAddAddr     Subtype = 0x3
	SubtypeRemoveAddr  Subtype = 0x4
	SubtypeMPPrio      Subtype = 0x5
	SubtypeMPFail      Subtype = 0x6
	SubtypeMPFastClose Subtype = 0x7
	SubtypeMPTCPReset  Subtype = 0x8
)

// Key is a connection end's 64-bit key in wire order (RFC 8684, Section 3.1).
type Key [8]byte

// MPCapable is the option that opens an MPTCP connection (RFC 8684, Section 3.1). Its length on the
// wire says which fields it has: 4 none, 12 Sender, 20 both keys, 22 and 24 a data length and, with 24,
// a checksum.
type MPCapable struct {
	Version       uint8
	Checksums     bool  // flag A: DSS checksums required
	Extensibility bool  // flag B: must be 0; receivers ignore the option otherwise
	NoJoin        bool  // flag C: no further subflows to this address and port
	HMACSHA256    bool  // flag H
	OtherFlags    uint8 // bits D-G as they stand, for the receiver to refuse

	Keys        int // 0, 1 or 2: how many of the keys follow
	Sender      Key
	Receiver    Key
	HasData     bool // a data length follows the keys
	DataLength  uint16
	HasChecksum bool
	Checksum    uint16
}

// MPJoin opens a further subflow (RFC 8684, Section 3.2). Which fields it has depends on the packet of
// the handshake: SYN (12 bytes) Backup, AddressID, Token, Nonce; SYN/ACK (16) Backup, AddressID, the
// first 8 bytes of MAC, Nonce; ACK (24) the 20 bytes of MAC.
type MPJoin struct {
	Form      JoinForm
	Backup    bool
	AddressID uint8
	Token     uint32
	Nonce     uint32
	MAC       [20]byte
}

// JoinForm tells the three lengths of MP_JOIN apart.
type JoinForm uint8

// The packets of the MP_JOIN handshake, in order.
const (
	JoinSYN    JoinForm = 1 // 12 bytes
	JoinSYNACK JoinForm = 2 // 16 bytes
	JoinACK    JoinForm = 3 // 24 bytes
)

// DSS is the Data Sequence Signal: DATA_ACK, mapping, DATA_FIN (RFC 8684, Section 3.3). Numbers that
// came as 32 bits stand in the low half; the receiver promotes them.
type DSS struct {
	HasAck   bool // A
	Ack64    bool // a
	HasMap   bool // M
	Map64    bool // m
	DataFIN  bool // F; meaningless without HasMap
	DataAck  seq.Data
	DataSeq  seq.Data
	Subflow  uint32 // relative subflow sequence number: the first byte after the SYN is 1
	Length   uint16 // 0 declares the infinite mapping
	HasCheck bool   // known from the option's length
	Checksum uint16
}

// AddAddr announces or echoes an address (RFC 8684, Section 3.4.1).
type AddAddr struct {
	Echo bool
	ID   uint8
	Addr netip.Addr
	Port uint16 // 0: none on the wire
	MAC  [8]byte
}

// RemoveAddr withdraws addresses by their IDs (RFC 8684, Section 3.4.2).
type RemoveAddr struct {
	IDs   [37]uint8 // as many as 40 option bytes can hold
	Count int
}

// MPPrio changes the priority of the subflow it arrives on (RFC 8684, Section 3.3.8).
type MPPrio struct {
	Backup bool
}

// MPFail reports a checksum failure (RFC 8684, Section 3.7).
type MPFail struct {
	DataSeq seq.Data
}

// MPFastClose aborts the whole connection (RFC 8684, Section 3.5).
type MPFastClose struct {
	Receiver Key
}

// MPTCPReset says why a subflow was reset (RFC 8684, Section 3.6).
type MPTCPReset struct {
	Transient bool // T: the condition may pass
	Reason    ResetReason
}

// ResetReason is a reason code of MP_TCPRST (RFC 8684, Section 7.4).
type ResetReason uint8

// The registered reasons.
const (
	ResetUnspecified ResetReason = 0
	ResetMPTCP       ResetReason = 1 // MPTCP-specific error
	ResetResources   ResetReason = 2 // lack of resources
	ResetProhibited  ResetReason = 3 // administratively prohibited
	ResetTooMuchData ResetReason = 4 // too much outstanding data
	ResetPerformance ResetReason = 5 // unacceptable performance
	ResetMiddlebox   ResetReason = 6 // middlebox interference
)
