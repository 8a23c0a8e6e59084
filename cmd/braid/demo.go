package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"braid"
	"braid/device"
	"braid/emulator"
	"braid/host"
	"braid/internal/transfer"
	"braid/link"
	"braid/mptcp"
)

// demoCmd is braid demo.
type demoCmd struct {
	Out  string `short:"o" default:"demo.svg" placeholder:"FILE" help:"Where to draw the goodput over time: .svg or .png."`
	JSON bool   `name:"json" help:"Print the result as JSON and nothing else."`
	stackFlags
}

// Help is the long help.
func (*demoCmd) Help() string {
	return `Example: braid demo --out demo.png

Both ends run in this process and talk through real UDP sockets on loopback. Two emulated paths lie between them: one like Wi-Fi (40 Mbit/s, RTT 20 ms, 0.1 % loss) and one like LTE (20 Mbit/s, 60 ms, 0.5 %). Each is measured alone; then a file is sent over both, Wi-Fi is cut silently in mid-transfer, and brought back.`
}

// The demonstration's schedule. The file is sized so that it is done a few seconds after the Wi-Fi is back.
const (
	aloneFor    = 4 * time.Second
	cutAt       = 6 * time.Second
	backAt      = 11 * time.Second
	afterReturn = 5 * time.Second
	minBytes    = 4 << 20
	demoTooLong = 60 * time.Second
	sampleEvery = 50 * time.Millisecond
	lookEvery   = 500 * time.Millisecond
)

// demoPath is an emulated path.
type demoPath struct {
	name     string
	up, down link.Spec
}

var demoPaths = []demoPath{
	{"Wi-Fi", link.Spec{RateMbps: 40, DelayMs: 10, Loss: 0.001}, link.Spec{RateMbps: 40, DelayMs: 10}},
	{"LTE", link.Spec{RateMbps: 20, DelayMs: 30, Loss: 0.005}, link.Spec{RateMbps: 20, DelayMs: 30}},
}

// demoResult is what the demonstration measured.
type demoResult struct {
	Alone_mbps    map[string]float64 `json:"alone_mbps"`
	Sum_mbps      float64            `json:"sum_of_alone_mbps"`
	Before_mbps   float64            `json:"goodput_before_cut_mbps"`
	During_mbps   float64            `json:"goodput_during_cut_mbps"`
	After_mbps    float64            `json:"goodput_after_return_mbps"`
	Recovery_s    moment             `json:"recovery_s"`
	Return_s      moment             `json:"first_byte_after_return_s"`
	Full_s        moment             `json:"full_goodput_after_return_s"`
	Bytes         int64              `json:"bytes"`
	Duration_s    float64            `json:"duration_s"`
	SHA256        string             `json:"sha256"`
	Equal         bool               `json:"sha256_equal"`
	LatenessP99ms float64            `json:"emulator_lateness_p99_ms"`
	Plot          string             `json:"plot"`
	Subflows      []pathResult       `json:"subflows"`
}

// Run is the demonstration.
func (c *demoCmd) Run(ctx context.Context) error {
	if err := c.check(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "braid-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var r demoResult
	r.Plot = c.Out
	if err := c.measureAlone(ctx, &r); err != nil {
		return err
	}
	s, err := c.sendWithCut(ctx, dir, &r)
	if err != nil {
		return err
	}
	s.judge(&r)
	if err := s.plot(c.Out, &r); err != nil {
		return err
	}
	if c.JSON {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		err = e.Encode(r)
	} else {
		r.print()
	}
	if !r.Equal {
		return errors.Join(err, transfer.ErrHash)
	}
	return err
}

func (c *demoCmd) say(format string, args ...any) {
	if !c.JSON {
		fmt.Printf(format+"\n", args...)
	}
}

// rig is the two ends and what lies between them.
type rig struct {
	listener *braid.Listener
	paths    []*emulator.Path
	client   *host.Engine
	conn     *braid.Conn
}

// connect opens a listener and a connection to it over the given emulated paths.
func (c *demoCmd) connect(ctx context.Context, over []demoPath) (_ *rig, err error) {
	r := &rig{}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	cfg := config(c.stackFlags, pathFlags{}, wireFlags{})
	if r.listener, err = cfg.Listen(ctx, "127.0.0.1:0"); err != nil {
		return nil, err
	}
	server := netip.MustParseAddrPort(r.listener.Addr().String())
	stack, err := c.stack()
	if err != nil {
		return nil, err
	}
	r.client = host.NewEngine(host.Config{Stack: stack})
	for i, p := range over {
		path, err := emulator.Open(emulator.Config{Name: p.name, Server: server, Up: p.up, Down: p.down, Seed: uint64(i + 1)})
		if err != nil {
			return nil, err
		}
		r.paths = append(r.paths, path)
		dev, err := device.Open(device.Config{Local: netip.MustParseAddrPort("127.0.0.1:0")})
		if err != nil {
			return nil, err
		}
		if _, err := r.client.AddPath(dev, mptcp.Path{Name: p.name, Kind: mptcp.UDP, MTU: 1500, Remote: path.Addr()}); err != nil {
			return nil, err
		}
	}
	dialing, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	r.conn, err = r.client.Dial(dialing, []netip.AddrPort{server}, nil)
	return r, err
}

// accept returns the server's end of the connection.
func (r *rig) accept() (*braid.Conn, error) {
	conn, err := r.listener.Accept()
	if err != nil {
		return nil, err
	}
	return conn.(*braid.Conn), nil
}

func (r *rig) close() {
	if r.listener != nil {
		r.listener.Engine().Close()
	}
	if r.client != nil {
		r.client.Close()
	}
	for _, p := range r.paths {
		p.Close()
	}
}

// measureAlone measures what each path carries without the other.
func (c *demoCmd) measureAlone(ctx context.Context, r *demoResult) error {
	r.Alone_mbps = map[string]float64{}
	for _, p := range demoPaths {
		rate, err := c.alone(ctx, p)
		if err != nil {
			return fmt.Errorf("%s alone: %w", p.name, err)
		}
		c.say("%-6s alone (%g Mbit/s, RTT %g ms, %.1f %% loss): goodput_mbps %.1f", p.name, p.up.RateMbps, p.up.DelayMs+p.down.DelayMs, 100*p.up.Loss, rate)
		r.Alone_mbps[p.name] = rate
		r.Sum_mbps += rate
	}
	return nil
}

// alone sends over one path and returns the goodput in Mbit/s, its first second left out.
func (c *demoCmd) alone(ctx context.Context, p demoPath) (float64, error) {
	r, err := c.connect(ctx, []demoPath{p})
	if err != nil {
		return 0, err
	}
	defer r.close()
	poured := make(chan error, 1)
	go func() {
		_, err := pour(ctx, r.conn, aloneFor)
		r.conn.CloseWrite()
		poured <- err
	}()
	peer, err := r.accept()
	if err != nil {
		return 0, err
	}
	block := make([]byte, benchBlock)
	var n int64
	began := time.Now()
	warm, end := began.Add(time.Second), began.Add(aloneFor)
	for now := began; now.Before(end); now = time.Now() {
		m, err := peer.Read(block)
		if err != nil && err != io.EOF {
			return 0, err
		}
		if now.After(warm) {
			n += int64(m)
		}
		if err == io.EOF {
			break
		}
	}
	rate := float64(n) * 8 / 1e6 / time.Since(warm).Seconds()
	peer.Abort()
	if err := <-poured; err != nil && ctx.Err() != nil {
		return 0, err
	}
	return rate, nil
}

// sendWithCut sends a file over both paths, cuts the first and brings it back.
func (c *demoCmd) sendWithCut(ctx context.Context, dir string, r *demoResult) (*samples, error) {
	file := filepath.Join(dir, "file.bin")
	megabits := r.Sum_mbps*(cutAt+afterReturn).Seconds() + r.Alone_mbps[demoPaths[1].name]*(backAt-cutAt).Seconds()
	bytes := max(int64(megabits*1e6/8), minBytes)
	if err := makeFile(file, bytes); err != nil {
		return nil, err
	}
	inbox := filepath.Join(dir, "inbox")
	if err := os.Mkdir(inbox, 0o700); err != nil {
		return nil, err
	}
	rig, err := c.connect(ctx, demoPaths)
	if err != nil {
		return nil, err
	}
	defer rig.close()
	ctx, cancel := context.WithTimeout(ctx, demoTooLong)
	defer cancel()
	defer context.AfterFunc(ctx, rig.conn.Abort)()
	type outcome struct {
		res  transfer.Result
		info mptcp.Info
		err  error
	}
	sent, got := make(chan outcome, 1), make(chan outcome, 1)
	go func() {
		res, err := transfer.Send(rig.conn, file, nil)
		sent <- outcome{res, rig.conn.Info(), err}
	}()
	peer, err := rig.accept()
	if err != nil {
		return nil, err
	}
	go func() {
		rc := transfer.Receiver{Dir: inbox}
		res, err := rc.Receive(peer)
		got <- outcome{res, peer.Info(), err}
	}()
	c.say("\nboth: sending a file of %s; Wi-Fi is cut silently after %g s and comes back after %g s", size(bytes), cutAt.Seconds(), backAt.Seconds())
	s := &samples{names: []string{demoPaths[0].name, demoPaths[1].name}}
	o, err := watchDemo(c, rig, peer, s, func() (outcome, bool) {
		select {
		case o := <-sent:
			return o, true
		default:
			return outcome{}, false
		}
	})
	if err != nil {
		return nil, err
	}
	if o.err != nil {
		return nil, o.err
	}
	g := <-got
	if g.err != nil {
		return nil, g.err
	}
	r.Bytes, r.SHA256, r.Equal = o.res.Size, o.res.SHA256, o.res.SHA256 == g.res.SHA256
	r.Duration_s = s.at[len(s.at)-1]
	r.Subflows = pathResults(o.info)
	for _, p := range rig.paths {
		r.LatenessP99ms = max(r.LatenessP99ms, p.Report().Lateness.Quantile(0.99).Seconds()*1e3)
	}
	return s, nil
}

// watchDemo samples the receiver until done, cuts and restores on time, and shows it.
func watchDemo[T any](c *demoCmd, rig *rig, peer *braid.Conn, s *samples, done func() (T, bool)) (T, error) {
	began := time.Now()
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	var zero T
	shown := time.Duration(0)
	for {
		if o, ok := done(); ok {
			return o, nil
		}
		now := (<-tick.C).Sub(began)
		s.take(now.Seconds(), peer.Info().Read, rig.conn.Info())
		if s.cut == 0 && now >= cutAt {
			if err := rig.paths[0].SetDown(true); err != nil {
				return zero, err
			}
			s.cut = time.Since(began).Seconds()
			c.say("          Wi-Fi is cut: no RST, no link-down, packets just vanish")
		}
		if s.back == 0 && now >= backAt {
			if err := rig.paths[0].SetDown(false); err != nil {
				return zero, err
			}
			s.back = time.Since(began).Seconds()
			c.say("          Wi-Fi is back")
		}
		if now-shown >= lookEvery {
			shown = now
			c.say("%s", s.bar(now.Seconds()))
		}
	}
}

// makeFile writes n bytes that do not compress.
func makeFile(name string, n int64) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.CopyN(f, rand.NewChaCha8([32]byte{'b', 'r', 'a', 'i', 'd'}), n); err != nil {
		return err
	}
	return f.Close()
}

// print tells a person.
func (r *demoResult) print() {
	fmt.Printf("\n%s in %.1f s, SHA-256 %s… equal at both ends: %v\n\n", size(r.Bytes), r.Duration_s, r.SHA256[:16], r.Equal)
	best := 0.0
	for _, p := range demoPaths {
		fmt.Printf("  goodput_mbps  %-24s %6.1f\n", p.name+" alone", r.Alone_mbps[p.name])
		best = max(best, r.Alone_mbps[p.name])
	}
	fmt.Printf("  goodput_mbps  %-24s %6.1f   %.0f %% of the sum of both, %.2f times the best\n", "both, before the cut", r.Before_mbps, 100*r.Before_mbps/r.Sum_mbps, r.Before_mbps/best)
	fmt.Printf("  goodput_mbps  %-24s %6.1f   %.0f %% of LTE alone\n", "both, Wi-Fi cut", r.During_mbps, 100*r.During_mbps/r.Alone_mbps[demoPaths[1].name])
	fmt.Printf("  goodput_mbps  %-24s %6.1f\n", "both, Wi-Fi back", r.After_mbps)
	fmt.Printf("  recovery_s    %-24s %6s   until 90 %% of LTE alone\n", "after the cut", r.Recovery_s)
	fmt.Printf("  return_s      %-24s %6s   until Wi-Fi carries data again; %s until 90 %% of the goodput before\n", "after the return", r.Return_s, r.Full_s)
	for _, p := range r.Subflows {
		fmt.Printf("  %-6s sent %s, retransmitted %s, reinjected %s\n", p.Path, size(p.SentBytes), size(p.RetransBytes), size(p.ReinjectedBytes))
	}
	if r.LatenessP99ms > 1 {
		fmt.Printf("  note: this machine was busy: the emulated links were up to %.1f ms late (p99)\n", r.LatenessP99ms)
	}
	fmt.Printf("\nplot: %s\n", r.Plot)
}

// bars draws a value as a row of blocks, one for every 2 Mbit/s.
func bars(mbps float64) string {
	return strings.Repeat("█", min(int(mbps/2+0.5), 40))
}
