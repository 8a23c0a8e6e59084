package experiment

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"braid/netsim"
)

// Cell is one point of an experiment: a Scenario that is run once for each seed.
type Cell struct {
	Name     string          // unique within its experiment
	Scenario netsim.Scenario // Seed is replaced by each run's
	Seeds    int             // how many runs, with seeds 1, 2, ...
	Keep     Keep            // what is kept of the results beside the averages

	// Vary changes the Scenario of a seed, for what chance draws: starting times, loss, paths. Every random number must come from seed.
	// nil: the seeds differ in the simulator's own streams only.
	Vary func(s *netsim.Scenario, seed uint64)
	// Measure takes values that the Result does not hold. nil: none.
	Measure Measure
}

// Measure watches a run for values of its own. Its answer must depend on the Scenario only.
type Measure interface {
	// Name identifies the kind of measurement and its parameters: results of another one are not taken for it.
	Name() string
	// Watch prepares a run (sinks, hooks) and returns a function that is called with the complete result.
	Watch(s *netsim.Scenario, opt *netsim.Options) (values func(*netsim.Result) map[string]float64)
}

// Job is one run: a cell with a seed.
type Job struct {
	Experiment string
	Cell       *Cell
	Seed       uint64
}

// Jobs returns the runs of an experiment's cells, cell by cell.
func Jobs(experiment string, cells []Cell) ([]Job, error) {
	var jobs []Job
	seen := map[string]bool{}
	for i := range cells {
		c := &cells[i]
		if c.Name == "" || seen[c.Name] {
			return nil, fmt.Errorf("experiment %s: cell name %q is empty or there twice", experiment, c.Name)
		}
		seen[c.Name] = true
		if c.Seeds < 1 {
			return nil, fmt.Errorf("experiment %s: cell %q has no seeds", experiment, c.Name)
		}
		for seed := range c.Seeds {
			jobs = append(jobs, Job{experiment, c, uint64(seed + 1)})
		}
	}
	return jobs, nil
}

// Scenario returns what the job runs.
func (j *Job) Scenario() netsim.Scenario {
	s := clone(&j.Cell.Scenario)
	s.Seed = j.Seed
	if s.Name == "" {
		s.Name = j.Experiment + ", " + j.Cell.Name
	}
	if j.Cell.Vary != nil {
		j.Cell.Vary(&s, j.Seed)
	}
	return s
}

// clone copies a Scenario as deep as Vary may change it: elements of its lists, and the changes of links.
func clone(s *netsim.Scenario) netsim.Scenario {
	c := *s
	c.Links, c.Paths, c.Flows = slices.Clone(s.Links), slices.Clone(s.Paths), slices.Clone(s.Flows)
	for i := range c.Links {
		c.Links[i].Changes = slices.Clone(c.Links[i].Changes)
	}
	return c
}

// keyVersion changes when results are kept in another way.
const keyVersion = 1

// Key is the hash of everything that the job's result follows from, the program excepted.
func (j *Job) Key() (string, error) {
	measure := ""
	if j.Cell.Measure != nil {
		measure = j.Cell.Measure.Name()
	}
	b, err := json.Marshal(struct {
		Version  int
		Scenario netsim.Scenario
		Keep     Keep
		Measure  string
	}{keyVersion, j.Scenario(), j.Cell.Keep, measure})
	if err != nil {
		return "", fmt.Errorf("experiment %s, cell %q: %w", j.Experiment, j.Cell.Name, err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:12]), nil
}

// Cost guesses how long the job takes: what its links can carry, in megabits, and a little for every second.
func (j *Job) Cost() float64 {
	s := &j.Cell.Scenario
	mbps := 2.0
	for i := range s.Links {
		l := &s.Links[i]
		switch {
		case l.RateMbps > 0:
			mbps += l.RateMbps
		case l.TraceWalk != nil:
			mbps += l.TraceWalk.MeanMbps
		case len(l.TraceMs) > 0:
			mbps += float64(len(l.TraceMs)) * 12 / float64(l.TraceMs[len(l.TraceMs)-1])
		}
	}
	return mbps * s.DurationS
}

// run runs the job and returns what is kept of it.
func (j *Job) run() (*Record, error) {
	s := j.Scenario()
	key, err := j.Key()
	if err != nil {
		return nil, err
	}
	var opt netsim.Options
	var values func(*netsim.Result) map[string]float64
	if j.Cell.Measure != nil {
		values = j.Cell.Measure.Watch(&s, &opt)
	}
	r, err := netsim.RunWith(s, opt)
	if err != nil {
		return nil, fmt.Errorf("experiment %s, cell %q, seed %d: %w", j.Experiment, j.Cell.Name, j.Seed, err)
	}
	for i := range r.Flows {
		if f := &r.Flows[i]; f.Corrupted != 0 {
			return nil, fmt.Errorf("experiment %s, cell %q, seed %d: flow %q: byte %d is not what was sent", j.Experiment, j.Cell.Name, j.Seed, f.Name, f.Corrupted-1)
		}
	}
	rec := &Record{Experiment: j.Experiment, Cell: j.Cell.Name, Seed: j.Seed, Key: key}
	if values != nil {
		rec.Values = values(r)
	}
	rec.Result = j.Cell.Keep.trim(r)
	return rec, nil
}
