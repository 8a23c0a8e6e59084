package tcp

// Totals add up what connections did; see Info for what most of it means. Bytes are payload.
type Totals struct {
	SentSegs, RetransSegs, ReceivedSegs, LostSegs int64
	SentBytes, RetransBytes, ReceivedBytes        int64
	Delivered                                     int64 // bytes that the peer acknowledged, cumulatively or selectively

	RTOs, TLPs, SpuriousRecoveries int64
	WindowProbes, KeepAlives       int64 // probes of closed windows and of silent peers
	Challenges, PAWSDrops          int64 // see Conn.Challenges
}

// Add adds what c did so far. It changes nothing in c.
func (t *Totals) Add(c *Conn) {
	s := &c.snd
	t.SentSegs += s.stats.segs
	t.RetransSegs += s.stats.retransSegs
	t.ReceivedSegs += c.rcv.segments
	t.LostSegs += s.stats.lostSegs
	t.SentBytes += s.stats.bytes
	t.RetransBytes += s.stats.retransBytes
	t.ReceivedBytes += c.rcv.bytes
	t.Delivered += s.sampler.delivered
	t.RTOs += s.stats.rtos
	t.TLPs += s.stats.tlps
	t.SpuriousRecoveries += s.stats.undone
	t.WindowProbes += s.persist.probes
	t.KeepAlives += c.keep.probes
	t.Challenges += c.challenges
	t.PAWSDrops += c.pawsDrops
}
