package congestion

// bandwidthRounds is how many packet-timed rounds a bandwidth sample counts: the gain cycle and two more, so that each
// window holds a whole probe.
const bandwidthRounds = 10

// maxFilter is the maximum of what was added in the last bandwidthRounds rounds. Rounds in which nothing is added do not
// expire anything until the next sample comes: an application-limited sender keeps its estimate for as long as it takes.
type maxFilter struct {
	round int64 // the newest round that has a sample
	best  float64
	per   [bandwidthRounds]float64 // maximum of each round, round number modulo the length
}

// add takes a sample of the given round; rounds never go back.
func (f *maxFilter) add(round int64, v float64) {
	if d := round - f.round; d > 0 {
		for i := int64(1); i <= min(d, bandwidthRounds); i++ {
			f.per[(f.round+i)%bandwidthRounds] = 0
		}
		f.round = round
		f.best = 0
		for _, p := range f.per {
			f.best = max(f.best, p)
		}
	}
	slot := &f.per[round%bandwidthRounds]
	*slot = max(*slot, v)
	f.best = max(f.best, v)
}
