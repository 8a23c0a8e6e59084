package trace

import (
	"regexp"
	"slices"
	"testing"
)

func TestRecorderSelectTee(t *testing.T) {
	var all, some Recorder
	s := Tee(&all, Select(&some, RTO, TLP))
	e := Event{}
	for i, k := range []Kind{Sent, RTO, Received, TLP, RTO} {
		e.Kind, e.Time = k, 10
		e.V[0] = int64(i)
		s.Trace(&e) // the same Event again: a Sink copies
	}
	if n := len(all.Events); n != 5 {
		t.Errorf("%d events, want 5", n)
	}
	var got []int64
	for _, e := range some.Events {
		got = append(got, e.V[0])
	}
	if want := []int64{1, 3, 4}; !slices.Equal(got, want) {
		t.Errorf("selected events %v, want %v", got, want)
	}
	if rtos := all.Of(RTO); len(rtos) != 2 || rtos[0].V[0] != 1 || rtos[1].V[0] != 4 {
		t.Errorf("Of(RTO) = %v", rtos)
	}
}

// Every kind has a row, every name is unique and needs no escapes, no kind has more values than an Event.
func TestTable(t *testing.T) {
	name := regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	word := regexp.MustCompile(`^[a-z0-9 -]+$`)
	seen := map[string]bool{}
	for _, k := range Kinds() {
		if !name.MatchString(k.String()) || seen[k.String()] {
			t.Errorf("kind %d: name %q is malformed or taken", k, k)
		}
		seen[k.String()] = true
		if back, ok := KindByName(k.String()); !ok || back != k {
			t.Errorf("KindByName(%q) = %v, %t", k, back, ok)
		}
		if n := len(k.Fields()); n == 0 || n > MaxValues {
			t.Errorf("%v: %d fields", k, n)
		}
		fields := map[string]bool{"time_ns": true, "conn": true, "subflow": true, "event": true}
		for _, f := range k.Fields() {
			if !name.MatchString(f.Name) || fields[f.Name] {
				t.Errorf("%v: field name %q is malformed or taken", k, f.Name)
			}
			fields[f.Name] = true
			for _, w := range f.Words {
				if !word.MatchString(w) {
					t.Errorf("%v: word %q", k, w)
				}
			}
		}
	}
}

func TestUnknownKind(t *testing.T) {
	for _, k := range []Kind{0, kinds, 255} {
		if k.Fields() != nil || k.String() == "" {
			t.Errorf("kind %d: fields %v, name %q", k, k.Fields(), k)
		}
		if _, ok := KindByName(k.String()); ok {
			t.Errorf("kind %d has a name", k)
		}
	}
}

func TestGet(t *testing.T) {
	e := Event{Kind: RTO, V: [8]int64{200, 3}}
	if v, ok := e.Get("times"); !ok || v != 3 {
		t.Errorf("times = %d, %t", v, ok)
	}
	if _, ok := e.Get("cwnd_bytes"); ok {
		t.Error("an RTO has no cwnd_bytes")
	}
}

func TestPhaseCode(t *testing.T) {
	for i, p := range phases {
		if got := PhaseCode(p); got != int64(i) {
			t.Errorf("PhaseCode(%q) = %d, want %d", p, got, i)
		}
	}
	if got := PhaseCode("of the moon"); got != 0 {
		t.Errorf("unknown phase: %d, want 0", got)
	}
	if Bool(true) != 1 || Bool(false) != 0 {
		t.Error("Bool")
	}
}
