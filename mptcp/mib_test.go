package mptcp

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"braid/wire"
)

// metric returns one of a Stack's metrics.
func metric(t *testing.T, s *Stack, name string) int64 {
	t.Helper()
	for _, m := range s.Metrics() {
		if m.Name == name {
			return m.Value
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

// eachCounter calls f with every counter below v, and its name.
func eachCounter(v reflect.Value, name string, f func(name string, v reflect.Value)) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			eachCounter(v.Field(i), v.Type().Field(i).Name, f)
		}
	case reflect.Array:
		for i := range v.Len() {
			eachCounter(v.Index(i), name, f)
		}
	default:
		f(name, v)
	}
}

// API-04: whatever is counted can be seen.
func TestMetricsShowEveryCounter(t *testing.T) {
	s := NewStack(Config{Entropy: entropy(1)})
	zero := s.Metrics()
	for _, m := range zero {
		if m.Value != 0 {
			t.Errorf("%s is %d at the start", m.Name, m.Value)
		}
	}
	n := 0
	check := func(name string, v reflect.Value) {
		v.SetInt(1)
		if slices.Equal(s.Metrics(), zero) {
			t.Errorf("%s shows nowhere", name)
		}
		v.SetInt(0)
		n++
	}
	eachCounter(reflect.ValueOf(&s.counters).Elem(), "Counters", check)
	eachCounter(reflect.ValueOf(&s.retired).Elem(), "Totals", check)
	if n < 120 {
		t.Errorf("only %d counters", n)
	}
}

// API-04: every fallback has a counter of its own.
func TestMetricsTellFallbacksApart(t *testing.T) {
	for reason := FallbackConfigured; int(reason) < len(fallbackTexts); reason++ {
		c := &Counters{}
		switch reason { // those of the handshake are counted where they happen: fallback_test.go and capable_test.go
		case FallbackConfigured:
			c.FallbackConfigured = 1
		case FallbackNotOffered:
			c.FallbackNotOffered = 1
		case FallbackNotAnswered:
			c.FallbackNotAnswered = 1
		case FallbackSYN:
			c.FallbackSYN = 1
		case FallbackThirdPacket:
			c.FallbackThirdPacket = 1
		case FallbackNoMapping:
			c.FallbackNoMapping = 1
		case FallbackNoDataAck:
			c.FallbackNoDataAck = 1
		case FallbackChecksum:
			c.FallbackChecksum, c.ChecksumErrors = 1, 1
		case FallbackPeer:
			c.FallbackPeer = 1
		default:
			t.Fatalf("%v has no counter", reason)
		}
		var m metrics
		m.handshakes(c)
		m.data(c)
		shown := 0
		for _, x := range m.list {
			if x.Value == 1 && x.Name != "MPTcpExtDataCsumErr" {
				shown++
			}
		}
		if shown != 1 {
			t.Errorf("%v shows in %d metrics", reason, shown)
		}
	}
}

// Names are unique, and those that claim to be Linux's are.
func TestMetricNames(t *testing.T) {
	linux := ""
	for _, file := range []string{"/proc/net/netstat", "/proc/net/snmp"} {
		if b, err := os.ReadFile(file); err == nil {
			linux += string(b)
		}
	}
	known := map[string]bool{}
	for line := range strings.Lines(linux) {
		f := strings.Fields(line)
		for _, name := range f[1:] {
			known[strings.TrimSuffix(f[0], ":")+name] = true
		}
	}
	seen := map[string]bool{}
	for _, m := range NewStack(Config{Entropy: entropy(1)}).Metrics() {
		if seen[m.Name] {
			t.Errorf("%s stands there twice", m.Name)
		}
		seen[m.Name] = true
		switch {
		case strings.HasPrefix(m.Name, "Braid"):
		case !strings.HasPrefix(m.Name, "Tcp") && !strings.HasPrefix(m.Name, "MPTcpExt"):
			t.Errorf("%s is nobody's", m.Name)
		case known["MPTcpExtMPJoinRejected"] && !known[m.Name]: // a kernel that is new enough to tell
			t.Errorf("%s is no counter of this kernel", m.Name)
		}
	}
}

// What both ends of a connection over two paths count agrees, and outlasts it.
func TestMetricsOfAConnection(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	w.link(10 * time.Millisecond)
	w.link(20 * time.Millisecond)
	c, s := w.connect(w.listen())
	w.transfer(c, s, 500_000, time.Minute)
	for _, tc := range []struct {
		name           string
		client, server int64
	}{
		{"TcpActiveOpens", 2, 0}, {"TcpPassiveOpens", 0, 2}, {"TcpCurrEstab", 2, 2}, {"MPTcpExtMPCurrEstab", 1, 1},
		{"MPTcpExtMPCapableSYNTX", 1, 0}, {"MPTcpExtMPCapableSYNRX", 0, 1}, {"MPTcpExtMPCapableSYNACKRX", 1, 0}, {"MPTcpExtMPCapableACKRX", 0, 1},
		{"MPTcpExtMPJoinSynTx", 1, 0}, {"MPTcpExtMPJoinSynRx", 0, 1}, {"MPTcpExtMPJoinSynAckRx", 1, 0}, {"MPTcpExtMPJoinAckRx", 0, 1}, {"BraidJoinsUp", 1, 0},
		{"BraidFallbackNotOffered", 0, 0}, {"MPTcpExtMPCapableFallbackSYNACK", 0, 0},
	} {
		if a, b := metric(t, w.client, tc.name), metric(t, w.server, tc.name); a != tc.client || b != tc.server {
			t.Errorf("%s: client %d, want %d; server %d, want %d", tc.name, a, tc.client, b, tc.server)
		}
	}
	sent := metric(t, w.client, "BraidSentBytes")
	if sent < 500_000 || metric(t, w.server, "BraidReceivedBytes") < 500_000 || metric(t, w.client, "TcpOutSegs") < 300 {
		t.Errorf("%d bytes sent", sent)
	}
	s.CloseWrite(w.now)
	w.run(5 * time.Minute)
	for _, stack := range []*Stack{w.client, w.server} {
		if metric(t, stack, "TcpCurrEstab") != 0 || metric(t, stack, "BraidConnections") != 0 || metric(t, stack, "BraidMemoryBytes") != 0 {
			t.Errorf("something is left: %+v", stack.Metrics())
		}
	}
	if n := metric(t, w.client, "BraidSentBytes"); n < sent {
		t.Errorf("%d bytes sent when the subflows were there, %d now", sent, n)
	}
}

// API-04: every join has one outcome.
func TestJoinOutcomes(t *testing.T) {
	for name, tc := range map[string]struct {
		server Config
		spoil  func(w *world, f *flight) bool // an MP_JOIN
		want   func(n *Counters) int64
	}{
		"up":      {want: func(n *Counters) int64 { return n.JoinsSentUp }},
		"refused": {server: Config{MaxSubflows: 1}, want: func(n *Counters) int64 { return n.JoinsSentRefused }},
		"unanswered": {
			spoil: func(*world, *flight) bool { return false },
			want:  func(n *Counters) int64 { return n.JoinsSentFailed },
		},
		"wrong answer": {
			spoil: func(w *world, f *flight) bool {
				if !f.toServer {
					f.rewrite(w.t, func(seg *wire.Segment) { seg.Join.MAC[0] ^= 1 })
				}
				return true
			},
			want: func(n *Counters) int64 { return n.JoinSYNACKsBadMAC },
		},
	} {
		w := newWorld(t, Config{}, tc.server)
		w.link(10 * time.Millisecond)
		w.link(20 * time.Millisecond)
		w.tap = func(f *flight) bool {
			if seg := f.segment(t); tc.spoil == nil || !seg.Has(wire.OptMPJoin) {
				return true
			}
			return tc.spoil(w, f)
		}
		c, s := w.connect(w.listen())
		c.Write(w.now, []byte("hello"))
		w.run(20 * time.Second)
		n := &w.client.counters
		if tc.want(n) == 0 {
			t.Errorf("%s: %+v", name, *n)
		}
		s.Abort(w.now)
		w.run(time.Minute)
		if sum := n.JoinsSentUp + n.JoinsSentRefused + n.JoinsSentFailed + n.JoinsSentDropped; n.JoinsSent == 0 || sum != n.JoinsSent {
			t.Errorf("%s: %d joins: %d up, %d refused, %d failed, %d dropped", name, n.JoinsSent, n.JoinsSentUp, n.JoinsSentRefused, n.JoinsSentFailed, n.JoinsSentDropped)
		}
	}
}
