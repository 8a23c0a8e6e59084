package mptcp

// Counters count what happened to a Stack since its start (API-04). Every packet that is dropped, every fallback and every
// reset shows in one of them.
type Counters struct {
	PacketsIn, PacketsOut, BytesIn, BytesOut int64

	// Packets dropped before they reached a subflow.
	DropMalformed   int64 // IP, shim or TCP header that cannot be
	DropChecksum    int64 // wrong TCP checksum (RFC 9293, Section 3.1)
	DropNotTCP      int64 // another protocol than TCP and ICMP
	DropNotOurs     int64 // destination is no address of the path, or the path is gone
	DropUnknownFlow int64 // a segment of no connection that gets no RST
	DropUnknownTag  int64 // UDP: tag of no flow
	DropVersion     int64 // UDP: version of the envelope not spoken
	DropHalfOpen    int64 // a segment that a half-open connection has no use for
	DropICMP        int64 // ICMP that is no error, or about nothing in flight

	// Resets and rate limits of the Stack itself.
	ResetsSent        int64 // RST for segments of no connection
	ResetsLimited     int64 // ... not sent because too many were
	VersionsSent      int64 // UDP: version negotiations sent
	ChallengesSent    int64 // UDP: challenges of new outer addresses
	Rebindings        int64 // UDP: outer addresses that passed the challenge
	AmplificationHeld int64 // UDP: packets not sent to an unproven address

	ICMPTooBig, ICMPHard, ICMPSoft int64 // ICMP errors that were believed
	SubflowResetsSent              int64 // RSTs of subflows
	SendsTooLarge                  int64 // packets that the machine refused for their size

	// Connections.
	Dials, DialsConnected, DialsFailed int64
	Accepts                            int64 // connections that entered an accept queue
	SYNsReceived                       int64
	SYNsDropped                        int64 // refused because of MaxConns or memory
	CookiesSent, CookiesReturned       int64 // SYNs answered without keeping anything, and those that came back
	HalfOpenEvicted                    int64 // half-open connections that made room for newer ones
	HalfOpenExpired                    int64 // half-open connections and joins never completed
	AcceptOverflows                    int64 // completed handshakes that found the accept queue full
	RacersAborted                      int64 // subflows that lost the race of a Dial
	TimeWaitEvicted                    int64 // TIME-WAIT cut short because of too many

	// Fallback to plain TCP during the handshake, by reason.
	FallbackConfigured, FallbackNotOffered, FallbackNotAnswered, FallbackSYN, FallbackThirdPacket int64

	// Joins.
	JoinsSent, JoinsSentUp, JoinsSentRefused, JoinsSentFailed                    int64 // as initiator: attempts, successes, answered by RST, never answered or invalid
	JoinsSentDropped                                                             int64 // as initiator: attempts whose connection or path ended first
	JoinsReceived, JoinsReceivedUp, JoinUnknownToken, JoinBadMAC, JoinRefusedMax int64 // as listener: SYNs, successes, refusals
	JoinRefusedState                                                             int64 // as listener: the connection is closing, fell back, or said flag C

	SubflowsLost    int64    // subflows that ended otherwise than by an orderly close
	ResetReasonsOut [7]int64 // MP_TCPRST sent, by reason; larger ones count as 0
	ResetReasonsIn  [7]int64 // MP_TCPRST received
	PathProbes      int64    // probes of silent paths

	OptionCounters
	DataCounters
	AddressCounters
}

// OptionCounters count MPTCP's options of handshakes as they pass, and subflows that fall silent and come back.
type OptionCounters struct {
	CapableSYNsSent        int64 // SYNs with MP_CAPABLE, repetitions included
	CapableSYNACKsReceived int64 // SYN/ACKs with MP_CAPABLE that made a connection MPTCP
	CapableSYNsReceived    int64 // SYNs with an MP_CAPABLE at a listener
	CapableACKsReceived    int64 // third packets with both keys
	JoinSYNsBackup         int64 // as listener: MP_JOINs that ask for a backup
	JoinSYNACKsReceived    int64 // as initiator: MP_JOINs with the right HMAC
	JoinSYNACKsBackup      int64 // ... that ask for a backup
	JoinSYNACKsBadMAC      int64 // ... with a wrong HMAC; JoinBadMAC counts them too
	InfiniteSent           int64 // infinite mappings, repetitions included
	InfiniteReceived       int64 // infinite mappings obeyed
	StaleSubflows          int64 // retransmission timers that expired while the subflow still counted as alive
	RecoveredSubflows      int64 // silent subflows that answered again
}

// Counters returns the Stack's counters; they go on counting.
func (s *Stack) Counters() *Counters { return &s.counters }
