package script

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"
)

// Script is a parsed script.
type Script struct {
	Setup Setup
	Slow  bool // not for a real clock
	lines []line
}

// line is one step.
type line struct {
	verb    string // < > >~ ! +
	words   []string
	where   string // file and number
	text    string
	differs string // why the kernel fails here; "" it does not
}

// Parse reads the script in a file of files; "use" takes others from common/ there.
func Parse(files fs.FS, name string) (*Script, error) {
	s := &Script{}
	p := parser{files: files, script: s}
	if err := p.file(name); err != nil {
		return nil, err
	}
	if len(s.lines) == 0 {
		return nil, fmt.Errorf("%s: no steps", name)
	}
	if p.differs != "" {
		return nil, fmt.Errorf("%s: a difference of the kernel without a line that it is about", name)
	}
	return s, nil
}

// Waits is the least time that the script takes.
func (s *Script) Waits() time.Duration {
	var sum time.Duration
	for _, l := range s.lines {
		switch {
		case l.verb == "+" || l.verb == ">" && l.words[0] == "none" && len(l.words) > 1:
			d, _ := time.ParseDuration(l.words[len(l.words)-1])
			sum += d
		case strings.HasPrefix(l.words[len(l.words)-1], "@"):
			from, _, _ := span(l.words[len(l.words)-1])
			sum += from
		}
	}
	return sum
}

// Differs returns how often the kernel is said to differ.
func (s *Script) Differs() (n int) {
	for _, l := range s.lines {
		if l.differs != "" {
			n++
		}
	}
	return n
}

type parser struct {
	files   fs.FS
	script  *Script
	depth   int
	differs string
}

func (p *parser) file(name string) error {
	text, err := fs.ReadFile(p.files, name)
	if err != nil {
		return err
	}
	for i, t := range strings.Split(string(text), "\n") {
		if err := p.line(t, fmt.Sprintf("%s:%d", name, i+1)); err != nil {
			return fmt.Errorf("%s:%d: %w", name, i+1, err)
		}
	}
	return nil
}

func (p *parser) line(text, where string) error {
	if why, ok := strings.CutPrefix(text, "kernel: differs "); ok {
		if !strings.Contains(why, "RFC ") || !strings.Contains(why, ":") {
			return fmt.Errorf("want kernel: differs RFC nnnn, Section n: why")
		}
		p.differs = why
		return nil
	}
	if strings.TrimSpace(text) == "kernel: slow" {
		p.script.Slow = true
		return nil
	}
	text, _, _ = strings.Cut(text, "#")
	f := strings.Fields(text)
	if len(f) == 0 {
		return nil
	}
	l := line{verb: f[0], words: f[1:], where: where, text: strings.TrimSpace(text), differs: p.differs}
	if len(l.words) == 0 {
		return fmt.Errorf("%q says nothing", text)
	}
	switch f[0] {
	case "set":
		return p.script.Setup.set(f[1:])
	case "use":
		if p.depth++; p.depth > 8 {
			return fmt.Errorf("use in a circle")
		}
		err := p.file("common/" + f[1])
		p.depth--
		return err
	case "+":
		if _, err := time.ParseDuration(f[1]); err != nil {
			return err
		}
	case "<", ">", ">~", "!", "let":
	default:
		return fmt.Errorf("unknown line %q", text)
	}
	p.differs = ""
	p.script.lines = append(p.script.lines, l)
	return nil
}

// set takes the words of a set line.
func (s *Setup) set(words []string) error {
	for _, w := range words {
		name, val, _ := strings.Cut(w, "=")
		n, err := strconv.Atoi(val)
		if val == "" {
			err = nil
		}
		switch name {
		case "checksums":
			s.Checksums = true
		case "plain":
			s.NoMPTCP = true
		case "no_join_initial":
			s.NoJoinInitial = true
		case "v6":
			s.V6 = true
		case "nodelay":
			s.NoDelay = true
		case "joins":
			s.Joins = true
		case "syn_fallback":
			s.SYNFallback = n
		case "mtu":
			s.MTU = n
		case "rcvbuf":
			s.ReceiveBuffer = n
		default:
			err = fmt.Errorf("unknown setting %q", w)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// span reads @from..to; @from alone means within a tenth of it.
func span(w string) (from, to time.Duration, err error) {
	a, b, both := strings.Cut(strings.TrimPrefix(w, "@"), "..")
	from, err = time.ParseDuration(a)
	if !both {
		return from - from/10, from + from/10, err
	}
	if err == nil {
		to, err = time.ParseDuration(b)
	}
	return from, to, err
}
