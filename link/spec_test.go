package link

import (
	"strings"
	"testing"
)

func TestCheckNamesTheField(t *testing.T) {
	for _, c := range []struct {
		spec Spec
		want string
	}{
		{Spec{}, ""},
		{Spec{RateMbps: 100, DelayMs: 25, Loss: 0.01}, ""},
		{Spec{RateMbps: -1}, "rate_mbps"},
		{Spec{RateMbps: 1, TraceMs: []int64{1}}, "exclude"},
		{Spec{TraceMs: []int64{2, 1}}, "entry 2"},
		{Spec{DelayMs: -1}, "delay_ms -1"},
		{Spec{Loss: 1.1}, "loss 1.1 must be between 0 and 1"},
		{Spec{GilbertElliott: &GilbertElliott{PBadGood: 2}}, "gilbert_elliott.p_bad_good"},
		{Spec{Reorder: &Reorder{Probability: -1}}, "reorder.probability"},
		{Spec{MTU: -5}, "mtu"},
		{Spec{Changes: []Change{{RateMbps: value(5.0)}}}, "begins with one"},
		{Spec{RateMbps: 1, Changes: []Change{{RateMbps: value(0.0)}}}, "changes[0]: rate_mbps 0"},
		{Spec{Changes: []Change{{AtS: 2}, {AtS: 1}}}, "before its predecessor"},
		{Spec{Changes: []Change{{AtS: -2}}}, "at_s"},
		{Spec{Changes: []Change{{Loss: value(7.0)}}}, "loss 7"},
	} {
		err := c.spec.Check()
		if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: error %v, want %q", c.spec, err, c.want)
		}
	}
}

// The streams are part of every result: their first numbers must never change.
func TestStreamIsStable(t *testing.T) {
	r := Stream(42, "forward/loss")
	got := [3]uint64{r.Uint64(), r.Uint64(), r.Uint64()}
	if want := [3]uint64{0x3f10c8f88e372e83, 0x9d0ac21cc1686316, 0x2cb1b5d908498c55}; got != want {
		t.Errorf("stream begins %#x, want %#x", got, want)
	}
	if Stream(42, "a").Uint64() == Stream(42, "b").Uint64() || Stream(1, "a").Uint64() == Stream(2, "a").Uint64() {
		t.Error("different names or seeds give the same numbers")
	}
}
