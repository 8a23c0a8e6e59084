package link

import (
	"bytes"
	"testing"

	"braid/clock"
)

// Whatever a trace file holds, it is refused or it can be walked: time goes on, and every byte is served at some opportunity.
func FuzzReadOpportunities(f *testing.F) {
	f.Add([]byte("1\n2\n2\n9\n"), int64(0), 1500)
	f.Add([]byte("# x\n\n0\n0\n1000000000\n"), int64(5e9), 4000)
	f.Add([]byte("-1\n"), int64(1), 1)
	f.Fuzz(func(t *testing.T, file []byte, start int64, size int) {
		ms, err := ReadOpportunities(bytes.NewReader(file))
		if err != nil {
			return
		}
		o := newOpportunities(ms)
		at := clock.Time(max(0, start) % 1e15)
		for range 20 {
			next := o.serve(at, 1+abs(size)%9000)
			if next < at {
				t.Fatalf("served at %v what was first in line at %v", next, at)
			}
			at = next
		}
	})
}

func abs(n int) int {
	if n < 0 {
		return -(n + 1)
	}
	return n
}
