package paper

import (
	"slices"

	"braid/experiment"
	"braid/link"
	"braid/netsim"
)

const truthID = "truth"

// Truth is no experiment of the paper's, but asks whether the others can be believed: the same Scenarios in the simulator and in real time. It is not
// among All, because it needs real time and a quiet machine.
func Truth() Figure {
	schemes := []struct{ congestion, scheduler string }{{"bbr", "minrtt"}, {"cubic", "minrtt"}, {"coupledbbr", "arp"}}
	access := []wireless{
		{model: &lte, recorded: recordedLTE, meanMbps: 4, rttMs: 60, loss: 0.002},
		{model: &wifi24, recorded: recordedWifi, meanMbps: 8, rttMs: 40, loss: 0.001},
	}
	plain := []link.Spec{netsim.Bottleneck(6, 10, 0), netsim.Bottleneck(3, 30, 0)}
	return Figure{
		ID:    truthID,
		Title: "Facing the truth: the simulator and real sockets",
		Claim: "Two paths, several schemes: steady, lossy, cut in mid-run, sharing a link with a competitor, and with a rate that varies.",
		Setup: "Paths of 6 Mbit/s, RTT 20 ms and 3 Mbit/s, 60 ms, drop-tail buffers of one bandwidth-delay product; lossy: 0.5 % and 1 %; cut: path 1 is down from half to two thirds of the run; competitor: a CUBIC flow on path 1; varying: 4G with 4 Mbit/s in the mean and Wi-Fi with 8.",
		Cells: func(m Mode) []experiment.Cell {
			duration := pick(m, 18.0, 9)
			var cells []experiment.Cell
			for _, k := range schemes {
				flow := netsim.Flow{Name: multipath, Congestion: k.congestion, Scheduler: k.scheduler}
				add := func(name string, s netsim.Scenario, vary func(*netsim.Scenario, uint64)) {
					cells = append(cells, experiment.Cell{Name: name + ": " + label(k.congestion) + " + " + label(k.scheduler), Seeds: 1, Scenario: s.During(duration), Vary: vary})
				}
				add("steady", netsim.Bottlenecks(plain, flow, netsim.Background{}), nil)
				if m.Quick {
					continue
				}
				lossy := slices.Clone(plain)
				lossy[0].Loss, lossy[1].Loss = 0.005, 0.01
				add("lossy", netsim.Bottlenecks(lossy, flow, netsim.Background{}), nil)
				cut := slices.Clone(plain)
				cut[0].Changes = []link.Change{{AtS: duration / 2, Down: ptr(true)}, {AtS: duration * 2 / 3, Down: ptr(false)}}
				add("cut", netsim.Bottlenecks(cut, flow, netsim.Background{}), nil)
				shared := netsim.Bottlenecks(plain, flow, netsim.Background{})
				shared.Flows = append(shared.Flows, netsim.Flow{Name: "competitor", Paths: []string{netsim.PathName(1)}, Congestion: "cubic", PlainTCP: true})
				add("competitor", shared, nil)
				add("varying", wirelessPaths(access, flow, netsim.Background{}), weather(m, access))
			}
			return cells
		},
		Real: func(string) bool { return true },
	}
}
