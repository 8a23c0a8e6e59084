package schedule

import "testing"

// ECF, Algorithm 1. Fast: 10 packets in 10 ms; slow: 10 packets in 100 ms; no variation. With k packets to send, waiting wins if
// (1 + k/10) 10 ms < 100 ms, that is k < 90, and k/10 100 ms >= 20 ms, which always holds (k counts as 10 at least).
func TestECF(t *testing.T) {
	for _, c := range []struct {
		packets int64
		want    string
	}{{1, "-w"}, {89, "-w"}, {90, "-n"}} {
		h := newHarness(t, NewECF(), view(10*ms, 1000), view(100*ms, 1000))
		h.views[0].CanSend = false
		h.q.Waiting = c.packets * testMSS
		h.want(c.want, "the fast one is full")
	}
}

// A decision to wait is kept until it is a quarter worse: (1 + k/10) 10 < 125, k < 115.
func TestECFHysteresis(t *testing.T) {
	h := newHarness(t, NewECF(), view(10*ms, 1000), view(100*ms, 1000))
	h.views[0].CanSend = false
	at := func(packets int64, want, what string) {
		t.Helper()
		h.q.Waiting = packets * testMSS
		h.want(want, what)
	}
	at(80, "-w", "waits")
	at(114, "-w", "keeps waiting")
	at(115, "-n", "uses the slow one")
	at(100, "-n", "keeps using it")
	at(80, "-w", "waits again")
}

// The slow subflow is used if it finishes within two fast RTTs: rtt 19 and 10 ms, k = 10 packets, 19 < 20.
func TestECFSlowIsQuick(t *testing.T) {
	h := newHarness(t, NewECF(), view(10*ms, 1000), view(19*ms, 1000))
	h.views[0].CanSend = false
	h.q.Waiting = testMSS
	h.views[0].RTTVar = 2 * ms // 20 < 19 + 2: waiting would be sooner
	h.want("-n", "19 ms < 2 x 10 ms + 2 ms")
	h.views[1].SRTT = 23 * ms
	h.want("-w", "23 ms >= 2 x 10 ms + 2 ms")
}

func TestECFReinject(t *testing.T) {
	h := newHarness(t, NewECF(), view(10*ms, 1000), view(100*ms, 1000))
	h.views[0].CanSend = false
	h.q.Waiting = testMSS
	h.q.Reinject = true
	if d := h.pick(1); d.Kind != Reinject || d.Else != Wait {
		t.Fatalf("%+v, want a reinjection, else to wait", d)
	}
	h.q.Reinject = false
	h.views[0].CanSend = true
	h.want("nw", "the fast one can send")
}
