package braid

import (
	"crypto/sha256"
	"errors"
	"io"
	"net/netip"
	"testing"
	"time"

	"braid/emulator"
	"braid/link"
)

// emulated opens paths with the given links to l, and returns the Config of a client that uses them.
func emulated(t testing.TB, l *Listener, specs ...link.Spec) (*Config, []*emulator.Path) {
	t.Helper()
	c := &Config{Via: make(map[string]netip.AddrPort)}
	var paths []*emulator.Path
	for i, spec := range specs {
		local := netip.AddrFrom4([4]byte{127, 0, 1, byte(i + 1)}).String()
		p, err := emulator.Open(emulator.Config{Name: local, Server: netip.MustParseAddrPort(l.Addr().String()), Up: spec, Down: spec, Seed: uint64(i)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		paths = append(paths, p)
		c.Interfaces = append(c.Interfaces, local)
		c.Via[local] = p.Addr()
	}
	return c, paths
}

// The Wi-Fi is cut in the middle of a download and comes back: the download never stops, and uses both again.
func TestCutAndComeBack(t *testing.T) {
	l := listen(t, new(Config), "127.0.0.1:0")
	cfg, paths := emulated(t, l, link.Spec{RateMbps: 80, DelayMs: 5}, link.Spec{RateMbps: 40, DelayMs: 15})
	client, server := connect(t, cfg, l)
	wifi := paths[0]
	const size = 20 << 20
	sent := make(chan error, 1)
	hash := sha256.New()
	go func() {
		block := make([]byte, 1<<16)
		for i := range size / len(block) {
			block[i] = byte(i)
			hash.Write(block)
			if _, err := server.Write(block); err != nil {
				sent <- err
				return
			}
		}
		sent <- server.CloseWrite()
	}()
	if err := client.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	got := sha256.New()
	carried := func() int64 { return wifi.Report().Down.DeliveredBytes }
	copyTo := func(n int64) {
		t.Helper()
		if _, err := io.CopyN(got, client, n); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	copyTo(5 << 20)
	if carried() < 1<<20 {
		t.Errorf("Wi-Fi carried %d bytes before the cut", carried())
	}
	if err := wifi.SetDown(true); err != nil {
		t.Fatal(err)
	}
	copyTo(5 << 20)
	before := carried()
	if err := wifi.SetDown(false); err != nil {
		t.Fatal(err)
	}
	copyTo(size - 10<<20)
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if string(got.Sum(nil)) != string(hash.Sum(nil)) {
		t.Error("what arrived is not what was sent")
	}
	if after := carried() - before; after < 1<<20 {
		t.Errorf("Wi-Fi carried %d bytes after it came back", after)
	}
}

// BenchmarkEmulated downloads over emulated paths with each algorithm: what share of the links' rate it gets.
func BenchmarkEmulated(b *testing.B) {
	for _, congestion := range []string{"bbr", "cubic", "coupledbbr"} {
		b.Run(congestion, func(b *testing.B) {
			l := listen(b, &Config{Congestion: congestion}, "127.0.0.1:0")
			cfg, paths := emulated(b, l, link.Spec{RateMbps: 200, DelayMs: 10}, link.Spec{RateMbps: 100, DelayMs: 20})
			client, server := connect(b, cfg, l)
			go func() {
				block := make([]byte, 1<<20)
				for {
					if _, err := server.Write(block); err != nil {
						return
					}
				}
			}()
			start := time.Now()
			const piece = 1 << 20
			b.SetBytes(piece)
			n := 0
			for b.Loop() {
				if _, err := io.CopyN(io.Discard, client, piece); err != nil {
					b.Fatal(err)
				}
				n += piece
			}
			b.ReportMetric(float64(n)*8/1e6/time.Since(start).Seconds(), "Mbit/s")
			for i, p := range paths {
				r := p.Report()
				name := []string{"a", "b"}[i]
				b.ReportMetric(float64(r.Down.DeliveredBytes)*8/1e6/time.Since(start).Seconds(), name+"-Mbit/s")
				b.ReportMetric(float64(r.Lateness.Quantile(0.99).Microseconds()), name+"-p99-us")
				b.ReportMetric(float64(r.Down.DropsQueue), name+"-drops")
			}
			client.Abort()
		})
	}
}
