package netsim

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"braid/congestion"
	"braid/link"
	"braid/schedule"
)

// Scenario is an experiment in the simulator, as a value: links, paths made of links, and flows over the paths. Run runs it.
type Scenario struct {
	Name      string  `toml:"name,omitempty" json:"name,omitempty"`
	Seed      uint64  `toml:"seed" json:"seed"`
	DurationS float64 `toml:"duration_s" json:"duration_s"`                 // how long to run, in virtual time
	WarmupS   float64 `toml:"warmup_s,omitempty" json:"warmup_s,omitempty"` // left out of averages, not of series
	BinMs     float64 `toml:"bin_ms,omitempty" json:"bin_ms,omitempty"`     // width of the series' bins; 0: 100

	Links []Medium `toml:"links" json:"links"`
	Paths []Route  `toml:"paths" json:"paths"`
	Flows []Flow   `toml:"flows" json:"flows"`
}

// Medium is a named link.
type Medium struct {
	Name string `toml:"name" json:"name"`
	link.Spec
	TraceFile string     `toml:"trace_file,omitempty" json:"trace_file,omitempty"` // delivery trace in Mahimahi's format, read by ReadTraces
	TraceWalk *link.Walk `toml:"trace_walk,omitempty" json:"trace_walk,omitempty"` // delivery trace generated from the seed
}

// Route is a path between clients and servers: the links that packets cross, in order, by name. Paths may share links; each
// flow has hosts of its own at the ends.
type Route struct {
	Name    string   `toml:"name" json:"name"`
	Forward []string `toml:"forward" json:"forward"`                     // client to server
	Reverse []string `toml:"reverse,omitempty" json:"reverse,omitempty"` // none: a link of its own with the delay of Forward and nothing else, whose name is the path's with " back"
}

// Flow is one connection (or, by its workload, several) between a client and a server of its own.
type Flow struct {
	Name  string   `toml:"name" json:"name"`
	Paths []string `toml:"paths" json:"paths"` // best known first

	Congestion    string   `toml:"congestion,omitempty" json:"congestion,omitempty"`       // see congestion.Names; none: coupledbbr
	Scheduler     string   `toml:"scheduler,omitempty" json:"scheduler,omitempty"`         // see schedule.Names; none: arp
	PlainTCP      bool     `toml:"plain_tcp,omitempty" json:"plain_tcp,omitempty"`         // no MPTCP: only the first path is used
	Encapsulation string   `toml:"encapsulation,omitempty" json:"encapsulation,omitempty"` // ip (none: this), udp
	BackupPaths   []string `toml:"backup_paths,omitempty" json:"backup_paths,omitempty"`   // of Paths
	MTU           int      `toml:"mtu,omitempty" json:"mtu,omitempty"`                     // 0: 1500

	Download bool     `toml:"download,omitempty" json:"download,omitempty"` // the server sends, over the reverse links
	StartS   float64  `toml:"start_s,omitempty" json:"start_s,omitempty"`
	StopS    float64  `toml:"stop_s,omitempty" json:"stop_s,omitempty"` // when the sender stops and closes; 0: never
	Workload Workload `toml:"workload,omitempty" json:"workload"`

	SendBufferBytes    int64         `toml:"send_buffer_bytes,omitempty" json:"send_buffer_bytes,omitempty"`       // 0: 16 MiB
	ReceiveBufferBytes int64         `toml:"receive_buffer_bytes,omitempty" json:"receive_buffer_bytes,omitempty"` // 0: 64 MiB
	FixedReceiveWindow bool          `toml:"fixed_receive_window,omitempty" json:"fixed_receive_window,omitempty"`
	DSSChecksums       bool          `toml:"dss_checksums,omitempty" json:"dss_checksums,omitempty"`
	RemovePaths        []PathRemoval `toml:"remove_paths,omitempty" json:"remove_paths,omitempty"`
}

// PathRemoval takes a path away from the client, as if its interface had vanished.
type PathRemoval struct {
	AtS  float64 `toml:"at_s" json:"at_s"`
	Path string  `toml:"path" json:"path"`
}

// Workload is what the application does.
type Workload struct {
	// Kind is one of: bulk (none: this), paced, request, churn.
	//
	//	bulk     sends Bytes (0: without end) as fast as it can
	//	paced    sends RateMbps in chunks of ChunkBytes, Bytes in all (0: without end)
	//	request  asks with RequestBytes, waits for ResponseBytes, thinks ThinkS, and asks again, on one connection; it is a
	//	         download whether Download says so or not
	//	churn    opens connections one after the other, up to Connections at a time, that send up to Bytes each way and are closed, half
	//	         closed or aborted by either end at a random moment
	Kind          string  `toml:"kind,omitempty" json:"kind,omitempty"`
	Bytes         int64   `toml:"bytes,omitempty" json:"bytes,omitempty"`
	RateMbps      float64 `toml:"rate_mbps,omitempty" json:"rate_mbps,omitempty"`
	ChunkBytes    int     `toml:"chunk_bytes,omitempty" json:"chunk_bytes,omitempty"`       // 0: 10000
	RequestBytes  int64   `toml:"request_bytes,omitempty" json:"request_bytes,omitempty"`   // 0: 200
	ResponseBytes int64   `toml:"response_bytes,omitempty" json:"response_bytes,omitempty"` // 0: 100000
	ThinkS        float64 `toml:"think_s,omitempty" json:"think_s,omitempty"`
	Connections   int     `toml:"connections,omitempty" json:"connections,omitempty"`       // 0: 4
	ReadRateMbps  float64 `toml:"read_rate_mbps,omitempty" json:"read_rate_mbps,omitempty"` // the receiver reads no faster; 0: at once
}

// The kinds of workload.
const (
	Bulk    = "bulk"
	Paced   = "paced"
	Request = "request"
	Churn   = "churn"
)

var workloadKinds = []string{Bulk, Paced, Request, Churn}

// ReadTraces fills in the delivery traces of links with a TraceFile, whose names are relative to dir.
func (s *Scenario) ReadTraces(dir fs.FS) error {
	for i := range s.Links {
		m := &s.Links[i]
		if m.TraceFile == "" || len(m.TraceMs) > 0 {
			continue
		}
		f, err := dir.Open(m.TraceFile)
		if err != nil {
			return fmt.Errorf("link %q: trace_file: %w", m.Name, err)
		}
		m.TraceMs, err = link.ReadOpportunities(f)
		f.Close()
		if err != nil {
			return fmt.Errorf("link %q: trace_file %s: %w", m.Name, m.TraceFile, err)
		}
	}
	return nil
}

// Check says what is wrong with a Scenario: the place, the value, and what it may be.
func (s *Scenario) Check() error {
	if !(s.DurationS > 0 && s.DurationS <= 1e6) {
		return fmt.Errorf("duration_s %v must be above 0 and at most 1000000", s.DurationS)
	}
	if !(s.WarmupS >= 0 && s.WarmupS < s.DurationS) {
		return fmt.Errorf("warmup_s %v must be at least 0 and below duration_s, %v", s.WarmupS, s.DurationS)
	}
	if !(s.BinMs >= 0 && s.BinMs <= 1e6) {
		return fmt.Errorf("bin_ms %v must be between 0 and 1000000", s.BinMs)
	}
	links, err := unique("link", s.Links, func(m Medium) string { return m.Name })
	if err != nil {
		return err
	}
	for i := range s.Links {
		if err := s.Links[i].check(); err != nil {
			return err
		}
	}
	paths, err := unique("path", s.Paths, func(r Route) string { return r.Name })
	if err != nil {
		return err
	}
	for _, r := range s.Paths {
		if len(r.Forward) == 0 {
			return fmt.Errorf("path %q: forward names no link", r.Name)
		}
		if err := known(fmt.Sprintf("path %q: link", r.Name), slices.Concat(r.Forward, r.Reverse), links); err != nil {
			return err
		}
	}
	if _, err := unique("flow", s.Flows, func(f Flow) string { return f.Name }); err != nil {
		return err
	}
	if len(s.Flows) > maxFlows {
		return fmt.Errorf("%d flows, at most %d are possible", len(s.Flows), maxFlows)
	}
	for i := range s.Flows {
		if err := s.Flows[i].check(paths); err != nil {
			return fmt.Errorf("flow %q: %w", s.Flows[i].Name, err)
		}
	}
	return nil
}

// What the addresses of the hosts have room for (see address).
const (
	maxFlows = 1 << 16
	maxPaths = 127
)

func (m *Medium) check() error {
	switch {
	case m.TraceFile != "" && m.TraceWalk != nil:
		return fmt.Errorf("link %q: trace_file and trace_walk exclude each other", m.Name)
	case m.TraceFile != "" && len(m.TraceMs) == 0:
		return fmt.Errorf("link %q: trace_file %s was not read", m.Name, m.TraceFile)
	case m.TraceWalk != nil && (len(m.TraceMs) > 0 || m.RateMbps != 0):
		return fmt.Errorf("link %q: trace_walk excludes trace_ms and rate_mbps", m.Name)
	}
	if err := m.Spec.Check(); err != nil {
		return fmt.Errorf("link %q: %w", m.Name, err)
	}
	return nil
}

func (f *Flow) check(paths []string) error {
	if len(f.Paths) == 0 || len(f.Paths) > maxPaths {
		return fmt.Errorf("%d paths, between 1 and %d are possible", len(f.Paths), maxPaths)
	}
	if err := known("path", f.Paths, paths); err != nil {
		return err
	}
	if _, err := unique("path", f.Paths, func(s string) string { return s }); err != nil {
		return err
	}
	if err := known("backup path", f.BackupPaths, f.Paths); err != nil {
		return err
	}
	for _, r := range f.RemovePaths {
		if err := known("remove_paths: path", []string{r.Path}, f.Paths); err != nil {
			return err
		}
	}
	if f.Congestion != "" {
		if _, err := congestion.ByName(f.Congestion); err != nil {
			return err
		}
	}
	if f.Scheduler != "" {
		if _, err := schedule.ByName(f.Scheduler); err != nil {
			return err
		}
	}
	if err := known("encapsulation", []string{f.Encapsulation}, []string{"", "ip", "udp"}); err != nil {
		return err
	}
	if f.MTU != 0 && (f.MTU < 576 || f.MTU > 65535) {
		return fmt.Errorf("mtu %d must be between 576 and 65535", f.MTU)
	}
	if !(f.StartS >= 0) || !(f.StopS >= 0) || (f.StopS != 0 && f.StopS <= f.StartS) {
		return fmt.Errorf("start_s %v and stop_s %v: must not be negative, and stop must come after start", f.StartS, f.StopS)
	}
	if f.SendBufferBytes < 0 || f.ReceiveBufferBytes < 0 {
		return fmt.Errorf("buffers of %d and %d bytes: must not be negative", f.SendBufferBytes, f.ReceiveBufferBytes)
	}
	return f.Workload.check()
}

func (w *Workload) check() error {
	if err := known("workload.kind", []string{w.Kind}, append([]string{""}, workloadKinds...)); err != nil {
		return err
	}
	for _, f := range []struct {
		name  string
		value float64
	}{
		{"bytes", float64(w.Bytes)}, {"rate_mbps", w.RateMbps}, {"chunk_bytes", float64(w.ChunkBytes)}, {"request_bytes", float64(w.RequestBytes)},
		{"response_bytes", float64(w.ResponseBytes)}, {"think_s", w.ThinkS}, {"connections", float64(w.Connections)}, {"read_rate_mbps", w.ReadRateMbps},
	} {
		if !(f.value >= 0 && f.value < 1e15) {
			return fmt.Errorf("workload.%s %v must not be negative", f.name, f.value)
		}
	}
	if w.Kind == Paced && w.RateMbps == 0 {
		return fmt.Errorf("workload.rate_mbps must be above 0 for kind paced")
	}
	return nil
}

// withDefaults fills in what was left out.
func (w Workload) withDefaults() Workload {
	set := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
	if w.Kind == "" {
		w.Kind = Bulk
	}
	set(&w.RequestBytes, 200)
	set(&w.ResponseBytes, 100_000)
	if w.ChunkBytes == 0 {
		w.ChunkBytes = 10_000
	}
	if w.Connections == 0 {
		w.Connections = 4
	}
	if w.Kind == Churn {
		set(&w.Bytes, 100_000)
	}
	return w
}

// unique returns the names of a list's elements, or says which one is empty or there twice.
func unique[T any](what string, list []T, name func(T) string) ([]string, error) {
	var names []string
	for _, e := range list {
		n := name(e)
		if n == "" {
			return nil, fmt.Errorf("%s %d has no name", what, len(names)+1)
		}
		if slices.Contains(names, n) {
			return nil, fmt.Errorf("two %ss are called %q", what, n)
		}
		names = append(names, n)
	}
	return names, nil
}

// known says which of the values is none of the accepted ones, and what those are.
func known(what string, values, accepted []string) error {
	for _, v := range values {
		if !slices.Contains(accepted, v) {
			return fmt.Errorf("%s %q is unknown; known are %s", what, v, strings.Join(slices.DeleteFunc(slices.Clone(accepted), func(s string) bool { return s == "" }), ", "))
		}
	}
	return nil
}
