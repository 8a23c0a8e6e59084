package host

import (
	"fmt"
	"io"
	"net/netip"
	"testing"
	"time"
)

// dialUDP returns both ends of a connection over real sockets on loopback.
func dialUDP(t testing.TB, paths int, cfg Config) (client, server *Conn) {
	t.Helper()
	ce, _, listener, remote := udpWorld(t, paths, cfg)
	accepted := make(chan *Conn, 1)
	go func() {
		c, err := listener.AcceptConn()
		if err != nil {
			t.Error(err)
		}
		accepted <- c
	}()
	client, err := ce.Dial(t.Context(), []netip.AddrPort{remote}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return client, <-accepted
}

// BenchmarkLoopback sends from one engine to another in this process, in packets of 1500 bytes: bytes per second, and the processor
// time of both ends together.
func BenchmarkLoopback(b *testing.B) {
	for _, paths := range []int{1, 2} {
		b.Run(fmt.Sprintf("paths=%d", paths), func(b *testing.B) {
			client, server := dialUDP(b, paths, Config{})
			done := make(chan int64)
			go func() {
				buf := make([]byte, 256<<10)
				var n int64
				for {
					m, err := server.Read(buf)
					n += int64(m)
					if err != nil {
						if err != io.EOF {
							b.Error(err)
						}
						done <- n
						return
					}
				}
			}()
			block := make([]byte, 1<<20)
			b.SetBytes(int64(len(block)))
			cpu, start := processorTime(), time.Now()
			for b.Loop() {
				if _, err := client.Write(block); err != nil {
					b.Fatal(err)
				}
			}
			client.CloseWrite()
			n := <-done
			b.ReportMetric(float64(n)*8/1e9/time.Since(start).Seconds(), "Gbit/s")
			b.ReportMetric((processorTime()-cpu).Seconds()/(float64(n)/1e9), "cpu-s/GB")
		})
	}
}

// BenchmarkPingPong measures the round trip of a small message.
func BenchmarkPingPong(b *testing.B) {
	client, server := dialUDP(b, 1, Config{})
	go func() {
		io.Copy(server, server)
		server.Close()
	}()
	msg := make([]byte, 64)
	for b.Loop() {
		if _, err := client.Write(msg); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(client, msg); err != nil {
			b.Fatal(err)
		}
	}
	client.Close()
}
