package wire

import "fmt"

// putMPTCPOptions writes the MPTCP options to o, which has room for exactly them.
func (s *Segment) putMPTCPOptions(o []byte) {
	if s.Options&OptMPCapable != 0 {
		o = s.Capable.put(o)
	}
	if s.Options&OptMPJoin != 0 {
		o = s.Join.put(o)
	}
	if s.Options&OptDSS != 0 {
		o = s.DSS.put(o)
	}
	if s.Options&OptMPFail != 0 {
		putHead(o, 12, SubtypeMPFail, 0, 0)
		be.PutUint64(o[4:], uint64(s.Fail.DataSeq))
		o = o[MPFailLen:]
	}
	if s.Options&OptMPFastClose != 0 {
		putHead(o, 12, SubtypeMPFastClose, 0, 0)
		copy(o[4:12], s.FastClose.Receiver[:])
		o = o[MPFastCloseLen:]
	}
	if s.Options&OptMPTCPReset != 0 {
		putHead(o, 4, SubtypeMPTCPReset, bit(s.Reset.Transient), uint8(s.Reset.Reason))
		o = o[MPTCPResetLen:]
	}
	if s.Options&OptAddAddr != 0 {
		o = s.AddAddr.put(o)
	}
	if s.Options&OptRemoveAddr != 0 {
		o = s.RemoveAddr.put(o)
	}
	if s.Options&OptMPPrio != 0 {
		putHead(o, 3, SubtypeMPPrio, bit(s.Prio.Backup), kindNOP)
	}
}

// putHead writes the first four bytes of an MPTCP option: kind, length, subtype and the four bits beside
// it, and the byte that follows.
func putHead(o []byte, length int, t Subtype, low, next uint8) {
	o[0], o[1], o[2], o[3] = kindMPTCP, uint8(length), uint8(t)<<4|low, next
}

// bit returns 1 for true.
func bit(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// put writes the option with its padding and returns the rest of o.
func (d *DSS) put(o []byte) []byte {
	if d.HasCheck && !d.HasMap {
		panic("wire: DSS with a checksum but without a mapping")
	}
	flags := d.flags()
	n := int(dssLen[flags&0xf])
	if d.HasCheck {
		n += 2
	}
	putHead(o, n, SubtypeDSS, 0, flags)
	p := o[4:]
	if d.HasAck {
		if d.Ack64 {
			be.PutUint64(p, uint64(d.DataAck))
			p = p[8:]
		} else {
			be.PutUint32(p, uint32(d.DataAck))
			p = p[4:]
		}
	}
	if !d.HasMap {
		return p
	}
	if d.Map64 {
		be.PutUint64(p, uint64(d.DataSeq))
		p = p[8:]
	} else {
		be.PutUint32(p, uint32(d.DataSeq))
		p = p[4:]
	}
	be.PutUint32(p, d.Subflow)
	be.PutUint16(p[4:], d.Length)
	if d.HasCheck {
		be.PutUint16(p[6:], d.Checksum)
	} else {
		p[6], p[7] = kindNOP, kindNOP
	}
	return p[8:]
}

// put writes the option with its padding and returns the rest of o.
func (c *MPCapable) put(o []byte) []byte {
	if c.Keys < 0 || c.Keys > 2 || c.HasData && c.Keys != 2 || c.HasChecksum && !c.HasData {
		panic(fmt.Sprintf("wire: MP_CAPABLE with %d keys, data length %t, checksum %t", c.Keys, c.HasData, c.HasChecksum))
	}
	n := c.wireLen()
	flags := bit(c.Checksums)<<7 | bit(c.Extensibility)<<6 | bit(c.NoJoin)<<5 | c.OtherFlags&capableOther | bit(c.HMACSHA256)
	putHead(o, n, SubtypeMPCapable, c.Version&0xf, flags)
	if c.Keys >= 1 {
		copy(o[4:12], c.Sender[:])
	}
	if c.Keys == 2 {
		copy(o[12:20], c.Receiver[:])
	}
	if c.HasData {
		be.PutUint16(o[20:], c.DataLength)
	}
	if c.HasChecksum {
		be.PutUint16(o[22:], c.Checksum)
	}
	return padNOP(o, n)
}

// put writes the option and returns the rest of o.
func (j *MPJoin) put(o []byte) []byte {
	n := j.wireLen()
	if j.Form == JoinACK {
		putHead(o, n, SubtypeMPJoin, 0, 0)
		copy(o[4:24], j.MAC[:])
		return o[n:]
	}
	putHead(o, n, SubtypeMPJoin, bit(j.Backup), j.AddressID)
	if j.Form == JoinSYN {
		be.PutUint32(o[4:], j.Token)
		be.PutUint32(o[8:], j.Nonce)
		return o[n:]
	}
	copy(o[4:12], j.MAC[:8])
	be.PutUint32(o[12:], j.Nonce)
	return o[n:]
}

// put writes the option with its padding and returns the rest of o.
func (a *AddAddr) put(o []byte) []byte {
	if !a.Addr.IsValid() {
		panic("wire: ADD_ADDR without an address")
	}
	n := a.wireLen()
	putHead(o, n, SubtypeAddAddr, bit(a.Echo), a.ID)
	p := o[4:]
	if a.Addr.Is4() {
		v4 := a.Addr.As4()
		p = p[copy(p, v4[:]):]
	} else {
		v6 := a.Addr.As16()
		p = p[copy(p, v6[:]):]
	}
	if a.Port != 0 {
		be.PutUint16(p, a.Port)
		p = p[2:]
	}
	if !a.Echo {
		copy(p, a.MAC[:])
	}
	return padNOP(o, n)
}

// put writes the option with its padding and returns the rest of o.
func (r *RemoveAddr) put(o []byte) []byte {
	if r.Count < 1 || r.Count > len(r.IDs) {
		panic(fmt.Sprintf("wire: REMOVE_ADDR with %d address IDs", r.Count))
	}
	n := 3 + r.Count
	putHead(o, n, SubtypeRemoveAddr, 0, r.IDs[0])
	copy(o[3:], r.IDs[:r.Count])
	return padNOP(o, n)
}
