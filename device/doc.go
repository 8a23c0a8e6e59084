// Package device is where packets leave and enter the machine: ports that read and write packets in batches.
//
// A Device moves datagrams and nothing else. It knows no connection, no retransmission and no time; what a datagram means is
// the business of the stack above. Reads and writes are batch-shaped because that is what makes user-space networking fast:
// one system call carries a train of equal-sized datagrams (UDP_SEGMENT and UDP_GRO on Linux), and one wake-up hands over all
// that has arrived.
//
// UDP is the Device of any host. On Linux, TUN carries whole IP packets to and from the kernel, and Raw to and from the network at the machine's own
// addresses, past its kernel's TCP, from which Hold keeps the ports. Package devicetest holds an in-memory twin.
package device

import "net/netip"

// Device is a port that packets leave from and arrive at. One goroutine may Read while another Writes; two Reads, or
// two Writes, must not run at the same time. Close may be called at any time and ends a Read that waits.
type Device interface {
	// Read waits until packets have arrived and replaces the content of b by them. The packets are valid until the next
	// Read with the same Batch. An error is final: the Device gives no packets any more. It is net.ErrClosed after Close
	// and a *GoneError if the interface below has vanished. Transient errors are counted, not returned.
	Read(b *Batch) error

	// Write sends a train, as far as possible in one go. It never waits: packets that the machine has no room for are dropped
	// and counted, as any router would do. ErrTooLarge, or a *TooLargeError, says that a packet of the train is larger than the path takes (the rest
	// of it may have been sent); a *GoneError says that the interface has vanished. Other errors are counted, not returned.
	Write(t Train) error

	// LocalAddr is the address that the Device's packets leave from; its address part may be unspecified, or invalid if the packets say.
	LocalAddr() netip.AddrPort

	// MTU is the size of the largest IP packet that the interface takes.
	MTU() int

	// Counters returns what happened so far. It may be called at any time.
	Counters() Counters

	// Close ends the Device. Further calls do nothing.
	Close() error
}

// Packet is one received datagram.
type Packet struct {
	Data []byte         // payload
	From netip.AddrPort // where it came from; never an IPv4-mapped IPv6 address
}

// Batch is what one Read returns. It owns the memory of its packets, so that reading allocates nothing.
type Batch struct {
	Packets []Packet
	arena   [][]byte // receive buffers, made by the device at the first Read and reused
}

// Room returns receive buffer i of the Batch with the given length. A Device's Read uses it; its contents last until the next Read.
func (b *Batch) Room(i, size int) []byte {
	for len(b.arena) <= i {
		b.arena = append(b.arena, nil)
	}
	if cap(b.arena[i]) < size {
		b.arena[i] = make([]byte, size)
	}
	return b.arena[i][:size]
}

// Train is a row of datagrams to one destination, one behind the other in Data: all of Size bytes but for the last, which
// may be shorter.
type Train struct {
	Data []byte
	Size int // bytes of one datagram, at least 1
	To   netip.AddrPort
}

// MaxTrain is the most bytes that a train should hold to leave in one system call: what a UDP datagram can be at most.
const MaxTrain = 65507

// Len is the number of datagrams in the train.
func (t Train) Len() int { return (len(t.Data) + t.Size - 1) / t.Size }

// Counters counts what a Device did. Packets are datagrams; calls are system calls that moved something.
type Counters struct {
	Sent, SentBytes, SentCalls             int64
	Received, ReceivedBytes, ReceivedCalls int64

	Dropped       int64 // packets that the send buffer had no room for
	TooLarge      int64 // packets larger than the path takes
	Unreachable   int64 // packets refused with a transient error: no route, interface down, firewall, no memory
	Overflowed    int64 // packets or trains that arrived and found the receive buffer full, where the system tells
	Truncated     int64 // received packets larger than the buffer, dropped
	ReceiveErrors int64 // transient errors of reading
	Unsegmented   int64 // trains that were sent packet by packet because the kernel refused to segment them
}
