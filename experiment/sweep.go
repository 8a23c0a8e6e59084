package experiment

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"braid/netsim"
)

// Sweep says how jobs are run.
type Sweep struct {
	Workers  int            // 0: as many as there are processors
	Store    *Store         // nil: in memory
	Commit   string         // noted in new records
	Stored   bool           // run nothing: take what the Store has, whatever its key, and leave out what it has not
	Fresh    bool           // run everything again
	Progress func(Progress) // called one at a time, at the beginning and after each job; nil: not
}

// Progress is how far a Sweep has come.
type Progress struct {
	Done, Total int           // jobs, those found in the Store included
	Found       int           // jobs found in the Store
	Share       float64       // of the work to be done, 0 to 1, by estimated cost
	Elapsed     time.Duration // since the first job
	Remaining   time.Duration // estimated; 0 before anything is known
	Last        *Job          // the job that has just ended; nil at the beginning
}

// Set is the results of jobs, by experiment and cell, in order of seeds.
type Set struct {
	cells map[string]map[string][]*Record
}

// Run runs the jobs that the Store does not have and returns the results of all. On an error, or when ctx ends, jobs under way are
// finished and kept, and no new ones begin.
func (w Sweep) Run(ctx context.Context, jobs []Job) (*Set, error) {
	if w.Store == nil {
		w.Store = OpenStore("")
	}
	r := &sweep{Sweep: w, records: make([]*Record, len(jobs)), jobs: jobs}
	if err := r.find(); err != nil {
		return nil, err
	}
	if !w.Stored {
		if err := r.work(ctx); err != nil {
			return nil, err
		}
	}
	set := &Set{cells: map[string]map[string][]*Record{}}
	for i := range jobs {
		if r.records[i] != nil {
			set.add(r.records[i])
		}
	}
	return set, nil
}

// sweep is a Sweep while it runs.
type sweep struct {
	Sweep
	jobs    []Job
	records []*Record
	todo    []int
	costs   []float64

	mu    sync.Mutex
	next  int
	found int
	done  int
	cost  float64 // of what was run
	total float64 // of what is to be run
	began time.Time
	err   error
}

// find takes what the Store has. Within an experiment the longest jobs go first, so that no core is left with a long one at the
// end; experiments stay in order.
func (r *sweep) find() error {
	r.costs = make([]float64, len(r.jobs))
	rank := map[string]int{}
	for i := range r.jobs {
		j := &r.jobs[i]
		if _, ok := rank[j.Experiment]; !ok {
			rank[j.Experiment] = len(rank)
		}
		if !r.Fresh {
			rec, err := r.Store.Get(j, r.Stored)
			if err != nil {
				return err
			}
			if rec != nil {
				r.records[i] = rec
				r.found++
				continue
			}
		}
		r.costs[i] = j.Cost()
		r.total += r.costs[i]
		r.todo = append(r.todo, i)
	}
	slices.SortStableFunc(r.todo, func(a, b int) int {
		if d := cmp.Compare(rank[r.jobs[a].Experiment], rank[r.jobs[b].Experiment]); d != 0 {
			return d
		}
		return cmp.Compare(r.costs[b], r.costs[a])
	})
	return nil
}

func (r *sweep) work(ctx context.Context) error {
	workers := r.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	r.began = time.Now()
	r.report(nil)
	var wg sync.WaitGroup
	for range min(workers, len(r.todo)) {
		wg.Go(func() {
			for {
				i := r.take(ctx)
				if i < 0 {
					return
				}
				rec, err := r.jobs[i].run()
				if err == nil {
					rec.Commit = r.Commit
					err = r.Store.Put(rec)
				}
				r.finish(i, rec, err)
			}
		})
	}
	wg.Wait()
	if r.err == nil {
		r.err = ctx.Err()
	}
	return r.err
}

// take returns the next job; -1: there is none, or nothing is to be begun any more.
func (r *sweep) take(ctx context.Context) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil || ctx.Err() != nil || r.next == len(r.todo) {
		return -1
	}
	r.next++
	return r.todo[r.next-1]
}

func (r *sweep) finish(i int, rec *Record, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		if r.err == nil {
			r.err = err
		}
		return
	}
	r.records[i] = rec
	r.done++
	r.cost += r.costs[i]
	r.report(&r.jobs[i])
}

func (r *sweep) report(last *Job) {
	if r.Progress == nil {
		return
	}
	p := Progress{Done: r.found + r.done, Total: len(r.jobs), Found: r.found, Share: 1, Elapsed: time.Since(r.began), Last: last}
	if r.total > 0 {
		p.Share = r.cost / r.total
	}
	if p.Share > 0 {
		p.Remaining = time.Duration(float64(p.Elapsed) * (1 - p.Share) / p.Share)
	}
	r.Progress(p)
}

func (s *Set) add(r *Record) {
	m := s.cells[r.Experiment]
	if m == nil {
		m = map[string][]*Record{}
		s.cells[r.Experiment] = m
	}
	m[r.Cell] = append(m[r.Cell], r)
}

// Records returns what was kept of a cell's runs; nil: nothing.
func (s *Set) Records(experiment, cell string) []*Record { return s.cells[experiment][cell] }

// Results returns the results of a cell's runs.
func (s *Set) Results(experiment, cell string) []*netsim.Result {
	var out []*netsim.Result
	for _, r := range s.Records(experiment, cell) {
		out = append(out, r.Result)
	}
	return out
}

// Missing says which of the jobs have no result.
func (s *Set) Missing(jobs []Job) error {
	for i := range jobs {
		j := &jobs[i]
		found := slices.ContainsFunc(s.Records(j.Experiment, j.Cell.Name), func(r *Record) bool { return r.Seed == j.Seed })
		if !found {
			return fmt.Errorf("experiment %s: no result of cell %q, seed %d", j.Experiment, j.Cell.Name, j.Seed)
		}
	}
	return nil
}
