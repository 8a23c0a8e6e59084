package netsim

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"braid/link"

	"github.com/pelletier/go-toml/v2"
)

const exampleDir = "../examples"

// Every example loads, runs, and says something about each of its flows.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(exampleDir, "*.toml"))
	if err != nil || len(files) < 4 {
		t.Fatalf("examples: %v, %v", files, err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			s, err := LoadScenarioFile(name)
			if err != nil {
				t.Fatal(err)
			}
			s.DurationS, s.WarmupS = 4, 2.5
			r, err := Run(*s)
			if err != nil {
				t.Fatal(err)
			}
			for i, f := range r.Flows {
				if f.Name != s.Flows[i].Name || f.GoodputMbps < 0.5 || f.Error != "" || f.Corrupted != 0 {
					t.Errorf("flow %q: goodput %v Mbit/s, error %q, corrupted at %d", f.Name, f.GoodputMbps, f.Error, f.Corrupted)
				}
				for _, sf := range f.Subflows {
					if sf.ThroughputMbps == 0 || sf.MeanRTTMs == 0 && !s.Flows[i].Download && s.Flows[i].Workload.Kind != Request {
						t.Errorf("flow %q: nothing measured on path %q: %v Mbit/s, RTT %v ms", f.Name, sf.Path, sf.ThroughputMbps, sf.MeanRTTMs)
					}
				}
			}
			if _, err := json.Marshal(r); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestLoadRefuses(t *testing.T) {
	const ok = `
duration_s = 1
[[links]]
name = "l"
[[paths]]
name = "p"
forward = ["l"]
[[flows]]
name = "f"
paths = ["p"]
`
	if _, err := LoadScenario(strings.NewReader(ok)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, old, new, want string
	}{
		{"unknown key", `duration_s = 1`, `durations_s = 1`, `line 2: unknown key "durations_s" in the scenario; known are name, seed, duration_s`},
		{"unknown key of a link", "[[links]]\nname", "[[links]]\nrate_mbit = 3\nname", `unknown key "rate_mbit" in links; known are name, rate_mbps`},
		{"unknown key inside", `paths = ["p"]`, "paths = [\"p\"]\nworkload = { kind = \"bulk\", size = 3 }", `unknown key "size" in flows.workload; known are kind, bytes`},
		{"wrong type", `duration_s = 1`, `duration_s = "x"`, `line 2, column 14`},
		{"no TOML", `duration_s = 1`, `duration_s = `, `line 2`},
		{"duration", `duration_s = 1`, `duration_s = 0`, `duration_s 0 must be above 0`},
		{"warm-up", `duration_s = 1`, "duration_s = 1\nwarmup_s = 1", `warmup_s 1 must be`},
		{"unknown link", `forward = ["l"]`, `forward = ["m"]`, `path "p": link "m" is unknown; known are l`},
		{"no link", `forward = ["l"]`, `forward = []`, `forward names no link`},
		{"unknown path", `paths = ["p"]`, `paths = ["q"]`, `flow "f": path "q" is unknown; known are p`},
		{"path twice", `paths = ["p"]`, `paths = ["p", "p"]`, `two paths are called "p"`},
		{"no path", `paths = ["p"]`, `paths = []`, `0 paths`},
		{"unnamed", `name = "f"`, ``, `flow 1 has no name`},
		{"link value", "[[links]]\nname", "[[links]]\nloss = 2.0\nname", `link "l": loss 2 must be between 0 and 1`},
		{"algorithm", `paths = ["p"]`, "paths = [\"p\"]\ncongestion = \"vegas\"", `unknown algorithm "vegas"; known are`},
		{"scheduler", `paths = ["p"]`, "paths = [\"p\"]\nscheduler = \"best\"", `unknown scheduler "best"; known are`},
		{"workload", `paths = ["p"]`, "paths = [\"p\"]\nworkload = { kind = \"ftp\" }", `workload.kind "ftp" is unknown; known are bulk, paced, request, churn`},
		{"paced without rate", `paths = ["p"]`, "paths = [\"p\"]\nworkload = { kind = \"paced\" }", `workload.rate_mbps`},
		{"backup", `paths = ["p"]`, "paths = [\"p\"]\nbackup_paths = [\"q\"]", `backup path "q" is unknown`},
		{"encapsulation", `paths = ["p"]`, "paths = [\"p\"]\nencapsulation = \"gre\"", `encapsulation "gre" is unknown; known are ip, udp`},
		{"stop before start", `paths = ["p"]`, "paths = [\"p\"]\nstart_s = 0.5\nstop_s = 0.4", `stop must come after start`},
		{"trace not read", "[[links]]\nname", "[[links]]\ntrace_file = \"x\"\nname", `trace_file x was not read`},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(ok, c.old, c.new, 1)
			if text == ok {
				t.Fatalf("%q does not occur", c.old)
			}
			if _, err := LoadScenario(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error: %v\nwant one that says: %s", err, c.want)
			}
		})
	}
}

// A scenario survives TOML and JSON.
func TestScenarioRoundTrip(t *testing.T) {
	s, err := LoadScenarioFile(filepath.Join(exampleDir, "failover.toml"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := toml.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	again, err := LoadScenario(strings.NewReader(string(b)))
	if err != nil {
		t.Fatalf("%v in:\n%s", err, b)
	}
	if !reflect.DeepEqual(s, again) {
		t.Errorf("after TOML:\n%+v\nbefore:\n%+v", again, s)
	}
	if b, err = json.Marshal(s); err != nil {
		t.Fatal(err)
	}
	var third Scenario
	if err := json.Unmarshal(b, &third); err != nil || !reflect.DeepEqual(*s, third) {
		t.Errorf("after JSON: %v\n%+v", err, third)
	}
}

func TestReadTraces(t *testing.T) {
	dir := fstest.MapFS{"a.down": {Data: []byte("1\n5\n")}, "bad": {Data: []byte("x\n")}}
	s := Scenario{Links: []Medium{{Name: "l", TraceFile: "a.down"}}}
	if err := s.ReadTraces(dir); err != nil || !reflect.DeepEqual(s.Links[0].TraceMs, []int64{1, 5}) {
		t.Errorf("read %v, %v", s.Links[0].TraceMs, err)
	}
	for file, want := range map[string]string{"none": "none", "bad": "line 1"} {
		s.Links[0] = Medium{Name: "l", TraceFile: file}
		if err := s.ReadTraces(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", file, err)
		}
	}
}

func TestTopologies(t *testing.T) {
	three := []link.Spec{Bottleneck(100, 20, 0), Bottleneck(50, 10, 0.01), Bottleneck(10, 5, 0)}
	s := Bottlenecks(three, Flow{Name: "multipath"}, Background{"newreno", 2}).During(30)
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	if len(s.Links) != 3 || len(s.Paths) != 3 || len(s.Flows) != 7 || len(s.Flows[0].Paths) != 3 || s.WarmupS != 10 {
		t.Errorf("%d links, %d paths, %d flows, warm-up %v", len(s.Links), len(s.Paths), len(s.Flows), s.WarmupS)
	}
	if f := s.Flows[6]; f.Name != "background 3.2" || f.Paths[0] != "path 3" || !f.PlainTCP || f.Congestion != "newreno" {
		t.Errorf("last background flow: %+v", f)
	}
	if d := Dumbbell(three[0], Flow{Name: "a"}, Flow{Name: "b"}).During(1); d.Check() != nil || len(d.Flows) != 2 || len(d.Links) != 1 {
		t.Errorf("dumbbell: %+v: %v", d, d.Check())
	}
}
