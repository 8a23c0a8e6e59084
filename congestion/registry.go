package congestion

import (
	"fmt"
	"strings"
)

// table names the algorithms. A new one is one line here, one file, one test, one row of the conformance test (which reads
// this table).
var table = [...]struct {
	name string
	make func() Group
}{
	{"balia", NewBALIA},
	{"bbr", func() Group { return Uncoupled(func(c Config) Controller { return NewBBR(c) }) }},
	{"bbr-aggregation", func() Group {
		return Uncoupled(func(c Config) Controller { return NewBBRWith(c, BBROptions{Aggregation: true}) })
	}},
	{"coupledbbr", NewCoupledBBR},
	{"coupledbbr-cycle", NewCoupledBBRCycle},
	{"cubic", func() Group { return Uncoupled(func(c Config) Controller { return NewCubic(c) }) }},
	{"lia", NewLIA},
	{"newreno", newReno},
	{"olia", NewOLIA},
	{"reno", newReno}, // the same
}

func newReno() Group { return Uncoupled(func(c Config) Controller { return NewNewReno(c) }) }

// Names returns the names of all algorithms, sorted.
func Names() []string {
	names := make([]string, len(table))
	for i, row := range table {
		names[i] = row.name
	}
	return names
}

// ByName returns the constructor of the named algorithm's Group. The error of an unknown name lists the known ones.
func ByName(name string) (func() Group, error) {
	for _, row := range table {
		if row.name == name {
			return row.make, nil
		}
	}
	return nil, fmt.Errorf("congestion: unknown algorithm %q; known are %s", name, strings.Join(Names(), ", "))
}
