package netsim

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"braid/trace"
)

var (
	faultSeeds = flag.Uint64("faults.seeds", 2000, "TestFaults: how many seeds (with -short or -race 100 unless given)")
	faultSeed  = flag.Int64("faults.seed", -1, "TestFaults: only this seed, and tell what it draws and what comes of it")
	faultFirst = flag.Uint64("faults.first", 0, "TestFaults: the first seed")
	faultPrint = flag.Bool("faults.packets", false, "TestFaults with -faults.seed: print every packet")
	faultPcap  = flag.String("faults.pcap", "", "TestFaults with -faults.seed: write a capture to this file (pcapng)")
	faultTrace = flag.String("faults.trace", "", "TestFaults with -faults.seed: write both Stacks' events to this file (JSON lines)")
)

// fewFaultSeeds is how many seeds -short and the race detector run.
const fewFaultSeeds = 100

// Whatever the network does, every byte arrives once and in order or the caller gets the right error, and nothing hangs, leaks or grows
// without bound. Each seed draws a topology, its troubles and what applications do over it (faults_draw_test.go), runs it, and asks the
// oracles (faults_judge_test.go).
func TestFaults(t *testing.T) {
	if *faultSeed >= 0 {
		replayFaults(t, uint64(*faultSeed))
		return
	}
	n := *faultSeeds
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "faults.seeds" })
	if !given && (testing.Short() || raceDetector) {
		n = fewFaultSeeds
	}
	var next atomic.Uint64
	next.Store(*faultFirst)
	end := *faultFirst + n
	var failed atomic.Int64
	var tally faultTally
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				seed := next.Add(1) - 1
				if seed >= end || failed.Load() >= maxFaultFailures {
					return
				}
				begun := time.Now()
				w, err := runFaults(seed, nil)
				tally.took(seed, time.Since(begun))
				if err == nil && seed%50 == 0 {
					err = sameAgain(seed, w)
				}
				if err != nil {
					failed.Add(1)
					t.Errorf("seed %d: %v\nreplay: go test ./netsim -run TestFaults -faults.seed %d", seed, err, seed)
				}
				tally.add(w)
			}
		})
	}
	wg.Wait()
	tally.report(t)
}

// maxFaultFailures ends a run that fails all the time.
const maxFaultFailures = 25

// Seeds that once failed, and why, so that what was wrong stays right whatever order seeds are run in.
func TestFaultsRegressions(t *testing.T) {
	for _, c := range faultRegressions {
		if _, err := runFaults(c.seed, nil); err != nil {
			t.Errorf("seed %d (%s): %v\nreplay: go test ./netsim -run TestFaults -faults.seed %d", c.seed, c.was, err, c.seed)
		}
	}
}

// faultRegressions are those seeds; they mean what they meant only as long as the drawing stays as it is. What could be shrunk to a few
// lines stands in package mptcp (survival_test.go).
var faultRegressions = []struct {
	seed uint64
	was  string
}{
	{3065, "a peer that fell back ended its stream, and we did not fall back with it"},
	{4396, "after discarded bytes a FIN was taken for the end of the stream"},
	{9577, "an ADD_ADDR that left no room for a DATA_ACK passed for a fall back"},
	{14910, "data was sent again under a new mapping to a peer that had fallen back"},
	{23679, "reinjections waited for a backup path that nobody asked, as if the only other one swallowed them"},
	{46902, "likewise, beside a path that was alive"},
	{47046, "a reinjection into a small window started no persist timer"},
	{78152, "an infinite mapping moved the edges of TCP's window and the connection's apart"},
	{82640, "a NAT that rebound often left so many dead subflows that joins were refused"},
	{95034, "sent again at data level, the first data went as MP_CAPABLE once more, which maps nothing there"},
}

// sameAgain runs a seed once more: the same seed must do the same.
func sameAgain(seed uint64, w *faultWorld) error {
	again, err := runFaults(seed, nil)
	if err != nil {
		return fmt.Errorf("failed when run again: %w", err)
	}
	if again.net.Counts() != w.net.Counts() || again.net.Now() != w.net.Now() {
		return fmt.Errorf("the same seed did something else when run again: %+v at %v, then %+v at %v",
			w.net.Counts(), w.net.Now(), again.net.Counts(), again.net.Now())
	}
	return nil
}

// faultRecord is what a replay records.
type faultRecord struct {
	pcap  *os.File
	trace *trace.JSONWriter
	log   func(format string, args ...any)
}

// runFaults runs a seed. A panic is an error like others.
func runFaults(seed uint64, record *faultRecord) (w *faultWorld, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	w, err = newFaultWorld(drawTrouble(seed), record)
	if err != nil {
		return w, err
	}
	err = w.run()
	if record != nil {
		err = errors.Join(err, w.net.StopCapture())
	}
	return w, err
}

// replayFaults runs one seed and tells about it.
func replayFaults(t *testing.T, seed uint64) {
	r := &faultRecord{log: t.Logf}
	if *faultPcap != "" {
		f, err := os.Create(*faultPcap)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r.pcap = f
	}
	if *faultTrace != "" {
		f, err := os.Create(*faultTrace)
		if err != nil {
			t.Fatal(err)
		}
		r.trace = trace.NewJSONWriter(f)
		defer r.trace.Close()
	}
	t.Logf("seed %d\n%v", seed, drawTrouble(seed))
	w, err := runFaults(seed, r)
	if w != nil {
		t.Log(w.describe())
	}
	if err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
}

// faultTally sums up what a run saw, so that one that tests nothing shows.
type faultTally struct {
	mu                                           sync.Mutex
	seeds, conns, complete, failed, fell, joined int64
	bytes, packets                               int64
	slowest                                      uint64 // the seed that took longest
	longest                                      time.Duration
}

func (f *faultTally) took(seed uint64, d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if d > f.longest {
		f.longest, f.slowest = d, seed
	}
}

func (f *faultTally) add(w *faultWorld) {
	if w == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seeds++
	f.packets += w.net.Counts().Packets
	for _, p := range w.pairs {
		f.conns++
		for _, e := range p {
			if e == nil {
				continue
			}
			f.bytes += e.got
			if e.fellBack {
				f.fell++
			}
			if e.joined {
				f.joined++
			}
			if e.eof {
				f.complete++
			}
			if e.closed && e.err != nil {
				f.failed++
			}
		}
	}
}

func (f *faultTally) report(t *testing.T) {
	t.Logf("%d seeds (seed %d took longest: %v), %d connections, %d MB in %d packets; ends: %d streams read to the end, %d errors, %d fell back to plain TCP, %d with several subflows",
		f.seeds, f.slowest, f.longest, f.conns, f.bytes>>20, f.packets, f.complete, f.failed, f.fell, f.joined)
	if f.seeds >= fewFaultSeeds && (f.complete < f.conns || f.failed == 0 || f.fell == 0 || f.joined == 0) {
		t.Error("the seeds do not try what they should")
	}
}
