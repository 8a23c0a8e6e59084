package mptcp

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"braid/buffer"
	"braid/clock"
	"braid/congestion"
	"braid/schedule"
	"braid/tcp"
	"braid/wire"
)

// Stack is one host's MPTCP. See the package comment for how it is driven.
type Stack struct {
	cfg   Config
	paths []*path // by PathID; a removed one stays, marked

	conns     []*Conn // all that are not finished, in no order that matters
	nextConn  uint32
	tokens    map[uint32]*Conn // local tokens in use; nil: reserved by a handshake (RFC 8684, Section 3.1)
	tuples    map[tuple]*Subflow
	tags      map[uint32]*Subflow // UDP paths: by our tag
	halves    map[tuple]*halfOpen // half-open, by addresses and ports; on UDP paths by outer address and inner ports
	halfTags  map[uint32]*halfOpen
	remnants  remnantTable
	cookies   cookieJar
	listeners map[listenKey]*Listener
	known     destinations

	lastTuple   tuple // one-entry cache in front of tuples: packets come in trains
	lastSubflow *Subflow

	timers    timerHeap
	ready     readyRing
	dirty     []*task
	tasks     int // alive
	trainLeft int // packets that the task at the head of ready may send before the next one's turn
	trainRoom int // ... and bytes
	control   controlQueue
	limiter   limiter // RSTs and version negotiations

	pool     *buffer.Pool   // received payload of all connections
	sendPool *buffer.Blocks // what the applications wrote
	seg      wire.Segment   // scratch of poll
	out      tcp.Out        // scratch of poll
	in       wire.Segment   // the segment that HandlePacket parsed
	ip       wire.IP        // the packet that HandlePacket parsed
	icmp     wire.ICMPError // the ICMP error that HandlePacket parsed
	rstSeg   wire.Segment   // scratch for resets and handshakes: seg may be in use then
	rstOut   tcp.Out
	joining  int  // half-open joins
	accepted bool // deliver found the segment acceptable, or a genuine repetition: where it came from may be the peer's new address
	counters Counters
	retired  tcp.Totals // of subflows that are gone
	events   eventQueue
}

// path is a Path with what the Stack computes from it.
type path struct {
	Path
	id      PathID
	local   netip.Addr // IP: the address; invalid or unspecified: any
	removed bool
}

// attachment is what the Stack keeps in a Conn, which embeds it.
type attachment struct {
	task
	stack  *Stack
	id     uint32
	client bool
	hs     handshake
	pm     pathManager
	race   *race // Dial has not come to its end

	// subflows are those that are opening, established or closing, ascending by id.
	subflows    []*Subflow
	nextSubflow int
	listed      int // index in Stack.conns

	pendingEvents uint8 // kinds of event that wait in the queue
	finished      bool  // Stack.finish was called
	visible       bool  // the application knows it and has not been told that it is over
}

// NewStack returns a Stack without paths. It panics without Config.Entropy.
func NewStack(cfg Config) *Stack {
	if cfg.Entropy == nil {
		panic("mptcp: Config.Entropy is required")
	}
	return &Stack{
		cfg:       cfg.withDefaults(),
		tokens:    make(map[uint32]*Conn),
		tuples:    make(map[tuple]*Subflow),
		tags:      make(map[uint32]*Subflow),
		halves:    make(map[tuple]*halfOpen),
		halfTags:  make(map[uint32]*halfOpen),
		remnants:  newRemnantTable(),
		listeners: make(map[listenKey]*Listener),
		known:     newDestinations(),
		cookies:   newCookieJar(cfg.Entropy),
		trainLeft: trainPackets,
		trainRoom: trainBytes,
		pool:      &buffer.Pool{},
		sendPool:  &buffer.Blocks{},
	}
}

// withDefaults fills in what is not set.
func (cfg Config) withDefaults() Config {
	def := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
	count := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	dur := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	def(&cfg.SendBuffer, 64<<20)
	def(&cfg.ReceiveBuffer, 64<<20)
	def(&cfg.InitialReceive, 256<<10)
	def(&cfg.HeldLimit, 64<<20)
	def(&cfg.StackMemory, 1<<30)
	cfg.InitialReceive = min(cfg.InitialReceive, cfg.ReceiveBuffer)
	count(&cfg.MaxConns, 65536)
	count(&cfg.MaxSubflows, 8)
	cfg.MaxSubflows = cfg.Limits.subflows(cfg.MaxSubflows)
	count(&cfg.Backlog, 128)
	count(&cfg.SYNFallback, 3)
	cfg.Shards = max(cfg.Shards, 1)
	if cfg.Group == nil {
		cfg.Group = congestion.NewCoupledBBR
	}
	if cfg.Scheduler == nil {
		cfg.Scheduler = func() schedule.Scheduler { return schedule.NewARP(schedule.DefaultARP()) }
	}
	dur(&cfg.KeepAlive, 20*time.Second)
	dur(&cfg.UserTimeout, 5*time.Minute)
	dur(&cfg.CloseTimeout, time.Minute)
	dur(&cfg.DialTimeout, 3*time.Minute) // RFC 9293, Section 3.8.3: at least
	dur(&cfg.RaceDelay, 100*time.Millisecond)
	dur(&cfg.MSL, 30*time.Second)
	return cfg
}

// AddPath adds a local path. Connections that this host opened get a subflow over it, the peers of others are told its address, unless
// its flags say otherwise.
func (s *Stack) AddPath(now clock.Time, p Path) PathID {
	if p.MTU == 0 {
		p.MTU = 1500
	}
	id := PathID(len(s.paths))
	p.Local = netip.AddrPortFrom(p.Local.Addr().Unmap().WithZone(""), p.Local.Port())
	p.Backup = p.Backup || p.Flags&EndpointBackup != 0
	added := &path{Path: p, id: id}
	if a := p.Local.Addr(); a.IsValid() && !a.IsUnspecified() {
		added.local = a
	}
	s.paths = append(s.paths, added)
	for _, c := range s.conns {
		if c.race != nil {
			c.race.pathAdded(now, added)
		} else {
			c.pm.pathAdded(now, added)
		}
		s.rearm(c)
		s.wake(c)
	}
	return id
}

// RemovePath says that a path vanished: its subflows are dropped without a packet, what they carried is sent on the others.
func (s *Stack) RemovePath(now clock.Time, id PathID) {
	p := s.livePath(id)
	if p == nil {
		return
	}
	p.removed = true
	for _, h := range s.halfOpenOn(id) {
		h.close()
	}
	s.remnants.dropPath(s, now, id)
	for _, c := range append([]*Conn(nil), s.conns...) {
		c.pm.pathRemoved(now, id)
		for i := len(c.subflows) - 1; i >= 0; i-- {
			if i < len(c.subflows) && c.subflows[i].path == id {
				s.abandon(now, c.subflows[i], ErrPathRemoved)
			}
		}
		s.rearm(c)
		s.wake(c)
	}
}

// Path returns the description of a path, false if it does not exist any more.
func (s *Stack) Path(id PathID) (Path, bool) {
	if p := s.livePath(id); p != nil {
		return p.Path, true
	}
	return Path{}, false
}

// livePath returns the path, nil if there is none.
func (s *Stack) livePath(id PathID) *path {
	if id < 0 || int(id) >= len(s.paths) || s.paths[id].removed {
		return nil
	}
	return s.paths[id]
}

// Conns calls f for every connection that is not over, until f returns false.
func (s *Stack) Conns(f func(*Conn) bool) {
	for _, c := range s.conns {
		if !f(c) {
			return
		}
	}
}

// Memory returns the bytes of payload memory in use: what was received and not read, written and not yet let go of.
func (s *Stack) Memory() int64 { return s.pool.InUse() + s.sendPool.InUse() }

// newConn makes a connection and puts it into the tables.
func (s *Stack) newConn(now clock.Time, client bool) *Conn {
	c := &Conn{}
	c.stack, c.client, c.id = s, client, s.nextConn
	s.nextConn++
	c.listed = len(s.conns)
	s.conns = append(s.conns, c)
	c.pm.conn, c.pm.lookAt, c.pm.ours.at = c, clock.Never, clock.Never
	s.start(&c.task, c)
	c.init(now)
	return c
}

// finish ends connection c: EventClosed with err, and everything the Stack has of it is freed. Subflows that are open are
// reset; those in their closing handshake or in TIME-WAIT go on without the connection. It may be called more than once.
func (s *Stack) finish(now clock.Time, c *Conn, err error) {
	if c.finished {
		return
	}
	c.finished = true
	c.hs.noJoins = true
	c.race = nil
	for len(c.subflows) > 0 {
		s.leave(now, c.subflows[len(c.subflows)-1])
	}
	s.unregister(c)
	c.pm.close()
	last := len(s.conns) - 1
	s.conns[c.listed] = s.conns[last]
	s.conns[c.listed].listed = c.listed
	s.conns[last] = nil
	s.conns = s.conns[:last]
	s.stop(&c.task)
	c.release()
	s.emit(Event{Kind: EventClosed, Conn: c, Err: err})
}

// pollTask, expire and deadline make a Conn a task: the data plane's answers, and the Stack's own timers.

func (c *Conn) pollTask(now clock.Time, buf []byte) (Packet, bool) { return c.poll(now, buf) }

func (c *Conn) expire(now clock.Time) {
	c.handleTimeout(now)
	if c.finished {
		return
	}
	if c.race != nil {
		c.race.expire(now)
		return
	}
	c.expireJoins(now)
	c.pm.expire(now)
}

func (c *Conn) deadline() clock.Time {
	at := c.nextTimeout()
	if c.race != nil {
		return min(at, c.race.deadline())
	}
	for _, sf := range c.subflows {
		if sf.state == preEstablished {
			at = min(at, sf.join.ackAt)
		}
	}
	return min(at, c.pm.deadline())
}

// rand returns a random stream seeded from the configuration's entropy.
func (s *Stack) rand() *rand.Rand { return rand.New(rand.NewPCG(s.cfg.Entropy(), s.cfg.Entropy())) }

// entropy32 returns 32 unpredictable bits that are not all zero.
func (s *Stack) entropy32() uint32 {
	for {
		if v := uint32(s.cfg.Entropy() >> 32); v != 0 {
			return v
		}
	}
}
