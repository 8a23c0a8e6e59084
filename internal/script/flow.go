package script

import (
	"net/netip"
	"time"

	"braid/seq"
	"braid/wire"
)

// flow is one TCP connection of the script's with the tested host.
type flow struct {
	host, peer netip.AddrPort // the tested host's end and the script's
	iss        seq.Number     // the script's initial sequence number
	irs        seq.Number     // the tested host's
	known      bool           // irs is known

	sentTS, timestamps bool   // the script's SYN had them; so had the host's
	recentTS           uint32 // what the next segment echoes
	last               []byte // the last packet that the host sent
}

// packet is one that the host sent.
type packet struct {
	raw []byte
	at  time.Duration
	ip  wire.IP
	seg wire.Segment
}

func (p *packet) host() netip.AddrPort { return netip.AddrPortFrom(p.ip.Src, p.seg.SrcPort) }
func (p *packet) peer() netip.AddrPort { return netip.AddrPortFrom(p.ip.Dst, p.seg.DstPort) }

// bare reports whether the packet is an ACK that tells of nothing but what has arrived, or of a DATA_FIN, which hosts repeat as they like.
func (p *packet) bare() bool {
	const silent = wire.OptTimestamps | wire.OptSACK | wire.OptDSS
	s := &p.seg
	return s.Flags == wire.ACK && len(s.Payload) == 0 && s.Options&^silent == 0 && !(s.Has(wire.OptDSS) && s.DSS.HasMap && !s.DSS.DataFIN)
}

// flow returns the flow of that name as the script knows it.
func (r *Runner) flow(name string) *flow {
	f := r.flows[name]
	if f == nil {
		n := uint16(len(r.flows))
		f = &flow{iss: seq.Number(5000 + 1000*uint32(n))}
		f.host = netip.AddrPortFrom(r.hostAddr(), servicePort)
		f.peer = netip.AddrPortFrom(r.peerAddr(), 1001+n)
		r.flows[name] = f
	}
	return f
}

// of returns the flow that a packet belongs to, nil for one that no line has named.
func (r *Runner) of(p *packet) *flow {
	for _, f := range r.flows {
		if f.host == p.host() && f.peer == p.peer() {
			return f
		}
	}
	return nil
}

// learn keeps what later lines need of a packet of f.
func (r *Runner) learn(f *flow, p *packet) {
	s := &p.seg
	f.last = p.raw
	f.host, f.peer = p.host(), p.peer()
	if s.Flags.Has(wire.SYN) {
		f.irs, f.known = s.Seq, true
		f.timestamps = s.Has(wire.OptTimestamps) && (f.sentTS || !s.Flags.Has(wire.ACK))
	}
	if s.Has(wire.OptTimestamps) {
		f.recentTS = s.TSVal
	}
	if s.Has(wire.OptMPCapable) && s.Capable.Keys > 0 {
		r.vars["b"] = octets(s.Capable.Sender[:])
	}
}
