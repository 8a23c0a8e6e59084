package script

import (
	"fmt"
	"strings"

	"braid/wire"
)

// describe returns the words for a segment of the host's.
func (r *Runner) describe(f *flow, p *packet) []field {
	s := &p.seg
	var d []field
	add := func(name string, v value) { d = append(d, field{name, v}) }
	add("src", words(p.ip.Src.String()))
	add("dst", words(p.ip.Dst.String()))
	add("sport", number(s.SrcPort))
	add("dport", number(s.DstPort))
	add("seq", number(int32(s.Seq-f.irs)))
	if s.Flags.Has(wire.ACK) {
		add("ack", number(int32(s.Ack-f.iss)))
	}
	add("win", number(s.Window))
	if len(s.Payload) > 0 {
		add("payload", words(string(s.Payload)))
	}
	add("data", number(len(s.Payload)))
	if s.Flags.Has(wire.URG) {
		add("urg", number(s.Urgent))
	}
	r.describeTCP(f, s, add)
	r.describeHandshake(s, add)
	r.describeDSS(s, add)
	r.describeRest(s, add)
	return d
}

func (r *Runner) describeTCP(f *flow, s *wire.Segment, add func(string, value)) {
	if s.Has(wire.OptMSS) {
		add("mss", number(s.MSS))
	}
	if s.Has(wire.OptWindowScale) {
		add("wscale", number(s.WindowScale))
	}
	if s.Has(wire.OptSACKPermitted) {
		add("sackok", number(1))
	}
	if s.Has(wire.OptTimestamps) {
		add("ts", number(1))
		add("tsecr", number(s.TSEcr))
		add("tsval", number(s.TSVal))
	}
	if s.Has(wire.OptSACK) {
		var blocks []string
		for _, b := range s.SACK[:s.SACKBlocks] {
			blocks = append(blocks, fmt.Sprintf("%d:%d", int32(b.Start-f.iss), int32(b.End-f.iss)))
		}
		add("sack", words(strings.Join(blocks, ",")))
	}
}

func (r *Runner) describeHandshake(s *wire.Segment, add func(string, value)) {
	if s.Has(wire.OptMPCapable) {
		c := &s.Capable
		add("mp_capable", number(1))
		add("version", number(c.Version))
		flags := ""
		for i, on := range []bool{c.Checksums, c.Extensibility, c.NoJoin, c.OtherFlags != 0, c.HMACSHA256} {
			if on {
				flags += "ABCGH"[i : i+1]
			}
		}
		add("flags", words(flags))
		if c.Keys > 0 {
			add("key", octets(c.Sender[:]))
		}
		if c.Keys > 1 {
			add("rkey", octets(c.Receiver[:]))
		}
		if c.HasData {
			add("len", number(c.DataLength))
		}
		if c.HasChecksum {
			add("csum", r.judge(wire.DSSChecksumOK(r.idsn("b").At(1), 1, c.DataLength, c.Checksum, wire.Sum(0).Add(s.Payload))))
		}
	}
	if !s.Has(wire.OptMPJoin) {
		return
	}
	j := &s.Join
	add("mp_join", number(1))
	if j.Form != wire.JoinACK {
		add("id", number(j.AddressID))
		add("nonce", number(j.Nonce))
		if j.Backup {
			add("backup", number(1))
		}
	}
	switch j.Form {
	case wire.JoinSYN:
		add("token", number(j.Token))
	case wire.JoinSYNACK:
		add("hmac", octets(j.MAC[:8]))
	default:
		add("hmac", octets(j.MAC[:]))
	}
}

// judge says whether a checksum is right.
func (r *Runner) judge(right bool) value {
	if right {
		return words("right")
	}
	return words("wrong")
}

func (r *Runner) describeDSS(s *wire.Segment, add func(string, value)) {
	d := &s.DSS
	if !s.Has(wire.OptDSS) {
		return
	}
	add("dss", number(1))
	if d.HasAck {
		n := r.idsn("a").Offset(d.DataAck)
		if !d.Ack64 {
			n = int64(int32(uint32(d.DataAck) - uint32(r.idsn("a"))))
		}
		add("dack", number(n))
		add("dack_size", number(4+4*int(bit(d.Ack64))))
	}
	if !d.HasMap {
		return
	}
	n := r.idsn("b").Offset(d.DataSeq)
	if !d.Map64 {
		n = int64(int32(uint32(d.DataSeq) - uint32(r.idsn("b"))))
	}
	add("dseq", number(n))
	add("subseq", number(d.Subflow))
	add("len", number(d.Length))
	if d.DataFIN {
		add("data_fin", number(1))
	}
	if d.Length == 0 {
		add("infinite", number(1))
	}
	if d.HasCheck {
		add("csum", r.judge(d.Length == 0 && d.Checksum == 0 ||
			wire.DSSChecksumOK(r.idsn("b").At(n), d.Subflow, d.Length, d.Checksum, wire.Sum(0).Add(s.Payload))))
	}
}

func bit(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

func (r *Runner) describeRest(s *wire.Segment, add func(string, value)) {
	if s.Has(wire.OptAddAddr) {
		a := &s.AddAddr
		add("add_addr", words(a.Addr.String()))
		add("id", number(a.ID))
		if a.Port != 0 {
			add("port", number(a.Port))
		}
		if a.Echo {
			add("echo", number(1))
		} else {
			add("addr_hmac", octets(a.MAC[:]))
		}
	}
	if s.Has(wire.OptRemoveAddr) {
		var ids []string
		for _, id := range s.RemoveAddr.IDs[:s.RemoveAddr.Count] {
			ids = append(ids, fmt.Sprint(id))
		}
		add("remove_addr", words(strings.Join(ids, ",")))
	}
	if s.Has(wire.OptMPPrio) {
		add("mp_prio", words(map[bool]string{true: "backup", false: "regular"}[s.Prio.Backup]))
	}
	if s.Has(wire.OptMPFail) {
		add("mp_fail", number(r.idsn("a").Offset(s.Fail.DataSeq)))
	}
	if s.Has(wire.OptMPFastClose) {
		add("mp_fastclose", octets(s.FastClose.Receiver[:]))
	}
	if s.Has(wire.OptMPTCPReset) {
		add("mp_tcprst", number(s.Reset.Reason))
		if s.Reset.Transient {
			add("transient", number(1))
		}
	}
}
