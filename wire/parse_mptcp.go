package wire

import (
	"net/netip"

	"braid/seq"
)

// Version is the MPTCP version that this package speaks (RFC 8684, Section 3.1).
const Version = 1

// The flag bits of MP_CAPABLE (RFC 8684, Section 3.1): A to H from the left.
const (
	capableChecksums     = 1 << 7 // A
	capableExtensibility = 1 << 6 // B
	capableNoJoin        = 1 << 5 // C
	capableOther         = 0x1e   // D to G
	capableHMACSHA256    = 1 << 0 // H
)

// parseMPTCP reads an option of kind 30; o is the whole option, at least 2 bytes. What is not legal is
// left out: the segment then looks as if the option were not there.
func (s *Segment) parseMPTCP(o []byte) {
	if len(o) < 3 {
		return
	}
	switch Subtype(o[2] >> 4) {
	case SubtypeDSS:
		s.parseDSS(o)
	case SubtypeMPCapable:
		s.parseCapable(o)
	case SubtypeMPJoin:
		s.parseJoin(o)
	case SubtypeAddAddr:
		s.parseAddAddr(o)
	case SubtypeRemoveAddr:
		// RFC 8684, Section 3.4.2: 3 bytes and at least one address ID.
		if len(o) > 3 && s.first(OptRemoveAddr) {
			s.RemoveAddr.Count = copy(s.RemoveAddr.IDs[:], o[3:])
		}
	case SubtypeMPPrio:
		// RFC 8684, Section 3.3.8: version 1 has no address ID here, so 4 bytes are not legal.
		if len(o) == 3 && s.first(OptMPPrio) {
			s.Prio.Backup = o[2]&1 != 0
		}
	case SubtypeMPFail:
		if len(o) == 12 && s.first(OptMPFail) {
			s.Fail.DataSeq = seq.Data(be.Uint64(o[4:]))
		}
	case SubtypeMPFastClose:
		if len(o) == 12 && s.first(OptMPFastClose) {
			s.FastClose.Receiver = Key(o[4:])
		}
	case SubtypeMPTCPReset:
		// RFC 8684, Section 3.6: the option belongs to a TCP RST.
		if len(o) == 4 && s.Flags&RST != 0 && s.first(OptMPTCPReset) {
			s.Reset = MPTCPReset{Transient: o[2]&1 != 0, Reason: ResetReason(o[3])}
		}
	}
}

// parseDSS reads a DSS. RFC 8684, Section 3.3: the flags say which fields there are, and the length
// whether a checksum ends them; any other length is not legal.
func (s *Segment) parseDSS(o []byte) {
	if len(o) < 4 || s.Options&OptDSS != 0 {
		return
	}
	flags := o[3]
	extra := len(o) - int(dssLen[flags&0xf])
	if extra != 0 && (extra != 2 || flags&dssMap == 0) {
		return
	}
	s.Options |= OptDSS
	d := &s.DSS
	*d = DSS{}
	p := o[4:]
	if flags&dssAck != 0 {
		d.HasAck = true
		if flags&dssAck64 != 0 {
			d.Ack64 = true
			d.DataAck = seq.Data(be.Uint64(p))
			p = p[8:]
		} else {
			d.DataAck = seq.Data(be.Uint32(p))
			p = p[4:]
		}
	}
	if flags&dssMap == 0 {
		return
	}
	d.HasMap = true
	d.DataFIN = flags&dssFIN != 0
	if flags&dssMap64 != 0 {
		d.Map64 = true
		d.DataSeq = seq.Data(be.Uint64(p))
		p = p[8:]
	} else {
		d.DataSeq = seq.Data(be.Uint32(p))
		p = p[4:]
	}
	d.Subflow = be.Uint32(p)
	d.Length = be.Uint16(p[4:])
	if extra == 2 {
		d.HasCheck = true
		d.Checksum = be.Uint16(p[6:])
	}
}

// parseCapable reads an MP_CAPABLE. RFC 8684, Section 3.1: 4 bytes in a SYN, 12 in a SYN/ACK, 20 in an ACK
// without data, 22 or 24 in a segment with data. A SYN of another version is reported with its version
// and flags, whatever its length, because a listener may answer it with its own version; elsewhere
// another version is no MP_CAPABLE.
func (s *Segment) parseCapable(o []byte) {
	if len(o) < 4 {
		return
	}
	version := o[2] & 0xf
	syn, ack := s.Flags&SYN != 0, s.Flags&ACK != 0
	var keys int
	legal := version == Version
	switch {
	case syn && !ack:
		legal = !legal || len(o) == 4
	case syn:
		keys = 1
		legal = legal && len(o) == 12
	default:
		keys = 2
		legal = legal && (len(o) == 20 && len(s.Payload) == 0 || (len(o) == 22 || len(o) == 24) && len(s.Payload) > 0)
	}
	if !legal || !s.first(OptMPCapable) {
		return
	}
	c := &s.Capable
	*c = MPCapable{
		Version:       version,
		Checksums:     o[3]&capableChecksums != 0,
		Extensibility: o[3]&capableExtensibility != 0,
		NoJoin:        o[3]&capableNoJoin != 0,
		HMACSHA256:    o[3]&capableHMACSHA256 != 0,
		OtherFlags:    o[3] & capableOther,
		Keys:          keys,
	}
	if keys >= 1 {
		c.Sender = Key(o[4:])
	}
	if keys == 2 {
		c.Receiver = Key(o[12:])
		if len(o) >= 22 {
			c.HasData, c.DataLength = true, be.Uint16(o[20:])
		}
		if len(o) == 24 {
			c.HasChecksum, c.Checksum = true, be.Uint16(o[22:])
		}
	}
}

// parseJoin reads an MP_JOIN. RFC 8684, Section 3.2: 12 bytes in a SYN, 16 in a SYN/ACK, 24 in an ACK.
func (s *Segment) parseJoin(o []byte) {
	form, legal := JoinACK, len(o) == 24
	if s.Flags&SYN != 0 {
		form, legal = JoinSYN, len(o) == 12
		if s.Flags&ACK != 0 {
			form, legal = JoinSYNACK, len(o) == 16
		}
	}
	if !legal || !s.first(OptMPJoin) {
		return
	}
	j := &s.Join
	*j = MPJoin{Form: form}
	if form == JoinACK {
		copy(j.MAC[:], o[4:])
		return
	}
	j.Backup = o[2]&1 != 0
	j.AddressID = o[3]
	if form == JoinSYN {
		j.Token = be.Uint32(o[4:])
		j.Nonce = be.Uint32(o[8:])
		return
	}
	copy(j.MAC[:8], o[4:])
	j.Nonce = be.Uint32(o[12:])
}

// parseAddAddr reads an ADD_ADDR. RFC 8684, Section 3.4.1: whether the address is IPv4 or IPv6 and whether
// there is a port follows from the length, as an echo (E) has no HMAC; any other length is not legal.
func (s *Segment) parseAddAddr(o []byte) {
	if len(o) < 4 {
		return
	}
	echo := o[2]&1 != 0
	n := len(o) // as if it were an echo
	if !echo {
		n -= 8
	}
	if (n != 8 && n != 10 && n != 20 && n != 22) || !s.first(OptAddAddr) {
		return
	}
	a := &s.AddAddr
	*a = AddAddr{Echo: echo, ID: o[3]}
	p := o[4:]
	if n <= 10 {
		a.Addr = netip.AddrFrom4([4]byte(p))
		p = p[4:]
	} else {
		a.Addr = netip.AddrFrom16([16]byte(p))
		p = p[16:]
	}
	if n == 10 || n == 22 {
		a.Port = be.Uint16(p)
		p = p[2:]
	}
	if !echo {
		a.MAC = [8]byte(p)
	}
}
