package tcp

import (
	"reflect"
	"testing"
)

// Totals add up everything that a connection counts, and again for the next one.
func TestTotals(t *testing.T) {
	c := &Conn{challenges: 12, pawsDrops: 13}
	c.snd.stats.segs, c.snd.stats.retransSegs, c.snd.stats.lostSegs = 1, 2, 4
	c.snd.stats.bytes, c.snd.stats.retransBytes = 5, 6
	c.snd.stats.rtos, c.snd.stats.tlps, c.snd.stats.undone = 8, 9, 10
	c.snd.sampler.delivered = 11
	c.snd.persist.probes, c.keep.probes = 14, 15
	c.rcv.segments, c.rcv.bytes = 3, 7
	var sum Totals
	sum.Add(c)
	want := Totals{
		SentSegs: 1, RetransSegs: 2, ReceivedSegs: 3, LostSegs: 4, SentBytes: 5, RetransBytes: 6, ReceivedBytes: 7, RTOs: 8, TLPs: 9,
		SpuriousRecoveries: 10, Delivered: 11, Challenges: 12, PAWSDrops: 13, WindowProbes: 14, KeepAlives: 15,
	}
	if sum != want {
		t.Fatalf("%+v, want %+v", sum, want)
	}
	sum.Add(c)
	for i, v := 0, reflect.ValueOf(sum); i < v.NumField(); i++ {
		if name, got := v.Type().Field(i).Name, v.Field(i).Int(); got != 2*reflect.ValueOf(want).Field(i).Int() {
			t.Errorf("%s: %d after two", name, got)
		}
	}
}
