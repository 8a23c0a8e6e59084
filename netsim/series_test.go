package netsim

import (
	"slices"
	"testing"
	"time"
)

func TestBins(t *testing.T) {
	b := bins{width: 100 * time.Millisecond}
	b.add(ms(0), 10)
	b.add(ms(99.9), 20)
	b.add(ms(100), 5)
	b.add(ms(350), 1)
	if got, want := b.rates(5, 1), []float64{300, 50, 0, 10, 0}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestMeans(t *testing.T) {
	m := newMeans(10 * time.Millisecond)
	m.add(ms(1), 4)
	m.add(ms(2), 8)
	m.add(ms(35), 1)
	if got, want := m.values(5, 2), []float64{12, 12, 12, 2, 2}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v: empty bins repeat the one before", got, want)
	}
}

func TestDistribution(t *testing.T) {
	var d distribution
	if d.percentiles() != nil || d.mean() != 0 {
		t.Error("no samples, yet values")
	}
	for i := 200; i >= 0; i-- {
		d.add(float64(i))
	}
	p := d.percentiles()
	if p[0] != 0 || p[50] != 100 || p[100] != 200 || d.mean() != 100 {
		t.Errorf("percentiles %v, mean %v", p, d.mean())
	}
}

func TestTimeMean(t *testing.T) {
	var m timeMean
	m.set(ms(0), 10)
	m.set(ms(100), 0)
	m.set(ms(150), 40)
	if got := m.mean(ms(200)); got != 15 || m.max != 40 {
		t.Errorf("mean %v, most %v; want 15, 40", got, m.max)
	}
	m.reset(ms(200))
	m.set(ms(300), 0)
	if got := m.mean(ms(400)); got != 20 {
		t.Errorf("mean since the reset %v, want 20", got)
	}
}

func TestRound(t *testing.T) {
	for v, want := range map[float64]float64{0: 0, 1.0 / 3: 0.333333333, -12345678.987: -12345679, 5e-12: 5e-12} {
		if got := round(v); got != want {
			t.Errorf("round(%v) = %v, want %v", v, got, want)
		}
	}
}
