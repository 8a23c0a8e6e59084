package mptcp

import (
	"testing"

	"pgregory.net/rapid"
)

func TestMappingTableVerdicts(t *testing.T) {
	m := func(start, end, data int64) mapping { return mapping{start: start, end: end, data: data} }
	checked := func(start, end, data int64) mapping {
		return mapping{start: start, end: end, data: data, checked: true, length: uint16(end - start)}
	}
	for _, tc := range []struct {
		name string
		list []mapping
		add  mapping
		want mapVerdict
	}{
		{"first", nil, m(1, 101, 1), mapNew},
		{"identical, as on every segment of a burst (LNX-28)", []mapping{m(1, 101, 1)}, m(1, 101, 1), mapKnown},
		{"within a known one", []mapping{m(1, 101, 1)}, m(51, 101, 51), mapKnown},
		{"behind, contiguous", []mapping{m(1, 101, 1)}, m(101, 201, 101), mapNew},
		{"behind, elsewhere in the data", []mapping{m(1, 101, 1)}, m(101, 201, 5001), mapNew},
		{"overlapping, agreeing", []mapping{m(1, 101, 1)}, m(51, 151, 51), mapNew},
		{"overlapping, disagreeing (MAP-05)", []mapping{m(1, 101, 1)}, m(51, 151, 52), mapConflict},
		{"same bytes elsewhere (MAP-04)", []mapping{m(1, 101, 1)}, m(1, 101, 2), mapConflict},
		{"bridging a gap", []mapping{m(1, 101, 1), m(201, 301, 201)}, m(1, 301, 1), mapNew},
		{"bridging a gap, disagreeing behind it", []mapping{m(1, 101, 1), m(201, 301, 999)}, m(1, 301, 1), mapConflict},
		{"before the others", []mapping{m(101, 201, 101)}, m(1, 101, 1), mapNew},
		{"checked, identical", []mapping{checked(1, 101, 1)}, checked(1, 101, 1), mapKnown},
		{"checked, other boundaries (MAP-13)", []mapping{checked(1, 101, 1)}, checked(51, 101, 51), mapConflict},
		{"empty", nil, m(5, 5, 5), mapKnown},
	} {
		var table mappingTable
		for _, old := range tc.list {
			table.add(old)
		}
		if got := table.add(tc.add); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}

// MAP-13: a mapping that lies wholly before what was consumed is of no interest and does no harm.
func TestMappingBeforeConsumedBytes(t *testing.T) {
	var table mappingTable
	table.add(mapping{start: 1, end: 101, data: 1})
	table.consume(101)
	if v := table.add(mapping{start: 1, end: 101, data: 999}); v != mapKnown || table.len() != 0 {
		t.Errorf("verdict %d, %d mappings", v, table.len())
	}
}

func TestInfiniteMappingReplacesWhatFollows(t *testing.T) {
	var table mappingTable
	table.add(mapping{start: 1, end: 101, data: 1})
	table.add(mapping{start: 101, end: 201, data: 501})
	table.addInfinite(51, 1001)
	if m := table.find(50); m == nil || m.delta() != 0 {
		t.Error("the mapping before the infinite one is gone")
	}
	for _, o := range []int64{51, 150, 1 << 40} {
		if m := table.find(o); m == nil || o+m.delta() != o+950 {
			t.Errorf("offset %d: %+v", o, m)
		}
	}
}

// SEC-07: the number of mappings is bounded.
func TestMappingsAreBounded(t *testing.T) {
	var table mappingTable
	for i := int64(0); i < maxMappings; i++ {
		if table.add(mapping{start: 10 * i, end: 10*i + 5, data: 100 * i}) != mapNew {
			t.Fatal("refused too early")
		}
	}
	if table.add(mapping{start: 1 << 40, end: 1<<40 + 5, data: 1}) != mapTooMany {
		t.Error("one more was taken at the end")
	}
	if table.add(mapping{start: 6, end: 8, data: 6}) != mapTooMany {
		t.Error("one more was taken in a gap")
	}
}

// The first mapping of each byte stays, whatever comes later and in whatever order; nothing is known of others.
func TestMappingTableModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table mappingTable
		model := map[int64]int64{}
		done := int64(0)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				start := rapid.Int64Range(max(0, done-20), done+200).Draw(t, "start")
				m := mapping{start: start, end: start + rapid.Int64Range(1, 60).Draw(t, "n")}
				m.data = start + rapid.SampledFrom([]int64{0, 0, 0, 1000}).Draw(t, "delta")
				conflict, fresh := false, false
				for o := max(m.start, done); o < m.end; o++ {
					d, known := model[o]
					conflict = conflict || known && d != m.delta()
					fresh = fresh || !known
				}
				got := table.add(m)
				switch {
				case got == mapConflict:
					if !conflict {
						t.Fatalf("no conflict in [%d,%d)", m.start, m.end)
					}
					return
				case conflict:
					t.Fatalf("conflict not seen: %d", got)
				case m.end > done && (got == mapNew) != fresh && m.start >= done:
					t.Fatalf("verdict %d, fresh %v", got, fresh)
				}
				for o := m.start; o < m.end; o++ {
					model[o] = m.delta()
				}
			},
			"consume": func(t *rapid.T) {
				done += rapid.Int64Range(0, 50).Draw(t, "n")
				table.consume(done)
			},
			"": func(t *rapid.T) {
				for o := done; o < done+300; o++ {
					m := table.find(o)
					d, known := model[o]
					if (m != nil) != known || known && m.delta() != d {
						t.Fatalf("offset %d: %+v, want %d %v", o, m, d, known)
					}
					if next := table.next(o); known && next != o {
						t.Fatalf("next mapped offset after %d is %d", o, next)
					}
				}
			},
		})
	})
}
