package wire

import (
	"encoding/hex"
	"strconv"
)

// String prints the segment in one line, much as tcpdump would, with every option decoded.
func (s *Segment) String() string {
	b, _ := s.AppendText(nil)
	return string(b)
}

// AppendText appends what String returns. The error is always nil.
func (s *Segment) AppendText(b []byte) ([]byte, error) {
	b = appendUint(b, "", uint64(s.SrcPort))
	b = appendUint(b, " > ", uint64(s.DstPort))
	b = append(b, ": "...)
	return s.appendBody(b), nil
}

// appendBody prints what follows the ports.
func (s *Segment) appendBody(b []byte) []byte {
	b = append(b, "Flags ["...)
	b = s.Flags.appendText(b)
	b = append(b, ']')
	if s.Len() > 0 || s.Flags&(SYN|FIN|RST) != 0 || s.Flags&ACK == 0 {
		b = appendUint(b, ", seq ", uint64(s.Seq))
		if n := len(s.Payload); n > 0 {
			b = appendUint(b, ":", uint64(s.Seq.Add(int64(n))))
		}
	}
	if s.Flags&ACK != 0 {
		b = appendUint(b, ", ack ", uint64(s.Ack))
	}
	b = appendUint(b, ", win ", uint64(s.Window))
	if s.Flags&URG != 0 {
		b = appendUint(b, ", urg ", uint64(s.Urgent))
	}
	if s.Options != 0 {
		b = append(b, ", options ["...)
		b = s.appendOptions(b)
		b = append(b, ']')
	}
	return appendUint(b, ", length ", uint64(len(s.Payload)))
}

// String prints the control bits in tcpdump's letters: S SYN, F FIN, P PSH, R RST, . ACK, U URG, E ECE,
// W CWR.
func (fl Flags) String() string { return string(fl.appendText(nil)) }

// appendText prints the control bits.
func (fl Flags) appendText(b []byte) []byte {
	const letters = "FSRP.UEW"
	if fl == 0 {
		return append(b, "none"...)
	}
	for _, i := range []int{1, 0, 2, 3, 5, 6, 7, 4} { // ACK last
		if fl&(1<<i) != 0 {
			b = append(b, letters[i])
		}
	}
	return b
}

// appendOptions prints the options in the order of their constants, padding left out.
func (s *Segment) appendOptions(b []byte) []byte {
	start := len(b)
	sep := func() {
		if len(b) > start {
			b = append(b, ',')
		}
	}
	for o := OptMSS; o <= OptMPTCPReset; o <<= 1 {
		if s.Options&o != 0 {
			sep()
			b = s.appendOption(b, o)
		}
	}
	return b
}

// appendOption prints one option.
func (s *Segment) appendOption(b []byte, o Option) []byte {
	switch o {
	case OptMSS:
		return appendUint(b, "mss ", uint64(s.MSS))
	case OptWindowScale:
		return appendUint(b, "wscale ", uint64(s.WindowScale))
	case OptSACKPermitted:
		return append(b, "sackOK"...)
	case OptSACK:
		b = appendUint(b, "sack ", uint64(s.SACKBlocks))
		b = append(b, ' ')
		for _, k := range s.SACK[:s.SACKBlocks] {
			b = appendUint(b, "{", uint64(k.Start))
			b = append(appendUint(b, ":", uint64(k.End)), '}')
		}
		return b
	case OptTimestamps:
		b = appendUint(b, "TS val ", uint64(s.TSVal))
		return appendUint(b, " ecr ", uint64(s.TSEcr))
	case OptFastOpen:
		if s.FastOpen.Len == 0 {
			return append(b, "tfo cookiereq"...)
		}
		return hex.AppendEncode(append(b, "tfo cookie "...), s.FastOpen.Value[:s.FastOpen.Len])
	}
	return s.appendMPTCP(append(b, "mptcp "...), o)
}

// appendMPTCP prints one MPTCP option.
func (s *Segment) appendMPTCP(b []byte, o Option) []byte {
	switch o {
	case OptMPCapable:
		return s.Capable.appendText(b)
	case OptMPJoin:
		return s.Join.appendText(b)
	case OptDSS:
		return s.DSS.appendText(b)
	case OptAddAddr:
		return s.AddAddr.appendText(b)
	case OptRemoveAddr:
		b = append(b, "rem-addr id"...)
		for _, id := range s.RemoveAddr.IDs[:s.RemoveAddr.Count] {
			b = appendUint(b, " ", uint64(id))
		}
		return b
	case OptMPPrio:
		return appendIf(append(b, "prio"...), s.Prio.Backup, " backup")
	case OptMPFail:
		return appendUint(b, "fail seq ", uint64(s.Fail.DataSeq))
	case OptMPFastClose:
		return hex.AppendEncode(append(b, "fast-close key "...), s.FastClose.Receiver[:])
	case OptMPTCPReset:
		b = append(append(b, "reset "...), s.Reset.Reason.String()...)
		return appendIf(b, s.Reset.Transient, " transient")
	}
	return b
}

// appendText prints the option.
func (c *MPCapable) appendText(b []byte) []byte {
	b = appendUint(b, "capable v", uint64(c.Version))
	b = append(b, " flags ["...)
	for i, on := range []bool{c.Checksums, c.Extensibility, c.NoJoin, c.HMACSHA256} {
		if on {
			b = append(b, "ABCH"[i])
		}
	}
	b = append(b, ']')
	if c.Keys >= 1 {
		b = hex.AppendEncode(append(b, " {"...), c.Sender[:])
		if c.Keys == 2 {
			b = hex.AppendEncode(append(b, ','), c.Receiver[:])
		}
		b = append(b, '}')
	}
	if c.HasData {
		b = appendUint(b, " len ", uint64(c.DataLength))
	}
	if c.HasChecksum {
		b = appendHex(append(b, " csum "...), uint64(c.Checksum), 4)
	}
	return b
}

// appendText prints the option.
func (j *MPJoin) appendText(b []byte) []byte {
	b = append(b, "join"...)
	if j.Form == JoinACK {
		return hex.AppendEncode(append(b, " hmac "...), j.MAC[:])
	}
	b = appendIf(b, j.Backup, " backup")
	b = appendUint(b, " id ", uint64(j.AddressID))
	if j.Form == JoinSYN {
		b = appendHex(append(b, " token "...), uint64(j.Token), 8)
	} else {
		b = hex.AppendEncode(append(b, " hmac "...), j.MAC[:8])
	}
	return appendHex(append(b, " nonce "...), uint64(j.Nonce), 8)
}

// appendText prints the option. A width follows numbers that came as 32 bits: they still want promotion.
func (d *DSS) appendText(b []byte) []byte {
	b = append(b, "dss"...)
	b = appendIf(b, d.HasMap && d.DataFIN, " fin")
	if d.HasAck {
		b = appendUint(b, " ack ", uint64(d.DataAck))
		b = appendIf(b, !d.Ack64, "/32")
	}
	if d.HasMap {
		b = appendUint(b, " seq ", uint64(d.DataSeq))
		b = appendIf(b, !d.Map64, "/32")
		b = appendUint(b, " subseq ", uint64(d.Subflow))
		b = appendUint(b, " len ", uint64(d.Length))
		b = appendIf(b, d.Length == 0, " infinite")
		if d.HasCheck {
			b = appendHex(append(b, " csum "...), uint64(d.Checksum), 4)
		}
	}
	return b
}

// appendText prints the option.
func (a *AddAddr) appendText(b []byte) []byte {
	b = append(b, "add-addr"...)
	b = appendIf(b, a.Echo, " echo")
	b = appendUint(b, " id ", uint64(a.ID))
	b = a.Addr.AppendTo(append(b, ' '))
	if a.Port != 0 {
		b = appendUint(b, " port ", uint64(a.Port))
	}
	if !a.Echo {
		b = hex.AppendEncode(append(b, " hmac "...), a.MAC[:])
	}
	return b
}

// String returns the reason in words; unregistered ones as their number.
func (r ResetReason) String() string {
	names := [...]string{
		ResetUnspecified: "unspecified",
		ResetMPTCP:       "mptcp-error",
		ResetResources:   "no-resources",
		ResetProhibited:  "prohibited",
		ResetTooMuchData: "too-much-data",
		ResetPerformance: "bad-performance",
		ResetMiddlebox:   "middlebox",
	}
	if int(r) < len(names) {
		return names[r]
	}
	return "reason-" + strconv.Itoa(int(r))
}

// appendUint appends a word and a decimal number.
func appendUint(b []byte, word string, v uint64) []byte {
	return strconv.AppendUint(append(b, word...), v, 10)
}

// appendHex appends 0x and a number of so many hexadecimal digits.
func appendHex(b []byte, v uint64, digits int) []byte {
	b = append(b, '0', 'x')
	for i := digits - 1; i >= 0; i-- {
		b = append(b, "0123456789abcdef"[v>>(4*i)&0xf])
	}
	return b
}

// appendIf appends a word if it applies.
func appendIf(b []byte, on bool, word string) []byte {
	if on {
		b = append(b, word...)
	}
	return b
}
