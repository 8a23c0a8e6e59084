// Package wire turns bytes into headers and headers into bytes: IPv4, IPv6, UDP, TCP with its options,
// every MPTCP option of RFC 8684, and the envelope of MPTCP over UDP.
//
// Parsing is strict: what is malformed is an error and never a panic; what is unknown is skipped by its
// length. Appending what was parsed gives the same bytes. The package holds no state, decides nothing
// about a connection, and allocates nothing on the paths that packets take.
package wire
