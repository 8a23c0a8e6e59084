// Package host drives one mptcp.Stack on a real machine: sockets, the wall clock, and goroutines that block.
//
// An Engine is a monitor. There is one lock; whoever brings input (the reader of a device with a batch of packets, the timer, a
// call of the application) takes it, feeds the Stack, drains the packets that the Stack wants to send, sets the timer, wakes those
// whose wait is over, and lets it go. That is an event loop without an event loop's hand-overs: a Write sends its first packets
// itself. Nothing below this package knows a goroutine, a lock or the time of day.
//
// Conn and Listener are net.Conn and net.Listener. Which interfaces to use, names of hosts, and interfaces that come and go
// are not handled here but in the root package.
package host
