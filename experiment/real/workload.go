package real

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"time"

	"braid/host"
	"braid/netsim"
)

// block is how much applications write and read at a time.
const block = 64 << 10

// stream is the data that one end sends: both ends can make it.
type stream struct {
	random *rand.ChaCha8
	buf    []byte
}

func newStream(seed uint64, end int) *stream {
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	key[8] = byte(end)
	return &stream{rand.NewChaCha8(key), make([]byte, block)}
}

// next returns the stream's next n bytes, at most a block.
func (s *stream) next(n int) []byte {
	_, _ = s.random.Read(s.buf[:n]) // never fails
	return s.buf[:n]
}

// work is what the application of one end does.
func (f *flow) work(ctx context.Context, end int, c *host.Conn, deadline time.Time) error {
	w := &f.spec.Workload
	if f.spec.StopS > 0 {
		if stop := f.begin.Add(duration(f.spec.StopS)); stop.Before(deadline) {
			deadline = stop
		}
	}
	out, in := newStream(f.seed, end), newStream(f.seed, 1-end)
	switch {
	case w.Kind == netsim.Request && end == clientEnd:
		return f.ask(ctx, c, out, in, deadline)
	case w.Kind == netsim.Request:
		return f.answer(c, out, in)
	case end != f.sender():
		return f.receive(c, in)
	case w.Kind == netsim.Paced:
		return f.finish(c, f.sendPaced(ctx, c, out, deadline))
	}
	return f.finish(c, f.sendBulk(c, out, deadline))
}

// finish ends a sender's stream, when it is over or its time is up, and waits for the peer's end.
func (f *flow) finish(c *host.Conn, err error) error {
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	if err := c.CloseWrite(); err != nil {
		return err
	}
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		return err
	}
	return c.Close()
}

// sendBulk sends as fast as it goes.
func (f *flow) sendBulk(c *host.Conn, out *stream, deadline time.Time) error {
	if err := c.SetWriteDeadline(deadline); err != nil {
		return err
	}
	left := f.spec.Workload.Bytes
	if left == 0 {
		left = math.MaxInt64
	}
	for left > 0 {
		n, err := c.Write(out.next(int(min(left, block))))
		left -= int64(n)
		if err != nil {
			return err
		}
	}
	return nil
}

// sendPaced sends a chunk at a time. Like netsim's sender it does not wait for the connection: what does not fit follows as soon as it does.
func (f *flow) sendPaced(ctx context.Context, c *host.Conn, out *stream, deadline time.Time) error {
	w := &f.spec.Workload
	if err := c.SetWriteDeadline(deadline); err != nil {
		return err
	}
	chunk := w.ChunkBytes
	if chunk == 0 {
		chunk = 10_000
	}
	left := w.Bytes
	if left == 0 {
		left = math.MaxInt64
	}
	period := time.Duration(float64(8*chunk) / w.RateMbps * 1e3)
	for at := time.Now(); left > 0 && at.Before(deadline); at = at.Add(period) {
		if !until(ctx, at) {
			return nil
		}
		for n := int(min(left, int64(chunk))); n > 0; {
			m, err := c.Write(out.next(min(n, block)))
			n, left = n-m, left-int64(m)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// receive reads to the end and closes.
func (f *flow) receive(c *host.Conn, in *stream) error {
	buf := make([]byte, block)
	for {
		n, err := c.Read(buf)
		if n > 0 {
			if err := f.took(buf[:n], in); err != nil {
				return err
			}
		}
		if err == io.EOF {
			f.mu.Lock()
			f.out.finished = time.Since(f.begin)
			f.mu.Unlock()
			return c.Close()
		}
		if err != nil {
			return err
		}
	}
}

// took counts what the measured application got, and compares it with what was sent.
func (f *flow) took(b []byte, in *stream) error {
	now := time.Since(f.begin)
	f.mu.Lock()
	defer f.mu.Unlock()
	if want := in.next(len(b)); !bytes.Equal(b, want) {
		for i := range b {
			if b[i] != want[i] {
				f.out.corrupted = f.out.total + int64(i) + 1
				return fmt.Errorf("byte %d is not what was sent", f.out.corrupted-1)
			}
		}
	}
	f.out.total += int64(len(b))
	f.out.goodput.add(now, float64(len(b)))
	if now >= f.warmup {
		f.out.received += int64(len(b))
	}
	return nil
}

// ask is the client of workload request.
func (f *flow) ask(ctx context.Context, c *host.Conn, out, in *stream, deadline time.Time) error {
	request, response, think := f.requests()
	buf := make([]byte, block)
	for time.Now().Before(deadline) {
		asked := time.Now()
		if err := send(c, out, request); err != nil {
			return err
		}
		for left := response; left > 0; {
			n, err := c.Read(buf[:min(left, block)])
			if err != nil {
				return err
			}
			if err := f.took(buf[:n], in); err != nil {
				return err
			}
			left -= int64(n)
		}
		f.answered(time.Since(f.begin), time.Since(asked))
		if !until(ctx, time.Now().Add(think)) {
			return nil
		}
	}
	return c.Close()
}

// answered counts a request that was answered.
func (f *flow) answered(now, latency time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.out.requests++
	if now >= f.warmup {
		f.out.latencies = append(f.out.latencies, latency.Seconds()*1e3)
	}
}

// answer is the server of workload request.
func (f *flow) answer(c *host.Conn, out, in *stream) error {
	request, response, _ := f.requests()
	buf := make([]byte, block)
	for {
		for left := request; left > 0; {
			n, err := c.Read(buf[:min(left, block)])
			if err == io.EOF {
				return c.Close()
			}
			if err != nil {
				return err
			}
			if !bytes.Equal(buf[:n], in.next(n)) {
				return fmt.Errorf("a request is not what was sent")
			}
			left -= int64(n)
		}
		if err := send(c, out, response); err != nil {
			return err
		}
	}
}

// send writes n bytes of a stream.
func send(c *host.Conn, out *stream, n int64) error {
	for n > 0 {
		m, err := c.Write(out.next(int(min(n, block))))
		if err != nil {
			return err
		}
		n -= int64(m)
	}
	return nil
}

// requests are the sizes and the pause of workload request, netsim's defaults filled in.
func (f *flow) requests() (request, response int64, think time.Duration) {
	w := f.spec.Workload
	request, response = w.RequestBytes, w.ResponseBytes
	if request == 0 {
		request = 200
	}
	if response == 0 {
		response = 100_000
	}
	return request, response, duration(w.ThinkS)
}
