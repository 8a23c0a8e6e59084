package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"braid/experiment/real"
	"braid/netsim"
)

// simCmd is braid sim.
type simCmd struct {
	File    string  `arg:"" type:"existingfile" help:"Scenario in TOML; see examples/."`
	Seed    *uint64 `help:"Seed instead of the scenario's: the same seed gives the same bytes."`
	JSON    bool    `name:"json" help:"Print everything measured, series included, as JSON."`
	Capture string  `placeholder:"FILE" help:"Write what goes through the links to a pcapng file for Wireshark."`
	Plot    string  `placeholder:"FILE" help:"Draw the goodput over time to an .svg or .png."`
	Real    bool    `help:"Run it in real time too, over emulated paths and UDP sockets on this machine, and show both."`
}

// Help is the long help.
func (*simCmd) Help() string {
	return `Examples:
  braid sim examples/failover.toml --plot failover.svg
  braid sim examples/two-paths.toml --real

The simulator runs the shipped stack in virtual time: what it measures is the code that runs in the other commands. A key that a scenario may not have is refused by name.

With --real the same scenario runs once more through real sockets, in as much time as it says; --json then prints both. What cannot be run so (links of hundreds of Mbit/s, paths of several links) is refused by name.`
}

// Run runs the scenario.
func (c *simCmd) Run(ctx context.Context) error {
	s, err := netsim.LoadScenarioFile(c.File)
	if err != nil {
		return err
	}
	if c.Seed != nil {
		s.Seed = *c.Seed
	}
	if c.Real {
		*s = real.Encapsulated(*s)
		if err := real.Check(s); err != nil {
			return fmt.Errorf("--real: %w", err)
		}
	}
	var opt netsim.Options
	var capture *os.File
	if c.Capture != "" {
		if capture, err = os.Create(c.Capture); err != nil {
			return err
		}
		defer capture.Close()
		opt.Capture = capture
	}
	began := time.Now()
	r, err := netsim.RunWith(*s, opt)
	if err != nil {
		return err
	}
	took := time.Since(began)
	if capture != nil {
		if err := capture.Close(); err != nil {
			return fmt.Errorf("capture: %w", err)
		}
	}
	if c.Plot != "" {
		if err := plotFlows(c.Plot, r); err != nil {
			return err
		}
	}
	if c.Real {
		return c.runReal(ctx, s, r, took)
	}
	if c.JSON {
		return printJSON(r)
	}
	printResult(r, fmt.Sprintf("simulated in %.2f s", took.Seconds()))
	return nil
}

// runReal runs the scenario in real time, after the simulator.
func (c *simCmd) runReal(ctx context.Context, s *netsim.Scenario, simulated *netsim.Result, took time.Duration) error {
	if !c.JSON {
		printResult(simulated, fmt.Sprintf("simulated in %.2f s", took.Seconds()))
		fmt.Println()
	}
	r, err := real.Run(ctx, *s)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(real.Pair{Simulated: []*netsim.Result{simulated}, Real: r, Tries: 1})
	}
	printResult(&r.Result, "in real time")
	fmt.Printf("\n%s\n", r.Timing)
	return nil
}

func printResult(r *netsim.Result, how string) {
	fmt.Printf("%s, seed %d: %.1f s %s\n", r.Name, r.Seed, r.DurationS, how)
	for i := range r.Flows {
		f := &r.Flows[i]
		fmt.Printf("\n%-20s goodput_mbps %8.2f   out-of-order queue, mean packets %.1f, most %d\n", f.Name, f.GoodputMbps, f.OutOfOrderPackets, f.MaxOutOfOrderPackets)
		if f.CompletedS > 0 {
			fmt.Printf("  complete after %.3f s\n", f.CompletedS)
		}
		if f.Requests > 0 {
			fmt.Printf("  %d requests, latency_ms %.1f\n", f.Requests, f.LatencyMs)
		}
		if f.Error != "" {
			fmt.Printf("  ended: %s\n", f.Error)
		}
		for _, s := range f.Subflows {
			fmt.Printf("  %-18s throughput_mbps %8.2f   rtt_ms %7.1f   retransmitted %s\n", s.Path, s.ThroughputMbps, s.MeanRTTMs, size(s.RetransmittedBytes))
		}
	}
}

// plotFlows draws each flow's goodput.
func plotFlows(file string, r *netsim.Result) error {
	var lines []line
	for i, f := range r.Flows {
		l := line{name: f.Name, colour: palette(i)}
		for k, v := range f.Series.GoodputMbps {
			l.time_s = append(l.time_s, (float64(k)+0.5)*r.BinS)
			l.value = append(l.value, v)
		}
		lines = append(lines, l)
	}
	title := r.Name
	if title == "" {
		title = "goodput"
	}
	return plotOverTime(file, title, "goodput (Mbit/s)", lines, nil)
}
