package link

import "net/netip"

// Packet is what links carry. It belongs to whoever holds it: the Link that accepted it, then the driver that it was delivered
// to, which gives it back to the Pool.
type Packet struct {
	Data   []byte // the bytes; corruption flips bits in place
	Size   int    // bytes on the medium: what rate, queue and MTU count (IP packet; for a UDP payload, headers included)
	Header int    // leading bytes of Data that corruption spares (the IP header, whose damage routers would drop)

	Corrupted bool // some link flipped bits

	// The driver's own: links do not look at these, and copy them to duplicates.
	From, To   netip.AddrPort // of a datagram whose addresses do not stand in Data
	Route, Hop int32
}

// Pool is a free list of packets. The zero value is ready; it is not safe for concurrent use.
type Pool struct {
	free []*Packet
	size int
	made int
}

// NewPool returns a Pool whose packets have room for size bytes of data.
func NewPool(size int) *Pool { return &Pool{size: size} }

// Get returns a packet with empty Data of the Pool's capacity and every other field zero.
func (p *Pool) Get() *Packet {
	if n := len(p.free); n > 0 {
		pkt := p.free[n-1]
		p.free = p.free[:n-1]
		if cap(pkt.Data) >= p.size {
			return pkt
		}
		return &Packet{Data: make([]byte, 0, p.size)} // the Pool has grown since
	}
	p.made++
	return &Packet{Data: make([]byte, 0, p.size)}
}

// Grow makes the packets that Get returns from now on have room for at least size bytes.
func (p *Pool) Grow(size int) { p.size = max(p.size, size) }

// Put gives a packet back. Nobody may use it any more.
func (p *Pool) Put(pkt *Packet) {
	*pkt = Packet{Data: pkt.Data[:0]}
	p.free = append(p.free, pkt)
}

// Outstanding is how many packets are out: got and not put back.
func (p *Pool) Outstanding() int { return p.made - len(p.free) }

// clone returns a copy of pkt.
func (p *Pool) clone(pkt *Packet) *Packet {
	c := p.Get()
	data := append(c.Data, pkt.Data...)
	*c = *pkt
	c.Data = data
	return c
}
