package netsim

import (
	"bytes"
	"errors"
	"io"
	"math"
	"time"

	"braid/clock"
	"braid/mptcp"
)

// forever is the limit of a source that never ends.
const forever = math.MaxInt64

// The bytes that applications send repeat with a prime period, so that no displaced packet looks right where it lands.
const (
	patternPeriod = 65521
	chunkRoom     = 64 << 10
)

var pattern = makePattern()

func makePattern() []byte {
	p := make([]byte, patternPeriod+chunkRoom)
	x := uint32(1)
	for i := range p[:patternPeriod] {
		x = x*1664525 + 1013904223
		p[i] = byte(x >> 24)
	}
	for i := patternPeriod; i < len(p); i++ { // the table is longer than two periods: no copy does it
		p[i] = p[i-patternPeriod]
	}
	return p
}

// patternAt returns n bytes, at most chunkRoom, of the stream from an offset on.
func patternAt(offset int64, n int) []byte {
	at := offset % patternPeriod
	return pattern[at : at+int64(n)]
}

// source writes the pattern to a connection, up to a limit that may grow.
type source struct {
	conn   *mptcp.Conn
	sent   int64
	limit  int64
	finish bool // at the limit, end the stream
	ended  bool
}

// push writes what the connection takes.
func (s *source) push(now clock.Time) {
	for s.sent < s.limit && !s.ended {
		n, err := s.conn.Write(now, patternAt(s.sent, int(min(chunkRoom, s.limit-s.sent))))
		s.sent += int64(n)
		if errors.Is(err, mptcp.ErrWouldBlock) {
			return // a Writable event follows
		}
		if err != nil {
			s.ended = true
			return
		}
	}
	if s.finish && !s.ended && s.sent >= s.limit {
		s.ended = true
		s.conn.CloseWrite(now)
	}
}

// sink reads a connection and compares what it gets with the pattern.
type sink struct {
	conn  *mptcp.Conn
	buf   []byte
	got   int64
	wrong int64 // offset of the first byte that is not the pattern's, plus 1; 0: all were right
	eof   bool
	err   error // why the stream ended otherwise

	rate  float64 // bytes per second; 0: unlimited
	begun clock.Time
	timer *Timer // wakes a reader that must wait

	took func(now clock.Time, n int) // told of every piece read
}

// pull reads what is there, as fast as rate allows.
func (s *sink) pull(now clock.Time) {
	for !s.eof && s.err == nil {
		room := len(s.buf)
		if s.rate > 0 {
			if room = int(min(s.allowance(now), int64(room))); room == 0 {
				return
			}
		}
		n, err := s.conn.Read(now, s.buf[:room])
		if n > 0 {
			s.verify(s.buf[:n])
			s.got += int64(n)
			if s.took != nil {
				s.took(now, n)
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, mptcp.ErrWouldBlock):
			return // a Readable event follows
		case err == io.EOF:
			s.eof = true
		default:
			s.err = err
		}
	}
}

// allowance is how much may be read now. If that is little, the timer is set for when it is more.
func (s *sink) allowance(now clock.Time) int64 {
	n := int64(float64(s.rate*now.Sub(s.begun).Seconds())) - s.got
	if n < 1000 {
		wait := time.Duration(float64(2000-n) / s.rate * 1e9)
		s.timer.Set(now.Add(wait))
		return 0
	}
	return n
}

func (s *sink) verify(b []byte) {
	if s.wrong != 0 {
		return
	}
	want := patternAt(s.got, len(b))
	if bytes.Equal(b, want) {
		return
	}
	for i := range b {
		if b[i] != want[i] {
			s.wrong = s.got + int64(i) + 1
			return
		}
	}
}
