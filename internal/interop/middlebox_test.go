//go:build linux

package interop

import (
	"bytes"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"braid/clock"
	"braid/host"
	"braid/link"
	"braid/middlebox"
	"braid/mptcp"
	"braid/wire"
)

// oneWay lets a middlebox see one direction only.
type oneWay struct {
	middlebox.Box
	dir middlebox.Direction
}

func (o oneWay) Process(now clock.Time, dir middlebox.Direction, p *link.Packet, out middlebox.Outlet) {
	if dir != o.dir {
		out.Pass(p)
		return
	}
	o.Box.Process(now, dir, p, out)
}

// turned lets a middlebox take the way back for the way there.
type turned struct{ middlebox.Box }

func (b turned) Process(now clock.Time, dir middlebox.Direction, p *link.Packet, out middlebox.Outlet) {
	b.Box.Process(now, 1-dir, p, out)
}

// box makes what stands on the first path, or on all paths.
type box func() middlebox.Box

func strip(options wire.Option, where middlebox.Where, after int64) box {
	return func() middlebox.Box { return middlebox.StripOptions(options, where, after) }
}

func fromClient(b box) box {
	return func() middlebox.Box { return oneWay{b(), middlebox.Forward} }
}

func fromServer(b box) box {
	return func() middlebox.Box { return oneWay{b(), middlebox.Reverse} }
}

func reversed(b box) box { return func() middlebox.Box { return turned{b()} } }

func replace(offset, length int, text string) box {
	return func() middlebox.Box { return middlebox.ReplacePayload(offset, length, []byte(text)) }
}

func mangle(options wire.Option, where middlebox.Where) box {
	return func() middlebox.Box { return middlebox.MangleOptions(options, where, 0, 1, link.Stream(1, "mangle")) }
}

// ending is how a connection through a middlebox must end.
type ending int

const (
	asMPTCP   ending = iota + 1 // whole in both directions, as MPTCP
	asTCP                       // whole, after a fallback
	whole                       // whole, whichever
	asReset                     // an error at an end, and nothing wrong before it
	eitherWay                   // whole, or as asReset: the timing of the packets decides
	ruinedUp                    // what the client sent arrives with other bytes in it, unnoticed

	// asLinux: right up to the mapping whose checksum fails, and ruined behind. Linux delivers that mapping and what comes after it, where RFC 8684,
	// Section 3.7, has it discard everything until the infinite mapping, under which we then send again what was not DATA_ACKed.
	asLinux
)

// talkers are who speaks in a case.
type talkers int

const (
	both talkers = iota
	clientOnly
	serverOnly
)

// middleboxCase is a network and what must come of it. Counts are those of the kernel's MPTCP counters, without MPTcpExt, that must be there; "+"
// behind a name: at least so many.
type middleboxCase struct {
	name      string
	boxes     []box
	onAll     bool // the boxes are on both paths, not only on the first
	paths     int
	checksums bool
	shape     link.Spec // reordering and the like, in both directions
	who       talkers
	want      ending
	from      ending           // ... from the kernel, if that is another
	receiving bool             // only where our end receives
	stack     mptcp.Config     // of our end
	client    map[string]int64 // of a kernel that is the client
	server    map[string]int64 // of a kernel that is the server
}

type counts = map[string]int64

func middleboxCases() []middleboxCase {
	any := middlebox.Anywhere
	impatient := mptcp.Config{
		ReceiveBuffer: 128 << 10, // unmapped data is held up to a window's worth (RFC 8684, Section 3.3.1)
		CloseTimeout:  time.Second,
	}
	return []middleboxCase{
		{name: "none", want: asMPTCP, server: counts{"MPCapableSYNRX": 1, "MPCapableACKRX": 1}, client: counts{"MPCapableSYNTX": 1, "MPCapableSYNACKRX": 1}},
		{name: "none, two paths", paths: 2, want: asMPTCP, server: counts{"MPJoinSynRx": 1, "MPJoinAckRx": 1}, client: counts{"MPJoinSynTx": 1, "MPJoinSynAckRx": 1}},
		{name: "SYN stripped", boxes: []box{strip(wire.OptMPTCP, middlebox.InSYN, 0)}, want: asTCP, server: counts{"MPCapableSYNRX": 0}, client: counts{"MPCapableFallbackSYNACK": 1}},
		{name: "SYN/ACK stripped", boxes: []box{strip(wire.OptMPTCP, middlebox.InSYNACK, 0)}, want: asTCP, server: counts{"MPCapableFallbackACK": 1}, client: counts{"MPCapableFallbackSYNACK": 1}},
		{name: "third ACK stripped, data kept", boxes: []box{strip(wire.OptMPCapable, middlebox.InAck, 0)}, want: whole, server: counts{"MPCapableFallbackACK": 1}, client: counts{"MPCapableDataFallback": 1}},
		{name: "ACKs stripped", boxes: []box{strip(wire.OptMPTCP, middlebox.InAck, 0)}, want: asTCP, server: counts{"MPCapableFallbackACK": 1}, client: counts{"MPCapableDataFallback": 1}},
		{name: "all but SYNs stripped", boxes: []box{strip(wire.OptMPTCP, middlebox.InAck|middlebox.InData, 0)}, want: asTCP, server: counts{"MPCapableFallbackACK": 1}, client: counts{"MPCapableDataFallback": 1}},
		{name: "all stripped", boxes: []box{strip(wire.OptMPTCP, any, 0)}, want: asTCP, server: counts{"MPCapableSYNRX": 0}, client: counts{"MPCapableFallbackSYNACK": 1}},
		{name: "data stripped", boxes: []box{strip(wire.OptMPTCP, middlebox.InData, 0)}, want: asTCP, server: counts{"DssFallback": 1}, client: counts{"MPCapableDataFallback": 1}},
		{name: "data stripped, client talks", boxes: []box{strip(wire.OptMPTCP, middlebox.InData, 0)}, who: clientOnly, stack: impatient, want: asTCP, from: eitherWay, server: counts{"DssFallback": 1}},
		{name: "data stripped, server talks", boxes: []box{strip(wire.OptMPTCP, middlebox.InData, 0)}, who: serverOnly, stack: impatient, want: eitherWay, from: asTCP, client: counts{"MPCapableDataFallback": 1}},
		{name: "data of the client stripped", boxes: []box{fromClient(strip(wire.OptMPTCP, middlebox.InData, 0))}, who: clientOnly, stack: impatient, want: asTCP, from: eitherWay, server: counts{"DssFallback": 1}},
		{name: "data of the server stripped", boxes: []box{fromServer(strip(wire.OptMPTCP, middlebox.InData, 0))}, who: serverOnly, stack: impatient, want: eitherWay, from: asTCP, client: counts{"MPCapableDataFallback": 1}},
		{name: "all of the client stripped but SYNs", boxes: []box{fromClient(strip(wire.OptMPTCP, middlebox.InData|middlebox.InAck, 0))}, want: asTCP, server: counts{"MPCapableFallbackACK": 1}, client: counts{"MPCapableDataFallback": 1}},
		{name: "all of the server stripped but SYNs", boxes: []box{fromServer(strip(wire.OptMPTCP, middlebox.InData|middlebox.InAck, 0))}, want: asTCP, server: counts{"DssFallback": 1}, client: counts{"MPCapableDataFallback": 1}},
		{name: "stripped later, one path, client talks", boxes: []box{strip(wire.OptMPTCP, any, 300_000)}, who: clientOnly, want: eitherWay, from: asReset, stack: impatient, server: counts{"DssFallback": 1}},
		{name: "stripped later, one path, server talks", boxes: []box{strip(wire.OptMPTCP, any, 300_000)}, who: serverOnly, want: asReset, from: eitherWay, stack: impatient, client: counts{"DssFallback": 1}},
		{name: "stripped later on the first of two paths", boxes: []box{strip(wire.OptMPTCP, any, 300_000)}, paths: 2, want: asMPTCP, server: counts{"MPJoinAckRx": 1, "MPRstTx+": 1}, client: counts{"MPJoinSynAckRx": 1, "MPRstTx+": 1}},
		{name: "sequence numbers shifted", boxes: []box{func() middlebox.Box { return middlebox.ShiftSequence(3_000_000_000) }}, want: asMPTCP, server: counts{"MPCapableSYNRX": 1, "MPCapableACKRX": 1}, client: counts{"MPCapableSYNTX": 1, "MPCapableSYNACKRX": 1}},
		{name: "sequence numbers shifted back", boxes: []box{reversed(func() middlebox.Box { return middlebox.ShiftSequence(3_000_000_000) })}, want: asMPTCP},
		{name: "segments split", boxes: []box{func() middlebox.Box { return &middlebox.Split{Size: 500} }}, want: asMPTCP, server: counts{"MPCapableSYNRX": 1, "MPCapableACKRX": 1}, client: counts{"MPCapableSYNTX": 1, "MPCapableSYNACKRX": 1}},
		{name: "segments split, checksums", boxes: []box{func() middlebox.Box { return &middlebox.Split{Size: 500} }}, checksums: true, want: asMPTCP},
		{name: "segments joined, client talks", boxes: []box{func() middlebox.Box { return &middlebox.Coalesce{Size: 2900, Wait: time.Millisecond} }}, who: clientOnly, want: whole},
		{name: "segments joined, server talks", boxes: []box{reversed(func() middlebox.Box { return &middlebox.Coalesce{Size: 2900, Wait: time.Millisecond} })}, who: serverOnly, want: whole},
		// Linux takes the bytes behind the end of a mapping for its continuation, which over two paths is wrong: so it only sends here.
		{name: "segments joined, two paths, client talks", boxes: []box{func() middlebox.Box { return &middlebox.Coalesce{Size: 2900, Wait: time.Millisecond} }}, paths: 2, who: clientOnly, want: whole, receiving: true},
		{name: "segments joined, two paths, server talks", boxes: []box{reversed(func() middlebox.Box { return &middlebox.Coalesce{Size: 2900, Wait: time.Millisecond} })}, paths: 2, who: serverOnly, want: whole, receiving: true},
		{name: "reordered", shape: link.Spec{Reorder: &link.Reorder{Probability: 0.05, DelayMs: 4}}, want: asMPTCP, server: counts{"MPCapableSYNRX": 1, "MPCapableACKRX": 1}, client: counts{"MPCapableSYNTX": 1, "MPCapableSYNACKRX": 1}},
		{name: "reordered, two paths, checksums", shape: link.Spec{JitterMs: 3}, paths: 2, checksums: true, want: asMPTCP},
		{name: "duplicated", shape: link.Spec{Duplicate: 0.1}, want: asMPTCP, server: counts{"MPCapableSYNRX": 1, "MPCapableACKRX": 1}, client: counts{"MPCapableSYNTX": 1, "MPCapableSYNACKRX": 1}},
		{name: "bits flipped", shape: link.Spec{Corrupt: 0.01}, checksums: true, want: asMPTCP},
		{name: "payload changed, checksums, one path, client talks", boxes: []box{replace(100_000, 5, "*****")}, checksums: true, who: clientOnly, want: asLinux, from: asReset, server: counts{"DataCsumErr": 1, "MPFailTx": 1, "InfiniteMapRx": 1, "DssFallback": 1}, client: counts{"MPFailRx+": 1}},
		{name: "payload changed, checksums, one path, server talks", boxes: []box{reversed(replace(100_000, 5, "*****"))}, checksums: true, who: serverOnly, want: asReset, from: asLinux, server: counts{"MPFailRx+": 1}, client: counts{"DataCsumErr": 1, "MPFailTx": 1, "InfiniteMapRx": 1, "DssFallback": 1}},
		{name: "payload grown, checksums, one path, client talks", boxes: []box{replace(100_000, 5, "** more **")}, checksums: true, who: clientOnly, want: asLinux, from: asReset, server: counts{"DataCsumErr": 1, "MPFailTx": 1}, client: counts{"MPFailRx+": 1}},
		{name: "payload changed, checksums, two paths, client talks", boxes: []box{replace(100_000, 5, "*****")}, paths: 2, checksums: true, who: clientOnly, want: asMPTCP, server: counts{"DataCsumErr": 1, "MPFailTx": 1, "MPRstTx": 1}, client: counts{"MPFailRx": 1, "MPRstRx": 1}},
		{name: "payload changed, checksums, two paths, server talks", boxes: []box{reversed(replace(100_000, 5, "*****"))}, paths: 2, checksums: true, who: serverOnly, want: asMPTCP, server: counts{"MPFailRx": 1, "MPRstRx": 1}, client: counts{"DataCsumErr": 1, "MPFailTx": 1, "MPRstTx": 1}},
		{name: "payload changed, no checksums", boxes: []box{replace(100_000, 5, "*****")}, who: clientOnly, want: ruinedUp},
		{name: "joins stripped from SYN", boxes: []box{strip(wire.OptMPJoin, middlebox.InSYN, 0)}, onAll: true, paths: 2, want: asMPTCP, server: counts{"MPJoinSynRx": 0}, client: counts{"MPJoinSynTx+": 1, "MPRstTx+": 1}},
		{name: "joins stripped from SYN/ACK", boxes: []box{strip(wire.OptMPJoin, middlebox.InSYNACK, 0)}, onAll: true, paths: 2, want: asMPTCP, server: counts{"MPJoinSynRx+": 1, "MPJoinAckRx": 0}, client: counts{"MPJoinSynAckRx": 0, "MPRstTx+": 1}},
		{name: "joins stripped from the third ACK", boxes: []box{strip(wire.OptMPJoin, middlebox.InAck, 0)}, onAll: true, paths: 2, want: asMPTCP, server: counts{"MPJoinSynRx+": 1, "MPJoinAckRx": 0}, client: counts{"MPJoinSynAckRx+": 1, "MPRstTx+": 1}},
		{name: "joins with another token", boxes: []box{mangle(wire.OptMPJoin, middlebox.InSYN)}, onAll: true, paths: 2, want: asMPTCP, server: counts{"MPJoinNoTokenFound+": 1}, client: counts{"MPJoinSynTx+": 1, "MPJoinSynAckRx": 0}},
		{name: "joins with a wrong HMAC from the server", boxes: []box{mangle(wire.OptMPJoin, middlebox.InSYNACK)}, onAll: true, paths: 2, want: asMPTCP, server: counts{"MPJoinSynRx+": 1, "MPJoinAckRx": 0}, client: counts{"MPJoinSynAckHMacFailure+": 1, "MPRstTx+": 1}},
		{name: "joins with a wrong HMAC from the client", boxes: []box{mangle(wire.OptMPJoin, middlebox.InAck)}, onAll: true, paths: 2, want: asMPTCP, server: counts{"MPJoinAckHMacFailure+": 1, "MPJoinAckRx": 0}},
		{name: "windows clamped", boxes: []box{func() middlebox.Box { return middlebox.ClampWindow(500) }}, want: asMPTCP},
		{name: "NAT", boxes: []box{func() middlebox.Box { return middlebox.NewNAT(netip.MustParseAddr("10.77.1.200"), 20000) }}, paths: 2, want: asMPTCP, server: counts{"MPJoinAckRx": 1}, client: counts{"MPJoinSynAckRx": 1}},
	}
}

// TestMiddleboxes: every fallback and every reset of RFC 8684, Sections 3.7 and 6, against the kernel in both roles, through middleboxes on emulated
// paths. The stream arrives whole, or ends in the error that the RFC demands and has nothing wrong in it before; and the kernel counts
// what it should have seen.
func TestMiddleboxes(t *testing.T) {
	for _, c := range middleboxCases() {
		for own, role := range []string{client: "to the kernel", server: "from the kernel"} {
			if c.receiving && (c.who == clientOnly) != (side(own) == server) {
				continue
			}
			t.Run(c.name+"/"+role, func(t *testing.T) {
				t.Parallel()
				c.run(t, side(own))
			})
		}
	}
}

func (c *middleboxCase) run(t *testing.T, own side) {
	ending, want := c.want, c.server
	if own == server {
		want = c.client
		if c.from != 0 {
			ending = c.from
		}
	}
	lasts := patience
	if ending == asLinux { // it does not end by itself
		lasts = 3 * time.Second
	}
	s := stretchSetup{own: own, checksums: c.checksums, unjoined: c.paths < 2, stack: c.stack}
	for i := range max(c.paths, 1) {
		p := stretchPath{up: c.shape, down: c.shape}
		for _, l := range []*link.Spec{&p.up, &p.down} {
			l.RateMbps, l.DelayMs = 100, 5
			l.QueuePackets = 1000
		}
		if i == 0 || c.onAll {
			for _, b := range c.boxes {
				p.boxes = append(p.boxes, b())
			}
		}
		s.paths = append(s.paths, p)
	}
	x := newStretch(t, s, lasts)
	from, to, err := x.connect(true)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	ends := [2]duplex{client: from, server: to}
	if c.paths > 1 {
		greet(t, ends)
		if !c.onAll { // nothing keeps the second path away
			x.join(ends[own].(*host.Conn))
		}
	}
	got := talk(ends, c.who)
	info := ends[own].(*host.Conn).Info()
	kernel := x.await(1-own, want)
	t.Logf("%v; fallback: %v; kernel: %s", got, info.Fallback, nonZero(kernel))
	ending.judge(t, got, info)
	for name, n := range want {
		name, least := strings.CutSuffix(name, "+")
		if v, known := kernel["MPTcpExt"+name]; !known || v < n || (v > n && !least) {
			t.Errorf("the kernel counts %s %d, want %d", name, v, n)
		}
	}
}

// await returns the kernel's counters at one end as soon as they have reached what they must: the last packets may be on their way.
func (x *stretch) await(at side, want counts) map[string]int64 {
	x.t.Helper()
	tick, limit := time.NewTicker(5*time.Millisecond), time.After(2*time.Second)
	defer tick.Stop()
	for {
		all, there := x.counters(at), true
		for name, n := range want {
			there = there && all["MPTcpExt"+strings.TrimSuffix(name, "+")] >= n
		}
		if there {
			return all
		}
		select {
		case <-tick.C:
		case <-limit:
			return all
		}
	}
}

// greet lets both ends say a word: the data-level proof that joins wait for.
func greet(t *testing.T, ends [2]duplex) {
	t.Helper()
	word := []byte("hello")
	for i := range ends {
		if _, err := ends[i].Write(word); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(ends[1-i], make([]byte, len(word))); err != nil {
			t.Fatal(err)
		}
	}
}

// join waits until a connection has a second subflow.
func (x *stretch) join(conn *host.Conn) {
	x.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		active := 0
		for _, sf := range conn.Info().Subflows {
			if sf.State == "active" {
				active++
			}
		}
		if active > 1 {
			return
		}
		select {
		case <-tick.C:
		case <-x.ctx.Done():
			x.t.Fatal("no second subflow")
		}
	}
}

// judge compares what came of a connection with how it must end.
func (e ending) judge(t *testing.T, got outcome, info mptcp.Info) {
	t.Helper()
	if e == ruinedUp {
		if d := got[client]; d.receiveErr != nil || d.differ == 0 || d.differ > 5 {
			t.Errorf("%v; want some of 5 bytes changed and nothing noticed", got)
		}
		return
	}
	for _, d := range got {
		switch {
		case !d.spoke:
		case (e == asReset && d.whole()) || ((e == asReset || e == eitherWay) && d.wrong):
			t.Errorf("%v; want an error after a right beginning", got)
		case e == asLinux && d.right < 90_000: // the middlebox interferes at 100,000
			t.Errorf("%v; want everything right before the middlebox interferes", got)
		case (e == asMPTCP || e == asTCP || e == whole) && !d.whole():
			t.Errorf("%v; want everything to arrive", got)
		}
	}
	fell := info.Fallback != mptcp.NoFallback
	if (e == asTCP && !fell) || (e == asMPTCP && fell) {
		t.Errorf("fallback: %v", info.Fallback)
	}
}

// delivery is what became of one direction's stream.
type delivery struct {
	spoke               bool
	sent, got           int
	differ              int  // bytes that are not what was sent
	right               int  // bytes before the first of them
	wrong               bool // what arrived is no beginning of what was sent
	sendErr, receiveErr error
}

func (d delivery) whole() bool {
	return d.sendErr == nil && d.receiveErr == nil && d.got == d.sent && !d.wrong
}

func (d delivery) String() string {
	switch {
	case !d.spoke:
		return "silent"
	case d.whole():
		return "whole"
	}
	return fmt.Sprintf("%d of %d bytes, %d wrong, sender %v, receiver %v", d.got, d.sent, d.differ, d.sendErr, d.receiveErr)
}

// outcome is what became of both directions, by who sent.
type outcome [2]delivery

const talkBytes = 1 << 20

// talk lets the ends send and close, and says what arrived. A kernel that has nothing to say closes last: if it falls back after its DATA_FIN, it does
// not tell its reader of our FIN.
func talk(ends [2]duplex, who talkers) outcome {
	var o outcome
	for i := range o {
		o[i].spoke = who == both || int(who)-1 == i
	}
	var heard [2]chan struct{} // closed when an end has read all
	for i := range heard {
		heard[i] = make(chan struct{})
	}
	var running sync.WaitGroup
	for i := range o {
		d := &o[i]
		data := stream(talkBytes, uint64(31+i))
		if !d.spoke {
			data = nil
		}
		d.sent = len(data)
		running.Go(func() {
			if _, own := ends[i].(*host.Conn); !own && !d.spoke {
				<-heard[i]
			}
			_, d.sendErr = ends[i].Write(data)
			if d.sendErr == nil {
				d.sendErr = ends[i].CloseWrite()
			}
		})
		running.Go(func() {
			defer close(heard[1-i])
			var got []byte
			got, d.receiveErr = readAll(ends[1-i], len(data))
			d.got = len(got)
			d.wrong = !bytes.HasPrefix(data, got)
			for k := range min(len(got), len(data)) {
				if got[k] != data[k] {
					d.differ++
				} else if d.differ == 0 {
					d.right++
				}
			}
		})
	}
	running.Wait()
	return o
}

// nonZero lists the counters of MPTCP that something has happened to.
func nonZero(all map[string]int64) string {
	var list []string
	for name, v := range all {
		if short, ok := strings.CutPrefix(name, "MPTcpExt"); ok && v != 0 && !strings.HasPrefix(short, "OFO") && !strings.Contains(short, "Wnd") {
			list = append(list, fmt.Sprintf("%s %d", short, v))
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}
