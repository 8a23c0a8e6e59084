package mptcp

import (
	"net/netip"
	"testing"
	"time"

	"braid/clock"
)

// RFC 9293, Section 3.4.1 and RFC 6528, Section 3 (TCP-03): an initial sequence number is the clock, four microseconds a step, behind a start that
// only the secret tells and that is another one for each pair of addresses and ports.
func TestInitialSequenceNumbers(t *testing.T) {
	s, other := NewStack(Config{Entropy: entropy(1)}), NewStack(Config{Entropy: entropy(2)})
	base := route{local: netip.MustParseAddrPort("10.0.0.1:1000"), remote: netip.MustParseAddrPort("192.0.2.1:443"), srcPort: 1000, dstPort: 443}
	at := clock.Time(time.Hour)
	first := s.iss(at, &base)
	for _, d := range []time.Duration{0, 4 * time.Microsecond, time.Millisecond, time.Minute, 30 * time.Minute} {
		if got, want := int64(s.iss(at.Add(d), &base)-first), int64(d/(4*time.Microsecond)); got != want {
			t.Errorf("after %v the number is %d larger, want %d", d, got, want)
		}
	}
	if NewStack(Config{Entropy: entropy(1)}).iss(at, &base) != first {
		t.Error("the same secret gives another number")
	}
	if other.iss(at, &base) == first {
		t.Error("another secret gives the same number")
	}
	change := map[string]func(r *route){
		"local address":   func(r *route) { r.local = netip.MustParseAddrPort("10.0.0.2:1000") },
		"remote address":  func(r *route) { r.remote = netip.MustParseAddrPort("192.0.2.2:443") },
		"local port":      func(r *route) { r.srcPort++ },
		"remote port":     func(r *route) { r.dstPort++ },
		"outer port":      func(r *route) { r.remote = netip.MustParseAddrPort("192.0.2.1:444") },
		"any address":     func(r *route) { r.local = netip.MustParseAddrPort("[::]:1000") },
		"no address":      func(r *route) { r.local = netip.AddrPort{} },
		"the other way":   func(r *route) { r.local, r.remote = r.remote, r.local },
		"ports exchanged": func(r *route) { r.srcPort, r.dstPort = r.dstPort, r.srcPort },
	}
	for what, f := range change {
		r := base
		f(&r)
		if s.iss(at, &r) == first {
			t.Errorf("%s: the same number", what)
		}
	}
}
