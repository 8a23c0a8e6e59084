package braid

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"braid/host"
	"braid/mptcp"
	"braid/schedule"
)

// Monitor keeps count of everything that is opened with the Configs which name it, and shows it: by Status to the program itself, and to "braid
// stat" over a Unix socket that only this user can open. Its methods may be called from any goroutine.
type Monitor struct {
	started time.Time
	socket  net.Listener
	path    string
	serving sync.WaitGroup

	mu      sync.Mutex
	engines []*host.Engine // in the order in which they were opened
	past    map[string]int64
	clients map[net.Conn]struct{}
	closed  bool
}

// Status is what a process does at one moment, and what it has done so far.
type Status struct {
	PID         int              `json:"pid"`
	Command     string           `json:"command"`
	Up_s        float64          `json:"up_s"`
	Counters    map[string]int64 `json:"counters"` // by the names of mptcp.Metric: Linux's where it has one
	Listeners   []netip.AddrPort `json:"listeners,omitempty"`
	Connections []ConnStatus     `json:"connections"`
}

// ConnStatus is one connection of a Status. Bytes are payload.
type ConnStatus struct {
	Local  netip.AddrPort `json:"local"` // of the first subflow
	Remote netip.AddrPort `json:"remote"`
	Client bool           `json:"client"`             // this process opened it
	State  string         `json:"state"`              // opening, open or closing
	Plain  string         `json:"fallback,omitempty"` // why it is plain TCP; empty: it is MPTCP

	AckedBytes        int64 `json:"acked_bytes"`  // of what was written
	UnsentBytes       int64 `json:"unsent_bytes"` // no subflow was given yet
	ReceivedBytes     int64 `json:"received_bytes"`
	UnreadBytes       int64 `json:"unread_bytes"`
	OutOfOrderBytes   int64 `json:"out_of_order_bytes"`
	SendWindowBytes   int64 `json:"send_window_bytes"`
	RecvWindowBytes   int64 `json:"receive_window_bytes"`
	ReinjectedBytes   int64 `json:"reinjected_bytes"`
	RedundantBytes    int64 `json:"redundant_bytes"`
	DuplicateBytes    int64 `json:"duplicate_bytes"`
	HeldBytes         int64 `json:"held_bytes"`
	ReinjectWaitBytes int64 `json:"reinject_queue_bytes"`

	Subflows []SubflowStatus `json:"subflows"`
}

// SubflowStatus is one subflow of a ConnStatus.
type SubflowStatus struct {
	ID      int            `json:"id"`
	Path    string         `json:"path"`
	Local   netip.AddrPort `json:"local"`
	Remote  netip.AddrPort `json:"remote"`
	State   string         `json:"state"`
	Initial bool           `json:"initial"`
	Backup  bool           `json:"backup"`
	Role    string         `json:"role"`   // N: carries new data; R: redundant
	Reason  string         `json:"reason"` // why

	SRTT_ms            float64 `json:"srtt_ms"`
	RTTVar_ms          float64 `json:"rttvar_ms"`
	MinRTT_ms          float64 `json:"min_rtt_ms"`
	RTO_ms             float64 `json:"rto_ms"`
	WindowBytes        int64   `json:"window_bytes"` // of congestion control
	InFlightBytes      int64   `json:"in_flight_bytes"`
	PeerWindowBytes    int64   `json:"peer_window_bytes"`
	Pacing_mbps        float64 `json:"pacing_rate_mbps"` // 0: not paced
	Delivery_mbps      float64 `json:"delivery_rate_mbps"`
	Loss               float64 `json:"loss"` // share of the last 128 packets
	Phase              string  `json:"phase"`
	MSS                int     `json:"mss_bytes"`
	MTU                int     `json:"mtu_bytes"`
	Backoffs           int     `json:"backoffs"`
	SilentSeconds      float64 `json:"silent_s"` // since it was heard last; 0 without any outage
	SentBytes          int64   `json:"sent_bytes"`
	RetransBytes       int64   `json:"retrans_bytes"`
	RetransSegs        int64   `json:"retrans_segs"`
	ReinjectedBytes    int64   `json:"reinjected_bytes"`
	RedundantBytes     int64   `json:"redundant_bytes"`
	ReceivedBytes      int64   `json:"received_bytes"`
	DuplicateBytes     int64   `json:"duplicate_bytes"`
	Timeouts           int64   `json:"timeouts"`
	TailProbes         int64   `json:"tail_probes"`
	SpuriousRecoveries int64   `json:"spurious_recoveries"`
}

// watch counts an engine in until it is closed.
func (m *Monitor) watch(e *host.Engine) {
	m.mu.Lock()
	m.engines = append(m.engines, e)
	m.mu.Unlock()
	go func() {
		<-e.Done()
		metrics := e.Status().Metrics
		m.mu.Lock()
		defer m.mu.Unlock()
		for i, other := range m.engines {
			if other == e {
				m.engines = append(m.engines[:i], m.engines[i+1:]...)
				break
			}
		}
		addMetrics(m.past, metrics, false)
	}()
}

// addMetrics adds up metrics, gauges only if they are of now.
func addMetrics(sum map[string]int64, list []mptcp.Metric, now bool) {
	for _, x := range list {
		if now || !x.Gauge {
			sum[x.Name] += x.Value
		}
	}
}

// Status describes what was opened with the Monitor.
func (m *Monitor) Status() Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	st := Status{
		PID: os.Getpid(), Command: strings.Join(os.Args, " "), Up_s: time.Since(m.started).Seconds(),
		Counters: make(map[string]int64), Connections: []ConnStatus{},
	}
	for name, v := range m.past {
		st.Counters[name] = v
	}
	for _, e := range m.engines {
		one := e.Status()
		addMetrics(st.Counters, one.Metrics, true)
		st.Listeners = append(st.Listeners, one.Listeners...)
		for _, c := range one.Connections {
			st.Connections = append(st.Connections, connStatus(&c))
		}
	}
	return st
}

// connStatus puts a connection into the words of Status.
func connStatus(c *host.ConnStatus) ConnStatus {
	i := &c.Info
	st := ConnStatus{
		Local: c.Local, Remote: c.Remote, Client: c.Client, State: "opening",
		AckedBytes: i.Acked, UnsentBytes: i.Unsent, ReceivedBytes: i.Received, UnreadBytes: i.Readable, OutOfOrderBytes: i.OutOfOrder,
		SendWindowBytes: i.SendWindow, RecvWindowBytes: i.ReceiveWindow, ReinjectedBytes: i.ReinjectedBytes, RedundantBytes: i.RedundantBytes,
		DuplicateBytes: i.DuplicateBytes, HeldBytes: i.Held, ReinjectWaitBytes: i.ReinjectQueue, Subflows: []SubflowStatus{},
	}
	switch {
	case i.LocalClosed || i.RemoteFinished:
		st.State = "closing"
	case i.Established:
		st.State = "open"
	}
	if i.Fallback != mptcp.NoFallback {
		st.Plain = i.Fallback.String()
	}
	for k := range i.Subflows {
		st.Subflows = append(st.Subflows, subflowStatus(&i.Subflows[k]))
	}
	return st
}

func subflowStatus(w *mptcp.SubflowInfo) SubflowStatus {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	t := &w.TCP
	st := SubflowStatus{
		ID: w.ID, Path: w.PathName, Local: w.Local, Remote: w.Remote, State: w.State, Initial: w.Initial, Backup: w.BackupLocal || w.BackupPeer,
		Role: roleNames[w.Role], Reason: reasonNames[w.Reason],
		SRTT_ms: ms(t.SRTT), RTTVar_ms: ms(t.RTTVar), MinRTT_ms: ms(t.MinRTT), RTO_ms: ms(t.RTO),
		WindowBytes: t.Window, InFlightBytes: t.InFlight, PeerWindowBytes: t.PeerWindow,
		Pacing_mbps: t.PacingRate * 8 / 1e6, Delivery_mbps: t.DeliveryRate * 8 / 1e6, Loss: t.Loss, Phase: t.Controller.Phase,
		MSS: t.MSS, MTU: t.MTU, Backoffs: t.Backoffs,
		SentBytes: t.SentBytes, RetransBytes: t.RetransBytes, RetransSegs: t.RetransSegs, ReinjectedBytes: w.ReinjectedBytes,
		RedundantBytes: w.RedundantBytes, ReceivedBytes: w.ReceivedBytes, DuplicateBytes: w.DuplicateBytes,
		Timeouts: t.RTOs, TailProbes: t.TLPs, SpuriousRecoveries: t.SpuriousRecoveries,
	}
	if w.TimedOut {
		st.SilentSeconds = w.Silent.Seconds()
	}
	return st
}

// What a scheduler says of a subflow, in words.
var (
	roleNames   = [...]string{schedule.NewData: "N", schedule.Redundant: "R"}
	reasonNames = [...]string{
		schedule.ReasonDefault: "default", schedule.ReasonUtility: "utility", schedule.ReasonFewInFlight: "few in flight",
		schedule.ReasonOverdue: "overdue", schedule.ReasonTimedOut: "timed out", schedule.ReasonStartup: "startup", schedule.ReasonBackup: "backup",
	}
)

// String is the process in one line.
func (s *Status) String() string {
	return fmt.Sprintf("%d %s, up %v, %d connections", s.PID, s.Command, time.Duration(s.Up_s*float64(time.Second)).Round(time.Second), len(s.Connections))
}
