//go:build linux

package interop

import (
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"braid/congestion"
	"braid/link"
)

var (
	goodputReps = flag.Int("goodput.reps", 0, "repetitions of each cell of BenchmarkGoodput; 0: skip it")
	goodputTime = flag.Duration("goodput.time", 10*time.Second, "how long each run sends")
	goodputWarm = flag.Duration("goodput.warm", 2*time.Second, "how much of its begin is left out")
)

// goodputCell is a network of the comparison with the kernel: 100 Mbit/s a path, a queue of one bandwidth-delay product. Loss is on the way of the data.
type goodputCell struct {
	name  string
	rtts  []float64 // ms, of each path
	loss  float64
	warms int // times the warm-up
}

var goodputCells = []goodputCell{
	{"one path 50 ms, no loss", []float64{50}, 0, 1},
	{"one path 50 ms, 0.1 % loss", []float64{50}, 0.001, 1},
	{"one path 50 ms, 1 % loss", []float64{50}, 0.01, 1},
	{"two paths 50 and 50 ms", []float64{50, 50}, 0, 1},
	{"two paths 50 and 150 ms", []float64{50, 150}, 0, 2},
}

// BenchmarkGoodput compares our stack with the kernel's own over emulated paths, in one run: kernel to kernel, ours to the kernel, the kernel to
// ours, with the same congestion control at the sender. It logs one row a cell; see docs/kernel.md.
//
//	go test -run '^$' -bench Goodput -goodput.reps 3 -timeout 0 -v ./internal/interop
func BenchmarkGoodput(b *testing.B) {
	if *goodputReps == 0 {
		b.Skip("takes half an hour: ask for it with -goodput.reps 3")
	}
	known, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	if err != nil {
		b.Skip(err)
	}
	for _, cell := range goodputCells {
		for _, cc := range []string{"reno", "cubic", "bbr"} {
			b.Run(cell.name+"/"+cc, func(b *testing.B) {
				if !slices.Contains(strings.Fields(string(known)), cc) {
					b.Skipf("this kernel has no %s", cc)
				}
				rates, late := cell.measure(b, cc)
				kernel := mean(rates[neither])
				b.ReportMetric(kernel, "kernel-Mbit/s")
				b.ReportMetric(mean(rates[client])/kernel, "to-kernel")
				b.ReportMetric(mean(rates[server])/kernel, "from-kernel")
				b.ReportMetric(0, "ns/op")
				fmt.Printf("| %s | %s | %s | %s | %.3f | %s | %.3f | %.2f |\n", cell.name, cc, spread(rates[neither]), spread(rates[client]), mean(rates[client])/kernel,
					spread(rates[server]), mean(rates[server])/kernel, late.Seconds()*1e3)
			})
		}
	}
}

// measure runs the repetitions of a cell, each with losses of its own, and returns the rates by the end that is ours (client, server, neither) and how late
// the emulation was. Where losses keep the rates low, the three run side by side, and there are more of them: it takes many losses to tell.
func (c *goodputCell) measure(b *testing.B, cc string) (rates [3][]float64, late time.Duration) {
	reps, sideBySide := *goodputReps, 1
	if c.loss > 0 && cc != "bbr" {
		reps, sideBySide = 4*reps, 3
	}
	var mu sync.Mutex
	var running sync.WaitGroup
	slots := make(chan struct{}, sideBySide)
	for rep := range reps {
		for _, own := range []side{neither, client, server} {
			slots <- struct{}{}
			running.Go(func() {
				defer func() { <-slots }()
				run := &scope{TB: b}
				defer run.end()
				rate, p99 := c.goodput(run, cc, own, uint64(rep+1))
				mu.Lock()
				defer mu.Unlock()
				rates[own] = append(rates[own], rate)
				late = max(late, p99)
			})
		}
	}
	running.Wait()
	return rates, late
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// spread writes a mean and the standard deviation of what it is the mean of.
func spread(v []float64) string {
	m, sum := mean(v), 0.0
	for _, x := range v {
		sum += (x - m) * (x - m)
	}
	return fmt.Sprintf("%.1f ± %.1f", m, math.Sqrt(sum/float64(max(len(v)-1, 1))))
}

// scope is a part of a test, whose cleanups run at its own end.
type scope struct {
	testing.TB
	cleanups []func()
}

// Cleanup implements testing.TB.
func (s *scope) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

func (s *scope) end() {
	for _, f := range slices.Backward(s.cleanups) {
		f()
	}
}

// goodput sends from the client to the server and returns what arrived after the warm-up, in Mbit/s, and how late the emulation was.
func (c *goodputCell) goodput(b testing.TB, cc string, own side, seed uint64) (mbps float64, p99 time.Duration) {
	group, err := congestion.ByName(cc)
	if err != nil {
		b.Fatal(err)
	}
	s := stretchSetup{own: own, sender: cc, seed: seed, sysctls: [][2]string{
		{"ipv4/tcp_no_metrics_save", "1"},
		{"ipv4/tcp_rmem", "4096 131072 33554432"}, {"ipv4/tcp_wmem", "4096 65536 33554432"}, // the product of bandwidth and delay must fit
	}}
	s.stack.Group = group
	for _, rtt := range c.rtts {
		up := link.Spec{RateMbps: 100, DelayMs: rtt / 2, RTTMs: rtt, Loss: c.loss}
		s.paths = append(s.paths, stretchPath{up: up, down: link.Spec{RateMbps: 100, DelayMs: rtt / 2, RTTMs: rtt}})
	}
	x := newStretch(b, s, *goodputTime+patience)
	from, to, err := x.connect(true)
	if err != nil {
		b.Fatal(err)
	}
	go func() {
		block := make([]byte, 256<<10)
		for end := time.Now().Add(*goodputTime + time.Second); time.Now().Before(end); {
			if _, err := from.Write(block); err != nil {
				return
			}
		}
	}()
	buf := make([]byte, 256<<10)
	began := time.Now()
	counted, since := int64(0), time.Time{}
	for time.Since(began) < *goodputTime {
		n, err := to.Read(buf)
		if err == io.EOF || err != nil {
			b.Fatalf("the stream ended: %v", err)
		}
		if since.IsZero() {
			if time.Since(began) >= time.Duration(c.warms)*(*goodputWarm) {
				since = time.Now()
			}
			continue
		}
		counted += int64(n)
	}
	took := time.Since(since)
	report := x.bridge.Report()
	if lost := report.Dropped + x.tb.Lost(); own == neither && lost > 1 { // one: the kernel greets its new interface before anybody listens
		b.Logf("the machine lost %d packets", lost)
	}
	return float64(counted) * 8 / 1e6 / took.Seconds(), report.Lateness.Quantile(0.99)
}
