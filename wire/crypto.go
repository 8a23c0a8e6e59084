package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"net/netip"

	"braid/seq"
)

// Token returns the token that names the connection end with key k in MP_JOIN: the most significant 32
// bits of the key's SHA-256 (RFC 8684, Section 3.2).
func (k Key) Token() uint32 {
	h := sha256.Sum256(k[:])
	return be.Uint32(h[:])
}

// IDSN returns the initial data sequence number of the end with key k: the least significant 64 bits of
// the key's SHA-256 (RFC 8684, Section 3.1). The first byte of data has the number after it.
func (k Key) IDSN() seq.Data {
	h := sha256.Sum256(k[:])
	return seq.Data(be.Uint64(h[24:]))
}

// JoinMAC returns the HMAC-SHA256 by which the host with key a and nonce a proves itself to the one with
// key b and nonce b in MP_JOIN (RFC 8684, Section 3.2): key KeyA||KeyB, message NonceA||NonceB. The host
// that sent the SYN is A in the ACK (20 bytes of the result are sent) and B, both pairs swapped, in what it
// expects of the SYN/ACK (8 bytes are sent).
func JoinMAC(keyA, keyB Key, nonceA, nonceB uint32) [32]byte {
	var msg [8]byte
	be.PutUint32(msg[:], nonceA)
	be.PutUint32(msg[4:], nonceB)
	return mac(keyA, keyB, msg[:])
}

// AddAddrMAC returns the truncated HMAC of an ADD_ADDR (RFC 8684, Section 3.4.1): key = announcer's key ||
// its peer's key, message = address ID || address || port (0 if none is announced), the rightmost 64 bits.
func AddAddrMAC(announcer, peer Key, id uint8, addr netip.Addr, port uint16) [8]byte {
	msg := make([]byte, 0, 1+16+2)
	msg = append(msg, id)
	msg = append(msg, addr.AsSlice()...)
	msg = be.AppendUint16(msg, port)
	m := mac(announcer, peer, msg)
	return [8]byte(m[24:])
}

// MACEqual compares two message authentication codes in constant time (RFC 8684, Section 5).
func MACEqual(a, b []byte) bool { return hmac.Equal(a, b) }

// mac returns the HMAC-SHA256 of msg with the key a||b.
func mac(a, b Key, msg []byte) (out [32]byte) {
	h := hmac.New(sha256.New, append(a[:], b[:]...))
	h.Write(msg)
	h.Sum(out[:0])
	return out
}
