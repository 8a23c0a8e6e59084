package wire

import "fmt"

// Header sizes in bytes.
const (
	TCPHeaderLen  = 20 // without options (RFC 9293, Section 3.1)
	MaxOptionsLen = 40 // the data offset has room for no more (RFC 9293, Section 3.1)
)

// Option kinds: RFC 9293, Section 3.2; RFC 7323; RFC 2018; RFC 7413; RFC 8684.
const (
	kindEnd           = 0
	kindNOP           = 1
	kindMSS           = 2
	kindWindowScale   = 3
	kindSACKPermitted = 4
	kindSACK          = 5
	kindTimestamps    = 8
	kindMPTCP         = 30
	kindFastOpen      = 34
)

// Room that options take in a header, padding to a multiple of 4 included: what a sender takes off its
// payload when it reserves room (RFC 9293, Section 3.7.1).
const (
	MSSLen         = 4
	WindowScaleLen = 4
	// SACKPermittedLen is 0 beside timestamps: the option then stands where their two NOPs would.
	SACKPermittedLen = 4
	TimestampsLen    = 12

	MPJoinSYNLen    = 12
	MPJoinSYNACKLen = 16
	MPJoinACKLen    = 24
	MPPrioLen       = 4
	MPFailLen       = 12
	MPFastCloseLen  = 12
	MPTCPResetLen   = 4

	// DSSMaxLen is the room of the largest DSS: 64-bit DATA_ACK, 64-bit mapping, checksum.
	DSSMaxLen = 28
)

// pad4 rounds n up to a multiple of 4.
func pad4(n int) int { return (n + 3) &^ 3 }

// SACKLen returns the room of a SACK option with n blocks, 0 to 4: 0 for none.
func SACKLen(n int) int {
	if n == 0 {
		return 0
	}
	return 4 + 8*n
}

// DSSLen returns the room of a DSS option with these parts. ack64, map64 and csum count only beside the
// part they qualify (RFC 8684, Section 3.3).
func DSSLen(ack, ack64, mapping, map64, csum bool) int {
	n := 4
	if ack {
		n += 4
		if ack64 {
			n += 4
		}
	}
	if mapping {
		n += 4 + 4 + 2
		if map64 {
			n += 4
		}
		if csum {
			n += 2
		}
	}
	return pad4(n)
}

// MPCapableLen returns the room of an MP_CAPABLE option with 0, 1 or 2 keys and, beside two keys, a data
// length and a checksum (RFC 8684, Section 3.1).
func MPCapableLen(keys int, data, csum bool) int {
	n := 4 + 8*keys
	if data {
		n += 2
		if csum {
			n += 2
		}
	}
	return pad4(n)
}

// AddAddrLen returns the room of an ADD_ADDR option for an IPv4 or IPv6 address (RFC 8684, Section 3.4.1).
func AddAddrLen(ipv6, port, echo bool) int {
	n := 4 + 4
	if ipv6 {
		n = 4 + 16
	}
	if port {
		n += 2
	}
	if !echo {
		n += 8
	}
	return pad4(n)
}

// RemoveAddrLen returns the room of a REMOVE_ADDR option with n address IDs (RFC 8684, Section 3.4.2).
func RemoveAddrLen(n int) int { return pad4(3 + n) }

// wireLen returns the option's length field.
func (c *MPCapable) wireLen() int {
	n := 4 + 8*c.Keys
	if c.HasData {
		n += 2
		if c.HasChecksum {
			n += 2
		}
	}
	return n
}

// wireLen returns the option's length field.
func (j *MPJoin) wireLen() int {
	switch j.Form {
	case JoinSYN:
		return 12
	case JoinSYNACK:
		return 16
	case JoinACK:
		return 24
	}
	panic(fmt.Sprintf("wire: MP_JOIN of form %d", j.Form))
}

// The flag bits of a DSS (RFC 8684, Section 3.3).
const (
	dssAck   = 1 << 0 // A
	dssAck64 = 1 << 1 // a
	dssMap   = 1 << 2 // M
	dssMap64 = 1 << 3 // m
	dssFIN   = 1 << 4 // F
)

// dssLen is the length that the flags A, a, M, m ask for, without a checksum.
var dssLen = [16]uint8{
	0:                            4,
	dssAck:                       8,
	dssAck64:                     4, // a without A means nothing
	dssAck | dssAck64:            12,
	dssMap:                       14,
	dssMap | dssAck:              18,
	dssMap | dssAck64:            14,
	dssMap | dssAck | dssAck64:   22,
	dssMap64:                     4, // m without M means nothing
	dssMap64 | dssAck:            8,
	dssMap64 | dssAck64:          4,
	dssMap64 | dssAck | dssAck64: 12,
	dssMap64 | dssMap:            18,
	dssMap64 | dssMap | dssAck:   22,
	dssMap64 | dssMap | dssAck64: 18,
	dssMap64 | dssMap | 3*dssAck: 26,
}

// flags returns the flag byte of d. F, a and m are sent only where they mean something.
func (d *DSS) flags() uint8 {
	var f uint8
	if d.HasAck {
		f |= dssAck
		if d.Ack64 {
			f |= dssAck64
		}
	}
	if d.HasMap {
		f |= dssMap
		if d.Map64 {
			f |= dssMap64
		}
		if d.DataFIN {
			f |= dssFIN
		}
	}
	return f
}

// wireLen returns the option's length field.
func (d *DSS) wireLen() int {
	n := int(dssLen[d.flags()&0xf])
	if d.HasCheck && d.HasMap {
		n += 2
	}
	return n
}

// wireLen returns the option's length field.
func (a *AddAddr) wireLen() int {
	n := 4 + 4
	if !a.Addr.Is4() {
		n = 4 + 16
	}
	if a.Port != 0 {
		n += 2
	}
	if !a.Echo {
		n += 8
	}
	return n
}

// OptionsLen returns the bytes that the segment's options take in the header, padding included: a
// multiple of 4. A segment with more than MaxOptionsLen cannot be appended.
func (s *Segment) OptionsLen() int {
	if s.Options == 0 {
		return 0
	}
	n := 0
	if s.Options&OptTimestamps != 0 {
		n = TimestampsLen
	}
	if s.Options&OptDSS != 0 {
		n += pad4(s.DSS.wireLen())
	}
	if rest := s.Options &^ (OptTimestamps | OptDSS); rest != 0 {
		n += s.plainOptionsLen(rest)
		if rest&OptMPTCP != 0 {
			n += s.mptcpOptionsLen(rest)
		}
	}
	return n
}

// plainOptionsLen returns the room of TCP's own options but timestamps.
func (s *Segment) plainOptionsLen(o Option) int {
	n := 0
	if o&OptMSS != 0 {
		n += MSSLen
	}
	if o&OptSACKPermitted != 0 && s.Options&OptTimestamps == 0 {
		n += SACKPermittedLen
	}
	if o&OptWindowScale != 0 {
		n += WindowScaleLen
	}
	if o&OptSACK != 0 {
		n += SACKLen(s.SACKBlocks)
	}
	if o&OptFastOpen != 0 {
		n += pad4(2 + s.FastOpen.Len)
	}
	return n
}

// mptcpOptionsLen returns the room of the MPTCP options but DSS.
func (s *Segment) mptcpOptionsLen(o Option) int {
	n := 0
	if o&OptMPCapable != 0 {
		n += pad4(s.Capable.wireLen())
	}
	if o&OptMPJoin != 0 {
		n += s.Join.wireLen()
	}
	if o&OptMPFail != 0 {
		n += MPFailLen
	}
	if o&OptMPFastClose != 0 {
		n += MPFastCloseLen
	}
	if o&OptMPTCPReset != 0 {
		n += MPTCPResetLen
	}
	if o&OptAddAddr != 0 {
		n += pad4(s.AddAddr.wireLen())
	}
	if o&OptRemoveAddr != 0 {
		n += RemoveAddrLen(s.RemoveAddr.Count)
	}
	if o&OptMPPrio != 0 {
		n += MPPrioLen
	}
	return n
}
