package script

import (
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// Runner runs one script against one backend.
type Runner struct {
	script  *Script
	back    Backend
	vars    variables
	flows   map[string]*flow
	pending []*packet     // came and no line has asked for them
	lastAt  time.Duration // when the line before happened
	err     error         // of the word under way
}

// ownKey is the script's own key, $a.
var ownKey = []byte{1, 2, 3, 4, 5, 6, 7, 8}

// LineError says which line of a script failed.
type LineError struct {
	Where, Text string
	Differs     string // what the script says about the kernel here
	Err         error
}

// Error says it in words.
func (e *LineError) Error() string { return fmt.Sprintf("%s: %s: %v", e.Where, e.Text, e.Err) }

// Unwrap returns what failed.
func (e *LineError) Unwrap() error { return e.Err }

// Run runs a script against a backend that was made for its Setup. What fails is a *LineError.
func Run(s *Script, back Backend) error {
	r := &Runner{script: s, back: back, vars: variables{"a": octets(ownKey)}, flows: map[string]*flow{}}
	for _, l := range s.lines {
		if err := r.line(l); err != nil {
			return &LineError{Where: l.where, Text: l.text, Differs: l.differs, Err: err}
		}
	}
	return nil
}

// line runs one line.
func (r *Runner) line(l line) error {
	switch l.verb {
	case "<":
		return r.inject(l.words)
	case ">", ">~":
		if err := r.expect(l.words, l.verb == ">~"); err != nil {
			return err
		}
		return r.wordErr()
	case "!":
		return r.call(l.words)
	case "let":
		return r.let(l.words)
	}
	d, err := time.ParseDuration(l.words[0])
	if err != nil {
		return err
	}
	r.pass(d)
	return nil
}

// let gives variables values: let a=0x12 takes another key for the script.
func (r *Runner) let(w []string) error {
	for _, word := range w {
		name, expr, _ := strings.Cut(word, "=")
		v, err := r.vars.eval(expr)
		if err != nil {
			return err
		}
		r.vars[name] = v
	}
	return nil
}

// pass lets time go by and keeps what the host sends meanwhile.
func (r *Runner) pass(d time.Duration) {
	r.take(d, func(*packet) bool { return false })
	r.lastAt = r.back.Now()
}

// hostAddr is where the tested host is unless a line says otherwise.
func (r *Runner) hostAddr() netip.Addr {
	if r.script.Setup.V6 {
		return hostAddrs[firstPath6]
	}
	return hostAddrs[firstPath4]
}

// peerAddr is where the script is unless a line says otherwise.
func (r *Runner) peerAddr() netip.Addr {
	if r.script.Setup.V6 {
		return netip.MustParseAddr("fd00:1::1")
	}
	return netip.MustParseAddr("10.1.0.1")
}
