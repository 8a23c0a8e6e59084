//go:build linux

package interop

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"braid/internal/netns"
	"braid/mptcp"
)

// cpuTime is what this process has used so far, the kernel's work for its packets included: both ends are in it.
func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// pour sends b.N MiB from one end to the other and reports the rate and the CPU time of both ends together.
func pour(b *testing.B, from, to net.Conn) {
	b.Helper()
	from.SetDeadline(time.Time{})
	to.SetDeadline(time.Time{})
	block := stream(mib, 1)
	b.SetBytes(mib)
	b.ResetTimer()
	began, cpu := time.Now(), cpuTime()
	wrote := make(chan error, 1)
	go func() {
		for range b.N {
			if _, err := from.Write(block); err != nil {
				wrote <- err
				return
			}
		}
		wrote <- nil
	}()
	buf := make([]byte, 256<<10)
	for left := int64(b.N) * mib; left > 0; {
		n, err := to.Read(buf)
		if left -= int64(n); err != nil && (err != io.EOF || left > 0) {
			b.Fatalf("%d bytes left: %v", left, err)
		}
	}
	b.StopTimer()
	if err := <-wrote; err != nil {
		b.Fatal(err)
	}
	gigabytes := float64(b.N) * mib / 1e9
	b.ReportMetric(gigabytes*8/time.Since(began).Seconds(), "Gbit/s")
	b.ReportMetric((cpuTime()-cpu).Seconds()/gigabytes, "CPU-s/GB")
}

// BenchmarkTUN is our stack and the kernel's, one subflow and two, each way, with packets as on a wire and with the kernel's offload.
func BenchmarkTUN(b *testing.B) {
	for _, links := range []int{1, 2} {
		for _, offload := range []bool{true, false} {
			for _, way := range []string{"to the kernel", "from the kernel"} {
				b.Run(fmt.Sprintf("links=%d/offload=%v/%s", links, offload, way), func(b *testing.B) {
					w := newWorld(b, setup{links: links, limits: true, noOffload: !offload, stack: mptcp.Config{}})
					w.ns.Sysctl("ipv4/tcp_congestion_control", "reno")
					p := w.dialKernel(kernel4(1), true)
					paths := []string{"tun1", "tun2"}[:links]
					w.joined(p, paths...)
					if way == "to the kernel" {
						pour(b, p.own, p.kernel)
					} else {
						pour(b, p.kernel, p.own)
					}
				})
			}
		}
	}
}

// BenchmarkKernel is the kernel's MPTCP on both ends of a veth pair, with packets of the MTU's size (what TUN devices carry) and with its offload.
func BenchmarkKernel(b *testing.B) {
	for _, offload := range []bool{true, false} {
		b.Run(fmt.Sprintf("offload=%v", offload), func(b *testing.B) {
			near, far := netns.New(b, netns.MPTCP), netns.New(b, netns.MPTCP)
			near.Veth(far, "veth0", "10.1.0.1/24", "10.1.0.2/24")
			for _, ns := range []*netns.Namespace{near, far} {
				ns.Sysctl("ipv4/tcp_congestion_control", "reno")
				if !offload {
					ns.IP("link", "set", "veth0", "gso_max_segs", "1")
				}
			}
			var l net.Listener
			var from, to net.Conn
			far.Must(func() (err error) {
				l, err = net.Listen("tcp4", netip.AddrPortFrom(own4(1), servicePort).String())
				return err
			})
			b.Cleanup(func() { l.Close() })
			near.Must(func() (err error) {
				d := net.Dialer{Timeout: patience}
				d.SetMultipathTCP(true)
				from, err = d.Dial("tcp4", netip.AddrPortFrom(own4(1), servicePort).String())
				return err
			})
			b.Cleanup(func() { from.Close() })
			to, err := l.Accept()
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { to.Close() })
			pour(b, from, to)
		})
	}
}
