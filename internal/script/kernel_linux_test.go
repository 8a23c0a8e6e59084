package script

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
)

// together is how many scripts run at the same time: most of them wait most of the time.
const together = 12

// The kernel is the oracle: it passes every script, but for the lines that say that and why it differs, and there it does.
func TestScriptsOnTheKernel(t *testing.T) {
	if testing.Short() {
		t.Skip("the kernel is not in question")
	}
	all := scripts(t)
	work := make(chan string)
	var wg sync.WaitGroup
	for range together {
		wg.Go(func() {
			for file := range work {
				t.Run(file, func(t *testing.T) { runOnKernel(t, all[file]) })
			}
		})
	}
	for _, file := range slices.Sorted(maps.Keys(all)) {
		if !all[file].Slow {
			work <- file
		}
	}
	close(work)
	wg.Wait()
}

// attempts is how often a script may be tried: what differs fails every time.
const attempts = 4

// runOnKernel runs one script; again if it fails at first, as its clock is a real one on a machine that has other things to do.
func runOnKernel(t *testing.T, s *Script) {
	for attempt := 1; ; attempt++ {
		err := judge(s, Run(s, NewKernel(t, s.Setup)))
		if err == nil {
			return
		}
		if attempt == attempts {
			t.Fatal(err)
		}
		t.Logf("attempt %d: %v", attempt, err)
	}
}

// A mark of a difference is checked both ways, and at its own line only.
func TestJudge(t *testing.T) {
	s := func(differs ...string) (s *Script) {
		s = &Script{}
		for _, d := range differs {
			s.lines = append(s.lines, line{differs: d})
		}
		return s
	}
	failed := errors.New("failed")
	for _, c := range []struct {
		name string
		s    *Script
		err  error
		ok   bool
	}{
		{"passes", s(""), nil, true},
		{"fails", s(""), &LineError{Err: failed}, false},
		{"differs where it says", s("RFC"), &LineError{Differs: "RFC", Err: failed}, true},
		{"differs elsewhere", s("RFC"), &LineError{Err: failed}, false},
		{"does not differ any more", s("RFC"), nil, false},
		{"two marks", s("RFC", "RFC"), &LineError{Differs: "RFC", Err: failed}, false},
	} {
		if err := judge(c.s, c.err); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// judge says what is wrong with a script that ended with err.
func judge(s *Script, err error) error {
	var at *LineError
	switch {
	case s.Differs() > 1:
		return errors.New("only the first difference can be checked")
	case errors.As(err, &at) && at.Differs != "":
		return nil
	case err == nil && s.Differs() > 0:
		return errors.New("the kernel does not differ any more: take the mark away")
	}
	return err
}
