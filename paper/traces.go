package paper

import (
	"bufio"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"braid/link"
)

// Traces are recorded capacities, by file name: rates in Mbit/s for each millisecond.
type Traces struct {
	byName map[string][]float64
}

// The recordings that Figs. 12-15 use if they are there.
const (
	recordedLTE   = "tmobile-lte-30s.down"
	recordedWifi  = "wifi-office-80211ac-120s.tsv"
	recordedWifi5 = "wifi-campus-80211ac-120s.tsv"
)

// ReadTraces reads the recordings from a folder: delivery traces in Mahimahi's format (.down), or seconds and Mbit/s with a tab between
// (.tsv). It is an error if one of them is missing.
func ReadTraces(dir fs.FS) (*Traces, error) {
	t := &Traces{byName: map[string][]float64{}}
	for _, name := range []string{recordedLTE, recordedWifi, recordedWifi5} {
		f, err := dir.Open(name)
		if err != nil {
			return nil, fmt.Errorf("traces: %w", err)
		}
		var rates []float64
		if strings.HasSuffix(name, ".tsv") {
			rates, err = readTable(bufio.NewScanner(f))
		} else {
			var ms []int64
			if ms, err = link.ReadOpportunities(f); err == nil {
				rates = ratesOf(ms)
			}
		}
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("traces: %s: %w", name, err)
		}
		t.byName[name] = rates
	}
	return t, nil
}

// rates returns a recording; nil if there is none.
func (t *Traces) rates(name string) []float64 {
	if t == nil {
		return nil
	}
	return t.byName[name]
}

// ratesOf turns opportunities into a rate for each millisecond.
func ratesOf(ms []int64) []float64 {
	rates := make([]float64, ms[len(ms)-1])
	for _, t := range ms {
		rates[max(t, 1)-1] += link.OpportunityBytes * 8 / 1000.0
	}
	return rates
}

// readTable reads lines of seconds and Mbit/s; each value holds until the next line, the last one as long as the one before it.
func readTable(sc *bufio.Scanner) ([]float64, error) {
	var at, values []float64
	for sc.Scan() {
		fields := strings.Fields(sc.Text())
		if len(fields) == 0 {
			continue
		}
		if len(fields) != 2 {
			return nil, fmt.Errorf("line %d: %d fields, want 2", len(at)+1, len(fields))
		}
		s, err := strconv.ParseFloat(fields[0], 64)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", len(at)+1, err)
		}
		v, err := strconv.ParseFloat(fields[1], 64)
		if err != nil || v < 0 || v > 1e5 {
			return nil, fmt.Errorf("line %d: %q is no rate", len(at)+1, fields[1])
		}
		if len(at) > 0 && (s <= at[len(at)-1] || s > at[0]+86400) {
			return nil, fmt.Errorf("line %d: time %v is not between that of the line before and a day after the first", len(at)+1, s)
		}
		at, values = append(at, s), append(values, v)
	}
	if err := sc.Err(); err != nil {
		return nil, err
	}
	if len(at) < 2 || sumOf(values) == 0 {
		return nil, fmt.Errorf("%d lines, or nothing but zeros", len(at))
	}
	at = append(at, 2*at[len(at)-1]-at[len(at)-2])
	var rates []float64
	for i, v := range values {
		for len(rates) < int((at[i+1]-at[0])*1000+0.5) {
			rates = append(rates, v)
		}
	}
	return rates, nil
}
