// Command braid moves data over several networks at once: files, benchmarks, simulations and a demonstration.
//
// One file per subcommand; the work is done in the packages below. See braid --help.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"braid"
	"braid/congestion"
	"braid/mptcp"
	"braid/schedule"
)

const description = `One byte stream over several networks at once: Multipath TCP (RFC 8684) in user space.

Examples:
  braid demo                                         see it work: two emulated paths, one cut and brought back
  braid recv --listen :9000 --dir inbox              take files
  braid send holiday.tar server.example:9000         send one over every network there is
  braid bench --server --listen :9001                measure, this end
  braid bench server.example:9001 -t 10              ... and that
  braid stat                                         what running ones do: connections, subflows, counters
  braid sim examples/two-paths.toml --json           run a scenario in the simulator
  braid emulate --path dsl:rate=16mbit,delay=15ms -- bash   a real link for any program (Linux, root)
  braid paper all --quick                            the paper's figures and verdicts, roughly`

// cli is the command line.
type cli struct {
	Send    sendCmd    `cmd:"" help:"Send a file to a braid recv, over every network there is; resumes when run again."`
	Recv    recvCmd    `cmd:"" help:"Receive files."`
	Bench   benchCmd   `cmd:"" help:"Measure throughput between two ends, or over loopback in one process."`
	Stat    statCmd    `cmd:"" help:"Show connections, subflows and counters of running braid processes."`
	Sim     simCmd     `cmd:"" help:"Run a scenario file in the simulator."`
	Paper   paperCmd   `cmd:"" help:"Run the experiments of the paper and judge its claims."`
	Emulate emulateCmd `cmd:"" help:"Run programs, or the kernel's own MPTCP, over emulated links between two network namespaces (Linux, root)."`
	Tun     tunCmd     `cmd:"" help:"Make and remove TUN interfaces for --via tun (Linux, root)."`
	Demo    demoCmd    `cmd:"" help:"Send a real file over two emulated paths, cut one, bring it back. No privilege, under 40 s."`

	Version kong.VersionFlag `help:"Print the version."`
}

// stackFlags choose what carries a connection; Send, Bench and Demo share them.
type stackFlags struct {
	CC        string `name:"cc" placeholder:"NAME" help:"Congestion control: ${cc}. Default: the stack's."`
	Scheduler string `placeholder:"NAME" help:"Packet scheduler: ${schedulers}. Default: the stack's."`
}

// stack returns the protocol's configuration; its error names the flag that is wrong.
func (f stackFlags) stack() (cfg mptcp.Config, err error) {
	if f.CC != "" {
		if cfg.Group, err = congestion.ByName(f.CC); err != nil {
			return cfg, fmt.Errorf("--cc: %w", err)
		}
	}
	if f.Scheduler != "" {
		if cfg.Scheduler, err = schedule.ByName(f.Scheduler); err != nil {
			return cfg, fmt.Errorf("--scheduler: %w", err)
		}
	}
	return cfg, nil
}

// check finds a wrong flag before anything is opened.
func (f stackFlags) check() error {
	_, err := f.stack()
	return err
}

// pathFlags name the networks to use.
type pathFlags struct {
	Path   []string `short:"p" placeholder:"IFACE|ADDR" help:"Network to use, by interface name or local address; repeat for several, the best first. Default: all."`
	Backup []string `placeholder:"IFACE|ADDR" help:"Those of --path that are used only while nothing else works."`
}

// wireFlags choose what the segments travel in; Send, Recv and Bench share them.
type wireFlags struct {
	Via string   `enum:"udp,tun,raw" default:"udp" help:"What segments travel in: udp; or IP packets, as the kernel's TCP and MPTCP speak them (Linux): tun: through TUN interfaces (see braid tun); raw: from this machine's own addresses (root)."`
	Tun []string `sep:"none" placeholder:"NAME=ADDR[,ADDR]" help:"With --via tun: interface, and this program's addresses behind it; repeat for several."`
}

// check finds a wrong flag before anything is opened.
func (f wireFlags) check() error {
	switch {
	case f.Via == "tun" && len(f.Tun) == 0:
		return errors.New("--via tun: name an interface and the address behind it with --tun NAME=ADDR")
	case f.Via != "tun" && len(f.Tun) > 0:
		return errors.New("--tun goes with --via tun")
	}
	for _, t := range f.Tun {
		if _, _, err := braid.ParseTUN(t); err != nil {
			return fmt.Errorf("--tun: %w", err)
		}
	}
	return nil
}

func config(s stackFlags, p pathFlags, w wireFlags) *braid.Config {
	return &braid.Config{Interfaces: p.Path, Backup: p.Backup, TUN: w.Tun, Raw: w.Via == "raw", Congestion: s.CC, Scheduler: s.Scheduler}
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return "braid " + s.Value[:min(12, len(s.Value))]
			}
		}
	}
	return "braid (development)"
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var c cli
	parser := kong.Must(&c, kong.Name("braid"), kong.Description(description), kong.ShortUsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Vars{"version": version(), "cc": strings.Join(congestion.Names(), ", "), "schedulers": strings.Join(schedule.Names(), ", ")},
		kong.BindTo(ctx, (*context.Context)(nil)))
	k, err := parser.Parse(os.Args[1:])
	parser.FatalIfErrorf(err)
	if err := k.Run(); err != nil {
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			fmt.Fprintln(os.Stderr, "braid: interrupted:", err)
			os.Exit(130)
		}
		fmt.Fprintln(os.Stderr, "braid:", err)
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() > 0 {
			os.Exit(exit.ExitCode()) // of a command that was run for the caller
		}
		os.Exit(1)
	}
}
