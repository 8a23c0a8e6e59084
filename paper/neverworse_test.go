package paper

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"braid/netsim"
)

// Networks lie in the ranges that the set-up names, all kinds occur, and a number gives the same network each time.
func TestDrawNetwork(t *testing.T) {
	three, varying, lossless := 0, 0, 0
	for i := range 200 {
		n := drawNetwork(i, 300)
		if !reflect.DeepEqual(n, drawNetwork(i, 300)) {
			t.Fatalf("network %d differs when drawn again", i)
		}
		if len(n.specs) < 2 || len(n.specs) > 3 {
			t.Errorf("network %d has %d paths", i, len(n.specs))
		}
		three += len(n.specs) - 2
		for k, s := range n.specs {
			if s.RateMbps < 1 || s.RateMbps > 300 || s.DelayMs < 2.5 || s.DelayMs > 200 || s.QueueBDP < 0.5 || s.QueueBDP > 4 || s.Loss < 0 || s.Loss > 0.03 {
				t.Errorf("network %d, path %d: %+v", i, k+1, s)
			}
			if n.access[k] != nil {
				varying++
			}
			if s.Loss == 0 {
				lossless++
			}
		}
	}
	if three < 60 || three > 140 || varying < 70 || varying > 190 || lossless < 100 || lossless > 240 {
		t.Errorf("%d of three paths, %d paths varying, %d without loss", three, varying, lossless)
	}
}

// A varying path has the rate drawn for it as its mean, and is the same for the connection and for the flow alone on it.
func TestVaryingPathIsTheSameAlone(t *testing.T) {
	n := network{specs: drawNetwork(0, 60).specs[:2], access: []*access{nil, &lte}}
	both, single := n.scenario(netsim.Flow{Name: multipath}, 0, 1), n.scenario(netsim.Flow{Name: multipath}, 1)
	n.vary(0, 1)(&both, 1)
	n.vary(1)(&single, 1)
	if len(single.Links) != 1 || !reflect.DeepEqual(both.Links[1].Spec, single.Links[0].Spec) {
		t.Error("path 2 differs when it is alone")
	}
	ms := single.Links[0].TraceMs
	if mean, want := float64(len(ms))*12/float64(ms[len(ms)-1]), n.specs[1].RateMbps; mean < 0.98*want || mean > 1.02*want {
		t.Errorf("mean %v Mbit/s, want %v", mean, want)
	}
}

// The best single path is the bar; networks below it are listed with what they are.
func TestJudgeWorse(t *testing.T) {
	m := Mode{Quick: true}
	results := map[string][]*netsim.Result{}
	add := func(network int, ours float64, alone ...float64) {
		results[worseCell(network, "arp", 2)] = []*netsim.Result{fairResult([]float64{ours})}
		for k := range drawNetwork(network, 60).specs {
			results[worseAlone(network, k)] = []*netsim.Result{fairResult([]float64{alone[min(k, len(alone)-1)]})}
		}
	}
	add(0, 9.8, 10, 0)
	add(1, 9.5, 10, 0)
	add(5, 20, 10, 10, 0)
	f := judgeWorse(m, stored(t, "neverworse", results, worseCells(m)))
	if c := check(t, f, "share of networks"); c.Verdict != Fails || c.Value.N != 3 || fmt.Sprintf("%.3f", c.Value.Mean) != "0.667" {
		t.Errorf("share of networks: %+v", c)
	}
	rows := f.Tables[1].Rows
	if len(rows) != 1 || rows[0][0] != "1" || rows[0][1] != "0.950" || !strings.Contains(rows[0][2], "Mbit/s") || !strings.Contains(rows[0][2], "BDP") {
		t.Errorf("worse networks: %q", rows)
	}
}
