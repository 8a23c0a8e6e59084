package netsim

import "testing"

// The pattern repeats with its period wherever it is cut.
func TestPattern(t *testing.T) {
	for at := range int64(patternPeriod) {
		b := patternAt(at, chunkRoom)
		for _, i := range []int{0, 1, patternPeriod - int(at) - 1, patternPeriod - int(at), patternPeriod - 1, chunkRoom - 1} {
			if i < len(b) && b[i] != patternAt(int64(i)+at, 1)[0] {
				t.Fatalf("byte %d of the piece from %d is not byte %d of the stream", i, at, int64(i)+at)
			}
		}
	}
}

func TestSinkFindsTheFirstWrongByte(t *testing.T) {
	var s sink
	s.verify(patternAt(0, 1000))
	s.got = 1000
	s.verify(patternAt(1000, 500))
	if s.wrong != 0 {
		t.Fatalf("byte %d of the pattern itself is called wrong", s.wrong-1)
	}
	s.got = 1500
	b := append([]byte(nil), patternAt(1500, 500)...)
	b[123]++
	s.verify(b)
	if s.wrong != 1624 {
		t.Errorf("first wrong byte is %d, want 1623", s.wrong-1)
	}
}
