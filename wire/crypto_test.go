package wire

import (
	"encoding/hex"
	"net/netip"
	"testing"

	"braid/seq"
)

// RFC 8684, Section 3.1 and 3.2: token and IDSN are the two ends of the SHA-256 of the key.
func TestKeyDerivesTokenAndIDSN(t *testing.T) {
	tests := []struct {
		key   Key
		token uint32
		idsn  seq.Data
	}{
		{Key{2}, 0xd86e8112, 0xb810457db34209a4},
		{Key{1, 2, 3, 4, 5, 6, 7, 8}, 0x66840dda, 0xf5a101d3d29d6f72},
	}
	for _, tt := range tests {
		if got := tt.key.Token(); got != tt.token {
			t.Errorf("Token(%x) = %08x, want %08x", tt.key, got, tt.token)
		}
		if got := tt.key.IDSN(); got != tt.idsn {
			t.Errorf("IDSN(%x) = %016x, want %016x", tt.key, got, tt.idsn)
		}
	}
	// A kernel that expects the first byte of the first key acknowledges this low half.
	if got := uint32(Key{2}.IDSN().At(1)); got != 3007449509 {
		t.Errorf("first data sequence number ends in %d, want 3007449509", got)
	}
}

var (
	keyA = Key{1, 2, 3, 4, 5, 6, 7, 8}
	keyB = Key{0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18}
)

// RFC 8684, Section 3.2: the SYN/ACK proves the listener, with both pairs swapped, and the ACK the joiner.
func TestJoinMAC(t *testing.T) {
	const nonceA, nonceB = 0x21222324, 0x31323334
	synack := JoinMAC(keyB, keyA, nonceB, nonceA)
	if got := hex.EncodeToString(synack[:8]); got != "0fce2597e55e87ef" {
		t.Errorf("HMAC of SYN/ACK = %s", got)
	}
	ack := JoinMAC(keyA, keyB, nonceA, nonceB)
	if got := hex.EncodeToString(ack[:20]); got != "e19ad4ac22d51c2f064d49662431bc8f9d6b3a29" {
		t.Errorf("HMAC of ACK = %s", got)
	}
	if MACEqual(synack[:8], ack[:8]) || !MACEqual(ack[:20], ack[:20]) {
		t.Error("MACEqual confuses equal and different codes")
	}
}

// RFC 8684, Section 3.4.1: the rightmost 64 bits, with port 0 where none is announced.
func TestAddAddrMAC(t *testing.T) {
	tests := []struct {
		id   uint8
		addr string
		port uint16
		want string
	}{
		{1, "192.0.2.10", 0, "5e4386ace418f7fa"},
		{2, "2001:db8::10", 8443, "22a9148c9e7657df"},
	}
	for _, tt := range tests {
		m := AddAddrMAC(keyA, keyB, tt.id, netip.MustParseAddr(tt.addr), tt.port)
		if got := hex.EncodeToString(m[:]); got != tt.want {
			t.Errorf("AddAddrMAC(%d, %s, %d) = %s, want %s", tt.id, tt.addr, tt.port, got, tt.want)
		}
	}
}
