package netsim

import (
	"flag"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"braid/internal/hostile"
)

var (
	hostileSegments = flag.Int("hostile.segments", 200_000, "TestHostile: how many forged packets (with -short or -race fewer unless given)")
	hostileSeed     = flag.Int64("hostile.seed", -1, "TestHostile: only this seed, and tell what comes of it")
	hostileFirst    = flag.Uint64("hostile.first", 0, "TestHostile: the first seed")
	hostilePackets  = flag.Bool("hostile.packets", false, "TestHostile with -hostile.seed: print every packet")
	hostilePcap     = flag.String("hostile.pcap", "", "TestHostile with -hostile.seed: write a capture to this file (pcapng)")
)

const (
	hostilePerSeed = 20_000 // forged packets
	fewHostile     = 60_000 // of -short and the race detector
)

// Whoever sends what to live connections, nothing panics; connections that an attacker cannot end or corrupt by TCP's own rules come to their end with every
// byte right, about as soon as without attack; clients still connect; what it costs is bounded and gone afterwards. Each seed draws paths, floods
// and attackers (package internal/hostile): some who repeat, damage and guess, against everything, and some who know the numbers and alter what they like,
// against connections that may be lost.
func TestHostile(t *testing.T) {
	if *hostileSeed >= 0 {
		replayHostile(t, uint64(*hostileSeed))
		return
	}
	n := *hostileSegments
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "hostile.segments" })
	if !given && (testing.Short() || raceDetector) {
		n = fewHostile
	}
	var next atomic.Uint64
	next.Store(*hostileFirst)
	end := *hostileFirst + uint64((n+hostilePerSeed-1)/hostilePerSeed)
	var failed atomic.Int64
	var tally hostileTally
	began := time.Now()
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				seed := next.Add(1) - 1
				if seed >= end || failed.Load() >= maxFaultFailures {
					return
				}
				r, err := runHostile(seed)
				tally.add(r)
				if err != nil {
					failed.Add(1)
					t.Errorf("seed %d: %v\nreplay: go test ./netsim -run TestHostile -hostile.seed %d", seed, err, seed)
				}
			}
		})
	}
	wg.Wait()
	tally.report(t, time.Since(began))
}

// How much longer a connection may take under attack: so much of its time without it, and so long: floods make a queue lose SYNs, and two are three seconds.
const (
	hostileFactor = 1.5
	hostileSlack  = 4 * time.Second
)

// runHostile runs a seed without attack and with it, and compares.
func runHostile(seed uint64) (*hostileResult, error) {
	plan := drawHostile(seed)
	calm := newHostileWorld(plan, false)
	if err := calm.run(); err != nil {
		return &hostileResult{}, fmt.Errorf("without attack: %w\n%v", err, plan)
	}
	w := newHostileWorld(plan, true)
	err := w.run()
	r := w.result()
	r.answers = float64(w.net.Counts().Packets-calm.net.Counts().Packets) / hostilePerSeed
	if err == nil {
		err = r.compare(calm.result())
	}
	if err != nil {
		err = fmt.Errorf("%w\n%v\n%s", err, plan, w.describe())
	}
	return r, err
}

// hostileResult is what came of a seed.
type hostileResult struct {
	took    []time.Duration // of each connection that must survive
	forged  int64
	byKind  map[hostile.Kind]int64
	ratio   float64 // the largest, to the time without attack, of connections that took over a second
	lost    int     // connections that an attacker ended that knew their numbers
	answers float64 // packets that the hosts sent, per forged one and beyond those without attack
	most    hostileLoad
}

// hostileLoad is the most that the attack made a host keep.
type hostileLoad struct {
	halfOpen, conns, remnants int
	memory                    int64
}

// compare checks that no connection was slowed down much.
func (r *hostileResult) compare(calm *hostileResult) error {
	for i, d := range r.took {
		base := calm.took[i]
		if base > time.Second {
			r.ratio = max(r.ratio, float64(d)/float64(base))
		}
		if float64(d) > hostileFactor*float64(base)+float64(hostileSlack) {
			return fmt.Errorf("connection %d took %v, %v without attack", i, d, base)
		}
	}
	return nil
}

// hostileTally adds up results.
type hostileTally struct {
	mu     sync.Mutex
	seeds  int
	forged int64
	byKind map[hostile.Kind]int64
	ratio  float64
	lost   int
	most   hostileLoad
	answer float64
}

func (s *hostileTally) add(r *hostileResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKind == nil {
		s.byKind = map[hostile.Kind]int64{}
	}
	s.seeds++
	s.forged += r.forged
	for k, n := range r.byKind {
		s.byKind[k] += n
	}
	s.ratio, s.answer = max(s.ratio, r.ratio), max(s.answer, r.answers)
	s.lost += r.lost
	s.most.halfOpen, s.most.conns = max(s.most.halfOpen, r.most.halfOpen), max(s.most.conns, r.most.conns)
	s.most.remnants, s.most.memory = max(s.most.remnants, r.most.remnants), max(s.most.memory, r.most.memory)
}

// report tells what was done, and checks that all of it was.
func (s *hostileTally) report(t *testing.T, took time.Duration) {
	t.Logf("%d seeds, %d forged packets in %v; at most %.2f times as long, %.1f answers a forged packet; %d altered connections lost; at most %+v",
		s.seeds, s.forged, took.Round(time.Millisecond), s.ratio, s.answer, s.lost, s.most)
	for _, k := range append(hostile.Harmless(), hostile.Altered) {
		t.Logf("  %-14v %d", k, s.byKind[k])
		if s.byKind[k] == 0 && s.seeds > 2 {
			t.Errorf("no forged packet was %v", k)
		}
	}
}
