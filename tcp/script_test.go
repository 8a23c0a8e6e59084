package tcp

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"braid/clock"
	"braid/seq"
	"braid/wire"
)

const (
	scriptISS = seq.Number(5_000_000)  // ours
	scriptIRS = seq.Number(4294967200) // the scripted peer's: wraps early
)

// script is one Conn and a peer who says what the test tells him. Segments are written in relative numbers:
//
//	"S. 0 ack 1 win 1000 mss 1460 ws 2 sackok"    ". 1:101 ack 1 win 1000 sack 201-301"
//
// The flags come first ("S", "F", "R", "P", "." for ACK); payload is "start:end". Our Conn's window field is printed as it stands.
type script struct {
	t   testing.TB
	c   *Conn
	now clock.Time
	seg wire.Segment
	out Out
	got []byte
}

func scriptConfig() Config {
	cfg := testConfig(1000, 80)
	cfg.ISS = scriptISS
	cfg.TimestampOffset = 0
	cfg.NoTimestamps = true
	cfg.Rand = nil
	cfg.WindowScale = 0
	cfg.InitialWindow = 10000
	return cfg
}

// dialScript has sent its SYN.
func dialScript(t testing.TB, edit func(*Config)) *script {
	cfg := scriptConfig()
	if edit != nil {
		edit(&cfg)
	}
	s := &script{t: t, now: clock.Time(time.Hour)}
	s.c = Dial(s.now, cfg)
	return s
}

// acceptScript has received the peer's SYN.
func acceptScript(t testing.TB, syn string, edit func(*Config)) *script {
	cfg := scriptConfig()
	if edit != nil {
		edit(&cfg)
	}
	s := &script{t: t, now: clock.Time(time.Hour)}
	s.c = Accept(s.now, cfg, s.parse(syn))
	return s
}

// establishedScript is connected; the peer has a window of 10000 and SACK.
func establishedScript(t testing.TB, edit func(*Config)) *script {
	t.Helper()
	s := acceptScript(t, "S 0 win 10000 mss 1460 sackok", edit)
	s.poll()
	s.send(". 1 ack 1 win 10000")
	if s.c.State() != Established {
		t.Fatalf("state %v", s.c.State())
	}
	s.quiet()
	return s
}

// send gives the Conn a segment of the peer's.
func (s *script) send(text string) Result {
	r := s.c.HandleSegment(s.now, s.parse(text))
	for c := s.c.NextReceived(); c != nil; c = s.c.NextReceived() {
		s.got = append(s.got, c.Data...)
		s.c.cfg.Pool.Release(c)
	}
	for _, ok := s.c.NextReleased(); ok; _, ok = s.c.NextReleased() {
	}
	return r
}

// poll returns the next segment of the Conn's, "" if there is none.
func (s *script) poll() string {
	if !s.c.PollSegment(s.now, &s.seg, &s.out, 0, 0) {
		return ""
	}
	if s.out.Len > 0 {
		s.seg.Payload = make([]byte, s.out.Len)
	}
	return describe(scriptISS, scriptIRS, &s.seg)
}

// want polls and compares.
func (s *script) want(texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		if got := s.poll(); got != text {
			s.t.Fatalf("polled %q, want %q", got, text)
		}
	}
}

// quiet requires that nothing is to be sent.
func (s *script) quiet() {
	s.t.Helper()
	s.want("")
}

// advance lets time pass and timers fire.
func (s *script) advance(d time.Duration) {
	end := s.now.Add(d)
	for {
		t := s.c.NextTimeout()
		if t > end {
			break
		}
		s.now = max(s.now, t)
		before := t
		s.c.HandleTimeout(s.now)
		if s.c.rcv.due || s.c.syn.due || s.c.keep.due || s.c.end.aborting || s.c.NextTimeout() == before {
			break // something is to be polled: the test says what
		}
	}
	s.now = end
}

// until advances to the next timeout and says how long that took.
func (s *script) until() time.Duration {
	start := s.now
	if t := s.c.NextTimeout(); t != clock.Never {
		s.now = max(s.now, t)
		s.c.HandleTimeout(s.now)
	}
	return s.now.Sub(start)
}

func (s *script) state(want State) {
	s.t.Helper()
	if got := s.c.State(); got != want {
		s.t.Fatalf("state %v, want %v", got, want)
	}
}

// parse reads a segment in the notation of describe.
func (s *script) parse(text string) *wire.Segment {
	words := strings.Fields(text)
	seg := &wire.Segment{SrcPort: 80, DstPort: 1000}
	for _, r := range words[0] {
		seg.Flags |= map[rune]wire.Flags{'S': wire.SYN, 'F': wire.FIN, 'R': wire.RST, 'P': wire.PSH, '.': wire.ACK, '-': 0}[r]
	}
	number := func(w string) int64 {
		n, err := strconv.ParseInt(w, 10, 64)
		if err != nil {
			panic(fmt.Sprintf("%q: %v", text, err))
		}
		return n
	}
	pair := func(w, sep string) (int64, int64) {
		a, b, _ := strings.Cut(w, sep)
		return number(a), number(b)
	}
	start, end := words[1], ""
	if a, b, ok := strings.Cut(start, ":"); ok {
		start, end = a, b
	}
	first := number(start)
	seg.Seq = scriptIRS.At(first)
	if end != "" {
		seg.Payload = make([]byte, number(end)-first)
		for i := range seg.Payload {
			seg.Payload[i] = pattern(0, first+int64(i))
		}
	}
	for w := words[2:]; len(w) > 0; {
		next := 2
		switch w[0] {
		case "ack":
			seg.Ack = scriptISS.At(number(w[1]))
		case "win":
			seg.Window = uint16(number(w[1]))
		case "mss":
			seg.Options |= wire.OptMSS
			seg.MSS = uint16(number(w[1]))
		case "ws":
			seg.Options |= wire.OptWindowScale
			seg.WindowScale = uint8(number(w[1]))
		case "sackok":
			seg.Options |= wire.OptSACKPermitted
			next = 1
		case "ts":
			seg.Options |= wire.OptTimestamps
			v, e := pair(w[1], "/")
			seg.TSVal, seg.TSEcr = uint32(v), uint32(e)
		case "sack":
			seg.Options |= wire.OptSACK
			for next = 1; next < len(w); next++ {
				a, b := pair(w[next], "-")
				seg.SACK[seg.SACKBlocks] = wire.SACKBlock{Start: scriptISS.At(a), End: scriptISS.At(b)}
				seg.SACKBlocks++
			}
		default:
			panic(fmt.Sprintf("%q: %s?", text, w[0]))
		}
		w = w[next:]
	}
	return seg
}
