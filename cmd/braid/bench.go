package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/pprof"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"braid"
	"braid/mptcp"
)

// benchCmd is braid bench.
type benchCmd struct {
	To       string  `arg:"" optional:"" name:"host:port" help:"Where a braid bench --server listens."`
	Server   bool    `short:"s" help:"Be the server: answer clients until interrupted."`
	Loopback bool    `help:"Be both ends in this process, over UDP on loopback."`
	Listen   string  `short:"l" default:":9001" placeholder:"[HOST]:PORT" help:"Where the server listens."`
	Time     float64 `short:"t" default:"5" placeholder:"SECONDS" help:"How long to send."`
	Parallel int     `short:"P" default:"1" help:"Connections at the same time, 1 to 128."`
	Reverse  bool    `short:"R" help:"The server sends."`
	Paths    int     `default:"1" help:"With --loopback: how many paths, 1 to 8."`
	Interval float64 `short:"i" default:"1" placeholder:"SECONDS" help:"How often to print; 0 only at the end."`
	MTU      int     `default:"1500" help:"Largest IP packet to send."`
	Profile  string  `hidden:"" help:"Write a CPU profile."`
	monitor  *braid.Monitor
	JSON     bool `name:"json" help:"Print the result as JSON and nothing else."`
	pathFlags
	stackFlags
	wireFlags
}

// Help is the long help.
func (*benchCmd) Help() string {
	return `Examples:
  braid bench --loopback --paths 2 -t 5
  braid bench --server --listen :9001
  braid bench server.example:9001 -t 10 -P 2 -R --json

CPU seconds are those of this process: with --loopback of both ends together, else of this end.`
}

// benchOrder is what a client asks a server for, one line of JSON at the start of each connection.
type benchOrder struct {
	Magic   string        `json:"magic"`
	Reverse bool          `json:"reverse"`
	Time    time.Duration `json:"time"`
}

// benchTally is the receiver's last word: what arrived, and in how long.
type benchTally struct {
	Bytes int64         `json:"bytes"`
	Took  time.Duration `json:"took"`
}

const (
	benchMagic   = "braid-bench-1"
	benchBlock   = 256 << 10
	benchLongest = time.Hour
)

// Run is either end.
func (c *benchCmd) Run(ctx context.Context) error {
	switch {
	case c.Parallel < 1 || c.Parallel > 128:
		return fmt.Errorf("--parallel %d: must be 1 to 128", c.Parallel)
	case !(c.Time > 0 && c.Time <= benchLongest.Seconds()):
		return fmt.Errorf("--time %v: must be above 0 and at most %v seconds", c.Time, benchLongest.Seconds())
	case c.Paths < 1 || c.Paths > 8:
		return fmt.Errorf("--paths %d: must be 1 to 8", c.Paths)
	case c.Loopback && c.Via != "udp":
		return errors.New("--loopback is over UDP: measure --via tun and raw with a --server in one place and a client in another")
	case c.MTU < 1280 || c.MTU > 65535:
		return fmt.Errorf("--mtu %d: must be 1280 to 65535", c.MTU)
	}
	if err := errors.Join(c.stackFlags.check(), c.wireFlags.check()); err != nil {
		return err
	}
	if c.Profile != "" {
		f, err := os.Create(c.Profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	if c.Server || c.Loopback || c.To != "" {
		var shared braid.Config // both ends of --loopback
		defer monitored(&shared)()
		c.monitor = shared.Monitor
	}
	switch {
	case c.Server:
		return c.serve(ctx, c.Listen, nil)
	case c.Loopback:
		return c.loopback(ctx)
	case c.To != "":
		return c.client(ctx, c.To)
	}
	return errors.New("say where the server is (HOST:PORT), or be one (--server), or both (--loopback)")
}

// inSeconds is a flag's number of seconds as a duration.
func inSeconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func (c *benchCmd) config() *braid.Config {
	cfg := config(c.stackFlags, c.pathFlags, c.wireFlags)
	cfg.MTU, cfg.Monitor = c.MTU, c.monitor
	return cfg
}

// loopback is both ends: the server on its own address of the loopback network, the client on one address a path.
func (c *benchCmd) loopback(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ready := make(chan net.Addr, 1)
	served := make(chan error, 1)
	go func() { served <- c.serve(ctx, "127.0.0.1:0", ready) }()
	select {
	case err := <-served:
		return err
	case addr := <-ready:
		c.Path = nil
		for i := range c.Paths {
			c.Path = append(c.Path, fmt.Sprintf("127.0.0.%d", i+1))
		}
		return c.client(ctx, addr.String())
	}
}

func (c *benchCmd) serve(ctx context.Context, at string, ready chan<- net.Addr) error {
	cfg := c.config()
	if c.Loopback {
		cfg.Interfaces, cfg.Backup = nil, nil // those are the client's
	}
	l, err := cfg.Listen(ctx, at)
	if err != nil {
		return err
	}
	defer l.Close()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	if ready != nil {
		ready <- l.Addr()
	} else {
		fmt.Fprintf(os.Stderr, "braid bench: listening on %s\n", l.Addr())
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		}
		go func() {
			defer conn.Close()
			if err := serveBench(ctx, conn.(*braid.Conn)); err != nil && ctx.Err() == nil {
				fmt.Fprintf(os.Stderr, "braid bench: client %s: %v\n", conn.RemoteAddr(), err)
			}
		}()
	}
}

// serveBench does what one connection of a client asks for.
func serveBench(ctx context.Context, conn *braid.Conn) error {
	var order benchOrder
	d := json.NewDecoder(io.LimitReader(conn, 1024))
	if err := d.Decode(&order); err != nil || order.Magic != benchMagic || order.Time <= 0 || order.Time > benchLongest {
		return errors.New("not a braid bench client")
	}
	if order.Reverse {
		_, err := pour(ctx, conn, order.Time)
		if err == nil {
			err = conn.CloseWrite()
		}
		io.Copy(io.Discard, conn)
		return err
	}
	early, _ := io.Copy(io.Discard, d.Buffered())
	var n atomic.Int64
	took, err := drain(conn, &n)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(conn).Encode(benchTally{n.Load() + early, took}); err != nil {
		return err
	}
	closing, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return conn.Shutdown(closing)
}

// pour writes for the given time.
func pour(ctx context.Context, conn net.Conn, d time.Duration) (int64, error) {
	block := make([]byte, benchBlock)
	var n int64
	for end := time.Now().Add(d); time.Now().Before(end); {
		if ctx.Err() != nil {
			return n, context.Cause(ctx)
		}
		m, err := conn.Write(block)
		n += int64(m)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// drain reads to the end and returns how long the bytes took, from the first to the last.
func drain(conn net.Conn, n *atomic.Int64) (time.Duration, error) {
	block := make([]byte, benchBlock)
	var first, last time.Time
	for {
		m, err := conn.Read(block)
		if m > 0 {
			last = time.Now()
			if first.IsZero() {
				first = last
			}
			n.Add(int64(m))
		}
		if err == io.EOF {
			return last.Sub(first), nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// benchResult is what a client prints.
type benchResult struct {
	Bytes      int64          `json:"bytes"`
	Duration_s float64        `json:"duration_s"`
	Rate_mbps  float64        `json:"rate_mbps"`
	CPU_s      float64        `json:"cpu_s"`
	CPU_s_GB   float64        `json:"cpu_s_per_gb"`
	BothEnds   bool           `json:"cpu_of_both_ends"`
	Reverse    bool           `json:"reverse"`
	CC         string         `json:"congestion,omitempty"`
	Scheduler  string         `json:"scheduler,omitempty"`
	MTU        int            `json:"mtu"`
	Conns      [][]pathResult `json:"connections"`
}

// stream is one connection of a client.
type stream struct {
	conn  *braid.Conn
	bytes atomic.Int64 // received, with --reverse
	tally benchTally
	info  mptcp.Info
	err   error
}

func (c *benchCmd) client(ctx context.Context, to string) error {
	cfg := c.config()
	streams := make([]*stream, c.Parallel)
	for i := range streams {
		conn, err := cfg.Dial(ctx, to)
		if err != nil {
			return err
		}
		defer conn.Close()
		defer context.AfterFunc(ctx, conn.Abort)()
		streams[i] = &stream{conn: conn}
	}
	cpu, began := cpuTime(), time.Now()
	var running sync.WaitGroup
	for _, s := range streams {
		running.Go(func() { s.err = s.run(ctx, c.Reverse, inSeconds(c.Time)) })
	}
	done := make(chan struct{})
	go func() { running.Wait(); close(done) }()
	c.watch(streams, began, done)
	used := cpuTime() - cpu
	var r benchResult
	for _, s := range streams {
		if s.err != nil {
			return s.err
		}
		r.Bytes += s.tally.Bytes
		r.Duration_s = max(r.Duration_s, s.tally.Took.Seconds())
		r.Conns = append(r.Conns, pathResults(s.info))
	}
	r.Rate_mbps = float64(r.Bytes) * 8 / 1e6 / r.Duration_s
	r.CPU_s, r.CPU_s_GB = used.Seconds(), used.Seconds()/(float64(r.Bytes)/1e9)
	r.BothEnds, r.Reverse, r.CC, r.Scheduler, r.MTU = c.Loopback, c.Reverse, c.CC, c.Scheduler, c.MTU
	return c.print(&r)
}

// run does one connection's share.
func (s *stream) run(ctx context.Context, reverse bool, d time.Duration) (err error) {
	if err := json.NewEncoder(s.conn).Encode(benchOrder{benchMagic, reverse, d}); err != nil {
		return err
	}
	if reverse {
		s.tally.Took, err = drain(s.conn, &s.bytes)
		s.tally.Bytes = s.bytes.Load()
		s.info = s.conn.Info()
		return err
	}
	if _, err := pour(ctx, s.conn, d); err != nil {
		return err
	}
	s.info = s.conn.Info()
	if err := s.conn.CloseWrite(); err != nil {
		return err
	}
	if err := json.NewDecoder(s.conn).Decode(&s.tally); err != nil {
		return fmt.Errorf("the server did not say what arrived: %w", err)
	}
	return nil
}

// watch prints a line a subflow and interval until done.
func (c *benchCmd) watch(streams []*stream, began time.Time, done <-chan struct{}) {
	if c.JSON || c.Interval <= 0 {
		<-done
		return
	}
	tick := time.NewTicker(inSeconds(c.Interval))
	defer tick.Stop()
	last := map[[2]int]int64{}
	for at := began; ; {
		select {
		case <-done:
			return
		case now := <-tick.C:
			seconds := now.Sub(at).Seconds()
			at = now
			for i, s := range streams {
				for _, sf := range s.conn.Info().Subflows {
					n, key := sf.TCP.Delivered, [2]int{i, sf.ID}
					if c.Reverse {
						n = sf.ReceivedBytes
					}
					fmt.Printf("%6.1f s  connection %d  %-14s %9.1f Mbit/s  srtt_ms %7.2f  window %9s  retransmitted %s\n", now.Sub(began).Seconds(), i,
						pathName(sf), float64(n-last[key])*8/1e6/seconds, float64(sf.TCP.SRTT)/1e6, size(sf.TCP.Window), size(sf.TCP.RetransBytes))
					last[key] = n
				}
			}
		}
	}
}

func (c *benchCmd) print(r *benchResult) error {
	if c.JSON {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	ends := "this end"
	if r.BothEnds {
		ends = "both ends"
	}
	fmt.Printf("%s in %.2f s: %.1f Mbit/s", size(r.Bytes), r.Duration_s, r.Rate_mbps)
	if r.CPU_s > 0 {
		fmt.Printf("; CPU of %s %.2f s, %.2f s/GB", ends, r.CPU_s, r.CPU_s_GB)
	}
	fmt.Println()
	for i, conn := range r.Conns {
		for _, p := range slices.Clone(conn) {
			fmt.Printf("  connection %d  %-14s sent %s, received %s, retransmitted %s, reinjected %s, srtt_ms %.2f\n", i, p.Path,
				size(p.SentBytes), size(p.ReceivedBytes), size(p.RetransBytes), size(p.ReinjectedBytes), p.SRTT_ms)
		}
	}
	return nil
}
