//go:build linux

package interop

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"braid/clock"
	"braid/mptcp"
	"braid/trace"
	"braid/wire"
)

// needTool skips a test that needs a program of the machine's, or fails it where everything is required.
func needTool(t testing.TB, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err == nil {
		return
	}
	if os.Getenv("BRAID_INTEROP") == "require" {
		t.Fatalf("needs %s", name)
	}
	t.Skipf("needs %s", name)
}

// checked makes tshark verify every checksum and follow MPTCP connections.
var checked = []string{
	"-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-o", "tcp.calculate_timestamps:FALSE",
	"-d", "tcp.port==5000,data", "-d", "tcp.port==5001,data", // random bytes: nothing to be read there
	"-o", "mptcp.analyze_mptcp:TRUE", "-o", "mptcp.relative_sequence_numbers:FALSE", "-o", "tcp.relative_sequence_numbers:FALSE",
}

// tshark reads a capture and returns what it prints.
func tshark(t testing.TB, file string, args ...string) string {
	t.Helper()
	var complaints bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "tshark", slices.Concat([]string{"-n", "-r", file}, checked, args)...)
	cmd.Stderr = &complaints
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir()) // nobody's preferences
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark: %v: %s", err, complaints.String())
	}
	return string(out)
}

// broken is what a capture of ours must not have: what tshark cannot read, a wrong checksum, an option that is not what RFC 8684 says. The last ones are
// tshark's own findings about MPTCP connections.
const broken = "_ws.malformed || _ws.unreassembled || ip.checksum.status == 0 || tcp.checksum.status == 0 || udp.checksum.status == 0 || " +
	"_ws.expert.severity >= 8388608 || tcp.option.len.invalid || tcp.options.mptcp.subtype > 8 || mptcp.connection.echoed_key_mismatch || " +
	"mptcp.connection.missing_algorithm || mptcp.connection.unsupported_algorithm || mptcp.dss.infinite_mapping"

// wantClean checks that tshark has nothing to say against a capture of at least so many packets, and that it did look: it knew every TCP checksum.
func wantClean(t testing.TB, file string, packets int) {
	t.Helper()
	if bad := tshark(t, file, "-Y", broken); bad != "" {
		t.Errorf("tshark finds fault with\n%.2000s", bad)
	}
	if n := strings.Count(tshark(t, file, "-Y", "tcp.checksum.status == 1", "-T", "fields", "-e", "frame.number"), "\n"); n < packets {
		t.Errorf("tshark verified %d TCP checksums, want %d at least", n, packets)
	}
}

// frame is a packet as tshark reads it: of each field all values, an option that comes twice has two.
type frame map[string][]string

// The fields that frames have.
var frameFields = []string{
	"tcp.stream", "tcp.srcport", "tcp.dstport", "tcp.flags.syn", "tcp.flags.ack", "tcp.len", "mptcp.stream", "tcp.options.mptcp.subtype", "tcp.options.mptcp.version",
	"tcp.options.mptcp.sendkey", "tcp.options.mptcp.recvkey", "tcp.options.mptcp.recvtok", "tcp.options.mptcp.sendrand", "tcp.options.mptcp.sendtrunchmac",
	"tcp.options.mptcp.sendhmac", "tcp.options.mptcp.addrid", "tcp.options.mptcp.rawdataseqno", "tcp.options.mptcp.subflowseqno", "tcp.options.mptcp.datalvllen",
	"tcp.options.mptcp.rawdataack", "tcp.options.mptcp.datafin.flag", "tcp.options.mptcp.checksumreq.flags", "tcp.options.mptcp.dseqn8.flag",
	"tcp.options.mptcp.dataack8.flag",
}

// frames reads all packets of TCP.
func frames(t testing.TB, file string) (all []frame) {
	t.Helper()
	args := []string{"-Y", "tcp", "-T", "fields", "-E", "separator=;", "-E", "occurrence=a", "-E", "aggregator=,"}
	for _, name := range frameFields {
		args = append(args, "-e", name)
	}
	for line := range strings.Lines(tshark(t, file, args...)) {
		f := frame{}
		for i, values := range strings.Split(strings.TrimRight(line, "\n"), ";") {
			if values != "" {
				f[frameFields[i]] = strings.Split(values, ",")
			}
		}
		all = append(all, f)
	}
	return all
}

// has reports whether the packet has an MPTCP option of a subtype.
func (f frame) has(subtype wire.Subtype) bool {
	return slices.Contains(f["tcp.options.mptcp.subtype"], strconv.Itoa(int(subtype)))
}

// number reads a field's first value; 0 if there is none.
func (f frame) number(t testing.TB, field string) uint64 {
	t.Helper()
	if len(f[field]) == 0 {
		return 0
	}
	v, err := strconv.ParseUint(f[field][0], 0, 64)
	if err != nil {
		t.Fatalf("%s: %v", field, err)
	}
	return v
}

// raw reads a field of bytes.
func (f frame) raw(t testing.TB, field string) []byte {
	t.Helper()
	if len(f[field]) == 0 {
		return nil
	}
	b, err := hex.DecodeString(strings.ReplaceAll(strings.TrimPrefix(f[field][0], "0x"), ":", ""))
	if err != nil {
		t.Fatalf("%s: %v", field, err)
	}
	return b
}

// key reads a key.
func (f frame) key(t testing.TB, field string) (k wire.Key) {
	t.Helper()
	v := f.number(t, field)
	for i := range k {
		k[i] = byte(v >> (56 - 8*i))
	}
	return k
}

// dissection is an MPTCP connection as tshark reads it. Its two ends are the client, which opened it, and the server.
type dissection struct {
	t      testing.TB
	frames []frame
	port   uint64 // the server's
	keys   [2]wire.Key
}

// dissect finds the connection in a capture of only that one, and its keys (RFC 8684, Section 3.1): the SYN has none, the SYN/ACK the server's, the third packet both.
func dissect(t testing.TB, file string) *dissection {
	t.Helper()
	d := &dissection{t: t, frames: frames(t, file)}
	seen := [3]bool{}
	for _, f := range d.frames {
		if !f.has(wire.SubtypeMPCapable) {
			continue
		}
		if v := f.number(t, "tcp.options.mptcp.version"); v != 1 {
			t.Errorf("MP_CAPABLE of version %d", v)
		}
		send, receive := f.key(t, "tcp.options.mptcp.sendkey"), f.key(t, "tcp.options.mptcp.recvkey")
		syn, ack := yes(f["tcp.flags.syn"]), yes(f["tcp.flags.ack"])
		switch {
		case syn && !ack:
			d.port = f.number(t, "tcp.dstport")
			seen[0] = send == wire.Key{} && receive == wire.Key{}
		case syn:
			d.keys[1], seen[1] = send, send != wire.Key{}
		default:
			if d.keys[0], seen[2] = send, receive == d.keys[1]; !seen[2] {
				t.Errorf("the third packet's keys are %x and %x, the SYN/ACK's was %x", send, receive, d.keys[1])
			}
		}
		if f.number(t, "mptcp.stream") != 0 {
			t.Error("a second connection")
		}
	}
	if seen != [3]bool{true, true, true} {
		t.Fatalf("MP_CAPABLE in SYN, SYN/ACK and third packet: %v", seen)
	}
	return d
}

// yes reads a flag, which versions of tshark print as 1 or True.
func yes(v []string) bool { return len(v) > 0 && (v[0] == "1" || strings.EqualFold(v[0], "true")) }

// from says which end sent a packet: 0 the client, 1 the server.
func (d *dissection) from(f frame) int {
	if f.number(d.t, "tcp.srcport") == d.port {
		return 1
	}
	return 0
}

// wantJoins checks the MP_JOIN handshakes (RFC 8684, Section 3.2): the token is of the key of who gets the SYN, the HMACs are of both keys and both
// numbers. It returns how many there are.
func (d *dissection) wantJoins() int {
	t := d.t
	type half struct {
		from   int
		nonces [2]uint32 // of who opens it, of the other
		acks   int
	}
	open := map[string]*half{}
	for _, f := range d.frames {
		if !f.has(wire.SubtypeMPJoin) {
			continue
		}
		stream := f["tcp.stream"][0]
		h := open[stream]
		nonce := uint32(f.number(t, "tcp.options.mptcp.sendrand"))
		switch syn, ack := yes(f["tcp.flags.syn"]), yes(f["tcp.flags.ack"]); {
		case syn && !ack:
			open[stream] = &half{from: d.from(f), nonces: [2]uint32{nonce}}
			if got, want := uint32(f.number(t, "tcp.options.mptcp.recvtok")), d.keys[1-d.from(f)].Token(); got != want {
				t.Errorf("token %#x, want %#x", got, want)
			}
		case h == nil:
			t.Error("MP_JOIN on a subflow that no MP_JOIN opened")
		case syn:
			h.nonces[1] = nonce
			want := wire.JoinMAC(d.keys[1-h.from], d.keys[h.from], h.nonces[1], h.nonces[0])
			if got := f.key(t, "tcp.options.mptcp.sendtrunchmac"); got != wire.Key(want[:8]) { // a number, like a key
				t.Errorf("SYN/ACK with HMAC %x, want %x", got, want[:8])
			}
		default:
			h.acks++
			want := wire.JoinMAC(d.keys[h.from], d.keys[1-h.from], h.nonces[0], h.nonces[1])
			if got := f.raw(t, "tcp.options.mptcp.sendhmac"); !bytes.Equal(got, want[:20]) {
				t.Errorf("third packet with HMAC %x, want %x", got, want[:20])
			}
		}
	}
	for stream, h := range open {
		if h.acks == 0 {
			t.Errorf("the join of TCP stream %s has no third packet", stream)
		}
	}
	return len(open)
}

// mapped is what the DSS options of one direction say (RFC 8684, Section 3.3).
type mapped struct {
	bytes   uint64 // data from the first byte to the last, without a gap
	fin     bool   // DATA_FIN behind exactly that
	acked   uint64 // what the other end DATA_ACKed, the DATA_FIN being one
	streams int    // TCP connections that carried some of it
}

// stream follows the data of an end through all subflows. The mappings must cover it from its first byte on.
func (d *dissection) stream(end int) (m mapped) {
	t := d.t
	first := uint64(d.keys[end].IDSN()) + 1
	type piece struct{ at, n uint64 }
	var pieces []piece
	carried := map[string]bool{}
	fin := ^uint64(0)
	for _, f := range d.frames {
		if !f.has(wire.SubtypeDSS) {
			if d.from(f) == end && f.has(wire.SubtypeMPCapable) && f.number(t, "tcp.len") > 0 { // the first mapping stands in MP_CAPABLE
				pieces = append(pieces, piece{0, f.number(t, "tcp.len")})
			}
			continue
		}
		if d.from(f) != end {
			if len(f["tcp.options.mptcp.rawdataack"]) > 0 {
				m.acked = max(m.acked, d.offset(f, "tcp.options.mptcp.rawdataack", "tcp.options.mptcp.dataack8.flag", first))
			}
			continue
		}
		if len(f["tcp.options.mptcp.datalvllen"]) == 0 {
			continue
		}
		at, n := d.offset(f, "tcp.options.mptcp.rawdataseqno", "tcp.options.mptcp.dseqn8.flag", first), f.number(t, "tcp.options.mptcp.datalvllen")
		if yes(f["tcp.options.mptcp.datafin.flag"]) {
			n--
			if fin != ^uint64(0) && fin != at+n {
				t.Errorf("DATA_FIN at %d and at %d", fin, at+n)
			}
			fin = at + n
		}
		if n > 0 {
			pieces = append(pieces, piece{at, n})
			carried[f["tcp.stream"][0]] = true
		}
	}
	slices.SortFunc(pieces, func(a, b piece) int { return int(int64(a.at) - int64(b.at)) })
	for _, p := range pieces {
		if p.at > m.bytes {
			t.Fatalf("no mapping of data %d to %d", m.bytes, p.at)
		}
		m.bytes = max(m.bytes, p.at+p.n)
	}
	m.fin, m.streams = fin == m.bytes, len(carried)
	return m
}

// offset counts a data sequence number from the first byte of its stream. A short one is completed: these streams are shorter than 2^32.
func (d *dissection) offset(f frame, field, long string, first uint64) uint64 {
	v := f.number(d.t, field)
	if !yes(f[long]) {
		return uint64(uint32(v) - uint32(first))
	}
	return v - first
}

// TestCaptures lets tshark read what went between our stack and the kernel's: nothing is malformed, all checksums are right, and keys, tokens, HMACs and
// data sequence numbers are what both ends say that happened.
func TestCaptures(t *testing.T) {
	needTool(t, "tshark")
	up, down := stream(256<<10, 41), stream(256<<10+12345, 42)
	for i, role := range roles {
		checksums := i == 0 || i == 3
		t.Run(fmt.Sprintf("%s checksums %v", role.name, checksums), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "capture.pcapng")
			w := newWorld(t, setup{links: 2, limits: true, noOffload: true, announce: true, checksums: checksums, capture: file})
			p := role.dial(w, true)
			hello := []byte("hello")
			send(t, p.own, p.kernel, hello)
			send(t, p.kernel, p.own, hello)
			w.until("a second subflow", func() bool {
				n := 0
				for _, sf := range p.own.Info().Subflows {
					if sf.State == "active" {
						n++
					}
				}
				return n >= 2
			})
			exchange(t, p, up, down)
			w.wantMPTCP(p)
			info := p.own.Info()
			w.gone(p)
			w.capture.close()

			wantClean(t, file, (len(up)+len(down))/1500)
			d := dissect(t, file)
			for _, f := range d.frames {
				if f.has(wire.SubtypeMPCapable) && i >= 2 && yes(f["tcp.flags.syn"]) && !yes(f["tcp.flags.ack"]) && yes(f["tcp.options.mptcp.checksumreq.flags"]) != checksums {
					t.Errorf("the kernel's SYN asks for checksums: %v", !checksums)
				}
			}
			if n, want := d.wantJoins(), len(info.Subflows)-1; n < want {
				t.Errorf("%d joins, braid has %d subflows", n, want+1)
			}
			own := 1 // our end: the server
			if i < 2 {
				own = 0
			}
			d.want(own, info, info.Written, int64(len(hello)+len(down)))
			d.want(1-own, info, info.Received, int64(len(hello)+len(up)))
		})
	}
}

// want checks the stream of an end: as long as braid says and as the test knows, ended by a DATA_FIN and acknowledged to its end.
func (d *dissection) want(end int, info mptcp.Info, said, sent int64) {
	d.t.Helper()
	m := d.stream(end)
	if said != sent || int64(m.bytes) != sent || !m.fin || m.acked != m.bytes+1 {
		d.t.Errorf("end %d: tshark reads %d bytes (DATA_FIN behind them: %v, DATA_ACKed %d), braid says %d, the test sent %d\n%+v", end, m.bytes, m.fin, m.acked, said, sent, info)
	}
}

// scenario is a transfer over two paths in the simulator, with losses; the encapsulation is filled in.
const scenario = `
name = "capture"
seed = 1
duration_s = 10
warmup_s = 0
[[links]]
name = "one"
rate_mbps = 10
delay_ms = 10
loss = 0.01
[[links]]
name = "two"
rate_mbps = 5
delay_ms = 20
[[paths]]
name = "one"
forward = ["one"]
[[paths]]
name = "two"
forward = ["two"]
[[flows]]
name = "multipath"
paths = ["one", "two"]
encapsulation = %q
workload = { kind = "bulk", bytes = 2000000 }
`

// TestCapturesOfTheSimulator: what "braid sim --capture" writes reads as well, in IP packets and, taken out of its datagrams, over UDP.
func TestCapturesOfTheSimulator(t *testing.T) {
	needTool(t, "tshark")
	dir := t.TempDir()
	binary := filepath.Join(dir, "braid")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "braid/cmd/braid").CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, out)
	}
	for _, encapsulation := range []string{"ip", "udp"} {
		t.Run(encapsulation, func(t *testing.T) {
			text, file := filepath.Join(dir, encapsulation+".toml"), filepath.Join(dir, encapsulation+".pcapng")
			if err := os.WriteFile(text, fmt.Appendf(nil, scenario, encapsulation), 0o644); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.CommandContext(t.Context(), binary, "sim", text, "--capture="+file).CombinedOutput(); err != nil {
				t.Fatalf("braid sim: %v: %s", err, out)
			}
			if encapsulation == "udp" {
				file = unwrap(t, file)
			}
			wantClean(t, file, 1000)
			d := dissect(t, file)
			if n := d.wantJoins(); n != 1 {
				t.Errorf("%d joins, want 1", n)
			}
			if m := d.stream(0); m.bytes != 2e6 || m.streams != 2 || !m.fin || m.acked != m.bytes+1 {
				t.Errorf("tshark reads %+v", m)
			}
		})
	}
}

// unwrap takes the segments of a capture out of their datagrams (docs/encapsulation.md), which tshark checks first, and writes them as IP packets.
func unwrap(t *testing.T, file string) string {
	t.Helper()
	if bad := tshark(t, file, "-Y", broken); bad != "" {
		t.Errorf("tshark finds fault with\n%.2000s", bad)
	}
	var buf bytes.Buffer
	pcap := trace.NewPcapWriter(&buf, 0)
	pcap.AddInterface("unwrapped")
	good := 0
	for line := range strings.Lines(tshark(t, file, "-T", "fields", "-e", "ip.src", "-e", "ip.dst", "-e", "udp.checksum.status", "-e", "udp.payload")) {
		f := strings.Fields(line)
		if len(f) != 4 || f[2] != "1" {
			t.Fatalf("tshark reads %q", line)
		}
		payload, err := hex.DecodeString(strings.ReplaceAll(f[3], ":", ""))
		if err != nil {
			t.Fatal(err)
		}
		shim, segment, err := wire.ParseShim(payload)
		if err != nil {
			t.Fatal(err)
		}
		if shim.Type != wire.ShimSegment {
			continue
		}
		ip := wire.IP{Src: netip.MustParseAddr(f[0]), Dst: netip.MustParseAddr(f[1]), Proto: wire.ProtoTCP}
		wire.SetTCPChecksum(segment, 0, wire.PseudoSum(ip.Src, ip.Dst, ip.Proto), 0)
		pcap.WritePacket(&trace.Packet{Time: clock.Time(good * 1000), Data: append(wire.AppendIPHeader(nil, &ip, len(segment)), segment...)})
		good++
	}
	out := strings.TrimSuffix(file, ".pcapng") + "-unwrapped.pcapng"
	if err := pcap.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(out, buf.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return out
}
