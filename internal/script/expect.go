package script

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"braid/wire"
)

// soon is how long a packet may take that has no time of its own: as long as an ACK may be delayed.
const soon = 210 * time.Millisecond

// field is one word that describes a segment.
type field struct {
	name string
	v    value
}

// expect runs a line about what the host sends.
func (r *Runner) expect(w []string, patient bool) error {
	name, w := flowName(w)
	if w[0] == "none" {
		return r.expectNone(name, w[1:])
	}
	from, to := time.Duration(0), soon
	if last := w[len(w)-1]; strings.HasPrefix(last, "@") {
		var err error
		if from, to, err = span(last); err != nil {
			return err
		}
		w = w[:len(w)-1]
	}
	var flags []wire.Flags
	for _, s := range strings.Split(w[0], "|") { // R|R.: either
		fl, err := parseFlags(s)
		if err != nil {
			return err
		}
		flags = append(flags, fl)
	}
	from, to = r.back.Tolerance(from, to)
	for {
		p, err := r.next(name, flags[0], to)
		if err != nil {
			return err
		}
		err = r.match(r.flow(name), p, flags, w[1:])
		if took := p.at - r.lastAt; err == nil && (from > 0 && took < from || took > to) {
			err = fmt.Errorf("after %v, want %v to %v", took, from, to)
		}
		if err == nil {
			r.lastAt = p.at
			return nil
		}
		if !patient || !p.bare() {
			return fmt.Errorf("%w\n\tgot %v %s", err, p.seg.Flags, r.inWords(r.flow(name), p))
		}
	}
}

// expectNone checks that the host says nothing.
func (r *Runner) expectNone(name string, w []string) error {
	wait := time.Duration(0)
	if len(w) > 0 {
		var err error
		if wait, err = time.ParseDuration(w[0]); err != nil {
			return err
		}
	}
	if p := r.take(wait, func(p *packet) bool { f := r.flows[name]; return name == "1" || f != nil && r.of(p) == f }); p != nil {
		return fmt.Errorf("got %v", p.seg.String())
	}
	r.lastAt = r.back.Now()
	return nil
}

// inWords says what a packet is like.
func (r *Runner) inWords(f *flow, p *packet) string {
	var b strings.Builder
	for _, fd := range r.describe(f, p) {
		fmt.Fprintf(&b, " %s=%.60s", fd.name, fd.v)
	}
	return b.String()
}

// next takes the flow's next packet off the queue and learns from it.
func (r *Runner) next(name string, flags wire.Flags, within time.Duration) (*packet, error) {
	f := r.flow(name)
	mine := func(p *packet) bool {
		if f.known || f.host.Port() == servicePort && p.host() == f.host && p.peer() == f.peer {
			return r.of(p) == f
		}
		return r.of(p) == nil && p.seg.Flags.Has(wire.SYN) == flags.Has(wire.SYN) // the host opens it
	}
	p := r.take(r.lastAt+within-r.back.Now(), mine)
	if p == nil {
		return nil, errors.New("no packet came" + r.others())
	}
	r.learn(f, p)
	return p, nil
}

// others lists what waits and belongs elsewhere.
func (r *Runner) others() (s string) {
	for _, p := range r.pending {
		s += "\n\twaits: " + p.seg.String()
	}
	return s
}

// take returns the first packet of a kind that comes within a time, nil if there is none.
func (r *Runner) take(wait time.Duration, mine func(*packet) bool) *packet {
	end := r.back.Now() + wait
	for i := 0; ; i++ {
		for i >= len(r.pending) {
			raw, at, ok := r.back.Next(max(0, end-r.back.Now()))
			if !ok {
				return nil
			}
			p := &packet{raw: raw, at: at}
			if wire.ParseIP(raw, &p.ip) != nil || p.ip.Proto != wire.ProtoTCP || wire.ParseTCP(p.ip.Payload, &p.seg) != nil {
				continue
			}
			r.pending = append(r.pending, p)
		}
		if p := r.pending[i]; mine(p) {
			r.pending = slices.Delete(r.pending, i, i+1)
			return p
		}
	}
}

// match compares a segment with the words of a line.
func (r *Runner) match(f *flow, p *packet, flags []wire.Flags, w []string) error {
	if s := &p.seg; !slices.Contains(flags, s.Flags&^wire.PSH) {
		return fmt.Errorf("flags %v, want %v", s.Flags, flags)
	}
	got := r.describe(f, p)
	named := map[string]bool{}
	for _, word := range w {
		want, not := strings.CutPrefix(word, "^")
		ok, err := r.agrees(want, got)
		if err != nil {
			return err
		}
		if ok == not {
			return fmt.Errorf("%s does not hold", word)
		}
		name, _, _ := cutOperator(want)
		named[name] = true
	}
	for _, fd := range got {
		if !named[fd.name] && (fd.name == "payload" && !named["data"] || toName[fd.name]) {
			return fmt.Errorf("%s=%.40s, which the line does not name", fd.name, fd.v)
		}
	}
	return nil
}

// cutOperator splits a word into name, operator and what stands behind it.
func cutOperator(w string) (name, op, rest string) {
	i := strings.IndexAny(w, "=<>")
	if i < 0 {
		return w, "", ""
	}
	return w[:i], w[i : i+1], w[i+1:]
}

// agrees reports whether a word is true of a segment. A variable without a value takes the segment's.
func (r *Runner) agrees(word string, got []field) (bool, error) {
	name, op, rest := cutOperator(word)
	var unbound *unboundError
	for _, fd := range got {
		if fd.name != name {
			continue
		}
		if op == "" {
			return true, nil
		}
		want, err := r.vars.eval(rest)
		if name == "payload" {
			want, err = words(rest), nil
		}
		if errors.As(err, &unbound) && rest == "$"+unbound.name {
			r.vars[unbound.name] = fd.v
			return true, nil
		}
		switch {
		case err != nil:
			return false, err
		case op == "<":
			return fd.v.number < want.number, nil
		case op == ">":
			return fd.v.number > want.number, nil
		}
		return want.equal(fd.v), nil
	}
	return false, nil
}

// toName are the words of options that a line has to name if the segment has them.
var toName = map[string]bool{"mp_capable": true, "mp_join": true, "add_addr": true, "remove_addr": true, "mp_prio": true, "mp_fail": true, "mp_fastclose": true}
