package link

import (
	"strings"
	"testing"
)

func TestTraceDelivery(t *testing.T) {
	for _, c := range []struct {
		name  string
		trace []int64
		at    float64 // ms
		sizes []int
		want  []float64
	}{
		{"one opportunity a packet", []int64{2, 5, 10}, 0, []int{1500, 1500, 1500}, []float64{2, 5, 10}},
		{"the trace repeats", []int64{2, 5, 10}, 0, []int{1500, 1500, 1500, 1500, 1500}, []float64{2, 5, 10, 12, 15}},
		{"several in one millisecond", []int64{3, 3, 4}, 0, []int{1500, 1500, 1500}, []float64{3, 3, 4}},
		{"small packets share one", []int64{2, 5}, 0, []int{500, 500, 500, 500}, []float64{2, 2, 2, 5}},
		{"a packet across two", []int64{2, 5, 6}, 0, []int{1000, 1000, 1000}, []float64{2, 5, 5}},
		{"larger than one", []int64{2, 5, 6}, 0, []int{4000}, []float64{6}},
		{"earlier ones are lost", []int64{2, 5, 10}, 3, []int{1500}, []float64{5}},
		{"at the very millisecond", []int64{2, 5, 10}, 5, []int{1500}, []float64{5}},
		{"just after it", []int64{2, 5, 10}, 5.001, []int{1500}, []float64{10}},
		{"the period's end", []int64{2, 5, 10}, 10, []int{1500, 1500}, []float64{10, 12}},
		{"cycles later", []int64{2, 5, 10}, 95.5, []int{1500, 1500}, []float64{100, 102}},
		{"beginning at zero", []int64{0, 4}, 8, []int{1500, 1500, 1500}, []float64{8, 8, 12}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, Spec{TraceMs: c.trace, QueuePackets: 100}, 1)
			r.now = ms(c.at)
			var want []arrival
			for i, size := range c.sizes {
				r.send(1, size)
				want = append(want, arrival{uint32(i), c.want[i]})
			}
			r.drain()
			r.want(want...)
		})
	}
}

// What an opportunity has left when the queue empties is lost with it.
func TestUnusedRestIsLost(t *testing.T) {
	r := newRig(t, Spec{TraceMs: []int64{2, 5}}, 1)
	r.send(1, 100)
	r.to(ms(2.5))
	r.send(1, 100)
	r.drain()
	r.want(arrival{0, 2}, arrival{1, 5})
}

func TestReadOpportunities(t *testing.T) {
	got, err := ReadOpportunities(strings.NewReader("# comment\n0\n1\n1\n\n7\n"))
	if err != nil || len(got) != 4 || got[3] != 7 {
		t.Errorf("got %v, %v", got, err)
	}
	for text, want := range map[string]string{
		"":       "at least one opportunity",
		"1\nx\n": "line 2",
		"5\n4\n": "entry 2",
		"-1\n":   "entry 1",
		"0\n0\n": "period",
	} {
		if _, err := ReadOpportunities(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one that says %q", text, err, want)
		}
	}
}

func TestGenerateOpportunities(t *testing.T) {
	w := Walk{MeanMbps: 20, MinMbps: 2}
	a, err := GenerateOpportunities(w, Stream(1, "walk"))
	if err != nil {
		t.Fatal(err)
	}
	if err := checkOpportunities(a); err != nil {
		t.Fatal(err)
	}
	if got := newOpportunities(a).meanBitRate() / 1e6; got < 12 || got > 28 {
		t.Errorf("mean %v Mbit/s, want about 20", got)
	}
	b, _ := GenerateOpportunities(w, Stream(1, "walk"))
	c, _ := GenerateOpportunities(w, Stream(2, "walk"))
	if !equal(a, b) || equal(a, c) {
		t.Error("the same stream must give the same trace, another one another")
	}
	if _, err := GenerateOpportunities(Walk{MeanMbps: -1}, Stream(1, "walk")); err == nil {
		t.Error("a negative mean was accepted")
	}
}

func equal(a, b []int64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
