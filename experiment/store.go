package experiment

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"braid/netsim"
)

// Record is what is kept of one run.
type Record struct {
	Experiment string             `json:"experiment"`
	Cell       string             `json:"cell"`
	Seed       uint64             `json:"seed"`
	Key        string             `json:"key"`              // Job.Key
	Commit     string             `json:"commit,omitempty"` // of the program that ran it
	Values     map[string]float64 `json:"values,omitempty"` // of the cell's Measure
	Result     *netsim.Result     `json:"result"`
}

// Store keeps Records on disk: a file of gzipped JSON lines for each experiment. Each record is a gzip member of its own when it is written,
// so that an interruption loses at most the one being written; Compact rewrites a file as one member, in order. Safe for concurrent
// use.
type Store struct {
	dir string

	mu      sync.Mutex
	records map[string]map[place]*Record // by experiment
}

type place struct {
	cell string
	seed uint64
}

// OpenStore opens the store in a directory, which is made when something is written. "" keeps records in memory only.
func OpenStore(dir string) *Store {
	return &Store{dir: dir, records: map[string]map[place]*Record{}}
}

const suffix = ".jsonl.gz"

func (s *Store) file(experiment string) string { return filepath.Join(s.dir, experiment+suffix) }

// load reads the file of an experiment unless that was done. mu is held.
func (s *Store) load(experiment string) (map[place]*Record, error) {
	if m, ok := s.records[experiment]; ok {
		return m, nil
	}
	m := map[place]*Record{}
	if s.dir != "" {
		b, err := os.ReadFile(s.file(experiment))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		whole, err := readRecords(b, func(r *Record) { m[place{r.Cell, r.Seed}] = r })
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.file(experiment), err)
		}
		if whole < len(b) { // what was being written when the last run ended
			if err := os.Truncate(s.file(experiment), int64(whole)); err != nil {
				return nil, err
			}
		}
	}
	s.records[experiment] = m
	return m, nil
}

// readRecords calls f for every record, and returns how many bytes of b are whole gzip members. A member that ends early is the end.
func readRecords(b []byte, f func(*Record)) (whole int, err error) {
	r := bytes.NewReader(b)
	for r.Len() > 0 {
		z, err := gzip.NewReader(r)
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return whole, nil
		}
		if err != nil {
			return whole, err
		}
		z.Multistream(false)
		text, err := io.ReadAll(z)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return whole, nil
		}
		if err != nil {
			return whole, err
		}
		d := json.NewDecoder(bytes.NewReader(text))
		for {
			rec := new(Record)
			if err := d.Decode(rec); err == io.EOF {
				break
			} else if err != nil {
				return whole, err
			}
			f(rec)
		}
		whole = len(b) - r.Len()
	}
	return whole, nil
}

// Get returns the record of a job, nil if there is none; stale ones, of another key, only if anyKey says that they will do.
func (s *Store) Get(j *Job, anyKey bool) (*Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.load(j.Experiment)
	if err != nil {
		return nil, err
	}
	rec := m[place{j.Cell.Name, j.Seed}]
	if rec == nil || anyKey {
		return rec, nil
	}
	key, err := j.Key()
	if err != nil || rec.Key != key {
		return nil, err
	}
	return rec, nil
}

// Put keeps a record, in the place of an older one of the same cell and seed.
func (s *Store) Put(rec *Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.load(rec.Experiment)
	if err != nil {
		return err
	}
	m[place{rec.Cell, rec.Seed}] = rec
	if s.dir == "" {
		return nil
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(s.file(rec.Experiment), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	var member bytes.Buffer
	if err := writeRecords(&member, []*Record{rec}); err != nil {
		f.Close()
		return err
	}
	_, err = f.Write(member.Bytes())
	return errors.Join(err, f.Close())
}

func writeRecords(w io.Writer, recs []*Record) error {
	z, _ := gzip.NewWriterLevel(w, gzip.BestCompression)
	e := json.NewEncoder(z)
	for _, r := range recs {
		if err := e.Encode(r); err != nil {
			return err
		}
	}
	return z.Close()
}

// Compact rewrites the file of an experiment: only the records of these jobs, in their order, as one gzip member.
func (s *Store) Compact(jobs []Job) error {
	if s.dir == "" || len(jobs) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.load(jobs[0].Experiment)
	if err != nil {
		return err
	}
	var recs []*Record
	for i := range jobs {
		if r := m[place{jobs[i].Cell.Name, jobs[i].Seed}]; r != nil {
			recs = append(recs, r)
		}
	}
	name := s.file(jobs[0].Experiment)
	f, err := os.CreateTemp(s.dir, ".compact-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	w := bufio.NewWriter(f)
	err = errors.Join(writeRecords(w, recs), w.Flush(), f.Chmod(0o644), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// Experiments lists the experiments that the store has files of.
func (s *Store) Experiments() []string {
	names, _ := filepath.Glob(filepath.Join(s.dir, "*"+suffix))
	for i := range names {
		names[i] = strings.TrimSuffix(filepath.Base(names[i]), suffix)
	}
	slices.Sort(names)
	return names
}
