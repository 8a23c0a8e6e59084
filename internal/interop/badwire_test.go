//go:build linux

package interop

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"braid/device"
)

// badWire is a device with a wire behind it that loses packets at random, or all of them.
type badWire struct {
	device.Device
	loss float64
	cut  atomic.Bool

	mu  sync.Mutex // reading and writing draw from one stream
	rng *rand.Rand
}

func newBadWire(dev device.Device, loss float64, seed uint64) *badWire {
	return &badWire{Device: dev, loss: loss, rng: rand.New(rand.NewPCG(seed, 0))}
}

// perfect reports whether nothing gets lost.
func (d *badWire) perfect() bool { return d.loss == 0 && !d.cut.Load() }

func (d *badWire) lost() bool {
	if d.cut.Load() {
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.Float64() < d.loss
}

func (d *badWire) Read(b *device.Batch) error {
	for {
		if err := d.Device.Read(b); err != nil || d.perfect() {
			return err
		}
		kept := b.Packets[:0]
		for _, p := range b.Packets {
			if !d.lost() {
				kept = append(kept, p)
			}
		}
		if b.Packets = kept; len(kept) > 0 {
			return nil
		}
	}
}

func (d *badWire) Write(t device.Train) error {
	if d.perfect() {
		return d.Device.Write(t)
	}
	for rest := t.Data; len(rest) > 0; { // what stands between two losses goes as one
		n := 0
		for n < len(rest) && !d.lost() {
			n += min(t.Size, len(rest)-n)
		}
		if n > 0 {
			if err := d.Device.Write(device.Train{Data: rest[:n], Size: t.Size, To: t.To}); err != nil {
				return err
			}
		}
		rest = rest[min(n+t.Size, len(rest)):]
	}
	return nil
}

// TestLoss: with packets lost both ways, over one subflow and two, everything arrives, and the kernel sees nothing but loss.
func TestLoss(t *testing.T) {
	up, down := stream(8*mib, 25), stream(8*mib, 26)
	for _, role := range roles {
		for _, tc := range []struct {
			name      string
			links     int
			noOffload bool
			checksums bool
		}{
			{"one subflow", 1, false, false},
			{"one subflow, packets on the wire", 1, true, false},
			{"two subflows", 2, false, false},
			{"two subflows with checksums", 2, true, true},
		} {
			t.Run(role.name+" "+tc.name, func(t *testing.T) {
				w := newWorld(t, setup{links: tc.links, limits: true, noOffload: tc.noOffload, checksums: tc.checksums, loss: 0.005, announce: tc.links > 1})
				p := role.dial(w, true)
				exchange(t, p, up, down)
				w.wantMPTCP(p)
				w.calm("MPRstTx") // a join whose SYN was lost may find the connection closing
			})
		}
	}
}

// TestSilentCut: a path swallows everything, without any notice, and comes back. Data goes on over the other, and then over both.
func TestSilentCut(t *testing.T) {
	for cut := range 2 {
		t.Run([]string{"the initial subflow", "the joined subflow"}[cut], func(t *testing.T) {
			w := newWorld(t, setup{links: 2, limits: true})
			p := w.dialKernel(kernel4(1), true)
			w.joined(p, "tun1", "tun2")
			data := stream(8*mib, 27)
			send(t, p.own, p.kernel, data)
			w.wires[cut].cut.Store(true)
			send(t, p.own, p.kernel, data)
			send(t, p.kernel, p.own, data)
			w.wires[cut].cut.Store(false)
			name := []string{"tun1", "tun2"}[cut]
			w.until("the path is used again", func() bool {
				info := p.own.Info()
				sf := subflow(&info, name)
				return sf != nil && sf.State == "active" && !sf.TimedOut
			})
			exchange(t, p, data, data)
			w.wantMPTCP(p)
			w.calm()
		})
	}
}
