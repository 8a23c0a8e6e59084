package clock

import (
	"math"
	"testing"
	"time"
)

func TestAdd(t *testing.T) {
	tests := []struct {
		t    Time
		d    time.Duration
		want Time
	}{
		{0, time.Second, 1e9},
		{1e9, -time.Second, 0},
		{0, -1, -1},
		{Never, time.Second, Never},
		{Never, -time.Second, Never}, // a timer that is off stays off
		{Never - 1, 1, Never},
		{Never - 1, 2, Never},
		{1, math.MaxInt64, Never},
		{Never - 5, 4, Never - 1},
	}
	for _, tt := range tests {
		if got := tt.t.Add(tt.d); got != tt.want {
			t.Errorf("%d.Add(%d) = %d, want %d", tt.t, tt.d, got, tt.want)
		}
	}
}

func TestSubAndOrder(t *testing.T) {
	a, b := Time(1500), Time(2500)
	if got := b.Sub(a); got != time.Microsecond {
		t.Errorf("Sub = %v", got)
	}
	if !a.Before(b) || b.Before(a) || a.Before(a) {
		t.Error("Before")
	}
	if !b.After(a) || a.After(b) || a.After(a) {
		t.Error("After")
	}
	if !a.Before(Never) || Never.Before(Never) {
		t.Error("Never is not last")
	}
}

func TestSecondsAndString(t *testing.T) {
	if got := Time(1_500_000_000).Seconds(); got != 1.5 {
		t.Errorf("Seconds = %v", got)
	}
	tests := map[Time]string{0: "0s", 1_500_000: "1.5ms", Never: "never"}
	for at, want := range tests {
		if got := at.String(); got != want {
			t.Errorf("String of %d = %q, want %q", int64(at), got, want)
		}
	}
}
