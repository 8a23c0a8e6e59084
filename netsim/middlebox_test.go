package netsim

import (
	"fmt"
	"testing"
	"time"

	"braid/clock"
	"braid/middlebox"
	"braid/wire"
)

// Two hosts speak MPTCP over two paths, and a middlebox on the first path (the one that the connection starts on), or on both, interferes. Whatever it does, every byte
// arrives once, in order and unchanged; fallback and loss of subflows show in the counters and nowhere else.
func TestMiddleboxes(t *testing.T) {
	const (
		multipath = "both paths"  // MPTCP goes on over both paths
		second    = "second path" // MPTCP goes on over the second path, mostly
		single    = "first path"  // the connection is TCP or has no other path
		whatever  = ""
	)
	for _, c := range []struct {
		name string
		flow Flow
		box  func(n *Network) middlebox.Box
		both bool // the box is on either path
		want string
	}{
		{"none", Flow{}, nil, false, multipath},
		{"MPTCP options gone from SYN", Flow{}, func(*Network) middlebox.Box { return middlebox.StripOptions(wire.OptMPTCP, middlebox.InSYN, 0) }, true, single},
		{"MPTCP options gone from SYN/ACK", Flow{}, func(*Network) middlebox.Box { return middlebox.StripOptions(wire.OptMPTCP, middlebox.InSYNACK, 0) }, true, single},
		{"MPTCP options gone from ACKs", Flow{}, func(*Network) middlebox.Box { return middlebox.StripOptions(wire.OptMPTCP, middlebox.InAck, 0) }, true, single},
		{"MPTCP options gone from data", Flow{}, func(*Network) middlebox.Box { return middlebox.StripOptions(wire.OptMPTCP, middlebox.InData, 0) }, true, single},
		{"MPTCP options gone from everything", Flow{}, func(*Network) middlebox.Box { return middlebox.StripOptions(wire.OptMPTCP, middlebox.Anywhere, 0) }, true, single},
		{"MPTCP options gone later, one path", Flow{}, func(*Network) middlebox.Box {
			return middlebox.StripOptions(wire.OptMPTCP, middlebox.Anywhere, 200_000)
		}, false, whatever},
		{"MPTCP options gone from data later, one path", Flow{}, func(*Network) middlebox.Box { return middlebox.StripOptions(wire.OptMPTCP, middlebox.InData, 200_000) }, false, whatever},
		{"joins refused", Flow{}, func(*Network) middlebox.Box { return middlebox.DropOptions(wire.OptMPJoin, middlebox.Anywhere) }, true, single},
		{"joins stripped", Flow{}, func(*Network) middlebox.Box { return middlebox.StripOptions(wire.OptMPJoin, middlebox.Anywhere, 0) }, true, single},
		{"SYNs with MP_CAPABLE dropped", Flow{}, func(*Network) middlebox.Box { return middlebox.DropOptions(wire.OptMPCapable, middlebox.InSYN) }, true, single},
		{"mappings mangled, checksums", Flow{DSSChecksums: true}, func(n *Network) middlebox.Box {
			return middlebox.MangleOptions(wire.OptDSS, middlebox.InData, 100_000, 0.01, n.Stream("mangle"))
		}, false, whatever},
		{"tokens mangled", Flow{}, func(n *Network) middlebox.Box {
			return middlebox.MangleOptions(wire.OptMPJoin, middlebox.InSYN, 0, 1, n.Stream("mangle"))
		}, true, single},
		{"segments split", Flow{}, func(*Network) middlebox.Box { return &middlebox.Split{Size: 500} }, true, multipath},
		{"segments split, checksums", Flow{DSSChecksums: true}, func(*Network) middlebox.Box { return &middlebox.Split{Size: 500} }, true, multipath},
		{"segments joined", Flow{}, func(*Network) middlebox.Box { return &middlebox.Coalesce{Size: 1400 * 3, Wait: 300 * time.Microsecond} }, false, whatever},
		{"segments joined, checksums", Flow{DSSChecksums: true}, func(*Network) middlebox.Box { return &middlebox.Coalesce{Size: 1400 * 3, Wait: 300 * time.Microsecond} }, false, whatever},
		{"sequence numbers shifted", Flow{}, func(*Network) middlebox.Box { return middlebox.ShiftSequence(3_000_000_000) }, false, multipath},
		{"payload changed, checksums", Flow{DSSChecksums: true}, func(*Network) middlebox.Box { return middlebox.ReplacePayload(100_000, 5, []byte("*****")) }, false, second},
		{"payload grown, checksums", Flow{DSSChecksums: true}, func(*Network) middlebox.Box { return middlebox.ReplacePayload(100_000, 5, []byte("** more **")) }, false, second},
		{"payload shrunk, checksums", Flow{DSSChecksums: true}, func(*Network) middlebox.Box { return middlebox.ReplacePayload(100_000, 9, []byte("*")) }, false, second},
		{"windows clamped", Flow{}, func(*Network) middlebox.Box { return middlebox.ClampWindow(500) }, false, whatever},
		{"NAT", Flow{}, natBox(0), false, multipath},
		{"NAT that forgets", Flow{}, natBox(600), false, whatever},
		{"NAT in front of UDP", Flow{Encapsulation: "udp"}, natBox(0), false, multipath},
		{"NAT in front of UDP that forgets", Flow{Encapsulation: "udp"}, natBox(600), false, multipath},
		{"small MTU with ICMP", Flow{}, func(*Network) middlebox.Box { return &middlebox.SmallMTU{MTU: 1300} }, true, multipath},
		{"small MTU, black hole", Flow{}, func(*Network) middlebox.Box { return &middlebox.SmallMTU{MTU: 1300, Silent: true} }, true, whatever},
	} {
		for _, download := range []bool{false, true} {
			name := c.name + map[bool]string{false: ", upload", true: ", download"}[download]
			t.Run(name, func(t *testing.T) {
				const size = 3_000_000
				f := c.flow
				f.Name, f.Download, f.Workload = "f", download, Workload{Bytes: size}
				s := twoWay(f)
				r, err := RunWith(s, Options{Prepare: func(p *Prepared) error {
					if c.box == nil {
						return nil
					}
					for i := range 1 + map[bool]int{true: 1}[c.both] {
						box := c.box(p.Network)
						ahead, back := p.Links[fmt.Sprintf("ahead %d", i+1)], p.Links[fmt.Sprintf("back %d", i+1)]
						if _, nat := box.(*middlebox.NAT); download && !nat {
							ahead, back = back, ahead // what is changed is the data; but who hides behind a NAT is the client
						}
						p.Network.Attach(box, ahead, back)
					}
					p.Network.Connect(p.Hosts["f server"], 0, addrNAT, p.Hosts["f client"], 0, p.Links["back 1"])
					return nil
				}})
				if err != nil {
					t.Fatal(err)
				}
				got := r.Flow("f")
				if got.Bytes != size || got.CompletedS == 0 || got.Corrupted != 0 || got.Error != "" {
					t.Fatalf("%d of %d bytes, complete after %.1f s, first wrong byte %d, error %q", got.Bytes, size, got.CompletedS, got.Corrupted-1, got.Error)
				}
				if got.CompletedS > 30 {
					t.Errorf("took %.1f s", got.CompletedS)
				}
				first, other := delivered(&got.Subflows[0]), delivered(&got.Subflows[1])
				used := map[string]bool{whatever: true, multipath: first > size/5 && other > size/5, second: other > size/2, single: other == 0}
				if !used[c.want] {
					t.Errorf("the paths carried %d and %d bytes, want %s", first, other, c.want)
				}
				t.Logf("%.1f s, %d and %d bytes", got.CompletedS, first, other)
			})
		}
	}
}

// delivered is the payload that arrived over a path.
func delivered(s *SubflowResult) int {
	sum := 0.0
	for _, mbps := range s.Series.ThroughputMbps {
		sum += mbps
	}
	return int(sum * 0.1 / 8 * 1e6)
}

// natBox makes a NAT in front of path 1, which forgets its mappings at a time (0: never).
func natBox(forgetMs float64) func(n *Network) middlebox.Box {
	return func(n *Network) middlebox.Box {
		b := middlebox.NewNAT(addrNAT, 20000)
		if forgetMs > 0 {
			n.At(ms(forgetMs), func(clock.Time) { b.Rebind(addrNAT) })
		}
		return b
	}
}

// twoWay is a flow over two paths of 10 Mbit/s in either direction.
func twoWay(f Flow) Scenario {
	s := Scenario{Seed: 1, DurationS: 120, Flows: []Flow{f}}
	for i, delay := range []float64{10, 20} {
		ahead, back := fmt.Sprintf("ahead %d", i+1), fmt.Sprintf("back %d", i+1)
		s.Links = append(s.Links, Medium{Name: ahead, Spec: Bottleneck(10, delay, 0)}, Medium{Name: back, Spec: Bottleneck(10, delay, 0)})
		s.Paths = append(s.Paths, Route{PathName(i + 1), []string{ahead}, []string{back}})
		s.Flows[0].Paths = append(s.Flows[0].Paths, PathName(i+1))
	}
	return s
}
