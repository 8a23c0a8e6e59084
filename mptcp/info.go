package mptcp

import (
	"net/netip"
	"time"

	"braid/buffer"
	"braid/clock"
	"braid/schedule"
	"braid/seq"
	"braid/tcp"
)

// connStats count what a connection did.
type connStats struct {
	read, delivered   int64
	acked             int64 // bytes DATA_ACKed when the connection ended
	duplicateIn       int64
	beyondWindow      int64
	droppedMemory     int64
	discarded         int64
	arrivals          int64 // chunks that reached data level with something new
	queuedSum         queueSums
	queuedMaxBytes    int64
	queuedMaxPackets  int
	goneNew, goneCopy int64 // of subflows that are gone
	goneReinject      int64
}

// queueSums add up the level of the out-of-order queue after each arrival.
type queueSums struct{ bytes, packets float64 }

// queued notes the level of the out-of-order queue after an arrival that touched it; arrivals that did not find it empty.
func (s *connStats) queued(q *buffer.Reassembly) {
	s.queuedSum.bytes += float64(q.Bytes())
	s.queuedSum.packets += float64(q.Len())
	s.queuedMaxBytes = max(s.queuedMaxBytes, q.Bytes())
	s.queuedMaxPackets = max(s.queuedMaxPackets, q.Len())
}

// gone keeps the totals of a subflow that is no more.
func (s *connStats) gone(sf *Subflow) {
	d := &sf.data.stats
	s.goneNew += d.newBytes
	s.goneCopy += d.copiedBytes
	s.goneReinject += d.reinjectedBytes
}

// subflowStats count what the data plane did with a subflow.
type subflowStats struct {
	newBytes, reinjectedBytes, copiedBytes int64
	receivedBytes, duplicateIn             int64
	lostBytes                              int64
	role                                   schedule.Assignment
	roleChanges                            int64
	viewStale                              bool // the scheduler's view of it is out of date
}

// Info is a snapshot of a connection. Sizes are in bytes, offsets count from the first byte, which is 1.
type Info struct {
	Established    bool
	Err            error
	Fallback       FallbackReason // NoFallback: MPTCP
	Checksums      bool           // DSS checksums are in use
	LocalClosed    bool           // our stream has ended
	LocalFINAcked  bool           // ... and the peer has DATA_ACKed its end
	RemoteFinished bool           // the peer's stream has come to its end

	Written, Acked, Unsent int64 // the application wrote; the peer DATA_ACKed; no subflow was given yet
	SendLimit              int64 // most that may be written and not DATA_ACKed
	SendWindow             int64 // room that the peer advertises beyond Acked
	Held                   int64 // memory of data that is DATA_ACKed and that subflows still hold
	ReinjectQueue          int64 // waits for another carrier

	Received, Read, Readable int64 // in order from the peer; by the application; waits for it
	ReceiveWindow            int64 // advertised, beyond what was received in order
	ReceiveBuffer            int64 // size of the receive buffer
	OutOfOrder               int64 // bytes in the out-of-order queue now
	OutOfOrderPackets        int   // ... and packets
	OutOfOrderMax            int64 // the most bytes there ever were
	OutOfOrderMaxPackets     int
	OutOfOrderSum            float64 // sum of the queue's bytes over all arrivals: divided by Arrivals the mean that an arriving packet finds
	OutOfOrderPacketSum      float64 // likewise packets
	Arrivals                 int64   // packets that brought something new to the connection

	NewBytes, ReinjectedBytes, RedundantBytes int64 // sent first; sent again on another subflow; copied at the scheduler's wish
	DuplicateBytes                            int64 // received more than once at data level
	BeyondWindowBytes, DroppedBytes           int64 // refused: outside the window; for want of memory, or after a checksum failure

	Subflows []SubflowInfo

	PeerAddresses []PeerAddress // that the peer announced and that are kept, in that order
}

// PeerAddress is an address that the peer announced (RFC 8684, Section 3.4.1).
type PeerAddress struct {
	ID     uint8
	Addr   netip.AddrPort
	Failed bool // no subflow could be opened to it
}

// SubflowInfo is a snapshot of one subflow.
type SubflowInfo struct {
	ID            int
	Path          PathID
	PathName      string
	Local, Remote netip.AddrPort
	LocalID       uint8 // address IDs, ours and the peer's (RFC 8684, Section 3.2)
	RemoteID      uint8
	State         string // in words: SYN sent, active, ...
	Initial       bool
	BackupLocal   bool // we asked the peer to use it as backup
	BackupPeer    bool // the peer asked us to
	Role          schedule.Role
	Reason        schedule.Reason
	RoleChanges   int64
	TimedOut      bool // its timer expired and it has not been heard since
	Overdue       bool // an ACK is late

	NewBytes, ReinjectedBytes, RedundantBytes int64 // payload pushed to it: first time, reinjected, copied
	ReceivedBytes, DuplicateBytes             int64 // payload from it; of that, received elsewhere before
	Carried                                   int64 // payload in flight or waiting in its tcp
	Unmapped                                  int64 // payload that waits for its mapping
	LastHeard                                 clock.Time
	Silent                                    time.Duration // since LastHeard
	Up                                        time.Duration // how long it has been there

	TCP tcp.Info
}

// Info returns a snapshot. It allocates; it is not made for the hot path.
func (c *Conn) Info(now clock.Time) Info {
	s, r := &c.snd, &c.rcv
	i := Info{
		Established: c.Established(), Err: c.err, Fallback: c.fb.reason, Checksums: c.hs.checksums && !c.fb.active,
		LocalClosed: c.fin.queued, LocalFINAcked: c.fin.acked, RemoteFinished: c.fin.peerReached,
		Written: s.end() - 1, Acked: s.acked() - 1, Unsent: s.waiting(), SendLimit: s.limit,
		SendWindow: max(0, s.edge-s.acked()), Held: s.buf.Held(), ReinjectQueue: s.reinject.Len(),
		Received: c.stats.delivered, Read: c.stats.read, Readable: r.queue.Bytes(),
		ReceiveWindow: max(0, r.edge-r.next), ReceiveBuffer: r.size(),
		OutOfOrder: r.ooo.Bytes(), OutOfOrderPackets: r.ooo.Len(), OutOfOrderMax: c.stats.queuedMaxBytes,
		OutOfOrderMaxPackets: c.stats.queuedMaxPackets, OutOfOrderSum: c.stats.queuedSum.bytes,
		OutOfOrderPacketSum: c.stats.queuedSum.packets, Arrivals: c.stats.arrivals,
		NewBytes: c.stats.goneNew, ReinjectedBytes: c.stats.goneReinject, RedundantBytes: c.stats.goneCopy,
		DuplicateBytes: c.stats.duplicateIn, BeyondWindowBytes: c.stats.beyondWindow,
		DroppedBytes: c.stats.droppedMemory + c.stats.discarded,
	}
	if c.state == connOver {
		i.Acked = c.stats.acked
	}
	for _, sf := range c.subflows {
		w := c.subflowInfo(now, sf)
		i.NewBytes += w.NewBytes
		i.ReinjectedBytes += w.ReinjectedBytes
		i.RedundantBytes += w.RedundantBytes
		i.Subflows = append(i.Subflows, w)
	}
	for _, a := range c.pm.known {
		i.PeerAddresses = append(i.PeerAddresses, PeerAddress{a.id, a.addr, a.failed})
	}
	return i
}

// subflowInfo describes one subflow.
func (c *Conn) subflowInfo(now clock.Time, sf *Subflow) SubflowInfo {
	d := &sf.data
	w := SubflowInfo{
		ID: sf.id, Path: sf.path, Local: sf.local, Remote: sf.remote,
		LocalID: sf.localID, RemoteID: sf.remoteID, State: sf.state.String(), Initial: sf.initial,
		BackupLocal: sf.backupLocal, BackupPeer: sf.backupPeer,
		Role: d.stats.role.Role, Reason: d.stats.role.Reason, RoleChanges: d.stats.roleChanges,
		TimedOut: d.stale.timedOut, Overdue: d.stale.overdue,
		NewBytes: d.stats.newBytes, ReinjectedBytes: d.stats.reinjectedBytes, RedundantBytes: d.stats.copiedBytes,
		ReceivedBytes: d.stats.receivedBytes, DuplicateBytes: d.stats.duplicateIn,
		Carried: d.carried.held, Unmapped: d.backlog.unmapped, LastHeard: d.stale.heardAt, Silent: now.Sub(d.stale.heardAt), Up: now.Sub(sf.opened),
	}
	if p, ok := c.stack.Path(sf.path); ok {
		w.PathName = p.Name
	}
	if sf.tcp != nil {
		w.TCP = sf.tcp.Info(now)
	}
	return w
}

// Subflows returns how many subflows may carry data.
func (c *Conn) Subflows() int {
	n := 0
	for _, sf := range c.subflows {
		if sf.state == active {
			n++
		}
	}
	return n
}

// dataAck returns the data sequence number that every segment acknowledges.
func (c *Conn) dataAck() seq.Data { return c.hs.peerIDSN.At(c.rcv.next) }

// OutOfOrder returns the level of the out-of-order queue: what arrived and waits because an earlier data byte is missing.
// Unlike Info it may be asked for on every packet.
func (c *Conn) OutOfOrder() (bytes int64, packets int) { return c.rcv.ooo.Bytes(), c.rcv.ooo.Len() }

// ID is the number of the connection in its Stack and in traces.
func (c *Conn) ID() uint32 { return c.id }

// Client reports whether this host opened the connection.
func (c *Conn) Client() bool { return c.client }
