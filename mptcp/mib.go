package mptcp

import (
	"fmt"

	"braid/tcp"
	"braid/wire"
)

// Metric is one counter under a name for people: that of the counter of Linux's MIBs which counts the same, as "nstat" prints it (Tcp...,
// TcpExt..., MPTcpExt...), or else a name of our own that begins with Braid.
type Metric struct {
	Name  string
	Value int64
	Gauge bool // how many there are now; otherwise how many there were since the start
}

// Metrics returns all counters (API-04), in an order that never changes. It allocates; it is not made for the hot path.
func (s *Stack) Metrics() []Metric {
	m := metrics{list: make([]Metric, 0, 160)}
	t := s.tcpTotals()
	m.tcp(&s.counters, &t)
	m.current(s)
	m.handshakes(&s.counters)
	m.data(&s.counters)
	m.addresses(&s.counters)
	m.ends(&s.counters)
	m.packets(&s.counters, &t)
	return m.list
}

// tcpTotals sums up what all subflows did, those that are gone included.
func (s *Stack) tcpTotals() tcp.Totals {
	t := s.retired
	for _, c := range s.conns {
		for _, sf := range c.subflows {
			if sf.tcp != nil {
				t.Add(sf.tcp)
			}
		}
	}
	return t
}

// metrics collects them.
type metrics struct{ list []Metric }

func (m *metrics) add(name string, v int64) { m.list = append(m.list, Metric{Name: name, Value: v}) }

// tcp are the counters of RFC 4022 and of Linux's extension of it.
func (m *metrics) tcp(n *Counters, t *tcp.Totals) {
	m.add("TcpActiveOpens", n.Dials+n.JoinsSent)
	m.add("TcpPassiveOpens", n.Accepts+n.JoinsReceivedUp)
	m.add("TcpAttemptFails", n.DialsFailed+n.JoinsSentRefused+n.JoinsSentFailed+n.HalfOpenExpired)
	m.add("TcpEstabResets", n.SubflowsLost)
	m.add("TcpInSegs", t.ReceivedSegs)
	m.add("TcpOutSegs", t.SentSegs)
	m.add("TcpRetransSegs", t.RetransSegs)
	m.add("TcpInErrs", n.DropMalformed)
	m.add("TcpOutRsts", n.ResetsSent+n.SubflowResetsSent)
	m.add("TcpInCsumErrors", n.DropChecksum)
	m.add("TcpExtSyncookiesSent", n.CookiesSent)
	m.add("TcpExtSyncookiesRecv", n.CookiesReturned)
	m.add("TcpExtListenOverflows", n.AcceptOverflows)
	m.add("TcpExtListenDrops", n.SYNsDropped+n.HalfOpenEvicted)
	m.add("TcpExtPAWSEstab", t.PAWSDrops)
	m.add("TcpExtTCPTimeouts", t.RTOs)
	m.add("TcpExtTCPLossProbes", t.TLPs)
	m.add("TcpExtTCPWinProbe", t.WindowProbes)
	m.add("TcpExtTCPKeepAlive", t.KeepAlives)
	m.add("TcpExtTCPChallengeACK", t.Challenges)
	m.add("TcpExtTCPTimeWaitOverflow", n.TimeWaitEvicted)
}

// current are gauges.
func (m *metrics) current(s *Stack) {
	var established, over int64
	for _, c := range s.conns {
		if !c.Established() {
			continue
		}
		established += int64(c.Subflows())
		if !c.fb.any() && !c.hs.plain {
			over++
		}
	}
	m.list = append(m.list, Metric{"TcpCurrEstab", established, true}, Metric{"MPTcpExtMPCurrEstab", over, true},
		Metric{"BraidConnections", int64(len(s.conns)), true}, Metric{"BraidMemoryBytes", s.Memory(), true})
}

// handshakes are how connections and subflows began, and fallbacks by reason.
func (m *metrics) handshakes(n *Counters) {
	m.add("MPTcpExtMPCapableSYNRX", n.CapableSYNsReceived)
	m.add("MPTcpExtMPCapableSYNTX", n.CapableSYNsSent)
	m.add("MPTcpExtMPCapableSYNACKRX", n.CapableSYNACKsReceived)
	m.add("MPTcpExtMPCapableACKRX", n.CapableACKsReceived)
	m.add("MPTcpExtMPCapableFallbackACK", n.FallbackThirdPacket)
	m.add("MPTcpExtMPCapableFallbackSYNACK", n.FallbackNotAnswered)
	m.add("MPTcpExtMPCapableSYNTXDrop", n.FallbackSYN)
	m.add("BraidFallbackConfigured", n.FallbackConfigured)
	m.add("BraidFallbackNotOffered", n.FallbackNotOffered)
	m.add("BraidFallbackNoMapping", n.FallbackNoMapping)
	m.add("BraidFallbackNoDataAck", n.FallbackNoDataAck)
	m.add("BraidFallbackPeer", n.FallbackPeer)
	m.add("MPTcpExtMPJoinNoTokenFound", n.JoinUnknownToken)
	m.add("MPTcpExtMPJoinSynRx", n.JoinsReceived)
	m.add("MPTcpExtMPJoinSynBackupRx", n.JoinSYNsBackup)
	m.add("MPTcpExtMPJoinSynAckRx", n.JoinSYNACKsReceived)
	m.add("MPTcpExtMPJoinSynAckBackupRx", n.JoinSYNACKsBackup)
	m.add("MPTcpExtMPJoinSynAckHMacFailure", n.JoinSYNACKsBadMAC)
	m.add("MPTcpExtMPJoinAckRx", n.JoinsReceivedUp)
	m.add("MPTcpExtMPJoinAckHMacFailure", n.JoinBadMAC-n.JoinSYNACKsBadMAC)
	m.add("MPTcpExtMPJoinRejected", n.JoinRefusedMax+n.JoinRefusedState)
	m.add("MPTcpExtMPJoinSynTx", n.JoinsSent)
	m.add("BraidJoinsUp", n.JoinsSentUp)
	m.add("BraidJoinsRefused", n.JoinsSentRefused)
	m.add("BraidJoinsFailed", n.JoinsSentFailed)
	m.add("BraidJoinsDropped", n.JoinsSentDropped)
	m.add("BraidDials", n.Dials)
	m.add("BraidDialsConnected", n.DialsConnected)
	m.add("BraidDialsFailed", n.DialsFailed)
	m.add("BraidRacersAborted", n.RacersAborted)
}

// data are the data sequence space's: mappings, checksums, reinjection.
func (m *metrics) data(n *Counters) {
	m.add("MPTcpExtMPTCPRetrans", n.Reinjections)
	m.add("BraidReinjectedBytes", n.ReinjectedBytes)
	m.add("BraidRedundantBytes", n.CopiedBytes)
	m.add("BraidDataTimeouts", n.DataTimeouts)
	m.add("MPTcpExtDSSNotMatching", n.MappingConflicts)
	m.add("MPTcpExtDSSCorruptionFallback", n.FallbackChecksum)
	m.add("MPTcpExtDSSCorruptionReset", n.ChecksumErrors-n.FallbackChecksum)
	m.add("MPTcpExtDataCsumErr", n.ChecksumErrors)
	m.add("BraidChecksumPresence", n.ChecksumPresence)
	m.add("MPTcpExtInfiniteMapTx", n.InfiniteSent)
	m.add("MPTcpExtInfiniteMapRx", n.InfiniteReceived)
	m.add("BraidInfiniteRefused", n.InfiniteRefused)
	m.add("MPTcpExtOFOQueue", n.OutOfOrderChunks)
	m.add("MPTcpExtNoDSSInWindow", n.UnmappedResets)
	m.add("BraidStrippedResets", n.StrippedResets)
	m.add("BraidHeldResets", n.HeldResets)
	m.add("BraidMappingsRefused", n.MappingsRefused)
	m.add("BraidDataAcksBeyond", n.DataAcksBeyond)
	m.add("BraidDataFINsRefused", n.DataFINsRefused)
	m.add("BraidDataFINRepeats", n.FINRepeats)
	m.add("BraidDuplicateBytes", n.DuplicateBytes)
	m.add("BraidBeyondWindowBytes", n.BeyondWindowBytes)
	m.add("BraidDroppedMemoryBytes", n.DroppedMemoryBytes)
	m.add("BraidPenalties", n.Penalties)
}

// addresses are announcements, removals and priorities.
func (m *metrics) addresses(n *Counters) {
	m.add("MPTcpExtAddAddr", n.AddAddrsReceived)
	m.add("MPTcpExtAddAddrTx", n.AddAddrsSent)
	m.add("MPTcpExtAddAddrTxDrop", n.AddAddrsGivenUp)
	m.add("MPTcpExtEchoAdd", n.AddAddrsEchoed)
	m.add("MPTcpExtEchoAddTx", n.AddAddrEchoesSent)
	m.add("MPTcpExtEchoAddTxDrop", n.AddAddrEchoesLost)
	m.add("MPTcpExtPortAdd", n.AddAddrsWithPort)
	m.add("MPTcpExtAddAddrDrop", n.AddAddrsClashing+n.AddAddrsRefused+n.AddAddrsOverLimit+n.AddAddrsUnwanted)
	m.add("BraidAddAddrBadMAC", n.AddAddrsBadMAC)
	m.add("BraidAddAddrAccepted", n.AddAddrsAccepted)
	m.add("BraidAddAddrKnown", n.AddAddrsKnown)
	m.add("BraidAddAddrRepeated", n.AddAddrsRepeated)
	m.add("BraidEchoAddUnwanted", n.AddAddrEchoesUnwanted)
	m.add("BraidAnnouncedJoins", n.AnnouncedJoins)
	m.add("BraidAnnouncedJoinsLost", n.AnnouncedJoinsLost)
	m.add("MPTcpExtRmAddr", n.RemoveAddrsReceived)
	m.add("MPTcpExtRmAddrDrop", n.RemoveAddrsUnknown)
	m.add("MPTcpExtRmAddrTx", n.RemoveAddrsSent)
	m.add("MPTcpExtRmAddrTxDrop", n.RemoveAddrsForgotten)
	m.add("MPTcpExtRmSubflow", n.RemovedSubflowsClosed)
	m.add("BraidRmSubflowKept", n.RemovedSubflowsKept)
	m.add("MPTcpExtMPPrioTx", n.PriosSent)
	m.add("MPTcpExtMPPrioRx", n.PriosReceived)
}

// ends are how subflows and connections came to their end, resets by reason (RFC 8684, Section 3.6).
func (m *metrics) ends(n *Counters) {
	m.add("MPTcpExtMPFailTx", n.FailsSent)
	m.add("MPTcpExtMPFailRx", n.FailsReceived)
	m.add("MPTcpExtMPFastcloseTx", n.FastClosesSent)
	m.add("MPTcpExtMPFastcloseRx", n.FastClosesReceived)
	m.add("BraidFastcloseRefused", n.FastClosesRefused)
	var sent, received int64
	for i := range n.ResetReasonsOut {
		sent += n.ResetReasonsOut[i]
		received += n.ResetReasonsIn[i]
	}
	m.add("MPTcpExtMPRstTx", sent)
	m.add("MPTcpExtMPRstRx", received)
	for i, name := range resetReasonNames {
		m.add(fmt.Sprintf("BraidRst%sTx", name), n.ResetReasonsOut[i])
		m.add(fmt.Sprintf("BraidRst%sRx", name), n.ResetReasonsIn[i])
	}
	m.add("MPTcpExtSubflowStale", n.StaleSubflows)
	m.add("MPTcpExtSubflowRecover", n.RecoveredSubflows)
	m.add("BraidSubflowsLost", n.SubflowsLost)
}

// resetReasonNames are the reasons of an MP_TCPRST in metrics.
var resetReasonNames = [...]string{
	wire.ResetUnspecified: "Unspecified",
	wire.ResetMPTCP:       "Protocol",
	wire.ResetResources:   "Resources",
	wire.ResetProhibited:  "Prohibited",
	wire.ResetTooMuchData: "TooMuchData",
	wire.ResetPerformance: "Performance",
	wire.ResetMiddlebox:   "Middlebox",
}

// packets are the Stack's edges: what came, what left, what was dropped before it reached a subflow.
func (m *metrics) packets(n *Counters, t *tcp.Totals) {
	m.add("BraidPacketsIn", n.PacketsIn)
	m.add("BraidPacketsOut", n.PacketsOut)
	m.add("BraidBytesIn", n.BytesIn)
	m.add("BraidBytesOut", n.BytesOut)
	m.add("BraidSentBytes", t.SentBytes)
	m.add("BraidRetransBytes", t.RetransBytes)
	m.add("BraidReceivedBytes", t.ReceivedBytes)
	m.add("BraidDeliveredBytes", t.Delivered)
	m.add("BraidLostSegs", t.LostSegs)
	m.add("BraidSpuriousRecoveries", t.SpuriousRecoveries)
	m.add("BraidSYNsReceived", n.SYNsReceived)
	m.add("BraidDropNotTCP", n.DropNotTCP)
	m.add("BraidDropNotOurs", n.DropNotOurs)
	m.add("BraidDropUnknownFlow", n.DropUnknownFlow)
	m.add("BraidDropUnknownTag", n.DropUnknownTag)
	m.add("BraidDropVersion", n.DropVersion)
	m.add("BraidDropHalfOpen", n.DropHalfOpen)
	m.add("BraidDropICMP", n.DropICMP)
	m.add("BraidICMPTooBig", n.ICMPTooBig)
	m.add("BraidICMPHard", n.ICMPHard)
	m.add("BraidICMPSoft", n.ICMPSoft)
	m.add("BraidSendsTooLarge", n.SendsTooLarge)
	m.add("BraidResetsLimited", n.ResetsLimited)
	m.add("BraidVersionsSent", n.VersionsSent)
	m.add("BraidChallengesSent", n.ChallengesSent)
	m.add("BraidRebindings", n.Rebindings)
	m.add("BraidAmplificationHeld", n.AmplificationHeld)
	m.add("BraidPathProbes", n.PathProbes)
	m.add("BraidHalfOpenEvicted", n.HalfOpenEvicted)
	m.add("BraidHalfOpenExpired", n.HalfOpenExpired)
}
