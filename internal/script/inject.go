package script

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"braid/seq"
	"braid/wire"
)

// injection is a segment of the script's under construction.
//
// Its words: the flags (S F R P . U E W) come first; then flow=, from=, to= (address, or address:port), seq=, ack=, win=, urg=, payload=text or
// data=bytes; mss=, wscale=, sackok, sack=from:to,..., ts (on a SYN; afterwards segments carry the option by themselves), tsval=, tsecr= (what is
// added to the right one), nots; mp_capable with version=, flags=, key=, rkey=, len=; mp_join with id=, backup, token=, nonce=, hmac=; dack=, dseq=, subseq=, len=,
// data_fin, infinite, short (4-byte numbers); csum or csum=wrong; add_addr=address with id=, port=, echo, hmac=; remove_addr=id,...; mp_prio=backup or
// regular; mp_fail=; mp_fastclose=key; mp_tcprst=reason, transient; raw=hex of options; badsum. What a line leaves out has the value that is right.
type injection struct {
	r    *Runner
	f    *flow
	seg  wire.Segment
	kind wire.Option // of the option that came last: whom id=, len=, key= are about

	rel, ack       int64 // of the flow's numbers
	src, dst       netip.AddrPort
	tsval, tsecr   int64
	noTS           bool
	raw            []byte
	badSum         bool
	key, rkey      *wire.Key
	length, subseq int64 // -1: what is right
	checksum       bool
	wrongChecksum  bool
	short          bool
}

// inject runs a line of the script's own.
func (r *Runner) inject(w []string) error {
	if kind, ok := strings.CutPrefix(w[0], "icmp="); ok {
		return r.icmp(kind, w[1:])
	}
	flags, err := parseFlags(w[0])
	if err != nil {
		return err
	}
	name, rest := flowName(w[1:])
	in := injection{r: r, f: r.flow(name), length: -1, subseq: -1}
	in.seg.Flags, in.seg.Window = flags, 65535
	in.src, in.dst = in.f.peer, in.f.host
	for _, word := range rest {
		if err := in.word(word); err != nil {
			return fmt.Errorf("%s: %w", word, err)
		}
	}
	b, err := in.finish()
	if err != nil {
		return err
	}
	r.back.Inject(b)
	r.lastAt = r.back.Now()
	return nil
}

// parseFlags reads tcpdump's letters.
func parseFlags(s string) (fl wire.Flags, err error) {
	for _, c := range s {
		i := strings.IndexRune("FSRP.UEW", c)
		if i < 0 && s != "none" {
			return 0, fmt.Errorf("%q are no flags", s)
		}
		fl |= 1 << max(i, 0)
	}
	if s == "none" {
		fl = 0
	}
	return fl, nil
}

// flowName takes flow=name out of a line.
func flowName(w []string) (name string, rest []string) {
	name = "1"
	for _, word := range w {
		if n, ok := strings.CutPrefix(word, "flow="); ok {
			name = n
		} else {
			rest = append(rest, word)
		}
	}
	return name, rest
}

// word takes one word.
func (in *injection) word(w string) error {
	name, text, _ := strings.Cut(w, "=")
	v, err := in.r.vars.eval(text)
	if err != nil {
		return err
	}
	if in.tcpWord(name, text, v) || in.mptcpWord(name, text, v) {
		return in.r.wordErr()
	}
	return fmt.Errorf("unknown word")
}

// fail keeps an error of the word under way.
func (r *Runner) fail(err error) bool {
	if err != nil {
		r.err = err
	}
	return true
}

func (r *Runner) wordErr() error {
	err := r.err
	r.err = nil
	return err
}

// tcpWord takes a word that is not about MPTCP.
func (in *injection) tcpWord(name, text string, v value) bool {
	s, n := &in.seg, v.number
	switch name {
	case "from":
		in.src = in.endpoint(text, in.src.Port())
		in.f.peer = in.src
	case "to":
		in.dst = in.endpoint(text, in.dst.Port())
		in.f.host = in.dst
	case "seq":
		in.rel = n
	case "ack":
		in.ack = n
	case "win":
		s.Window = uint16(n)
	case "urg":
		s.Urgent = uint16(n)
	case "payload":
		s.Payload = []byte(text)
	case "data":
		s.Payload = filler(int(n))
	case "mss":
		s.Options, s.MSS = s.Options|wire.OptMSS, uint16(n)
	case "wscale":
		s.Options, s.WindowScale = s.Options|wire.OptWindowScale, uint8(n)
	case "sackok":
		s.Options |= wire.OptSACKPermitted
	case "sack":
		return in.r.fail(in.sack(text))
	case "ts":
		s.Options |= wire.OptTimestamps
	case "tsval":
		in.tsval = n
	case "tsecr":
		in.tsecr = n
	case "nots":
		in.noTS = true
	case "raw":
		b, err := hex.DecodeString(text)
		in.raw = b
		return in.r.fail(err)
	case "badsum":
		in.badSum = true
	default:
		return false
	}
	return true
}

// endpoint reads an address with or without a port.
func (in *injection) endpoint(text string, port uint16) netip.AddrPort {
	if ap, err := netip.ParseAddrPort(text); err == nil {
		return ap
	}
	a, err := netip.ParseAddr(text)
	in.r.fail(err)
	return netip.AddrPortFrom(a, port)
}

func (in *injection) sack(text string) error {
	s := &in.seg
	s.Options |= wire.OptSACK
	for i, block := range strings.Split(text, ",") {
		var from, to int64
		if _, err := fmt.Sscanf(block, "%d:%d", &from, &to); err != nil || i >= len(s.SACK) {
			return fmt.Errorf("want from:to, at most four times")
		}
		s.SACK[i] = wire.SACKBlock{Start: in.f.irs.At(from), End: in.f.irs.At(to)}
		s.SACKBlocks = i + 1
	}
	return nil
}

// filler is payload of no meaning.
func filler(n int) []byte { return []byte(strings.Repeat("x", n)) }

// option marks an option as present.
func (in *injection) option(o wire.Option) { in.seg.Options |= o; in.kind = o }

// mptcpWord takes a word about MPTCP.
func (in *injection) mptcpWord(name, text string, v value) bool {
	s, r := &in.seg, in.r
	switch name {
	case "mp_capable":
		in.option(wire.OptMPCapable)
		s.Capable = wire.MPCapable{Version: 1, HMACSHA256: true}
	case "version":
		s.Capable.Version = uint8(v.number)
	case "flags":
		has := func(c string) bool { return strings.Contains(text, c) }
		s.Capable.Checksums, s.Capable.Extensibility, s.Capable.NoJoin, s.Capable.HMACSHA256 = has("A"), has("B"), has("C"), has("H")
		if has("G") {
			s.Capable.OtherFlags = 2
		}
	case "key", "rkey":
		k, err := v.key()
		if name == "key" {
			in.key = &k
		} else {
			in.rkey = &k
		}
		return r.fail(err)
	case "mp_join":
		in.option(wire.OptMPJoin)
		k, _ := r.vars["b"].key()
		s.Join = wire.MPJoin{Token: k.Token(), Nonce: 7, AddressID: 1}
	case "backup":
		s.Join.Backup = true
	case "token":
		s.Join.Token = uint32(v.number)
	case "nonce":
		s.Join.Nonce = uint32(v.number)
	case "len":
		in.length = v.number
	case "csum":
		in.checksum, in.wrongChecksum = true, text == "wrong"
	default:
		return in.dssWord(name, v) || in.addressWord(name, text, v) || in.endWord(name, text, v)
	}
	return true
}

// dssWord takes a word about DSS.
func (in *injection) dssWord(name string, v value) bool {
	d := &in.seg.DSS
	switch name {
	case "dack":
		in.option(wire.OptDSS)
		d.HasAck, d.DataAck = true, in.r.idsn("b").At(v.number)
	case "dseq":
		in.option(wire.OptDSS)
		d.HasMap, d.DataSeq = true, in.r.idsn("a").At(v.number)
	case "subseq":
		in.subseq = v.number
	case "data_fin":
		d.DataFIN = true
	case "infinite":
		in.length = 0
	case "short":
		in.short = true
	default:
		return false
	}
	return true
}

// addressWord takes a word about addresses.
func (in *injection) addressWord(name, text string, v value) bool {
	s := &in.seg
	var err error
	switch name {
	case "add_addr":
		in.option(wire.OptAddAddr)
		s.AddAddr = wire.AddAddr{ID: 1}
		s.AddAddr.Addr, err = netip.ParseAddr(text)
	case "echo":
		s.AddAddr.Echo = true
	case "port":
		s.AddAddr.Port = uint16(v.number)
	case "id":
		s.AddAddr.ID, s.Join.AddressID = uint8(v.number), uint8(v.number)
	case "hmac":
		if in.kind == wire.OptAddAddr {
			copy(s.AddAddr.MAC[:], v.bytes)
		} else {
			copy(s.Join.MAC[:], v.bytes)
		}
	case "remove_addr":
		in.option(wire.OptRemoveAddr)
		for i, id := range strings.Split(text, ",") {
			var n int
			n, err = strconv.Atoi(id)
			s.RemoveAddr.IDs[i], s.RemoveAddr.Count = uint8(n), i+1
		}
	default:
		return false
	}
	return in.r.fail(err)
}

// endWord takes a word about priorities, failures and resets.
func (in *injection) endWord(name, text string, v value) bool {
	s := &in.seg
	var err error
	switch name {
	case "mp_prio":
		in.option(wire.OptMPPrio)
		s.Prio.Backup = text == "backup"
	case "mp_fail":
		in.option(wire.OptMPFail)
		s.Fail.DataSeq = in.r.idsn("b").At(v.number)
	case "mp_fastclose":
		in.option(wire.OptMPFastClose)
		s.FastClose.Receiver, err = v.key()
	case "mp_tcprst":
		in.option(wire.OptMPTCPReset)
		s.Reset.Reason = wire.ResetReason(v.number)
	case "transient":
		s.Reset.Transient = true
	default:
		return false
	}
	return in.r.fail(err)
}

// idsn returns the initial data sequence number that belongs to a key.
func (r *Runner) idsn(variable string) seq.Data {
	k, err := r.vars[variable].key()
	if err != nil {
		r.fail(&unboundError{variable})
	}
	return k.IDSN()
}

// finish fills in what the line left out and returns the packet.
func (in *injection) finish() ([]byte, error) {
	s, f := &in.seg, in.f
	s.SrcPort, s.DstPort = in.src.Port(), in.dst.Port()
	s.Seq = f.iss.At(in.rel)
	if s.Flags.Has(wire.ACK) {
		s.Ack = f.irs.At(in.ack)
	}
	if s.Flags.Has(wire.SYN) {
		f.sentTS = s.Has(wire.OptTimestamps)
		f.timestamps = f.timestamps && f.sentTS
	}
	if s.Has(wire.OptTimestamps) || f.timestamps && !in.noTS && !s.Flags.Has(wire.SYN) {
		s.Options |= wire.OptTimestamps
		s.TSVal = uint32(in.r.back.Now().Milliseconds() + 1<<20 + in.tsval)
		s.TSEcr = f.recentTS + uint32(in.tsecr)
	}
	in.finishCapable()
	in.finishDSS()
	if s.Has(wire.OptMPJoin) {
		s.Join.Form = wire.JoinACK
		if s.Flags.Has(wire.SYN) {
			s.Join.Form = wire.JoinSYN
			if s.Flags.Has(wire.ACK) {
				s.Join.Form = wire.JoinSYNACK
			}
		}
	}
	if n := s.OptionsLen() + len(in.raw); n > wire.MaxOptionsLen || n%4 != 0 {
		return nil, fmt.Errorf("%d bytes of options", n)
	}
	return in.packet(), in.r.wordErr()
}

// finishCapable gives MP_CAPABLE the form that the segment wants (RFC 8684, Section 3.1).
func (in *injection) finishCapable() {
	s, c := &in.seg, &in.seg.Capable
	if !s.Has(wire.OptMPCapable) {
		return
	}
	c.Sender, _ = in.r.vars["a"].key()
	c.Receiver, _ = in.r.vars["b"].key()
	if in.key != nil {
		c.Sender = *in.key
	}
	if in.rkey != nil {
		c.Receiver = *in.rkey
	}
	switch {
	case !s.Flags.Has(wire.SYN):
		c.Keys = 2
	case s.Flags.Has(wire.ACK):
		c.Keys = 1
	}
	if c.Keys == 2 && len(s.Payload) > 0 {
		c.HasData, c.DataLength = true, uint16(len(s.Payload))
		if in.length >= 0 {
			c.DataLength = uint16(in.length)
		}
		if in.checksum {
			c.HasChecksum = true
			c.Checksum = in.sum(in.r.idsn("a").At(1), 1, c.DataLength)
		}
	}
}

// finishDSS gives DSS its numbers (RFC 8684, Section 3.3).
func (in *injection) finishDSS() {
	s, d := &in.seg, &in.seg.DSS
	if !s.Has(wire.OptDSS) {
		return
	}
	d.Ack64, d.Map64 = d.HasAck && !in.short, d.HasMap && !in.short
	if !d.HasMap {
		return
	}
	d.Length, d.Subflow = uint16(len(s.Payload)), uint32(in.rel)
	if d.DataFIN {
		d.Length++
		if len(s.Payload) == 0 {
			d.Subflow = 0
		}
	}
	if in.length >= 0 {
		d.Length = uint16(in.length)
	}
	if in.subseq >= 0 {
		d.Subflow = uint32(in.subseq)
	}
	if in.checksum {
		d.HasCheck = true
		if d.Length > 0 {
			d.Checksum = in.sum(d.DataSeq, d.Subflow, d.Length)
		}
	}
}

// sum returns the DSS checksum over the payload.
func (in *injection) sum(dsn seq.Data, subflow uint32, length uint16) uint16 {
	c := wire.DSSChecksum(dsn, subflow, length, wire.Sum(0).Add(in.seg.Payload))
	if in.wrongChecksum {
		c ^= 0x0101
	}
	return c
}

// packet returns the segment as an IP packet.
func (in *injection) packet() []byte {
	s := &in.seg
	src, dst := in.src.Addr(), in.dst.Addr()
	head := wire.AppendTCPHeader(nil, s)
	head = append(head, in.raw...)
	head[12] += byte(len(in.raw)/4) << 4
	wire.SetTCPChecksum(head, len(s.Payload), wire.PseudoSum(src, dst, wire.ProtoTCP), wire.Sum(0).Add(s.Payload))
	if in.badSum {
		head[16] ^= 1
	}
	ip := wire.IP{Src: src, Dst: dst, Proto: wire.ProtoTCP, TTL: 64}
	b := wire.AppendIPHeader(nil, &ip, len(head)+len(s.Payload))
	return append(append(b, head...), s.Payload...)
}

// icmp sends an error about the last packet of flow 1: too_big with mtu=, port, or host (unreachable).
func (r *Runner) icmp(kind string, w []string) error {
	name, rest := flowName(w)
	f := r.flow(name)
	if len(f.last) < 28 {
		return fmt.Errorf("there is no packet that it could be about")
	}
	code, ok := map[string]byte{"too_big": 4, "port": 3, "host": 1}[kind]
	if !ok {
		return fmt.Errorf("unknown ICMP error %q", kind)
	}
	b := []byte{3, code, 0, 0, 0, 0, 0, 0}
	for _, word := range rest {
		var mtu uint16
		if _, err := fmt.Sscanf(word, "mtu=%d", &mtu); err != nil {
			return err
		}
		binary.BigEndian.PutUint16(b[6:], mtu)
	}
	b = append(b, f.last[:min(len(f.last), 60)]...)
	binary.BigEndian.PutUint16(b[2:], wire.Sum(0).Add(b).Checksum())
	ip := wire.IP{Src: f.peer.Addr(), Dst: f.host.Addr(), Proto: wire.ProtoICMPv4, TTL: 64}
	r.back.Inject(append(wire.AppendIPHeader(nil, &ip, len(b)), b...))
	r.lastAt = r.back.Now()
	return nil
}
