package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"braid"
	"braid/internal/transfer"
	"braid/mptcp"
)

// sentBytes and receivedBytes say what a subflow contributed, from either end.
func sentBytes(s mptcp.SubflowInfo) int64     { return s.NewBytes + s.ReinjectedBytes }
func receivedBytes(s mptcp.SubflowInfo) int64 { return s.ReceivedBytes - s.DuplicateBytes }

// progress shows a transfer while it runs: a bar for the whole and one for each subflow on a terminal, else a line every few
// seconds.
type progress struct {
	conn  *braid.Conn
	bytes func(mptcp.SubflowInfo) int64
	quiet bool
	tty   bool

	mu      sync.Mutex
	name    string
	size    int64
	resumed int64
	done    int64
	began   time.Time
	last    time.Time
	shown   int64 // done when last shown
	bars    *mpb.Progress
	total   *mpb.Bar
	paths   map[int]*pathBar
}

// pathBar is the bar of one subflow.
type pathBar struct {
	bar   *mpb.Bar
	label string
	last  int64
	rate  float64 // Mbit/s over the last interval
	info  mptcp.SubflowInfo
}

const (
	barEvery  = 200 * time.Millisecond
	lineEvery = 2 * time.Second
)

// newProgress watches conn; bytes tells what of a subflow's work counts. quiet shows nothing.
func newProgress(conn *braid.Conn, quiet bool, bytes func(mptcp.SubflowInfo) int64) *progress {
	return &progress{conn: conn, bytes: bytes, quiet: quiet, tty: isTerminal(os.Stderr), began: time.Now(), paths: map[int]*pathBar{}}
}

// isTerminal reports whether a person watches f.
func isTerminal(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb" && os.Getenv("TERM") != ""
}

// begin tells what is moved. Without it, the first update shows a transfer of unknown size.
func (p *progress) begin(name string, size, resumed int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.name, p.size, p.resumed, p.done, p.shown = name, size, resumed, resumed, resumed
	p.began = time.Now()
}

// update is called with the bytes that are done. It returns at once most of the time.
func (p *progress) update(done int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = done
	every := lineEvery
	if p.tty {
		every = barEvery
	}
	if now := time.Now(); !p.quiet && now.Sub(p.last) >= every {
		p.show(now)
	}
}

func (p *progress) show(now time.Time) {
	interval := now.Sub(p.last)
	if p.last.IsZero() {
		interval = now.Sub(p.began)
	}
	p.last = now
	if !p.tty {
		rate := float64(p.done-p.shown) * 8 / 1e6 / interval.Seconds()
		fmt.Fprintf(os.Stderr, "%6.1f s  %9s of %s  %7.1f Mbit/s  %d subflows\n", now.Sub(p.began).Seconds(), size(p.done), size(p.size), rate, len(p.conn.Info().Subflows))
		p.shown = p.done
		return
	}
	if p.bars == nil {
		p.bars = mpb.New(mpb.WithOutput(os.Stderr), mpb.WithWidth(48), mpb.WithRefreshRate(barEvery))
		p.total = p.bars.AddBar(p.size, mpb.PrependDecorators(decor.Name(fit(p.name), decor.WCSyncSpaceR)),
			mpb.AppendDecorators(decor.CountersKibiByte("% .1f / % .1f"), decor.Any(func(decor.Statistics) string {
				return fmt.Sprintf("  %7.1f Mbit/s", float64(p.done-p.resumed)*8/1e6/time.Since(p.began).Seconds())
			})))
	}
	p.total.SetCurrent(p.done)
	for _, s := range p.conn.Info().Subflows {
		b := p.paths[s.ID]
		if b == nil {
			b = p.addPath(s)
		}
		b.rate = float64(p.bytes(s)-b.last) * 8 / 1e6 / interval.Seconds()
		b.last, b.info = p.bytes(s), s
		b.bar.SetCurrent(min(b.last, p.size))
	}
}

func (p *progress) addPath(s mptcp.SubflowInfo) *pathBar {
	b := &pathBar{label: pathName(s), last: p.bytes(s)}
	p.paths[s.ID] = b
	b.bar = p.bars.AddBar(p.size, mpb.BarNoPop(), mpb.PrependDecorators(decor.Name("  "+fit(b.label), decor.WCSyncSpaceR)),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string {
			return fmt.Sprintf("%9s  %7.1f Mbit/s  rtt_ms %.0f  %s", size(b.last), b.rate, float64(b.info.TCP.SRTT)/1e6, b.info.State)
		})))
	return b
}

// pathName names a subflow for people.
func pathName(s mptcp.SubflowInfo) string {
	if s.PathName != "" {
		return s.PathName
	}
	return s.Local.Addr().String()
}

// fit cuts a name to the width of its column.
func fit(s string) string {
	if r := []rune(s); len(r) > 24 {
		return string(r[:23]) + "…"
	}
	return s
}

// stop ends the display; err is why, nil when all is well.
func (p *progress) stop(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bars == nil {
		return
	}
	if err == nil {
		p.show(time.Now())
		p.total.SetTotal(-1, true)
	}
	p.total.Abort(false)
	for _, b := range p.paths {
		b.bar.Abort(false)
	}
	p.bars.Wait()
}

// size prints bytes for people.
func size(n int64) string {
	switch f := float64(n); {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", f/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", f/(1<<20))
	default:
		return fmt.Sprintf("%.2f GiB", f/(1<<30))
	}
}

// pathResult is a subflow's part in a finished transfer.
type pathResult struct {
	Path            string  `json:"path"`
	Local           string  `json:"local"`
	Remote          string  `json:"remote"`
	State           string  `json:"state"`
	SentBytes       int64   `json:"sent_bytes"`
	ReceivedBytes   int64   `json:"received_bytes"`
	ReinjectedBytes int64   `json:"reinjected_bytes"`
	RedundantBytes  int64   `json:"redundant_bytes"`
	RetransBytes    int64   `json:"retransmitted_bytes"`
	SRTT_ms         float64 `json:"srtt_ms"`
}

func pathResults(info mptcp.Info) []pathResult {
	var all []pathResult
	for _, s := range info.Subflows {
		all = append(all, pathResult{pathName(s), s.Local.String(), s.Remote.String(), s.State, s.NewBytes, s.ReceivedBytes,
			s.ReinjectedBytes, s.RedundantBytes, s.TCP.RetransBytes, float64(s.TCP.SRTT) / 1e6})
	}
	return all
}

// report prints what became of a file.
func report(asJSON bool, verb string, res transfer.Result, took time.Duration, info mptcp.Info) error {
	rate := float64(res.Size-res.Resumed) * 8 / 1e6 / took.Seconds()
	if asJSON {
		return json.NewEncoder(os.Stdout).Encode(struct {
			Verb         string       `json:"verb"`
			Name         string       `json:"name"`
			Bytes        int64        `json:"bytes"`
			ResumedBytes int64        `json:"resumed_bytes"`
			SHA256       string       `json:"sha256"`
			Duration_s   float64      `json:"duration_s"`
			Rate_mbps    float64      `json:"rate_mbps"`
			Fallback     string       `json:"fallback,omitempty"`
			Subflows     []pathResult `json:"subflows"`
		}{verb, res.Name, res.Size, res.Resumed, res.SHA256, took.Seconds(), rate, fallbackText(info), pathResults(info)})
	}
	fmt.Printf("%s %s: %s in %.1f s, %.1f Mbit/s", verb, res.Name, size(res.Size), took.Seconds(), rate)
	if res.Resumed > 0 {
		fmt.Printf(" (%s were there already)", size(res.Resumed))
	}
	fmt.Printf("\nSHA-256 %s, equal at both ends\n", res.SHA256)
	for _, p := range pathResults(info) {
		fmt.Printf("  %-16s %s -> %s  sent %s, received %s, retransmitted %s, reinjected %s, srtt_ms %.1f, %s\n", p.Path, p.Local, p.Remote,
			size(p.SentBytes), size(p.ReceivedBytes), size(p.RetransBytes), size(p.ReinjectedBytes), p.SRTT_ms, p.State)
	}
	if f := fallbackText(info); f != "" {
		fmt.Printf("  fell back to TCP: %s\n", f)
	}
	return nil
}

func fallbackText(info mptcp.Info) string {
	if info.Fallback == mptcp.NoFallback {
		return ""
	}
	return info.Fallback.String()
}
