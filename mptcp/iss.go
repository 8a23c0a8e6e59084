package mptcp

import (
	"encoding/binary"
	"net/netip"
	"time"

	"braid/clock"
	"braid/seq"
)

// issTick is the clock of initial sequence numbers (RFC 9293, Section 3.4.1): it comes round in 4.8 hours.
const issTick = 4 * time.Microsecond

// iss returns the initial sequence number of a connection that begins now: the clock, which a keyed hash of addresses and ports displaces
// (RFC 6528, Section 3). Third parties cannot guess it, and every incarnation of one connection begins behind the one before. On UDP
// paths the addresses are the outer ones.
//
// The secret is that of the cookies, which hash for another purpose. A draw of the entropy goes unused: numbers were drawn once, and all that is
// drawn after them, and so what a seed means, stays what it was.
func (s *Stack) iss(now clock.Time, r *route) seq.Number {
	s.cfg.Entropy()
	key := tuple{src: bytesOf(r.remote), dst: bytesOf(r.local), ports: uint32(r.dstPort)<<16 | uint32(r.srcPort)}
	d := s.cookies.digest('i', &key, uint32(r.remote.Port()), uint32(r.local.Port()))
	return seq.Number(uint32(uint64(now)/uint64(issTick)) + binary.BigEndian.Uint32(d[:]))
}

// bytesOf returns an address for hashing; sockets of all addresses may have none.
func bytesOf(a netip.AddrPort) (b [16]byte) {
	if a.Addr().IsValid() {
		b = a.Addr().As16()
	}
	return b
}
