package mptcp

import "errors"

// What calls report. Errors of a connection wrap one of these, so that errors.Is works, and say in words what happened.
// A closed connection or listener reports net.ErrClosed.
var (
	// ErrWouldBlock says that there is nothing to read, or no room to write, now. An event follows when that changes.
	ErrWouldBlock = errors.New("mptcp: nothing to do now")
	// ErrRefused says that every path's SYN was answered with a reset, or that the network said that the host cannot be reached.
	ErrRefused = errors.New("mptcp: connection refused: nothing listens at that address, or a firewall resets it")
	// ErrReset says that the peer aborted the connection.
	ErrReset = errors.New("mptcp: connection reset by the peer")
	// ErrTimeout says that the peer did not answer for as long as the configuration allows.
	ErrTimeout = errors.New("mptcp: connection timed out")
	// ErrAborted says that this end aborted the connection.
	ErrAborted = errors.New("mptcp: connection aborted by this host")
	// ErrNoPath says that no path can reach the address: none is configured, or none of its address family.
	ErrNoPath = errors.New("mptcp: no path to that address: add a path whose local address is of the same family")
	// ErrAddressInUse says that another listener has the port, or that no port is left.
	ErrAddressInUse = errors.New("mptcp: address already in use")
	// ErrLimit says that a limit of the configuration is reached: MaxConns or StackMemory.
	ErrLimit = errors.New("mptcp: the stack's limit of connections or memory is reached")
	// ErrProtocol says that the peer broke the protocol so that the connection cannot go on.
	ErrProtocol = errors.New("mptcp: the peer or a middlebox broke the protocol")
	// ErrPathRemoved says that the local path of a subflow vanished.
	ErrPathRemoved = errors.New("mptcp: the local path is gone")
)
