package wire

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// rawTCP builds a segment by hand: a header with these flags, options padded with end-of-list, payload.
func rawTCP(fl Flags, options []byte, payload string) []byte {
	for len(options)%4 != 0 {
		options = append(options[:len(options):len(options)], kindEnd)
	}
	b := make([]byte, TCPHeaderLen, 80)
	b[12], b[13] = uint8((TCPHeaderLen+len(options))/4)<<4, uint8(fl)
	return append(append(b, options...), payload...)
}

// mptcpOption builds an option of kind 30 with a length that is right: subtype and low bits, then flags, then
// bytes that count up from 1.
func mptcpOption(t Subtype, low, flags uint8, length int) []byte {
	o := []byte{kindMPTCP, uint8(length), uint8(t)<<4 | low, flags}
	for i := 4; i < length; i++ {
		o = append(o, uint8(i-3))
	}
	return o[:length]
}

func TestParseTCPHeader(t *testing.T) {
	b := []byte{0xc0, 0x00, 0x01, 0xbb, 1, 2, 3, 4, 5, 6, 7, 8, 0x5f, 0xb8, 0x12, 0x34, 0xaa, 0xbb, 0x00, 0x09, 'h', 'i'}
	var s Segment
	if err := ParseTCP(b, &s); err != nil {
		t.Fatal(err)
	}
	if s.SrcPort != 49152 || s.DstPort != 443 || s.Seq != 0x01020304 || s.Ack != 0x05060708 {
		t.Errorf("ports or numbers: %v", &s)
	}
	// Reserved bits are ignored (RFC 9293, Section 3.1).
	if s.Flags != CWR|URG|ACK|PSH || s.Window != 0x1234 || s.Urgent != 9 || string(s.Payload) != "hi" || s.Options != 0 {
		t.Errorf("flags, window, urgent pointer, payload or options: %v", &s)
	}
}

func TestParseTCPRefuses(t *testing.T) {
	good := rawTCP(ACK, nil, "")
	offset := func(words uint8) []byte {
		b := rawTCP(ACK, []byte{1, 1, 1, 1}, "")
		b[12] = words << 4
		return b
	}
	tests := []struct {
		name string
		b    []byte
		want error
	}{
		{"nothing", nil, ErrTCPShort},
		{"19 bytes", good[:19], ErrTCPShort},
		{"data offset 0", offset(0), ErrTCPDataOffset},
		{"data offset 4", offset(4), ErrTCPDataOffset},
		{"data offset 5", offset(5), nil},
		{"data offset 6", offset(6), nil},
		{"data offset beyond the end", offset(7), ErrTCPDataOffset},
		{"data offset 15", offset(15), ErrTCPDataOffset},
	}
	for _, tt := range tests {
		var s Segment
		if err := ParseTCP(tt.b, &s); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}

// RFC 9293, Section 3.2: unknown options are skipped by their length, illegal lengths survived; lists that break
// off end the reading (SEC-04, LNX-30). Of duplicates the first counts.
func TestParseOptions(t *testing.T) {
	mss := []byte{2, 4, 5, 180}
	join := func(parts ...[]byte) (o []byte) {
		for _, p := range parts {
			o = append(o, p...)
		}
		return o
	}
	tests := []struct {
		name    string
		options []byte
		want    string // as printed
	}{
		{"none", nil, ""},
		{"NOPs", []byte{1, 1, 1, 1}, ""},
		{"MSS", mss, "mss 1460"},
		{"MSS behind NOPs", join([]byte{1, 1, 1}, mss), "mss 1460"},
		{"MSS behind the end", join([]byte{1, 0}, mss), ""},
		{"MSS behind an unknown kind", join([]byte{99, 6, 0, 0, 0, 0}, mss), "mss 1460"},
		{"MSS behind an unknown kind without value", join([]byte{99, 2}, mss), "mss 1460"},
		{"MSS of length 3", join([]byte{2, 3, 9}, []byte{3, 3, 7}), "wscale 7"},
		{"MSS of illegal length, then legal", join([]byte{2, 6, 0, 1, 0, 1}, mss), "mss 1460"},
		{"MSS twice", join(mss, []byte{2, 4, 0, 1}), "mss 1460"},
		{"window scale of length 4", join([]byte{3, 4, 7, 7}, mss), "mss 1460"},
		{"window scale 255", []byte{3, 3, 255}, "wscale 255"},
		{"SACK-permitted", []byte{1, 1, 4, 2}, "sackOK"},
		{"SACK-permitted of length 3", join([]byte{4, 3, 0}, mss), "mss 1460"},
		{"SACK, one block", []byte{5, 10, 0, 0, 0, 1, 0, 0, 0, 2}, "sack 1 {1:2}"},
		{"SACK, four blocks", append([]byte{5, 34}, make([]byte, 32)...), "sack 4 {0:0}{0:0}{0:0}{0:0}"},
		{"SACK, no block", join([]byte{5, 2}, mss), "mss 1460"},
		{"SACK, half a block", join([]byte{5, 6, 0, 0, 0, 0}, mss), "mss 1460"},
		{"SACK, a block and a half", join([]byte{5, 14}, make([]byte, 12), mss), "mss 1460"},
		{"timestamps", []byte{8, 10, 0, 0, 0, 1, 0, 0, 0, 2}, "TS val 1 ecr 2"},
		{"timestamps, the usual way", []byte{1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2}, "TS val 1 ecr 2"},
		{"timestamps twice", []byte{1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 8, 10, 9, 9, 9, 9, 9, 9, 9, 9}, "TS val 1 ecr 2"},
		{"timestamps of length 6", join([]byte{1, 1, 8, 6, 0, 0, 0, 1}, mss), "mss 1460"},
		{"cookie request", []byte{34, 2}, "tfo cookiereq"},
		{"cookie", []byte{34, 6, 1, 2, 3, 4}, "tfo cookie 01020304"},
		{"cookie of 2 bytes", join([]byte{34, 4, 1, 2}, mss), "mss 1460"},
		{"cookie of 5 bytes", join([]byte{34, 7, 1, 2, 3, 4, 5}, mss), "mss 1460"},
		{"cookie of 18 bytes", join([]byte{34, 20}, make([]byte, 18), mss), "mss 1460"},
		{"length 0 ends the list", join(mss, []byte{99, 0}, []byte{3, 3, 7}), "mss 1460"},
		{"length 1 ends the list", join(mss, []byte{99, 1}, []byte{3, 3, 7}), "mss 1460"},
		{"length beyond the end", join(mss, []byte{99, 20, 3, 3}), "mss 1460"},
		{"MSS cut off", join([]byte{1, 1}, []byte{2, 4}), ""},
		{"kind without length", join(mss, []byte{1, 1, 1, 2}), "mss 1460"},
		{"MPTCP without subtype", join([]byte{30, 2}, mss), "mss 1460"},
		{"MPTCP of unknown subtype", join([]byte{30, 4, 0xf0, 0}, mss), "mss 1460"},
		{"MPTCP of length 0", join(mss, []byte{30, 0, 0, 0}), "mss 1460"},
	}
	for _, tt := range tests {
		var s Segment
		if err := ParseTCP(rawTCP(ACK, tt.options, ""), &s); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got := string(s.appendOptions(nil)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// Every length of every MPTCP option, in every kind of segment: what is not listed is not legal and counts as
// absent (RFC 8684, Section 3; CAP-21, DSS-02, ADD-02, REM-01, PRI-04, FAI-01, FCL-01, RST-01).
func TestMPTCPLengths(t *testing.T) {
	const any = "SYN SYN/ACK ACK DATA RST"
	segments := []struct {
		name    string
		flags   Flags
		payload string
	}{
		{"SYN", SYN, ""}, {"SYN/ACK", SYN | ACK, ""}, {"ACK", ACK, ""}, {"DATA", ACK | PSH, "data"}, {"RST", RST | ACK, ""},
	}
	tests := []struct {
		subtype    Subtype
		low, flags uint8
		option     Option
		legal      map[int]string // length: segments
	}{
		{SubtypeMPCapable, 1, 0x81, OptMPCapable, map[int]string{4: "SYN", 12: "SYN/ACK", 20: "ACK RST", 22: "DATA", 24: "DATA"}},
		{SubtypeMPCapable, 0, 0x01, OptMPCapable, map[int]string{4: "SYN", 5: "SYN", 12: "SYN", 20: "SYN", 40: "SYN"}},
		{SubtypeMPCapable, 2, 0x01, OptMPCapable, map[int]string{4: "SYN", 12: "SYN", 20: "SYN", 24: "SYN"}},
		{SubtypeMPJoin, 0, 1, OptMPJoin, map[int]string{12: "SYN", 16: "SYN/ACK", 24: "ACK DATA RST"}},
		{SubtypeDSS, 0, 0x00, OptDSS, map[int]string{4: any}},
		{SubtypeDSS, 0, 0x01, OptDSS, map[int]string{8: any}},
		{SubtypeDSS, 0, 0x02, OptDSS, map[int]string{4: any}}, // a without A
		{SubtypeDSS, 0, 0x03, OptDSS, map[int]string{12: any}},
		{SubtypeDSS, 0, 0x04, OptDSS, map[int]string{14: any, 16: any}},
		{SubtypeDSS, 0, 0x05, OptDSS, map[int]string{18: any, 20: any}},
		{SubtypeDSS, 0, 0x06, OptDSS, map[int]string{14: any, 16: any}},
		{SubtypeDSS, 0, 0x07, OptDSS, map[int]string{22: any, 24: any}},
		{SubtypeDSS, 0, 0x08, OptDSS, map[int]string{4: any}}, // m without M
		{SubtypeDSS, 0, 0x09, OptDSS, map[int]string{8: any}},
		{SubtypeDSS, 0, 0x0a, OptDSS, map[int]string{4: any}},
		{SubtypeDSS, 0, 0x0b, OptDSS, map[int]string{12: any}},
		{SubtypeDSS, 0, 0x0c, OptDSS, map[int]string{18: any, 20: any}},
		{SubtypeDSS, 0, 0x0d, OptDSS, map[int]string{22: any, 24: any}},
		{SubtypeDSS, 0, 0x0e, OptDSS, map[int]string{18: any, 20: any}},
		{SubtypeDSS, 0, 0x0f, OptDSS, map[int]string{26: any, 28: any}},
		{SubtypeDSS, 0xf, 0xff, OptDSS, map[int]string{26: any, 28: any}}, // reserved bits are ignored
		{SubtypeAddAddr, 0, 7, OptAddAddr, map[int]string{16: any, 18: any, 28: any, 30: any}},
		{SubtypeAddAddr, 1, 7, OptAddAddr, map[int]string{8: any, 10: any, 20: any, 22: any}},
		{SubtypeRemoveAddr, 0, 7, OptRemoveAddr, from(4, 40, any)},
		{SubtypeMPPrio, 1, 0, OptMPPrio, map[int]string{3: any}}, // 4 was version 0
		{SubtypeMPFail, 0, 0, OptMPFail, map[int]string{12: any}},
		{SubtypeMPFastClose, 0, 0, OptMPFastClose, map[int]string{12: any}},
		{SubtypeMPTCPReset, 1, 3, OptMPTCPReset, map[int]string{4: "RST"}},
		{0x9, 0, 0, 0, nil},
		{0xf, 0, 0, 0, nil},
	}
	for _, tt := range tests {
		for length := 2; length <= 40; length++ {
			for _, seg := range segments {
				want := Option(0)
				for _, name := range strings.Fields(tt.legal[length]) {
					if name == seg.name {
						want = tt.option
					}
				}
				// Versions other than 1 in a SYN may have any length.
				if tt.subtype == SubtypeMPCapable && tt.low != Version && seg.name == "SYN" && length >= 4 {
					want = tt.option
				}
				o := mptcpOption(tt.subtype, tt.low, tt.flags, length)
				checkOption(t, fmt.Sprintf("subtype %x flags %02x length %d in %s", tt.subtype, tt.flags, length, seg.name),
					rawTCP(seg.flags, o, seg.payload), want)
				if length <= 36 { // an option behind it is found all the same
					checkOption(t, fmt.Sprintf("subtype %x flags %02x length %d and MSS in %s", tt.subtype, tt.flags, length, seg.name),
						rawTCP(seg.flags, append(o, 2, 4, 5, 180), seg.payload), want|OptMSS)
				}
			}
		}
	}
}

// from maps every length of a span to the same segments.
func from(low, high int, segments string) map[int]string {
	m := map[int]string{}
	for n := low; n <= high; n++ {
		m[n] = segments
	}
	return m
}

// checkOption parses a segment and compares the set of options.
func checkOption(t *testing.T, name string, raw []byte, want Option) {
	t.Helper()
	var s Segment
	if err := ParseTCP(raw, &s); err != nil {
		t.Errorf("%s: %v", name, err)
	} else if s.Options != want {
		t.Errorf("%s: options %#x, want %#x", name, s.Options, want)
	}
}

// What each option says, field by field; the printed form has all of them.
func TestMPTCPFields(t *testing.T) {
	tests := []struct {
		flags   Flags
		payload string
		option  []byte
		want    string
	}{
		{SYN, "", mptcpOption(SubtypeMPCapable, 1, 0xe1, 4), "mptcp capable v1 flags [ABCH]"},
		{SYN | ACK, "", mptcpOption(SubtypeMPCapable, 1, 0x01, 12), "mptcp capable v1 flags [H] {0102030405060708}"},
		{ACK, "", mptcpOption(SubtypeMPCapable, 1, 0x81, 20),
			"mptcp capable v1 flags [AH] {0102030405060708,090a0b0c0d0e0f10}"},
		{ACK, "x", mptcpOption(SubtypeMPCapable, 1, 0x01, 22),
			"mptcp capable v1 flags [H] {0102030405060708,090a0b0c0d0e0f10} len 4370"},
		{ACK, "x", mptcpOption(SubtypeMPCapable, 1, 0x01, 24),
			"mptcp capable v1 flags [H] {0102030405060708,090a0b0c0d0e0f10} len 4370 csum 0x1314"},
		{SYN, "", mptcpOption(SubtypeMPCapable, 0, 0x81, 12), "mptcp capable v0 flags [AH]"},
		{SYN, "", mptcpOption(SubtypeMPJoin, 1, 9, 12), "mptcp join backup id 9 token 0x01020304 nonce 0x05060708"},
		{SYN | ACK, "", mptcpOption(SubtypeMPJoin, 0, 9, 16), "mptcp join id 9 hmac 0102030405060708 nonce 0x090a0b0c"},
		{ACK, "", mptcpOption(SubtypeMPJoin, 0, 0, 24), "mptcp join hmac 0102030405060708090a0b0c0d0e0f1011121314"},
		{ACK, "", mptcpOption(SubtypeDSS, 0, 0x01, 8), "mptcp dss ack 16909060/32"},
		{ACK, "", mptcpOption(SubtypeDSS, 0, 0x11, 8), "mptcp dss ack 16909060/32"}, // F means nothing without M
		{ACK, "", mptcpOption(SubtypeDSS, 0, 0x03, 12), "mptcp dss ack 72623859790382856"},
		{ACK, "x", mptcpOption(SubtypeDSS, 0, 0x04, 14), "mptcp dss seq 16909060/32 subseq 84281096 len 2314"},
		{ACK, "x", mptcpOption(SubtypeDSS, 0, 0x1d, 24),
			"mptcp dss fin ack 16909060/32 seq 361984551142689548 subseq 219025168 len 4370 csum 0x1314"},
		{ACK, "x", mptcpOption(SubtypeDSS, 0, 0x0f, 26),
			"mptcp dss ack 72623859790382856 seq 651345242494996240 subseq 286397204 len 5398"},
		{ACK, "", []byte{30, 14, 0x20, 0x04, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0}, "mptcp dss seq 1/32 subseq 0 len 0 infinite"},
		{ACK, "", mptcpOption(SubtypeAddAddr, 0, 7, 16), "mptcp add-addr id 7 1.2.3.4 hmac 05060708090a0b0c"},
		{ACK, "", mptcpOption(SubtypeAddAddr, 0, 7, 18), "mptcp add-addr id 7 1.2.3.4 port 1286 hmac 0708090a0b0c0d0e"},
		{ACK, "", mptcpOption(SubtypeAddAddr, 1, 7, 22),
			"mptcp add-addr echo id 7 102:304:506:708:90a:b0c:d0e:f10 port 4370"},
		{ACK, "", mptcpOption(SubtypeRemoveAddr, 0, 7, 6), "mptcp rem-addr id 7 1 2"},
		{ACK, "", []byte{30, 3, 0x51}, "mptcp prio backup"},
		{ACK, "", []byte{30, 3, 0x50}, "mptcp prio"},
		{ACK, "", mptcpOption(SubtypeMPFail, 0, 0, 12), "mptcp fail seq 72623859790382856"},
		{ACK, "", mptcpOption(SubtypeMPFastClose, 0, 0, 12), "mptcp fast-close key 0102030405060708"},
		{RST, "", mptcpOption(SubtypeMPTCPReset, 1, 6, 4), "mptcp reset middlebox transient"},
		{RST, "", mptcpOption(SubtypeMPTCPReset, 0, 77, 4), "mptcp reset reason-77"},
	}
	for _, tt := range tests {
		var s Segment
		if err := ParseTCP(rawTCP(tt.flags, tt.option, tt.payload), &s); err != nil {
			t.Fatal(err)
		}
		if got := string(s.appendOptions(nil)); got != tt.want {
			t.Errorf("%x:\n got %q\nwant %q", tt.option, got, tt.want)
		}
	}
}

// Of repeated MPTCP options the first legal one counts.
func TestMPTCPDuplicates(t *testing.T) {
	illegal := []byte{30, 9, 0x20, 0x01, 9, 9, 9, 9, 9}
	first := []byte{30, 8, 0x20, 0x01, 0, 0, 0, 1}
	second := []byte{30, 8, 0x20, 0x01, 0, 0, 0, 2}
	var s Segment
	raw := rawTCP(ACK, append(append(append([]byte{}, illegal...), first...), second...), "")
	if err := ParseTCP(raw, &s); err != nil {
		t.Fatal(err)
	}
	if !s.Has(OptDSS) || s.DSS.DataAck != 1 {
		t.Errorf("parsed %v, want DATA_ACK 1", &s)
	}
}

// What a SYN offers fits together (CAP-26), in the order and padding that peers expect.
func TestAppendLayouts(t *testing.T) {
	tests := []struct {
		name string
		s    Segment
		want []byte
	}{
		{"SYN", Segment{Flags: SYN, Options: OptMSS | OptSACKPermitted | OptTimestamps | OptWindowScale | OptMPCapable,
			MSS: 1460, TSVal: 1, WindowScale: 8, Capable: MPCapable{Version: 1, HMACSHA256: true}},
			[]byte{2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 8, 30, 4, 0x01, 0x01}},
		{"SYN without timestamps", Segment{Flags: SYN, Options: OptMSS | OptSACKPermitted, MSS: 1220},
			[]byte{2, 4, 4, 196, 1, 1, 4, 2}},
		{"SACK", Segment{Flags: ACK, Options: OptSACK, SACKBlocks: 1, SACK: [4]SACKBlock{{1, 2}}},
			[]byte{1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2}},
		{"cookie", Segment{Flags: SYN, Options: OptFastOpen, FastOpen: FastOpenCookie{Len: 4, Value: [16]byte{7, 8, 9, 10}}},
			[]byte{34, 6, 7, 8, 9, 10, 1, 1}},
		{"DSS without checksum is padded behind", Segment{Flags: ACK, Options: OptDSS,
			DSS: DSS{HasMap: true, DataSeq: 1, Subflow: 2, Length: 3, DataFIN: true}},
			[]byte{30, 14, 0x20, 0x14, 0, 0, 0, 1, 0, 0, 0, 2, 0, 3, 1, 1}},
		{"flags that mean nothing are not sent", Segment{Flags: ACK, Options: OptDSS,
			DSS: DSS{HasAck: true, DataAck: 5, DataFIN: true, Map64: true}},
			[]byte{30, 8, 0x20, 0x01, 0, 0, 0, 5}},
		{"prio behind DSS", Segment{Flags: ACK, Options: OptDSS | OptMPPrio, DSS: DSS{HasAck: true}, Prio: MPPrio{Backup: true}},
			[]byte{30, 8, 0x20, 0x01, 0, 0, 0, 0, 30, 3, 0x51, 1}},
		{"remove addr", Segment{Flags: ACK, Options: OptRemoveAddr, RemoveAddr: RemoveAddr{Count: 2, IDs: [37]uint8{3, 4}}},
			[]byte{30, 5, 0x40, 3, 4, 1, 1, 1}},
		{"reset behind fast close", Segment{Flags: RST, Options: OptMPFastClose | OptMPTCPReset,
			FastClose: MPFastClose{Receiver: Key{1}}, Reset: MPTCPReset{Reason: ResetProhibited}},
			[]byte{30, 12, 0x70, 0, 1, 0, 0, 0, 0, 0, 0, 0, 30, 4, 0x80, 3}},
		{"fail", Segment{Flags: ACK, Options: OptMPFail, Fail: MPFail{DataSeq: 0x0102030405060708}},
			[]byte{30, 12, 0x60, 0, 1, 2, 3, 4, 5, 6, 7, 8}},
		{"no SACK blocks, no option", Segment{Flags: ACK, Options: OptSACK}, nil},
	}
	for _, tt := range tests {
		raw := AppendTCP(nil, &tt.s)
		if got := raw[TCPHeaderLen:]; string(got) != string(tt.want) {
			t.Errorf("%s:\n got % x\nwant % x", tt.name, got, tt.want)
		}
		if int(raw[12]>>4)*4 != len(raw) {
			t.Errorf("%s: data offset %d with %d bytes", tt.name, raw[12]>>4, len(raw))
		}
	}
}

// The helpers by which room is reserved say what AppendTCP takes.
func TestReservedRoom(t *testing.T) {
	room := func(o Option, fill func(s *Segment)) int {
		s := Segment{Options: o}
		if fill != nil {
			fill(&s)
		}
		return len(AppendTCP(nil, &s)) - TCPHeaderLen
	}
	check := func(name string, got, want int) {
		t.Helper()
		if got != want {
			t.Errorf("%s: helper says %d, appended %d", name, got, want)
		}
	}
	check("MSS", MSSLen, room(OptMSS, nil))
	check("timestamps", TimestampsLen, room(OptTimestamps, nil))
	check("window scale", WindowScaleLen, room(OptWindowScale, nil))
	check("SACK-permitted", SACKPermittedLen, room(OptSACKPermitted, nil))
	check("SACK-permitted beside timestamps", 0, room(OptSACKPermitted|OptTimestamps, nil)-TimestampsLen)
	for n := range 5 {
		check("SACK", SACKLen(n), room(OptSACK, func(s *Segment) { s.SACKBlocks = n }))
	}
	for bits := range 32 {
		on := func(i int) bool { return bits>>i&1 != 0 }
		ack, ack64, mapping, map64, csum := on(0), on(1), on(2), on(3), on(4)
		check(fmt.Sprintf("DSS %05b", bits), DSSLen(ack, ack64, mapping, map64, csum), room(OptDSS, func(s *Segment) {
			s.DSS = DSS{HasAck: ack, Ack64: ack64, HasMap: mapping, Map64: map64, HasCheck: csum && mapping}
		}))
		v6, port, echo := on(0), on(1), on(2)
		check(fmt.Sprintf("ADD_ADDR %03b", bits&7), AddAddrLen(v6, port, echo), room(OptAddAddr, func(s *Segment) {
			s.AddAddr = AddAddr{Echo: echo, Addr: netip.IPv4Unspecified()}
			if v6 {
				s.AddAddr.Addr = netip.IPv6Unspecified()
			}
			if port {
				s.AddAddr.Port = 1
			}
		}))
	}
	check("largest DSS", DSSMaxLen, DSSLen(true, true, true, true, true))
	for _, c := range []MPCapable{{}, {Keys: 1}, {Keys: 2}, {Keys: 2, HasData: true}, {Keys: 2, HasData: true, HasChecksum: true}} {
		check("MP_CAPABLE", MPCapableLen(c.Keys, c.HasData, c.HasChecksum), room(OptMPCapable, func(s *Segment) { s.Capable = c }))
	}
	for form, n := range map[JoinForm]int{JoinSYN: MPJoinSYNLen, JoinSYNACK: MPJoinSYNACKLen, JoinACK: MPJoinACKLen} {
		check("MP_JOIN", n, room(OptMPJoin, func(s *Segment) { s.Join.Form = form }))
	}
	for n := 1; n <= 37; n++ {
		check("REMOVE_ADDR", RemoveAddrLen(n), room(OptRemoveAddr, func(s *Segment) { s.RemoveAddr.Count = n }))
	}
	check("MP_PRIO", MPPrioLen, room(OptMPPrio, nil))
	check("MP_FAIL", MPFailLen, room(OptMPFail, nil))
	check("MP_FASTCLOSE", MPFastCloseLen, room(OptMPFastClose, nil))
	check("MP_TCPRST", MPTCPResetLen, room(OptMPTCPReset, nil))
}

// Segments that cannot be are our own mistakes.
func TestAppendPanics(t *testing.T) {
	tests := []struct {
		name string
		s    Segment
	}{
		{"44 bytes of options", Segment{Options: OptSACK | OptTimestamps, SACKBlocks: 4}},
		{"checksum without mapping", Segment{Options: OptDSS, DSS: DSS{HasCheck: true}}},
		{"MP_JOIN without form", Segment{Options: OptMPJoin}},
		{"three keys", Segment{Options: OptMPCapable, Capable: MPCapable{Keys: 3}}},
		{"data length with one key", Segment{Options: OptMPCapable, Capable: MPCapable{Keys: 1, HasData: true}}},
		{"checksum without data length", Segment{Options: OptMPCapable, Capable: MPCapable{Keys: 2, HasChecksum: true}}},
		{"ADD_ADDR without address", Segment{Options: OptAddAddr}},
		{"REMOVE_ADDR without IDs", Segment{Options: OptRemoveAddr}},
		{"cookie of 3 bytes", Segment{Options: OptFastOpen, FastOpen: FastOpenCookie{Len: 3}}},
	}
	for _, tt := range tests {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", tt.name)
				}
			}()
			AppendTCP(nil, &tt.s)
		}()
	}
}

// RFC 8684, Sections 3.6 and 7.4 (RST-01, RST-02): four bytes, reserved bits 0, T in the lowest bit, and the registered reasons.
func TestResetReasons(t *testing.T) {
	for code, reason := range []ResetReason{
		ResetUnspecified, ResetMPTCP, ResetResources, ResetProhibited, ResetTooMuchData, ResetPerformance, ResetMiddlebox,
	} {
		for _, transient := range []bool{false, true} {
			s := Segment{Flags: RST, Options: OptMPTCPReset, Reset: MPTCPReset{Transient: transient, Reason: reason}}
			want := []byte{30, 4, 0x80 | bit(transient), uint8(code)}
			if got := AppendTCP(nil, &s)[TCPHeaderLen:]; string(got) != string(want) {
				t.Errorf("% x, want % x", got, want)
			}
		}
	}
}
