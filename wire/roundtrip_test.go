package wire

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"braid/seq"
)

// cmpSegments compares segments with nil and empty payloads alike, addresses by value.
var cmpSegments = cmp.Options{cmpopts.EquateEmpty(), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })}

// drawKey draws a key.
func drawKey(t *rapid.T, label string) Key { return Key(drawBytes(t, 8, label)) }

// drawBytes draws n bytes.
func drawBytes(t *rapid.T, n int, label string) []byte {
	return rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, label)
}

// drawSegment draws a segment that is legal in every respect and has only meaningful fields set. Options come in
// random combinations, dropped from the end until they fit.
func drawSegment(t *rapid.T) Segment {
	u8, u16, u32, u64 := rapid.Uint8(), rapid.Uint16(), rapid.Uint32(), rapid.Uint64()
	flag := rapid.Bool()
	s := Segment{
		SrcPort: u16.Draw(t, "src"), DstPort: u16.Draw(t, "dst"),
		Seq: seq.Number(u32.Draw(t, "seq")), Ack: seq.Number(u32.Draw(t, "ack")),
		Flags: Flags(u8.Draw(t, "flags")), Window: u16.Draw(t, "window"), Urgent: u16.Draw(t, "urgent"),
		Payload: rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "payload"),
	}
	add := func(o Option, name string, fill func()) {
		if !rapid.Bool().Draw(t, name) {
			return
		}
		before := s
		s.Options |= o
		fill()
		if s.OptionsLen() > MaxOptionsLen {
			s = before
		}
	}
	add(OptMPCapable, "capable", func() { s.Capable = drawCapable(t, &s) })
	add(OptMPJoin, "join", func() { s.Join = drawJoin(t, s.Flags) })
	add(OptDSS, "dss", func() { s.DSS = drawDSS(t) })
	add(OptAddAddr, "add addr", func() { s.AddAddr = drawAddAddr(t) })
	add(OptRemoveAddr, "remove addr", func() {
		ids := rapid.SliceOfN(u8, 1, 37).Draw(t, "ids")
		s.RemoveAddr.Count = copy(s.RemoveAddr.IDs[:], ids)
	})
	add(OptMPPrio, "prio", func() { s.Prio.Backup = flag.Draw(t, "backup") })
	add(OptMPFail, "fail", func() { s.Fail.DataSeq = seq.Data(u64.Draw(t, "fail seq")) })
	add(OptMPFastClose, "fast close", func() { s.FastClose.Receiver = drawKey(t, "fast close key") })
	if s.Flags&RST != 0 {
		add(OptMPTCPReset, "reset", func() {
			s.Reset = MPTCPReset{Transient: flag.Draw(t, "transient"), Reason: ResetReason(u8.Draw(t, "reason"))}
		})
	}
	add(OptMSS, "mss", func() { s.MSS = u16.Draw(t, "mss") })
	add(OptSACKPermitted, "sackOK", func() {})
	add(OptTimestamps, "timestamps", func() { s.TSVal, s.TSEcr = u32.Draw(t, "val"), u32.Draw(t, "ecr") })
	add(OptWindowScale, "wscale", func() { s.WindowScale = u8.Draw(t, "wscale") })
	add(OptFastOpen, "fast open", func() {
		s.FastOpen.Len = rapid.SampledFrom([]int{0, 4, 6, 8, 10, 12, 14, 16}).Draw(t, "cookie len")
		copy(s.FastOpen.Value[:], drawBytes(t, s.FastOpen.Len, "cookie"))
	})
	add(OptSACK, "sack", func() {
		s.SACKBlocks = rapid.IntRange(1, 4).Draw(t, "blocks")
		for i := range s.SACKBlocks {
			s.SACK[i] = SACKBlock{seq.Number(u32.Draw(t, "start")), seq.Number(u32.Draw(t, "end"))}
		}
	})
	return s
}

func drawCapable(t *rapid.T, s *Segment) MPCapable {
	flag := rapid.Bool()
	c := MPCapable{
		Version:       Version,
		Checksums:     flag.Draw(t, "A"),
		Extensibility: flag.Draw(t, "B"),
		NoJoin:        flag.Draw(t, "C"),
		OtherFlags:    rapid.Uint8().Draw(t, "D-G") & 0x1e,
		HMACSHA256:    flag.Draw(t, "H"),
	}
	switch {
	case s.Flags&(SYN|ACK) == SYN:
	case s.Flags&SYN != 0:
		c.Keys = 1
	default:
		c.Keys = 2
		c.HasData = len(s.Payload) > 0
	}
	if c.Keys >= 1 {
		c.Sender = drawKey(t, "sender")
	}
	if c.Keys == 2 {
		c.Receiver = drawKey(t, "receiver")
	}
	if c.HasData {
		c.DataLength = rapid.Uint16().Draw(t, "data length")
		if c.HasChecksum = flag.Draw(t, "checksummed"); c.HasChecksum {
			c.Checksum = rapid.Uint16().Draw(t, "checksum")
		}
	}
	return c
}

func drawJoin(t *rapid.T, fl Flags) MPJoin {
	if fl&SYN == 0 {
		j := MPJoin{Form: JoinACK}
		copy(j.MAC[:], drawBytes(t, 20, "mac"))
		return j
	}
	j := MPJoin{
		Form:      JoinSYN,
		Backup:    rapid.Bool().Draw(t, "backup"),
		AddressID: rapid.Uint8().Draw(t, "address id"),
		Nonce:     rapid.Uint32().Draw(t, "nonce"),
	}
	if fl&ACK != 0 {
		j.Form = JoinSYNACK
		copy(j.MAC[:8], drawBytes(t, 8, "mac"))
	} else {
		j.Token = rapid.Uint32().Draw(t, "token")
	}
	return j
}

func drawDSS(t *rapid.T) DSS {
	number := func(wide bool, label string) seq.Data {
		if wide {
			return seq.Data(rapid.Uint64().Draw(t, label))
		}
		return seq.Data(rapid.Uint32().Draw(t, label))
	}
	var d DSS
	if d.HasAck = rapid.Bool().Draw(t, "A"); d.HasAck {
		d.Ack64 = rapid.Bool().Draw(t, "a")
		d.DataAck = number(d.Ack64, "data ack")
	}
	if d.HasMap = rapid.Bool().Draw(t, "M"); d.HasMap {
		d.Map64 = rapid.Bool().Draw(t, "m")
		d.DataFIN = rapid.Bool().Draw(t, "F")
		d.DataSeq = number(d.Map64, "data seq")
		d.Subflow = rapid.Uint32().Draw(t, "subflow seq")
		d.Length = rapid.Uint16().Draw(t, "length")
		if d.HasCheck = rapid.Bool().Draw(t, "checksummed"); d.HasCheck {
			d.Checksum = rapid.Uint16().Draw(t, "checksum")
		}
	}
	return d
}

func drawAddAddr(t *rapid.T) AddAddr {
	a := AddAddr{ID: rapid.Uint8().Draw(t, "id"), Echo: rapid.Bool().Draw(t, "echo"), Port: rapid.Uint16().Draw(t, "port")}
	if rapid.Bool().Draw(t, "ipv6") {
		a.Addr = netip.AddrFrom16([16]byte(drawBytes(t, 16, "addr")))
	} else {
		a.Addr = netip.AddrFrom4([4]byte(drawBytes(t, 4, "addr")))
	}
	if !a.Echo {
		a.MAC = [8]byte(drawBytes(t, 8, "mac"))
	}
	return a
}

// Parsing what was appended is the identity, and appending that again gives the same bytes: appended
// options are in canonical order.
func TestTCPRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawSegment(t)
		prefix := []byte("prefix")
		raw := AppendTCP(prefix, &want)
		if !bytes.HasPrefix(raw, prefix) {
			t.Fatal("append overwrote what was there")
		}
		raw = raw[len(prefix):]
		if n := TCPHeaderLen + want.OptionsLen() + len(want.Payload); len(raw) != n {
			t.Fatalf("%d bytes, want %d", len(raw), n)
		}
		var got Segment
		if err := ParseTCP(raw, &got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, cmpSegments); d != "" {
			t.Fatalf("parsed segment differs (-want +got):\n%s", d)
		}
		if again := AppendTCP(nil, &got); !bytes.Equal(again, raw) {
			t.Fatalf("appended again: %x, want %x", again, raw)
		}
	})
}

// A segment that is used again shows nothing of the packet before.
func TestParseTCPReusesSegment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first, second := drawSegment(t), drawSegment(t)
		var reused, fresh Segment
		if err := ParseTCP(AppendTCP(nil, &first), &reused); err != nil {
			t.Fatal(err)
		}
		raw := AppendTCP(nil, &second)
		if err := ParseTCP(raw, &reused); err != nil {
			t.Fatal(err)
		}
		if err := ParseTCP(raw, &fresh); err != nil {
			t.Fatal(err)
		}
		if a, b := reused.String(), fresh.String(); a != b {
			t.Fatalf("reused: %s\n fresh: %s", a, b)
		}
		if again := AppendTCP(nil, &reused); !bytes.Equal(again, raw) {
			t.Fatalf("appended from reused: %x, want %x", again, raw)
		}
	})
}
