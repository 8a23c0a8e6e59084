package netsim

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"braid/clock"
	"braid/link"
	"braid/mptcp"
	"braid/trace"
)

// fingerprint runs a scenario and returns the hash of every packet on every link with its time, and of the result.
func fingerprint(t *testing.T, s Scenario) (sum string) {
	t.Helper()
	h := sha256.New()
	r, err := RunWith(s, Options{Capture: h})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	h.Write(b)
	if r.Counts.Packets < 1000 {
		t.Fatalf("only %d packets", r.Counts.Packets)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// The same seed gives the same bytes, with however many processors; another seed gives others.
func TestSameSeedSameBytes(t *testing.T) {
	specs := []link.Spec{Bottleneck(20, 10, 0.01), {RateMbps: 10, DelayMs: 30, JitterMs: 3, Duplicate: 0.01, Corrupt: 0.01,
		Reorder: &link.Reorder{Probability: 0.01, DelayMs: 5}}}
	s := Bottlenecks(specs, Flow{Name: "multipath", Congestion: "coupledbbr"}, Background{"cubic", 1})
	s.DurationS = 2
	before := runtime.GOMAXPROCS(1)
	first := fingerprint(t, s)
	runtime.GOMAXPROCS(max(2, before))
	results := make(chan string, 3)
	for range cap(results) {
		go func() { results <- fingerprint(t, s) }()
	}
	for range cap(results) {
		if got := <-results; got != first {
			t.Errorf("packets or results differ: %s, before %s", got, first)
		}
	}
	runtime.GOMAXPROCS(before)
	s.Seed++
	if fingerprint(t, s) == first {
		t.Error("another seed gave the same bytes")
	}
}

func run(t testing.TB, s Scenario) *Result {
	t.Helper()
	r, err := Run(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Flows {
		if f.Error != "" || f.Corrupted != 0 {
			t.Errorf("flow %q: %s; first wrong byte %d", f.Name, f.Error, f.Corrupted-1)
		}
	}
	return r
}

func TestWorkloads(t *testing.T) {
	slow := Bottleneck(50, 10, 0)
	for _, c := range []struct {
		name  string
		flow  Flow
		check func(f *FlowResult) error
	}{
		{"bulk that ends", Flow{Workload: Workload{Bytes: 1_000_000}}, func(f *FlowResult) error {
			return want(f.Bytes == 1_000_000 && f.CompletedS > 0.17 && f.CompletedS < 0.6, "completed %d bytes after %v s", f.Bytes, f.CompletedS)
		}},
		{"download", Flow{Download: true, Workload: Workload{Bytes: 1_000_000}}, func(f *FlowResult) error {
			return want(f.Bytes == 1_000_000 && f.CompletedS > 0, "completed %d bytes after %v s", f.Bytes, f.CompletedS)
		}},
		{"stopped", Flow{StopS: 2}, func(f *FlowResult) error {
			return want(f.CompletedS > 2 && f.CompletedS < 2.5, "closed after %v s", f.CompletedS)
		}},
		{"late start", Flow{StartS: 3, Workload: Workload{Bytes: 1}}, func(f *FlowResult) error {
			return want(f.CompletedS > 0.02 && f.CompletedS < 0.05, "took %v s from its start", f.CompletedS)
		}},
		{"paced", Flow{Workload: Workload{Kind: Paced, RateMbps: 4, ChunkBytes: 5000}}, func(f *FlowResult) error {
			return want(math.Abs(f.GoodputMbps-4) < 0.1, "goodput %v Mbit/s, want 4", f.GoodputMbps)
		}},
		{"paced that ends", Flow{Workload: Workload{Kind: Paced, RateMbps: 4, Bytes: 500_001}}, func(f *FlowResult) error {
			return want(f.Bytes == 500_001 && math.Abs(f.CompletedS-1) < 0.1, "completed %d bytes after %v s", f.Bytes, f.CompletedS)
		}},
		{"slow reader", Flow{Workload: Workload{ReadRateMbps: 2}, ReceiveBufferBytes: 100_000}, func(f *FlowResult) error {
			return want(math.Abs(f.GoodputMbps-2) < 0.1 && f.Subflows[0].SentBytes < 1_370_000, "goodput %v Mbit/s of 2, %d bytes sent", f.GoodputMbps, f.Subflows[0].SentBytes)
		}},
		{"requests", Flow{Workload: Workload{Kind: Request, ResponseBytes: 1000, ThinkS: 0.08}}, func(f *FlowResult) error {
			return want(f.Requests >= 47 && f.Requests <= 50 && f.LatencyMs > 20 && f.LatencyMs < 25, "%d requests, latency %v ms", f.Requests, f.LatencyMs)
		}},
		{"over UDP", Flow{Encapsulation: "udp", Workload: Workload{Bytes: 1_000_000}}, func(f *FlowResult) error {
			return want(f.Bytes == 1_000_000 && f.CompletedS > 0.17 && f.CompletedS < 0.6, "completed %d bytes after %v s", f.Bytes, f.CompletedS)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.flow.Name = "f"
			s := Dumbbell(slow, c.flow)
			s.DurationS = 5
			if err := c.check(run(t, s).Flow("f")); err != nil {
				t.Error(err)
			}
		})
	}
}

func want(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// Connections that are closed at random moments from either side all come to their end, and leave nothing behind.
func TestChurn(t *testing.T) {
	for _, encapsulation := range []string{"ip", "udp"} {
		t.Run(encapsulation, func(t *testing.T) {
			specs := []link.Spec{Bottleneck(20, 10, 0.01), Bottleneck(10, 40, 0.03)}
			s := Bottlenecks(specs, Flow{Name: "churn", Encapsulation: encapsulation, StopS: 30, Workload: Workload{Kind: Churn, Bytes: 300_000}}, Background{})
			s.DurationS = 400 // Config.UserTimeout is 5 minutes: over UDP nobody answers for connections that are gone
			var stacks []*mptcp.Stack
			r, err := RunWith(s, Options{Prepare: func(p *Prepared) error {
				for _, name := range []string{"churn client", "churn server"} {
					stacks = append(stacks, p.Hosts[name].Stack().(*mptcp.Stack))
				}
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			f := r.Flow("churn")
			c := f.Churn
			if c.Connected < 50 || c.Accepted < c.Connected*9/10 || c.Closed != c.Connected+c.Accepted || c.Failed > c.Dialled/10 {
				t.Errorf("%+v: every connection that was connected or accepted must end", *c)
			}
			if f.Error != "" {
				t.Error(f.Error)
			}
			for i, stack := range stacks {
				n := 0
				stack.Conns(func(*mptcp.Conn) bool { n++; return true })
				if n != 0 || stack.Memory() != 0 {
					t.Errorf("stack %d keeps %d connections and %d bytes", i, n, stack.Memory())
				}
			}
		})
	}
}

// What a run is watched with does not change its result.
func TestWatchingChangesNothing(t *testing.T) {
	s := Bottlenecks([]link.Spec{Bottleneck(20, 10, 0.01), Bottleneck(10, 20, 0)}, Flow{Name: "f"}, Background{})
	s.DurationS = 2
	plain, err := json.Marshal(run(t, s))
	if err != nil {
		t.Fatal(err)
	}
	var last float64
	events := 0
	r, err := RunWith(s, Options{Capture: sha256.New(), CaptureLinks: []string{"bottleneck 2"},
		Trace:    func(string) trace.Sink { return counter{&events} },
		Progress: func(share float64) { last = share }})
	if err != nil {
		t.Fatal(err)
	}
	watched, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if string(plain) != string(watched) {
		t.Errorf("results differ:\n%.300s\n%.300s", plain, watched)
	}
	if last != 1 {
		t.Errorf("progress ended at %v", last)
	}
	if _, err := RunWith(s, Options{Capture: sha256.New(), CaptureLinks: []string{"x"}}); err == nil || !strings.Contains(err.Error(), `"x"`) {
		t.Errorf("capture of an unknown link: %v", err)
	}
}

type counter struct{ n *int }

func (c counter) Trace(*trace.Event) { *c.n++ }

func TestPathRemoval(t *testing.T) {
	s := Bottlenecks([]link.Spec{Bottleneck(10, 10, 0), Bottleneck(10, 10, 0)}, Flow{Name: "f", RemovePaths: []PathRemoval{{AtS: 2, Path: "path 1"}}}, Background{})
	s.DurationS, s.WarmupS = 5, 3
	f := run(t, s).Flow("f")
	if a, b := f.Subflows[0].ThroughputMbps, f.Subflows[1].ThroughputMbps; a != 0 || b < 9 {
		t.Errorf("after path 1 vanished: %v and %v Mbit/s, want 0 and above 9", a, b)
	}
}

// The queue of a saturated link is full on average as the algorithm leaves it, and its samples agree with what packets waited.
func TestQueueSeries(t *testing.T) {
	s := Dumbbell(Bottleneck(50, 10, 0), Flow{Name: "f", Congestion: "cubic", PlainTCP: true})
	s.DurationS = 6
	r := run(t, s)
	l := r.Links[0]
	sum := 0.0
	for _, q := range l.QueueBytes {
		sum += q
	}
	mean := sum / float64(len(l.QueueBytes))
	waited := l.Counters.MeanQueueDelay().Seconds() * float64(l.Counters.DeliveredBytes) / s.DurationS
	if mean < 10_000 || math.Abs(mean-waited) > 0.1*mean {
		t.Errorf("mean queue %.0f bytes by samples, %.0f by waiting times (Little's law)", mean, waited)
	}
}

// cpu is the processor time that this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkDumbbell is one flow over 100 Mbit/s and 50 ms, checksums on, nothing captured: one iteration is one virtual second in the
// steady state. What counts is packets (data and acknowledgments) for a second of processor time.
func BenchmarkDumbbell(b *testing.B) {
	for _, c := range []struct {
		name string
		flow Flow
	}{
		{"tcp-cubic", Flow{Name: "f", Congestion: "cubic", PlainTCP: true}},
		{"mptcp-bbr", Flow{Name: "f", Congestion: "bbr"}},
		{"mptcp-bbr-checksums", Flow{Name: "f", Congestion: "bbr", DSSChecksums: true}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := Dumbbell(Bottleneck(100, 25, 0), c.flow)
			s.DurationS = 1e6
			r, err := prepare(&s, &Options{})
			if err != nil {
				b.Fatal(err)
			}
			r.net.Run(seconds(5))
			packets, begin := r.net.Counts().Packets, cpu()
			b.ReportAllocs()
			for b.Loop() {
				r.net.Run(r.net.Now() + clock.Time(time.Second))
			}
			b.ReportMetric(float64(r.net.Counts().Packets-packets)/(cpu()-begin).Seconds(), "packets/cpu-s")
		})
	}
}
