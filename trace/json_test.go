package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"braid/clock"
)

func TestJSONLine(t *testing.T) {
	var out bytes.Buffer
	w := NewJSONWriter(&out)
	w.Trace(&Event{Time: 1500, Conn: 7, Subflow: 1, Kind: RTO, V: [8]int64{200e6, 2, 14000, 99}})
	w.Trace(&Event{Time: -1, Subflow: -1, Kind: Role, V: [8]int64{1, 3, 0}})
	w.Trace(&Event{Kind: Role, V: [8]int64{1, 99, -5}}) // values without a word stay numbers
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	want := `{"time_ns":1500,"conn":7,"subflow":1,"event":"rto","rto_ns":200000000,"times":2,"in_flight_bytes":14000,"oldest_seq":99}
{"time_ns":-1,"conn":0,"subflow":-1,"event":"role","role":"redundant","reason":"overdue","before":"new data"}
{"time_ns":0,"conn":0,"subflow":0,"event":"role","role":"redundant","reason":99,"before":-5}
`
	if got := out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// Every event comes back as it was written, and every line is JSON for other readers too.
func TestJSONRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := Event{
			Time:    clock.Time(rapid.Int64().Draw(t, "time")),
			Conn:    rapid.Uint32().Draw(t, "conn"),
			Subflow: rapid.Int16().Draw(t, "subflow"),
			Kind:    rapid.SampledFrom(Kinds()).Draw(t, "kind"),
		}
		for i := range e.Kind.Fields() {
			e.V[i] = rapid.OneOf(rapid.Int64(), rapid.Int64Range(-1, 12)).Draw(t, "value")
		}
		line := e.appendJSON(nil)
		if !json.Valid(line) {
			t.Fatalf("not JSON: %s", line)
		}
		got, err := ParseJSON(line)
		if err != nil || got != e {
			t.Fatalf("ParseJSON(%s) = %v, %v, want %v", line, got, err, e)
		}
	})
}

func TestParseJSONRefuses(t *testing.T) {
	const head = `{"time_ns":1,"conn":1,"subflow":0,"event":`
	tests := []struct{ name, line string }{
		{"no JSON", `hello`},
		{"no time", `{"conn":1,"subflow":0,"event":"penalty","before_bytes":1,"after_bytes":2}`},
		{"unknown event", head + `"party"}`},
		{"missing value", head + `"penalty","before_bytes":1}`},
		{"unknown word", head + `"role","role":"king","reason":"default","before":"new data"}`},
		{"fraction", head + `"penalty","before_bytes":1.5,"after_bytes":2}`},
		{"subflow out of range", `{"time_ns":1,"conn":1,"subflow":70000,"event":"penalty","before_bytes":1,"after_bytes":2}`},
	}
	for _, tt := range tests {
		if e, err := ParseJSON([]byte(tt.line)); err == nil {
			t.Errorf("%s: no error but %v", tt.name, e)
		}
	}
}

// disk fails once it is full.
type disk struct {
	room   int
	closed bool
}

var errFull = errors.New("disk full")

func (d *disk) Write(b []byte) (int, error) {
	if len(b) > d.room {
		n := d.room
		d.room = 0
		return n, errFull
	}
	d.room -= len(b)
	return len(b), nil
}

func (d *disk) Close() error { d.closed = true; return nil }

// A full disk is reported at the end, however long ago it was, and the file is closed all the same.
func TestFullDiskIsReported(t *testing.T) {
	writers := map[string]func(io.Writer) (write func(), flush, done func() error){
		"JSON": func(w io.Writer) (func(), func() error, func() error) {
			j := NewJSONWriter(w)
			return func() { j.Trace(&Event{Kind: Counters}) }, j.Flush, j.Close
		},
		"pcapng": func(w io.Writer) (func(), func() error, func() error) {
			p := NewPcapWriter(w, 0)
			p.AddInterface("lte")
			return func() { p.WritePacket(&Packet{Data: make([]byte, 100)}) }, p.Flush, p.Close
		},
	}
	for name, open := range writers {
		d := &disk{room: 100_000}
		write, flush, done := open(d)
		for range 10 {
			write()
		}
		if err := flush(); err != nil {
			t.Errorf("%s: %v before the disk was full", name, err)
		}
		for range 5000 {
			write()
		}
		d.room = 1 << 30 // too late: something is missing in the file
		write()
		if err := flush(); !errors.Is(err, errFull) {
			t.Errorf("%s: Flush says %v", name, err)
		}
		if err := done(); !errors.Is(err, errFull) {
			t.Errorf("%s: Close says %v", name, err)
		}
		if !d.closed {
			t.Errorf("%s: file left open", name)
		}
	}
}

// A writer that cannot be closed is only flushed.
func TestCloseFlushes(t *testing.T) {
	var out strings.Builder
	w := NewJSONWriter(&out)
	w.Trace(&Event{Kind: Penalty})
	if out.Len() != 0 {
		t.Error("written without Flush")
	}
	if err := w.Close(); err != nil || out.Len() == 0 {
		t.Errorf("Close: %v, %d bytes written", err, out.Len())
	}
}

func BenchmarkJSONTrace(b *testing.B) {
	w := NewJSONWriter(io.Discard)
	e := Event{Time: 123456789, Conn: 1, Kind: AckSample, V: [8]int64{1400, 0, 20e6, 21e6, 140000, 70000, 12500000, 0}}
	b.ReportAllocs()
	for b.Loop() {
		w.Trace(&e)
	}
}
