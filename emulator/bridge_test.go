package emulator

import (
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"braid/device"
	"braid/device/devicetest"
	"braid/link"
	"braid/middlebox"
	"braid/seq"
	"braid/wire"
)

// span is a Bridge of one path with programs at both ends that send and collect segments.
type span struct {
	t      *testing.T
	bridge *Bridge
	ends   [2]*devicetest.Port // what programs hold: client, server
	inner  [2]netip.AddrPort   // where the Bridge's devices are
	got    [2]chan arrival
	start  time.Time
}

var (
	clientIP = netip.MustParseAddr("10.0.0.1")
	serverIP = netip.MustParseAddr("10.0.0.2")
)

// toPort lets a Bridge write to a devicetest.Port, whose packets need a destination.
type toPort struct {
	*devicetest.Port
	far netip.AddrPort
}

func (d toPort) Write(t device.Train) error {
	t.To = d.far
	return d.Port.Write(t)
}

func newSpan(t *testing.T, links []link.Spec, forward, reverse []int, boxes ...middlebox.Box) *span {
	t.Helper()
	s := &span{t: t, start: time.Now()}
	var net devicetest.Network
	var inner [2]device.Device
	for i := range s.ends {
		program := netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), uint16(1+i))
		s.inner[i] = netip.AddrPortFrom(netip.MustParseAddr("192.0.2.2"), uint16(1+i))
		s.ends[i] = net.Open(program, devicetest.Options{MTU: 9000})
		inner[i] = toPort{net.Open(s.inner[i], devicetest.Options{MTU: 9000}), program}
	}
	cfg := BridgeConfig{Paths: []BridgePath{{Name: "p", Client: inner[0], Server: inner[1], Forward: forward, Reverse: reverse, Boxes: boxes}}}
	for i, l := range links {
		cfg.Links = append(cfg.Links, NamedLink{string(rune('a' + i)), l})
	}
	var err error
	if s.bridge, err = openBridge(cfg, newTimerWaiter()); err != nil {
		t.Fatal(err)
	}
	for i := range s.ends {
		s.got[i] = make(chan arrival, 100)
		go func() {
			var b device.Batch
			for s.ends[i].Read(&b) == nil {
				for _, p := range b.Packets {
					var ip wire.IP
					var seg wire.Segment
					text := "unreadable"
					if wire.ParseIP(p.Data, &ip) == nil && ip.Proto == wire.ProtoTCP && wire.ParseTCP(ip.Payload, &seg) == nil {
						text = string(seg.Payload)
						if seg.Options&wire.OptDSS != 0 {
							text += "+"
						}
					} else if ip.Proto == wire.ProtoICMPv4 {
						text = "ICMP"
					}
					s.got[i] <- arrival{text: text, at: time.Since(s.start)}
				}
			}
		}()
	}
	return s
}

func (s *span) close() {
	s.bridge.Close()
	s.ends[0].Close()
	s.ends[1].Close()
}

// send sends a segment with a mapping from the client (0) or the server (1).
func (s *span) send(end int, at int, text string) {
	s.t.Helper()
	seg := wire.Segment{SrcPort: 1, DstPort: 2, Seq: seq.Number(at), Flags: wire.ACK, Payload: []byte(text), Options: wire.OptDSS, DSS: wire.DSS{HasAck: true}}
	src, dst := clientIP, serverIP
	if end == 1 {
		src, dst = dst, src
	}
	b := wire.AppendIPHeader(nil, &wire.IP{Src: src, Dst: dst, Proto: wire.ProtoTCP}, wire.TCPHeaderLen+seg.OptionsLen()+len(text))
	b = wire.AppendTCP(b, &seg)
	if err := s.ends[end].Write(device.Train{Data: b, Size: len(b), To: s.inner[end]}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *span) want(end int, wait time.Duration, texts ...string) (got []arrival) {
	s.t.Helper()
	time.Sleep(wait)
	synctest.Wait()
	for len(s.got[end]) > 0 {
		got = append(got, <-s.got[end])
	}
	if !slices.EqualFunc(got, texts, func(a arrival, text string) bool { return a.text == text }) {
		s.t.Fatalf("arrived: %v, want %v", got, texts)
	}
	return got
}

// A path is a chain of links: their delays add up, and each has its rate.
func TestBridgeChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpan(t, []link.Spec{{DelayMs: 10}, {RateMbps: 0.376, DelayMs: 5}, {DelayMs: 1}}, []int{0, 1}, []int{2})
		defer s.close()
		s.send(0, 1, "x") // 47 bytes with a padded DSS of 8 bytes: 1 ms at 0.376 Mbit/s... and what it is exactly, the link counts
		size := 8 * 49.0 / 0.376e3
		got := s.want(1, 100*time.Millisecond, "x+")
		if late := got[0].at.Seconds()*1e3 - 15 - size; late < -0.2 || late > 0.2 {
			t.Errorf("arrived after %v, want about %.3f ms", got[0].at, 15+size)
		}
		began := time.Since(s.start)
		s.send(1, 1, "y")
		if back := s.want(0, 100*time.Millisecond, "y+"); back[0].at-began != time.Millisecond {
			t.Errorf("back after %v, want 1ms", back[0].at-began)
		}
		if r := s.bridge.Report(); r.Links[0].Delivered != 1 || r.Links[1].Delivered != 1 || r.Lateness.Count() != 2 || r.Dropped != 0 {
			t.Errorf("report %+v", r)
		}
	})
}

// Middleboxes stand in front of the first link, in their order from the client, and may answer, hold back and multiply packets.
func TestBridgeBoxes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpan(t, []link.Spec{{}, {}}, []int{0}, []int{1}, middlebox.StripOptions(wire.OptMPTCP, middlebox.InData, 0),
			&middlebox.Split{Size: 4}, &middlebox.Coalesce{Size: 100, Wait: 3 * time.Millisecond}, &middlebox.SmallMTU{MTU: 100})
		defer s.close()
		s.send(0, 1, "abcdef") // stripped, cut, and joined again
		if got := s.want(1, time.Second, "abcdef"); got[0].at < 3*time.Millisecond {
			t.Errorf("passed after %v; it should have waited for more", got[0].at)
		}
		s.send(1, 1, "abcdef")
		s.want(0, time.Second, "abcd", "ef") // nothing joins them on the way back
		s.send(0, 7, string(make([]byte, 100)))
		s.want(1, time.Second)
		s.want(0, 0, "ICMP")
	})
}

// Links change, and time never goes back in a link that two paths share.
func TestBridgeChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpan(t, []link.Spec{{DelayMs: 1}, {}}, []int{0, 1, 0}, []int{1, 0})
		defer s.close()
		s.send(0, 1, "a")
		s.send(1, 1, "b")
		s.want(1, 10*time.Millisecond, "a+")
		s.want(0, 0, "b+")
		down := true
		if err := s.bridge.Apply(1, link.Change{Down: &down}); err != nil {
			t.Fatal(err)
		}
		s.send(0, 2, "c")
		s.want(1, 10*time.Millisecond)
		if err := s.bridge.Apply(0, link.Change{Loss: ptr(2.0)}); err == nil {
			t.Error("a loss of 200 % was taken")
		}
	})
}

func TestBridgeRefuses(t *testing.T) {
	for _, cfg := range []BridgeConfig{
		{Links: []NamedLink{{Name: "bad", Spec: link.Spec{Loss: 2}}}},
		{Paths: []BridgePath{{Name: "nowhere", Forward: []int{0}, Reverse: []int{0}}}},
		{Links: []NamedLink{{}}, Paths: []BridgePath{{Name: "one way", Forward: []int{0}}}},
	} {
		if b, err := OpenBridge(cfg); err == nil {
			b.Close()
			t.Errorf("%+v was taken", cfg)
		}
	}
}
