package netsim

import (
	"io"

	"braid/clock"
	"braid/link"
	"braid/trace"
)

// capture writes the packets of some links to a pcapng file. Each link is two interfaces: what is offered to its queue, dropped there or not,
// and what comes out at its far end.
type capture struct {
	w     *trace.PcapWriter
	ports map[*Link][2]int
}

// Capture writes what goes through links (none given: all that exist so far) to w as a pcapng file, from now until
// StopCapture. The interfaces are called as the link, with " in" and " out".
func (n *Network) Capture(w io.Writer, links ...*Link) {
	if len(links) == 0 {
		links = n.links
	}
	c := &capture{w: trace.NewPcapWriter(w, 0), ports: map[*Link][2]int{}}
	for _, l := range links {
		c.ports[l] = [2]int{c.w.AddInterface(l.Name() + " in"), c.w.AddInterface(l.Name() + " out")}
	}
	n.capture = c
}

// StopCapture ends Capture and returns the first error that writing met.
func (n *Network) StopCapture() error {
	c := n.capture
	if c == nil {
		return nil
	}
	n.capture = nil
	return c.w.Flush()
}

// offered records a packet in front of a link.
func (c *capture) offered(now clock.Time, l *Link, p *link.Packet) {
	if ports, ok := c.ports[l]; ok {
		c.write(&trace.Packet{Time: now, Interface: ports[0], Data: p.Data}, p)
	}
}

// delivered records a packet behind a link.
func (c *capture) delivered(now clock.Time, l *Link, p *link.Packet) {
	if ports, ok := c.ports[l]; ok {
		k := &trace.Packet{Time: now, Interface: ports[1], Data: p.Data}
		if p.Corrupted {
			k.Comment = "corrupted"
		}
		c.write(k, p)
	}
}

func (c *capture) write(k *trace.Packet, p *link.Packet) {
	if p.To.IsValid() {
		c.w.WriteDatagram(k, p.From, p.To)
		return
	}
	c.w.WritePacket(k)
}
