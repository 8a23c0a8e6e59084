package trace

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"braid/clock"
)

// JSONWriter is a Sink that writes one JSON object a line:
//
//	{"time_ns":1500,"conn":1,"subflow":0,"event":"rto","rto_ns":200000000,...}
//
// It buffers. After a failed write it writes nothing more, and Flush and Close say what failed: a trace that
// a full disk cut short never looks complete.
type JSONWriter struct {
	buf *bufio.Writer
	out io.Writer
}

// NewJSONWriter returns a JSONWriter to w.
func NewJSONWriter(w io.Writer) *JSONWriter {
	return &JSONWriter{buf: bufio.NewWriterSize(w, 1<<16), out: w}
}

// Trace writes e. Errors show at Flush and Close.
func (j *JSONWriter) Trace(e *Event) {
	b := j.buf.AvailableBuffer()
	b = e.appendJSON(b)
	b = append(b, '\n')
	j.buf.Write(b) // keeps its first error and returns it from then on
}

// Flush writes out what is buffered. It returns the first error of any write since the start.
func (j *JSONWriter) Flush() error { return j.buf.Flush() }

// Close flushes and, if the writer beneath is an io.Closer, closes it.
func (j *JSONWriter) Close() error { return closeAfter(j.buf.Flush(), j.out) }

// closeAfter closes w if it can be closed and returns the errors of both.
func closeAfter(err error, w io.Writer) error {
	if c, ok := w.(io.Closer); ok {
		err = errors.Join(err, c.Close())
	}
	return err
}

// appendJSON appends e as a JSON object. Names and words of the table need no escapes (a test says so).
func (e *Event) appendJSON(b []byte) []byte {
	b = strconv.AppendInt(append(b, `{"time_ns":`...), int64(e.Time), 10)
	b = strconv.AppendUint(append(b, `,"conn":`...), uint64(e.Conn), 10)
	b = strconv.AppendInt(append(b, `,"subflow":`...), int64(e.Subflow), 10)
	b = append(append(append(b, `,"event":"`...), e.Kind.String()...), '"')
	for i, f := range e.Kind.Fields() {
		b = append(append(append(b, ',', '"'), f.Name...), '"', ':')
		if v := e.V[i]; v >= 0 && v < int64(len(f.Words)) {
			b = append(append(append(b, '"'), f.Words[v]...), '"')
		} else {
			b = strconv.AppendInt(b, v, 10)
		}
	}
	return append(b, '}')
}

// ParseJSON reads a line that a JSONWriter wrote.
func ParseJSON(line []byte) (Event, error) {
	var e Event
	var head struct {
		Time    *int64  `json:"time_ns"`
		Conn    *uint32 `json:"conn"`
		Subflow *int16  `json:"subflow"`
		Event   *string `json:"event"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return e, fmt.Errorf("trace: %w", err)
	}
	if head.Time == nil || head.Conn == nil || head.Subflow == nil || head.Event == nil {
		return e, errors.New("trace: line lacks time_ns, conn, subflow or event")
	}
	kind, ok := KindByName(*head.Event)
	if !ok {
		return e, fmt.Errorf("trace: no event named %q", *head.Event)
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(line, &values); err != nil {
		return e, fmt.Errorf("trace: %w", err)
	}
	e.Time, e.Conn, e.Subflow, e.Kind = clock.Time(*head.Time), *head.Conn, *head.Subflow, kind
	for i, f := range kind.Fields() {
		v, err := f.parse(values[f.Name])
		if err != nil {
			return e, err
		}
		e.V[i] = v
	}
	return e, nil
}

// parse reads a value as appendJSON wrote it.
func (f *Field) parse(raw json.RawMessage) (int64, error) {
	if len(raw) == 0 {
		return 0, fmt.Errorf("trace: line lacks %s", f.Name)
	}
	if raw[0] != '"' {
		v, err := strconv.ParseInt(string(raw), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("trace: %s: %w", f.Name, err)
		}
		return v, nil
	}
	var word string
	if err := json.Unmarshal(raw, &word); err != nil {
		return 0, fmt.Errorf("trace: %s: %w", f.Name, err)
	}
	for i, w := range f.Words {
		if w == word {
			return int64(i), nil
		}
	}
	return 0, fmt.Errorf("trace: %s: %q is none of its words", f.Name, word)
}
