package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"braid"
)

// statCmd is braid stat.
type statCmd struct {
	PID  []int  `arg:"" optional:"" name:"pid" help:"Only these processes."`
	All  bool   `short:"a" help:"Print counters that are 0 too."`
	JSON bool   `name:"json" help:"Print an array of processes as JSON."`
	Dir  string `placeholder:"FOLDER" help:"Where the processes' sockets are. Default: braid in XDG_RUNTIME_DIR."`
}

// Help is the long help.
func (*statCmd) Help() string {
	return `Examples:
  braid stat
  braid stat 4711 --json

Shows the connections and subflows of this user's braid processes, and their counters since they started, those of Linux under the names that nstat
gives them. A program that uses the Go package is shown if it opens a braid.Monitor.`
}

// Run asks the processes and prints.
func (c *statCmd) Run(ctx context.Context) error {
	all, failed := braid.ReadStatuses(ctx, c.Dir)
	if len(c.PID) > 0 {
		all = slices.DeleteFunc(all, func(s braid.Status) bool { return !slices.Contains(c.PID, s.PID) })
	}
	if c.JSON {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		return errors.Join(e.Encode(append([]braid.Status{}, all...)), failed) // no process is an empty array
	}
	for i := range all {
		printStatus(os.Stdout, &all[i], c.All)
	}
	if len(all) == 0 && failed == nil {
		dir := c.Dir
		if dir == "" {
			dir = braid.MonitorDir()
		}
		what := "no braid process"
		if len(c.PID) > 0 {
			what = fmt.Sprintf("no braid process %v", c.PID)
		}
		return fmt.Errorf("%s in %s: start a send, recv or bench as this user, or name another folder with --dir", what, dir)
	}
	return failed
}

// printStatus prints one process for people.
func printStatus(w io.Writer, s *braid.Status, zeros bool) {
	fmt.Fprintln(w, s)
	for _, l := range s.Listeners {
		fmt.Fprintf(w, "  listens at %s\n", l)
	}
	for i := range s.Connections {
		printConnection(w, &s.Connections[i])
	}
	names := make([]string, 0, len(s.Counters))
	for name, v := range s.Counters {
		if v != 0 || zeros {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(metricKey(a), metricKey(b)) })
	for _, name := range names {
		fmt.Fprintf(w, "  %-34s %d\n", name, s.Counters[name])
	}
}

// metricKey sorts MPTCP's counters first, then TCP's, then our own.
func metricKey(name string) string {
	for i, prefix := range [...]string{"MPTcpExt", "TcpExt", "Tcp"} {
		if strings.HasPrefix(name, prefix) {
			return fmt.Sprint(i, name)
		}
	}
	return "9" + name
}

func printConnection(w io.Writer, c *braid.ConnStatus) {
	arrow, kind := "<", "MPTCP"
	if c.Client {
		arrow = ">"
	}
	if c.Plain != "" {
		kind = "plain TCP: " + c.Plain
	}
	fmt.Fprintf(w, "  %s %s %s  %s, %s\n", c.Local, arrow, c.Remote, c.State, kind)
	fmt.Fprintf(w, "    acknowledged %s, unsent %s, received %s, unread %s, out of order %s, reinjected %s, redundant %s, windows %s out and %s in\n",
		size(c.AckedBytes), size(c.UnsentBytes), size(c.ReceivedBytes), size(c.UnreadBytes), size(c.OutOfOrderBytes), size(c.ReinjectedBytes),
		size(c.RedundantBytes), size(c.SendWindowBytes), size(c.RecvWindowBytes))
	for i := range c.Subflows {
		printSubflow(w, &c.Subflows[i])
	}
}

func printSubflow(w io.Writer, s *braid.SubflowStatus) {
	state := s.State
	if s.Backup {
		state += ", backup"
	}
	if s.SilentSeconds > 0 {
		state += fmt.Sprintf(", silent for %v", time.Duration(s.SilentSeconds*float64(time.Second)).Round(100*time.Millisecond))
	}
	if s.Reason != "default" {
		state += ", " + s.Reason
	}
	fmt.Fprintf(w, "    subflow %d %s %s %s > %s  %s\n", s.ID, s.Path, s.Role, s.Local, s.Remote, state)
	fmt.Fprintf(w, "      srtt_ms %.2f/%.2f  min %.2f  rto %.0f  window %s  in flight %s  pacing %.1f Mbit/s  delivery %.1f Mbit/s  %s\n",
		s.SRTT_ms, s.RTTVar_ms, s.MinRTT_ms, s.RTO_ms, size(s.WindowBytes), size(s.InFlightBytes), s.Pacing_mbps, s.Delivery_mbps, s.Phase)
	fmt.Fprintf(w, "      sent %s, retransmitted %s in %d segments, reinjected %s, redundant %s, received %s, twice %s, %d timeouts, %d tail probes\n",
		size(s.SentBytes), size(s.RetransBytes), s.RetransSegs, size(s.ReinjectedBytes), size(s.RedundantBytes), size(s.ReceivedBytes), size(s.DuplicateBytes),
		s.Timeouts, s.TailProbes)
}

// monitored lets braid stat see what is opened with a Config, until the function that it returns is called. Without a place for the socket the command
// does its work all the same.
func monitored(cfg *braid.Config) (stop func()) {
	m, err := braid.OpenMonitor("")
	if err != nil {
		fmt.Fprintln(os.Stderr, "braid stat will not see this process:", err)
		return func() {}
	}
	cfg.Monitor = m
	return func() { m.Close() }
}
