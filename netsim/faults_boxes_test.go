package netsim

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"braid/clock"
	"braid/middlebox"
	"braid/wire"
)

// harm says what a middlebox may do to connections at worst.
type harm int

const (
	harmless  harm = iota // connections must survive it
	harmsPath             // its path may become useless: connections survive if they have another one
	harmsAll              // they may fail, in the right way
)

// troubleBox is a middlebox to be made.
type troubleBox struct {
	path    int
	kind    string
	options wire.Option
	where   middlebox.Where
	after   int64
	share   float64
	size    int
	wait    time.Duration
	flip    bool      // its forward direction is from server to client
	rebinds []float64 // NAT: when it forgets (seconds)
	moves   bool      // ... and takes another address
	harm    harm
	payload bool // it changes the payload, or what says where it belongs: only DSS checksums can tell
}

// String describes the box.
func (b troubleBox) String() string {
	return fmt.Sprintf("box on path %d: %s options %#x where %#x after %d share %.2g size %d wait %v flip %v rebinds %.3g moves %v harm %d",
		b.path, b.kind, uint64(b.options), b.where, b.after, b.share, b.size, b.wait, b.flip, b.rebinds, b.moves, b.harm)
}

// drawBoxes puts middleboxes in front of some paths.
func (t *trouble) drawBoxes(r *rand.Rand) {
	for i := range t.paths {
		if chance(r, 0.25) {
			t.boxes = append(t.boxes, t.drawNAT(r, i))
		}
		for chance(r, 0.25) {
			t.boxes = append(t.boxes, t.drawBox(r, i))
		}
	}
	if chance(r, 0.05) && !t.udp { // a network that knows no MPTCP, on all paths
		where := []middlebox.Where{middlebox.Anywhere, middlebox.InSYN, middlebox.InSYNACK, middlebox.InSYN | middlebox.InSYNACK, middlebox.InData | middlebox.InAck}[r.IntN(5)]
		for i := range t.paths {
			t.boxes = append(t.boxes, troubleBox{path: i, kind: "strip", options: wire.OptMPTCP, where: where})
		}
	}
}

func (t *trouble) drawNAT(r *rand.Rand, path int) troubleBox {
	b := troubleBox{path: path, kind: "nat", moves: chance(r, 0.3)}
	if chance(r, 0.5) {
		for at := 0.0; len(b.rebinds) == 0 || chance(r, 0.4); {
			at += within(r, 0.05, 20)
			b.rebinds = append(b.rebinds, at)
		}
	}
	return b
}

// drawBox draws one middlebox. Those that look into TCP see nothing in datagrams, so over UDP only a small MTU remains.
func (t *trouble) drawBox(r *rand.Rand, path int) troubleBox {
	b := troubleBox{path: path, flip: chance(r, 0.3)}
	kind := r.IntN(13)
	if t.udp {
		kind = 0
	}
	switch kind {
	case 0:
		b.kind, b.size = "small MTU, silent", 1280+r.IntN(220)
	case 1:
		b.kind, b.size = "small MTU", 600+r.IntN(900)
		if t.v6 {
			b.kind, b.size = "small MTU, silent", 1280+r.IntN(220)
		}
	case 2, 3:
		b.kind, b.size = "split", 100+r.IntN(1400)
	case 4:
		b.kind, b.size, b.wait, b.harm = "coalesce", 1000+r.IntN(9000), time.Duration(within(r, 1e5, 2e7)), harmsPath
	case 5:
		b.kind, b.size = "shift", int(r.Uint32())
	case 6:
		b.kind, b.size = "clamp", int(within(r, 300, 65000))
	case 7, 8:
		b.kind, b.options = "strip", wire.OptMPTCP
		b.where = []middlebox.Where{middlebox.InSYN, middlebox.InSYNACK, middlebox.InSYN | middlebox.InSYNACK, middlebox.Anywhere, middlebox.InData | middlebox.InAck, middlebox.InData, middlebox.InAck}[r.IntN(7)]
		if chance(r, 0.3) {
			b.after = 1 + int64(within(r, 1, 1e5))
		}
		b.harm = harmsPath
		if b.after > 0 || b.where == middlebox.InData || b.where == middlebox.InAck {
			b.harm = harmsAll
		}
	case 9:
		b.kind = "drop"
		b.options, b.where, b.harm = wire.OptMPCapable, middlebox.InSYN, harmsPath
		switch r.IntN(4) {
		case 0:
			b.options, b.harm = wire.OptMPJoin, harmsPath
		case 1:
			b.options, b.where, b.harm = wire.OptDSS, middlebox.InData, harmsAll
		}
	case 10, 11:
		b.kind, b.share, b.where = "mangle", within(r, 0.001, 1), middlebox.Anywhere
		switch r.IntN(5) {
		case 0:
			b.options, b.harm = wire.OptMPCapable, harmsAll
		case 1:
			b.options, b.harm = wire.OptMPJoin, harmsPath
		case 2:
			b.options = wire.OptAddAddr | wire.OptMPFastClose
		default:
			b.options, b.harm, b.payload = wire.OptDSS, harmsAll, true
		}
	case 12:
		b.kind, b.harm, b.payload = "replace", harmsAll, true
		b.after, b.size, b.share = int64(within(r, 1, 1e5)), 1+r.IntN(30), float64(1+r.IntN(30))
	}
	return b
}

// make makes the box. A NAT's outside addresses are those of natAddress.
func (b *troubleBox) make(w *faultWorld, name string) middlebox.Box {
	switch b.kind {
	case "small MTU":
		return &middlebox.SmallMTU{MTU: b.size}
	case "small MTU, silent":
		return &middlebox.SmallMTU{MTU: b.size, Silent: true}
	case "split":
		return &middlebox.Split{Size: b.size}
	case "coalesce":
		return &middlebox.Coalesce{Size: b.size, Wait: b.wait}
	case "shift":
		return middlebox.ShiftSequence(uint32(b.size))
	case "clamp":
		return middlebox.ClampWindow(uint16(b.size))
	case "strip":
		return middlebox.StripOptions(b.options, b.where, b.after)
	case "drop":
		return middlebox.DropOptions(b.options, b.where)
	case "mangle":
		return middlebox.MangleOptions(b.options, b.where, b.after, b.share, w.net.Stream(name))
	case "replace":
		return middlebox.ReplacePayload(int(b.after), b.size, bytes.Repeat([]byte("#"), int(b.share)))
	case "nat":
		return b.makeNAT(w)
	}
	panic("netsim: no box is called " + b.kind)
}

func (b *troubleBox) makeNAT(w *faultWorld) middlebox.Box {
	nat := middlebox.NewNAT(w.natAddress(b.path, 0), 20000)
	for i, s := range b.rebinds {
		to := w.natAddress(b.path, 0)
		if b.moves {
			to = w.natAddress(b.path, (i+1)%2)
		}
		w.net.At(seconds(s), func(now clock.Time) {
			w.cut(b.path, !w.trouble.udp)
			nat.Rebind(to)
		})
	}
	return nat
}

// attachBoxes puts the boxes of a path in front of its links.
func (w *faultWorld) attachBoxes(path int, there, back *Link) {
	for i := range w.trouble.boxes {
		b := &w.trouble.boxes[i]
		if b.path != path {
			continue
		}
		box := b.make(w, fmt.Sprintf("box %d", i))
		forward, reverse := there, back
		if b.flip {
			forward, reverse = back, there
		}
		w.net.Attach(box, forward, reverse)
	}
}

// natAddress is one of the two outside addresses of the NAT of a path.
func (w *faultWorld) natAddress(path, which int) netip.Addr { return w.address(path, 2+which) }

// address is the address of the client (side 0), the server (1) or the NAT of a path.
func (w *faultWorld) address(path, side int) netip.Addr {
	if w.trouble.v6 {
		return netip.AddrFrom16([16]byte{0: 0xfd, 7: byte(path), 15: byte(1 + side)})
	}
	return netip.AddrFrom4([4]byte{10, 0, byte(path), byte(1 + side)})
}

// harmOf is the most that a path's boxes do.
func (t *trouble) harmOf(path int) harm {
	h := harmless
	for _, b := range t.boxes {
		if b.path == path {
			h = max(h, b.harm)
		}
	}
	return h
}

// mayLoseHandshake reports whether all SYNs of a Dial may get lost: their number is small, whatever a retransmission does later.
func (p *troublePath) mayLoseHandshake() bool {
	for _, l := range p.links {
		if 1-(1-l.Loss)*(1-l.Corrupt) > 0.1 || l.GilbertElliott != nil {
			return true
		}
		for _, c := range l.Changes {
			if c.Down != nil {
				return true
			}
		}
	}
	return false
}
