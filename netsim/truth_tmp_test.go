package netsim

import (
	"testing"
	"braid/link"
)

func TestTmp(t *testing.T) {
		for _, cc := range []string{"cubic", "bbr"} {
			for _, d := range []float64{25, 75} {
			for seed := range uint64(3) {
				s := Bottlenecks([]link.Spec{Bottleneck(100, 25, 0), Bottleneck(100, d, 0)}, Flow{Name: "a", Congestion: cc}, Background{}).During(30)
				s.Seed = seed
				r, err := Run(s)
				if err != nil {
					t.Fatal(err)
				}
				f := r.Flows[0]
				t.Logf("%-6s d %-7v goodput %.2f sub %.1f %.1f rtt %.1f %.1f %s ooo %.0f", cc, d, f.GoodputMbps, f.Subflows[0].ThroughputMbps, f.Subflows[1].ThroughputMbps, f.Subflows[0].MeanRTTMs,f.Subflows[1].MeanRTTMs, f.Error, f.OutOfOrderPackets)
				t.Logf("   util %v %v", r.Links[0].Utilisation, r.Links[1].Utilisation)
			}
			}
		}
}
func TestTmpFail(t *testing.T) {
	s, err := LoadScenarioFile("../examples/failover.toml")
	if err != nil { t.Fatal(err)}
	for _, sch := range []string{"minrtt","roundrobin", "redundant"} {
	for _, cc := range []string{"bbr","cubic","coupledbbr","lia"} {
	s.Flows[0].Scheduler = sch
	s.Flows[0].Congestion = cc
	r, err := Run(*s)
	if err != nil { t.Fatal(err)}
	f := r.Flows[0]
	t.Logf("%v %v\ngood %.0f\n 1 %.0f\n 2 %.0f", sch, cc,  f.Series.GoodputMbps[70:190], f.Subflows[0].Series.ThroughputMbps[70:190], f.Subflows[1].Series.ThroughputMbps[70:190])
	}
	}
}
