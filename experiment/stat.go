package experiment

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Confidence is the level of every Interval.
const Confidence = 0.95

// Interval is a mean over runs with its confidence interval.
type Interval struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	N    int     `json:"n"` // runs; with fewer than two the interval is the mean
}

// Mean returns the mean of values and its interval by Student's t distribution.
func Mean(values []float64) Interval {
	switch len(values) {
	case 0:
		return Interval{Mean: math.NaN(), Low: math.NaN(), High: math.NaN()}
	case 1:
		return Interval{Mean: values[0], Low: values[0], High: values[0], N: 1}
	}
	mean, dev := stat.MeanStdDev(values, nil)
	n := float64(len(values))
	half := dev / math.Sqrt(n) * distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(1-(1-Confidence)/2)
	return Interval{Mean: mean, Low: mean - half, High: mean + half, N: len(values)}
}

// Median returns the median of values and an interval between two of them, by the binomial distribution of how many lie below it.
func Median(values []float64) Interval {
	if len(values) < 2 {
		return Mean(values)
	}
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	below := distuv.Binomial{N: float64(n), P: 0.5}
	k := 0
	for k < (n-1)/2 && below.CDF(float64(k)) <= (1-Confidence)/2 {
		k++
	}
	return Interval{Mean: Quantile(v, 0.5), Low: v[max(k-1, 0)], High: v[n-1-max(k-1, 0)], N: n}
}

// Share returns the share of values for which is holds, with Wilson's interval.
func Share(values []float64, is func(float64) bool) Interval {
	n, k := float64(len(values)), 0.0
	if n == 0 {
		return Mean(nil)
	}
	for _, v := range values {
		if is(v) {
			k++
		}
	}
	z := distuv.UnitNormal.Quantile(1 - (1-Confidence)/2)
	p := k / n
	centre := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return Interval{Mean: p, Low: min(p, centre-half), High: max(p, centre+half), N: len(values)}
}

// Quantile returns the value below which a share of the values lies, linear between two of them.
func Quantile(values []float64, share float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	v := slices.Sorted(slices.Values(values))
	at := share * float64(len(v)-1)
	i := min(int(at), len(v)-1)
	j := min(i+1, len(v)-1)
	return v[i] + (v[j]-v[i])*(at-float64(i))
}

// String writes the mean and the interval.
func (i Interval) String() string {
	switch {
	case i.N == 0:
		return "no data"
	case i.N == 1:
		return fmt.Sprintf("%.3g (one run)", i.Mean)
	}
	return fmt.Sprintf("%s [%s, %s]", number(i.Mean), number(i.Low), number(i.High))
}

// number writes three significant digits, but never fewer than the integer part has.
func number(v float64) string {
	if math.Abs(v) >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// MedianRatio returns the median of a over the median of b, whose values belong together in pairs, with a bootstrap interval over
// pairs. The same values give the same interval.
func MedianRatio(a, b []float64) Interval {
	n := min(len(a), len(b))
	if n == 0 {
		return Mean(nil)
	}
	i := Interval{Mean: Quantile(a[:n], 0.5) / Quantile(b[:n], 0.5), N: n}
	i.Low, i.High = i.Mean, i.Mean
	if n < 2 {
		return i
	}
	r := rand.New(rand.NewPCG(uint64(n), 1))
	ratios := make([]float64, resamples)
	x, y := make([]float64, n), make([]float64, n)
	for k := range ratios {
		for j := range n {
			pair := r.IntN(n)
			x[j], y[j] = a[pair], b[pair]
		}
		ratios[k] = Quantile(x, 0.5) / Quantile(y, 0.5)
	}
	i.Low, i.High = Quantile(ratios, (1-Confidence)/2), Quantile(ratios, 1-(1-Confidence)/2)
	return i
}

// resamples is how many samples a bootstrap draws.
const resamples = 1000
