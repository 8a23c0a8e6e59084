package wire

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// drawShim draws a header that can be.
func drawShim(t *rapid.T) Shim {
	s := Shim{
		Version: ShimVersion,
		Type:    rapid.SampledFrom([]ShimType{ShimSegment, ShimChallenge, ShimResponse, ShimVersions}).Draw(t, "type"),
		Tag:     rapid.Uint32().Draw(t, "tag"),
	}
	switch s.Type {
	case ShimSegment:
		if s.HasSender = rapid.Bool().Draw(t, "has sender"); s.HasSender {
			s.SenderTag = rapid.Uint32Min(1).Draw(t, "sender")
		}
		s.Padding = 4 * rapid.IntRange(0, ShimMaxPadding/4).Draw(t, "padding")
	case ShimVersions:
		s.Version = 0
		s.Versions = rapid.Uint16().Draw(t, "versions")
	default:
		s.Challenge = rapid.Uint64().Draw(t, "challenge")
	}
	return s
}

func TestShimRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawShim(t)
		rest := rapid.SliceOfN(rapid.Byte(), 0, 30).Draw(t, "rest")
		raw := AppendShim([]byte("prefix"), &want)[6:]
		if len(raw) != want.Len() {
			t.Fatalf("%d bytes, Len says %d", len(raw), want.Len())
		}
		got, left, err := ParseShim(append(raw, rest...))
		if err != nil || got != want || !bytes.Equal(left, rest) {
			t.Fatalf("parsed %+v, rest %x, %v; want %+v, rest %x", got, left, err, want, rest)
		}
	})
}

func TestShimBytes(t *testing.T) {
	tests := []struct {
		name string
		s    Shim
		want []byte
	}{
		{"segment", Shim{Version: 1, Tag: 0x01020304}, []byte{0x10, 0, 0, 0, 1, 2, 3, 4}},
		{"first SYN", Shim{Version: 1, HasSender: true, SenderTag: 0x0a0b0c0d, Padding: 8},
			[]byte{0x10, 0x80, 8, 0, 0, 0, 0, 0, 0x0a, 0x0b, 0x0c, 0x0d, 0, 0, 0, 0, 0, 0, 0, 0}},
		{"challenge", Shim{Version: 1, Type: ShimChallenge, Tag: 1, Challenge: 2},
			[]byte{0x11, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2}},
		{"response", Shim{Version: 1, Type: ShimResponse, Tag: 1, Challenge: 2},
			[]byte{0x12, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2}},
		{"versions", Shim{Type: ShimVersions, Tag: 1, Versions: 1 << ShimVersion},
			[]byte{0x03, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 0}},
	}
	for _, tt := range tests {
		dirty := bytes.Repeat([]byte{0xff}, 32)[:0] // old bytes must not shine through
		if got := AppendShim(dirty, &tt.s); !bytes.Equal(got, tt.want) {
			t.Errorf("%s: % x, want % x", tt.name, got, tt.want)
		}
	}
}

func TestParseShimRefuses(t *testing.T) {
	sizes := func(head ...byte) []byte { return append(head, make([]byte, 40-len(head))...) }
	tests := []struct {
		name string
		b    []byte
		want error
	}{
		{"7 bytes", sizes(0x10)[:7], ErrShimShort},
		{"sender's tag cut", sizes(0x10, 0x80)[:11], ErrShimShort},
		{"sender's tag zero", sizes(0x10, 0x80), ErrShimBody},
		{"padding of 3", sizes(0x10, 0, 3), ErrShimBody},
		{"padding of 64", sizes(0x10, 0, 64), ErrShimBody},
		{"padding cut", sizes(0x10, 0, 36), ErrShimShort},
		{"padding just fits", sizes(0x10, 0, 32), nil},
		{"challenge cut", sizes(0x11)[:15], ErrShimShort},
		{"challenge with sender", sizes(0x11, 0x80, 0, 0, 0, 0, 0, 0, 1), ErrShimBody},
		{"type 3 in version 1", sizes(0x13), ErrShimType},
		{"type 4", sizes(0x14), ErrShimType},
		{"version 2", sizes(0x20), ErrShimVersion},
		{"version 15", sizes(0xf9, 0x80), ErrShimVersion},
		{"segment in version 0", sizes(0x00), ErrShimType},
		{"versions cut", sizes(0x03)[:11], ErrShimShort},
		{"versions with sender", sizes(0x03, 0x80), ErrShimBody},
		{"reserved bits and bytes are ignored", sizes(0x10, 0x7f, 0, 0xff), nil},
	}
	for _, tt := range tests {
		if _, _, err := ParseShim(tt.b); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}

// A datagram of an unknown version still shows the tags, to be answered.
func TestParseShimOfOtherVersion(t *testing.T) {
	s, _, err := ParseShim([]byte{0x70, 0x80, 99, 0, 0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3})
	want := Shim{Version: 7, Tag: 1, HasSender: true, SenderTag: 2}
	if !errors.Is(err, ErrShimVersion) || s != want {
		t.Errorf("got %+v, %v", s, err)
	}
}

func TestAppendShimPanics(t *testing.T) {
	tests := []Shim{
		{Version: 0},
		{Version: 16},
		{Version: 1, Type: ShimVersions},
		{Version: 1, Type: 4},
		{Version: 1, HasSender: true},
		{Version: 1, Padding: 3},
		{Version: 1, Padding: 64},
		{Version: 1, Padding: -4},
		{Version: 1, Type: ShimChallenge, HasSender: true, SenderTag: 1},
		{Version: 1, Type: ShimResponse, Padding: 4},
	}
	for _, s := range tests {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v: no panic", s)
				}
			}()
			AppendShim(nil, &s)
		}()
	}
}

// A SYN/ACK is never larger than its SYN.
func TestSYNPadding(t *testing.T) {
	rest := OptMSS | OptSACKPermitted | OptTimestamps | OptWindowScale
	tests := []struct {
		name    string
		syn     Segment
		synack  Segment
		padding int
	}{
		{"MP_CAPABLE", Segment{Options: rest | OptMPCapable}, Segment{Options: rest | OptMPCapable, Capable: MPCapable{Keys: 1}}, 8},
		{"MP_JOIN", Segment{Options: rest | OptMPJoin, Join: MPJoin{Form: JoinSYN}},
			Segment{Options: rest | OptMPJoin, Join: MPJoin{Form: JoinSYNACK}}, 4},
		{"plain TCP", Segment{Options: rest}, Segment{Options: rest}, 0},
	}
	for _, tt := range tests {
		tt.syn.Flags, tt.synack.Flags = SYN, SYN|ACK
		send := func(s *Segment, shim Shim) int {
			shim.Version, shim.HasSender, shim.SenderTag, shim.Padding = ShimVersion, true, 1, SYNPadding(s)
			return len(AppendTCP(AppendShim(nil, &shim), s))
		}
		if got := SYNPadding(&tt.syn); got != tt.padding {
			t.Errorf("%s: padding %d, want %d", tt.name, got, tt.padding)
		}
		if syn, synack := send(&tt.syn, Shim{}), send(&tt.synack, Shim{Tag: 1}); synack != syn {
			t.Errorf("%s: SYN of %d bytes, SYN/ACK of %d", tt.name, syn, synack)
		}
	}
	if got := SYNPadding(&Segment{Flags: ACK, Options: OptMPCapable}); got != 0 {
		t.Errorf("ACK has %d bytes of padding", got)
	}
}
