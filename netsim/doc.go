// Package netsim is a network in virtual time: hosts that each run a Stack, links between them, middleboxes that interfere, and
// the applications that send over it.
//
// A Network holds a clock and an agenda of what happens next, nothing else moves time. The same seed gives the same bytes,
// whatever the machine and the number of processors: every random decision has a stream of its own, named from the seed, and what
// happens at the same time happens in the order in which it was planned. Independent Networks may run in parallel.
//
// On top stand Scenario and Run: an experiment as a value, or as a TOML file, and its Result.
//
// It does not read a wall clock, open sockets, draw plots or judge results; and it knows nothing of TCP but what its middleboxes
// and capture files need.
package netsim
