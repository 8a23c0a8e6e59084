package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"braid/emulator"
	"braid/emulator/testbed"
	"braid/link"
	"braid/netsim"
)

// emulateCmd is braid emulate.
type emulateCmd struct {
	Path     []string      `short:"p" sep:"none" placeholder:"NAME:KEY=VALUE,..." help:"A path; repeat for several. The keys are below."`
	At       []string      `sep:"none" placeholder:"TIME:PATH:KEY=VALUE,..." help:"What changes later; repeat for several, in order of time."`
	Scenario string        `type:"existingfile" placeholder:"FILE" help:"Take links and paths from a scenario of braid sim, which may share links, instead of --path."`
	Server   string        `placeholder:"COMMAND" help:"Shell command to run at the server meanwhile; the client's begins when it listens."`
	Time     time.Duration `short:"t" placeholder:"DURATION" help:"End after this long. Default: with the command; without one, when interrupted."`
	MTU      int           `default:"1500" help:"MTU of the interfaces."`
	Seed     uint64        `default:"1" help:"Seed of losses and other chances."`
	ClientNS string        `name:"client-ns" placeholder:"NAME" help:"Existing namespace for the client, instead of a new one."`
	ServerNS string        `name:"server-ns" placeholder:"NAME" help:"Existing namespace for the server."`
	JSON     bool          `name:"json" help:"Report as JSON on stdout; what the commands print goes to stderr."`
	Command  []string      `arg:"" optional:"" passthrough:"" help:"What to run at the client."`
}

// Help is the long help.
func (*emulateCmd) Help() string {
	var b strings.Builder
	b.WriteString(`Real links of any quality for any program and for the kernel's own TCP and MPTCP, without netem: two network namespaces joined by TUN interfaces whose packets cross the same queues and wires as in the simulator, in real time (Linux, root).

Examples:
  braid emulate --path wifi:rate=40mbit,delay=10ms,loss=0.1% --path lte:rate=20mbit,delay=30ms --server "iperf3 -s -1" -- iperf3 -c 10.77.0.1
  braid emulate --path dsl:down.rate=16mbit,up.rate=1mbit,delay=15ms,queue=100 --at 5s:dsl:down=yes --at 8s:dsl:down=no -- bash
  braid emulate --path bad:rate=10mbit,delay=20ms,strip=synack    (until interrupted; it prints how to enter)

The server is 10.77.0.1 and fd77::1 over all paths, and 10.77.I.1 on path I; the client is 10.77.I.2 there (fd77:I::2). Bind to an address or interface to use its path; the kernel's MPTCP uses all.

Keys of a path; up. or down. in front is one direction only (up: from the client):
`)
	for _, v := range linkValues {
		fmt.Fprintf(&b, "  %-10s %s\n", v.key, v.help)
	}
	for _, v := range boxValues {
		fmt.Fprintf(&b, "  %-10s middlebox: %s\n", v.key, v.help)
	}
	return b.String()
}

const (
	tooLate       = time.Millisecond // a 99th percentile above it makes an emulation doubtful
	serverWait    = 10 * time.Second // for the server's command to listen
	commandGrace  = 3 * time.Second  // from being asked to end to being killed
	pollListening = 20 * time.Millisecond
)

// emulateReport is what is printed at the end.
type emulateReport struct {
	Seed          uint64          `json:"seed"`
	Duration_s    float64         `json:"duration_s"`
	Command       []string        `json:"command,omitempty"`
	ExitCode      int             `json:"exit_code"`
	Packets       int64           `json:"packets"`
	LatenessP50ms float64         `json:"lateness_p50_ms"`
	LatenessP99ms float64         `json:"lateness_p99_ms"`
	LatenessMaxMs float64         `json:"lateness_max_ms"`
	OnTime        bool            `json:"on_time"`
	LostByMachine int64           `json:"lost_by_machine"`
	Links         []emulateCounts `json:"links"`
}

type emulateCounts struct {
	Name string `json:"name"`
	link.Counters
}

// Run runs the emulation.
func (c *emulateCmd) Run(ctx context.Context) error {
	if len(c.Command) > 0 && c.Command[0] == "--" {
		c.Command = c.Command[1:]
	}
	cfg, err := c.bridge()
	if err != nil {
		return err
	}
	var names []string
	for _, p := range cfg.Paths {
		names = append(names, p.Name)
	}
	tb, err := testbed.Open(testbed.Config{Paths: names, MTU: c.MTU, Client: c.ClientNS, Server: c.ServerNS})
	if err != nil {
		return err
	}
	for i := range cfg.Paths {
		cfg.Paths[i].Client, cfg.Paths[i].Server = tb.ClientEnd[i], tb.ServerEnd[i]
	}
	bridge, err := emulator.OpenBridge(cfg)
	if err != nil {
		return errors.Join(err, tb.Close())
	}
	began := time.Now()
	err = c.commands(ctx, tb)
	r := c.report(cfg, bridge.Report(), tb.Lost())
	r.Duration_s = time.Since(began).Seconds()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		r.ExitCode = exit.ExitCode()
	}
	return errors.Join(err, bridge.Close(), tb.Close(), r.print(c.JSON))
}

// bridge returns the links and paths, without ends.
func (c *emulateCmd) bridge() (cfg emulator.BridgeConfig, err error) {
	cfg.Seed = c.Seed
	switch {
	case (c.Scenario == "") == (len(c.Path) == 0):
		return cfg, errors.New("say what lies between: --path NAME:KEY=VALUE,... or --scenario FILE; see braid emulate --help")
	case c.Scenario != "" && len(c.At) > 0:
		return cfg, errors.New("--at goes with --path: a scenario has its own changes")
	case c.Time < 0:
		return cfg, fmt.Errorf("--time %v: must not be negative", c.Time)
	case c.Scenario != "":
		return cfg, c.fromScenario(&cfg)
	}
	var paths []*emulatedPath
	for _, text := range c.Path {
		p, err := readPath(text)
		if err != nil {
			return cfg, err
		}
		paths = append(paths, p)
	}
	for _, text := range c.At {
		if err := readChange(text, paths); err != nil {
			return cfg, err
		}
	}
	for i, p := range paths {
		cfg.Links = append(cfg.Links, emulator.NamedLink{Name: p.name + "/up", Spec: p.up}, emulator.NamedLink{Name: p.name + "/down", Spec: p.down})
		cfg.Paths = append(cfg.Paths, emulator.BridgePath{Name: p.name, Forward: []int{2 * i}, Reverse: []int{2*i + 1}, Boxes: p.boxes})
	}
	return cfg, nil
}

// fromScenario takes a scenario's links and paths; its flows are the simulator's.
func (c *emulateCmd) fromScenario(cfg *emulator.BridgeConfig) error {
	s, err := netsim.LoadScenarioFile(c.Scenario)
	if err != nil {
		return err
	}
	at := map[string]int{}
	for _, m := range s.Links {
		if m.TraceWalk != nil {
			if m.TraceMs, err = link.GenerateOpportunities(*m.TraceWalk, link.Stream(c.Seed, "trace of "+m.Name)); err != nil {
				return fmt.Errorf("link %q: %w", m.Name, err)
			}
		}
		at[m.Name] = len(cfg.Links)
		cfg.Links = append(cfg.Links, emulator.NamedLink{Name: m.Name, Spec: m.Spec})
	}
	for _, route := range s.Paths {
		p := emulator.BridgePath{Name: strings.ReplaceAll(route.Name, " ", "-")}
		var back link.Spec
		for _, name := range route.Forward {
			p.Forward = append(p.Forward, at[name])
			back.DelayMs += cfg.Links[at[name]].DelayMs
		}
		for _, name := range route.Reverse {
			p.Reverse = append(p.Reverse, at[name])
		}
		if len(p.Reverse) == 0 { // as in the simulator: the delay and nothing else
			p.Reverse = []int{len(cfg.Links)}
			cfg.Links = append(cfg.Links, emulator.NamedLink{Name: route.Name + " back", Spec: back})
		}
		cfg.Paths = append(cfg.Paths, p)
	}
	return nil
}

// commands runs what there is to run, or waits.
func (c *emulateCmd) commands(ctx context.Context, tb *testbed.Testbed) error {
	if c.Time > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Time)
		defer cancel()
	}
	if c.Server != "" {
		stop, err := c.serve(ctx, tb.Server)
		if err != nil {
			return err
		}
		defer stop()
	}
	if len(c.Command) == 0 {
		fmt.Fprintf(os.Stderr, "braid emulate: the paths are there until interrupted; enter with\n  ip netns exec %s bash\n  ip netns exec %s bash\n", tb.Client.Name(), tb.Server.Name())
		<-ctx.Done()
		return nil
	}
	client := c.command(ctx, c.Command)
	client.Stdin = os.Stdin
	if err := tb.Client.Start(client); err != nil {
		return err
	}
	err := client.Wait()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil // it has had its time
	}
	return err
}

// command makes a command that is asked to end, and later killed, when the context is done.
func (c *emulateCmd) command(ctx context.Context, words []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if c.JSON {
		cmd.Stdout = os.Stderr
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = commandGrace
	return cmd
}

// serve starts the server's command and waits until it listens. The function that it returns ends it.
func (c *emulateCmd) serve(ctx context.Context, ns *testbed.Namespace) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	cmd := c.command(ctx, []string{"sh", "-c", "exec " + c.Server})
	if err := ns.Start(cmd); err != nil {
		cancel()
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick, limit := time.NewTicker(pollListening), time.After(serverWait)
	defer tick.Stop()
	for !ns.Listens() {
		select {
		case err := <-ended:
			cancel()
			return nil, fmt.Errorf("--server: the command ended before it listened: %w", err)
		case <-limit:
			cancel()
			<-ended
			return nil, fmt.Errorf("--server: the command does not listen after %v", serverWait)
		case <-ctx.Done():
			cancel()
			<-ended
			return nil, context.Cause(ctx)
		case <-tick.C:
		}
	}
	return func() { cancel(); <-ended }, nil
}

func (c *emulateCmd) report(cfg emulator.BridgeConfig, b emulator.BridgeReport, lost int64) *emulateReport {
	ms := func(d time.Duration) float64 { return d.Seconds() * 1e3 }
	p99 := b.Lateness.Quantile(0.99)
	r := &emulateReport{
		Seed: c.Seed, Command: c.Command, Packets: b.Lateness.Count(),
		LatenessP50ms: ms(b.Lateness.Quantile(0.5)), LatenessP99ms: ms(p99), LatenessMaxMs: ms(b.Lateness.Max()),
		LostByMachine: b.Dropped + lost,
	}
	r.OnTime = p99 <= tooLate && r.LostByMachine == 0
	for i, n := range b.Links {
		r.Links = append(r.Links, emulateCounts{cfg.Links[i].Name, n})
	}
	return r
}

func (r *emulateReport) print(asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	w := os.Stderr
	fmt.Fprintf(w, "\nbraid emulate: %.1f s, %d packets delivered; lateness_ms p50 %.3f, p99 %.3f, most %.3f\n", r.Duration_s, r.Packets, r.LatenessP50ms, r.LatenessP99ms, r.LatenessMaxMs)
	for _, l := range slices.Clone(r.Links) {
		fmt.Fprintf(w, "  %-16s %9d packets, %10s in; dropped: queue %d, loss %d, down %d, mtu %d; duplicated %d, reordered %d, corrupted %d; queue_delay_ms mean %.2f, most %.2f\n", l.Name,
			l.Offered, size(l.OfferedBytes), l.DropsQueue, l.DropsLoss, l.DropsDown, l.DropsMTU, l.Duplicated, l.Reordered, l.Counters.Corrupted,
			l.MeanQueueDelay().Seconds()*1e3, l.MaxQueueDelay.Seconds()*1e3)
	}
	if r.LatenessP99ms > tooLate.Seconds()*1e3 {
		fmt.Fprintf(w, "  the machine was too busy: packets were up to %.1f ms late (p99), so do not trust what this run measured\n", r.LatenessP99ms)
	}
	if r.LostByMachine > 0 {
		fmt.Fprintf(w, "  the machine lost %d packets that no link was to lose: do not trust what this run measured\n", r.LostByMachine)
	}
	return nil
}
