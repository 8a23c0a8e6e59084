package emulator

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"braid/device"
	"braid/link"
)

func openUDP(t testing.TB) *device.UDP {
	t.Helper()
	u, err := device.Open(device.Config{Local: netip.MustParseAddrPort("127.0.0.1:0")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.Close() })
	return u
}

// Over real sockets: everything arrives, in order, no sooner than the link says.
func TestUDPSockets(t *testing.T) {
	server, client := openUDP(t), openUDP(t)
	p, err := Open(Config{Name: "wifi", Server: server.LocalAddr(), Up: link.Spec{RateMbps: 100, DelayMs: 5, QueuePackets: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	const packets, size = 400, 1000
	data := make([]byte, packets*size)
	for i := range packets {
		data[i*size], data[i*size+1] = byte(i>>8), byte(i)
	}
	begin := time.Now()
	if err := client.Write(device.Train{Data: data, Size: size, To: p.Addr()}); err != nil {
		t.Fatal(err)
	}
	var b device.Batch
	for n := 0; n < packets; {
		if err := server.Read(&b); err != nil {
			t.Fatal(err)
		}
		for _, pkt := range b.Packets {
			if got := int(pkt.Data[0])<<8 | int(pkt.Data[1]); got != n || len(pkt.Data) != size {
				t.Fatalf("packet %d of %d bytes, want number %d of %d", got, len(pkt.Data), n, size)
			}
			n++
		}
	}
	least := 5*time.Millisecond + time.Duration(packets*(size+headers4)*8*10) // 10 ns a bit
	if took := time.Since(begin); took < least {
		t.Errorf("took %v, less than the link's %v", took, least)
	}
	if r := p.Report(); r.Overflowed+r.Dropped != 0 || r.Up.Delivered != packets {
		t.Errorf("report: %d delivered, %d overflowed, %d dropped", r.Up.Delivered, r.Overflowed, r.Dropped)
	}
}

func TestOpenErrors(t *testing.T) {
	for want, cfg := range map[string]Config{
		"Config.Server": {Name: "x"},
		"loss":          {Name: "x", Server: netip.MustParseAddrPort("127.0.0.1:1"), Up: link.Spec{Loss: 7}},
		"192.0.2.200":   {Name: "x", Server: netip.MustParseAddrPort("127.0.0.1:1"), Listen: netip.MustParseAddrPort("192.0.2.200:5")},
	} {
		if _, err := Open(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not name %s", err, want)
		}
	}
}

// BenchmarkRelay offers a link of 800 Mbit/s a little less than it takes and reports how late the packets come out.
func BenchmarkRelay(b *testing.B) {
	server, client := openUDP(b), openUDP(b)
	p, err := Open(Config{Name: "wifi", Server: server.LocalAddr(), Up: link.Spec{RateMbps: 800, DelayMs: 10, QueuePackets: 4000}})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	const packets, size = 40, 1472
	data := make([]byte, packets*size)
	received := make(chan int64)
	go func() {
		var batch device.Batch
		var n int64
		for server.Read(&batch) == nil {
			n += int64(len(batch.Packets))
		}
		received <- n
	}()
	every := time.NewTicker(650 * time.Microsecond)
	defer every.Stop()
	begin := time.Now()
	b.SetBytes(packets * size)
	for b.Loop() {
		<-every.C
		if err := client.Write(device.Train{Data: data, Size: size, To: p.Addr()}); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	time.AfterFunc(50*time.Millisecond, func() { server.Close() })
	n := <-received
	r := p.Report()
	b.ReportMetric(float64(n*size*8)/1e6/time.Since(begin).Seconds(), "Mbit/s")
	b.ReportMetric(float64(r.Lateness.Quantile(0.5).Microseconds()), "p50-us")
	b.ReportMetric(float64(r.Lateness.Quantile(0.99).Microseconds()), "p99-us")
	b.ReportMetric(float64(r.Lateness.Max().Microseconds()), "max-us")
	b.ReportMetric(float64(r.Overflowed+r.Dropped), "lost")
}
