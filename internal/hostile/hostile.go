// Package hostile forges packets as attackers send them: what was seen on the way, again or damaged, what somebody guesses who knows addresses and
// ports only, floods of handshakes, and, for connections that may be lost, segments with the right numbers and wrong everything else. Tests give them to
// live Stacks, in the simulator and behind TUN devices.
//
// It does not send anything, judges nothing, and knows nothing about Stacks: only about bytes. The same random stream forges the same packets.
package hostile

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
)

// Packet is a packet as a host gets it.
type Packet struct {
	To   int            // whom it is for: the caller's number of a host and its path
	From netip.AddrPort // paths over UDP: where the datagram comes from
	Data []byte         // an IP packet, or the payload of a UDP datagram
}

// Kind is a way to forge a packet.
type Kind int

// What a connection has to survive: it comes from somebody who is not on the path and guesses, or who is and can only repeat and damage.
const (
	Replay      Kind = iota // what was seen, once more, at any later time
	Astray                  // ... to another host or path, or from another outer address
	Truncated               // cut short, nothing mended
	Flipped                 // one to three bits changed, nothing mended
	Garbage                 // random bytes
	Noise                   // addresses and ports of a connection, then random bytes with a right checksum
	Blind                   // a well-formed segment with addresses and ports of a connection and random numbers
	BlindICMP               // an ICMP error about such a segment
	WindowReset             // RST in the window and not at its edge (RFC 5961, Section 3.2)
	WindowSYN               // SYN in the window (RFC 5961, Section 4.2)
	BadAck                  // in the window, with an ACK of what was never sent or long ago (RFC 5961, Section 5.2)
	SYNFlood                // SYNs from anywhere, with MP_CAPABLE or without
	ThirdPacket             // third packets that answer no SYN/ACK
	JoinFlood               // SYNs with MP_JOIN and a random token
	JoinReplay              // SYNs with MP_JOIN and a token that was seen, from elsewhere
	Altered                 // the right numbers or some near them, anything else wrong, and a right checksum: may end or corrupt a connection
	kinds
)

var kindNames = [kinds]string{"replay", "astray", "truncated", "flipped", "garbage", "noise", "blind", "blind ICMP", "RST in window", "SYN in window", "bad ACK",
	"SYN flood", "third packet", "join flood", "join replay", "altered"}

// String names the kind.
func (k Kind) String() string {
	if k < 0 || k >= kinds {
		return fmt.Sprintf("kind %d", int(k))
	}
	return kindNames[k]
}

// Harmless are the kinds that a connection has to survive.
func Harmless() []Kind {
	all := make([]Kind, 0, kinds)
	for k := range Altered {
		all = append(all, k)
	}
	return all
}

const (
	ringSize = 512     // packets that an Attacker remembers
	maxFlows = 64      // ... and directions of connections
	bigSize  = 2048    // longer packets are not remembered
	tcpMin   = 20      // bytes of a TCP header without options
	shimMin  = 8       // bytes in front of a segment over UDP
	jump     = 1 << 30 // further than any window
)

// Attacker remembers what it saw and forges from it. It is not safe for concurrent use.
type Attacker struct {
	Window uint32   // about the receive window of those it attacks, in bytes
	Ports  []uint16 // where somebody listens

	// Dials says who opens connections. A SYN with the addresses and ports of one that it is opening would make a simultaneous open of it
	// (RFC 9293, Section 3.5), which TCP has no defence against: none is forged. Nil: nobody.
	Dials func(to int) bool

	rng   *rand.Rand
	udp   bool
	ring  [ringSize]Packet
	next  int
	count int
	flows []flow
	joins []join
	buf   [bigSize]byte
}

// flow is one direction of a TCP connection as seen last.
type flow struct {
	key  [44]byte // what stands in front of the sequence number, of a packet without its lengths
	head Packet   // the latest packet, up to its payload
	end  uint32   // sequence number behind the furthest byte seen
}

// join is an MP_JOIN SYN that was seen.
type join struct {
	to    int
	from  netip.AddrPort
	token [4]byte
	data  []byte
}

// New returns an Attacker that has seen nothing. udp says what packets are: payloads of UDP datagrams, or IP packets.
func New(rng *rand.Rand, udp bool) *Attacker { return &Attacker{rng: rng, udp: udp, Window: 64 << 10} }

// See remembers a packet. The data is copied.
func (a *Attacker) See(p Packet) {
	if len(p.Data) > bigSize {
		return
	}
	slot := &a.ring[a.next]
	a.next = (a.next + 1) % ringSize
	a.count = min(a.count+1, ringSize)
	slot.To, slot.From, slot.Data = p.To, p.From, append(slot.Data[:0], p.Data...)
	t, ok := a.tcp(slot.Data)
	if !ok {
		return
	}
	a.follow(slot, t)
	if token, ok := joinToken(slot.Data[t:]); ok {
		if len(a.joins) == maxFlows {
			a.joins = append(a.joins[:0], a.joins[1:]...)
		}
		a.joins = append(a.joins, join{p.To, p.From, token, append([]byte(nil), p.Data...)})
	}
}

// follow keeps the numbers of the packet's direction.
func (a *Attacker) follow(p *Packet, t int) {
	var key [44]byte
	switch { // addresses and ports; over UDP the tag and the ports
	case a.udp:
		copy(key[:], p.Data[4:8])
	case t == 20:
		copy(key[:], p.Data[12:20])
	default:
		copy(key[:], p.Data[8:40])
	}
	copy(key[32:], p.Data[t:t+4])
	binary.BigEndian.PutUint32(key[36:], uint32(p.To))
	off := t + int(p.Data[t+12]>>4)*4
	start := be.Uint32(p.Data[t+4:])
	end := start + uint32(len(p.Data)-off)
	if p.Data[t+13]&(flagSYN|flagFIN) != 0 {
		end++
	}
	for i := range a.flows {
		f := &a.flows[i]
		if f.key == key {
			if p.Data[t+13]&flagSYN != 0 || int32(end-f.end) > 0 {
				f.end = end
			}
			if p.Data[t+13]&flagRST == 0 {
				f.head.From, f.head.Data = p.From, append(f.head.Data[:0], p.Data[:off]...)
			}
			return
		}
	}
	if len(a.flows) == maxFlows {
		a.flows = append(a.flows[:0], a.flows[1:]...)
	}
	a.flows = append(a.flows, flow{key, Packet{To: p.To, From: p.From, Data: append([]byte(nil), p.Data[:off]...)}, end})
}

// tcp returns where the TCP header begins; false if the packet has none that is whole.
func (a *Attacker) tcp(b []byte) (int, bool) {
	t := 0
	switch {
	case a.udp:
		if len(b) < shimMin || b[0] != 1<<4 {
			return 0, false
		}
		t = shimMin
		if b[1]&0x80 != 0 {
			t += 4
		}
		t += int(b[2])
	case len(b) >= 20 && b[0] == 0x45 && b[9] == 6:
		t = 20
	case len(b) >= 40 && b[0]>>4 == 6 && b[6] == 6:
		t = 40
	default:
		return 0, false
	}
	if len(b) < t+tcpMin {
		return 0, false
	}
	off := int(b[t+12]>>4) * 4
	return t, off >= tcpMin && len(b) >= t+off
}

// seen draws a packet of those seen.
func (a *Attacker) seen() (*Packet, bool) {
	if a.count == 0 {
		return nil, false
	}
	return &a.ring[a.rng.IntN(a.count)], true
}

// flow draws a direction of a connection.
func (a *Attacker) flow() (*flow, bool) {
	if len(a.flows) == 0 {
		return nil, false
	}
	return &a.flows[a.rng.IntN(len(a.flows))], true
}
