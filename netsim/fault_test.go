package netsim

import (
	"strings"
	"testing"
	"time"

	"braid/clock"
	"braid/link"
	"braid/middlebox"
	"braid/seq"
	"braid/wire"

	"pgregory.net/rapid"
)

func syn() wire.Segment {
	s := wire.Segment{SrcPort: 1000, DstPort: 80, Seq: 1000, Flags: wire.SYN, Window: 65000, Options: wire.OptMSS | wire.OptMPCapable, MSS: 1460}
	s.Capable = wire.MPCapable{Version: 1, HMACSHA256: true}
	return s
}

// mapped is data with a mapping.
func mapped(at, n int) wire.Segment {
	s := data(at, n)
	s.Options, s.Window = wire.OptDSS, 9000
	s.DSS = wire.DSS{HasMap: true, HasAck: true, DataSeq: seq.Data(5000 + at), DataAck: 7, Subflow: uint32(1 + at), Length: uint16(n)}
	return s
}

func TestEditors(t *testing.T) {
	for _, c := range []struct {
		name    string
		box     *middlebox.Editor
		send    []wire.Segment
		options []wire.Option // of what arrives
		window  uint16        // of the last
	}{
		{"strip from the SYN", middlebox.StripOptions(wire.OptMPTCP, middlebox.InSYN, 0), []wire.Segment{syn(), mapped(0, 10)}, []wire.Option{wire.OptMSS, wire.OptDSS}, 9000},
		{"strip from data", middlebox.StripOptions(wire.OptMPTCP, middlebox.InData, 0), []wire.Segment{syn(), mapped(0, 10)}, []wire.Option{wire.OptMSS | wire.OptMPCapable, 0}, 9000},
		{"strip from a point on", middlebox.StripOptions(wire.OptMPTCP, middlebox.Anywhere, 15), []wire.Segment{syn(), mapped(0, 10), mapped(10, 10)},
			[]wire.Option{wire.OptMSS | wire.OptMPCapable, wire.OptDSS, 0}, 9000},
		{"drop", middlebox.DropOptions(wire.OptMPCapable, middlebox.InSYN), []wire.Segment{syn(), mapped(0, 10)}, []wire.Option{wire.OptDSS}, 9000},
		{"clamp", middlebox.ClampWindow(100), []wire.Segment{syn(), mapped(0, 10)}, []wire.Option{wire.OptMSS | wire.OptMPCapable, wire.OptDSS}, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newBench(t, link.Spec{})
			d.net.Attach(c.box, d.fwd, d.back)
			got := d.exchange(c.send...)
			if len(got) != len(c.options) {
				t.Fatalf("%d segments arrived, want %d", len(got), len(c.options))
			}
			for i, r := range got {
				if r.seg.Options != c.options[i] || r.bad {
					t.Errorf("segment %d: options %#x, want %#x; bad checksum %v", i, r.seg.Options, c.options[i], r.bad)
				}
			}
			if w := got[len(got)-1].seg.Window; w != c.window {
				t.Errorf("window %d, want %d", w, c.window)
			}
			if c.box.Edits+c.box.Discards != 1 {
				t.Errorf("%d edits and %d discards counted, want one in all", c.box.Edits, c.box.Discards)
			}
		})
	}
}

func TestMangle(t *testing.T) {
	d := newBench(t, link.Spec{})
	box := middlebox.MangleOptions(wire.OptMPTCP, middlebox.InData, 0, 0.5, link.Stream(1, "mangle"))
	d.net.Attach(box, d.fwd, d.back)
	changed := 0
	for i := range 100 {
		want := mapped(i, 10)
		r := d.exchange(want)[0]
		if r.seg.DSS != want.DSS {
			changed++
		}
		if r.bad || string(r.seg.Payload) != string(want.Payload) {
			t.Fatal("payload or checksum damaged")
		}
	}
	if changed < 30 || changed > 70 || int64(changed) != box.Edits {
		t.Errorf("%d of 100 mappings changed, %d edits counted; want about half", changed, box.Edits)
	}
}

func TestShiftSequence(t *testing.T) {
	d := newBench(t, link.Spec{})
	d.net.Attach(middlebox.ShiftSequence(1<<31+5), d.fwd, d.back)
	if got := d.exchange(data(0, 10))[0].seg.Seq; got != 1001+1<<31+5 {
		t.Errorf("sequence number %d arrived", got)
	}
	ack := wire.Segment{SrcPort: 80, DstPort: 1000, Ack: 1011 + 1<<31 + 5, Flags: wire.ACK, Options: wire.OptSACK, SACKBlocks: 1}
	ack.SACK[0] = wire.SACKBlock{Start: 1021 + 1<<31 + 5, End: 1031 + 1<<31 + 5}
	d.b.send(0, addrA, ack)
	d.net.Run(clock.Never)
	if s := d.a.got[0].seg; s.Ack != 1011 || s.SACK[0] != (wire.SACKBlock{Start: 1021, End: 1031}) {
		t.Errorf("got ack %d, SACK %v", s.Ack, s.SACK[0])
	}
}

// However the stream is cut into segments, what arrives is the stream with the text replaced, and acknowledging all of it
// acknowledges all that was sent.
func TestReplacePayload(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const total = 60
		offset, length := rapid.IntRange(0, 40).Draw(rt, "offset"), rapid.IntRange(0, 20).Draw(rt, "length")
		text := strings.Repeat("#", rapid.IntRange(1, 30).Draw(rt, "text"))
		d := newBench(t, link.Spec{})
		d.net.Attach(middlebox.ReplacePayload(offset, length, []byte(text)), d.fwd, d.back)
		d.exchange(syn())
		var got []received
		for at := 0; at < total; {
			n := min(rapid.IntRange(1, 25).Draw(rt, "size"), total-at)
			got = append(got, d.exchange(data(at, n))...)
			at += n
		}
		whole := string(data(0, total).Payload)
		want := whole[:offset] + text + whole[offset+length:]
		stream := make([]byte, len(want))
		for _, r := range got {
			copy(stream[int(r.seg.Seq)-1001:], r.seg.Payload)
			if r.bad {
				rt.Fatal("bad checksum")
			}
		}
		if string(stream) != want {
			rt.Fatalf("stream is %q, want %q", stream, want)
		}
		d.b.send(0, addrA, wire.Segment{SrcPort: 80, DstPort: 1000, Ack: seq.Number(1001 + len(want)), Flags: wire.ACK})
		d.net.Run(clock.Never)
		if a := d.a.got[len(d.a.got)-1].seg.Ack; a != 1001+total {
			rt.Fatalf("everything acknowledged arrives as %d, want %d", a, 1001+total)
		}
	})
}

func TestSplit(t *testing.T) {
	d := newBench(t, link.Spec{})
	box := &middlebox.Split{Size: 400}
	d.net.Attach(box, d.fwd, nil)
	s := mapped(0, 1000)
	s.Flags |= wire.PSH
	got := d.exchange(s, mapped(1000, 400))
	if len(got) != 4 || box.Splits != 1 || payload(got) != string(data(0, 1400).Payload) {
		t.Fatalf("%d pieces, %d splits", len(got), box.Splits)
	}
	for i, r := range got[:3] {
		if r.bad || r.seg.Seq != seq.Number(1001+400*i) || r.seg.DSS != s.DSS || r.seg.Flags.Has(wire.PSH) != (i == 2) {
			t.Errorf("piece %d: %s", i, r.text)
		}
	}
}

func TestCoalesce(t *testing.T) {
	d := newBench(t, link.Spec{DelayMs: 1})
	box := &middlebox.Coalesce{Size: 1000, Wait: 2 * time.Millisecond}
	d.net.Attach(box, d.fwd, d.back)
	got := d.exchange(mapped(0, 400), mapped(400, 400), mapped(800, 400), mapped(1300, 100))
	if len(got) != 3 || box.Joined != 1 {
		t.Fatalf("%d segments arrived, %d were joined; want 3 and 1", len(got), box.Joined)
	}
	if s := got[0].seg; len(s.Payload) != 800 || s.DSS != mapped(0, 400).DSS || got[0].bad || got[0].atMs != 1 {
		t.Errorf("first: %s at %v ms", got[0].text, got[0].atMs)
	}
	if got[2].atMs != 3 {
		t.Errorf("the last waited until %v ms, want 3: 2 in the box, 1 on the link", got[2].atMs)
	}
	if d.net.Outstanding() != 0 {
		t.Errorf("%d packets leaked", d.net.Outstanding())
	}
}

func TestNAT(t *testing.T) {
	d := newBench(t, link.Spec{})
	nat := middlebox.NewNAT(addrNAT, 4000)
	d.net.Attach(nat, d.fwd, d.back)
	answer := func(port uint16) int {
		before := len(d.a.got)
		d.b.send(0, addrNAT, wire.Segment{SrcPort: 80, DstPort: port, Flags: wire.ACK})
		d.net.Run(clock.Never)
		return len(d.a.got) - before
	}
	r := d.exchange(mapped(0, 10))[0]
	if r.bad || !strings.Contains(r.text, "192.0.2.1:4000>10.0.0.2:80") || r.seg.DSS != mapped(0, 10).DSS {
		t.Errorf("arrived: %s", r.text)
	}
	if answer(4000) != 1 || d.a.got[0].seg.DstPort != 1000 || d.a.got[0].bad {
		t.Errorf("answer: %+v", d.a.got)
	}
	nat.Rebind(addrNAT)
	if r := d.exchange(data(10, 10))[0]; r.seg.SrcPort != 4001 {
		t.Errorf("after rebinding: %s", r.text)
	}
	if answer(4000) != 0 || answer(4001) != 1 || nat.Unknown != 1 {
		t.Errorf("answers to the old port must be dropped and to the new one delivered; %d unknown", nat.Unknown)
	}
}

func TestSmallMTU(t *testing.T) {
	for _, silent := range []bool{false, true} {
		d := newBench(t, link.Spec{})
		box := &middlebox.SmallMTU{MTU: 1000, Silent: silent}
		d.net.Attach(box, d.fwd, d.back)
		got := d.exchange(data(0, 961), data(0, 960))
		if len(got) != 1 || len(got[0].seg.Payload) != 960 || box.Drops != 1 {
			t.Errorf("%d arrived, %d dropped", len(got), box.Drops)
		}
		if silent != (len(d.a.got) == 0) {
			t.Errorf("silent %v: sender heard %v", silent, d.a.got)
		}
		if !silent && !strings.Contains(d.a.got[0].text, "1000") {
			t.Errorf("report does not tell the MTU: %s", d.a.got[0].text)
		}
	}
}

// Middleboxes must not repair what a link has damaged.
func TestCorruptedPacketsAreLeftAlone(t *testing.T) {
	n := New(1)
	first, second := mustLink(t, n, "first", link.Spec{Corrupt: 1}), mustLink(t, n, "second", link.Spec{})
	a, b := &puppet{timer: clock.Never}, &puppet{timer: clock.Never}
	a.host, b.host = n.AddHost("a", a, nil), n.AddHost("b", b, nil)
	pa, pb := a.host.AddPath(mptcpPath(addrA)), b.host.AddPath(mptcpPath(addrB))
	n.Connect(a.host, pa, addrB, b.host, pb, first, second)
	n.Attach(middlebox.ShiftSequence(9), second, nil)
	for i := range 50 {
		s := data(i, 500)
		s.Payload = make([]byte, 500) // parses whatever is flipped in it
		a.send(pa, addrB, s)
	}
	n.Attach(middlebox.StripOptions(wire.OptMPTCP, middlebox.Anywhere, 0), second, nil)

	n.Run(clock.Never)
	for _, r := range b.got {
		if !r.bad {
			t.Fatalf("a damaged packet arrived with a right checksum: %s", r.text)
		}
	}
}
