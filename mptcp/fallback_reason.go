package mptcp

// fallbackTexts says each reason in words.
var fallbackTexts = [...]string{
	NoFallback:          "none",
	FallbackConfigured:  "plain TCP was asked for, or MPTCP is known not to get through here",
	FallbackNotOffered:  "the peer did not offer MPTCP",
	FallbackNotAnswered: "the peer did not answer with MPTCP",
	FallbackSYN:         "only a SYN without MPTCP was answered",
	FallbackThirdPacket: "the handshake's third packet had lost its MPTCP option",
	FallbackNoMapping:   "data came without a mapping",
	FallbackNoDataAck:   "data was acknowledged without a DATA_ACK",
	FallbackChecksum:    "a DSS checksum failed on the only subflow",
	FallbackPeer:        "the peer fell back",
}

// String says the reason in words.
func (r FallbackReason) String() string { return fallbackTexts[r] }
