// Package tcp is one subflow: a complete TCP (RFC 9293) as a calculator.
//
// A Conn is fed segments, timeouts and the owner's calls, each with the time at which they happen, and gives segments
// back when polled. It knows no addresses, no sockets and no MPTCP: it leaves option room for its owner, says which
// segments were acceptable so that their options may be believed, and hands received payload up in order. Package mptcp
// is the owner in the product; a test can be one with a few lines. There are no callbacks.
//
// # What the owner does
//
//  1. HandleSegment(now, seg) for each segment of this subflow. The Result says whether the segment was acceptable.
//     Then NextReceived until nil (payload in subflow order), and NextReleased until false (sent chunks that the peer
//     has acknowledged and that will not be sent again).
//  2. HandleTimeout(now) when NextTimeout is due.
//  3. To send: while CanSend(now), Push a chunk; then PollSegment until false. PollSegment fills header and TCP's own options,
//     and says which bytes of which chunk belong into the payload; the owner copies them and adds its options.
//  4. Re-arm from NextTimeout.
//
// Sequence numbers are kept as offsets: 0 is the SYN, 1 the first byte. A chunk is a piece of the stream that one MPTCP
// mapping covers; a segment never reaches across the end of one.
//
// # What is not here
//
// No explicit congestion notification, no Fast Open, no urgent mode (urgent data is delivered in line). Congestion control is
// behind congestion.Controller; checksums, ports and addresses are the owner's. In Closed a Conn is silent: the owner forgets it
// when NextReceived has returned nil, and answers later segments with MakeReset.
package tcp
