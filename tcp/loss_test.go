package tcp

import (
	"testing"

	"pgregory.net/rapid"
)

func TestLossShare(t *testing.T) {
	var l lossShare
	if l.share() != 0 {
		t.Fatalf("share %v of nothing", l.share())
	}
	l.note(true)
	l.note(false)
	if l.share() != 0.5 {
		t.Fatalf("share %v, want a half", l.share())
	}
	for range lossWindow - 2 {
		l.note(false)
	}
	if l.share() != 1.0/lossWindow {
		t.Fatalf("share %v, want one of 128", l.share())
	}
	l.note(false) // the loss falls out
	if l.share() != 0 {
		t.Fatalf("share %v, want 0", l.share())
	}
}

// The share is that of the last 128 fates, whatever they are.
func TestLossShareRecount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l lossShare
		fates := rapid.SliceOfN(rapid.Bool(), 1, 400).Draw(t, "fates")
		for i, f := range fates {
			l.note(f)
			lost := 0
			last := fates[max(0, i+1-lossWindow) : i+1]
			for _, f := range last {
				if f {
					lost++
				}
			}
			if want := float64(lost) / float64(len(last)); l.share() != want {
				t.Fatalf("after %d: %v, want %v", i+1, l.share(), want)
			}
		}
	})
}
