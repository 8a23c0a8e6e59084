package mptcp

// DataCounters are the Counters of the data plane: fallback, checksums, mappings, reinjection, close.
type DataCounters struct {
	// Fallback to plain TCP after the handshake, by reason.
	FallbackNoMapping, FallbackNoDataAck, FallbackChecksum, FallbackPeer int64
	InfiniteRefused                                                      int64 // infinite mappings that came where falling back is impossible: subflow reset

	ChecksumErrors     int64 // mappings whose DSS checksum was wrong
	ChecksumPresence   int64 // checksum missing though negotiated, or there though not: subflow reset
	FailsSent          int64 // MP_FAIL
	FailsReceived      int64
	MappingConflicts   int64 // the same bytes mapped twice, differently: subflow reset
	MappingsRefused    int64 // too many at once
	UnmappedResets     int64 // subflows reset because data had no mapping
	StrippedResets     int64 // subflows reset because their ACKs came without DATA_ACKs
	DataAcksBeyond     int64 // DATA_ACKs for data that was never sent
	DataFINsRefused    int64 // DATA_FINs that cannot be: two different ones, or before data that was received
	OutOfOrderChunks   int64 // arrivals that had to wait for others
	DuplicateBytes     int64 // payload received before, on whatever subflow
	BeyondWindowBytes  int64 // payload beyond the connection's window or behind a DATA_FIN
	DroppedMemoryBytes int64 // out-of-order payload dropped because of StackMemory
	FastClosesSent     int64 // connections aborted with MP_FASTCLOSE
	FastClosesReceived int64
	FastClosesRefused  int64 // with a wrong key
	PriosReceived      int64 // MP_PRIO
	Reinjections       int64 // ranges queued for another subflow
	ReinjectedBytes    int64 // payload sent again on another subflow
	CopiedBytes        int64 // payload sent redundantly
	DataTimeouts       int64 // data-level retransmission timeouts that found something missing
	FINRepeats         int64 // DATA_FINs sent again
	HeldResets         int64 // subflows reset because they held too much that was long DATA_ACKed
	Penalties          int64 // windows halved at the scheduler's request
}
