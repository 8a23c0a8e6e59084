package tcp

import (
	"time"

	"braid/clock"
	"braid/wire"
)

// What is assumed of a peer that sends no MSS option (RFC 9293, Section 3.7.1), and the least that is believed.
const (
	defaultMSS4 = 536
	defaultMSS6 = 1220
	minMSS      = 88 // a segment full of options still carries 48 bytes
)

const (
	minMTU4 = 576
	minMTU6 = 1280
	baseMTU = 1280 // passes nearly everywhere (RFC 8899, Section 5.1.2): the first step down in a black hole

	blackHoleRTOs = 3 // expiries in a row before a size is suspected, and between two steps down

	probeTries     = 3                // lost probes of one size before the size counts as too large (RFC 8899, Section 5.1.2)
	probeStep      = 16               // bytes: a search stops when it knows the size as well as that
	raiseAfter     = 10 * time.Minute // after a report, and between searches (RFC 1191, Section 6.3; RFC 8201, Section 4)
	searchAfter    = 15 * time.Second // after a black hole: it may have been an outage (RFC 8899, Section 5.1.1)
	probeAgainWait = time.Second      // between a lost probe and the next one
)

// pathMTU knows how large a packet may be. It starts at the configured size, goes down on reports and in black holes, and
// up again by probing (packetization layer path MTU discovery, RFC 4821 and RFC 8899): a probe is an ordinary segment of new
// payload, larger than the others. Sizes are packets in bytes, counted as Config.Overhead says.
type pathMTU struct {
	current  int // assumed to pass
	top      int // probed up to here
	floor    int
	overhead int // to the start of the TCP header
	peerMSS  int
	offered  uint16 // our MSS option
	base     int    // bytes for options and payload: what current and peerMSS leave

	at        clock.Time // when to look whether a larger size passes; Never: not wanted
	high      int        // smallest size known not to pass; top+1 at the start of a search
	searching bool
	stepDown  int  // expiries at which the next step down is taken
	suspected bool // a step down was taken and nothing was acknowledged since
	asked     int  // since the last progress, how often Conn.Probe sent again what an expiry would have

	probe mtuProbe
}

// mtuProbe is the one probe under way.
type mtuProbe struct {
	size       int // of the packet
	tries      int
	wanted     bool  // the next full segment of new payload may be this large
	sent       bool  // it is outstanding
	start, end int64 // offsets
}

func (m *pathMTU) init(cfg *Config) {
	m.overhead = cfg.Overhead
	m.floor = cfg.MinMTU
	if m.floor <= 0 {
		m.floor = minMTU4
		if cfg.Overhead >= 40 {
			m.floor = minMTU6
		}
	}
	m.current = cfg.MTU
	m.floor = min(m.floor, m.current)
	m.top = max(cfg.ProbeMTU, cfg.MTU)
	m.high = m.top + 1
	m.at = clock.Never
	m.stepDown = blackHoleRTOs
	m.peerMSS = 65535
	// RFC 6691, Section 2: the interface's MTU without the fixed headers; options are not taken off.
	m.offered = uint16(min(max(m.top-m.overhead-wire.TCPHeaderLen, minMSS), 65535))
	m.update()
}

// setPeerMSS takes the peer's option; 0: it sent none.
func (m *pathMTU) setPeerMSS(mss int) {
	if mss == 0 {
		mss = defaultMSS4
		if m.overhead >= 40 {
			mss = defaultMSS6
		}
	}
	m.peerMSS = max(mss, minMSS)
	m.top = min(m.top, m.peerMSS+wire.TCPHeaderLen+m.overhead)
	m.current, m.floor = min(m.current, m.top), min(m.floor, m.top)
	m.high = m.top + 1
	m.update()
}

func (m *pathMTU) update() { m.base = m.room(m.current) }

// room returns the bytes for options and payload in a packet of the given size.
func (m *pathMTU) room(size int) int {
	return max(minMSS, min(m.peerMSS, size-m.overhead-wire.TCPHeaderLen))
}

// lower goes down to a size, not below the floor, and reports whether that is less than now.
func (m *pathMTU) lower(size int) bool {
	size = max(size, m.floor)
	if size >= m.current {
		return false
	}
	m.current = size
	m.probe = mtuProbe{}
	m.searching = false
	m.update()
	return true
}

// HandleMTU takes a report that packets larger than mtu do not pass: an ICMP message whose quoted sequence number the owner has verified
// with InFlight, or a local send error. The value is never raised by a report and never falls below the configured
// floor (RFC 1191, Section 3; RFC 8201, Section 4). What was too large is sent again at once, in smaller segments and without a
// reaction of congestion control.
func (c *Conn) HandleMTU(now clock.Time, mtu int) {
	if c.mtu.lower(mtu) {
		c.mtu.at = now.Add(raiseAfter)
		c.mssChanged()
		c.snd.resendLarge(now)
	}
}

// mssChanged tells the sender the payload of a full segment.
func (c *Conn) mssChanged() { c.snd.setMSS(c.MSS()) }

// blackHole looks, after an expiry of the retransmission timer, whether packets of this size may be lost for their size: several
// expiries in a row although more than a smaller packet is outstanding (RFC 4821, Section 7.7; RFC 8899, Section 4.3).
func (c *Conn) blackHole(now clock.Time) {
	m := &c.mtu
	if c.snd.backoffs()+m.asked < m.stepDown {
		return
	}
	step, outstanding := m.floor, c.snd.nxt()-c.snd.una()
	if m.current > baseMTU && outstanding > int64(m.room(baseMTU)) {
		step = baseMTU
	}
	if outstanding <= int64(m.room(step)) || !m.lower(step) {
		return
	}
	m.stepDown += blackHoleRTOs
	m.suspected = true
	m.at = now.Add(searchAfter)
	c.mssChanged()
}

// mtuProgress follows an ACK of new data: the path works at this size, and a probe may have arrived.
func (c *Conn) mtuProgress(now clock.Time) {
	m := &c.mtu
	m.stepDown, m.asked = blackHoleRTOs, 0
	if m.suspected { // the path answers: if it was an outage, the size passes again
		m.suspected, m.at = false, now
	}
	if !m.probe.sent || c.snd.una() < m.probe.end {
		return
	}
	m.current = m.probe.size
	m.probe = mtuProbe{}
	m.update()
	c.mssChanged()
	m.search(now)
}

// mtuTimeout begins a search, or goes on with it after a lost probe.
func (c *Conn) mtuTimeout(now clock.Time) {
	m := &c.mtu
	m.at = clock.Never
	if !m.searching {
		m.searching = true
		m.high = m.top + 1
		m.probe = mtuProbe{}
	}
	m.search(now)
}

// search decides about the next probe: the largest size first, since what made the size go down has often gone, then by
// halves.
func (m *pathMTU) search(now clock.Time) {
	size := (m.current + m.high) / 2
	if m.high > m.top {
		size = m.top
	}
	if m.probe.size != size {
		m.probe = mtuProbe{size: size}
	}
	if m.current >= m.top || m.high-m.current <= probeStep || size <= m.current {
		m.searching = false
		m.probe = mtuProbe{}
		if m.current < m.top {
			m.at = now.Add(raiseAfter)
		}
		return
	}
	m.probe.wanted = true
}

// lost notes that the probe's bytes are sent again: it did not arrive.
func (m *pathMTU) lost(now clock.Time) {
	m.probe.sent = false
	if m.probe.tries++; m.probe.tries >= probeTries {
		m.high = m.probe.size
	}
	m.at = now.Add(probeAgainWait)
}

// payloadRoom returns the payload of the next segment beside used option bytes, and whether that is a probe's: one is wanted
// and n bytes, what can leave of the next chunk, are enough for it.
func (m *pathMTU) payloadRoom(used int, n int64) (room int, probe bool) {
	if m.probe.wanted {
		if room = m.room(m.probe.size) - used; n >= int64(room) {
			return room, true
		}
	}
	return m.base - used, false
}

// sent notes that the probe leaves.
func (m *pathMTU) sent(t *transmission) {
	m.probe.wanted, m.probe.sent = false, true
	m.probe.start, m.probe.end = t.Start, t.Start+int64(t.Len)
}
