// Package mptcp is one host's Multipath TCP (RFC 8684), as a calculator.
//
// A Stack finds the subflow of a packet, keeps listeners, tokens and timers, opens and reopens subflows over its paths, and announces
// and withdraws their addresses.
// A Conn is one connection: the data sequence space over its subflows, with mappings, reassembly, reinjection, fallback and
// close. Below, package tcp does each subflow; beside, congestion says how fast and schedule says where.
//
// # The contract
//
//  1. Feed inputs: a batch of HandlePacket(now, path, from, bytes), one per datagram of a receive batch, HandleTimeout(now), or an
//     application call (Dial, Listen, Conn.Read, Conn.Write, ...).
//  2. Then drain PollPacket(now, buf): each packet leaves on the path it names; consecutive packets of one path, destination and size can
//     be sent as one train. Feeding a whole receive batch first is what makes one stretch ACK of it possible.
//  3. Re-arm from NextTimeout.
//  4. Drain PollEvent.
//
// Time never goes back. A Stack is not safe for concurrent use and starts no goroutine: a busy server runs several (a connection's
// token modulo Config.Shards names its Stack). Entropy is a configuration value. Nothing here reads a clock, opens a socket,
// or knows what drives it: the simulator and the host run the same code.
package mptcp
