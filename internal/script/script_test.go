package script

import (
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"braid/clock"
	"braid/mptcp"
	"braid/seq"
	"braid/wire"
)

var (
	own  = netip.MustParseAddr("10.0.0.2")
	peer = netip.MustParseAddr("10.0.0.1")
	keyA = wire.Key{1, 2, 3, 4, 5, 6, 7, 8} // the script's own key: $a
)

// flow is one subflow of the script: its initial sequence number as the Stack drew it.
type flow struct{ isn seq.Number }

// runner is a script's state.
type runner struct {
	now   clock.Time
	stack *mptcp.Stack
	l     *mptcp.Listener
	conn  *mptcp.Conn
	flows map[uint16]*flow
	port  uint16 // of the last line that named one
	keyB  wire.Key
}

func newRunner() (*runner, error) {
	n := uint64(0)
	r := &runner{flows: map[uint16]*flow{}, port: 1000}
	r.stack = mptcp.NewStack(mptcp.Config{NoAnnounce: true, Entropy: func() uint64 { n += 0x9e3779b97f4a7c15; return n ^ n>>29 }})
	r.stack.AddPath(0, mptcp.Path{Local: netip.AddrPortFrom(own, 0)})
	var err error
	r.l, err = r.stack.Listen(0, 80, netip.Addr{})
	return r, err
}

// line runs one line.
func (r *runner) line(text string) error {
	f := strings.Fields(text)
	switch f[0] {
	case "+":
		d, err := time.ParseDuration(f[1])
		r.now = r.now.Add(d)
		r.stack.HandleTimeout(r.now)
		return err
	case "<":
		return r.inject(f[1:])
	case ">":
		return r.expect(f[1:])
	case "!":
		return r.call(f[1:])
	}
	return fmt.Errorf("unknown line %q", text)
}

// call does a system call.
func (r *runner) call(f []string) error {
	switch f[0] {
	case "accept":
		c, ok := r.l.Accept()
		r.conn = c
		if got := fmt.Sprint(ok); got != f[1] {
			return fmt.Errorf("accept: %s", got)
		}
		return nil
	case "read":
		var b [4096]byte
		n, err := r.conn.Read(r.now, b[:])
		got := string(b[:n])
		if err != nil {
			got = err.Error()
		}
		if want := strings.Join(f[1:], " "); got != want {
			return fmt.Errorf("read %q, want %q", got, want)
		}
		return nil
	case "write":
		_, err := r.conn.Write(r.now, []byte(f[1]))
		return err
	case "shutdown":
		return r.conn.CloseWrite(r.now)
	case "abort":
		r.conn.Abort(r.now)
		return nil
	}
	return fmt.Errorf("unknown call %q", f[0])
}

// inject sends a segment of the peer's.
func (r *runner) inject(f []string) error {
	s := wire.Segment{DstPort: 80, Window: 65535, Seq: 5000}
	for _, c := range f[0] {
		i := strings.IndexRune("FSRP.", c)
		if i < 0 {
			return fmt.Errorf("flag %q", c)
		}
		s.Flags |= 1 << i
	}
	for _, t := range f[1:] {
		if err := r.field(&s, t); err != nil {
			return err
		}
	}
	s.SrcPort = r.port
	if fl := r.flows[r.port]; fl != nil {
		s.Ack += fl.isn
	}
	ip := wire.IP{Src: peer, Dst: own, Proto: wire.ProtoTCP, TTL: 64}
	b := wire.AppendTCPHeader(nil, &s)
	wire.SetTCPChecksum(b, len(s.Payload), wire.PseudoSum(peer, own, wire.ProtoTCP), wire.Sum(0).Add(s.Payload))
	b = append(b, s.Payload...)
	r.stack.HandlePacket(r.now, 0, netip.AddrPort{}, append(wire.AppendIPHeader(nil, &ip, len(b)), b...))
	return nil
}

// field adds one word of an injected segment.
func (r *runner) field(s *wire.Segment, t string) error {
	name, value, _ := strings.Cut(t, "=")
	n, err := strconv.ParseInt(value, 0, 64)
	switch name {
	case "port":
		r.port = uint16(n)
	case "seq":
		s.Seq = seq.Number(5000 + n)
	case "ack":
		s.Ack = seq.Number(n)
	case "payload":
		s.Payload, err = []byte(value), nil
	case "mp_capable":
		s.Options |= wire.OptMPCapable
		s.Capable, err = wire.MPCapable{Version: 1, HMACSHA256: true}, nil
	case "version":
		s.Capable.Version = uint8(n)
	case "flags":
		s.Capable.Checksums, s.Capable.Extensibility = strings.Contains(value, "A"), strings.Contains(value, "B")
		s.Capable.HMACSHA256, err = strings.Contains(value, "H"), nil
	case "keys":
		s.Capable.Keys, s.Capable.Sender, s.Capable.Receiver, err = 2, keyA, r.keyB, nil
		if value == "$a,wrong" {
			s.Capable.Receiver[0] ^= 1
		}
	case "len":
		s.Capable.HasData, s.Capable.DataLength, s.DSS.Length = true, uint16(n), uint16(n)
	case "mp_join":
		s.Options |= wire.OptMPJoin
		s.Join, err = wire.MPJoin{Form: wire.JoinSYN, AddressID: 1, Nonce: 7, Token: r.keyB.Token()}, nil
		if value == "bad_token" {
			s.Join.Token++
		}
	case "dss":
		s.Options |= wire.OptDSS
		s.DSS, err = wire.DSS{HasAck: true, Ack64: true, DataAck: r.keyB.IDSN().At(1)}, nil
	case "dack":
		s.DSS.DataAck = r.keyB.IDSN().At(n)
	case "dseq":
		s.DSS.HasMap, s.DSS.Map64, s.DSS.DataSeq = true, true, keyA.IDSN().At(n)
	case "subseq":
		s.DSS.Subflow = uint32(n)
	case "data_fin":
		s.DSS.DataFIN, err = true, nil
	case "mp_fastclose":
		s.Options |= wire.OptMPFastClose
		s.FastClose.Receiver, err = r.keyB, nil
		if value == "wrong" {
			s.FastClose.Receiver[0] ^= 1
		}
	default:
		return fmt.Errorf("unknown word %q", t)
	}
	return err
}

// expect checks the next segment of the Stack's: each word must be among those that describe it, words after ^ must not.
func (r *runner) expect(want []string) error {
	var buf [65536]byte
	p, ok := r.stack.PollPacket(r.now, buf[:])
	if !ok || want[0] == "none" {
		if ok != (want[0] != "none") {
			return fmt.Errorf("a packet: %t", ok)
		}
		return nil
	}
	var ip wire.IP
	var s wire.Segment
	if err := wire.ParseIP(buf[:p.Len], &ip); err != nil {
		return err
	}
	if err := wire.ParseTCP(ip.Payload, &s); err != nil {
		return err
	}
	got := r.describe(&s)
	for _, w := range want {
		not := strings.HasPrefix(w, "^")
		if slices.Contains(got, strings.TrimPrefix(w, "^")) == not {
			return fmt.Errorf("%s: got %v", w, got)
		}
	}
	return nil
}

// describe returns the words for a segment, and keeps what later lines need of it.
func (r *runner) describe(s *wire.Segment) []string {
	if s.Flags.Has(wire.SYN) {
		r.flows[s.DstPort] = &flow{s.Seq}
		if s.Has(wire.OptMPCapable) {
			r.keyB = s.Capable.Sender
		}
	}
	w := []string{strings.ReplaceAll(s.Flags.String(), "P", ""), fmt.Sprintf("ack=%d", int32(s.Ack-5000))}
	if fl := r.flows[s.DstPort]; fl != nil {
		w = append(w, fmt.Sprintf("seq=%d", int32(s.Seq-fl.isn)))
	}
	w = append(w, "payload="+string(s.Payload))
	for o, name := range map[wire.Option]string{wire.OptMPCapable: "mp_capable", wire.OptMPJoin: "mp_join", wire.OptDSS: "dss",
		wire.OptMPFastClose: "mp_fastclose", wire.OptMPTCPReset: "mp_tcprst"} {
		if s.Has(o) {
			w = append(w, name)
		}
	}
	if s.Has(wire.OptDSS) {
		w = append(w, fmt.Sprintf("dack=%d", keyA.IDSN().Offset(s.DSS.DataAck)))
		if s.DSS.HasMap {
			w = append(w, fmt.Sprintf("dseq=%d", r.keyB.IDSN().Offset(s.DSS.DataSeq)), fmt.Sprintf("len=%d", s.DSS.Length))
			if s.DSS.DataFIN {
				w = append(w, "data_fin")
			}
		}
	}
	return w
}

func TestScripts(t *testing.T) {
	err := filepath.WalkDir("testdata", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		t.Run(file, func(t *testing.T) {
			text, err := os.ReadFile(file)
			r, err2 := newRunner()
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			for i, line := range strings.Split(string(text), "\n") {
				line, _, _ = strings.Cut(line, "#")
				if strings.TrimSpace(line) == "" {
					continue
				}
				if err := r.line(line); err != nil {
					t.Fatalf("line %d: %v", i+1, err)
				}
			}
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A script that asks for something else than what happens fails.
func TestWrongScriptsFail(t *testing.T) {
	for _, line := range []string{"> S. ack=2", "> S. ^mp_capable", "> none", "! accept true", "? what"} {
		r, err := newRunner()
		if err == nil {
			err = r.line("< S seq=0 mp_capable")
		}
		if err != nil {
			t.Fatal(err)
		}
		if r.line(line) == nil {
			t.Errorf("%q passes", line)
		}
	}
}
