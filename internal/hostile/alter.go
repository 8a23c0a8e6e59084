package hostile

// alter takes a segment that was seen and changes it where no checksum can tell: numbers by a little or much, flags, windows, options, length.
func (a *Attacker) alter() (Packet, bool) {
	p, ok := a.repeat(false)
	if !ok {
		return p, false
	}
	t, ok := a.tcp(p.Data)
	if !ok {
		return p, false
	}
	b := p.Data
	for n := 1 + a.rng.IntN(3); n > 0; n-- {
		off := t + int(b[t+12]>>4)*4
		switch a.rng.IntN(12) {
		case 0, 1:
			a.shift(b[t+4:])
		case 2, 3:
			a.shift(b[t+8:])
		case 4:
			b[t+13] = byte(a.rng.IntN(256))
		case 5:
			b[t+13] ^= 1 << a.rng.IntN(6)
		case 6:
			a.fill(b[t+14 : t+16])
		case 7:
			b = a.otherOptions(b, t, off)
		case 8:
			b = b[:off+a.rng.IntN(len(b)-off+1)]
		case 9:
			b = b[:off+a.rng.IntN(1400)]
		default:
			a.alterOption(b[t+tcpMin : off])
		}
	}
	a.mend(b, t)
	p.Data = b
	return p, true
}

// shift moves a number: a little, about a window, or anywhere.
func (a *Attacker) shift(b []byte) {
	v := be.Uint32(b)
	switch a.rng.IntN(4) {
	case 0:
		v += uint32(a.rng.IntN(9) - 4)
	case 1:
		v += uint32(a.rng.IntN(6000) - 3000)
	case 2:
		v += a.Window*2 - a.rng.Uint32N(a.Window*4)
	case 3:
		v = a.rng.Uint32()
	}
	be.PutUint32(b, v)
}

// alterOption changes some bytes of one option, more often of MPTCP's.
func (a *Attacker) alterOption(o []byte) {
	var at [40]int
	n := 0
	for i := 0; i+1 < len(o); {
		size := int(o[i+1])
		if o[i] < 2 {
			i++
			continue
		}
		if size < 2 || i+size > len(o) {
			break
		}
		at[n] = i
		n++
		if o[i] == 30 {
			n += copy(at[n:n+1], []int{i})
		}
		i += size
	}
	if n == 0 {
		return
	}
	i := at[a.rng.IntN(n)]
	size := int(o[i+1])
	switch a.rng.IntN(6) {
	case 0: // another length
		o[i+1] = byte(a.rng.IntN(41))
	case 1: // another subtype or other flags
		if size > 2 {
			o[i+2] = byte(a.rng.IntN(256))
		}
	case 2:
		if size > 3 {
			o[i+3] ^= 1 << a.rng.IntN(8)
		}
	case 3:
		if size >= 6 {
			a.shift(o[i+size-4:])
		}
	default:
		if size > 2 {
			o[i+2+a.rng.IntN(size-2)] ^= 1 << a.rng.IntN(8)
		}
	}
}

// otherOptions gives a segment random options in place of its own.
func (a *Attacker) otherOptions(b []byte, t, off int) []byte {
	payload := append([]byte(nil), b[off:]...)
	b = a.options(b[:t+tcpMin])
	b[t+12] = byte((len(b)-t)/4)<<4 | b[t+12]&0x0f
	return append(b, payload...)
}

// shapes are the options that segments may carry: kind, length, and for MPTCP the subtype.
var shapes = [...][3]byte{
	{2, 4}, {3, 3}, {4, 2}, {8, 10}, {8, 10}, {8, 10}, {5, 10}, {5, 18}, {5, 26}, {34, 10},
	{30, 4, 0x0}, {30, 12, 0x0}, {30, 20, 0x0}, {30, 22, 0x0}, {30, 24, 0x0}, // MP_CAPABLE
	{30, 12, 0x1}, {30, 16, 0x1}, {30, 24, 0x1}, // MP_JOIN
	{30, 8, 0x2}, {30, 12, 0x2}, {30, 18, 0x2}, {30, 20, 0x2}, {30, 22, 0x2}, {30, 26, 0x2}, {30, 28, 0x2}, {30, 4, 0x2}, // DSS
	{30, 8, 0x3}, {30, 10, 0x3}, {30, 16, 0x3}, {30, 18, 0x3}, {30, 20, 0x3}, {30, 30, 0x3}, // ADD_ADDR
	{30, 4, 0x4}, {30, 7, 0x4}, // REMOVE_ADDR
	{30, 3, 0x5}, {30, 4, 0x5}, // MP_PRIO
	{30, 12, 0x6}, {30, 12, 0x7}, {30, 4, 0x8}, // MP_FAIL, MP_FASTCLOSE, MP_TCPRST
	{30, 5, 0x9}, {30, 3, 0xf}, {253, 6},
}

// options appends random options, padded to a multiple of four bytes, that fit into a header.
func (a *Attacker) options(b []byte) []byte {
	room := 40
	start := len(b)
	for room > 0 && a.rng.IntN(4) > 0 {
		s := shapes[a.rng.IntN(len(shapes))]
		n := int(s[1])
		if n > room {
			break
		}
		at := len(b)
		b = b[:at+n]
		a.fill(b[at:])
		b[at], b[at+1] = s[0], s[1]
		if s[0] == 30 {
			b[at+2] = s[2]<<4 | b[at+2]&0x0f
			if s[2] == 2 && a.rng.IntN(4) > 0 && n > 4 { // flags that go with the length
				b[at+3] = dssFlags[n]
			}
		}
		if a.rng.IntN(50) == 0 {
			b[at+1] = byte(a.rng.IntN(256))
		}
		room -= n
	}
	for (len(b)-start)%4 != 0 {
		b = append(b, 1)
	}
	return b
}

// dssFlags are the flags of a DSS of some lengths (RFC 8684, Section 3.3): A 1, a 2, M 4, m 8.
var dssFlags = [40]byte{8: 0x1, 12: 0x3, 18: 0x5, 20: 0x5, 22: 0x7, 26: 0xf, 28: 0xf}
