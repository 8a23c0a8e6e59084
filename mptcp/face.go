package mptcp

/*
Public API of package mptcp (STACK = builder of the stack, DATA = builder of the connection's data plane):

STACK
	func NewStack(cfg Config) *Stack
	func (s *Stack) AddPath(now, Path) PathID
	func (s *Stack) RemovePath(now, PathID)                      // the interface vanished: its subflows are dropped, their data reinjected
	func (s *Stack) Path(id) (Path, bool)
	func (s *Stack) Listen(now, port uint16, addr netip.Addr) (*Listener, error) // addr zero: any. (l *Listener) Close(now), Accept() (*Conn, bool) (queue bounded by Backlog)
	func (s *Stack) Dial(now, Target) (*Conn, error)             // Target{Remote []netip.AddrPort, Paths []PathID (best known first; nil: all)}
	func (s *Stack) HandlePacket(now, path PathID, from netip.AddrPort, b []byte)
	func (s *Stack) HandleTimeout(now)
	func (s *Stack) PollPacket(now, buf []byte) (Packet, bool)   // buf at least the largest MTU
	func (s *Stack) NextTimeout() clock.Time
	func (s *Stack) PollEvent() (Event, bool)
	func (s *Stack) Counters() *Counters                         // plain struct of int64: every drop, fallback, reset reason, join outcome, reinjection, checksum error (API-04)
	func (s *Stack) Conns() iteration for Info; func (s *Stack) Memory() int64

	type Event struct { Kind EventKind; Conn *Conn; Listener *Listener; Subflow int; Err error }
	EventAccept, EventConnected, EventReadable, EventWritable, EventClosed, EventSubflowUp, EventSubflowDown
	(Readable/Writable are edge events, at most one pending of each kind per connection)

DATA
	func (c *Conn) Read(now, p []byte) (int, error)    // ErrWouldBlock if nothing is there; io.EOF after the peer's DATA_FIN / FIN; the connection's error after that
	func (c *Conn) Write(now, p []byte) (int, error)   // takes what fits (n < len(p) possible, with ErrWouldBlock); copies once
	func (c *Conn) CloseWrite(now) error               // DATA_FIN after everything written
	func (c *Conn) Close(now) error                    // orderly; with unread data it aborts (TCP-08, LNX-13). Never blocks: the Stack finishes in the background (lingers at most UserTimeout)
	func (c *Conn) Abort(now)                          // MP_FASTCLOSE
	func (c *Conn) Readable() bool, Writable() bool, Err() error, Established() bool
	func (c *Conn) LocalAddr/RemoteAddr() netip.AddrPort // of the first subflow, even after it closed (API-02)
	func (c *Conn) Info(now) Info                      // connection and per-subflow state, plain values; out-of-order queue bytes and packets; redundant, reinjected, duplicate bytes; fallback and why
	c.User any                                         // the driver's own
	Errors: ErrWouldBlock, ErrRefused, ErrReset, ErrTimeout, ErrAborted, net.ErrClosed (stdlib), ErrNoPath ... Errors wrap so that errors.Is works and the text says what to do.

Seam between STACK and DATA (unexported)
  STACK owns: stack.go (Stack, demux maps, config defaults), timers.go (heap of conns by deadline, intrusive index), listener.go, dial.go (race), token.go,
     capable.go (MP_CAPABLE handshake both roles), join.go (MP_JOIN both roles), pathmanager.go (client opens one subflow per path; reopening; probing of silent paths),
     subflow.go (Subflow, its states with a transition table), envelope.go (UDP shim: tags, rebinding with challenge/response, 3x amplification limit, version negotiation, keep-alive),
     packet.go (build: IP header or shim + TCP header + payload copied with its checksum in one go; parse and verify), reset.go (RST for no one's segments, rate-limited), event.go, counters.go, icmp.go (MTU and unreachable on IP paths).
  DATA owns: conn.go (Conn), conn_write.go, conn_read.go, conn_poll.go (what goes out next on which subflow), conn_receive.go (segment -> mappings -> reassembly -> window),
     mapping.go (per-subflow mapping table), dss.go (filling and reading DSS, checksums), window.go (both directions' shared edges), reinject.go, stale.go, views.go (scheduler views and roles), carried.go (what each subflow carries),
     datafin.go (DATA_FIN and close sequence), fallback.go, fail.go (MP_FAIL), fastclose.go, prio.go, info.go; and buffer/send.go.

  type Conn struct {
	stack *Stack; id uint32; client bool
	hs    handshake      // STACK: keys, tokens, IDSNs, checksums negotiated, no-join flags, confirmed (data-level proof seen: JOIN-01), dial race state
	pm    pathManager    // STACK
	subflows []*Subflow  // established or opening, ascending by id
	...                  // DATA
  }
  type Subflow struct {
	conn *Conn; id int; path PathID; tcp *tcp.Conn
	local, remote netip.AddrPort; localID, remoteID uint8
	initial, backupLocal, backupPeer bool
	state  subflowState  // STACK: synSent, synReceived, preEstablished (JOIN-10), active, closing, gone
	env    envelope      // STACK
	join   joinState     // STACK
	data   subflowData   // DATA: mappings, carried ranges, roles, last heard, reinjection state
  }
  STACK -> DATA
	c.init(now)                                  // new connection object, before any packet; opens nothing
	c.established(now)                           // the first subflow completed its handshake; c.fallback already set if it is plain TCP
	c.subflowActive(now, sf)                     // sf may carry data from now on
	c.handleSegment(now, sf, seg, res tcp.Result)// after sf.tcp.HandleSegment and after STACK looked at handshake options: DSS, MP_PRIO, MP_FAIL, FASTCLOSE, payload (NextReceived), releases, DATA_ACK; unacceptable segments never get here
	c.subflowGone(now, sf, err)                  // tcp closed or reset or path removed: reinject what it carried (REL-04); fails the connection when that is due
	c.poll(now, buf) (Packet, bool)              // next packet of this connection; calls s.build
	c.handleTimeout(now); c.nextTimeout() clock.Time // DATA's own timers merged with all subflows' tcp timers
	c.copyPayload(dst, dataOffset, n) (sum)      // from the send buffer, with the checksum's partial sum
	c.fillData(now, sf, seg, out *tcp.Out)       // DSS etc. on everything after the handshake (DATA_ACK on every segment: LNX-03)
  DATA -> STACK
	s.build(now, sf, seg, out, buf) (Packet)     // bytes of the segment
	sf.fillHandshake(now, seg) bool              // options of SYN, SYN/ACK, third ACK, first data (MP_CAPABLE with data); false: not a handshake segment, DATA fills it
	s.wake(c)                                    // c may have something to poll
	s.rearm(c)                                   // its nextTimeout changed
	s.emit(Event)
	s.drop(now, sf, reason wire.ResetReason, transient bool) // reset one subflow
	s.finish(now, c, err)                        // connection over: frees token, subflows, memory; EventClosed
	c.pm.confirmed(now)                          // data-level proof seen: joins may start
*/
