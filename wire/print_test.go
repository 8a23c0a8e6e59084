package wire

import (
	"testing"
)

func TestSegmentString(t *testing.T) {
	tests := []struct {
		s    Segment
		want string
	}{
		{Segment{SrcPort: 49152, DstPort: 443, Flags: SYN | ACK, Ack: 1, Window: 65535,
			Options: OptMSS | OptSACKPermitted | OptTimestamps | OptWindowScale, MSS: 1460, TSVal: 1, TSEcr: 2, WindowScale: 8},
			"49152 > 443: Flags [S.], seq 0, ack 1, win 65535, options [mss 1460,wscale 8,sackOK,TS val 1 ecr 2], length 0"},
		{Segment{SrcPort: 1, DstPort: 2, Flags: ACK, Ack: 9, Seq: 5}, "1 > 2: Flags [.], ack 9, win 0, length 0"},
		{Segment{SrcPort: 1, DstPort: 2, Flags: ACK | PSH, Ack: 9, Seq: 0xffffffff, Payload: []byte("hey")},
			"1 > 2: Flags [P.], seq 4294967295:2, ack 9, win 0, length 3"},
		{Segment{Flags: RST, Seq: 7}, "0 > 0: Flags [R], seq 7, win 0, length 0"},
		{Segment{Seq: 7}, "0 > 0: Flags [none], seq 7, win 0, length 0"},
		{Segment{Flags: 0xff, Urgent: 3}, "0 > 0: Flags [SFRPUEW.], seq 0, ack 0, win 0, urg 3, length 0"},
		{Segment{Flags: ACK, Options: OptDSS | OptMPPrio, DSS: DSS{HasAck: true, Ack64: true, DataAck: 5}},
			"0 > 0: Flags [.], ack 0, win 0, options [mptcp dss ack 5,mptcp prio], length 0"},
	}
	for _, tt := range tests {
		if got := tt.s.String(); got != tt.want {
			t.Errorf("\n got %s\nwant %s", got, tt.want)
		}
	}
}

func TestFormatPacket(t *testing.T) {
	tcp := quote(host4, peer4, ProtoTCP, 80)
	SetTCPChecksum(tcp[20:40], 40, PseudoSum(host4, peer4, ProtoTCP), Sum(0).Add(tcp[40:]))
	tcp6 := quote(host6, peer6, ProtoTCP, 100)
	mangled := append([]byte{}, tcp...)
	mangled[32] = 0x40 // data offset
	marked := append(AppendIPHeader(nil, &IP{Src: host4, Dst: peer4, Proto: 50, TOS: 3}, 2), 1, 2)
	wrap := func(p *IP) []byte { return append(AppendIPHeader(nil, p, len(p.Payload)), p.Payload...) }
	tests := []struct {
		name   string
		packet []byte
		want   string
	}{
		{"TCP", tcp, "IP 10.0.0.1.49152 > 192.0.2.1.443: Flags [.], seq 16909060:16909100, ack 0, win 0, length 40"},
		{"TCP without checksum", tcp6, "IP6 2001:db8::1.49152 > 2001:db8:1::2.443: Flags [.], seq 16909060:16909100, ack 0, win 0, length 40, bad checksum"},
		{"mangled TCP", mangled, "IP 10.0.0.1 > 192.0.2.1: (wire: TCP data offset outside the segment), length 60"},
		{"UDP", quote(host4, peer4, ProtoUDP, 68), "IP 10.0.0.1.49152 > 192.0.2.1.443: UDP, length 40"},
		{"mangled UDP", quote(host4, peer4, ProtoUDP, 68)[:20], "(wire: IP length field contradicts the packet), length 20"},
		{"other protocol, marked", marked, "IP 10.0.0.1 > 192.0.2.1: protocol 50, length 2, CE"},
		{"ICMP", wrap(icmp(3, 4, 1400, quote(host4, peer4, ProtoTCP, 28))),
			"IP 10.9.9.9 > 10.0.0.1: ICMP type 3 code 4 mtu 1400 about 10.0.0.1.49152 > 192.0.2.1.443: seq 16909060"},
		{"ICMP about UDP", wrap(icmp(1, 4, 0, quote(host6, peer6, ProtoUDP, 48))),
			"IP6 2001:db8::9 > 2001:db8::1: ICMP type 1 code 4 about 2001:db8::1.49152 > 2001:db8:1::2.443: UDP"},
		{"echo", wrap(icmp(8, 0, 0, nil)), "IP 10.9.9.9 > 10.0.0.1: ICMP (wire: ICMP message is no error report), length 8"},
		{"nothing", nil, "(wire: IP packet shorter than its header), length 0"},
	}
	for _, tt := range tests {
		if got := FormatPacket(tt.packet); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

func TestFormatDatagram(t *testing.T) {
	syn := Segment{SrcPort: 1, DstPort: 2, Flags: SYN}
	tests := []struct {
		name    string
		payload []byte
		want    string
	}{
		{"SYN", AppendTCP(AppendShim(nil, &Shim{Version: 1, HasSender: true, SenderTag: 0xabcd}), &syn),
			"tag 0x00000000 sender 0x0000abcd 1 > 2: Flags [S], seq 0, win 0, length 0"},
		{"mangled segment", AppendShim(nil, &Shim{Version: 1, Tag: 5}), "tag 0x00000005 (wire: TCP segment shorter than its header), length 0"},
		{"challenge", append(AppendShim(nil, &Shim{Version: 1, Type: ShimChallenge, Tag: 5, Challenge: 6}), 0, 0),
			"tag 0x00000005 challenge 0x0000000000000006, padding 2"},
		{"response", AppendShim(nil, &Shim{Version: 1, Type: ShimResponse, Tag: 5, Challenge: 6}),
			"tag 0x00000005 response 0x0000000000000006"},
		{"versions", AppendShim(nil, &Shim{Type: ShimVersions, Tag: 5, Versions: 2}), "tag 0x00000005 versions 0x0002"},
		{"nothing", nil, "(wire: MPTCP-over-UDP header too short), length 0"},
	}
	for _, tt := range tests {
		if got := FormatDatagram(tt.payload); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
}
