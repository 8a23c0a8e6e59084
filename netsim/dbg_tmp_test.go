package netsim
import ("testing")
func TestTmpFail(t *testing.T) {
	s, err := LoadScenarioFile("../examples/failover.toml")
	if err != nil { t.Fatal(err)}
	for _, sch := range []string{"minrtt", "redundant"} {
	for _, cc := range []string{"coupledbbr","coupledbbr-cycle"} {
	s.Flows[0].Scheduler = sch
	s.Flows[0].Congestion = cc
	r, err := Run(*s)
	if err != nil { t.Fatal(err)}
	f := r.Flows[0]
	t.Logf("%v %v\ngood %.0f\n 1 %.0f\n 1rtt %.0f\n 1win %.0f\n infl %.0f", sch, cc,  f.Series.GoodputMbps[70:110], f.Subflows[0].Series.ThroughputMbps[70:110], f.Subflows[0].Series.RTTMs[70:110],  f.Subflows[0].Series.WindowBytes[70:110], f.Subflows[0].Series.InFlightBytes[70:110])
	t.Logf("%+v", r.Links[0].Counters)
	}
	}
}
