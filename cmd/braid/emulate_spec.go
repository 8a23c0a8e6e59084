package main

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"braid/link"
	"braid/middlebox"
	"braid/wire"
)

// emulatedPath is a path as --path describes it.
type emulatedPath struct {
	name     string
	up, down link.Spec
	boxes    []middlebox.Box
}

// linkValue is one key of a link, in either of the two forms that it can be said in: from the start (--path) and from a time on (--at). A nil form is not
// possible.
type linkValue struct {
	key    string
	help   string
	spec   func(*link.Spec, string) error
	change func(*link.Change, string) error
}

// number makes the linkValue of a number.
func number(key, help string, read func(string) (float64, error), spec func(*link.Spec) *float64, change func(*link.Change) **float64) linkValue {
	return linkValue{key, help,
		func(s *link.Spec, text string) (err error) {
			*spec(s), err = read(text)
			return err
		},
		func(c *link.Change, text string) error {
			v, err := read(text)
			*change(c) = &v
			return err
		}}
}

// linkValues are the keys that describe a link.
var linkValues = []linkValue{
	number("rate", "20mbit (kbit, mbit, gbit)", readRate, func(s *link.Spec) *float64 { return &s.RateMbps }, func(c *link.Change) **float64 { return &c.RateMbps }),
	number("delay", "one way, 10ms", readMs, func(s *link.Spec) *float64 { return &s.DelayMs }, func(c *link.Change) **float64 { return &c.DelayMs }),
	number("jitter", "extra delay, uniform from 0 to 4ms", readMs, func(s *link.Spec) *float64 { return &s.JitterMs }, func(c *link.Change) **float64 { return &c.JitterMs }),
	number("loss", "share lost at random, 0.1%", readShare, func(s *link.Spec) *float64 { return &s.Loss }, func(c *link.Change) **float64 { return &c.Loss }),
	number("duplicate", "share delivered twice, 1%", readShare, func(s *link.Spec) *float64 { return &s.Duplicate }, func(c *link.Change) **float64 { return &c.Duplicate }),
	number("corrupt", "share with bits flipped, 0.1%", readShare, func(s *link.Spec) *float64 { return &s.Corrupt }, func(c *link.Change) **float64 { return &c.Corrupt }),
	{"queue", "100 packets, 64kB, or 1.5bdp (from the start only)", specQueue, changeQueue},
	{"burst", "losses in bursts: 0.05%/10%/30% of packets start one, end one, are lost in one",
		func(s *link.Spec, text string) (err error) { s.GilbertElliott, err = readBurst(text); return err },
		func(c *link.Change, text string) (err error) { c.GilbertElliott, err = readBurst(text); return err }},
	{"reorder", "share held back, and how long: 1%/5ms",
		func(s *link.Spec, text string) (err error) { s.Reorder, err = readReorder(text); return err },
		func(c *link.Change, text string) (err error) { c.Reorder, err = readReorder(text); return err }},
	{"mtu", "larger packets are dropped silently, 1400",
		func(s *link.Spec, text string) (err error) { s.MTU, err = strconv.Atoi(text); return err },
		func(c *link.Change, text string) error {
			v, err := strconv.Atoi(text)
			c.MTU = &v
			return err
		}},
	{"down", "yes: loses everything",
		func(s *link.Spec, text string) (err error) { s.Down, err = readBool(text); return err },
		func(c *link.Change, text string) error {
			v, err := readBool(text)
			c.Down = &v
			return err
		}},
	{"inorder", "yes: jitter does not reorder", func(s *link.Spec, text string) (err error) { s.InOrder, err = readBool(text); return err }, nil},
	{"trace", "FILE in Mahimahi's format instead of a rate", specTrace, nil},
	{"over", "how long the change takes, 5s", nil, func(c *link.Change, text string) (err error) {
		ms, err := readMs(text)
		c.OverS = ms / 1e3
		return err
	}},
}

// boxValues are the keys of middleboxes; they stand before both directions.
var boxValues = []struct {
	key, help string
	box       func(string) (middlebox.Box, error)
}{
	{"strip", "MPTCP options vanish from syn, synack, ack, data (joined by +) or all", readStrip},
	{"split", "segments are cut into pieces of 500 bytes", func(text string) (middlebox.Box, error) {
		n, err := atLeast(text, 1)
		return &middlebox.Split{Size: n}, err
	}},
	{"coalesce", "segments from the client are joined up to 4000 bytes, waiting 1 ms at most", func(text string) (middlebox.Box, error) {
		n, err := atLeast(text, 1)
		return &middlebox.Coalesce{Size: n, Wait: time.Millisecond}, err
	}},
	{"shift", "sequence numbers are moved by 1000000", func(text string) (middlebox.Box, error) {
		n, err := strconv.ParseUint(text, 10, 32)
		return middlebox.ShiftSequence(uint32(n)), err
	}},
	{"clamp", "window fields are at most 1000", func(text string) (middlebox.Box, error) {
		n, err := strconv.ParseUint(text, 10, 16)
		return middlebox.ClampWindow(uint16(n)), err
	}},
}

// readPath reads a --path: NAME:KEY=VALUE,...
func readPath(text string) (*emulatedPath, error) {
	name, list, _ := strings.Cut(text, ":")
	p := &emulatedPath{name: name}
	for _, f := range fields(list) {
		if err := p.set(f); err != nil {
			return nil, fmt.Errorf("--path %s: %w", name, err)
		}
	}
	for _, s := range []*link.Spec{&p.up, &p.down} {
		if s.RTTMs == 0 {
			s.RTTMs = p.up.DelayMs + p.down.DelayMs // what a queue of 1bdp is meant for
		}
		if err := s.Check(); err != nil {
			return nil, fmt.Errorf("--path %s: %w", name, err)
		}
	}
	return p, nil
}

func (p *emulatedPath) set(f field) error {
	for _, b := range boxValues {
		if b.key == f.key {
			box, err := b.box(f.value)
			p.boxes = append(p.boxes, box)
			return f.wrap(err)
		}
	}
	for _, v := range linkValues {
		if v.key == f.key && v.spec != nil {
			for _, s := range f.of(&p.up, &p.down) {
				if err := v.spec(s, f.value); err != nil {
					return f.wrap(err)
				}
			}
			return nil
		}
	}
	return fmt.Errorf("%q is unknown; known are %s", f.key, strings.Join(specKeys(), ", "))
}

// change reads an --at, TIME:PATH:KEY=VALUE,..., into the path of that name.
func readChange(text string, paths []*emulatedPath) error {
	parts := strings.SplitN(text, ":", 3)
	if len(parts) != 3 {
		return fmt.Errorf("--at %s: want TIME:PATH:KEY=VALUE and perhaps more keys, with commas between", text)
	}
	at, err := readMs(parts[0])
	if err != nil {
		return fmt.Errorf("--at %s: %w", text, err)
	}
	for _, p := range paths {
		if p.name != parts[1] {
			continue
		}
		up, down := link.Change{AtS: at / 1e3}, link.Change{AtS: at / 1e3}
		var changed [2]bool
		for _, f := range fields(parts[2]) {
			if err := f.change(&up, &down, &changed); err != nil {
				return fmt.Errorf("--at %s: %w", text, err)
			}
		}
		if changed[0] {
			p.up.Changes = append(p.up.Changes, up)
		}
		if changed[1] {
			p.down.Changes = append(p.down.Changes, down)
		}
		for _, s := range []*link.Spec{&p.up, &p.down} {
			if err := s.Check(); err != nil {
				return fmt.Errorf("--at %s: %w", text, err)
			}
		}
		return nil
	}
	return fmt.Errorf("--at %s: there is no --path %s", text, parts[1])
}

// field is a key with its value, and the direction that it is for.
type field struct {
	direction, key, value string // direction: up, down or empty
}

// fields takes KEY=VALUE,... apart; a key alone means yes.
func fields(list string) (all []field) {
	if list == "" {
		return nil
	}
	for _, text := range strings.Split(list, ",") {
		var f field
		var ok bool
		if f.key, f.value, ok = strings.Cut(strings.TrimSpace(text), "="); !ok {
			f.value = "yes"
		}
		for _, d := range []string{"up", "down"} {
			if rest, ok := strings.CutPrefix(f.key, d+"."); ok {
				f.direction, f.key = d, rest
			}
		}
		all = append(all, f)
	}
	return all
}

func (f field) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s=%s: %w", f.key, f.value, err)
}

// of returns the links that a field is for.
func (f field) of(up, down *link.Spec) []*link.Spec {
	switch f.direction {
	case "up":
		return []*link.Spec{up}
	case "down":
		return []*link.Spec{down}
	}
	return []*link.Spec{up, down}
}

func (f field) change(up, down *link.Change, changed *[2]bool) error {
	for _, v := range linkValues {
		if v.key != f.key || v.change == nil {
			continue
		}
		for i, c := range []*link.Change{up, down} {
			if f.direction == "" || f.direction == []string{"up", "down"}[i] {
				changed[i] = true
				if err := v.change(c, f.value); err != nil {
					return f.wrap(err)
				}
			}
		}
		return nil
	}
	return fmt.Errorf("%q cannot change; what can: %s", f.key, strings.Join(changeKeys(), ", "))
}

func specKeys() (keys []string) {
	for _, v := range linkValues {
		if v.spec != nil {
			keys = append(keys, v.key)
		}
	}
	for _, b := range boxValues {
		keys = append(keys, b.key)
	}
	return keys
}

func changeKeys() (keys []string) {
	for _, v := range linkValues {
		if v.change != nil {
			keys = append(keys, v.key)
		}
	}
	return keys
}

// readUnit reads a number with one of the units, each with its factor; "" stands for none.
func readUnit(text string, units map[string]float64) (float64, error) {
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ%/")
	v, err := strconv.ParseFloat(digits, 64)
	factor, ok := units[strings.ToLower(text[len(digits):])]
	if err != nil || !ok || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q is no number with a unit that is known here", text)
	}
	return v * factor, nil
}

// readRate returns Mbit/s.
func readRate(text string) (float64, error) {
	return readUnit(text, map[string]float64{"kbit": 1e-3, "mbit": 1, "gbit": 1e3, "kbit/s": 1e-3, "mbit/s": 1, "gbit/s": 1e3})
}

// readMs returns milliseconds.
func readMs(text string) (float64, error) {
	return readUnit(text, map[string]float64{"us": 1e-3, "ms": 1, "s": 1e3})
}

// readShare returns a share of 1.
func readShare(text string) (float64, error) {
	return readUnit(text, map[string]float64{"%": 0.01, "": 1})
}

func readBool(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "yes", "true", "1":
		return true, nil
	case "no", "false", "0":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither yes nor no", text)
}

func atLeast(text string, least int) (int, error) {
	n, err := strconv.Atoi(text)
	if err == nil && n < least {
		err = fmt.Errorf("must be at least %d", least)
	}
	return n, err
}

// readQueue returns a queue's room: bytes, packets, or a multiple of the bandwidth-delay product.
func readQueue(text string) (bytes, packets int, bdp float64, err error) {
	if n, err := strconv.Atoi(text); err == nil {
		return 0, n, 0, nil
	}
	if s, ok := strings.CutSuffix(text, "bdp"); ok {
		bdp, err = strconv.ParseFloat(s, 64)
		return 0, 0, bdp, err
	}
	v, err := readUnit(text, map[string]float64{"b": 1, "kb": 1e3, "mb": 1e6, "kib": 1 << 10, "mib": 1 << 20})
	return int(v), 0, 0, err
}

func specQueue(s *link.Spec, text string) (err error) {
	s.QueueBytes, s.QueuePackets, s.QueueBDP, err = readQueue(text)
	return err
}

func changeQueue(c *link.Change, text string) error {
	bytes, packets, bdp, err := readQueue(text)
	if bdp != 0 {
		return fmt.Errorf("a queue changes to packets or bytes, not to a multiple of the bandwidth-delay product")
	}
	c.QueueBytes, c.QueuePackets = &bytes, &packets
	return err
}

func specTrace(s *link.Spec, text string) error {
	f, err := os.Open(text)
	if err != nil {
		return err
	}
	defer f.Close()
	s.TraceMs, err = link.ReadOpportunities(f)
	return err
}

func readBurst(text string) (*link.GilbertElliott, error) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 {
		return nil, fmt.Errorf("want three shares, START/END/LOSS")
	}
	var v [3]float64
	for i, p := range parts {
		var err error
		if v[i], err = readShare(p); err != nil {
			return nil, err
		}
	}
	return &link.GilbertElliott{PGoodBad: v[0], PBadGood: v[1], LossBad: v[2]}, nil
}

func readReorder(text string) (*link.Reorder, error) {
	share, delay, ok := strings.Cut(text, "/")
	if !ok {
		return nil, fmt.Errorf("want SHARE/DELAY")
	}
	p, err := readShare(share)
	if err != nil {
		return nil, err
	}
	ms, err := readMs(delay)
	return &link.Reorder{Probability: p, DelayMs: ms}, err
}

func readStrip(text string) (middlebox.Box, error) {
	var where middlebox.Where
	for _, s := range strings.Split(text, "+") {
		w, ok := map[string]middlebox.Where{
			"syn": middlebox.InSYN, "synack": middlebox.InSYNACK, "ack": middlebox.InAck, "data": middlebox.InData, "all": middlebox.Anywhere,
		}[s]
		if !ok {
			return nil, fmt.Errorf("%q is none of syn, synack, ack, data, all", s)
		}
		where |= w
	}
	return middlebox.StripOptions(wire.OptMPTCP, where, 0), nil
}
