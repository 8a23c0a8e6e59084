package paper

import (
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"braid/experiment"
	"braid/link"
	"braid/netsim"
)

// multipath is what every experiment calls the connection that it is about.
const multipath = "mptcp"

// payloadShare is how much of a full packet of an MPTCP connection is payload: 1500 bytes hold IP and TCP headers, timestamps and a
// full DSS option beside it.
const payloadShare = 0.949

// capacity is a path's goodput capacity in Mbit/s.
func capacity(rateMbps, loss float64) float64 { return rateMbps * payloadShare * (1 - loss) }

// coupledNames are the paper's loss-based coupled algorithms, and how they are written.
var coupledNames = []string{"lia", "olia", "balia"}

// label is how an algorithm's name is written in plots.
func label(name string) string {
	if base, ok := strings.CutSuffix(name, unlimited); ok {
		return label(base) + unlimited
	}
	if l, ok := map[string]string{
		"lia": "LIA", "olia": "OLIA", "balia": "BALIA", "cubic": "CUBIC", "bbr": "BBR", "reno": "NewReno",
		"coupledbbr": "Coupled BBR", "coupledbbr-cycle": "Coupled BBR (cycle)", "minrtt": "minRTT", "roundrobin": "Round-Robin", "redundant": "Redundant",
		"blest": "BLEST", "ecf": "ECF", "arp": "AR&P", "arp-paper": "AR&P (as published)",
	}[name]; ok {
		return l
	}
	return name
}

// competitor is the algorithm of single-path flows beside an MPTCP connection with the given one.
func competitor(algorithm string) string {
	switch algorithm {
	case "coupledbbr", "coupledbbr-cycle", "bbr":
		return "bbr"
	case "cubic":
		return "cubic"
	}
	return "reno"
}

// bottlenecks is the topology of Figs. 2 and 16: an MPTCP connection over paths of its own, with background flows of the
// corresponding single-path algorithm on each.
func bottlenecks(specs []link.Spec, algorithm, scheduler string, perPath int) netsim.Scenario {
	return netsim.Bottlenecks(specs, netsim.Flow{Name: multipath, Congestion: algorithm, Scheduler: scheduler},
		netsim.Background{Congestion: competitor(algorithm), PerPath: perPath})
}

// alone is the same network with a single-path flow on each path in the place of the connection: what one flow gets there.
func alone(specs []link.Spec, algorithm string, perPath int) netsim.Scenario {
	s := netsim.Bottlenecks(specs, netsim.Flow{Name: multipath, Congestion: algorithm}, netsim.Background{Congestion: algorithm, PerPath: perPath + 1})
	s.Flows = s.Flows[1:]
	return s
}

// lastStart is before when flows start: at random, so that no two runs see the same encounter.
const lastStart = 0.5

// stagger lets every flow start at a random time of the first half second.
func stagger(s *netsim.Scenario, seed uint64) {
	for i := range s.Flows {
		s.Flows[i].StartS = lastStart * link.Stream(seed, "start of "+s.Flows[i].Name).Float64()
	}
}

// total is the connection's throughput: payload delivered on all paths, copies included.
func total(r *netsim.Result) float64 {
	sum := 0.0
	for _, s := range r.Flow(multipath).Subflows {
		sum += s.ThroughputMbps
	}
	return sum
}

// goodput is what the receiving application got.
func goodput(r *netsim.Result) float64 { return r.Flow(multipath).GoodputMbps }

// disorder is the mean out-of-order queue in packets.
func disorder(r *netsim.Result) float64 { return r.Flow(multipath).OutOfOrderPackets }

// subflow returns the throughput over path i (from 1).
func subflow(i int) func(*netsim.Result) float64 {
	return func(r *netsim.Result) float64 { return r.Flow(multipath).Subflow(netsim.PathName(i)).ThroughputMbps }
}

// share returns which share of the throughput went over path i.
func share(i int) func(*netsim.Result) float64 {
	return func(r *netsim.Result) float64 { return subflow(i)(r) / total(r) }
}

// onPath returns the mean throughput of the single-path flows of path i: what one of them can expect.
func onPath(i int) func(*netsim.Result) float64 {
	return func(r *netsim.Result) float64 {
		sum, n := 0.0, 0.0
		for k := range r.Flows {
			f := &r.Flows[k]
			if f.Name != multipath && f.Subflows[0].Path == netsim.PathName(i) {
				sum += f.Subflows[0].ThroughputMbps
				n++
			}
		}
		return sum / n
	}
}

// bestPath returns what a single-path flow gets on the best of n paths.
func bestPath(n int) func(*netsim.Result) float64 {
	return func(r *netsim.Result) float64 {
		best := 0.0
		for i := range n {
			best = max(best, onPath(i+1)(r))
		}
		return best
	}
}

// span averages the bins of a series between two times.
func span(binS float64, series []float64, fromS, toS float64) float64 {
	from, to := int(fromS/binS+0.5), min(int(toS/binS+0.5), len(series))
	if from >= to {
		return 0
	}
	sum := 0.0
	for _, v := range series[from:to] {
		sum += v
	}
	return sum / float64(to-from)
}

// goodputBetween averages the goodput between two times.
func goodputBetween(fromS, toS float64) func(*netsim.Result) float64 {
	return func(r *netsim.Result) float64 { return span(r.BinS, r.Flow(multipath).Series.GoodputMbps, fromS, toS) }
}

// meanSeries averages a series over the runs of a cell.
func (d *Data) meanSeries(cell string, of func(*netsim.Result) []float64) (binS float64, values []float64) {
	var runs [][]float64
	for _, r := range d.results(cell) {
		binS = r.BinS
		runs = append(runs, of(r))
	}
	return binS, averageSeries(runs)
}

// goodputSeries is the connection's goodput by time.
func goodputSeries(r *netsim.Result) []float64 { return r.Flow(multipath).Series.GoodputMbps }

// disorderSeries is its out-of-order queue by time.
func disorderSeries(r *netsim.Result) []float64 { return r.Flow(multipath).Series.OutOfOrderPackets }

// throughputSeries is its throughput by time, all subflows together.
func throughputSeries(r *netsim.Result) []float64 {
	var sum []float64
	for _, s := range r.Flow(multipath).Subflows {
		if sum == nil {
			sum = slices.Clone(s.Series.ThroughputMbps)
			continue
		}
		for i := range sum {
			sum[i] += s.Series.ThroughputMbps[i]
		}
	}
	return sum
}

// keepOf keeps series of the connection.
func keepOf(k experiment.Keep) experiment.Keep {
	k.Flows = []string{multipath}
	return k
}

// ptr returns a pointer to a value.
func ptr[T any](v T) *T { return &v }

// scaled multiplies values.
func scaled(values []float64, by float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = v * by
	}
	return out
}

// differences subtracts values seed by seed.
func differences(a, b []float64) []float64 {
	out := make([]float64, min(len(a), len(b)))
	for i := range out {
		out[i] = a[i] - b[i]
	}
	return out
}

// variation is the coefficient of variation.
func variation(values []float64) float64 {
	mean, dev := stat.MeanStdDev(values, nil)
	return dev / mean
}
